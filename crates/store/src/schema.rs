//! The optional schema: rules that every commit keeps to. A graph without rules takes anything.
//!
//! A [`Rule`] is about the vertices, or the edges, that have a certain label. It demands a property, the type of a
//! property's values, or the labels of an edge's ends.
//!
//! Rules are checked on *images* of elements. These are the after-images of a transaction that is about to commit
//! ([`Store::check_commit`](crate::Store::check_commit)), and the rows of a bulk load. When a rule is made, all
//! elements of the graph are checked by it.
//!
//! One element at a time is enough. A rule speaks of one element, of labels that never change, and of values that two
//! transactions cannot both write. So two commits that keep to the rules keep to them together.
//!
//! A rule is *pending* until the graph has been checked:
//!
//! ```text
//! add ──▶ pending: commits are checked by it, it is not on disk ──keep──▶ lasting: it is on disk ──remove──▶ gone
//!            └────────────── the graph breaks it, or the disk fails ──▶ gone
//! ```
//!
//! Rules are in the store because the store uses them: commits, rows of bulk loads and restored graphs are checked
//! here. A checkpoint reads the rules under the lock that changes of them take, so it never misses a change whose log
//! record is older than the checkpoint. Policy is elsewhere: `txn::schema` decides when a rule may come into force and
//! which transactions wait for that, and `db::schema` says what a client can ask for. Indexes ensure unique values
//! (`write::unique`).

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use mangrove_graph::{Catalog, ElementKind, Error, ErrorKind, KeyId, LabelId, Result, Value};
use mangrove_locks::rank;
use mangrove_reclaim::sync::Mutex;

/// The number of a rule. No number is given twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RuleId(pub u32);

/// A type of values that a rule can demand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ValueType(u8);

/// The types by number. Files contain the numbers, so new types are added at the end. The last two stand for several
/// types of values; the others are types of values ([`Value::type_name`]).
const TYPES: [&str; 21] = [
    "boolean",
    "byte",
    "short",
    "int",
    "long",
    "bigint",
    "float",
    "double",
    "decimal",
    "char",
    "string",
    "bytes",
    "uuid",
    "datetime",
    "duration",
    "list",
    "set",
    "map",
    "float array",
    "integer",
    "number",
];

impl ValueType {
    /// The type of this name. Fails with `InvalidArgument`, and lists the names, if there is none.
    pub fn named(name: &str) -> Result<Self> {
        let found = TYPES.iter().position(|known| *known == name).and_then(|at| u8::try_from(at).ok());
        found.map(ValueType).ok_or_else(|| {
            Error::invalid(format!("there is no type '{name}' of properties; there are {}", TYPES.join(", ")))
        })
    }

    /// The type of this number, if there is one.
    pub fn numbered(number: u8) -> Option<Self> {
        (usize::from(number) < TYPES.len()).then_some(ValueType(number))
    }

    /// The number of the type, for files.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The name of the type.
    pub fn name(self) -> &'static str {
        TYPES[usize::from(self.0)]
    }

    /// Returns true if a value is of this type.
    pub fn takes(self, value: &Value) -> bool {
        let is_integer =
            matches!(value, Value::I8(_) | Value::I16(_) | Value::I32(_) | Value::I64(_) | Value::BigInt(_));
        match self.name() {
            "integer" => is_integer,
            "number" => is_integer || matches!(value, Value::F32(_) | Value::F64(_) | Value::Decimal(_)),
            name => value.type_name() == name,
        }
    }
}

/// A demand on all elements of a kind that have a certain label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Every such element has the property, and its value is not null.
    Required {
        /// Vertices or edges.
        kind: ElementKind,
        /// The label of the elements.
        label: LabelId,
        /// The property key.
        key: KeyId,
    },
    /// Every value of the property is of this type. An element without the property keeps to the rule.
    Typed {
        /// Vertices or edges.
        kind: ElementKind,
        /// The label of the elements.
        label: LabelId,
        /// The property key.
        key: KeyId,
        /// The type of the values.
        value_type: ValueType,
    },
    /// For one of these pairs, the source of the edge has the first label and the target the second.
    Ends {
        /// The label of the edges.
        label: LabelId,
        /// A label of the source and a label of the target.
        pairs: Vec<(LabelId, LabelId)>,
    },
}

impl Rule {
    /// The kind and the label of the elements that the rule is about.
    pub fn subject(&self) -> (ElementKind, LabelId) {
        match *self {
            Rule::Required { kind, label, .. } | Rule::Typed { kind, label, .. } => (kind, label),
            Rule::Ends { label, .. } => (ElementKind::Edge, label),
        }
    }

    /// The key of the property that the rule is about, if there is one.
    pub fn key(&self) -> Option<KeyId> {
        match *self {
            Rule::Required { key, .. } | Rule::Typed { key, .. } => Some(key),
            Rule::Ends { .. } => None,
        }
    }

    /// The rule in words.
    pub fn text(&self, catalog: &Catalog) -> String {
        let of = |kind: ElementKind, label| format!("every {} '{}'", kind.name(), catalog.label_name(label));
        match self {
            Rule::Required { kind, label, key } => format!("{} has '{}'", of(*kind, *label), catalog.key_name(*key)),
            Rule::Typed { kind, label, key, value_type } => {
                format!("'{}' of {} is of type {}", catalog.key_name(*key), of(*kind, *label), value_type.name())
            }
            Rule::Ends { label, pairs } => {
                let pair = |(from, to): &(LabelId, LabelId)| {
                    format!("'{}' to '{}'", catalog.label_name(*from), catalog.label_name(*to))
                };
                let pairs = pairs.iter().map(pair).collect::<Vec<_>>().join(" or ");
                format!("{} leads from {pairs}", of(ElementKind::Edge, *label))
            }
        }
    }
}

/// A rule of a schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleEntry {
    /// The number of the rule.
    pub id: RuleId,
    /// The rule.
    pub rule: Rule,
    /// True until the whole graph was checked by the rule.
    pub pending: bool,
}

/// The rules of a schema at one time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    list: Vec<RuleEntry>,
}

/// An element to be checked, as it is or as it would be after a commit.
pub struct ElementImage<'a> {
    /// Vertex or edge.
    pub kind: ElementKind,
    /// The labels of the element.
    pub labels: &'a [LabelId],
    /// The labels of an edge's source and target. `None` for a vertex, and for an edge whose ends need no check.
    pub ends: Option<(Vec<LabelId>, Vec<LabelId>)>,
    /// The values with their keys; several values of a key are adjacent. `None` stands for a key without value.
    pub values: &'a [(KeyId, Option<Value>)],
    /// True if these are all values of the element. Otherwise they are the values that a commit changes.
    pub is_whole: bool,
}

impl Rules {
    /// A pending rule on its own.
    pub fn of_one(id: RuleId, rule: Rule) -> Self {
        Rules { list: vec![RuleEntry { id, rule, pending: true }] }
    }

    /// All rules, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &RuleEntry> {
        self.list.iter()
    }

    /// Returns true if there is no rule.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns true if a rule is about elements of this kind with these labels.
    pub fn concern(&self, kind: ElementKind, labels: &[LabelId]) -> bool {
        self.about(kind, labels).next().is_some()
    }

    /// The rules about elements of this kind with these labels.
    fn about(&self, kind: ElementKind, labels: &[LabelId]) -> impl Iterator<Item = &RuleEntry> {
        self.list.iter().filter(move |entry| {
            let (of, label) = entry.rule.subject();
            of == kind && labels.contains(&label)
        })
    }

    /// The first rule that an element breaks, and a text that says how.
    pub fn broken_by(&self, image: &ElementImage<'_>, catalog: &Catalog) -> Option<(RuleId, String)> {
        self.about(image.kind, image.labels).find_map(|entry| Some((entry.id, wrong(&entry.rule, image, catalog)?)))
    }
}

/// A text that says how an element breaks a rule that is about it; `None` if it keeps to the rule.
fn wrong(rule: &Rule, image: &ElementImage<'_>, catalog: &Catalog) -> Option<String> {
    let values = |key: KeyId| image.values.iter().filter(move |(k, _)| *k == key).map(|(_, value)| value);
    match rule {
        Rule::Required { key, .. } => {
            let is_there = |value: &Option<Value>| !matches!(value, None | Some(Value::Null));
            // A change can remove only a key that it names.
            let keeps = values(*key).any(is_there) || (!image.is_whole && values(*key).next().is_none());
            (!keeps).then(|| format!("it has no '{}'", catalog.key_name(*key)))
        }
        Rule::Typed { key, value_type, .. } => {
            let other = values(*key).flatten().find(|value| !value_type.takes(value))?;
            Some(format!("its '{}' is a {}", catalog.key_name(*key), other.type_name()))
        }
        Rule::Ends { pairs, .. } => {
            let (from, to) = image.ends.as_ref()?;
            let fits = pairs.iter().any(|(source, target)| from.contains(source) && to.contains(target));
            let names =
                |labels: &[LabelId]| labels.iter().map(|l| catalog.label_name(*l)).collect::<Vec<_>>().join("::");
            (!fits).then(|| format!("it leads from '{}' to '{}'", names(from), names(to)))
        }
    }
}

/// State of the thread that changes the rules.
#[derive(Debug, Default)]
struct RuleChanges {
    /// The number of the next rule.
    next_id: u32,
}

/// The schema of a store.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    rules: ArcSwap<Rules>,
    /// Held while the rules change.
    changes: Mutex<RuleChanges, rank::SchemaChanges>,
}

/// The rules that commits were checked by at one time. Every commit takes them, so taking them counts no reference that
/// threads share.
pub struct RulesInForce(Guard<Arc<Rules>>);

impl RulesInForce {
    /// Returns true if no rule was added, kept or removed between the two.
    pub fn are(&self, others: &RulesInForce) -> bool {
        Arc::ptr_eq(&self.0, &others.0)
    }
}

impl std::ops::Deref for RulesInForce {
    type Target = Rules;
    fn deref(&self) -> &Rules {
        &self.0
    }
}

impl std::fmt::Debug for RulesInForce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RulesInForce").field(&**self).finish()
    }
}

impl Schema {
    /// The rules that commits are checked by.
    pub(crate) fn in_force(&self) -> RulesInForce {
        RulesInForce(self.rules.load())
    }

    /// The rules that are kept on disk, and the number of the next rule.
    pub(crate) fn lasting(&self) -> (Vec<RuleEntry>, u32) {
        let next = self.changes.lock();
        (self.rules.load().iter().filter(|entry| !entry.pending).cloned().collect(), next.next_id)
    }

    /// Adds a pending rule, by which commits are checked from now on. Fails with `DuplicateId` if there is a rule of
    /// the same sort about the same label and key.
    pub(crate) fn add(&self, rule: Rule, catalog: &Catalog) -> Result<RuleId> {
        let mut next = self.changes.lock();
        let mut rules = Rules::clone(&self.rules.load());
        let rival = |entry: &&RuleEntry| {
            let other = &entry.rule;
            // One rule says everything about the ends of a label's edges, or about the type of a property.
            std::mem::discriminant(other) == std::mem::discriminant(&rule)
                && (other.subject(), other.key()) == (rule.subject(), rule.key())
        };
        if let Some(rival) = rules.list.iter().find(rival) {
            let text = rival.rule.text(catalog);
            let message = format!("rule {} says already that {text}; drop it first", rival.id.0);
            return Err(Error::new(ErrorKind::DuplicateId, message));
        }
        let id = RuleId(next.next_id);
        next.next_id += 1;
        rules.list.push(RuleEntry { id, rule, pending: true });
        self.rules.store(Arc::new(rules));
        Ok(id)
    }

    /// Makes a pending rule last, after `first` has made all lasting rules durable. If `first` fails, the rule is
    /// removed.
    pub(crate) fn keep(&self, id: RuleId, first: impl FnOnce(&[RuleEntry], u32) -> Result<()>) -> Result<()> {
        let next = self.changes.lock();
        let mut rules = Rules::clone(&self.rules.load());
        let Some(entry) = rules.list.iter_mut().find(|entry| entry.id == id) else { return Err(no_rule(id)) };
        entry.pending = false;
        let lasting: Vec<RuleEntry> = rules.list.iter().filter(|entry| !entry.pending).cloned().collect();
        let kept = first(&lasting, next.next_id);
        if kept.is_err() {
            rules.list.retain(|entry| entry.id != id);
        }
        self.rules.store(Arc::new(rules));
        kept
    }

    /// Removes a rule, after `first` has made the remaining lasting rules durable.
    pub(crate) fn remove(&self, id: RuleId, first: impl FnOnce(&[RuleEntry], u32) -> Result<()>) -> Result<()> {
        let next = self.changes.lock();
        let mut rules = Rules::clone(&self.rules.load());
        let Some(at) = rules.list.iter().position(|entry| entry.id == id) else { return Err(no_rule(id)) };
        let removed = rules.list.remove(at);
        if !removed.pending {
            let lasting: Vec<RuleEntry> = rules.list.iter().filter(|entry| !entry.pending).cloned().collect();
            first(&lasting, next.next_id)?;
        }
        self.rules.store(Arc::new(rules));
        Ok(())
    }

    /// Puts back the rules of a restored graph. No other thread has the store yet.
    pub(crate) fn restore(&self, rules: Vec<(RuleId, Rule)>, next: u32) {
        self.changes.lock().next_id = next;
        let list = rules.into_iter().map(|(id, rule)| RuleEntry { id, rule, pending: false }).collect();
        self.rules.store(Arc::new(Rules { list }));
    }
}

fn no_rule(id: RuleId) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no rule {} in the schema", id.0))
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn check(rule: Rule, values: &[(KeyId, Option<Value>)], is_whole: bool, keeps: bool) {
        let catalog = Catalog::new();
        let (label, other) = (catalog.intern_label("a"), catalog.intern_label("b"));
        catalog.intern_key("x");
        let rules = Rules { list: vec![RuleEntry { id: RuleId(0), rule, pending: false }] };
        let broken = |labels: &[LabelId]| {
            let image = ElementImage { kind: ElementKind::Vertex, labels, ends: None, values, is_whole };
            rules.broken_by(&image, &catalog).is_some()
        };
        assert_eq!(broken(&[label, other]), !keeps, "{rules:?} {values:?}");
        assert!(!broken(&[other]), "a rule is about its label alone");
    }

    #[test]
    fn a_required_property_is_there_and_not_null() {
        let (kind, label, key) = (ElementKind::Vertex, LabelId(0), KeyId(0));
        let rule = || Rule::Required { kind, label, key };
        check(rule(), &[(key, Some(1.into()))], true, true);
        check(rule(), &[], true, false);
        check(rule(), &[(key, Some(Value::Null))], true, false);
        check(rule(), &[], false, true);
        check(rule(), &[(key, None)], false, false);
    }

    #[test]
    fn all_values_are_of_the_type() {
        let (kind, label, key) = (ElementKind::Vertex, LabelId(0), KeyId(0));
        let rule = |name| Rule::Typed { kind, label, key, value_type: ValueType::named(name).unwrap() };
        check(rule("int"), &[(key, Some(1.into())), (key, Some("one".into()))], true, false);
        check(rule("integer"), &[(key, Some(1.into())), (key, Some(1_i64.into()))], true, true);
        check(rule("number"), &[(key, Some(1.5.into()))], true, true);
        check(rule("string"), &[], true, true);
    }

    #[test]
    fn types_keep_their_numbers() {
        for (number, name) in TYPES.iter().enumerate() {
            let named = ValueType::named(name).unwrap();
            assert_eq!((usize::from(named.number()), named.name()), (number, *name));
            assert_eq!(ValueType::numbered(named.number()), Some(named));
        }
        assert_eq!(ValueType::numbered(TYPES.len() as u8), None);
        assert!(ValueType::named("text").unwrap_err().to_string().contains("there are boolean"));
    }
}
