//! The meaning of the names in a header.
//!
//! Four styles are understood. A header may mix them, because each column is read on its own:
//!
//! - `~id`, `~label`, `~from`, `~to`, `name:type`: CSV as Gremlin services write it. There, `name:type(set)`,
//!   `name:type(list)` and `name:type[]` are properties with several values. Ids may have a type (`~id:int`), which our
//!   own exporter writes if the text alone does not show it.
//! - `id:ID(Space)`, `:LABEL`, `:START_ID(Space)`, `:END_ID(Space)`, `:TYPE`, `name:type`, `name:type[]`, `:IGNORE`:
//!   headers of Neo4j's importer, with `{id-type: …}` after an id.
//! - `Person.id|Person.id|creationDate`: edges as LDBC's generator writes them. The first two columns name id spaces.
//! - plain names: `id` is the id of a vertex. `from` and `to` (or `source` and `target`, `src` and `dst`) are the ends
//!   of an edge, and then `id` is the id of the edge.

use super::table_plan::GLOBAL_SPACE;
use crate::sink::Cardinality;
use crate::values::ColumnType;
use mangrove_graph::{Error, Result};

/// The use of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ColumnRole {
    /// The id of the element. The space is `None` if the header does not name one (a plain `id`).
    Id(Option<String>),
    Label,
    /// The source of an edge, in an id space.
    Source(String),
    /// The target of an edge, in an id space.
    Target(String),
    Property {
        kind: Option<ColumnType>,
        cardinality: Option<Cardinality>,
    },
    Ignore,
}

/// One column of a header.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeaderColumn {
    /// The name in the file.
    pub(crate) raw: String,
    /// The name without type and markers: the property key.
    pub(crate) name: String,
    pub(crate) role: ColumnRole,
    /// The type of the ids, if this is a column of ids and the header gives one.
    pub(crate) id_kind: Option<ColumnType>,
}

const PLAIN: ColumnRole = ColumnRole::Property { kind: None, cardinality: None };

/// Reads a header.
pub(crate) fn parse_header<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<HeaderColumn>> {
    let names: Vec<&str> = names.into_iter().map(str::trim).collect();
    let gremlin = names.iter().any(|name| name.starts_with('~'));
    let mut columns = names.iter().map(|name| parse_column(name, gremlin)).collect::<Result<Vec<_>>>()?;
    mark_ldbc_ends(&mut columns);
    mark_plain_ends(&mut columns);
    if let Some(id) = columns.iter_mut().find(|column| column.role == PLAIN && column.name.eq_ignore_ascii_case("id")) {
        id.role = ColumnRole::Id(None);
    }
    Ok(columns)
}

fn parse_column(raw: &str, gremlin: bool) -> Result<HeaderColumn> {
    let global = || GLOBAL_SPACE.to_owned();
    let context = |e: Error| e.context(format!("column '{raw}'"));
    let (text, options) = split_options(raw);
    let mut id_kind = options.map(id_type).transpose().map_err(context)?.flatten();
    if text.starts_with('~') {
        let (name, kind) = text.split_once(':').map_or((text, None), |(name, kind)| (name, Some(kind)));
        let role = match name {
            "~id" => Some(ColumnRole::Id(Some(global()))),
            "~label" => Some(ColumnRole::Label),
            "~from" => Some(ColumnRole::Source(global())),
            "~to" => Some(ColumnRole::Target(global())),
            _ => None,
        };
        if let Some(role) = role {
            let id_kind = kind.map(ColumnType::named).transpose().map_err(context)?;
            return Ok(HeaderColumn { raw: raw.to_owned(), name: name[1..].to_owned(), role, id_kind });
        }
    }
    let column = |name: &str, role, id_kind| HeaderColumn { raw: raw.to_owned(), name: name.to_owned(), role, id_kind };
    let Some((name, suffix)) = text.rsplit_once(':') else { return Ok(column(raw, PLAIN, None)) };
    let (word, argument) = match suffix.split_once('(') {
        Some((word, rest)) => (word, rest.strip_suffix(')')),
        None => (suffix, None),
    };
    let space = || argument.unwrap_or(GLOBAL_SPACE).to_owned();
    let role = match word.to_ascii_uppercase().as_str() {
        "ID" => ColumnRole::Id(Some(space())),
        "START_ID" => ColumnRole::Source(space()),
        "END_ID" => ColumnRole::Target(space()),
        "LABEL" | "TYPE" => ColumnRole::Label,
        "IGNORE" => ColumnRole::Ignore,
        _ => {
            // Only ids have options that are understood.
            if let Some(options) = options {
                let message = format!("the option {{{options}}} is not understood; say it in a mapping (type, format)");
                return Err(context(Error::unsupported(message)));
            }
            id_kind = None;
            property(word, argument, gremlin).map_err(context)?
        }
    };
    Ok(column(name, role, id_kind))
}

/// Returns true if a column of this name is a property of that name, whatever other columns there are.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let means_more =
        ["id", "from", "to", "source", "target", "src", "dst"].iter().any(|w| name.eq_ignore_ascii_case(w));
    let parsed = parse_column(name, true);
    !means_more
        && !name.ends_with(".id")
        && name.trim() == name
        && !name.is_empty()
        && parsed.is_ok_and(|column| column.role == PLAIN && column.name == name)
}

/// The text of a column and the options in braces after it.
fn split_options(raw: &str) -> (&str, Option<&str>) {
    match raw.strip_suffix('}').and_then(|rest| rest.split_once('{')) {
        Some((text, options)) if text.contains(':') => (text, Some(options)),
        _ => (raw, None),
    }
}

/// The type of ids in options of Neo4j's importer: `id-type: long, label: Person`.
fn id_type(options: &str) -> Result<Option<ColumnType>> {
    let mut kind = None;
    for option in options.split(',') {
        let (name, value) = option.split_once(':').unwrap_or((option, ""));
        if name.trim() == "id-type" {
            kind = Some(ColumnType::named(value.trim())?);
        }
    }
    Ok(kind)
}

fn property(type_name: &str, argument: Option<&str>, gremlin: bool) -> Result<ColumnRole> {
    let kind = ColumnType::named(type_name)?;
    let several = match argument {
        Some("set") => Some(Cardinality::Set),
        Some("list") => Some(Cardinality::List),
        Some("single") => None,
        Some(other) => {
            return Err(Error::invalid(format!("'({other})' is not a cardinality; it is (single), (set) or (list)")));
        }
        None => (gremlin && matches!(kind, ColumnType::List(..))).then_some(Cardinality::Set),
    };
    let Some(cardinality) = several else { return Ok(ColumnRole::Property { kind: Some(kind), cardinality: None }) };
    let list = match kind {
        list @ ColumnType::List(..) => list,
        element => ColumnType::List(Box::new(element), crate::values::LIST_SEPARATOR),
    };
    Ok(ColumnRole::Property { kind: Some(list), cardinality: Some(cardinality) })
}

/// Recognizes `A.id`, `B.id` at the start of a header: ends of an edge.
fn mark_ldbc_ends(columns: &mut [HeaderColumn]) {
    let [first, second, ..] = columns else { return };
    let (Some(source), Some(target)) = (first.name.strip_suffix(".id"), second.name.strip_suffix(".id")) else {
        return;
    };
    first.role = ColumnRole::Source(source.to_owned());
    second.role = ColumnRole::Target(target.to_owned());
}

/// Recognizes pairs of plain names for the ends of an edge, if the header names no ends otherwise.
fn mark_plain_ends(columns: &mut [HeaderColumn]) {
    const PAIRS: [(&str, &str); 3] = [("from", "to"), ("source", "target"), ("src", "dst")];
    if columns.iter().any(|column| matches!(column.role, ColumnRole::Source(_) | ColumnRole::Target(_))) {
        return;
    }
    let find = |name: &str| columns.iter().position(|c| c.role == PLAIN && c.name.eq_ignore_ascii_case(name));
    let ends = PAIRS.iter().find_map(|(source, target)| Some((find(source)?, find(target)?)));
    if let Some((source, target)) = ends {
        columns[source].role = ColumnRole::Source(GLOBAL_SPACE.to_owned());
        columns[target].role = ColumnRole::Target(GLOBAL_SPACE.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(header: &str) -> Vec<(String, ColumnRole)> {
        parse_header(header.split('|')).unwrap().into_iter().map(|column| (column.name, column.role)).collect()
    }

    fn typed(kind: ColumnType) -> ColumnRole {
        ColumnRole::Property { kind: Some(kind), cardinality: None }
    }

    #[track_caller]
    fn check(header: &str, expected: &[(&str, ColumnRole)]) {
        let expected: Vec<_> = expected.iter().map(|(name, role)| ((*name).to_owned(), role.clone())).collect();
        assert_eq!(roles(header), expected);
    }

    #[test]
    fn gremlin_headers() {
        let set = |element| ColumnRole::Property {
            kind: Some(ColumnType::List(Box::new(element), ';')),
            cardinality: Some(Cardinality::Set),
        };
        check(
            "~id|~label|age:Int|nick:string[]|mail:string(set)",
            &[
                ("id", ColumnRole::Id(Some(String::new()))),
                ("label", ColumnRole::Label),
                ("age", typed(ColumnType::I32)),
                ("nick", set(ColumnType::String)),
                ("mail", set(ColumnType::String)),
            ],
        );
        check(
            "~id|~from|~to",
            &[
                ("id", ColumnRole::Id(Some(String::new()))),
                ("from", ColumnRole::Source(String::new())),
                ("to", ColumnRole::Target(String::new())),
            ],
        );
    }

    #[test]
    fn neo4j_headers() {
        check(
            "id:ID(Person)|:LABEL|name:STRING|x:IGNORE|tags:string[]",
            &[
                ("id", ColumnRole::Id(Some("Person".into()))),
                ("", ColumnRole::Label),
                ("name", typed(ColumnType::String)),
                ("x", ColumnRole::Ignore),
                ("tags", typed(ColumnType::List(Box::new(ColumnType::String), ';'))),
            ],
        );
        check(
            ":START_ID(Person)|:END_ID|:TYPE",
            &[
                ("", ColumnRole::Source("Person".into())),
                ("", ColumnRole::Target(String::new())),
                ("", ColumnRole::Label),
            ],
        );
    }

    #[test]
    fn ldbc_and_plain_headers() {
        check(
            "Person.id|Place.id|since",
            &[
                ("Person.id", ColumnRole::Source("Person".into())),
                ("Place.id", ColumnRole::Target("Place".into())),
                ("since", PLAIN),
            ],
        );
        check("id|name", &[("id", ColumnRole::Id(None)), ("name", PLAIN)]);
        check(
            "ID|Source|Target",
            &[
                ("ID", ColumnRole::Id(None)),
                ("Source", ColumnRole::Source(String::new())),
                ("Target", ColumnRole::Target(String::new())),
            ],
        );
    }

    #[test]
    fn names_that_mean_more_are_not_plain() {
        for name in ["age", "größe", "a,b", "x y", "a.identity"] {
            assert!(is_plain_name(name), "{name}");
        }
        for name in ["ID", "to", "a.id", "a:int", "x:y", "~id", " a", "", "name:string{x}"] {
            assert!(!is_plain_name(name), "{name}");
        }
    }

    #[test]
    fn unknown_types_are_named() {
        let message = |header: &str| parse_header([header]).unwrap_err().message().to_owned();
        assert!(message("age:integr").starts_with("column 'age:integr': 'integr' is not a type"));
        assert!(message("age:int(many)").contains("(single), (set) or (list)"));
    }
}
