//! What the names in a header say.
//!
//! Four styles are understood, column by column, so that they may be mixed:
//!
//! - `~id`, `~label`, `~from`, `~to`, `name:type` — CSV as Gremlin services write it; `name:type(set)`, `name:type(list)` and
//!   `name:type[]` are multi-properties there. Ids may have a type (`~id:int`), which our own exporter writes where
//!   their texts do not tell it.
//! - `id:ID(Space)`, `:LABEL`, `:START_ID(Space)`, `:END_ID(Space)`, `:TYPE`, `name:type`, `name:type[]`,
//!   `:IGNORE` — the headers of Neo4j's importer, with `{id-type: …}` behind an id.
//! - `Person.id|Person.id|creationDate` — edges as LDBC's generator writes them: the first two columns name
//!   id spaces.
//! - plain names: `id` is the id of a vertex; `from` and `to` (or `source` and `target`, `src` and `dst`)
//!   are the ends of an edge, whose `id` column, if any, is then the edge's own id.

use mangrove_graph::{Error, Result};

use crate::column_type::ColumnType;
use crate::plan::GLOBAL_SPACE;
use crate::sink::Cardinality;

/// What a column is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Role {
    /// The element's id. The space is `None` where the header leaves it open (a plain `id`).
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
    /// As the file has it.
    pub(crate) raw: String,
    /// Without type and markers; the property key.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The type of the ids in a column of ids, where the header says it.
    pub(crate) id_kind: Option<ColumnType>,
}

const PLAIN: Role = Role::Property { kind: None, cardinality: None };

/// Reads a header.
pub(crate) fn parse_header<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<HeaderColumn>> {
    let names: Vec<&str> = names.into_iter().map(str::trim).collect();
    let gremlin = names.iter().any(|name| name.starts_with('~'));
    let mut columns = names.iter().map(|name| parse_column(name, gremlin)).collect::<Result<Vec<_>>>()?;
    mark_ldbc_ends(&mut columns);
    mark_plain_ends(&mut columns);
    if let Some(id) = columns.iter_mut().find(|column| column.role == PLAIN && column.name.eq_ignore_ascii_case("id")) {
        id.role = Role::Id(None);
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
            "~id" => Some(Role::Id(Some(global()))),
            "~label" => Some(Role::Label),
            "~from" => Some(Role::Source(global())),
            "~to" => Some(Role::Target(global())),
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
        "ID" => Role::Id(Some(space())),
        "START_ID" => Role::Source(space()),
        "END_ID" => Role::Target(space()),
        "LABEL" | "TYPE" => Role::Label,
        "IGNORE" => Role::Ignore,
        _ => {
            // Only ids have options here.
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

/// Whether a column of this name, without more, is a property of that name whatever other columns there are.
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

/// A column's text without the options in braces behind it.
fn split_options(raw: &str) -> (&str, Option<&str>) {
    match raw.strip_suffix('}').and_then(|rest| rest.split_once('{')) {
        Some((text, options)) if text.contains(':') => (text, Some(options)),
        _ => (raw, None),
    }
}

/// The type of ids in options as Neo4j's importer has them: `id-type: long, label: Person`.
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

fn property(type_name: &str, argument: Option<&str>, gremlin: bool) -> Result<Role> {
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
    let Some(cardinality) = several else { return Ok(Role::Property { kind: Some(kind), cardinality: None }) };
    let list = match kind {
        list @ ColumnType::List(..) => list,
        element => ColumnType::List(Box::new(element), crate::column_type::LIST_SEPARATOR),
    };
    Ok(Role::Property { kind: Some(list), cardinality: Some(cardinality) })
}

/// `A.id`, `B.id` in front.
fn mark_ldbc_ends(columns: &mut [HeaderColumn]) {
    let [first, second, ..] = columns else { return };
    let (Some(source), Some(target)) = (first.name.strip_suffix(".id"), second.name.strip_suffix(".id")) else {
        return;
    };
    first.role = Role::Source(source.to_owned());
    second.role = Role::Target(target.to_owned());
}

/// Pairs of plain names for the ends of an edge, unless the header says otherwise.
fn mark_plain_ends(columns: &mut [HeaderColumn]) {
    const PAIRS: [(&str, &str); 3] = [("from", "to"), ("source", "target"), ("src", "dst")];
    if columns.iter().any(|column| matches!(column.role, Role::Source(_) | Role::Target(_))) {
        return;
    }
    let find = |name: &str| columns.iter().position(|c| c.role == PLAIN && c.name.eq_ignore_ascii_case(name));
    let ends = PAIRS.iter().find_map(|(source, target)| Some((find(source)?, find(target)?)));
    if let Some((source, target)) = ends {
        columns[source].role = Role::Source(GLOBAL_SPACE.to_owned());
        columns[target].role = Role::Target(GLOBAL_SPACE.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(header: &str) -> Vec<(String, Role)> {
        parse_header(header.split('|')).unwrap().into_iter().map(|column| (column.name, column.role)).collect()
    }

    fn typed(kind: ColumnType) -> Role {
        Role::Property { kind: Some(kind), cardinality: None }
    }

    #[track_caller]
    fn check(header: &str, expected: &[(&str, Role)]) {
        let expected: Vec<_> = expected.iter().map(|(name, role)| ((*name).to_owned(), role.clone())).collect();
        assert_eq!(roles(header), expected);
    }

    #[test]
    fn gremlin_headers() {
        let set = |element| Role::Property {
            kind: Some(ColumnType::List(Box::new(element), ';')),
            cardinality: Some(Cardinality::Set),
        };
        check(
            "~id|~label|age:Int|nick:string[]|mail:string(set)",
            &[
                ("id", Role::Id(Some(String::new()))),
                ("label", Role::Label),
                ("age", typed(ColumnType::I32)),
                ("nick", set(ColumnType::String)),
                ("mail", set(ColumnType::String)),
            ],
        );
        check(
            "~id|~from|~to",
            &[
                ("id", Role::Id(Some(String::new()))),
                ("from", Role::Source(String::new())),
                ("to", Role::Target(String::new())),
            ],
        );
    }

    #[test]
    fn neo4j_headers() {
        check(
            "id:ID(Person)|:LABEL|name:STRING|x:IGNORE|tags:string[]",
            &[
                ("id", Role::Id(Some("Person".into()))),
                ("", Role::Label),
                ("name", typed(ColumnType::String)),
                ("x", Role::Ignore),
                ("tags", typed(ColumnType::List(Box::new(ColumnType::String), ';'))),
            ],
        );
        check(
            ":START_ID(Person)|:END_ID|:TYPE",
            &[("", Role::Source("Person".into())), ("", Role::Target(String::new())), ("", Role::Label)],
        );
    }

    #[test]
    fn ldbc_and_plain_headers() {
        check(
            "Person.id|Place.id|since",
            &[
                ("Person.id", Role::Source("Person".into())),
                ("Place.id", Role::Target("Place".into())),
                ("since", PLAIN),
            ],
        );
        check("id|name", &[("id", Role::Id(None)), ("name", PLAIN)]);
        check(
            "ID|Source|Target",
            &[("ID", Role::Id(None)), ("Source", Role::Source(String::new())), ("Target", Role::Target(String::new()))],
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
