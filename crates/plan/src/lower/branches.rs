//! Loops, choices and tests: steps whose nested traversals decide where a row goes.

use mangrove_graph::Result;

use super::Lowering;
use super::once::FollowingSteps;
use super::order::Chain;
use crate::limits::collections_made;
use crate::logical::{Choose, ChooseOn, Emit, FilterKind, LoopSearch, Repeat, Step, StepNode, Traversal, Until};
use crate::physical::{Computation, LocalKind, LocalScope, LoopTest, Op, Over, RepeatScope, Scheduling};

impl Lowering<'_> {
    /// A loop, with the steps after it in its chain.
    pub(super) fn repeat(&self, repeat: &Repeat, following: &FollowingSteps<'_>, chain: &mut Chain) -> Result<()> {
        self.loops.borrow_mut().push(repeat.name.clone());
        let scope = RepeatScope {
            body: self.child(&repeat.body)?,
            until: repeat.until.as_ref().map(|u| self.until(u)).transpose()?,
            until_first: repeat.until_first,
            emit: repeat.emit.as_ref().map(|e| self.emit(e)).transpose()?,
            emit_first: repeat.emit_first,
            once: matches!(repeat.search, LoopSearch::Search(_)) || self.visits_once(repeat, following),
            search: repeat.search,
            scheduling: Scheduling::default(),
            collections_made: collections_made(&repeat.body),
        };
        self.loops.borrow_mut().pop();
        chain.push(Op::Repeat(Box::new(scope)));
        Ok(())
    }

    fn until(&self, until: &Until) -> Result<LoopTest> {
        Ok(match until {
            Until::Times(n) => LoopTest::Times(n.clone()),
            Until::Test(test) => LoopTest::Test(test.clone()),
            Until::Traversal(t) => LoopTest::Exists(self.for_existence(t)?),
        })
    }

    fn emit(&self, emit: &Emit) -> Result<LoopTest> {
        Ok(match emit {
            Emit::Always => LoopTest::Always,
            Emit::Test(test) => LoopTest::Test(test.clone()),
            Emit::Traversal(t) => LoopTest::Exists(self.for_existence(t)?),
        })
    }

    pub(super) fn choose(&self, choose: &Choose, chain: &mut Chain) -> Result<()> {
        let computation = match &choose.on {
            ChooseOn::Test(test) => Computation::Test(test.clone()),
            ChooseOn::Exists(t) => Computation::Exists(self.for_existence(t)?),
            ChooseOn::Value(t) => self.first_of(t)?,
        };
        chain.modulate(Over::Current, vec![computation]);
        let options = choose.options.iter().map(|(when, t)| Ok((when.clone(), self.child(t)?)));
        chain.push(Op::Switch { options: options.collect::<Result<_>>()?, every: choose.every });
        Ok(())
    }

    /// A filter by traversals. `is_kept`: the step keeps its scope, because it has a policy.
    pub(super) fn filter(
        &self,
        kind: FilterKind,
        traversals: &[Traversal],
        is_kept: bool,
        chain: &mut Chain,
    ) -> Result<()> {
        match (kind, traversals) {
            // An operator for each traversal: a row that fails the first does not come to the others.
            (FilterKind::All, traversals) => traversals.iter().try_for_each(|t| self.test(kind, t, is_kept, chain)),
            (FilterKind::None, [only]) => self.test(kind, only, is_kept, chain),
            (FilterKind::Any | FilterKind::None, traversals) => self.test_all(kind, traversals, chain),
        }
    }

    /// Appends a scope that tests rows by traversals.
    fn test_all(&self, kind: FilterKind, traversals: &[Traversal], chain: &mut Chain) -> Result<()> {
        let by_object = self.is_by_object(chain, traversals);
        let pipelines = traversals.iter().map(|t| self.for_existence(t)).collect::<Result<_>>()?;
        let scope = self.scope(LocalKind::Filter(kind, pipelines), traversals, chain);
        chain.push(Op::Local(LocalScope { by_object, ..scope }));
        Ok(())
    }

    /// Keeps rows for which a traversal has a result ([`FilterKind::All`]), or has none ([`FilterKind::None`]).
    fn test(&self, kind: FilterKind, traversal: &Traversal, is_kept: bool, chain: &mut Chain) -> Result<()> {
        // A test for one hop needs no scope: it is a semi-join over degrees.
        if let [StepNode { step: Step::Expand { direction, labels, .. }, labels: marks, .. }] = &traversal.steps[..]
            && marks.is_empty()
            && !is_kept
        {
            let negate = kind == FilterKind::None;
            chain.push(Op::HasEdges { direction: *direction, labels: labels.clone(), negate });
            return Ok(());
        }
        self.test_all(kind, std::slice::from_ref(traversal), chain)
    }
}
