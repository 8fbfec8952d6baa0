//! Names of objects and directories.
//!
//! A name is parts with `/` between them, all of it at most [`NAME_BYTES_MAX`] bytes. A part begins with an ASCII letter
//! or digit, goes on with these and `-`, `_`, `.`, and has at most [`PART_BYTES_MAX`] bytes. So every name is at once a
//! path below a directory of any operating system, and a key of any object store that needs no escapes. Names that begin
//! with a dot are left to homes for their own files.
//!
//! Callers use no name both for an object and for a directory.

use std::borrow::Borrow;
use std::fmt;

use smol_str::SmolStr;

use super::{HomeError, HomeErrorKind, HomeResult};

/// The longest name, in bytes. Object stores take 1,024 bytes, a prefix of the home included.
pub const NAME_BYTES_MAX: usize = 512;

/// The longest part of a name, in bytes. File systems take 255 bytes.
pub const PART_BYTES_MAX: usize = 200;

/// The checked name of an object or a directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(SmolStr);

impl Name {
    /// Checks a name.
    pub fn new(text: &str) -> HomeResult<Self> {
        let wrong = |why: String| {
            Err(HomeError::new(
                HomeErrorKind::Invalid,
                format!("{:?} is no name of an object: {why}", text.chars().take(NAME_BYTES_MAX).collect::<String>()),
            ))
        };
        if text.len() > NAME_BYTES_MAX {
            return wrong(format!("it has {} bytes, and the most is {NAME_BYTES_MAX}", text.len()));
        }
        for part in text.split('/') {
            if part.is_empty() {
                return wrong("a part of it is empty; write parts with one `/` between them".to_owned());
            }
            if part.len() > PART_BYTES_MAX {
                return wrong(format!("a part of it has {} bytes, and the most is {PART_BYTES_MAX}", part.len()));
            }
            if !part.starts_with(|first: char| first.is_ascii_alphanumeric()) {
                return wrong(format!("the part {part:?} does not begin with a letter or digit"));
            }
            let strange = part.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'));
            if let Some(strange) = strange {
                return wrong(format!("it has {strange:?}; use ASCII letters, digits, `-`, `_` and `.`"));
            }
        }
        Ok(Name(SmolStr::new(text)))
    }

    /// The name of an object in this directory.
    pub fn join(&self, part: &str) -> HomeResult<Self> {
        Name::new(&format!("{self}/{part}"))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directory that the object is in; `None` if it is in none.
    pub fn directory(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(directory, _)| directory)
    }

    /// The last part.
    pub fn last_part(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_are_taken_as_they_are() {
        let long = format!("{0}/{0}", "x".repeat(PART_BYTES_MAX));
        for text in ["a", "manifest/57.json", "log/0a1B2c3d-00000000000000ff/1", "a/b.._c", &long] {
            assert_eq!(Name::new(text).unwrap().as_str(), text);
        }
        let name = Name::new("log").unwrap().join("a-1").unwrap();
        assert_eq!((name.directory(), name.last_part()), (Some("log"), "a-1"));
        assert_eq!(Name::new("log").unwrap().directory(), None);
    }

    #[test]
    fn bad_names_are_refused_with_the_reason() {
        let (part, whole) = ("x".repeat(PART_BYTES_MAX + 1), "x/".repeat(NAME_BYTES_MAX));
        let cases = [
            ("", "is empty"),
            ("/a", "is empty"),
            ("a/", "is empty"),
            ("a//b", "is empty"),
            ("..", "\"..\" does not begin"),
            ("a/../b", "\"..\" does not begin"),
            ("a/.", "\".\" does not begin"),
            (".draft/1", "\".draft\" does not begin"),
            ("a b", "has ' '"),
            ("a\\b", "has '\\\\'"),
            ("a\0", "has '\\0'"),
            ("é", "does not begin"),
            ("aé", "has 'é'"),
            (&part, "the most is 200"),
            (&whole, "the most is 512"),
        ];
        for (text, reason) in cases {
            let error = Name::new(text).unwrap_err();
            assert_eq!(error.kind(), HomeErrorKind::Invalid);
            assert!(error.message().contains(reason), "{text:?}: {error}");
        }
        assert!(Name::new("log").unwrap().join("../x").is_err());
    }
}
