//! `order(local)`: sorts the members of a collection by keys in computed columns.

use std::cmp::Ordering;

use mangrove_graph::{Error, GraphView, Result, Value, pieces};
use mangrove_gremlin::Order;

use crate::context::execution::ExecutionContext;
use crate::context::random::Random;
use crate::limits::meter::Meter;
use crate::row::map::MapOperator;
use crate::rows::Rows;
use crate::values::collection::{MEMBER_BYTES, elements, size};
use crate::values::element_order::{ElementIds, ElementOrder};

/// Sorts the members of a list, set or bulk set into a list, and the entries of a map into a map. Other objects stay as
/// they are.
///
/// Computed column *i* of a row is a list with the key of each member under criterion *i*: a list of one key, or an
/// empty list if the member has none. Such a member is left out. A row with an empty computed column is dropped.
pub(crate) struct LocalOrder {
    orders: Vec<Order>,
    seed: u64,
    random: Random,
}

impl LocalOrder {
    /// Sorts by these criteria. `seed` is the seed of `shuffle` if the run has none.
    pub fn new(orders: Vec<Order>, seed: u64) -> Self {
        LocalOrder { orders, seed, random: Random::default() }
    }

    /// Returns the indexes of a row's members in order; `None` if a computed column is empty.
    fn permutation(
        &mut self,
        rows: &Rows,
        row: usize,
        size: usize,
        view: &dyn GraphView,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Vec<usize>>> {
        let mut keys: Vec<Vec<Value>> = Vec::with_capacity(self.orders.len());
        for (column, order) in self.orders.iter().enumerate() {
            if *order == Order::Shuffle {
                // One random key for each member: a comparison that drew anew each time would be no order.
                let key = |_| Value::list(vec![Value::F64(self.random.unit())]);
                keys.push((0..size).map(key).collect());
                continue;
            }
            match rows.computed_value(column, row) {
                Some(Value::List(list)) if list.len() == size => keys.push(list.to_vec()),
                Some(_) => return Err(Error::bug("order(local) has a key for each member of the collection")),
                None => return Ok(None),
            }
        }
        let one = |key: &Value| match key {
            Value::List(one) => one.first().cloned(),
            _ => None,
        };
        let mut metered = |key: &Value| meter.pass(MEMBER_BYTES).map(|()| one(key));
        let keys = keys.iter().map(|keys| keys.iter().map(&mut metered).collect()).collect::<Result<Vec<Vec<_>>>>()?;
        let mut ids = ElementIds::default();
        ids.add(keys.iter().flatten().flatten(), view, meter.control())?;
        let elements = ElementOrder::new(view, &ids);
        let compared = |a: usize, b: usize| {
            let unequal = |(order, keys): (&Order, &Vec<Option<Value>>)| {
                let (Some(x), Some(y)) = (&keys[a], &keys[b]) else { return Ordering::Equal };
                let ordering = elements.compare(x, y);
                if *order == Order::Desc { ordering.reverse() } else { ordering }
            };
            self.orders.iter().zip(&keys).map(unequal).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
        };
        let mut indexes: Vec<usize> = (0..size).filter(|&at| keys.iter().all(|keys| keys[at].is_some())).collect();
        pieces::sort(&mut indexes, ids.piece(), || meter.control().check(), |&a, &b| compared(a, b))?;
        Ok(Some(indexes))
    }
}

impl MapOperator for LocalOrder {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.random = Random::seeded(context.requirements.seed.map_or(self.seed, |seed| seed as u64));
        Ok(())
    }

    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        let object = rows.object(row);
        // Each member, with its keys and its index.
        meter.charge(size(&object).saturating_mul((3 + 3 * self.orders.len()) * MEMBER_BYTES))?;
        let members = match &object {
            Value::List(_) | Value::Set(_) | Value::BulkSet(_) => elements(&object)?.unwrap_or_default(),
            Value::Map(entries) => {
                let indexes = self.permutation(rows, row, entries.len(), &*context.view, meter)?;
                let sorted = |indexes: Vec<usize>| indexes.into_iter().map(|at| entries[at].clone()).collect();
                return Ok(indexes.map(|indexes| Value::map(sorted(indexes))));
            }
            _ => return Ok(Some(object)),
        };
        let indexes = self.permutation(rows, row, members.len(), &*context.view, meter)?;
        Ok(indexes.map(|indexes| Value::list(indexes.into_iter().map(|at| members[at].clone()).collect())))
    }
}
