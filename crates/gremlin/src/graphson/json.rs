//! JSON as a tree whose nodes know their positions.
//!
//! The member that says the type of a value may be anywhere in its object, so reading needs a tree. Errors need
//! positions, which the trees of JSON libraries do not keep. Strings and numbers borrow from the message if they need
//! no unescaping, numbers stay text until their type is known, and objects keep all members, the last of which counts.
//! Levels are bounded (WIRE-2).

use std::borrow::Cow;

use mangrove_graph::{Error, ErrorKind, Result};

use crate::limits::NESTING_MAX;

/// The most levels of arrays and objects. A traversal inside a traversal takes six levels: the typed value, its
/// `@value`, the steps, the step, and in GraphSON 3 a list around it.
const DEPTH_MAX: usize = 6 * NESTING_MAX;

/// A value and the byte at which it begins.
#[derive(Debug)]
pub(super) struct Json<'a> {
    pub(super) at: usize,
    pub(super) kind: JsonKind<'a>,
}

/// The kinds of JSON values.
#[derive(Debug)]
pub(super) enum JsonKind<'a> {
    Null,
    Bool(bool),
    /// The number as it is written.
    Number(&'a str),
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// The member of a name; of several, the last.
    pub(super) fn member(&self, name: &str) -> Option<&Json<'a>> {
        match &self.kind {
            JsonKind::Object(members) => members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text of a string.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            JsonKind::String(text) => Some(text),
            _ => None,
        }
    }

    /// The kind of the value, for messages.
    pub(super) fn kind_name(&self) -> &'static str {
        match self.kind {
            JsonKind::Null => "null",
            JsonKind::Bool(_) => "a boolean",
            JsonKind::Number(_) => "a number",
            JsonKind::String(_) => "a string",
            JsonKind::Array(_) => "an array",
            JsonKind::Object(_) => "an object",
        }
    }

    /// An error at the position of this value.
    pub(super) fn malformed(&self, message: &str) -> Error {
        malformed(self.at, message)
    }
}

fn malformed(at: usize, message: &str) -> Error {
    Error::new(ErrorKind::Syntax, format!("byte {at} of the message: {message}"))
}

/// The text of a string; an error for any other kind of JSON.
pub(super) fn text<'j>(json: &'j Json<'_>) -> Result<&'j str> {
    json.text().ok_or_else(|| json.malformed(&format!("{} in place of a string", json.kind_name())))
}

/// The single value in a text.
pub(super) fn parse(text: &[u8]) -> Result<Json<'_>> {
    let text = std::str::from_utf8(text).map_err(|e| malformed(e.valid_up_to(), "the JSON is no UTF-8"))?;
    let mut parser = Parser { text, at: 0, depth: 0 };
    let json = parser.value()?;
    parser.blanks();
    match parser.peek() {
        None => Ok(json),
        Some(_) => Err(parser.malformed("something follows the end of the JSON")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn value(&mut self) -> Result<Json<'a>> {
        self.blanks();
        let at = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => JsonKind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => JsonKind::Number(self.number()?),
            Some(b't') => self.word("true", JsonKind::Bool(true))?,
            Some(b'f') => self.word("false", JsonKind::Bool(false))?,
            Some(b'n') => self.word("null", JsonKind::Null)?,
            Some(_) => return Err(self.malformed("a JSON value is expected here")),
            None => return Err(self.malformed("the JSON ends where a value is expected")),
        };
        Ok(Json { at, kind })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<JsonKind<'a>>) -> Result<JsonKind<'a>> {
        if self.depth == DEPTH_MAX {
            return Err(self.malformed(&format!("JSON nests deeper than {DEPTH_MAX} levels, the limit")));
        }
        self.depth += 1;
        self.at += 1;
        let kind = read(self)?;
        self.depth -= 1;
        Ok(kind)
    }

    fn array(&mut self) -> Result<JsonKind<'a>> {
        let mut items = Vec::new();
        if self.closes(b']') {
            return Ok(JsonKind::Array(items));
        }
        loop {
            items.push(self.value()?);
            if self.ends_after_comma(b']')? {
                return Ok(JsonKind::Array(items));
            }
        }
    }

    fn object(&mut self) -> Result<JsonKind<'a>> {
        let mut members = Vec::new();
        if self.closes(b'}') {
            return Ok(JsonKind::Object(members));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.malformed("the name of a member is expected here"));
            }
            let name = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.malformed("`:` is expected here"));
            }
            self.at += 1;
            members.push((name, self.value()?));
            if self.ends_after_comma(b'}')? {
                return Ok(JsonKind::Object(members));
            }
        }
    }

    /// Returns true if the collection ends before its first element.
    fn closes(&mut self, close: u8) -> bool {
        self.blanks();
        let closes = self.peek() == Some(close);
        self.at += usize::from(closes);
        closes
    }

    /// Passes a comma and returns false, or the end of the collection and returns true.
    fn ends_after_comma(&mut self, close: u8) -> Result<bool> {
        self.blanks();
        let ends = match self.peek() {
            Some(b',') => false,
            Some(byte) if byte == close => true,
            _ => return Err(self.malformed(&format!("`,` or `{}` is expected here", char::from(close)))),
        };
        self.at += 1;
        Ok(ends)
    }

    fn word(&mut self, word: &str, kind: JsonKind<'a>) -> Result<JsonKind<'a>> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.malformed("a JSON value is expected here"));
        }
        self.at += word.len();
        Ok(kind)
    }

    fn number(&mut self) -> Result<&'a str> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let leading = self.at;
        let whole = self.digits();
        if whole == 0 || (whole > 1 && self.text.as_bytes()[leading] == b'0') {
            return Err(malformed(start, "this is no number of JSON"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(malformed(start, "this is no number of JSON: digits follow its point"));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return Err(malformed(start, "this is no number of JSON: digits follow its exponent"));
            }
        }
        Ok(&self.text[start..self.at])
    }

    fn digits(&mut self) -> usize {
        let count = self.text.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn string(&mut self) -> Result<Cow<'a, str>> {
        let start = self.at;
        self.at += 1;
        let mut resolved = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(length) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\') || byte < 0x20) else {
                return Err(malformed(start, "this string has no end"));
            };
            let plain = &rest[..length];
            self.at += length + 1;
            match rest.as_bytes()[length] {
                b'"' if resolved.is_empty() => return Ok(Cow::Borrowed(plain)),
                b'"' => {
                    resolved.push_str(plain);
                    return Ok(Cow::Owned(resolved));
                }
                b'\\' => {
                    resolved.push_str(plain);
                    let character = self.escape()?;
                    resolved.push(character);
                }
                _ => {
                    self.at -= 1;
                    return Err(self.malformed("a control character in a string; write it as an escape"));
                }
            }
        }
    }

    /// The character of an escape whose backslash has been passed.
    fn escape(&mut self) -> Result<char> {
        let letter = self.peek();
        self.at += 1;
        Ok(match letter {
            Some(letter @ (b'"' | b'\\' | b'/')) => char::from(letter),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => {
                self.at -= 1;
                return Err(self.malformed("this is no escape of JSON"));
            }
        })
    }

    /// The character after `\u`; two surrogates are one character.
    fn unicode(&mut self) -> Result<char> {
        let first = self.code_unit()?;
        if let Some(character) = char::from_u32(u32::from(first)) {
            return Ok(character);
        }
        if self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            let second = self.code_unit()?;
            if let Some(Ok(character)) = char::decode_utf16([first, second]).next() {
                return Ok(character);
            }
        }
        Err(self.malformed("half of a surrogate pair without the other half"))
    }

    fn code_unit(&mut self) -> Result<u16> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let hexadecimal = digits.filter(|four| four.iter().all(u8::is_ascii_hexdigit));
        let unit = hexadecimal.and_then(|four| u16::from_str_radix(std::str::from_utf8(four).ok()?, 16).ok());
        let unit = unit.ok_or_else(|| self.malformed("four hexadecimal digits are expected here"))?;
        self.at += 4;
        Ok(unit)
    }

    fn blanks(&mut self) {
        let bytes = &self.text.as_bytes()[self.at..];
        self.at += bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn malformed(&self, message: &str) -> Error {
        malformed(self.at, message)
    }
}

/// Appends a string with its quotes.
pub(super) fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut written = 0;
    for (index, byte) in text.bytes().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..0x20 => b"",
            _ => continue,
        };
        out.extend_from_slice(&text.as_bytes()[written..index]);
        match escape {
            b"" => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            escape => out.extend_from_slice(escape),
        }
        written = index + 1;
    }
    out.extend_from_slice(&text.as_bytes()[written..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn refused(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().message().to_owned()
    }

    #[test]
    fn what_is_no_json_is_refused_at_its_place() {
        for (text, at) in [
            ("", 0),
            ("  x", 2),
            ("[1,]", 3),
            ("[1 2]", 3),
            (r#"{"a" 1}"#, 5),
            ("{a:1}", 1),
            ("01", 0),
            ("1.", 0),
            ("-", 0),
            ("1e+", 0),
            ("tru", 0),
            ("1 1", 2),
            ("\"abc", 0),
            (r#""\q""#, 2),
            (r#""\ud800""#, 7),
            (r#""\u12""#, 3),
            ("\"\n\"", 1),
        ] {
            let message = refused(text);
            assert!(message.starts_with(&format!("byte {at} of the message")), "{text:?}: {message}");
        }
        assert!(parse(b"\"\xff\"").unwrap_err().message().starts_with("byte 1 of"));
    }

    #[test]
    fn nesting_has_a_limit_that_the_stack_bears() {
        let deep = |levels: usize| [vec![b'['; levels], vec![b']'; levels]].concat();
        parse(&deep(DEPTH_MAX)).unwrap();
        assert!(parse(&deep(DEPTH_MAX + 1)).unwrap_err().message().contains("nests deeper"));
        assert!(parse(&vec![b'['; 1 << 20]).is_err());
    }

    #[test]
    fn the_last_member_of_a_name_counts() {
        let json = parse(br#" {"a": 1, "b": [ ], "a": "\u00e9\ud83d\ude00"} "#).unwrap();
        assert_eq!(json.member("a").and_then(Json::text), Some("é😀"));
        assert_eq!(json.member("a").map(|a| a.at), Some(25));
    }

    proptest! {
        #[test]
        fn every_string_comes_back(text in any::<String>()) {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            let json = parse(&out).unwrap();
            prop_assert_eq!(json.text(), Some(text.as_str()));
        }
    }
}
