//! The files of a load, each with its format and its rule of the mapping.
//!
//! Folders are opened, and standard input is copied to a file. This is the only place of a load that lists folders.

use std::io;
use std::path::{Path, PathBuf};

use mangrove_graph::{ElementKind, Error, ErrorKind, Result};

use super::layout::header_names;
use crate::input::{Spool, cannot_read, in_file, unpacked_name};
use crate::mapping::{FileRule, Mapping};
use crate::options::{FileGroup, LoadFormat, LoadOptions};

/// The most files that a message names.
const SHOWN_FILES: usize = 8;

/// The most levels of folders. Only a circle of links is deeper.
const FOLDER_DEPTH_MAX: usize = 32;

/// A file that is loaded.
pub(crate) struct ListedFile {
    pub(crate) path: PathBuf,
    pub(crate) format: LoadFormat,
    /// The rule of the mapping for the file, or the rule that its group makes.
    pub(crate) rule: Option<FileRule>,
}

/// The files of a load.
pub(crate) struct Listing {
    pub(crate) files: Vec<ListedFile>,
    /// Files that the mapping leaves out, and files in folders whose extension names no format.
    pub(crate) skipped: Vec<PathBuf>,
    /// The copy of standard input, kept until the load ends.
    _spools: Vec<Spool>,
}

impl Listing {
    pub(crate) fn new(given: &[PathBuf], options: &LoadOptions) -> Result<Self> {
        let mut spools = Vec::new();
        // Each path; true if the caller named it, false if it was found in a folder.
        let mut found: Vec<(PathBuf, bool)> = Vec::new();
        for path in given {
            if path.as_os_str() == "-" {
                let spool = Spool::new(io::stdin().lock())?;
                found.push((spool.path().to_owned(), true));
                spools.push(spool);
            } else if path.is_dir() {
                list_folder(path, 0, &mut found)?;
            } else {
                std::fs::metadata(path).map_err(|e| cannot_read(path, &e))?;
                found.push((path.clone(), true));
            }
        }
        let all: Vec<PathBuf> = found.iter().map(|(path, _)| path.clone()).collect();
        let all: Vec<&Path> = all.iter().map(PathBuf::as_path).collect();
        let mut listing = Listing { files: Vec::new(), skipped: Vec::new(), _spools: spools };
        for (path, by_name) in found {
            listing.add(path, by_name, options, &all)?;
        }
        for group in &options.groups {
            for (path, rule) in group.files.iter().zip(group_rules(group, options.delimiter)?) {
                listing.files.push(ListedFile { path: path.clone(), format: LoadFormat::Table, rule: Some(rule) });
            }
        }
        if listing.files.is_empty() {
            return Err(listing.nothing_to_load(options.mapping.is_some()));
        }
        Ok(listing)
    }

    /// The error for a load without files. It names the files that are left out, and the reason.
    fn nothing_to_load(&self, mapped: bool) -> Error {
        let names: Vec<String> = self.skipped.iter().take(SHOWN_FILES).map(|path| path.display().to_string()).collect();
        let more = match self.skipped.len().saturating_sub(SHOWN_FILES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = match (names.is_empty(), mapped) {
            (true, _) => "there is no file to load: the folders are empty".to_owned(),
            (false, true) => format!(
                "there is no file to load: the mapping leaves out, or has no rule for, {}{more}",
                names.join(", ")
            ),
            (false, false) => format!(
                "there is no file to load: of {}{more} the extensions name no format; name the files one by one, say \
                 with --format what they \
                 are, or with --map what is in them (mappings of known data sets: {})",
                names.join(", "),
                Mapping::shipped_names().collect::<Vec<_>>().join(", ")
            ),
        };
        Error::new(ErrorKind::NotFound, message)
    }

    /// Adds a file to the files or to the skipped ones. Fails if the caller named it and its format is unknown.
    fn add(&mut self, path: PathBuf, by_name: bool, options: &LoadOptions, all: &[&Path]) -> Result<()> {
        let rule = options.mapping.as_ref().and_then(|mapping| mapping.rule_for(&path, all));
        let by_extension = options.format.or_else(|| LoadFormat::of(&path, by_name));
        let format = match rule {
            Some(rule) if rule.skip => None,
            Some(_) if by_extension == Some(LoadFormat::Parquet) => by_extension,
            Some(_) => Some(LoadFormat::Table),
            None if by_name => Some(by_extension.ok_or_else(|| unknown_format(&path))?),
            None if options.mapping.is_some() => None,
            None => by_extension,
        };
        match format {
            Some(format) => self.files.push(ListedFile { path, format, rule: rule.cloned() }),
            None => self.skipped.push(path),
        }
        Ok(())
    }

    /// The tables, with their positions in the list.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (usize, &ListedFile)> {
        self.files.iter().enumerate().filter(|(_, file)| file.format.is_table())
    }

    /// The documents, which hold vertices and edges together, with their positions in the list.
    pub(crate) fn documents(&self) -> impl Iterator<Item = (usize, &ListedFile)> {
        self.files.iter().enumerate().filter(|(_, file)| !file.format.is_table())
    }
}

/// Appends the files of a folder and of the folders in it, by name.
fn list_folder(folder: &Path, depth: usize, found: &mut Vec<(PathBuf, bool)>) -> Result<()> {
    if depth > FOLDER_DEPTH_MAX {
        let message = format!("{}: folders lie too deep in one another; is a link part of a circle?", folder.display());
        return Err(Error::invalid(message));
    }
    let entries = std::fs::read_dir(folder).map_err(|e| cannot_read(folder, &e))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            list_folder(&path, depth + 1, found)?;
        } else {
            found.push((path, false));
        }
    }
    Ok(())
}

fn unknown_format(path: &Path) -> Error {
    let path_name = path.display();
    if unpacked_name(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        return Error::invalid(format!(
            "{path_name} is no file of vertices or edges; if it is the mapping that says what the others mean, give it \
             with --map {path_name}"
        ));
    }
    Error::invalid(format!(
        "{path_name}: the extension names no format (csv, tsv, dat, txt; parquet; json, jsonl, graphson; graphml, \
         xml): \
         name the format, or give the file a rule in a mapping"
    ))
}

/// The rules for the files of a group, which has at least one. The first file has the header of all.
fn group_rules(group: &FileGroup, delimiter: Option<char>) -> Result<Vec<FileRule>> {
    let mut rule = FileRule { label: group.label.clone(), delimiter, ..FileRule::default() };
    let first = &group.files[0];
    let (names, found) = header_names(first, delimiter).map_err(in_file(first))?;
    // A column with types replaces the label of the group.
    if group.kind == ElementKind::Edge && names.iter().any(|name| name.to_ascii_uppercase().ends_with(":TYPE")) {
        rule.label = None;
    }
    rule.delimiter = Some(found);
    let rest = FileRule { columns: Some(names), header: Some(false), ..rule.clone() };
    let mut rules = vec![rest; group.files.len()];
    rules[0] = rule;
    Ok(rules)
}
