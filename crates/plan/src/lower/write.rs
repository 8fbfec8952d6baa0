//! `addV()`, `addE()` and `property()`. The values that they write are known, or are in computed columns.

use mangrove_graph::Result;

use super::order::Chain;
use super::{ComputedColumns, Lowering};
use crate::logical::{Argument, Endpoint, PropertyArgument};
use crate::physical::*;

impl Lowering<'_> {
    pub(super) fn add_vertex(
        &self,
        label: &Argument,
        properties: &[PropertyArgument],
        id: Option<&Argument>,
        chain: &mut Chain,
    ) -> Result<()> {
        let mut computed = ComputedColumns::default();
        let operator = Op::AddVertex {
            label: self.argument(label, &mut computed)?,
            id: id.map(|i| self.argument(i, &mut computed)).transpose()?,
            properties: properties.iter().map(|p| self.property(p, &mut computed)).collect::<Result<_>>()?,
        };
        computed.append_to(chain);
        chain.push(operator);
        Ok(())
    }

    pub(super) fn add_edge(
        &self,
        label: &Argument,
        ends: [Option<&Endpoint>; 2],
        properties: &[PropertyArgument],
        id: Option<&Argument>,
        chain: &mut Chain,
    ) -> Result<()> {
        let mut computed = ComputedColumns::default();
        let label = self.argument(label, &mut computed)?;
        let [from, to] = ends;
        let from = from.map(|end| self.endpoint(end, &mut computed)).transpose()?;
        let to = to.map(|end| self.endpoint(end, &mut computed)).transpose()?;
        let id = id.map(|i| self.argument(i, &mut computed)).transpose()?;
        let properties = properties.iter().map(|p| self.property(p, &mut computed)).collect::<Result<_>>()?;
        computed.append_to(chain);
        chain.push(Op::AddEdge { label, from, to, id, properties });
        Ok(())
    }

    fn endpoint(&self, end: &Endpoint, computed: &mut ComputedColumns) -> Result<ComputedOperand> {
        Ok(match end {
            Endpoint::Id(id) => ComputedOperand::Operand(id.clone()),
            Endpoint::Label(name) => computed.add(Some(name.clone()), Computation::Identity),
            Endpoint::Traversal(t) => computed.add(None, Computation::First(self.child(t)?)),
        })
    }

    pub(super) fn argument(&self, argument: &Argument, computed: &mut ComputedColumns) -> Result<ComputedOperand> {
        Ok(match argument {
            Argument::Operand(operand) => ComputedOperand::Operand(operand.clone()),
            Argument::Traversal(t) => computed.add(None, Computation::First(self.child(t)?)),
        })
    }

    pub(super) fn property(
        &self,
        property: &PropertyArgument,
        computed: &mut ComputedColumns,
    ) -> Result<PropertyWrite> {
        let computed_key = match &property.key_from {
            None => None,
            Some(traversal) => match computed.add(None, Computation::First(self.child(traversal)?)) {
                ComputedOperand::Computed(column) => Some(column),
                ComputedOperand::Operand(_) => None,
            },
        };
        let meta = property.meta.iter().map(|(key, value)| Ok((key.clone(), self.argument(value, computed)?)));
        Ok(PropertyWrite {
            cardinality: property.cardinality,
            key: property.key.clone(),
            computed_key,
            meta: meta.collect::<Result<_>>()?,
            value: self.argument(&property.value, computed)?,
        })
    }
}
