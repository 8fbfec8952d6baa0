//! The methods of the store about its schema: adding, keeping and removing rules, and the error of a broken rule.
//!
//! `schema` defines rules. `write` checks commits by them, and `load` the rows of a bulk load.

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

    /// The rules that are kept on disk, and the number of the next rule.
    pub fn lasting_rules(&self) -> (Vec<RuleEntry>, u32) {
        self.schema.lasting()
    }

    /// Adds a pending rule, by which commits are checked from now on. Fails with `DuplicateId` if there is a rule of
    /// the same sort about the same label and key.
    pub fn add_rule(&self, rule: Rule) -> Result<RuleId> {
        self.schema.add(rule, self.catalog())
    }

    /// Makes a pending rule last, after `first` has made all lasting rules durable. If `first` fails, the rule is
    /// removed. `first` gets the lasting rules and the number of the next rule.
    pub fn keep_rule(&self, id: RuleId, first: impl FnOnce(&[RuleEntry], u32) -> Result<()>) -> Result<()> {
        self.schema.keep(id, first)
    }

    /// Removes a rule, after `first` has made the remaining lasting rules durable.
    pub fn remove_rule(&self, id: RuleId, first: impl FnOnce(&[RuleEntry], u32) -> Result<()>) -> Result<()> {
        self.schema.remove(id, first)
    }

    /// Puts back the rules of a graph that is being restored, before any transaction uses the store.
    pub fn restore_rules(&self, rules: Vec<(RuleId, Rule)>, next: u32) {
        self.schema.restore(rules, next);
    }

    /// The error that an element breaks a rule. `element` names the element, and `what` says how it breaks the rule.
    pub fn broken_error(&self, rules: &Rules, id: RuleId, element: &str, what: &str) -> Error {
        let rule = rules.iter().find(|entry| entry.id == id).map(|entry| entry.rule.text(self.catalog()));
        let rule = rule.unwrap_or_default();
        let message = format!("{element} breaks rule {} of the schema: {what}, and {rule}", id.0);
        Error::new(ErrorKind::InvalidArgument, message)
    }

    /// An element in words: kind, user id and label.
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

    /// The labels of an element; none if its slot is gone.
    pub(crate) fn labels_at(&self, element: ElementId) -> Vec<LabelId> {
        self.slot(element).map(|slot| self.catalog().labels_of(slot.core.label)).unwrap_or_default()
    }
}
