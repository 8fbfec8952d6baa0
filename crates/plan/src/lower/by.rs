//! Lowers `by()`: the [`Modulate`] operators that fill computed columns, and the operators that read them (PLAN-4).

use mangrove_graph::{Result, Token, Value};
use mangrove_gremlin::Comparison;

use super::Lowering;
use super::order::Chain;
use crate::logical::expression::Part;
use crate::logical::*;
use crate::physical::*;

impl Lowering<'_> {
    /// Appends the operator that computes the values of some `by()`s. Without any, the value is the object itself.
    pub(super) fn compute_by(&self, over: Over, by: &[By], chain: &mut Chain) -> Result<()> {
        let by = if by.is_empty() { &[By::Identity] } else { by };
        self.compute_by_all(over, by.iter(), chain)
    }

    /// As [`Lowering::compute_by`], for `by()`s that are not in a slice.
    pub(super) fn compute_by_all<'b>(
        &self,
        over: Over,
        by: impl Iterator<Item = &'b By>,
        chain: &mut Chain,
    ) -> Result<()> {
        let computed = by.map(|by| Ok((self.computation(by)?, self.is_made_productive(by))));
        let (computed, productive) = computed.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        chain.push(Op::Modulate(Modulate { over, by: computed, productive, scheduling: Scheduling::default() }));
        Ok(())
    }

    /// Returns true if `ProductiveByStrategy` gives null for a `by()` without a result: a key that is not known to have
    /// results, or a traversal that does not end in a reduction (which always has a result).
    fn is_made_productive(&self, by: &By) -> bool {
        let Some(known) = self.productive_by else { return false };
        match by {
            By::Key(key) => !known.contains(key),
            By::Traversal(traversal) => match &traversal.steps[..] {
                // As `by(key)`.
                [StepNode { step: Step::Values(keys), .. }] if keys.len() == 1 => !known.contains(&keys[0]),
                _ => !ends_in_reduction(traversal),
            },
            By::Identity | By::Token(_) | By::Column(_) => false,
        }
    }

    /// Appends the operator that computes which vertex properties a map shows. If it shows all, appends nothing and
    /// returns false.
    pub(super) fn shown_properties(&self, shown: Option<&Traversal>, chain: &mut Chain) -> Result<bool> {
        if let Some(shown) = shown {
            chain.modulate(Over::Current, vec![Computation::First(self.child(shown)?)]);
        }
        Ok(shown.is_some())
    }

    /// Appends the operators that apply a `by()` to the values of the map that the operator before them makes.
    pub(super) fn replace_map_values(&self, by: Option<&By>, chain: &mut Chain) -> Result<()> {
        if let Some(by) = by {
            chain.modulate(Over::MapValues, vec![self.computation(by)?]);
            chain.push(Op::ReplaceMapValues);
        }
        Ok(())
    }

    /// The pipeline that makes the value of a group from its members.
    pub(super) fn group_value(&self, value: Option<&By>) -> Result<Pipeline> {
        let stage = Stage::new;
        let fold = stage(Op::Reduce(Reduction::Fold));
        // A traversal makes the value of the group itself. Other values are collected in a list.
        Ok(match value {
            None | Some(By::Identity) => Pipeline { stages: vec![fold] },
            Some(By::Traversal(t)) => {
                let productive = self.productive_by.is_some() && !ends_in_reduction(t);
                self.child(&reducing((**t).clone(), productive))?
            }
            Some(By::Key(key)) => Pipeline { stages: vec![stage(Op::Values(vec![key.clone()])), fold] },
            Some(By::Token(token)) => Pipeline { stages: vec![stage(Op::Token(*token)), fold] },
            Some(By::Column(column)) => Pipeline { stages: vec![stage(Op::SelectColumn(*column)), fold] },
        })
    }

    /// The computation of one `by()`.
    pub(super) fn computation(&self, by: &By) -> Result<Computation> {
        Ok(match by {
            By::Identity => Computation::Identity,
            By::Key(key) => Computation::Key(key.clone()),
            By::Token(token) => Computation::Token(*token),
            By::Column(column) => Computation::Column(*column),
            By::Traversal(t) => self.first_of(t)?,
        })
    }

    /// The first result of a traversal. `id()` and `label()` are looked up without a scope.
    pub(super) fn first_of(&self, traversal: &Traversal) -> Result<Computation> {
        if let [StepNode { step, labels, .. }] = &traversal.steps[..]
            && labels.is_empty()
        {
            match step {
                Step::Id => return Ok(Computation::Token(Token::Id)),
                Step::Label => return Ok(Computation::Token(Token::Label)),
                Step::Identity => return Ok(Computation::Identity),
                _ => {}
            }
        }
        Ok(Computation::First(self.child(traversal)?))
    }

    /// Appends `format()`: a computed column for each variable of the template.
    pub(super) fn format(&self, parts: &[Part], by: &[By], chain: &mut Chain) -> Result<()> {
        let mut next = by.iter().cycle();
        let (mut names, mut computed) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                Part::Text(_) => {}
                Part::Name(name) => {
                    names.push((Some(name.clone()), Lookup::Scope(None)));
                    computed.push(Computation::Identity);
                }
                Part::By => {
                    names.push((None, Lookup::Scope(None)));
                    computed.push(next.next().map_or(Ok(Computation::Identity), |by| self.computation(by))?);
                }
            }
        }
        if !names.is_empty() {
            chain.modulate(Over::Names(names), computed);
        }
        chain.push(Op::Format(parts.to_vec()));
        Ok(())
    }
}

/// Returns true if the last step of a traversal is a reduction.
fn ends_in_reduction(traversal: &Traversal) -> bool {
    traversal.steps.last().is_some_and(|node| reduces(&node.step))
}

/// Returns true if the step makes one result of its whole input.
fn reduces(step: &Step) -> bool {
    matches!(
        step,
        Step::Reduce(_)
            | Step::FoldInto(..)
            | Step::Group { side_effect: None, .. }
            | Step::GroupCount { side_effect: None, .. }
            | Step::Tree { side_effect: None, .. }
    )
}

/// The traversal that makes the value of a group, from the traversal of its `by()`. If that takes all members together,
/// it is used as it is. If it takes each member by itself, the value is the first result of the last member that has a
/// result other than null, and null if there are only nulls. `productive`: a member without a result gives null.
fn reducing(traversal: Traversal, productive: bool) -> Traversal {
    if !productive && traversal.steps.iter().any(|node| takes_all_together(&node.step)) {
        return traversal;
    }
    let chain =
        |steps: Vec<Step>| Traversal { steps: steps.into_iter().map(|step| StepNode::new(step, None)).collect() };
    let null = || Operand::Literal(Value::Null);
    let of_member = match productive {
        true => chain(vec![Step::Coalesce(vec![traversal, chain(vec![Step::Constant(null())])])]),
        false => traversal,
    };
    let last = || Step::Tail(Operand::Literal(Value::I64(1)));
    let not_null = Step::Is(Test::Compare(Comparison::Neq, null()));
    chain(vec![
        Step::Map { traversal: of_member, first: true },
        Step::Reduce(Reduction::Fold),
        Step::Coalesce(vec![chain(vec![Step::Unfold, not_null, last()]), chain(vec![Step::Unfold, last()])]),
    ])
}

/// Returns true if the step takes all members of a group together, as a barrier does.
fn takes_all_together(step: &Step) -> bool {
    reduces(step)
        || matches!(
            step,
            Step::Order(_) | Step::Dedup { .. } | Step::Range { .. } | Step::Tail(_) | Step::Sample(..) | Step::Cap(_)
        )
}

/// The computed columns that the arguments of an operator need, numbered in the order in which they are added (PLAN-4).
#[derive(Default)]
pub(super) struct ComputedColumns {
    names: Vec<(Option<Name>, Lookup)>,
    by: Vec<Computation>,
}

impl ComputedColumns {
    /// Adds a column: the result of `by` for the object under a name, or for the current object.
    pub(super) fn add(&mut self, name: Option<Name>, by: Computation) -> ComputedOperand {
        self.names.push((name, Lookup::Scope(None)));
        self.by.push(by);
        ComputedOperand::Computed(self.by.len() - 1)
    }

    /// Appends the operator that fills the columns. It must come directly before the operator that reads them.
    pub(super) fn append_to(self, chain: &mut Chain) {
        if !self.by.is_empty() {
            chain.modulate(Over::Names(self.names), self.by);
        }
    }
}
