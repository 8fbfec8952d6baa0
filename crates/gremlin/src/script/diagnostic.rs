//! Errors that point at a position in a script: line, column, the text of the line, and a caret below it.

use mangrove_graph::{Error, ErrorKind};

use crate::bytecode::Position;

/// The characters of a long line that are shown before and after the position.
const EXCERPT_BEFORE: usize = 60;
const EXCERPT_AFTER: usize = 40;

/// A position in a script: as line and column, and as a byte offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenPosition {
    pub(super) position: Position,
    pub(super) offset: usize,
}

/// An error at a position of the script.
pub(super) fn error(kind: ErrorKind, text: &str, at: TokenPosition, message: &str) -> Error {
    let Position { line, column } = at.position;
    let (excerpt, caret) = excerpt(text, at.offset);
    Error::new(kind, format!("line {line}, column {column}: {message}\n  {excerpt}\n  {:caret$}^", ""))
}

/// The part of the line around a byte offset, and how many characters precede the offset in it.
fn excerpt(text: &str, offset: usize) -> (String, usize) {
    let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[offset..].find('\n').map_or(text.len(), |newline| offset + newline);
    let (before, after) = (&text[start..offset], text[offset..end].trim_end_matches('\r'));
    let from = before.char_indices().rev().nth(EXCERPT_BEFORE - 1).map_or(0, |(i, _)| i);
    let to = after.char_indices().nth(EXCERPT_AFTER).map_or(after.len(), |(i, _)| i);
    // A tab would move the caret.
    let shown: String = [&before[from..], &after[..to]].concat().replace('\t', " ");
    (shown, before[from..].chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_below_the_place() {
        let text = "g.V()\n  .énd(]";
        let at = TokenPosition { position: Position { line: 2, column: 8 }, offset: text.find(']').unwrap() };
        let error = error(ErrorKind::Syntax, text, at, "no");
        assert_eq!(error.message(), "line 2, column 8: no\n    .énd(]\n         ^");
    }
}
