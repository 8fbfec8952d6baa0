//! `addV()`, `addE()` and `property()`: what they write is known, or stands in slots.

use mangrove_graph::Result;

use super::order::Chain;
use super::{Lowering, Slots};
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
        let mut slots = Slots::default();
        let operator = Op::AddVertex {
            label: self.argument(label, &mut slots)?,
            id: id.map(|i| self.argument(i, &mut slots)).transpose()?,
            properties: properties.iter().map(|p| self.property(p, &mut slots)).collect::<Result<_>>()?,
        };
        slots.emit(chain);
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
        let mut slots = Slots::default();
        let label = self.argument(label, &mut slots)?;
        let [from, to] = ends;
        let from = from.map(|end| self.endpoint(end, &mut slots)).transpose()?;
        let to = to.map(|end| self.endpoint(end, &mut slots)).transpose()?;
        let id = id.map(|i| self.argument(i, &mut slots)).transpose()?;
        let properties = properties.iter().map(|p| self.property(p, &mut slots)).collect::<Result<_>>()?;
        slots.emit(chain);
        chain.push(Op::AddEdge { label, from, to, id, properties });
        Ok(())
    }

    fn endpoint(&self, end: &Endpoint, slots: &mut Slots) -> Result<SlotOperand> {
        Ok(match end {
            Endpoint::Id(id) => SlotOperand::Operand(id.clone()),
            Endpoint::Label(name) => slots.add(Some(name.clone()), SlotBy::Identity),
            Endpoint::Traversal(t) => slots.add(None, SlotBy::First(self.child(t)?)),
        })
    }

    pub(super) fn argument(&self, argument: &Argument, slots: &mut Slots) -> Result<SlotOperand> {
        Ok(match argument {
            Argument::Operand(operand) => SlotOperand::Operand(operand.clone()),
            Argument::Traversal(t) => slots.add(None, SlotBy::First(self.child(t)?)),
        })
    }

    pub(super) fn property(&self, property: &PropertyArgument, slots: &mut Slots) -> Result<PropertyWrite> {
        let key_slot = match &property.key_from {
            None => None,
            Some(traversal) => match slots.add(None, SlotBy::First(self.child(traversal)?)) {
                SlotOperand::Slot(slot) => Some(slot),
                SlotOperand::Operand(_) => None,
            },
        };
        let meta = property.meta.iter().map(|(key, value)| Ok((key.clone(), self.argument(value, slots)?)));
        Ok(PropertyWrite {
            cardinality: property.cardinality,
            key: property.key.clone(),
            key_slot,
            meta: meta.collect::<Result<_>>()?,
            value: self.argument(&property.value, slots)?,
        })
    }
}
