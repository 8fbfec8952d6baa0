//! Finds which modules of a crate import which, and where imports form a cycle.
//!
//! A *module* is a file or a folder; tests are left out. Modules of one folder are siblings. A sibling imports another
//! one if any of its files names an item of the other: by `crate::…` or `super::…`, in a `use` or in full, or by a name
//! that the crate's root re-exports. Imports from a module's own folder, and from the folder to its modules, do not
//! count: a folder's own file may be its façade.
//!
//! Limits: names within arguments of macros are not seen.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use syn::visit::Visit;

use crate::files;

/// The path of a module within its crate, such as `adjacency::tail`. That of the crate's root is empty.
pub type ModulePath = Vec<String>;

/// For each sibling of a folder, the siblings that it imports.
pub type Siblings = BTreeMap<String, BTreeSet<String>>;

/// The modules of a crate, and what they import.
#[derive(Debug, Default)]
pub struct Imports {
    modules: BTreeSet<ModulePath>,
    /// Items that each module names, as paths from the root.
    imports: BTreeSet<(ModulePath, Vec<String>)>,
    /// Names of the root that re-export items of modules.
    exports: HashMap<String, Vec<String>>,
}

impl Imports {
    /// Reads the sources of a crate of this project, by the name of its folder.
    ///
    /// # Panics
    ///
    /// If a file cannot be read or parsed.
    pub fn of_crate(name: &str) -> Imports {
        let source = files::root().join("crates").join(name).join("src");
        let texts = files::below(&source, "rs").into_iter().filter(|path| !is_test_file(path)).map(|path| {
            let module = module_of(path.strip_prefix(&source).expect("the file is below the folder"));
            (files::shown(&path), module, files::text(&path))
        });
        Imports::of_texts(texts)
    }

    fn of_texts(texts: impl IntoIterator<Item = (String, ModulePath, String)>) -> Imports {
        let mut all = Imports::default();
        for (shown, module, text) in texts {
            let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{shown}: {error}"));
            all.modules.insert(module.clone());
            let mut reader = Reader { file: module.clone(), module, found: &mut all };
            reader.visit_file(&file);
        }
        all
    }

    /// The folders with more than one module, each with its modules and the siblings that each of them imports.
    pub fn folders(&self) -> BTreeMap<ModulePath, Siblings> {
        let mut folders: BTreeMap<ModulePath, Siblings> = BTreeMap::new();
        for module in &self.modules {
            for depth in 1..=module.len() {
                let folder = folders.entry(module[..depth - 1].to_vec()).or_default();
                folder.entry(module[depth - 1].clone()).or_default();
            }
        }
        for (from, item) in &self.imports {
            let item = match item.first().and_then(|first| self.exports.get(first)) {
                Some(exported) if !self.modules.contains(&item[..1]) => exported,
                _ => item,
            };
            let shared = from.iter().zip(item).take_while(|(a, b)| a == b).count();
            let (Some(importer), Some(imported)) = (from.get(shared), item.get(shared)) else { continue };
            let Some(siblings) = folders.get_mut(&from[..shared]) else { continue };
            if siblings.contains_key(imported) {
                siblings.get_mut(importer).expect("the importer is a module").insert(imported.clone());
            }
        }
        folders
    }

    /// The cycles: for each, the folder and the modules that import one another.
    pub fn cycles(&self) -> Vec<(ModulePath, Vec<String>)> {
        let folders = self.folders();
        folders
            .iter()
            .flat_map(|(folder, siblings)| cycles(siblings).into_iter().map(|cycle| (folder.clone(), cycle)))
            .collect()
    }
}

/// Reads one file.
struct Reader<'a> {
    /// The module of the file.
    file: ModulePath,
    /// The module being read: that of the file, or an inline module in it.
    module: ModulePath,
    found: &'a mut Imports,
}

impl Reader<'_> {
    /// Records the import of an item whose path begins with `crate`, `self` or `super`.
    fn import(&mut self, path: &[String]) {
        let mut item = match path.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => self.module.clone(),
            _ => return,
        };
        for name in path {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => _ = item.pop(),
                _ => item.push(name.clone()),
            }
        }
        if !item.is_empty() {
            self.found.imports.insert((self.file.clone(), item));
        }
    }

    /// Records the imports of a `use` whose tree begins after the path `before`.
    fn import_tree(&mut self, before: &[String], tree: &syn::UseTree, is_export: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.import_tree(&with(&path.ident), &path.tree, is_export),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.import_tree(before, item, is_export)),
            syn::UseTree::Glob(_) => self.import(before),
            syn::UseTree::Name(name) => self.import_name(&with(&name.ident), &name.ident, is_export),
            syn::UseTree::Rename(rename) => self.import_name(&with(&rename.ident), &rename.rename, is_export),
        }
    }

    /// Records the import of a path by a `use`, and its export under `name` if the root re-exports it.
    fn import_name(&mut self, path: &[String], name: &syn::Ident, is_export: bool) {
        if is_export && self.module.is_empty() && path[0] != "crate" {
            self.found.exports.insert(name.to_string(), path.to_vec());
        }
        self.import(path);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if is_for_tests(&module.attrs) || module.content.is_none() {
            return;
        }
        self.module.push(module.ident.to_string());
        syn::visit::visit_item_mod(self, module);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.import_tree(&[], &item.tree, !matches!(item.vis, syn::Visibility::Inherited));
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_item_fn(self, item);
        }
    }

    // The visibility of an item (`pub(in …)`) is no import.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 {
            self.import(&names);
        }
        syn::visit::visit_path(self, path);
    }
}

/// Returns true if a `cfg` among the attributes restricts an item to tests.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let condition = list.tokens.to_string();
        condition.contains("test") && !condition.contains("not")
    })
}

fn is_test_file(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
}

/// The module of a file, by its path below `src`.
fn module_of(path: &Path) -> ModulePath {
    let mut names: ModulePath =
        path.with_extension("").components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|last| last == "mod" || (names.len() == 1 && (last == "lib" || last == "main"))) {
        names.pop();
    }
    names
}

/// The strongly connected sets of modules with more than one member.
fn cycles(siblings: &Siblings) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        siblings.keys().map(|from| (from, reach(siblings, from))).collect();
    let mut cycles: BTreeSet<Vec<String>> = BTreeSet::new();
    for (from, there) in &reached {
        let cycle: Vec<String> =
            there.iter().filter(|to| reached[**to].contains(from)).map(|to| (*to).clone()).collect();
        if cycle.len() > 1 {
            cycles.insert(cycle);
        }
    }
    cycles.into_iter().collect()
}

/// All modules that a module imports, directly or indirectly.
fn reach<'a>(siblings: &'a Siblings, from: &'a String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut ahead = vec![from];
    while let Some(module) = ahead.pop() {
        ahead.extend(siblings[module].iter().filter(|next| reached.insert(*next)));
    }
    reached
}

/// The text form of the path of a folder in a crate, such as `store::adjacency`.
pub fn shown(crate_name: &str, folder: &[String]) -> String {
    folder.iter().fold(crate_name.to_owned(), |path, name| format!("{path}::{name}"))
}

/// The modules of a folder as text, one a line. A module comes after the modules that it imports, unless they form a
/// cycle.
pub fn draw(siblings: &Siblings) -> String {
    let mut drawn: BTreeSet<&String> = BTreeSet::new();
    let mut text = String::new();
    let width = siblings.keys().map(String::len).max().unwrap_or(0);
    while drawn.len() < siblings.len() {
        let is_ready = |module: &&String| siblings[*module].iter().all(|import| drawn.contains(import));
        let ahead: Vec<&String> = siblings.keys().filter(|module| !drawn.contains(*module)).collect();
        let mut ready: Vec<&String> = ahead.iter().copied().filter(|module| is_ready(module)).collect();
        if ready.is_empty() {
            // Only cycles and modules above them are left: continue with the module with the fewest missing imports.
            let missing = |module: &&String| siblings[*module].iter().filter(|import| !drawn.contains(*import)).count();
            ready.extend(ahead.into_iter().min_by_key(missing));
        }
        for module in &ready {
            let imports: Vec<&str> = siblings[*module].iter().map(String::as_str).collect();
            text += format!("{module:width$}  {}", imports.join(" ")).trim_end();
            text.push('\n');
        }
        drawn.extend(ready);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(files: &[(&str, &str)]) -> Imports {
        let texts =
            files.iter().map(|(path, text)| ((*path).to_owned(), module_of(Path::new(path)), (*text).to_owned()));
        Imports::of_texts(texts)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_cycle_is_found_however_it_is_written() {
        let ways = [
            "use crate::b::Thing;",
            "use crate::{a, b::{Other, Thing}};",
            "use super::b::*;",
            "fn f() -> crate::b::Thing { todo() }",
            "use crate::Thing;",
            "impl crate::b::Trait for X {}",
            "mod inner { use super::super::b; }",
        ];
        for way in ways {
            let all =
                imports(&[("lib.rs", "mod a; mod b; pub use b::Thing;"), ("a.rs", way), ("b/mod.rs", "use crate::a;")]);
            assert_eq!(all.cycles(), [(Vec::new(), names(&["a", "b"]))], "{way}");
        }
    }

    #[test]
    fn tests_and_visibility_make_no_cycle() {
        let ways = [
            "#[cfg(test)] mod tests { use crate::b::Thing; }",
            "#[cfg(test)] use crate::b::Thing;",
            "pub(in crate::b) fn f() {}",
            "use other::b;",
        ];
        for way in ways {
            let all = imports(&[("lib.rs", ""), ("a.rs", way), ("b.rs", "use crate::a;")]);
            assert!(all.cycles().is_empty(), "{way}");
        }
    }

    #[test]
    fn cycles_within_a_folder_are_its_own() {
        let all = imports(&[
            ("a/mod.rs", "mod x; mod y; pub use x::X;"),
            ("a/x.rs", "use super::y::Y; use crate::b::B;"),
            ("a/y.rs", "use super::x::X;"),
            ("b.rs", ""),
        ]);
        assert_eq!(all.cycles(), [(names(&["a"]), names(&["x", "y"]))]);
        assert_eq!(draw(&all.folders()[&Vec::new()]), "b\na  b\n");
    }
}
