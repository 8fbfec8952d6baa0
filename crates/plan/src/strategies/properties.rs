//! Vertex properties that a strategy hides. Every step that reads vertex properties is rewritten to read only those for
//! which the criterion has a result, by way of `properties()` followed by the criterion:
//!
//! | step | becomes |
//! |---|---|
//! | `values(k)` | `properties(k)`, the criterion, `value()` |
//! | `has(k)`, `hasNot(k)`, `has(k, P)` | a test whether such a chain has a result (that passes `P`) |
//! | `by(k)` | of a vertex, the first result of such a chain; of another object, as before |
//! | `%{k}` in `format()` | a `by()` that prefers such a property to the value of the name `k` |
//! | `valueMap()`, `propertyMap()`, `elementMap()` | the same step with a list of the properties that it shows |
//!
//! Properties of edges and meta-properties are not hidden.

use mangrove_gremlin::Column;

use super::Subset;
use crate::logical::expression::Part;
use crate::logical::function::ValueType;
use crate::logical::*;

fn node(step: Step) -> StepNode {
    StepNode::new(step, None)
}

fn chain(steps: impl IntoIterator<Item = Step>) -> Traversal {
    Traversal { steps: steps.into_iter().map(node).collect() }
}

impl Subset {
    /// Vertex properties that belong to the part; those of edges, and meta-properties, all do.
    pub(super) fn property_filter(&self) -> Option<Step> {
        let criterion = self.properties.clone()?;
        let other = Step::Is(Test::Not(Box::new(Test::TypeOf(ValueType::VertexProperty))));
        Some(Step::FilterTraversal(FilterKind::Any, vec![chain([other]), criterion]))
    }

    /// The properties of these keys that are seen.
    fn seen(&self, keys: Vec<Name>) -> impl Iterator<Item = Step> + use<> {
        std::iter::once(Step::Properties(keys)).chain(self.property_filter())
    }

    /// The values of these keys that are seen.
    pub(super) fn seen_values(&self, keys: Vec<Name>) -> impl Iterator<Item = Step> + use<> {
        self.seen(keys).chain([Step::PropertyValue])
    }

    /// The steps that a `has…()` becomes: its conditions on properties as filters after the others.
    pub(super) fn seen_conditions(&self, conditions: Vec<Condition>) -> Vec<Step> {
        let (mut others, mut filters) = (Vec::new(), Vec::new());
        for condition in conditions {
            filters.push(match condition {
                Condition::HasKey(key) => Step::FilterTraversal(FilterKind::All, vec![chain(self.seen(vec![key]))]),
                Condition::HasNot(key) => Step::FilterTraversal(FilterKind::None, vec![chain(self.seen(vec![key]))]),
                Condition::Property(key, test) => {
                    let values = chain(self.seen_values(vec![key]).chain([Step::Is(test)]));
                    Step::FilterTraversal(FilterKind::All, vec![values])
                }
                other => {
                    others.push(other);
                    continue;
                }
            });
        }
        let others = (!others.is_empty()).then_some(Step::Has(others));
        others.into_iter().chain(filters).collect()
    }

    /// Restricts the properties of vertices that a step reads by its `by()`s and its template, and that its map shows.
    pub(super) fn see_only_in_arguments(&self, step: &mut Step) {
        match step {
            Step::WherePredicate { by, .. }
            | Step::Dedup { by, .. }
            | Step::PathShape { by, .. }
            | Step::Path { by, .. }
            | Step::Tree { by, .. }
            | Step::Select { by, .. }
            | Step::SelectKey { by, .. }
            | Step::Project { by, .. }
            | Step::Math { by, .. } => by.iter_mut().for_each(|by| self.see_only_in_by(by)),
            Step::Aggregate { by, .. } | Step::FoldSack(_, by) | Step::Sample(_, by) => self.see_only_in_by(by),
            Step::GroupCount { key, .. } => self.see_only_in_by(key),
            Step::Group { key, value, .. } => {
                self.see_only_in_by(key);
                value.iter_mut().for_each(|value| self.see_only_in_members(value));
            }
            Step::Order(criteria) | Step::Local(LocalFunction::Order(criteria)) => {
                criteria.iter_mut().for_each(|criterion| self.see_only_in_by(&mut criterion.by));
            }
            Step::Format { parts, by } => self.see_only_in_template(parts, by),
            Step::ValueMap { keys, shown, .. }
            | Step::PropertyMap { keys, shown, .. }
            | Step::ElementMap { keys, shown } => {
                let fold = Step::Reduce(Reduction::Fold);
                *shown = Some(Box::new(chain(self.seen(keys.clone()).chain([fold]))));
            }
            _ => {}
        }
    }

    fn see_only_in_by(&self, by: &mut By) {
        if let By::Key(key) = by {
            *by = By::Traversal(Box::new(self.seen_of_object(key)));
        }
    }

    /// Restricts the value of a group, in which a key stands for the list of all values of the members under it.
    fn see_only_in_members(&self, value: &mut By) {
        if let By::Key(key) = value {
            let mut values = self.seen_of_object(key);
            values.steps.push(node(Step::Reduce(Reduction::Fold)));
            *value = By::Traversal(Box::new(values));
        }
    }

    /// The values under a key: of a vertex the values that belong to the part, of any other object the value that
    /// `by(key)` takes.
    fn seen_of_object(&self, key: &Name) -> Traversal {
        let own = Step::Project { names: vec![key.clone()], by: vec![By::Key(key.clone())] };
        let own = chain([own, Step::SelectColumn(Column::Values), Step::Unfold]);
        let options =
            vec![(ChooseOption::True, chain(self.seen_values(vec![key.clone()]))), (ChooseOption::False, own)];
        let on = ChooseOn::Test(Test::TypeOf(ValueType::Vertex));
        chain([Step::Choose(Box::new(Choose { on, options, every: false }))])
    }

    /// Restricts a template, in which a name is a property of the element, or else the value of a step label or side
    /// effect.
    fn see_only_in_template(&self, parts: &mut [Part], by: &mut Vec<By>) {
        let given = std::mem::take(by);
        let mut given = given.into_iter().cycle();
        for part in parts {
            match part {
                Part::Text(_) => {}
                Part::By => by.push(given.next().map_or(By::Identity, |mut one| {
                    self.see_only_in_by(&mut one);
                    one
                })),
                Part::Name(name) => {
                    by.push(By::Traversal(Box::new(self.seen_or_named(name))));
                    *part = Part::By;
                }
            }
        }
    }

    fn seen_or_named(&self, name: &Name) -> Traversal {
        let element = [ValueType::Vertex, ValueType::Edge, ValueType::VertexProperty].map(Test::TypeOf);
        let is_element = Step::Is(Test::Or(element.into()));
        let property = chain(std::iter::once(is_element).chain(self.seen_values(vec![name.clone()])));
        let named = chain([Step::Select {
            lookup: Lookup::Scope(None),
            labels: vec![name.clone()],
            by: Vec::new(),
            required: true,
        }]);
        chain([Step::Coalesce(vec![property, named])])
    }
}
