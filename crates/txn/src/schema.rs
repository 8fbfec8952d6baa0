//! Making and dropping schema rules while transactions run.
//!
//! - **TXN-18.** If a rule is made while a transaction commits, one of the two sees the other. A commit is checked by
//!   the rules in force before it draws its timestamp, when no transaction waits for it, and again after the draw if
//!   the rules have changed.
//!
//! | the commit drew its timestamp | then |
//! |---|---|
//! | before the rule was in force | the maker of the rule waits until the commit is installed, and checks it with the existing data |
//! | after that | the commit sees the rule when it checks the second time |
//!
//! Fences on both sides, between the store to one's own variable and the load of the other's, guarantee this
//! ([`Shared::rules_after_draw`]). Existing data is checked in a snapshot that is taken while the rule is in force. If
//! something breaks the rule, the rule is removed and the error names the element.

use mangrove_graph::{
    ElementId, ElementKind, GraphView, KeyId, LabelFilter, LabelSetId, PropertyRow, Result, ScanCursor, Share, Value,
};
use mangrove_store::schema::{ElementImage, Rule, RuleId, Rules, RulesInForce};

use crate::manager::TransactionManager;
use crate::options::{Isolation, TransactionOptions};
use crate::shared::Shared;
use crate::sync::{Ordering, fence};
use crate::transaction::Transaction;

/// Elements that are checked together.
const BATCH_ELEMENTS: usize = 1024;

impl Shared {
    /// The rules in force for a transaction that has drawn its timestamp.
    pub(crate) fn rules_after_draw(&self) -> RulesInForce {
        // TXN-18. Pairs with the fence in `create_rule`: either it sees the timestamp drawn, or this sees the rule.
        fence(Ordering::SeqCst);
        self.store.rules()
    }
}

impl TransactionManager {
    /// Makes a rule, while transactions run. If existing data breaks it, this fails and leaves nothing behind.
    pub fn create_rule(&self, rule: Rule) -> Result<RuleId> {
        let shared = self.shared();
        shared.following.check_writable()?;
        let id = shared.store.add_rule(rule.clone())?;
        // TXN-18: pairs with the fence in `rules_after_draw`.
        fence(Ordering::SeqCst);
        shared.recent.wait_for(shared.recent.published());
        let made = self.check_present(&rule, id).and_then(|()| {
            shared.store.keep_rule(id, |rules, next| match shared.log.get() {
                Some(log) => log.change_rules(rules, next, &shared.recent),
                None => Ok(()),
            })
        });
        if made.is_err() {
            // It may be gone already: the log may have refused it, or another client may have dropped it.
            drop(shared.store.remove_rule(id, |_, _| Ok(())));
        }
        made.map(|()| id)
    }

    /// Drops a rule. Fails with `NotFound` if there is none.
    pub fn drop_rule(&self, id: RuleId) -> Result<()> {
        let shared = self.shared();
        shared.following.check_writable()?;
        // The log first: no commit may break the rule before the end of the rule is durable.
        shared.store.remove_rule(id, |rules, next| match shared.log.get() {
            Some(log) => log.change_rules(rules, next, &shared.recent),
            None => Ok(()),
        })
    }

    /// Checks that all existing data keeps to a rule.
    fn check_present(&self, rule: &Rule, id: RuleId) -> Result<()> {
        // Not a read-only transaction: with a log that would read at the last durable timestamp, and commits after it
        // may be installed.
        let options = TransactionOptions { isolation: Isolation::Snapshot, read_only: false };
        let shared = self.shared();
        let transaction = self.begin(options)?;
        if !transaction.protect() {
            return Err(shared.expired_error());
        }
        let (kind, label) = rule.subject();
        let labels = LabelFilter::Sets(shared.store.catalog().label_sets_with_any(&[label]).into());
        let present = PresentCheck { transaction: &transaction, rules: Rules::of_one(id, rule.clone()), rule };
        let mut cursor = ScanCursor::default();
        // A view for each batch, so that the scan does not hold reclamation back for its whole length.
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

/// The check of existing data against one rule.
struct PresentCheck<'a> {
    transaction: &'a Transaction,
    rule: &'a Rule,
    /// The rule by itself.
    rules: Rules,
}

/// Elements with everything that a rule may be about.
struct ElementBatch {
    kind: ElementKind,
    elements: Vec<ElementId>,
    labels: Vec<LabelSetId>,
    properties: Vec<PropertyRow>,
    /// The label sets of the ends of edges; empty if the rule is not about ends.
    ends: Vec<(LabelSetId, LabelSetId)>,
}

impl PresentCheck<'_> {
    /// Checks a batch of vertices. Returns true if it was the last.
    fn vertices(&self, labels: &LabelFilter, cursor: &mut ScanCursor) -> Result<bool> {
        let view = self.transaction.view()?;
        let (mut ids, mut sets, mut properties) = (Vec::new(), Vec::new(), Vec::new());
        let is_end = view.scan_vertices(labels, Share::ALL, cursor, BATCH_ELEMENTS, &mut ids)?;
        view.vertex_labels(&ids, &mut sets)?;
        if let Some(key) = self.rule.key() {
            view.vertex_properties(&ids, Some(&[key]), &mut properties)?;
        }
        let elements = ids.into_iter().map(ElementId::Vertex).collect();
        self.check(ElementBatch { kind: ElementKind::Vertex, elements, labels: sets, properties, ends: Vec::new() })?;
        Ok(is_end)
    }

    /// Checks a batch of edges. Returns true if it was the last.
    fn edges(&self, labels: &LabelFilter, cursor: &mut ScanCursor) -> Result<bool> {
        let view = self.transaction.view()?;
        let (mut ids, mut sets, mut properties) = (Vec::new(), Vec::new(), Vec::new());
        let is_end = view.scan_edges(labels, Share::ALL, cursor, BATCH_ELEMENTS, &mut ids)?;
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
        self.check(ElementBatch { kind: ElementKind::Edge, elements, labels: sets, properties, ends })?;
        Ok(is_end)
    }

    fn check(&self, batch: ElementBatch) -> Result<()> {
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
