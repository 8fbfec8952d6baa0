//! Features: values of many vertices or edges under one key, as one row-major array.
//!
//! A value is a number, a Boolean (1 or 0), or a list of these: a float array is the compact one. All elements have values of one width. The type
//! of the array is given, or follows from the first value: integers make an array of `i64`, single floats and float arrays one of
//! `f32`, other floats one of `f64`.
//!
//! Elements are read in parts, by the threads of a team. Numbers come as plain columns of the store. Of a float array the store
//! gives a reference, and its floats are copied once, to their place in the result.

use std::ops::Range;

use mangrove_graph::{
    EdgeId, Error, GraphView, KeyId, NumberType, Numbers, Purpose, Result, Value, ValueRows, VertexId,
};

use crate::team::Team;

/// Numbers of a part, about.
const PART_NUMBERS: usize = 1 << 15;
/// Elements whose values are read together: their references stay in the cache.
const TOGETHER: usize = 256;

/// The type of an array of features.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FeatureType {
    /// Single floats.
    F32,
    /// Double floats.
    F64,
    /// Integers.
    I64,
}

/// What an array of features is made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct FeatureOptions {
    /// The type; `None`: that of the first value.
    pub kind: Option<FeatureType>,
    /// What stands for each number of an element without a value; `None`: such an element is an error.
    pub fill: Option<f64>,
    /// The numbers of an element; `None`: as many as the first value has.
    pub width: Option<usize>,
}

/// The numbers of an array.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureValues {
    /// Single floats.
    F32(Vec<f32>),
    /// Double floats.
    F64(Vec<f64>),
    /// Integers.
    I64(Vec<i64>),
}

/// An array of features: a row for each element.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// The number of elements.
    pub rows: usize,
    /// The numbers of a row.
    pub width: usize,
    /// Whether values are lists. If not, the width is 1.
    pub has_lists: bool,
    /// The numbers, row after row.
    pub values: FeatureValues,
}

/// Vertices or edges.
#[derive(Clone, Copy)]
enum Elements<'a> {
    Vertices(&'a [VertexId]),
    Edges(&'a [EdgeId]),
}

/// The features of vertices.
///
/// # Errors
///
/// If a vertex has no value and there is none to fill in, if it has several, if a value is no number or list of numbers of the
/// width, if the type cannot hold it, if the view fails, if the query of the team has ended, or if the budget of the team has no room
/// for the array. Errors name the vertex and the key.
pub fn of_vertices(
    view: &dyn GraphView,
    vertices: &[VertexId],
    key: KeyId,
    options: FeatureOptions,
    team: &Team,
) -> Result<Features> {
    Gather { view, elements: Elements::Vertices(vertices), key }.gather(options, team)
}

/// As [`of_vertices`], for edges.
///
/// # Errors
///
/// As those of [`of_vertices`].
pub fn of_edges(
    view: &dyn GraphView,
    edges: &[EdgeId],
    key: KeyId,
    options: FeatureOptions,
    team: &Team,
) -> Result<Features> {
    Gather { view, elements: Elements::Edges(edges), key }.gather(options, team)
}

/// How messages name a vertex: by the id that users know.
pub(super) fn named_vertex(view: &dyn GraphView, vertex: VertexId) -> String {
    let mut ids = Vec::new();
    match view.vertex_user_ids(&[vertex], &mut ids) {
        Ok(()) if !ids.is_empty() => id_text(&ids[0]),
        _ => format!("{vertex:?}"),
    }
}

/// An id as users write it.
pub(super) fn id_text(id: &Value) -> String {
    match id {
        Value::I64(number) => number.to_string(),
        Value::I32(number) => number.to_string(),
        Value::String(text) => format!("'{text}'"),
        other => format!("{other:?}"),
    }
}

/// A number of an array.
trait Number: Copy + Send + Sync {
    fn of_float(number: f64) -> Option<Self>;
    fn of_single(number: f32) -> Option<Self>;
    fn of_integer(number: i64) -> Self;

    /// Copies a float array. Returns false if the type cannot hold it.
    fn copy(from: &[f32], to: &mut [Self]) -> bool {
        from.iter().zip(to).all(|(from, to)| Self::of_single(*from).map(|number| *to = number).is_some())
    }
}

impl Number for f32 {
    fn of_float(number: f64) -> Option<Self> {
        Some(number as f32)
    }

    fn of_single(number: f32) -> Option<Self> {
        Some(number)
    }

    fn of_integer(number: i64) -> Self {
        number as f32
    }

    fn copy(from: &[f32], to: &mut [Self]) -> bool {
        to.copy_from_slice(from);
        true
    }
}

impl Number for f64 {
    fn of_float(number: f64) -> Option<Self> {
        Some(number)
    }

    fn of_single(number: f32) -> Option<Self> {
        Some(f64::from(number))
    }

    fn of_integer(number: i64) -> Self {
        number as f64
    }
}

impl Number for i64 {
    fn of_float(_: f64) -> Option<Self> {
        None
    }

    fn of_single(_: f32) -> Option<Self> {
        None
    }

    fn of_integer(number: i64) -> Self {
        number
    }
}

/// A value as a number of a type; `None` if it is no number that the type can hold.
fn number<T: Number>(value: &Value) -> Option<T> {
    match value {
        Value::F32(number) => T::of_single(*number),
        Value::F64(number) => T::of_float(*number),
        Value::Bool(is_so) => Some(T::of_integer(i64::from(*is_so))),
        other => match NumberType::of(other)? {
            NumberType::F32 | NumberType::F64 => None,
            _ => mangrove_graph::numeric::integer(other).map(T::of_integer),
        },
    }
}

/// The type, the width and whether it is a list, of a value; `None` if it is no feature.
fn shape(value: &Value) -> Option<(FeatureType, usize, bool)> {
    let of_number = |value: &Value| {
        if matches!(value, Value::Bool(_)) {
            return Some(FeatureType::I64);
        }
        Some(match NumberType::of(value)? {
            NumberType::F32 => FeatureType::F32,
            NumberType::F64 => FeatureType::F64,
            _ => FeatureType::I64,
        })
    };
    match value {
        Value::F32Array(numbers) => Some((FeatureType::F32, numbers.len(), true)),
        Value::List(items) => {
            let mut kind = None;
            for item in items.iter() {
                let of_item = of_number(item)?;
                kind = Some(match (kind, of_item) {
                    (None, of_item) => of_item,
                    (Some(kind), of_item) if kind == of_item => kind,
                    _ => FeatureType::F64,
                });
            }
            Some((kind.unwrap_or(FeatureType::F32), items.len(), true))
        }
        value => of_number(value).map(|kind| (kind, 1, false)),
    }
}

struct Gather<'a> {
    view: &'a dyn GraphView,
    elements: Elements<'a>,
    key: KeyId,
}

impl Gather<'_> {
    fn len(&self) -> usize {
        match self.elements {
            Elements::Vertices(vertices) => vertices.len(),
            Elements::Edges(edges) => edges.len(),
        }
    }

    fn values(&self, rows: Range<usize>, out: &mut ValueRows) -> Result<()> {
        out.clear();
        match self.elements {
            Elements::Vertices(vertices) => self.view.vertex_values(&vertices[rows], self.key, out),
            Elements::Edges(edges) => self.view.edge_values(&edges[rows], self.key, out),
        }
    }

    fn numbers(&self, rows: Range<usize>, out: &mut Numbers) -> Result<bool> {
        out.clear();
        match self.elements {
            Elements::Vertices(vertices) => self.view.vertex_numbers(&vertices[rows], self.key, out),
            Elements::Edges(edges) => self.view.edge_numbers(&edges[rows], self.key, out),
        }
    }

    /// How messages name an element and the key.
    fn named(&self, row: usize) -> String {
        let key = self.view.key_name(self.key);
        match self.elements {
            Elements::Vertices(vertices) => {
                format!("vertex {}, property '{key}'", named_vertex(self.view, vertices[row]))
            }
            Elements::Edges(edges) => {
                let mut ids = Vec::new();
                match self.view.edge_user_ids(&[edges[row]], &mut ids) {
                    Ok(()) if !ids.is_empty() => format!("edge {}, property '{key}'", id_text(&ids[0])),
                    _ => format!("edge {:?}, property '{key}'", edges[row]),
                }
            }
        }
    }

    fn gather(&self, options: FeatureOptions, team: &Team) -> Result<Features> {
        let rows = self.len();
        // The first value says what the array is.
        let (mut values, mut first, mut from) = (ValueRows::default(), None, 0);
        while first.is_none() && from < rows && (options.kind.is_none() || options.width.is_none()) {
            let to = rows.min(from + TOGETHER);
            self.values(from..to, &mut values)?;
            if let Some((row, value)) = values.row.first().zip(values.value.first()) {
                let row = from + *row as usize;
                first = Some(shape(value).ok_or_else(|| self.not_numeric(row, value))?);
            } else if options.fill.is_none() {
                return Err(self.missing(from));
            }
            from = to;
        }
        let (found, found_width, is_list) = first.unwrap_or((FeatureType::F32, 1, false));
        let (kind, width) = (options.kind.unwrap_or(found), options.width.unwrap_or(found_width));
        let has_lists = is_list || width != 1;
        let values = match kind {
            FeatureType::F32 => FeatureValues::F32(self.array(width, has_lists, options.fill, team)?),
            FeatureType::F64 => FeatureValues::F64(self.array(width, has_lists, options.fill, team)?),
            FeatureType::I64 => FeatureValues::I64(self.array(width, has_lists, options.fill, team)?),
        };
        Ok(Features { rows, width, has_lists, values })
    }

    fn missing(&self, row: usize) -> Error {
        Error::invalid(format!("{}: there is no value. Say what to fill in, or give each element one", self.named(row)))
    }

    fn not_numeric(&self, row: usize, value: &Value) -> Error {
        Error::invalid(format!(
            "{}: a value is of type {}, and features are numbers or lists of numbers",
            self.named(row),
            value.type_name()
        ))
    }

    fn array<T: Number + Default>(
        &self,
        width: usize,
        has_lists: bool,
        fill: Option<f64>,
        team: &Team,
    ) -> Result<Vec<T>> {
        let rows = self.len();
        let fill = match fill {
            None => None,
            Some(fill) if fill.fract() == 0.0 && T::of_float(fill).is_none() => Some(T::of_integer(fill as i64)),
            Some(fill) => Some(T::of_float(fill).ok_or_else(|| {
                Error::invalid(format!("{fill} is to fill an array of integers: give an integer, or another type"))
            })?),
        };
        let bytes = rows.checked_mul(width).and_then(|numbers| numbers.checked_mul(size_of::<T>()));
        // Until the array is handed over.
        let _held = team.budget().draw(Purpose::Queries, bytes.map_or(u64::MAX, |bytes| bytes as u64))?;
        let mut array = vec![T::default(); rows * width];
        let of_part = (PART_NUMBERS / width.max(1)).max(1);
        let parts: Vec<Range<usize>> = (0..rows).step_by(of_part).map(|from| from..rows.min(from + of_part)).collect();
        let slices: Vec<Range<usize>> = parts.iter().map(|part| part.start * width..part.end * width).collect();
        team.begin_parts("features", "parts");
        let read = team.map_slices(&slices, &mut *array, |part, to: &mut [T]| {
            let mut scratch = (ValueRows::default(), Numbers::default());
            let rows = parts[part].clone();
            for from in rows.clone().step_by(TOGETHER) {
                let chunk = from..rows.end.min(from + TOGETHER);
                let to = &mut to[(from - rows.start) * width..(chunk.end - rows.start) * width];
                if has_lists || !self.read_numbers(chunk.clone(), fill, to, &mut scratch.1)? {
                    self.read_values(chunk, width, has_lists, fill, to, &mut scratch.0)?;
                }
            }
            Ok(())
        })?;
        read.into_iter().collect::<Result<()>>()?;
        Ok(array)
    }

    /// Reads numbers as plain columns. Returns false if they must be read one by one.
    fn read_numbers<T: Number>(
        &self,
        rows: Range<usize>,
        fill: Option<T>,
        to: &mut [T],
        numbers: &mut Numbers,
    ) -> Result<bool> {
        // Rows that do not have one value each are for the other way, which names them.
        if !self.numbers(rows.clone(), numbers)? || (fill.is_none() && numbers.len() != rows.len()) {
            return Ok(false);
        }
        let mut next = 0;
        for (at, row) in numbers.row.iter().enumerate() {
            let row = *row as usize;
            let found = match numbers.integers.get(at) {
                Some(number) => Some(T::of_integer(*number)),
                None => T::of_float(numbers.floats[at]),
            };
            let (Some(found), true) = (found, row >= next) else { return Ok(false) };
            if row > next && fill.is_none() {
                return Ok(false);
            }
            fill.iter().for_each(|fill| to[next..row].fill(*fill));
            to[row] = found;
            next = row + 1;
        }
        fill.iter().for_each(|fill| to[next..].fill(*fill));
        Ok(true)
    }

    fn read_values<T: Number>(
        &self,
        rows: Range<usize>,
        width: usize,
        has_lists: bool,
        fill: Option<T>,
        to: &mut [T],
        values: &mut ValueRows,
    ) -> Result<()> {
        self.values(rows.clone(), values)?;
        let mut next = 0;
        let missing = |row: usize, to: &mut [T]| match fill {
            Some(fill) => {
                to[row * width..(row + 1) * width].fill(fill);
                Ok(())
            }
            None => Err(self.missing(rows.start + row)),
        };
        for (row, value) in values.row.iter().zip(&values.value) {
            let row = *row as usize;
            (next..row).try_for_each(|row| missing(row, to))?;
            if row < next {
                return Err(Error::invalid(format!(
                    "{}: there are several values, and a feature is one",
                    self.named(rows.start + row)
                )));
            }
            next = row + 1;
            let to = &mut to[row * width..(row + 1) * width];
            let Some((_, found, is_list)) = shape(value) else {
                return Err(self.not_numeric(rows.start + row, value));
            };
            if found != width || is_list != has_lists {
                return Err(Error::invalid(format!(
                    "{}: the value has {found} numbers, and others have {width}",
                    self.named(rows.start + row)
                )));
            }
            let is_held = match value {
                Value::F32Array(numbers) => T::copy(numbers, to),
                Value::List(items) => {
                    items.iter().zip(&mut *to).all(|(item, to)| number(item).map(|number| *to = number).is_some())
                }
                scalar => number(scalar).map(|number| to[0] = number).is_some(),
            };
            if !is_held {
                return Err(Error::invalid(format!(
                    "{}: the value has floats, and the features are integers: read them as floats",
                    self.named(rows.start + row)
                )));
            }
        }
        (next..rows.len()).try_for_each(|row| missing(row, to))
    }
}
