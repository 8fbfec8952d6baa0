//! The schema rules as bytes: `next number | count | rules`; a rule is `number | tag | content`:
//!
//! | tag | rule | content |
//! |---|---|---|
//! | 1, 2 | required of vertices, of edges | label, key |
//! | 3, 4 | typed, of vertices, of edges | label, key, type (a byte) |
//! | 5 | ends of edges | label, count, pairs of labels |
//!
//! When a rule changes, the log gets all rules. A checkpoint has the rules in force.

use mangrove_graph::{Catalog, ElementKind, KeyId, LabelId};
use mangrove_store::schema::{Rule, RuleId, ValueType};

use super::{Malformed, Reader, put_varint};

// The tags for rules of vertices. The tag for edges is one more.
const REQUIRED: u8 = 1;
const TYPED: u8 = 3;
/// The tag of a rule that only edges can have.
const ENDS: u8 = 5;

/// The rules of a schema, and the number of the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedRules {
    /// The rules with their numbers.
    pub list: Vec<(RuleId, Rule)>,
    /// The number of the next rule.
    pub next: u32,
}

impl SavedRules {
    /// Returns true if a catalog has all names that the rules use.
    pub fn are_possible(&self, catalog: &Catalog) -> bool {
        let has_label = |label: LabelId| (label.0 as usize) < catalog.label_count();
        self.list.iter().all(|(_, rule)| {
            let of_ends = match rule {
                Rule::Ends { pairs, .. } => pairs.iter().all(|(from, to)| has_label(*from) && has_label(*to)),
                _ => true,
            };
            has_label(rule.subject().1)
                && rule.key().is_none_or(|key| (key.0 as usize) < catalog.key_count())
                && of_ends
        })
    }
}

/// The error text for rules that are not [`SavedRules::are_possible`].
pub const IMPOSSIBLE_RULE: &str = "a schema rule with names that the catalog does not have";

/// Appends the rules.
pub fn put_rules(rules: &SavedRules, out: &mut Vec<u8>) {
    put_varint(u64::from(rules.next), out);
    put_varint(rules.list.len() as u64, out);
    for (id, rule) in &rules.list {
        put_varint(u64::from(id.0), out);
        put_rule(rule, out);
    }
}

fn put_rule(rule: &Rule, out: &mut Vec<u8>) {
    let (kind, label) = rule.subject();
    let of_edges = u8::from(kind == ElementKind::Edge);
    out.push(match rule {
        Rule::Required { .. } => REQUIRED + of_edges,
        Rule::Typed { .. } => TYPED + of_edges,
        Rule::Ends { .. } => ENDS,
    });
    put_varint(u64::from(label.0), out);
    rule.key().iter().for_each(|key| put_varint(u64::from(key.0), out));
    match rule {
        Rule::Required { .. } => {}
        Rule::Typed { value_type, .. } => out.push(value_type.number()),
        Rule::Ends { pairs, .. } => {
            put_varint(pairs.len() as u64, out);
            pairs.iter().flat_map(|(from, to)| [from, to]).for_each(|label| put_varint(u64::from(label.0), out));
        }
    }
}

/// Reads the bytes of [`put_rules`]. Refuses a rule of an unknown kind: the graph must not be opened without a rule
/// that it has.
pub fn read_rules(reader: &mut Reader<'_>) -> Result<SavedRules, Malformed> {
    let next = reader.varint_u32()?;
    let count = reader.count()?;
    let mut list = Vec::new();
    for _ in 0..count {
        list.push((RuleId(reader.varint_u32()?), read_rule(reader)?));
    }
    Ok(SavedRules { list, next })
}

fn read_rule(reader: &mut Reader<'_>) -> Result<Rule, Malformed> {
    let unknown = reader.malformed("a schema rule of an unknown kind");
    let tag = reader.byte()?;
    let label = LabelId(reader.varint_u32()?);
    let kind = |tag: u8| if tag % 2 == 1 { ElementKind::Vertex } else { ElementKind::Edge };
    Ok(match tag {
        REQUIRED | 2 => Rule::Required { kind: kind(tag), label, key: KeyId(reader.varint_u32()?) },
        TYPED | 4 => {
            let key = KeyId(reader.varint_u32()?);
            let value_type = ValueType::numbered(reader.byte()?).ok_or(unknown)?;
            Rule::Typed { kind: kind(tag), label, key, value_type }
        }
        ENDS => {
            let count = reader.count()?;
            let mut pairs = Vec::new();
            for _ in 0..count {
                pairs.push((LabelId(reader.varint_u32()?), LabelId(reader.varint_u32()?)));
            }
            Rule::Ends { label, pairs }
        }
        _ => return Err(unknown),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_back_and_unknown_kinds_are_refused() {
        let (label, key) = (LabelId(300), KeyId(7));
        let value_type = ValueType::named("string").unwrap();
        let rules = [
            Rule::Required { kind: ElementKind::Vertex, label, key },
            Rule::Required { kind: ElementKind::Edge, label, key },
            Rule::Typed { kind: ElementKind::Vertex, label, key, value_type },
            Rule::Typed { kind: ElementKind::Edge, label, key, value_type },
            Rule::Ends { label, pairs: vec![(label, LabelId(1)), (LabelId(2), label)] },
        ];
        let list = rules.into_iter().enumerate().map(|(id, rule)| (RuleId(id as u32 + 1), rule)).collect();
        let rules = SavedRules { list, next: 9 };
        let mut bytes = Vec::new();
        put_rules(&rules, &mut bytes);
        let mut reader = Reader::new(&bytes);
        assert_eq!(read_rules(&mut reader), Ok(rules));
        assert!(reader.is_at_end());
        for end in 0..bytes.len() {
            assert!(read_rules(&mut Reader::new(&bytes[..end])).is_err());
        }
        bytes[3] = 6;
        let error = read_rules(&mut Reader::new(&bytes)).unwrap_err();
        assert_eq!(error, Malformed { at: 3, what: "a schema rule of an unknown kind" });
    }
}
