//! Compares two answers.
//!
//! Numbers are compared by value, because a division gives a float where LDBC's files print an integer. Floats need only
//! agree in twelve digits, because sums of floats depend on their order. Objects are compared field by field, and lists in
//! order, unless [`Comparison`] says that the source leaves the order open.

use std::collections::BTreeSet;

use serde_json::Value as Json;

/// The order of rows, as far as the source of a query specifies it.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// All rows, in this order.
    Ordered,
    /// All rows, in any order.
    AnyOrder,
    /// All rows in the order of this field; ties in any order.
    OrderedBy(String),
    /// This many of the rows, all different, in any order: the query has a limit and no order.
    Some(usize),
}

/// Returns the first difference between an answer and the expected rows, or `None`. Fields named in `unordered` hold
/// lists without an order.
pub fn difference(answer: &[Json], expected: &[Json], comparison: &Comparison, unordered: &[String]) -> Option<String> {
    let answer: Vec<Json> = answer.iter().map(|row| canonical(row, unordered)).collect();
    let expected: Vec<Json> = expected.iter().map(|row| canonical(row, unordered)).collect();
    match comparison {
        Comparison::Ordered => first_difference(&answer, &expected),
        Comparison::AnyOrder => first_difference(&sorted(answer), &sorted(expected)),
        Comparison::OrderedBy(field) => {
            let keys = |rows: &[Json]| rows.iter().map(|row| row[field].clone()).collect::<Vec<_>>();
            first_difference(&keys(&answer), &keys(&expected))
                .or_else(|| first_difference(&sorted(answer), &sorted(expected)))
        }
        Comparison::Some(limit) => not_some_of(&answer, &expected, *limit),
    }
}

fn first_difference(answer: &[Json], expected: &[Json]) -> Option<String> {
    let at = (0..answer.len().max(expected.len())).find(|at| answer.get(*at) != expected.get(*at))?;
    let row = |rows: &[Json]| rows.get(at).map_or("nothing".to_owned(), Json::to_string);
    let (sizes, got, wanted) = ((answer.len(), expected.len()), row(answer), row(expected));
    Some(format!(
        "{} rows where {} are right; the first that differs is row {at}: {got} instead of {wanted}",
        sizes.0, sizes.1
    ))
}

/// The reason why an answer is not a choice of `limit` different rows among the expected ones, or `None`.
fn not_some_of(answer: &[Json], expected: &[Json], limit: usize) -> Option<String> {
    let texts = |rows: &[Json]| rows.iter().map(Json::to_string).collect::<BTreeSet<_>>();
    let (distinct, possible) = (texts(answer), texts(expected));
    let wanted = possible.len().min(limit);
    if answer.len() != wanted || distinct.len() != wanted {
        return Some(format!("{} rows, {} of them different, where {wanted} are right", answer.len(), distinct.len()));
    }
    distinct.difference(&possible).next().map(|row| format!("{row} is no answer"))
}

/// The rows in the order of their texts, so that their own order does not count.
fn sorted(mut rows: Vec<Json>) -> Vec<Json> {
    rows.sort_by_cached_key(Json::to_string);
    rows
}

/// The value in normal form: floats of twelve digits, whole ones as integers, lists without an order sorted.
fn canonical(json: &Json, unordered: &[String]) -> Json {
    match json {
        Json::Number(number) if number.as_i64().is_none() => rounded(number.as_f64()).unwrap_or_else(|| json.clone()),
        Json::Array(values) => values.iter().map(|value| canonical(value, unordered)).collect(),
        Json::Object(entries) => entries
            .iter()
            .map(|(key, value)| {
                let value = canonical(value, unordered);
                let value = match value {
                    Json::Array(values) if unordered.contains(key) => Json::Array(sorted(values)),
                    value => value,
                };
                (key.clone(), value)
            })
            .collect(),
        other => other.clone(),
    }
}

/// A float of at most twelve digits; as an integer, if it is whole.
#[expect(clippy::cast_possible_truncation, reason = "only floats without a fraction that an i64 holds come through")]
fn rounded(number: Option<f64>) -> Option<Json> {
    let is_whole = |float: f64| float.fract() == 0.0 && float.abs() < 9e15;
    let float = number?;
    let float = if is_whole(float) { float } else { format!("{float:.11e}").parse().ok()? };
    Some(if is_whole(float) { (float as i64).into() } else { float.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(answer: &Json, expected: &Json, comparison: &Comparison, same: bool) {
        let rows = |json: &Json| json.as_array().unwrap().clone();
        let difference = difference(&rows(answer), &rows(expected), comparison, &["set".to_owned()]);
        assert_eq!(difference.is_none(), same, "{answer} {expected} {difference:?}");
    }

    #[test]
    fn order_counts_where_it_is_promised() {
        check(&json!([1, 2]), &json!([2, 1]), &Comparison::Ordered, false);
        check(&json!([1, 2]), &json!([2, 1]), &Comparison::AnyOrder, true);
        check(&json!([1, 2]), &json!([2, 1, 1]), &Comparison::AnyOrder, false);
        check(&json!([{"set": [1, 2]}]), &json!([{"set": [2, 1]}]), &Comparison::Ordered, true);
        check(&json!([{"list": [1, 2]}]), &json!([{"list": [2, 1]}]), &Comparison::Ordered, false);
    }

    #[test]
    fn ties_may_come_in_any_order_and_others_not() {
        let rows = json!([{"w": 2, "p": 1}, {"w": 1, "p": 2}, {"w": 1, "p": 3}]);
        let tied = json!([{"w": 2, "p": 1}, {"w": 1, "p": 3}, {"w": 1, "p": 2}]);
        let wrong = json!([{"w": 1, "p": 2}, {"w": 2, "p": 1}, {"w": 1, "p": 3}]);
        check(&tied, &rows, &Comparison::OrderedBy("w".into()), true);
        check(&wrong, &rows, &Comparison::OrderedBy("w".into()), false);
    }

    #[test]
    fn some_rows_are_as_many_as_there_can_be_all_different_and_all_right() {
        check(&json!([1, 3]), &json!([1, 2, 3]), &Comparison::Some(2), true);
        check(&json!([1, 2, 3]), &json!([1, 2, 3]), &Comparison::Some(5), true);
        check(&json!([1]), &json!([1, 2, 3]), &Comparison::Some(2), false);
        check(&json!([1, 1]), &json!([1, 2, 3]), &Comparison::Some(2), false);
        check(&json!([1, 4]), &json!([1, 2, 3]), &Comparison::Some(2), false);
    }

    #[test]
    fn numbers_are_compared_by_value() {
        check(&json!([5.0, 0.5]), &json!([5, 0.5]), &Comparison::Ordered, true);
        check(&json!([5.5]), &json!([5]), &Comparison::Ordered, false);
        check(&json!([0.1 + 0.2]), &json!([0.3]), &Comparison::Ordered, true);
        check(&json!([3.0 - 4e-16]), &json!([3]), &Comparison::Ordered, true);
        check(&json!([1_338_132_123_416.0]), &json!([1_338_132_123_417_i64]), &Comparison::Ordered, false);
        check(&json!([0.1 + 1e-10]), &json!([0.1]), &Comparison::Ordered, false);
    }
}
