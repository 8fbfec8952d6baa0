//! Suggestions for a name that does not exist: the known names that are spelled nearly like it.

/// `; did you mean …?` with at most three candidates, nearest first, or nothing. A candidate is near if it takes edits
/// of at most a third of the name's length. Case is ignored.
pub fn suggest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    const NAME_LENGTH_MAX: usize = 40;
    if name.len() > NAME_LENGTH_MAX {
        return String::new();
    }
    let limit = (name.len() / 3).clamp(1, 3);
    let mut near: Vec<(usize, &str)> = candidates
        .map(|candidate| (distance(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .collect();
    near.sort_unstable();
    near.dedup();
    let names: Vec<String> = near.iter().take(3).map(|(_, name)| format!("`{name}`")).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("; did you mean {}?", names.join(" or ")),
    }
}

/// The Levenshtein distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
