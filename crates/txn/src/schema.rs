//! Making and dropping rules of the schema while transactions go on.
//!
//! A commit is checked twice: by the rules there are before it draws its timestamp, when that holds nobody up, and once more
//! after, where the rules have changed meanwhile. So of a rule that is made and a commit beside it one thing is true:
//!
//! - the commit drew its timestamp before the rule was there. Then whoever makes the rule waits until it is installed, and meets
//!   it among what is there;
//! - or it drew it after. Then it sees the rule when it looks the second time.
//!
//! Fences on both sides, between what one writes and what the other reads, make it so: see [`Shared::rules_after_draw`]. What
//! is there is looked at in a snapshot of a moment at which the rule was in force; if something breaks it, the rule
//! is taken back and the error names the element.

use mangrove_graph::{
    ElementId, ElementKind, GraphView, KeyId, LabelFilter, LabelSetId, PropertyRow, Result, ScanCursor, Share, Value,
};
use mangrove_store::schema::{ElementImage, Rule, RuleId, Rules, RulesInForce};

use crate::manager::TransactionManager;
use crate::options::{Isolation, TransactionOptions};
use crate::shared::Shared;
use crate::sync::{Ordering, fence};
use crate::transaction::Transaction;

/// How many elements are looked at together.
const BATCH: usize = 1024;

impl Shared {
    /// The rules that hold for a transaction that has drawn its timestamp.
    pub(crate) fn rules_after_draw(&self) -> RulesInForce {
        // Pairs with the fence in `create_rule`: either it sees the timestamp drawn, or the rule is seen here.
        fence(Ordering::SeqCst);
        self.store.rules()
    }
}

impl TransactionManager {
    /// Makes a rule, while transactions go on. Fails, and leaves nothing behind, where something that is there breaks it.
    pub fn create_rule(&self, rule: Rule) -> Result<RuleId> {
        let shared = self.shared();
        let id = shared.store.add_rule(rule.clone())?;
        fence(Ordering::SeqCst);
        shared.recent.wait_for(shared.recent.published());
        let made = self.check_present(&rule, id).and_then(|()| {
            shared.store.keep_rule(id, |rules, next| match &shared.log {
                Some(log) => log.change_rules(rules, next, &shared.recent),
                None => Ok(()),
            })
        });
        if made.is_err() {
            // It may be gone already, if the log refused it or somebody dropped it.
            drop(shared.store.remove_rule(id, |_, _| Ok(())));
        }
        made.map(|()| id)
    }

    /// Drops a rule. Fails with `NotFound` where there is none.
    pub fn drop_rule(&self, id: RuleId) -> Result<()> {
        let shared = self.shared();
        // The log first: what the rule forbids is not done before everybody knows that it is gone.
        shared.store.remove_rule(id, |rules, next| match &shared.log {
            Some(log) => log.change_rules(rules, next, &shared.recent),
            None => Ok(()),
        })
    }

    /// Whether everything there is keeps to a rule.
    fn check_present(&self, rule: &Rule, id: RuleId) -> Result<()> {
        // Not a reader: with a log those see what is durable, which may be less than what is installed.
        let options = TransactionOptions { isolation: Isolation::Snapshot, read_only: false };
        let shared = self.shared();
        let transaction = self.begin(options)?;
        if !transaction.keep() {
            return Err(shared.expired_error());
        }
        let (kind, label) = rule.subject();
        let labels = LabelFilter::Sets(shared.store.catalog().label_sets_with_any(&[label]).into());
        let present = Present { transaction: &transaction, rules: Rules::of_one(id, rule.clone()), rule };
        let mut cursor = ScanCursor::default();
        // A view for each batch: memory is not held back for the whole of a scan.
        let mut is_end = false;
        while !is_end {
            is_end = match kind {
                ElementKind::Vertex => present.vertices(&labels, &mut cursor)?,
                ElementKind::Edge => present.edges(&labels, &mut cursor)?,
            };
        }
        Ok(())
    }
}

/// Looks at what is there.
struct Present<'a> {
    transaction: &'a Transaction,
    rule: &'a Rule,
    /// The rule by itself.
    rules: Rules,
}

/// Elements with what a rule may be about.
struct Batch {
    kind: ElementKind,
    elements: Vec<ElementId>,
    labels: Vec<LabelSetId>,
    properties: Vec<PropertyRow>,
    /// The label sets of edges' ends; empty where nobody asks.
    ends: Vec<(LabelSetId, LabelSetId)>,
}

impl Present<'_> {
    /// Looks at some vertices; whether they were the last.
    fn vertices(&self, labels: &LabelFilter, cursor: &mut ScanCursor) -> Result<bool> {
        let view = self.transaction.view()?;
        let (mut ids, mut sets, mut properties) = (Vec::new(), Vec::new(), Vec::new());
        let is_end = view.scan_vertices(labels, Share::ALL, cursor, BATCH, &mut ids)?;
        view.vertex_labels(&ids, &mut sets)?;
        if let Some(key) = self.rule.key() {
            view.vertex_properties(&ids, Some(&[key]), &mut properties)?;
        }
        let elements = ids.into_iter().map(ElementId::Vertex).collect();
        self.check(Batch { kind: ElementKind::Vertex, elements, labels: sets, properties, ends: Vec::new() })?;
        Ok(is_end)
    }

    /// Looks at some edges; whether they were the last.
    fn edges(&self, labels: &LabelFilter, cursor: &mut ScanCursor) -> Result<bool> {
        let view = self.transaction.view()?;
        let (mut ids, mut sets, mut properties) = (Vec::new(), Vec::new(), Vec::new());
        let is_end = view.scan_edges(labels, Share::ALL, cursor, BATCH, &mut ids)?;
        view.edge_labels(&ids, &mut sets)?;
        if let Some(key) = self.rule.key() {
            view.edge_properties(&ids, Some(&[key]), &mut properties)?;
        }
        let mut ends = Vec::new();
        if matches!(self.rule, Rule::Ends { .. }) {
            let (mut sources, mut targets, mut from, mut to) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            view.edge_ends(&ids, &mut sources, &mut targets)?;
            view.vertex_labels(&sources, &mut from)?;
            view.vertex_labels(&targets, &mut to)?;
            ends = from.into_iter().zip(to).collect();
        }
        let elements = ids.into_iter().map(ElementId::Edge).collect();
        self.check(Batch { kind: ElementKind::Edge, elements, labels: sets, properties, ends })?;
        Ok(is_end)
    }

    fn check(&self, batch: Batch) -> Result<()> {
        let store = &self.transaction.shared.store;
        let catalog = store.catalog();
        let mut properties = batch.properties.into_iter().peekable();
        for (at, element) in batch.elements.iter().enumerate() {
            let mut values: Vec<(KeyId, Option<Value>)> = Vec::new();
            while let Some(row) = properties.next_if(|row| row.row as usize == at) {
                values.push((row.key, Some(row.value)));
            }
            let labels = catalog.labels_of(batch.labels[at]);
            let ends = batch.ends.get(at).map(|(from, to)| (catalog.labels_of(*from), catalog.labels_of(*to)));
            let image = ElementImage { kind: batch.kind, labels: &labels, ends, values: &values, is_whole: true };
            if let Some((id, what)) = self.rules.broken_by(&image, catalog) {
                return Err(store.broken_error(&self.rules, id, &store.element_text(*element), &what));
            }
        }
        Ok(())
    }
}
