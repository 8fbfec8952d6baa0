//! The optional schema: rules that everything committed keeps to, where somebody has made some.
//!
//! A [`Rule`] is about the vertices that have a label among theirs, or about the edges of a label: a property they must
//! have, the type of its values, the labels that an edge's ends may have. A graph without rules is free.
//!
//! A rule is kept by looking at *images* of elements: what a transaction would leave when it commits
//! ([`Store::check_commit`]), rows of a bulk load, and everything there is when a rule is made. One element at a time is enough:
//! a rule speaks of one element, of labels that never change, and of values that two transactions cannot both
//! write, so two commits that keep to the rules keep to them together.
//!
//! A rule is *pending* while the data that exists is checked against it: commits are checked by it, and it is not kept on
//! disk.
//!
//! All of this is in the store because the store itself uses it: commits, rows of bulk loads and restored graphs are
//! checked against rules here, and a checkpoint reads the rules under the lock that changes of them take. So it never
//! misses a change whose log record is older than the checkpoint. Policy is elsewhere: `txn::schema` decides when a rule
//! may come into force and what waits for that, and `db::schema` says what a client can ask for. Unique values are kept
//! by indexes (`write::unique`).

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use mangrove_graph::{Catalog, ElementKind, Error, ErrorKind, KeyId, LabelId, Result, Value};
use mangrove_locks::rank;
use mangrove_reclaim::sync::Mutex;

/// The number of a rule. Numbers are not given twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RuleId(pub u32);

/// A type of values that a rule may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ValueType(u8);

/// The types by number, which is what files keep: new ones come last. The first are those of values
/// ([`Value::type_name`]), the others take several.
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
    /// The type of this name.
    pub fn named(name: &str) -> Result<Self> {
        let found = TYPES.iter().position(|known| *known == name).and_then(|at| u8::try_from(at).ok());
        found.map(ValueType).ok_or_else(|| {
            Error::invalid(format!("there is no type '{name}' of properties; there are {}", TYPES.join(", ")))
        })
    }

    /// The type of this number.
    pub fn numbered(number: u8) -> Option<Self> {
        (usize::from(number) < TYPES.len()).then_some(ValueType(number))
    }

    /// Its number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        TYPES[usize::from(self.0)]
    }

    /// Whether a value is of this type.
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

/// What everything committed keeps to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Each of these elements has the property, and it is not null.
    Required {
        /// Vertices or edges.
        kind: ElementKind,
        /// With this label.
        label: LabelId,
        /// The property.
        key: KeyId,
    },
    /// Every value of the property is of this type, where there is one.
    Typed {
        /// Vertices or edges.
        kind: ElementKind,
        /// With this label.
        label: LabelId,
        /// The property.
        key: KeyId,
        /// The type.
        value_type: ValueType,
    },
    /// Edges of a label lead from a vertex with one of these labels to one with the other.
    Ends {
        /// The edges' label.
        label: LabelId,
        /// From and to.
        pairs: Vec<(LabelId, LabelId)>,
    },
}

impl Rule {
    /// The elements it is about.
    pub fn subject(&self) -> (ElementKind, LabelId) {
        match *self {
            Rule::Required { kind, label, .. } | Rule::Typed { kind, label, .. } => (kind, label),
            Rule::Ends { label, .. } => (ElementKind::Edge, label),
        }
    }

    /// The property it is about, if it is about one.
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

/// A rule there is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleEntry {
    /// Its number.
    pub id: RuleId,
    /// What it says.
    pub rule: Rule,
    /// Whether it is not known yet that what is there keeps to it.
    pub pending: bool,
}

/// The rules at a moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    list: Vec<RuleEntry>,
}

/// What an element has, or would have.
pub struct ElementImage<'a> {
    /// Vertex or edge.
    pub kind: ElementKind,
    /// Its labels.
    pub labels: &'a [LabelId],
    /// The labels of an edge's ends, where they are looked at.
    pub ends: Option<(Vec<LabelId>, Vec<LabelId>)>,
    /// Its values by key, several of a key one after the other; `None` where it has none.
    pub values: &'a [(KeyId, Option<Value>)],
    /// Whether these are all its values. Otherwise they are those that change.
    pub is_whole: bool,
}

impl Rules {
    /// A rule by itself.
    pub fn of_one(id: RuleId, rule: Rule) -> Self {
        Rules { list: vec![RuleEntry { id, rule, pending: true }] }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &RuleEntry> {
        self.list.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether one is about elements with these labels.
    pub fn concern(&self, kind: ElementKind, labels: &[LabelId]) -> bool {
        self.about(kind, labels).next().is_some()
    }

    fn about(&self, kind: ElementKind, labels: &[LabelId]) -> impl Iterator<Item = &RuleEntry> {
        self.list.iter().filter(move |entry| {
            let (of, label) = entry.rule.subject();
            of == kind && labels.contains(&label)
        })
    }

    /// The first rule that an element does not keep to, and what is wrong with it.
    pub fn broken_by(&self, image: &ElementImage<'_>, catalog: &Catalog) -> Option<(RuleId, String)> {
        self.about(image.kind, image.labels).find_map(|entry| Some((entry.id, wrong(&entry.rule, image, catalog)?)))
    }
}

/// What is wrong with an element by a rule that is about it.
fn wrong(rule: &Rule, image: &ElementImage<'_>, catalog: &Catalog) -> Option<String> {
    let values = |key: KeyId| image.values.iter().filter(move |(k, _)| *k == key).map(|(_, value)| value);
    match rule {
        Rule::Required { key, .. } => {
            let is_there = |value: &Option<Value>| !matches!(value, None | Some(Value::Null));
            // Of a change, only a key that changes can be lost.
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

/// What the thread that changes the rules holds.
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

/// The rules that were in force at a moment. Every commit asks for them, so that is no count that all share.
pub struct RulesInForce(Guard<Arc<Rules>>);

impl RulesInForce {
    /// Whether these are the same as others, not merely equal.
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

    /// The rules that are kept on disk, and the number that the next one gets.
    pub(crate) fn lasting(&self) -> (Vec<RuleEntry>, u32) {
        let next = self.changes.lock();
        (self.rules.load().iter().filter(|entry| !entry.pending).cloned().collect(), next.next_id)
    }

    /// Adds a rule that commits are checked by from now on, pending. Fails where there is the same one.
    pub(crate) fn add(&self, rule: Rule, catalog: &Catalog) -> Result<RuleId> {
        let mut next = self.changes.lock();
        let mut rules = Rules::clone(&self.rules.load());
        let rival = |entry: &&RuleEntry| {
            let other = &entry.rule;
            // One says all there is to say about a label's ends, or about the type of a property.
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

    /// Has a rule last, when `first` has made the rules that are then there durable; takes it away where that fails.
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

    /// Takes a rule away, when `first` has made the rules that are left durable.
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

    /// Puts back rules that there were before, in a store that nobody else has yet.
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
