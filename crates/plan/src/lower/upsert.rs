//! `mergeV()` and `mergeE()`: an operator that finds or creates elements, and a branch for elements that were found.

use mangrove_graph::Result;

use super::order::Chain;
use super::{ComputedColumns, Lowering};
use crate::logical::upsert::{MergeFrom, MergeMap, Upsert};
use crate::logical::{Argument, ChooseOption};
use crate::physical::*;

impl Lowering<'_> {
    /// The operator's computed column 0 is true if an element was found. Those rows go through a branch of their own,
    /// in which `option(onMatch, …)` is evaluated for the element found.
    pub(super) fn upsert(&self, upsert: &Upsert, chain: &mut Chain) -> Result<()> {
        let mut computed = ComputedColumns::default();
        let mut map =
            |map: &Option<MergeMap<Argument>>| map.as_ref().map(|map| self.merge_map(map, &mut computed)).transpose();
        let operator = Upsert {
            kind: upsert.kind,
            search: map(&upsert.search)?,
            on_create: map(&upsert.on_create)?,
            on_match: None,
            source: map(&upsert.source)?,
            target: map(&upsert.target)?,
            always: upsert.always.clone(),
        };
        computed.append_to(chain);
        chain.push(Op::Upsert(Box::new(operator)));
        if let Some(on_match) = &upsert.on_match {
            let mut found = Chain::new(false);
            let mut computed = ComputedColumns::default();
            let map = self.merge_map(on_match, &mut computed)?;
            computed.append_to(&mut found);
            found.push(Op::SetProperties(map));
            let pipeline = Pipeline { stages: found.stages };
            chain.push(Op::Switch { options: vec![(ChooseOption::True, pipeline)], every: false });
        }
        Ok(())
    }

    fn merge_map(&self, map: &MergeMap<Argument>, computed: &mut ComputedColumns) -> Result<MergeMap<ComputedOperand>> {
        let from = match &map.from {
            MergeFrom::Entries(entries) => MergeFrom::Entries(entries.clone()),
            MergeFrom::Whole(whole) => MergeFrom::Whole(self.argument(whole, computed)?),
        };
        Ok(MergeMap { from, cardinality: map.cardinality })
    }
}
