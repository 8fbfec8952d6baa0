//! Links between documents must lead to existing files and headings.
//!
//! Only links of the form `[…](target)` are checked.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::files;

/// The links in the project's documents to a missing file, or to a missing heading.
pub fn broken_links() -> Vec<String> {
    let mut broken = Vec::new();
    let mut headings: HashMap<PathBuf, Vec<String>> = HashMap::new();
    for path in files::below(&files::root(), "md") {
        let text = files::text(&path);
        for (number, target) in links(&text) {
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let folder = path.parent().unwrap_or(Path::new(""));
            let to = if file.is_empty() { path.clone() } else { folder.join(file) };
            let place = format!("{}:{number}", files::shown(&path));
            if !to.exists() {
                broken.push(format!("{place}: {target}: there is no such file"));
            } else if !heading.is_empty() && to.extension().is_some_and(|extension| extension == "md") {
                let there = headings.entry(to.clone()).or_insert_with(|| anchors(&files::text(&to)));
                if !there.iter().any(|anchor| anchor == heading) {
                    broken.push(format!("{place}: {target}: the file has no such heading"));
                }
            }
        }
    }
    broken
}

/// The lines of a document outside fenced code blocks, with their numbers from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((number + 1, line))
    })
}

/// The targets of the links `[…](target)` to files or headings of the project, with their line numbers. Inline code
/// contains no links.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let outside_code: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        for part in outside_code.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or_default();
            let is_elsewhere = ["http:", "https:", "mailto:"].iter().any(|scheme| target.starts_with(scheme));
            if !is_elsewhere && !target.is_empty() {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// The anchors of a document's headings: lower case, hyphens for spaces, only letters, digits, hyphens and underscores.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).filter_map(|(_, line)| Some(line.strip_prefix('#')?.trim_start_matches('#').trim()));
    let anchor = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[cfg(test)]
mod tests {
    use super::{anchors, links};

    #[test]
    fn links_to_files_are_found() {
        let text =
            "See [a](b.md#c), [d](https://example.org), `[e](f.md)`.\n```\n[g](h.md)\n```\n[i](../j.md \"title\")\n";
        assert_eq!(links(text), [(1, "b.md#c".to_owned()), (5, "../j.md".to_owned())]);
    }

    #[test]
    fn anchors_are_made_of_headings() {
        assert_eq!(anchors("# One\n## `two` & 3, Four_5\n"), ["one", "two--3-four_5"]);
    }
}
