//! Tokens of a script.
//!
//! The lexer returns slices of the text and decides nothing about their meaning: a name may be a step, an enum token or
//! a variable. It looks at every byte a bounded number of times, so lexing is linear in the length of the script
//! (WIRE-7).

use mangrove_graph::{ErrorKind, Result};

use super::diagnostic::{self, TokenPosition};
use super::names;
use crate::bytecode::Position;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name, keywords among them.
    Name,
    /// An integer with its sign and suffix.
    Integer,
    /// A floating-point number with its sign and suffix, or a signed infinity.
    Float,
    /// A string with its quotes.
    String,
    /// One of `( ) [ ] { } , . : ; =`.
    Mark(u8),
    /// The end of the script.
    End,
}

/// A token and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    pub(super) at: TokenPosition,
}

impl Token<'_> {
    pub(super) fn is(&self, mark: u8) -> bool {
        self.kind == TokenKind::Mark(mark)
    }

    /// The token as error messages show it.
    pub(super) fn describe(&self) -> String {
        match self.kind {
            TokenKind::End => "the end of the script".to_owned(),
            _ if self.text.chars().count() > 40 => {
                format!("`{}…`", self.text.chars().take(40).collect::<String>())
            }
            _ => format!("`{}`", self.text),
        }
    }
}

/// Cuts a script into tokens.
pub(super) struct Lexer<'a> {
    text: &'a str,
    offset: usize,
    position: Position,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Lexer { text, offset: 0, position: Position { line: 1, column: 1 } }
    }

    /// The next token. At the end of the script it is always `End`.
    pub(super) fn token(&mut self) -> Result<Token<'a>> {
        self.skip_blanks();
        let at = TokenPosition { position: self.position, offset: self.offset };
        let rest = &self.text[self.offset..];
        let bytes = rest.as_bytes();
        let (kind, length) = match bytes.first() {
            None => (TokenKind::End, 0),
            Some(&mark @ (b'(' | b')' | b'[' | b']' | b'{' | b'}' | b',' | b'.' | b':' | b';' | b'=')) => {
                (TokenKind::Mark(mark), 1)
            }
            Some(b'0'..=b'9') => number(bytes, 0),
            Some(b'+' | b'-') if bytes.get(1).is_some_and(u8::is_ascii_digit) => number(bytes, 1),
            Some(b'+' | b'-') if name_length(&rest[1..]) == "Infinity".len() && rest[1..].starts_with("Infinity") => {
                (TokenKind::Float, 1 + "Infinity".len())
            }
            Some(b'"' | b'\'') => match string_length(bytes) {
                Some(length) => (TokenKind::String, length),
                None => return Err(self.error(ErrorKind::Syntax, "this string has no closing quote")),
            },
            Some(_) => match name_length(rest) {
                0 => return Err(self.stray_character(rest)),
                length => (TokenKind::Name, length),
            },
        };
        self.advance(length);
        if matches!(kind, TokenKind::Integer | TokenKind::Float) && name_length(&self.text[self.offset..]) > 0 {
            return Err(self.error(
                ErrorKind::Syntax,
                "a number is followed by this letter; suffixes are b, s, i, l and n for integers, f, d and m for others",
            ));
        }
        Ok(Token { kind, text: &rest[..length], at })
    }

    /// Returns true if a string without a closing quote comes next.
    pub(super) fn at_open_string(&self) -> bool {
        self.text[self.offset..].starts_with(['"', '\''])
    }

    /// Skips white space and `//` comments.
    fn skip_blanks(&mut self) {
        loop {
            let bytes = &self.text.as_bytes()[self.offset..];
            let blanks = bytes.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n' | 0x0c)).count();
            let comment = match bytes[blanks..].starts_with(b"//") {
                true => bytes[blanks..].iter().take_while(|b| **b != b'\n').count(),
                false => 0,
            };
            if blanks + comment == 0 {
                return;
            }
            self.advance(blanks + comment);
        }
    }

    fn advance(&mut self, length: usize) {
        let end = self.offset + length;
        for byte in &self.text.as_bytes()[self.offset..end] {
            match byte {
                b'\n' => self.position = Position { line: self.position.line + 1, column: 1 },
                // Continuation bytes of UTF-8 are no characters of their own.
                byte if byte & 0xc0 == 0x80 => {}
                _ => self.position.column += 1,
            }
        }
        self.offset = end;
    }

    fn stray_character(&self, rest: &str) -> mangrove_graph::Error {
        match rest.chars().next() {
            Some('-') if rest.starts_with("->") => self.error(ErrorKind::Unsupported, names::LAMBDA_REFUSED),
            Some('-' | '+') => self.error(ErrorKind::Syntax, "a number is expected after a sign"),
            Some(c) => {
                self.error(ErrorKind::Syntax, &format!("the character `{}` has no place here", c.escape_debug()))
            }
            None => self.error(ErrorKind::Syntax, "the script ends here"),
        }
    }

    fn error(&self, kind: ErrorKind, message: &str) -> mangrove_graph::Error {
        diagnostic::error(kind, self.text, TokenPosition { position: self.position, offset: self.offset }, message)
    }
}

/// The length in bytes of the name that the text begins with.
fn name_length(text: &str) -> usize {
    let start = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '$' || (!c.is_ascii() && c.is_alphabetic());
    let part = |c: char| start(c) || c.is_ascii_digit() || (!c.is_ascii() && c.is_alphanumeric());
    match text.chars().next() {
        Some(c) if start(c) => text.find(|c| !part(c)).unwrap_or(text.len()),
        _ => 0,
    }
}

/// The length of the string that begins with a quote; `None` if it never closes.
fn string_length(bytes: &[u8]) -> Option<usize> {
    let quote = bytes[0];
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// The kind and length of the number whose digits begin at `digits`.
fn number(bytes: &[u8], digits: usize) -> (TokenKind, usize) {
    let run = |from: usize, accept: fn(&u8) -> bool| from + bytes[from..].iter().take_while(|b| accept(b)).count();
    if bytes[digits] == b'0' && matches!(bytes.get(digits + 1), Some(b'x' | b'X')) {
        let end = run(digits + 2, |b| b.is_ascii_hexdigit() || *b == b'_');
        let suffix = matches!(bytes.get(end), Some(b's' | b'S' | b'i' | b'I' | b'l' | b'L' | b'n' | b'N'));
        return (TokenKind::Integer, end + usize::from(suffix));
    }
    let decimal: fn(&u8) -> bool = |b| b.is_ascii_digit() || *b == b'_';
    let mut end = run(digits, decimal);
    let mut kind = TokenKind::Integer;
    // `1..5` is a range, so a `.` belongs to the number only before a digit.
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        kind = TokenKind::Float;
        end = run(end + 1, decimal);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            kind = TokenKind::Float;
            end = run(end + 1 + sign, decimal);
        }
    }
    match bytes.get(end) {
        Some(b'f' | b'F' | b'd' | b'D' | b'm' | b'M') => (TokenKind::Float, end + 1),
        Some(b'b' | b'B' | b's' | b'S' | b'i' | b'I' | b'l' | b'L' | b'n' | b'N') if kind == TokenKind::Integer => {
            (kind, end + 1)
        }
        _ => (kind, end),
    }
}
