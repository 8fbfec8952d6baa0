//! The answer to `profile()`: what each operator of a run did.
//!
//! The type is TinkerPop's, so its drivers know it. Its keys are names of counts and annotations: some of them are
//! TinkerPop's, and providers add their own.

use smol_str::SmolStr;

use super::Value;

/// What a run of a traversal did, and for how long. It is a result for clients: no traversal carries it, and no property
/// can hold it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraversalMetrics {
    /// Nanoseconds from the begin of the run to its end.
    pub nanos: u64,
    /// The outermost operators, in the order of the stream.
    pub operators: Vec<OperatorMetrics>,
}

/// What one operator of a run did. TinkerPop's name for the type is `Metrics`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperatorMetrics {
    /// Names the operator within the run.
    pub id: SmolStr,
    /// Describes the operator to people.
    pub name: SmolStr,
    /// Nanoseconds in the operator and in the operators nested in it, added up over all threads.
    pub nanos: u64,
    /// Counts by their names.
    pub counts: Vec<(SmolStr, u64)>,
    /// Further figures by their names.
    pub annotations: Vec<(SmolStr, Value)>,
    /// The operators of the traversals that are arguments of this operator, in the order of the stream.
    pub nested: Vec<OperatorMetrics>,
}

impl TraversalMetrics {
    /// The metrics as maps, for clients that do not know the type. Durations are in milliseconds.
    pub fn to_map(&self) -> Value {
        entries([("dur", millis(self.nanos)), ("metrics", maps(&self.operators))])
    }

    /// The operators on all levels, each before those that are nested in it, with the number of operators around it.
    pub fn flat(&self) -> Vec<(usize, &OperatorMetrics)> {
        let mut flat = Vec::new();
        add_all(&self.operators, 0, &mut flat);
        flat
    }
}

fn add_all<'m>(operators: &'m [OperatorMetrics], depth: usize, flat: &mut Vec<(usize, &'m OperatorMetrics)>) {
    for operator in operators {
        flat.push((depth, operator));
        add_all(&operator.nested, depth + 1, flat);
    }
}

fn maps(operators: &[OperatorMetrics]) -> Value {
    Value::list(operators.iter().map(OperatorMetrics::to_map).collect())
}

fn millis(nanos: u64) -> Value {
    Value::F64(nanos as f64 / 1e6)
}

fn entries<const N: usize>(entries: [(&'static str, Value); N]) -> Value {
    Value::map(entries.into_iter().map(|(key, value)| (Value::from(key), value)).collect())
}

impl OperatorMetrics {
    fn to_map(&self) -> Value {
        let count = |(name, count): &(SmolStr, u64)| {
            (Value::String(name.clone()), Value::I64(i64::try_from(*count).unwrap_or(i64::MAX)))
        };
        let annotation = |(name, value): &(SmolStr, Value)| (Value::String(name.clone()), value.clone());
        entries([
            ("id", Value::String(self.id.clone())),
            ("name", Value::String(self.name.clone())),
            ("dur", millis(self.nanos)),
            ("counts", Value::map(self.counts.iter().map(count).collect())),
            ("annotations", Value::map(self.annotations.iter().map(annotation).collect())),
            ("metrics", maps(&self.nested)),
        ])
    }

    /// The count of traversers that the operator sent, a bulk of equal ones as one.
    pub const TRAVERSER_COUNT: &str = "traverserCount";
    /// The count of traversers that the operator sent, each of a bulk by itself.
    pub const ELEMENT_COUNT: &str = "elementCount";
    /// The annotation with the share of the operator in the time of all operators, in percent.
    pub const PERCENT_DURATION: &str = "percentDur";

    /// The annotation with the number of messages that the operator received; only of this database.
    pub const MESSAGES: &str = "messages";
    /// The annotation with the number of rows in these messages; only of this database.
    pub const ROWS_IN: &str = "rowsIn";

    /// The annotation with the number of rows that the planner expected the operator to send; only of this database, and
    /// only of operators for which statistics tell.
    pub const EXPECTED_ROWS: &str = "expectedRows";

    /// The annotation with Grasper's flow type of the operator; only of this database.
    pub const FLOW: &str = "flow";

    /// The count of this name.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.counts.iter().find(|(known, _)| known == name).map(|(_, count)| *count)
    }

    /// The annotation of this name.
    pub fn annotation(&self, name: &str) -> Option<&Value> {
        self.annotations.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Nanoseconds in the operator itself, without those that are nested in it.
    pub fn own_nanos(&self) -> u64 {
        self.nested.iter().fold(self.nanos, |rest, nested| rest.saturating_sub(nested.nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_operators_are_part_of_their_operator() {
        let leaf = |id: &str, nanos| OperatorMetrics { id: id.into(), nanos, ..OperatorMetrics::default() };
        let around = OperatorMetrics { nested: vec![leaf("1", 20), leaf("2", 30)], ..leaf("0", 60) };
        assert_eq!(around.own_nanos(), 10);
        // Another server may have measured otherwise.
        assert_eq!(OperatorMetrics { nanos: 7, ..around.clone() }.own_nanos(), 0);
        let metrics = TraversalMetrics { nanos: 100, operators: vec![around, leaf("3", 1)] };
        let Value::Map(map) = metrics.to_map() else { panic!("no map") };
        let of = |name: &str| map.iter().find(|(key, _)| *key == Value::from(name)).map(|(_, value)| value);
        assert_eq!(of("dur"), Some(&Value::F64(0.0001)));
        let Some(Value::List(operators)) = of("metrics") else { panic!("{map:?}") };
        assert_eq!(operators.len(), 2);
        let flat: Vec<(usize, &str)> =
            metrics.flat().into_iter().map(|(depth, one)| (depth, one.id.as_str())).collect();
        assert_eq!(flat, [(0, "0"), (1, "1"), (1, "2"), (0, "3")]);
    }
}
