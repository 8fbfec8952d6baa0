//! Every file of integration tests must be part of a program, and no unit test is in a target without them.
//!
//! Cargo makes a program of each file in `tests`, unless `Cargo.toml` says `autotests = false`. Then the programs are listed
//! there, and a file runs only if it is one of them, or a module of one.

use std::path::Path;

use crate::files;

/// The paths in folders `tests` that are neither a listed program nor a module of one.
pub fn forgotten() -> Vec<String> {
    let mut forgotten = Vec::new();
    for manifest in files::below(&files::root(), "toml") {
        let text = files::text(&manifest);
        let folder = manifest.parent().unwrap_or(Path::new("")).join("tests");
        if !text.lines().any(|line| line == "autotests = false") || !folder.is_dir() {
            continue;
        }
        let programs = programs(&text);
        let roots: Vec<String> = programs.iter().map(|path| files::text(&folder.join(path))).collect();
        let sources = files::below(&folder, "rs");
        let names = sources.iter().filter_map(|path| name(path.strip_prefix(&folder).ok()?));
        let is_forgotten = |name: &String| !programs.contains(name) && !roots.iter().any(|root| has(root, name));
        forgotten.extend(names.filter(is_forgotten).map(|name| files::shown(&folder.join(name))));
    }
    forgotten
}

/// The files with unit tests that do not run, because `Cargo.toml` says `test = false` of their target.
pub fn switched_off() -> Vec<String> {
    let mut found = Vec::new();
    for manifest in files::below(&files::root(), "toml") {
        let text = files::text(&manifest);
        let source = manifest.parent().unwrap_or(Path::new("")).join("src");
        let without = without_tests(&text);
        if without.contains(&"[lib]") {
            let is_program = |path: &Path| path == source.join("main.rs");
            found.extend(files::below(&source, "rs").into_iter().filter(|path| !is_program(path)));
        }
        if without.contains(&"[[bin]]") {
            found.push(source.join("main.rs"));
        }
    }
    found.retain(|path| files::text(path).lines().any(|line| line.trim() == "#[test]"));
    found.iter().map(|path| files::shown(path)).collect()
}

/// The headings of targets that say `test = false`.
fn without_tests(manifest: &str) -> Vec<&str> {
    let mut heading = "";
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            heading = line;
        } else if line == "test = false" {
            found.push(heading);
        }
    }
    found
}

/// The paths of the listed programs, relative to `tests`.
fn programs(manifest: &str) -> Vec<String> {
    let path = |line: &str| Some(line.strip_prefix("path = \"tests/")?.strip_suffix('"')?.to_owned());
    manifest.lines().filter_map(path).collect()
}

/// The path of a file, relative to `tests`, if it must be a program or a module of one: it is not in a folder, or is the
/// root of a folder's modules.
fn name(path: &Path) -> Option<String> {
    let name = path.to_str()?;
    match name.split('/').collect::<Vec<_>>()[..] {
        [_] | [_, "main.rs" | "mod.rs"] => Some(name.to_owned()),
        _ => None,
    }
}

/// Returns true if a program has the file of this path as a module.
fn has(root: &str, name: &str) -> bool {
    let module = name.trim_end_matches("/mod.rs").trim_end_matches(".rs");
    root.lines().any(|line| line.trim_start_matches("pub ") == format!("mod {module};"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_listed_by_their_paths() {
        let manifest = "[lib]\npath = \"src/lib.rs\"\n[[test]]\nname = \"all\"\npath = \"tests/main.rs\"\n";
        assert_eq!(programs(manifest), ["main.rs"]);
    }

    #[test]
    fn targets_without_tests_are_found() {
        let manifest = "[lib]\ntest = false\n[[bin]]\nname = \"x\"\n[[example]]\ntest = true\n";
        assert_eq!(without_tests(manifest), ["[lib]"]);
    }

    #[test]
    fn roots_of_modules_have_a_name() {
        let names = ["limits.rs", "common/mod.rs", "churn/main.rs", "common/client.rs", "simulator/parts/mod.rs"]
            .map(|path| name(Path::new(path)).is_some());
        assert_eq!(names, [true, true, true, false, false]);
    }

    #[test]
    fn a_module_is_found_by_its_declaration() {
        let root = "//! mod absent;\n\nmod common;\npub mod limits;\n";
        let found = ["common/mod.rs", "limits.rs", "absent.rs", "common/main.rs"].map(|name| has(root, name));
        assert_eq!(found, [true, true, false, false]);
    }
}
