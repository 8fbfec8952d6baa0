//! Checking a commit against the rules of the schema.
//!
//! The transaction has finished writing and holds its claims, so nothing that the check looks at changes. It looks at
//! the after-images of the log ([`Redo`]), one element at a time.

use mangrove_graph::{ElementId, ElementKind, Error, KeyId, LabelId, Result, Value};

use crate::cell::Content;
use crate::memory::Write;
use crate::schema::{ElementImage, Rules};
use crate::store::Store;
use crate::write::redo::Redo;

impl Store {
    /// Fails if the commit of a log would break a rule. The transaction has finished writing and holds its claims.
    pub fn check_commit(&self, rules: &Rules, log: &[Write], txn: u64) -> Result<()> {
        let mut check = CommitCheck { store: self, rules, new: None, broken: None };
        if !rules.is_empty() {
            self.each_redo(log, txn, &mut |redo| check.see(redo));
            check.complete();
        }
        check.broken.map_or(Ok(()), Err)
    }
}

/// Takes the after-images of a commit one by one. The values of a new element follow the element.
struct CommitCheck<'a> {
    store: &'a Store,
    rules: &'a Rules,
    new: Option<NewElement>,
    broken: Option<Error>,
}

/// A new element whose values are still to come.
struct NewElement {
    element: ElementId,
    labels: Vec<LabelId>,
    ends: Option<(Vec<LabelId>, Vec<LabelId>)>,
    values: Vec<(KeyId, Option<Value>)>,
}

impl CommitCheck<'_> {
    fn see(&mut self, redo: Redo) {
        match redo {
            _ if self.broken.is_some() => {}
            Redo::Insert { element, labels, ends, .. } => {
                self.complete();
                let labels = self.store.catalog().labels_of(labels);
                let at = |vertex| self.store.labels_at(ElementId::Vertex(vertex));
                let ends = ends.map(|(source, target)| (at(source), at(target)));
                self.new = Some(NewElement { element, labels, ends, values: Vec::new() });
            }
            Redo::Property { element, key, content } => {
                let mut values = Vec::new();
                content_values(key, content, &mut values);
                match &mut self.new {
                    Some(new) if new.element == element => new.values.append(&mut values),
                    _ => {
                        self.complete();
                        self.look(element, &self.store.labels_at(element), None, &values, false);
                    }
                }
            }
            Redo::Delete(_) => self.complete(),
        }
    }

    /// Checks the new element, all of whose values have come.
    fn complete(&mut self) {
        if let Some(NewElement { element, labels, ends, values }) = self.new.take() {
            self.look(element, &labels, ends, &values, true);
        }
    }

    /// Checks the values of an element. `is_whole` is true if these are all its values.
    fn look(
        &mut self,
        element: ElementId,
        labels: &[LabelId],
        ends: Option<(Vec<LabelId>, Vec<LabelId>)>,
        values: &[(KeyId, Option<Value>)],
        is_whole: bool,
    ) {
        let kind = match element {
            ElementId::Vertex(_) => ElementKind::Vertex,
            ElementId::Edge(_) => ElementKind::Edge,
        };
        let image = ElementImage { kind, labels, ends, values, is_whole };
        let broken = self.rules.broken_by(&image, self.store.catalog());
        self.broken = self.broken.take().or_else(|| {
            let (id, what) = broken?;
            Some(self.store.broken_error(self.rules, id, &self.store.element_text(element), &what))
        });
    }
}

/// Appends the values of a cell; `None` stands for a key without value.
fn content_values(key: KeyId, content: Content, out: &mut Vec<(KeyId, Option<Value>)>) {
    match content {
        Content::Absent => out.push((key, None)),
        Content::One(value) => out.push((key, Some(value))),
        Content::Multi(multi) if multi.values.is_empty() => out.push((key, None)),
        Content::Multi(multi) => out.extend(multi.values.iter().map(|one| (key, Some(one.value.clone())))),
    }
}
