//! The optional schema of a running database: rules are made, dropped and listed by names while transactions continue.
//!
//! Like indexes, rules are not part of a transaction: a change counts for all clients at once. The services
//! `mangrove.schema.…` do the same. `docs/schema.md` says what rules promise and when they are checked.

use mangrove_graph::{Catalog, ElementKind, LabelId, Result};
use mangrove_store::schema::{Rule, RuleEntry, RuleId, ValueType};
use smol_str::SmolStr;

use crate::state::Database;

/// A rule to be created. It is about the vertices with a label, or about the edges with a label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuleDefinition {
    /// Every such element has the property, and its value is not null.
    Required {
        /// The kind of the elements that the rule is about.
        kind: ElementKind,
        /// Their label.
        label: SmolStr,
        /// The property.
        key: SmolStr,
    },
    /// Every value of the property is of a type.
    Typed {
        /// The kind of the elements that the rule is about.
        kind: ElementKind,
        /// Their label.
        label: SmolStr,
        /// The property.
        key: SmolStr,
        /// The name of the type: `string`, `long`, `integer` (of any width), `number` and so on. The error for an
        /// unknown name lists all names.
        value_type: SmolStr,
    },
    /// Edges join vertices with certain labels only.
    Ends {
        /// The label of the edges.
        label: SmolStr,
        /// The allowed pairs: the label of the source, and that of the target.
        pairs: Vec<(SmolStr, SmolStr)>,
    },
}

/// An existing rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleDescription {
    /// The number of the rule, which [`Database::drop_rule`] takes.
    pub id: RuleId,
    /// The rule itself.
    pub definition: RuleDefinition,
    /// The same in words.
    pub text: String,
    /// True if the rule holds for the whole graph. While it is false, the existing elements are being checked.
    pub online: bool,
}

impl Database {
    /// Creates a rule while transactions continue. From then on, no commit breaks it.
    ///
    /// # Errors
    ///
    /// If an existing element breaks the rule; the error names it. If there is already a rule about the same property
    /// or edges.
    pub fn define_rule(&self, definition: &RuleDefinition) -> Result<RuleId> {
        self.inner.manager.check_writable()?;
        self.inner.manager.create_rule(rule(definition, self.catalog())?)
    }

    /// Drops a rule. From then on, commits may break it.
    ///
    /// # Errors
    ///
    /// If there is no such rule.
    pub fn drop_rule(&self, rule: RuleId) -> Result<()> {
        self.inner.manager.drop_rule(rule)
    }

    /// All rules, also those for which existing elements are still being checked.
    pub fn rules(&self) -> Vec<RuleDescription> {
        let catalog = self.catalog();
        let described = |entry: &RuleEntry| RuleDescription {
            id: entry.id,
            definition: definition(&entry.rule, catalog),
            text: entry.rule.text(catalog),
            online: !entry.pending,
        };
        self.inner.manager.store().rules().iter().map(described).collect()
    }
}

/// Translates the names of a rule to numbers. New names get numbers.
fn rule(definition: &RuleDefinition, catalog: &Catalog) -> Result<Rule> {
    let label = |name: &SmolStr| catalog.intern_label(name);
    Ok(match definition {
        RuleDefinition::Required { kind, label: of, key } => {
            Rule::Required { kind: *kind, label: label(of), key: catalog.intern_key(key) }
        }
        RuleDefinition::Typed { kind, label: of, key, value_type } => {
            // The type is read first, so that a mistake in it interns no names.
            let value_type = ValueType::named(value_type)?;
            Rule::Typed { kind: *kind, label: label(of), key: catalog.intern_key(key), value_type }
        }
        RuleDefinition::Ends { label: of, pairs } => {
            let pairs = pairs.iter().map(|(from, to)| (label(from), label(to))).collect();
            Rule::Ends { label: label(of), pairs }
        }
    })
}

/// Translates the numbers of a rule to names.
fn definition(rule: &Rule, catalog: &Catalog) -> RuleDefinition {
    let label = |id: LabelId| catalog.label_name(id);
    match rule {
        Rule::Required { kind, label: of, key } => {
            RuleDefinition::Required { kind: *kind, label: label(*of), key: catalog.key_name(*key) }
        }
        Rule::Typed { kind, label: of, key, value_type } => RuleDefinition::Typed {
            kind: *kind,
            label: label(*of),
            key: catalog.key_name(*key),
            value_type: value_type.name().into(),
        },
        Rule::Ends { label: of, pairs } => RuleDefinition::Ends {
            label: label(*of),
            pairs: pairs.iter().map(|(from, to)| (label(*from), label(*to))).collect(),
        },
    }
}
