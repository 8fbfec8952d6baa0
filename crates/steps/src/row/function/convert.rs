//! Conversions: `asBool()` and `asNumber()`. Texts are read as Java reads them, because TinkerPop does.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_graph::{Error, Result, Value, numeric};
use mangrove_gremlin::limits::NUMBER_LENGTH_MAX;
use mangrove_plan::function::NumberType;
use num_bigint::BigInt;
use num_traits::{ToPrimitive, Zero};

use super::class;

/// Converts a boolean, a number (zero and NaN are false), or the words true and false.
pub(super) fn to_bool(object: &Value) -> Result<Value> {
    let parsed = match object {
        Value::Bool(value) => Some(*value),
        Value::String(text) if text.trim().eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.trim().eq_ignore_ascii_case("false") => Some(false),
        Value::BigInt(number) => Some(!number.is_zero()),
        Value::Decimal(number) => Some(!number.is_zero()),
        number => numeric::to_f64(number).map(|number| number != 0.0 && !number.is_nan()),
    };
    parsed.map(Value::Bool).ok_or_else(|| {
        Error::evaluation(match object {
            Value::Null => "Can't parse null as Boolean.".to_owned(),
            Value::String(text) => format!("Can't parse {text} as Boolean."),
            other => format!("Can't parse type {} as Boolean.", class(other)),
        })
    })
}

/// Converts to a number of a given type, or of the one that fits. A number stays as it is, a text is read by [`parse`],
/// a date becomes its milliseconds, null stays null.
pub(super) fn to_number(object: &Value, to: Option<NumberType>) -> Result<Value> {
    let number = match object {
        Value::Null => return Ok(Value::Null),
        Value::String(text) if text.len() > NUMBER_LENGTH_MAX => {
            return Err(Error::evaluation(format!(
                "a number has {} characters; at most {NUMBER_LENGTH_MAX} are read",
                text.len()
            )));
        }
        Value::String(text) => {
            parse(text).ok_or_else(|| Error::evaluation(format!("Can't parse string '{text}' as number.")))?
        }
        Value::DateTime(date) => Value::I64(
            date.epoch_millis()
                .ok_or_else(|| Error::evaluation("long overflow: the date is too far away for milliseconds"))?,
        ),
        number if number.is_number() => number.clone(),
        other => return Err(Error::evaluation(format!("Can't parse type {} as number.", class(other)))),
    };
    match to {
        None => Ok(number),
        Some(to) => cast(&number, to).ok_or_else(|| {
            Error::evaluation(format!(
                "Can't convert number of type {} to {} due to overflow.",
                class(&number),
                to.class()
            ))
        }),
    }
}

/// Reads a number as the usual Java parser of numbers does: `0x1F` and `017` (octal) as in Java, a suffix `L`, `f` or
/// `d`. A number with a point or an exponent gets the narrowest type from float on that keeps its digits.
fn parse(text: &str) -> Option<Value> {
    let text = text.trim();
    let (digits, suffix) = match text.char_indices().next_back()? {
        (at, c @ ('l' | 'L' | 'f' | 'F' | 'd' | 'D')) if !is_hexadecimal(text) => {
            (&text[..at], Some(c.to_ascii_lowercase()))
        }
        _ => (text, None),
    };
    match suffix {
        Some('l') => whole_from(digits, 10).map(|number| narrowest(number, true)),
        Some(suffix) => fraction(digits, suffix == 'f'),
        None => match java_whole(digits) {
            Some(number) => Some(narrowest(number, false)),
            None if unsigned(digits).bytes().all(|b| b.is_ascii_digit()) => None,
            None => shortest_fraction(digits),
        },
    }
}

fn unsigned(digits: &str) -> &str {
    digits.strip_prefix(['-', '+']).unwrap_or(digits)
}

fn is_hexadecimal(text: &str) -> bool {
    unsigned(text).starts_with("0x") || unsigned(text).starts_with("0X")
}

/// Reads a whole number in the notation that its prefix names.
fn java_whole(text: &str) -> Option<BigInt> {
    let digits = unsigned(text);
    let sign = if text.starts_with('-') { "-" } else { "" };
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => whole_from(&format!("{sign}{digits}"), 16),
        None if digits.len() > 1 && digits.starts_with('0') => whole_from(&format!("{sign}{digits}"), 8),
        None => whole_from(text, 10),
    }
}

fn whole_from(text: &str, radix: u32) -> Option<BigInt> {
    let digits = unsigned(text);
    // The parser of big numbers would accept underscores between digits.
    let plain = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    plain.then(|| BigInt::parse_bytes(text.as_bytes(), radix))?
}

fn narrowest(whole: BigInt, long: bool) -> Value {
    match (whole.to_i32(), whole.to_i64()) {
        (Some(n), _) if !long => Value::I32(n),
        (_, Some(n)) => Value::I64(n),
        _ => Value::BigInt(Arc::new(whole)),
    }
}

/// Returns true if these are the characters of a number with a point or an exponent. Rust's parser accepts words, too.
fn is_fraction(digits: &str) -> bool {
    digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
}

/// Returns true if a number has no digit but zeros. A number that is merely small must not become zero.
fn is_zero(digits: &str) -> bool {
    digits.bytes().take_while(|b| !matches!(b, b'e' | b'E')).all(|b| !matches!(b, b'1'..=b'9'))
}

/// Returns the number as a float (or double), or as the next type that can hold it.
fn fraction(digits: &str, float: bool) -> Option<Value> {
    if !is_fraction(digits) {
        return None;
    }
    let (single, double): (f32, f64) = (digits.parse().ok()?, digits.parse().ok()?);
    let zero = is_zero(digits);
    if float && single.is_finite() && (single != 0.0 || zero) {
        return Some(Value::F32(single));
    }
    if double.is_finite() && (double != 0.0 || zero) {
        return Some(Value::F64(double));
    }
    digits.parse::<BigDecimal>().ok().map(|number| Value::Decimal(Arc::new(number)))
}

/// Returns the number in the narrowest type that prints the same digits.
fn shortest_fraction(digits: &str) -> Option<Value> {
    if !is_fraction(digits) {
        return None;
    }
    let (single, double): (f32, f64) = (digits.parse().ok()?, digits.parse().ok()?);
    let exact = digits.parse::<BigDecimal>().ok()?;
    let same = |written: String| written.parse::<BigDecimal>().is_ok_and(|written| written == exact);
    let zero = is_zero(digits);
    if single.is_finite() && (single != 0.0 || zero) && format!("{single:e}") == format!("{double:e}") {
        return Some(Value::F32(single));
    }
    if double.is_finite() && (double != 0.0 || zero) && same(format!("{double:e}")) {
        return Some(Value::F64(double));
    }
    Some(Value::Decimal(Arc::new(exact)))
}

/// Converts a number to another type, cutting off fractions. `None` if it does not fit.
fn cast(number: &Value, to: NumberType) -> Option<Value> {
    Some(match to {
        NumberType::Byte => Value::I8(i8::try_from(whole(number)?).ok()?),
        NumberType::Short => Value::I16(i16::try_from(whole(number)?).ok()?),
        NumberType::Int => Value::I32(i32::try_from(whole(number)?).ok()?),
        NumberType::Long => Value::I64(i64::try_from(whole(number)?).ok()?),
        NumberType::BigInt => Value::BigInt(Arc::new(whole(number)?)),
        NumberType::Float => {
            let double = numeric::to_f64(number)?;
            let float = double as f32;
            if float.is_infinite() && double.is_finite() {
                return None;
            }
            Value::F32(float)
        }
        // The double that prints like the float.
        NumberType::Double if matches!(number, Value::F32(_)) => Value::F64(decimal_text(number)?.parse().ok()?),
        NumberType::Double => match numeric::to_f64(number)? {
            infinite if infinite.is_infinite() && matches!(number, Value::BigInt(_) | Value::Decimal(_)) => {
                return None;
            }
            double => Value::F64(double),
        },
        NumberType::BigDecimal => Value::Decimal(Arc::new(match number {
            Value::Decimal(number) => return Some(Value::Decimal(number.clone())),
            Value::BigInt(number) => BigDecimal::from((**number).clone()),
            number => match numeric::integer(number) {
                Some(integer) => BigDecimal::from(integer),
                None => decimal_text(number)?.parse().ok()?,
            },
        })),
    })
}

/// Returns the decimal with the shortest text of a float; `None` for infinities and NaN.
fn decimal_text(number: &Value) -> Option<String> {
    match number {
        Value::F32(n) if n.is_finite() => Some(format!("{n:e}")),
        Value::F64(n) if n.is_finite() => Some(format!("{n:e}")),
        _ => None,
    }
}

/// Decimals with a larger exponent are not converted to whole numbers.
const WHOLE_DIGITS_MAX: u64 = 10_000;

fn whole(number: &Value) -> Option<BigInt> {
    match number {
        Value::BigInt(number) => Some((**number).clone()),
        // With a huge exponent it has more digits than memory holds, or none before the point.
        Value::Decimal(number) if number.fractional_digit_count().unsigned_abs() > WHOLE_DIGITS_MAX => None,
        Value::Decimal(number) => {
            Some(number.with_scale_round(0, bigdecimal::RoundingMode::Down).into_bigint_and_exponent().0)
        }
        number => match numeric::integer(number) {
            Some(integer) => Some(BigInt::from(integer)),
            None => {
                let digits: BigDecimal = decimal_text(number)?.parse().ok()?;
                Some(digits.with_scale_round(0, bigdecimal::RoundingMode::Down).into_bigint_and_exponent().0)
            }
        },
    }
}
