//! The rules of the schema, as the store offers them: making, keeping and dropping rules, and naming what breaks one.
//!
//! What a rule says is in `schema`; the checks of commits and of bulk loads are in `write` and `load`.

use mangrove_graph::{ElementId, ElementKind, Error, ErrorKind, LabelId, Result, Value};

use crate::cell::Content;
use crate::schema::{Rule, RuleEntry, RuleId, Rules, RulesInForce};
use crate::store::Store;

impl Store {
    /// The rules that commits are checked by.
    #[inline]
    pub fn rules(&self) -> RulesInForce {
        self.schema.in_force()
    }

    /// The rules that are kept on disk, and the number that the next one gets.
    pub fn lasting_rules(&self) -> (Vec<RuleEntry>, u32) {
        self.schema.lasting()
    }

    /// Adds a rule that commits are checked by from now on, pending. Fails if an equal rule exists.
    pub fn add_rule(&self, rule: Rule) -> Result<RuleId> {
        self.schema.add(rule, self.catalog())
    }

    /// Makes a pending rule last, after `first` has made the lasting rules durable. If `first` fails, the rule is removed.
    pub fn keep_rule(&self, id: RuleId, first: impl FnOnce(&[RuleEntry], u32) -> Result<()>) -> Result<()> {
        self.schema.keep(id, first)
    }

    /// Removes a rule, after `first` has made the remaining rules durable.
    pub fn remove_rule(&self, id: RuleId, first: impl FnOnce(&[RuleEntry], u32) -> Result<()>) -> Result<()> {
        self.schema.remove(id, first)
    }

    /// Puts back the rules of a graph that is being restored, before any transaction uses the store.
    pub fn restore_rules(&self, rules: Vec<(RuleId, Rule)>, next: u32) {
        self.schema.restore(rules, next);
    }

    /// The error that names an element, what is wrong with it, and the rule.
    pub fn broken_error(&self, rules: &Rules, id: RuleId, element: &str, what: &str) -> Error {
        let rule = rules.iter().find(|entry| entry.id == id).map(|entry| entry.rule.text(self.catalog()));
        let rule = rule.unwrap_or_default();
        let message = format!("{element} breaks rule {} of the schema: {what}, and {rule}", id.0);
        Error::new(ErrorKind::InvalidArgument, message)
    }

    /// An element by kind, label and the id its user knows.
    pub fn element_text(&self, element: ElementId) -> String {
        let (kind, external) = match element {
            ElementId::Vertex(id) => (ElementKind::Vertex, id.external()),
            ElementId::Edge(id) => (ElementKind::Edge, id.external()),
        };
        let Some(slot) = self.slot(element) else { return format!("{} {external}", kind.name()) };
        let label = self.catalog().label_set_name(slot.core.label);
        match slot.tablet.values.decode(slot.core.user_id(slot.at)) {
            Content::One(Value::String(id)) => format!("{} '{id}' ({label})", kind.name()),
            Content::One(id) => match mangrove_graph::numeric::integer(&id) {
                Some(number) => format!("{} {number} ({label})", kind.name()),
                None => format!("{} {id:?} ({label})", kind.name()),
            },
            _ => format!("{} {external} ({label})", kind.name()),
        }
    }

    pub(crate) fn labels_at(&self, element: ElementId) -> Vec<LabelId> {
        self.slot(element).map(|slot| self.catalog().labels_of(slot.core.label)).unwrap_or_default()
    }
}
