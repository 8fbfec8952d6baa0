//! From the header of a file and its mapping rule to its plan.
//!
//! This takes two steps, because an id space is a matter of all files together. [`TableDraft::open`] finds how a file
//! is written and what each column is for. [`TableDraft::plans`] makes the plans, given every id space that an edge of
//! the load refers to.
//!
//! If header and rule leave something open, these rules decide:
//!
//! - **Label**: the name of the file without extension and without a trailing `_0_0`. For edges, the middle of
//!   `A_label_B`.
//! - **Id space** of a plain `id` column: the vertex label if an edge of the load refers to a space of that name, else
//!   the global space.
//! - **User ids**: an id of the global space is the id by which users know the vertex. Ids of a named space are not
//!   unique in the graph, so the store chooses the id and the file's id becomes a property.

use std::path::Path;

use hashbrown::{HashMap, HashSet};
use mangrove_graph::{Error, Result};
use smol_str::SmolStr;

use super::header::{ColumnRole, HeaderColumn, parse_header};
use super::layout::{dialect, names};
use super::table_plan::{
    EdgePlan, EndPlan, ForeignKey, GLOBAL_SPACE, IdPlan, LabelPlan, PropertyPlan, RowsPlan, TableForm, TablePlan,
    TextForm, UserIds, ValuesPlan, VertexPlan,
};
use crate::input::unpacked_name;
use crate::mapping::{
    CardinalityRule, Defaults, FileRule, KeyRule, KindRule, MissingRule, PropertyRule, UserIdRule, constant,
};
use crate::sink::Cardinality;
use crate::values::{ColumnType, LIST_SEPARATOR, TimeFormat};

/// A table whose columns are known, but not yet its id spaces.
pub(crate) struct TableDraft<'a> {
    file: usize,
    path: &'a Path,
    rule: FileRule,
    defaults: &'a Defaults,
    form: TableForm,
    columns: Vec<HeaderColumn>,
    /// The types that the file itself gives its columns.
    natural: Natural,
    array_delimiter: Option<char>,
}

/// The types that a file itself gives its columns.
enum Natural {
    /// Nothing.
    Unknown,
    /// The type of each column, or why it cannot be read.
    #[cfg(feature = "parquet")]
    Known(Vec<Result<ColumnType>>),
}

impl<'a> TableDraft<'a> {
    /// Reads the first line of a text table, and applies its rule.
    pub(crate) fn open(
        file: usize,
        path: &'a Path,
        rule: Option<&FileRule>,
        defaults: &'a Defaults,
        delimiter: Option<char>,
    ) -> Result<Self> {
        let rule = rule.cloned().unwrap_or_default();
        let dialect = dialect(path, &rule, defaults, delimiter)?;
        let header = rule.header.unwrap_or(rule.columns.is_none() && defaults.header.unwrap_or(true));
        let columns = parse_header(names(path, &rule, dialect, header)?.iter().map(String::as_str))?;
        let form = TableForm::Text(TextForm { dialect, header, width: columns.len() });
        Self::new(file, path, rule, defaults, form, columns, Natural::Unknown)
    }

    /// Reads the columns of a Parquet file, and applies its rule.
    #[cfg(feature = "parquet")]
    pub(crate) fn open_parquet(
        file: usize,
        path: &'a Path,
        rule: Option<&FileRule>,
        defaults: &'a Defaults,
    ) -> Result<Self> {
        let rule = rule.cloned().unwrap_or_default();
        let opened = crate::parquet::ParquetFile::open(path)?;
        let names: Vec<&str> = match &rule.columns {
            None => opened.names().collect(),
            Some(columns) => columns.iter().map(String::as_str).collect(),
        };
        if names.len() != opened.names().count() {
            let message =
                format!("the mapping names {} columns, but the file has {}", names.len(), opened.names().count());
            return Err(Error::invalid(message));
        }
        let columns = parse_header(names)?;
        let natural = Natural::Known(opened.types());
        Self::new(file, path, rule, defaults, TableForm::Parquet(std::sync::Arc::new(opened)), columns, natural)
    }

    /// Fails: this program was built without Parquet.
    #[cfg(not(feature = "parquet"))]
    pub(crate) fn open_parquet(
        _file: usize,
        _path: &'a Path,
        _rule: Option<&FileRule>,
        _defaults: &'a Defaults,
    ) -> Result<Self> {
        Err(Error::unsupported("this program was built without Parquet (the feature `parquet` of mangrove-load)"))
    }

    fn new(
        file: usize,
        path: &'a Path,
        rule: FileRule,
        defaults: &'a Defaults,
        form: TableForm,
        columns: Vec<HeaderColumn>,
        natural: Natural,
    ) -> Result<Self> {
        let mut table = TableDraft { file, path, rule, defaults, form, columns, natural, array_delimiter: None };
        table.apply_roles()?;
        Ok(table)
    }

    /// The same with a separator for lists whose separator neither header nor mapping names.
    pub(crate) fn with_array_delimiter(mut self, delimiter: Option<char>) -> Self {
        self.array_delimiter = delimiter;
        self
    }

    /// The file.
    pub(crate) fn path(&self) -> &'a Path {
        self.path
    }

    /// The position of a column, by its name in the file or by that name without type.
    fn position(&self, name: &str) -> Result<usize> {
        let found = self.columns.iter().position(|column| column.raw == name);
        found.or_else(|| self.columns.iter().position(|column| column.name == name)).ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|column| column.raw.as_str()).collect();
            Error::invalid(format!("there is no column '{name}'; the columns are {}", names.join(", ")))
        })
    }

    /// Gives columns the roles that the rule names.
    fn apply_roles(&mut self) -> Result<()> {
        let rule = self.rule.clone();
        if matches!(rule.kind, Some(KindRule::Vertex | KindRule::Values)) {
            self.drop_roles(|role| matches!(role, ColumnRole::Source(_) | ColumnRole::Target(_)));
        }
        if let Some(name) = &rule.id {
            let at = self.position(name)?;
            self.drop_roles(|role| matches!(role, ColumnRole::Id(_)));
            self.columns[at].role = ColumnRole::Id(None);
        }
        if let Some(name) = &rule.label_column {
            let at = self.position(name)?;
            self.drop_roles(|role| *role == ColumnRole::Label);
            self.columns[at].role = ColumnRole::Label;
        }
        if let Some(name) = &rule.source {
            let at = self.position(name)?;
            self.drop_roles(|role| matches!(role, ColumnRole::Source(_)));
            self.columns[at].role = ColumnRole::Source(GLOBAL_SPACE.to_owned());
        }
        if let Some(name) = &rule.target {
            let at = self.position(name)?;
            self.drop_roles(|role| matches!(role, ColumnRole::Target(_)));
            self.columns[at].role = ColumnRole::Target(GLOBAL_SPACE.to_owned());
        }
        for column in &mut self.columns {
            match (&mut column.role, &rule.id_space, &rule.source_space, &rule.target_space) {
                (ColumnRole::Id(space), Some(named), _, _) => *space = Some(named.clone()),
                (ColumnRole::Source(space), _, Some(named), _) | (ColumnRole::Target(space), _, _, Some(named)) => {
                    space.clone_from(named);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn drop_roles(&mut self, which: impl Fn(&ColumnRole) -> bool) {
        for column in self.columns.iter_mut().filter(|column| which(&column.role)) {
            column.role = ColumnRole::Property { kind: None, cardinality: None };
        }
    }

    fn find(&self, which: impl Fn(&ColumnRole) -> bool) -> Option<usize> {
        self.columns.iter().position(|column| which(&column.role))
    }

    /// The id spaces that edges of this file refer to, in lower case.
    pub(crate) fn referenced_spaces(&self, spaces: &mut HashSet<String>) {
        for column in &self.columns {
            if let ColumnRole::Source(space) | ColumnRole::Target(space) = &column.role {
                spaces.insert(space.to_ascii_lowercase());
            }
        }
        spaces.extend(self.rule.foreign.iter().map(|foreign| foreign.space.to_ascii_lowercase()));
        if self.rule.kind == Some(KindRule::Values) {
            spaces.insert(self.owner_space(self.owner_column()).to_ascii_lowercase());
        }
    }

    /// The column that names the vertex of a row, in a file of values.
    fn owner_column(&self) -> usize {
        self.find(|role| matches!(role, ColumnRole::Id(_))).unwrap_or(0)
    }

    /// The id space of that column: `Person` also if the column is named `Person.id`.
    fn owner_space(&self, owner: usize) -> String {
        let Some(column) = self.columns.get(owner) else { return GLOBAL_SPACE.to_owned() };
        match (&column.role, column.name.strip_suffix(".id")) {
            (ColumnRole::Id(Some(space)), _) => space.clone(),
            (_, Some(space)) => space.to_owned(),
            (_, None) => GLOBAL_SPACE.to_owned(),
        }
    }

    /// The plans of the file: one for its rows, and one for each foreign key. `referenced` are the id spaces of the
    /// load.
    pub(crate) fn plans(&self, referenced: &HashSet<String>) -> Result<Vec<TablePlan>> {
        self.check_property_rules()?;
        if self.rule.kind == Some(KindRule::Values) {
            return self.values_plan().map(|plan| vec![plan]);
        }
        let source = self.find(|role| matches!(role, ColumnRole::Source(_)));
        let target = self.find(|role| matches!(role, ColumnRole::Target(_)));
        match (source, target) {
            (Some(source), Some(target)) => self.edge_plan(source, target).map(|plan| vec![plan]),
            (None, None) if self.rule.kind != Some(KindRule::Edge) => self.vertex_plans(referenced),
            _ => Err(Error::invalid(
                "an edge file needs a column for the source and one for the target: name them in the header (:START_ID \
                 and :END_ID, ~from and ~to, from and to) or in a mapping (source and target)",
            )),
        }
    }

    /// The plan of a file of values.
    fn values_plan(&self) -> Result<TablePlan> {
        let owner = self.owner_column();
        let space = self.rule.id_space.clone().unwrap_or_else(|| self.owner_space(owner));
        let mut properties = self.properties(None)?;
        properties.retain(|property| property.column != owner);
        properties.iter_mut().for_each(|property| {
            property.cardinality.get_or_insert(Cardinality::List);
        });
        if properties.is_empty() || !self.rule.foreign.is_empty() {
            let message =
                "a file of values needs a column with the ids of vertices and one with values, and has no foreign keys";
            return Err(Error::invalid(message));
        }
        Ok(self.table(RowsPlan::Values(ValuesPlan {
            owner: EndPlan { column: self.id_plan(owner), space, skip_missing: self.rule.missing == MissingRule::Skip },
            properties,
        })))
    }

    fn edge_plan(&self, source: usize, target: usize) -> Result<TablePlan> {
        if !self.rule.foreign.is_empty() {
            return Err(Error::invalid("foreign keys belong to vertex files; this is an edge file"));
        }
        let end = |column: usize| {
            // The column was found by its role, which has a space.
            let space = match &self.columns[column].role {
                ColumnRole::Source(space) | ColumnRole::Target(space) => space.as_str(),
                _ => GLOBAL_SPACE,
            };
            EndPlan {
                column: self.id_plan(column),
                space: space.to_owned(),
                skip_missing: self.rule.missing == MissingRule::Skip,
            }
        };
        let id = self.find(|role| matches!(role, ColumnRole::Id(_)));
        let own = self.user_id_rule() != Some(UserIdRule::Own(false));
        let properties = self.properties(id.filter(|_| !own || self.rule.id_property.is_some()))?;
        let key = self.rule.key.as_ref().map(KeyRule::names);
        check_key(key.as_deref(), &properties)?;
        Ok(self.table(RowsPlan::Edges(EdgePlan {
            label: self.label_plan(edge_label),
            source: end(source),
            target: end(target),
            id: id.filter(|_| own).map(|id| self.id_plan(id)),
            key,
            properties,
            constants: self.constants()?,
            foreign: None,
        })))
    }

    fn vertex_plans(&self, referenced: &HashSet<String>) -> Result<Vec<TablePlan>> {
        let id = self.find(|role| matches!(role, ColumnRole::Id(_)));
        if id.is_none() && self.rule.kind.is_none() {
            return Err(Error::invalid(
                "no column is an id: name one id, ~id or :ID in the header, or say in a mapping which one it is (id = \
                 \"…\") or that there is none (kind = \"vertex\")",
            ));
        }
        let label = self.label_plan(vertex_label);
        let space = self.vertex_space(id, &label, referenced);
        let user_ids = match (id, self.user_id_rule()) {
            (None, _) | (_, Some(UserIdRule::Own(false))) => UserIds::Automatic,
            (_, Some(UserIdRule::Own(true))) => UserIds::Own,
            (_, Some(UserIdRule::Prefixed(_))) => UserIds::Prefixed,
            (_, None) if space == GLOBAL_SPACE => UserIds::Own,
            (_, None) => UserIds::Automatic,
        };
        let kept = id.filter(|_| user_ids == UserIds::Automatic || self.rule.id_property.is_some());
        let properties = self.properties(kept)?;
        let id_property = kept.and_then(|kept| properties.iter().find(|property| property.column == kept));
        let mut plans = vec![self.table(RowsPlan::Vertices(VertexPlan {
            label,
            id: id.map(|id| self.id_plan(id)),
            space: space.clone(),
            user_ids,
            id_property: id_property.map(|property| property.key.clone()),
            key: self.vertex_key(user_ids, &properties)?,
            properties,
            constants: self.constants()?,
        }))];
        for foreign in &self.rule.foreign {
            let id = id.ok_or_else(|| Error::invalid("a vertex file with foreign keys needs an id column"))?;
            plans.push(self.table(RowsPlan::Edges(EdgePlan {
                label: LabelPlan { constant: Some(foreign.label.as_str().into()), ..LabelPlan::default() },
                source: EndPlan { column: self.id_plan(id), space: space.clone(), skip_missing: true },
                target: EndPlan {
                    column: IdPlan { column: self.position(&foreign.column)?, kind: None },
                    space: foreign.space.clone(),
                    skip_missing: foreign.missing == MissingRule::Skip,
                },
                id: None,
                key: None,
                properties: Vec::new(),
                constants: Vec::new(),
                foreign: Some(ForeignKey { separator: foreign.separator, inward: foreign.inward }),
            })));
        }
        Ok(plans)
    }

    /// The key of the vertices: the rule's, or that of the defaults if the file needs a key and has these properties.
    fn vertex_key(&self, user_ids: UserIds, properties: &[PropertyPlan]) -> Result<Option<Vec<SmolStr>>> {
        if let Some(key) = &self.rule.key {
            let names = key.names();
            return check_key(Some(&names), properties).map(|()| Some(names));
        }
        let common = self.defaults.key.as_ref().filter(|_| user_ids == UserIds::Automatic).map(KeyRule::names);
        Ok(common.filter(|names| check_key(Some(names), properties).is_ok()))
    }

    fn id_plan(&self, column: usize) -> IdPlan {
        IdPlan { column, kind: self.columns[column].id_kind.clone() }
    }

    fn vertex_space(&self, id: Option<usize>, label: &LabelPlan, referenced: &HashSet<String>) -> String {
        match id.map(|id| &self.columns[id].role) {
            Some(ColumnRole::Id(Some(space))) => space.clone(),
            Some(ColumnRole::Id(None)) => {
                let label = label.constant.as_ref().filter(|label| referenced.contains(&label.to_ascii_lowercase()));
                label.map_or_else(|| GLOBAL_SPACE.to_owned(), |label| label.to_string())
            }
            _ => GLOBAL_SPACE.to_owned(),
        }
    }

    fn user_id_rule(&self) -> Option<UserIdRule> {
        self.rule.user_id.or(self.defaults.user_id)
    }

    fn table(&self, rows: RowsPlan) -> TablePlan {
        let nulls = self.rule.null.clone().or_else(|| self.defaults.null.clone());
        TablePlan {
            quoted_nulls: nulls.is_some(),
            file: self.file,
            path: self.path.to_owned(),
            columns: self.columns.iter().map(|column| column.raw.clone()).collect(),
            form: self.form.clone(),
            // A file with null values needs no text for them.
            nulls: nulls.unwrap_or_else(|| match self.form.is_text() {
                true => vec![String::new(), "\\N".to_owned()],
                false => Vec::new(),
            }),
            rows,
        }
    }

    fn label_plan(&self, from_file_name: fn(&str) -> &str) -> LabelPlan {
        let column = self.find(|role| *role == ColumnRole::Label);
        let constant = match (&self.rule.label, column) {
            (Some(label), _) => Some(label.as_str().into()),
            (None, Some(_)) => None,
            (None, None) => {
                let name = unpacked_name(self.path);
                let stem = name.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
                Some(SmolStr::from(from_file_name(&stem)))
            }
        };
        LabelPlan { constant, column, names: self.rule.label_names.clone() }
    }

    fn constants(&self) -> Result<Vec<(SmolStr, mangrove_graph::Value)>> {
        let constants = self.rule.constants.iter();
        constants
            .map(|(key, value)| Ok((SmolStr::from(key), constant(value).map_err(|e| e.context(format!("'{key}'")))?)))
            .collect()
    }

    fn property_rule(&self, column: &HeaderColumn) -> Option<&PropertyRule> {
        let own = &self.rule.properties;
        let all = &self.defaults.properties;
        [own, all].into_iter().find_map(|rules| rules.get(&column.raw).or_else(|| rules.get(&column.name)))
    }

    fn check_property_rules(&self) -> Result<()> {
        self.rule.properties.keys().try_for_each(|name| self.position(name).map(drop))
    }

    /// The columns that become properties. The id column is one of them if it is `kept`.
    fn properties(&self, kept: Option<usize>) -> Result<Vec<PropertyPlan>> {
        let mut plans: Vec<PropertyPlan> = Vec::new();
        // For each key its index and the types of its columns.
        let mut met: HashMap<SmolStr, (usize, Vec<Option<ColumnType>>)> = HashMap::new();
        for (at, column) in self.columns.iter().enumerate() {
            let plan = match &column.role {
                ColumnRole::Property { kind, cardinality } => self.property(at, column, kind.clone(), *cardinality)?,
                ColumnRole::Id(_) if kept == Some(at) => self.id_property(at, column)?,
                _ => None,
            };
            let Some(mut plan) = plan else { continue };
            // Columns with the same key hold values of different types. A row has a value in one of them.
            let key_count = met.len();
            let (key_index, kinds) = met.entry(plan.key.clone()).or_insert_with(|| (key_count, Vec::new()));
            let is_same = |other: &Option<ColumnType>| other.is_none() || plan.kind.is_none() || *other == plan.kind;
            if kinds.iter().any(is_same) || self.rule.constants.contains_key(plan.key.as_str()) {
                return Err(Error::invalid(format!("two columns would be the property '{}': rename one", plan.key)));
            }
            kinds.push(plan.kind.clone());
            plan.key_index = *key_index;
            plans.push(plan);
        }
        Ok(plans)
    }

    fn id_property(&self, at: usize, column: &HeaderColumn) -> Result<Option<PropertyPlan>> {
        let named = if column.name.is_empty() { "id" } else { column.name.as_str() };
        let key = self.rule.id_property.as_deref().unwrap_or(named);
        if key.is_empty() {
            return Ok(None);
        }
        let kind = match self.property_rule(column).and_then(|rule| rule.kind.as_deref()) {
            Some(name) => ColumnType::named(name)?,
            None => ColumnType::Id,
        };
        Ok(Some(PropertyPlan {
            column: at,
            key: key.into(),
            key_index: 0,
            kind: Some(kind),
            inferred: false,
            cardinality: None,
        }))
    }

    fn property(
        &self,
        at: usize,
        column: &HeaderColumn,
        kind: Option<ColumnType>,
        cardinality: Option<Cardinality>,
    ) -> Result<Option<PropertyPlan>> {
        let place = |e: Error| e.context(format!("column '{}'", column.raw));
        let kind = match self.array_delimiter {
            Some(delimiter) => kind.map(|kind| kind.with_separator(delimiter)),
            None => kind,
        };
        let foreign =
            self.rule.foreign.iter().any(|foreign| foreign.column == column.raw || foreign.column == column.name);
        let Some(rule) = self.property_rule(column) else {
            if foreign {
                return Ok(None);
            }
            if column.name.is_empty() {
                return Err(Error::invalid(format!("column {} has no name", at + 1)));
            }
            let key = column.name.as_str().into();
            let kind = self.or_natural(at, kind).map_err(place)?;
            return Ok(Some(PropertyPlan { column: at, key, key_index: 0, kind, inferred: false, cardinality }));
        };
        if rule.skip {
            return Ok(None);
        }
        let kind = match &rule.kind {
            Some(name) => Some(ColumnType::named(name).map_err(place)?),
            None => kind,
        };
        let key = rule.name.as_deref().unwrap_or(&column.name).into();
        let cardinality = match rule.cardinality {
            Some(CardinalityRule::List) => Some(Cardinality::List),
            Some(CardinalityRule::Set) => Some(Cardinality::Set),
            None => cardinality,
        };
        // In a file of values, a row has one value.
        let several = cardinality.is_some() && self.rule.kind != Some(KindRule::Values);
        let kind = match (kind, self.natural_list(at)) {
            // A list of the file already is several values.
            (None, Some(list)) if cardinality.is_some() || rule.separator.is_some() => Some(list),
            (kind, _) => adjust(kind, rule, several).map_err(place)?,
        };
        let kind = self.or_natural(at, kind).map_err(place)?;
        Ok(Some(PropertyPlan { column: at, key, key_index: 0, kind, inferred: false, cardinality }))
    }
}

impl TableDraft<'_> {
    /// The type of a column: the one that header or rule give, else the one that the file gives.
    fn or_natural(&self, at: usize, said: Option<ColumnType>) -> Result<Option<ColumnType>> {
        match &self.natural {
            Natural::Unknown => Ok(said),
            #[cfg(feature = "parquet")]
            Natural::Known(types) => match (said, &types[at]) {
                (_, Err(e)) => Err(e.clone()),
                (Some(said), Ok(_)) => Ok(Some(said)),
                (None, Ok(natural)) => Ok(Some(natural.clone())),
            },
        }
    }

    /// The type that the file gives a column, if it is a list.
    fn natural_list(&self, at: usize) -> Option<ColumnType> {
        match &self.natural {
            Natural::Unknown => None,
            #[cfg(feature = "parquet")]
            Natural::Known(types) => {
                types[at].as_ref().ok().filter(|kind| matches!(kind, ColumnType::List(..))).cloned()
            }
        }
    }
}

/// Fails if a key is empty or names a property that is not among these.
fn check_key(key: Option<&[SmolStr]>, properties: &[PropertyPlan]) -> Result<()> {
    let names = || properties.iter().map(|property| property.key.as_str());
    match key {
        Some([]) => Err(Error::invalid("a key has at least one property")),
        Some(key) => match key.iter().find(|name| names().all(|other| other != name.as_str())) {
            None => Ok(()),
            Some(unknown) => {
                let names: Vec<&str> = names().collect();
                let message =
                    format!("there is no property '{unknown}' for the key; the properties are {}", names.join(", "));
                Err(Error::invalid(message))
            }
        },
        None => Ok(()),
    }
}

/// A type with the date format and the separator of a rule. `several` makes a list of it.
fn adjust(kind: Option<ColumnType>, rule: &PropertyRule, several: bool) -> Result<Option<ColumnType>> {
    let format = match &rule.format {
        Some(name) => Some(TimeFormat::from_name(name).ok_or_else(|| {
            Error::invalid(format!(
                "'{name}' is not a date format; the formats are auto, iso, yyyyMMdd, yyyyMMddHHmmss, \
                 yyyyMMddHHmmssSSS, epoch_millis, epoch_seconds"
            ))
        })?),
        None => None,
    };
    let kind = match (kind, format) {
        (None, Some(format)) => Some(ColumnType::DateTime(format)),
        (Some(kind), Some(format)) => Some(kind.with_format(format)),
        (kind, None) => kind,
    };
    let kind = match kind {
        list @ Some(ColumnType::List(..)) => list,
        // A separator or a cardinality means that the field is a list, of strings if no type is given.
        element if several || rule.separator.is_some() => {
            Some(ColumnType::List(Box::new(element.unwrap_or(ColumnType::String)), LIST_SEPARATOR))
        }
        kind => kind,
    };
    Ok(match rule.separator {
        Some(separator) => kind.map(|kind| kind.with_separator(separator)),
        None => kind,
    })
}

fn vertex_label(stem: &str) -> &str {
    let mut stem = stem;
    while let Some((front, tail)) = stem.rsplit_once('_') {
        if front.is_empty() || tail.is_empty() || !tail.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        stem = front;
    }
    stem
}

fn edge_label(stem: &str) -> &str {
    let stem = vertex_label(stem);
    let mut parts = stem.split('_');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(label), Some(_), None) if !label.is_empty() => label,
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_from_file_names() {
        assert_eq!(vertex_label("person_0_0"), "person");
        assert_eq!(vertex_label("my_table"), "my_table");
        assert_eq!(vertex_label("_0"), "_0");
        assert_eq!(edge_label("person_knows_person_0_0"), "knows");
        assert_eq!(edge_label("Forum_hasMember_Person"), "hasMember");
        assert_eq!(edge_label("edges"), "edges");
        assert_eq!(edge_label("a_b"), "a_b");
    }
}
