//! Ids as files write them.
//!
//! - **LOAD-6.** Two ids that differ in a file never become one. Only the plain decimal form of a 64-bit integer is a
//!   number; `007`, `+7` and `7.0` are texts.

use mangrove_graph::UserId;
use smol_str::SmolStr;

/// An id as a file has it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum FileId {
    /// A whole number in its plain decimal form.
    Int(i64),
    /// Anything else.
    Text(SmolStr),
}

impl FileId {
    /// LOAD-6: reads an id. The plain decimal form of a 64-bit integer is that integer; anything else is text.
    pub(crate) fn parse(text: &str) -> Self {
        match plain_integer(text.as_bytes()) {
            Some(number) => FileId::Int(number),
            None => FileId::Text(text.into()),
        }
    }

    /// The user id of the element in the graph.
    pub(crate) fn to_user_id(&self) -> UserId {
        match self {
            FileId::Int(number) => UserId::int(*number),
            FileId::Text(text) => UserId::String(text.clone()),
        }
    }
}

impl From<&UserId> for FileId {
    fn from(id: &UserId) -> Self {
        match id {
            UserId::Int(id) => FileId::Int(id.number),
            UserId::String(text) => FileId::Text(text.clone()),
            // A file has only the text of a UUID, so both name the same element.
            UserId::Uuid(uuid) => FileId::Text(uuid.to_string().into()),
        }
    }
}

impl std::fmt::Display for FileId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileId::Int(number) => write!(f, "{number}"),
            FileId::Text(text) => write!(f, "'{text}'"),
        }
    }
}

/// The integer that this is the plain decimal form of: no plus sign, no leading zeros, within 64 bits.
pub(crate) fn plain_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let plain = match digits {
        [] => false,
        [b'0'] => !negative,
        [first, ..] => *first != b'0',
    };
    if !plain || digits.len() > 19 {
        return None;
    }
    // Built from negative digits, because the negative range has one number more.
    let mut number: i64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_sub(i64::from(digit - b'0'))?;
    }
    if negative { Some(number) } else { number.checked_neg() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_plain_decimal_form_is_a_number() {
        for (text, number) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("99999999999999999999", None),
            ("007", None),
            ("-0", None),
            ("+1", None),
            ("", None),
            ("-", None),
            ("1a", None),
        ] {
            assert_eq!(plain_integer(text.as_bytes()), number, "{text}");
        }
    }
}
