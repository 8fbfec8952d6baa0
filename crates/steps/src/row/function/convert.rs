//! `asBool()` and `asNumber()`.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_graph::{Error, Result, Value, numeric};
use mangrove_plan::function::NumberType;
use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive, Zero};

use super::class;

/// A boolean, a number (zero and NaN are false), or the words true and false.
pub(super) fn to_bool(object: &Value) -> Result<Value> {
    let parsed = match object {
        Value::Bool(value) => Some(*value),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
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

/// A number of a type, or of the one that fits: a number as it is, a text as the narrowest from int on, a date as its
/// milliseconds. Null stays null.
pub(super) fn to_number(object: &Value, to: Option<NumberType>) -> Result<Value> {
    let number = match object {
        Value::Null => return Ok(Value::Null),
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

fn parse(text: &str) -> Option<Value> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let radix = match digits.get(..2) {
        Some("0x" | "0X") => Some(16),
        _ => None,
    };
    let whole = match radix {
        Some(radix) => BigInt::parse_bytes(format!("{sign}{}", &digits[2..]).as_bytes(), radix),
        None if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            BigInt::parse_bytes(format!("{sign}{digits}").as_bytes(), 10)
        }
        None => None,
    };
    if let Some(whole) = whole {
        return Some(match (whole.to_i32(), whole.to_i64()) {
            (Some(n), _) => Value::I32(n),
            (None, Some(n)) => Value::I64(n),
            (None, None) => Value::BigInt(Arc::new(whole)),
        });
    }
    let decimal = digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    let number: f64 = if decimal { text.parse().ok()? } else { return None };
    if number.is_finite() {
        return Some(Value::F64(number));
    }
    text.parse::<BigDecimal>().ok().map(|number| Value::Decimal(Arc::new(number)))
}

/// The number in another type; fractions are cut off. `None` where it does not fit.
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
                // The shortest text of a double is the decimal that people mean by it.
                None => format!("{:?}", numeric::to_f64(number)?).parse().ok()?,
            },
        })),
    })
}

/// Decimals whose exponent goes beyond this are no whole numbers to work with.
const WHOLE_DIGITS_MAX: u64 = 10_000;

fn whole(number: &Value) -> Option<BigInt> {
    match number {
        Value::BigInt(number) => Some((**number).clone()),
        // One with a huge exponent has more digits than memory holds, or none before the point.
        Value::Decimal(number) if number.fractional_digit_count().unsigned_abs() > WHOLE_DIGITS_MAX => None,
        Value::Decimal(number) => {
            Some(number.with_scale_round(0, bigdecimal::RoundingMode::Down).into_bigint_and_exponent().0)
        }
        number => match numeric::integer(number) {
            Some(integer) => Some(BigInt::from(integer)),
            None => BigInt::from_f64(numeric::to_f64(number)?.trunc()),
        },
    }
}
