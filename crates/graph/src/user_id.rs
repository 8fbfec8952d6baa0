//! The id that a user knows an element by: an integer, a string or a UUID.
//!
//! A user id is chosen by the client, or is the [external number](crate::VertexId::external) of an element without a
//! chosen id. The store translates it into an internal id. Code above the store uses a user id for a look-up only, and
//! then keeps the internal id.

use std::fmt;

use smol_str::SmolStr;
use uuid::Uuid;

use crate::value::Value;

/// The id by which a user knows an element. Integers of every width are the same id: `1`, `1L` and `1.0` name one
/// element, as with TinkerPop's id managers. The string `"1"` is another id.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum UserId {
    /// A whole number.
    Int(IntId),
    /// A string.
    String(SmolStr),
    /// A UUID.
    Uuid(Uuid),
}

/// The integer of [`UserId::Int`], with the width in which clients see it. The width is no part of equality.
#[derive(Clone, Copy, Debug)]
pub struct IntId {
    /// The number.
    pub number: i64,
    /// True if the id was given as a 32-bit integer, and is shown as one.
    pub narrow: bool,
}

impl PartialEq for IntId {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl Eq for IntId {}
impl std::hash::Hash for IntId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

/// How the values that a traversal gives as ids are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdRule {
    /// As they are: the string `"1"` and the number 1 are two ids.
    #[default]
    Any,
    /// A string that spells a 64-bit integer stands for the integer, for clients that know ids as text only.
    Numbers,
}

impl IdRule {
    /// The id that a value stands for, as a value. A list of ids is read member by member.
    pub fn canonical(self, value: &Value) -> Value {
        match (self, value) {
            (IdRule::Numbers, Value::String(text)) => text.parse().map_or_else(|_| value.clone(), Value::I64),
            (IdRule::Numbers, Value::List(values)) => {
                Value::list(values.iter().map(|value| self.canonical(value)).collect())
            }
            _ => value.clone(),
        }
    }

    /// The id in a value: [`UserId::from_value`] after [`IdRule::canonical`].
    pub fn read(self, value: &Value) -> Option<UserId> {
        match (self, value) {
            (IdRule::Numbers, Value::String(_)) => UserId::from_value(&self.canonical(value)),
            _ => UserId::from_value(value),
        }
    }
}

impl UserId {
    /// A 64-bit integer id.
    pub fn int(number: i64) -> Self {
        UserId::Int(IntId { number, narrow: false })
    }

    /// The id in a value. Integers of at most 64 bits, whole floats up to 2^53, strings and UUIDs are ids; other values
    /// are not.
    pub fn from_value(value: &Value) -> Option<Self> {
        Some(match value {
            Value::I8(n) => UserId::int(i64::from(*n)),
            Value::I16(n) => UserId::int(i64::from(*n)),
            Value::I32(n) => UserId::Int(IntId { number: i64::from(*n), narrow: true }),
            Value::I64(n) => UserId::int(*n),
            Value::F32(n) => UserId::int(whole(f64::from(*n))?),
            Value::F64(n) => UserId::int(whole(*n)?),
            Value::BigInt(n) => UserId::int(i64::try_from(n.as_ref()).ok()?),
            Value::String(s) => UserId::String(s.clone()),
            Value::Uuid(u) => UserId::Uuid(*u),
            _ => return None,
        })
    }

    /// The id as a client sees it.
    pub fn to_value(&self) -> Value {
        match self {
            UserId::Int(IntId { number, narrow: true }) => match i32::try_from(*number) {
                Ok(n) => Value::I32(n),
                Err(_) => Value::I64(*number),
            },
            UserId::Int(IntId { number, .. }) => Value::I64(*number),
            UserId::String(s) => Value::String(s.clone()),
            UserId::Uuid(u) => Value::Uuid(*u),
        }
    }
}

/// The integer that a float stands for, if it stands for one only.
fn whole(n: f64) -> Option<i64> {
    // Above 2^53 two integers may have the same double.
    (n.fract() == 0.0 && n.abs() <= 9_007_199_254_740_992.0).then_some(n as i64)
}

impl From<i64> for UserId {
    fn from(number: i64) -> Self {
        UserId::int(number)
    }
}
impl From<&str> for UserId {
    fn from(s: &str) -> Self {
        UserId::String(s.into())
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UserId::Int(n) => write!(f, "{}", n.number),
            UserId::String(s) => write!(f, "{s}"),
            UserId::Uuid(u) => write!(f, "{u}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_width_are_one_id() {
        assert_eq!(UserId::from_value(&Value::I32(1)), UserId::from_value(&Value::I64(1)));
        assert_eq!(UserId::from_value(&Value::F64(1.0)), Some(UserId::int(1)));
        assert_eq!(UserId::from_value(&Value::F64(1.5)), None);
        assert_ne!(UserId::from_value(&Value::I32(1)), UserId::from_value(&Value::String("1".into())));
        assert_eq!(UserId::from_value(&Value::I32(7)).unwrap().to_value(), Value::I32(7));
    }
}
