//! Batches of an upsert as argument values of a service, for a sink in another process.
//!
//! Internal ids cannot travel: between two batches the vertex may be deleted and its slot reused. So vertices are named
//! by their user ids. The two sides agree on the [`names`] below and on nothing else. So the receiver checks
//! everything: that lists have one length, and that ids are ids.

use std::ops::Range;

use super::batches::{Cardinality, MultiPropertyRow, PropertyColumn, ValueWithMeta, VertexBatch};
use super::identity::{EdgeIdentity, ElementKey, VertexIdentity};
use mangrove_graph::{Error, Result, UserId, Value};
use smol_str::SmolStr;

/// The names of the arguments, and of the parts of rows.
pub mod names {
    /// The label, or a set of labels written `a::b`.
    pub const LABEL: &str = "label";
    /// A list of ids, one a row. If it is absent, the store chooses the ids.
    pub const IDS: &str = "ids";
    /// A map from property keys to lists of values, one a row. Null means that the row does not have the property.
    pub const COLUMNS: &str = "columns";
    /// A list of properties with several values: row, key, `list` or `set`, and a list of values each with a map of
    /// meta-properties.
    pub const MULTI: &str = "multi";
    /// The number of rows.
    pub const COUNT: &str = "count";
    /// The properties by which rows are found. If it is absent, vertices are found by id and edges by id or by their
    /// ends.
    pub const KEY: &str = "key";
    /// The label whose vertices have this key.
    pub const KEY_LABEL: &str = "key_label";
    /// The ids of the vertices that edges come from, one a row.
    pub const SOURCES: &str = "sources";
    /// The ids of the vertices that edges go to, one a row.
    pub const TARGETS: &str = "targets";
    /// The ids of edges that earlier rows of the load were matched with. No row of this batch is matched with them.
    pub const MET: &str = "met";
    /// The id of the vertex to find, or its value of the key.
    pub const ID: &str = "id";
}

/// Arguments of a service, each with its name.
pub type RowArguments = Vec<(&'static str, Value)>;

/// Vertices of one label, and how they are recognized.
#[derive(Clone, Debug, PartialEq)]
pub struct VertexRows {
    /// The label.
    pub label: String,
    /// The rows.
    pub batch: VertexBatch,
    /// How they are recognized.
    pub identity: VertexIdentity,
}

/// Edges of one label, between vertices that are named by their ids.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeRows {
    /// The label.
    pub label: String,
    /// Source and target of each edge.
    pub ends: Vec<(UserId, UserId)>,
    /// The ids of the edges; `None`: the store chooses.
    pub ids: Option<Vec<UserId>>,
    /// Properties.
    pub columns: Vec<PropertyColumn>,
    /// How they are recognized.
    pub identity: EdgeIdentity,
    /// Edges that earlier rows of the load were matched with.
    pub met: Vec<UserId>,
}

impl VertexRows {
    /// The arguments that carry it.
    pub fn to_arguments(&self) -> RowArguments {
        let VertexRows { label, batch, identity } = self;
        let mut arguments = vec![(names::LABEL, Value::from(label.as_str())), (names::COUNT, count_of(batch.len))];
        arguments.extend(batch.ids.as_ref().map(|ids| (names::IDS, ids_to_value(ids))));
        arguments.push((names::COLUMNS, columns_to_value(&batch.columns)));
        if !batch.multi.is_empty() {
            arguments.push((names::MULTI, Value::list(batch.multi.iter().map(multi_to_value).collect())));
        }
        arguments.extend(identity_to_arguments(identity));
        arguments
    }

    /// Reads the arguments that `get` finds by name. A client sent them, so everything is checked. Fails with
    /// `InvalidArgument`, which names the argument.
    pub fn from_arguments<'v>(get: impl Fn(&str) -> Option<&'v Value>) -> Result<Self> {
        let len = count(&get)?;
        let ids = get(names::IDS).map(|ids| ids_from_value(names::IDS, ids, Some(len))).transpose()?;
        let columns = columns_from_value(get(names::COLUMNS), len)?;
        let multi = match get(names::MULTI) {
            None => Vec::new(),
            Some(multi) => multi_from_value(multi, len)?,
        };
        let identity = identity_from_arguments(&get)?;
        Ok(VertexRows { label: label(&get)?, batch: VertexBatch { len, ids, columns, multi }, identity })
    }
}

impl EdgeRows {
    /// The arguments that carry it.
    pub fn to_arguments(&self) -> RowArguments {
        let end = |end: fn(&(UserId, UserId)) -> &UserId| {
            Value::list(self.ends.iter().map(|ends| end(ends).to_value()).collect())
        };
        let mut arguments = vec![
            (names::LABEL, Value::from(self.label.as_str())),
            (names::COUNT, count_of(self.ends.len())),
            (names::SOURCES, end(|ends| &ends.0)),
            (names::TARGETS, end(|ends| &ends.1)),
            (names::COLUMNS, columns_to_value(&self.columns)),
        ];
        arguments.extend(self.ids.as_ref().map(|ids| (names::IDS, ids_to_value(ids))));
        if !self.met.is_empty() {
            arguments.push((names::MET, ids_to_value(&self.met)));
        }
        if let EdgeIdentity::Key(properties) = &self.identity {
            arguments.push((names::KEY, texts_to_value(properties)));
        }
        arguments
    }

    /// Reads the arguments that `get` finds by name. A client sent them, so everything is checked. Fails with
    /// `InvalidArgument`, which names the argument.
    pub fn from_arguments<'v>(get: impl Fn(&str) -> Option<&'v Value>) -> Result<Self> {
        let len = count(&get)?;
        let of = |name: &'static str| match get(name) {
            Some(ids) => ids_from_value(name, ids, Some(len)),
            None => Err(misfit(name, "a list of ids")),
        };
        let ends = of(names::SOURCES)?.into_iter().zip(of(names::TARGETS)?).collect();
        let ids = get(names::IDS).map(|ids| ids_from_value(names::IDS, ids, Some(len))).transpose()?;
        let identity = match (get(names::KEY), &ids) {
            (Some(key), _) => EdgeIdentity::Key(texts_from_value(names::KEY, key)?),
            (None, Some(_)) => EdgeIdentity::Id,
            (None, None) => EdgeIdentity::Ends,
        };
        let met = get(names::MET).map_or(Ok(Vec::new()), |met| ids_from_value(names::MET, met, None))?;
        Ok(EdgeRows {
            label: label(&get)?,
            ends,
            ids,
            columns: columns_from_value(get(names::COLUMNS), len)?,
            identity,
            met,
        })
    }
}

/// The arguments that ask for one vertex.
pub fn find_to_arguments(identity: &VertexIdentity, id: &UserId) -> RowArguments {
    [(names::ID, id.to_value())].into_iter().chain(identity_to_arguments(identity)).collect()
}

/// The vertex that arguments ask for. A client sent them, so they are checked. Fails with `InvalidArgument`.
pub fn find_from_arguments<'v>(get: impl Fn(&str) -> Option<&'v Value>) -> Result<(VertexIdentity, UserId)> {
    let id = get(names::ID).and_then(UserId::from_value).ok_or_else(|| misfit(names::ID, "an id"))?;
    Ok((identity_from_arguments(&get)?, id))
}

/// Splits rows into ranges. A range of several rows has at most `bytes_max` bytes; a longer row is a range of its own.
pub fn split(sizes: impl IntoIterator<Item = usize>, bytes_max: usize) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0_usize;
    for (row, size) in sizes.into_iter().enumerate() {
        bytes = bytes.saturating_add(size);
        match ranges.last_mut() {
            Some(last) if bytes <= bytes_max => last.end = row + 1,
            _ => {
                bytes = size;
                ranges.push(row..row + 1);
            }
        }
    }
    ranges
}

/// The columns of a range of rows.
pub fn columns_of(columns: &[PropertyColumn], rows: &Range<usize>) -> Vec<PropertyColumn> {
    let of = |column: &PropertyColumn| PropertyColumn {
        key: column.key.clone(),
        values: column.values[rows.clone()].to_vec(),
    };
    columns.iter().map(of).collect()
}

impl VertexBatch {
    /// The batch of a range of its rows.
    pub fn rows(&self, rows: &Range<usize>) -> VertexBatch {
        let of = |multi: &MultiPropertyRow| {
            let row = multi.row as usize;
            let first = rows.start as u32;
            rows.contains(&row).then(|| MultiPropertyRow { row: multi.row - first, ..multi.clone() })
        };
        VertexBatch {
            len: rows.len(),
            ids: self.ids.as_ref().map(|ids| ids[rows.clone()].to_vec()),
            columns: columns_of(&self.columns, rows),
            multi: self.multi.iter().filter_map(of).collect(),
        }
    }

    /// About the size of each row on a connection, in bytes.
    pub fn row_sizes(&self) -> Vec<usize> {
        let mut sizes = sizes_of_rows(self.len, self.ids.as_deref(), &self.columns);
        for multi in &self.multi {
            let meta =
                |value: &ValueWithMeta| value.meta.iter().map(|(key, value)| key.len() + size_of(value)).sum::<usize>();
            let values = multi.values.iter().map(|value| size_of(&value.value) + meta(value)).sum::<usize>();
            sizes[multi.row as usize] += multi.key.len() + values;
        }
        sizes
    }
}

/// About the size of each row of ids and columns on a connection, in bytes.
pub fn sizes_of_rows(len: usize, ids: Option<&[UserId]>, columns: &[PropertyColumn]) -> Vec<usize> {
    let mut sizes = vec![16; len];
    for (size, id) in sizes.iter_mut().zip(ids.unwrap_or_default()) {
        *size += size_of(&id.to_value());
    }
    for column in columns {
        sizes.iter_mut().zip(&column.values).for_each(|(size, value)| *size += size_of(value));
    }
    sizes
}

/// About the size of a value on a connection, in bytes.
fn size_of(value: &Value) -> usize {
    match value {
        Value::String(text) => 8 + text.len(),
        Value::Bytes(bytes) => 8 + bytes.len(),
        Value::F32Array(numbers) => 8 + 8 * numbers.len(),
        Value::List(values) => 8 + values.iter().map(size_of).sum::<usize>(),
        Value::Set(values) => 8 + values.iter().map(size_of).sum::<usize>(),
        Value::Map(entries) => 8 + entries.iter().map(|(key, value)| size_of(key) + size_of(value)).sum::<usize>(),
        _ => 24,
    }
}

/// The error that an argument is not of its form.
fn misfit(name: &str, wanted: &str) -> Error {
    Error::invalid(format!("'{name}' is {wanted}"))
}

fn count_of(len: usize) -> Value {
    Value::I64(len as i64)
}

fn count<'v>(get: &impl Fn(&str) -> Option<&'v Value>) -> Result<usize> {
    let count = match get(names::COUNT) {
        Some(Value::I32(count)) => usize::try_from(*count).ok(),
        Some(Value::I64(count)) => usize::try_from(*count).ok(),
        _ => None,
    };
    // A request has no room for more rows, and a number alone must not make the receiver allocate.
    let count = count.filter(|count| *count <= ROWS_MAX);
    count.ok_or_else(|| misfit(names::COUNT, &format!("the number of rows, at most {ROWS_MAX}")))
}

/// The most rows of a batch.
const ROWS_MAX: usize = 1 << 20;

fn label<'v>(get: &impl Fn(&str) -> Option<&'v Value>) -> Result<String> {
    match get(names::LABEL) {
        Some(Value::String(label)) if !label.is_empty() => Ok(label.to_string()),
        _ => Err(misfit(names::LABEL, "a string that is not empty")),
    }
}

fn list<'v>(name: &str, value: &'v Value, len: Option<usize>) -> Result<&'v [Value]> {
    match (value, len) {
        (Value::List(values), None) => Ok(values),
        (Value::List(values), Some(len)) if values.len() == len => Ok(values),
        (Value::List(values), Some(len)) => {
            Err(Error::invalid(format!("'{name}' has {} elements for {len} rows", values.len())))
        }
        _ => Err(misfit(name, "a list")),
    }
}

fn ids_to_value(ids: &[UserId]) -> Value {
    Value::list(ids.iter().map(UserId::to_value).collect())
}

fn ids_from_value(name: &str, value: &Value, len: Option<usize>) -> Result<Vec<UserId>> {
    let id = |value: &Value| UserId::from_value(value).ok_or_else(|| misfit(name, "a list of ids"));
    list(name, value, len)?.iter().map(id).collect()
}

fn texts_to_value(texts: &[SmolStr]) -> Value {
    Value::list(texts.iter().map(|text| Value::String(text.clone())).collect())
}

fn texts_from_value(name: &str, value: &Value) -> Result<Vec<SmolStr>> {
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        _ => Err(misfit(name, "a list of strings")),
    };
    let texts = list(name, value, None)?.iter().map(text).collect::<Result<Vec<_>>>()?;
    if texts.is_empty() { Err(misfit(name, "a list of strings, at least one")) } else { Ok(texts) }
}

fn columns_to_value(columns: &[PropertyColumn]) -> Value {
    let column = |column: &PropertyColumn| (Value::String(column.key.clone()), Value::list(column.values.clone()));
    Value::map(columns.iter().map(column).collect())
}

fn columns_from_value(value: Option<&Value>, len: usize) -> Result<Vec<PropertyColumn>> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let wrong = || misfit(names::COLUMNS, "a map of property keys to lists of values");
    let Value::Map(entries) = value else { return Err(wrong()) };
    let column = |(key, values): &(Value, Value)| match key {
        Value::String(key) => Ok(PropertyColumn { key: key.clone(), values: list(key, values, Some(len))?.to_vec() }),
        _ => Err(wrong()),
    };
    entries.iter().map(column).collect()
}

fn multi_to_value(multi: &MultiPropertyRow) -> Value {
    let value = |value: &ValueWithMeta| {
        let meta = value.meta.iter().map(|(key, value)| (Value::String(key.clone()), value.clone())).collect();
        Value::list(vec![value.value.clone(), Value::map(meta)])
    };
    let cardinality = match multi.cardinality {
        Cardinality::List => "list",
        Cardinality::Set => "set",
    };
    Value::list(vec![
        Value::I64(i64::from(multi.row)),
        Value::String(multi.key.clone()),
        cardinality.into(),
        Value::list(multi.values.iter().map(value).collect()),
    ])
}

fn multi_from_value(value: &Value, len: usize) -> Result<Vec<MultiPropertyRow>> {
    let wrong = || misfit(names::MULTI, "a list of lists of a row, a key, 'list' or 'set', and values with maps");
    let one = |value: &Value| {
        let Value::List(parts) = value else { return None };
        let [row, Value::String(key), Value::String(cardinality), Value::List(values)] = parts.as_slice() else {
            return None;
        };
        let row = match row {
            Value::I64(row) => u32::try_from(*row).ok(),
            Value::I32(row) => u32::try_from(*row).ok(),
            _ => None,
        };
        let cardinality = match cardinality.as_str() {
            "list" => Cardinality::List,
            "set" => Cardinality::Set,
            _ => return None,
        };
        let values = values.iter().map(multi_value).collect::<Option<Vec<_>>>()?;
        let row = row.filter(|row| (*row as usize) < len && !values.is_empty())?;
        Some(MultiPropertyRow { row, key: key.clone(), cardinality, values })
    };
    list(names::MULTI, value, None)?.iter().map(|value| one(value).ok_or_else(wrong)).collect()
}

fn multi_value(value: &Value) -> Option<ValueWithMeta> {
    let Value::List(parts) = value else { return None };
    let [value, Value::Map(meta)] = parts.as_slice() else { return None };
    let entry = |(key, value): &(Value, Value)| match key {
        Value::String(key) => Some((key.clone(), value.clone())),
        _ => None,
    };
    Some(ValueWithMeta { value: value.clone(), meta: meta.iter().map(entry).collect::<Option<_>>()? })
}

fn identity_to_arguments(identity: &VertexIdentity) -> RowArguments {
    match identity {
        VertexIdentity::Id => Vec::new(),
        VertexIdentity::Key(ElementKey { label, properties }) => {
            vec![(names::KEY_LABEL, Value::String(label.clone())), (names::KEY, texts_to_value(properties))]
        }
    }
}

fn identity_from_arguments<'v>(get: &impl Fn(&str) -> Option<&'v Value>) -> Result<VertexIdentity> {
    let Some(key) = get(names::KEY) else { return Ok(VertexIdentity::Id) };
    let Some(Value::String(label)) = get(names::KEY_LABEL) else {
        return Err(misfit(names::KEY_LABEL, "the label whose vertices have the key"));
    };
    let properties = texts_from_value(names::KEY, key)?;
    Ok(VertexIdentity::Key(ElementKey { label: label.clone(), properties }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get<'v>(arguments: &'v RowArguments) -> impl Fn(&str) -> Option<&'v Value> {
        move |name: &str| arguments.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn vertices() -> VertexRows {
        let value = |value: &str, meta: &[(&str, i32)]| ValueWithMeta {
            value: value.into(),
            meta: meta.iter().map(|(key, value)| ((*key).into(), Value::I32(*value))).collect(),
        };
        let multi = |row, values: Vec<ValueWithMeta>| MultiPropertyRow {
            row,
            key: "mail".into(),
            cardinality: if row == 0 { Cardinality::Set } else { Cardinality::List },
            values,
        };
        VertexRows {
            label: "person::author".into(),
            batch: VertexBatch {
                len: 3,
                ids: Some(vec![UserId::int(7), UserId::String("7".into()), UserId::int(-1)]),
                columns: vec![PropertyColumn {
                    key: "age".into(),
                    values: vec![Value::I32(3), Value::Null, Value::F64(0.5)],
                }],
                multi: vec![
                    multi(0, vec![value("a", &[])]),
                    multi(2, vec![value("b", &[("since", 7)]), value("c", &[])]),
                ],
            },
            identity: VertexIdentity::Key(ElementKey { label: "person".into(), properties: vec!["age".into()] }),
        }
    }

    fn edges(identity: EdgeIdentity, ids: Option<Vec<UserId>>) -> EdgeRows {
        EdgeRows {
            label: "knows".into(),
            ends: vec![(UserId::int(1), UserId::String("b".into())); 2],
            ids,
            columns: vec![PropertyColumn { key: "w".into(), values: vec![Value::I64(1), Value::Null] }],
            identity,
            met: vec![UserId::int(65_536)],
        }
    }

    #[test]
    fn what_goes_out_comes_in_again() {
        let rows = vertices();
        assert_eq!(VertexRows::from_arguments(get(&rows.to_arguments())).unwrap(), rows);
        let ids = Some(vec![UserId::int(1), UserId::int(2)]);
        for rows in [
            edges(EdgeIdentity::Ends, None),
            edges(EdgeIdentity::Key(vec!["w".into()]), None),
            edges(EdgeIdentity::Id, ids),
        ] {
            assert_eq!(EdgeRows::from_arguments(get(&rows.to_arguments())).unwrap(), rows);
        }
        for identity in [VertexIdentity::Id, vertices().identity] {
            let arguments = find_to_arguments(&identity, &UserId::int(5));
            assert_eq!(find_from_arguments(get(&arguments)).unwrap(), (identity, UserId::int(5)));
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused_by_name() {
        let change = |name: &'static str, value: Value| {
            let mut arguments = vertices().to_arguments();
            arguments.retain(|(known, _)| *known != name);
            arguments.push((name, value));
            VertexRows::from_arguments(get(&arguments)).unwrap_err().message().to_owned()
        };
        let short = Value::list(vec![Value::I32(1)]);
        let columns = Value::map(vec![("age".into(), short.clone())]);
        let multi = |row: i64| {
            Value::list(vec![Value::list(vec![
                Value::I64(row),
                "mail".into(),
                "set".into(),
                Value::list(vec![Value::list(vec!["x".into(), Value::map(Vec::new())])]),
            ])])
        };
        for (name, value, part) in [
            (names::COUNT, Value::I64(-1), "'count'"),
            (names::COUNT, Value::I64(i64::MAX), "'count'"),
            (names::LABEL, Value::I32(1), "'label'"),
            (names::IDS, short.clone(), "'ids' has 1 elements for 3 rows"),
            (names::IDS, Value::list(vec![Value::Null; 3]), "'ids' is a list of ids"),
            (names::COLUMNS, columns, "'age' has 1 elements for 3 rows"),
            (names::MULTI, multi(3), "'multi'"),
            (names::MULTI, multi(-1), "'multi'"),
            (names::KEY, Value::list(Vec::new()), "'key'"),
            (names::KEY_LABEL, Value::Null, "'key_label'"),
        ] {
            let message = change(name, value);
            assert!(message.contains(part), "{name}: {message}");
        }
    }

    #[test]
    fn batches_are_cut_by_size_with_the_values_of_their_rows() {
        assert_eq!(split([4, 4, 4, 100, 1], 8), [0..2, 2..3, 3..4, 4..5]);
        assert_eq!(split([], 8), Vec::<Range<usize>>::new());
        let batch = vertices().batch;
        let parts = [batch.rows(&(0..1)), batch.rows(&(1..3))];
        assert_eq!(parts[0].multi.len(), 1);
        assert_eq!((parts[1].len, parts[1].multi[0].row), (2, 1));
        assert_eq!(parts[1].ids.as_deref(), Some(&batch.ids.unwrap()[1..]));
        assert_eq!(parts[1].columns[0].values, [Value::Null, Value::F64(0.5)]);
    }
}
