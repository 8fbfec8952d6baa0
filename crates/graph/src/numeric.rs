//! Comparison and arithmetic of numbers of different types.
//!
//! - Two operands are computed in the wider of their types. A float operand makes the result a float.
//! - An integer result that does not fit gets the next wider type (byte, short, int, long). A result of more than 64
//!   bits is an error; no result wraps around.
//! - Big integers and decimals are exact, up to [`DIGITS_MAX`] digits.
//!
//! Source: TinkerPop 3.8, the documented semantics of `NumberHelper`.

use std::cmp::Ordering;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive, Zero};

use crate::error::{Error, Result};
use crate::value::Value;

/// Compares two numbers by value, exactly. `None` if one is NaN or no number.
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (integer(a), integer(b)) {
        (Some(x), Some(y)) => return Some(x.cmp(&y)),
        (Some(x), None) => {
            if let Some(y) = float(b) {
                return compare_integer_float(x, y);
            }
        }
        (None, Some(y)) => {
            if let Some(x) = float(a) {
                return compare_integer_float(y, x).map(Ordering::reverse);
            }
        }
        (None, None) => {
            if let (Some(x), Some(y)) = (float(a), float(b)) {
                return x.partial_cmp(&y);
            }
        }
    }
    // The other pairs have a big number. Infinities come first, since no decimal holds them; the others are compared
    // exactly.
    for (value, other_is_b) in [(a, true), (b, false)] {
        if let Some(f) = float(value) {
            if f.is_nan() {
                return None;
            }
            if f.is_infinite() {
                let towards = if f > 0.0 { Ordering::Greater } else { Ordering::Less };
                return Some(if other_is_b { towards } else { towards.reverse() });
            }
        }
    }
    Some(decimal(a)?.cmp(&decimal(b)?))
}

/// The integer that equals a number of any type; `None` if there is none of 64 bits.
pub fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::F32(_) | Value::F64(_) => {
            // 2^63: a whole double below it is exactly one i64.
            const LIMIT: f64 = 9_223_372_036_854_775_808.0;
            float(value).filter(|n| n.fract() == 0.0 && (-LIMIT..LIMIT).contains(n)).map(|n| n as i64)
        }
        Value::BigInt(n) => i64::try_from(n.as_ref()).ok(),
        Value::Decimal(n) => {
            // Without zeros at its end, a whole number has no digit after the point.
            let (digits, scale) = n.normalized().into_bigint_and_exponent();
            let zeros = u32::try_from(scale.checked_neg()?).ok()?;
            i64::try_from(&digits).ok()?.checked_mul(10_i64.checked_pow(zeros)?)
        }
        _ => integer(value),
    }
}

fn compare_integer_float(x: i64, y: f64) -> Option<Ordering> {
    if y.is_nan() {
        return None;
    }
    // 2^63 as a double: every i64 lies below it, and at or above its negative.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if y >= LIMIT {
        return Some(Ordering::Less);
    }
    if y < -LIMIT {
        return Some(Ordering::Greater);
    }
    let whole = y.trunc() as i64;
    Some(x.cmp(&whole).then_with(|| 0.0_f64.partial_cmp(&y.fract()).unwrap_or(Ordering::Equal)))
}

/// The integer in a value of an integer type of at most 64 bits.
pub fn integer(v: &Value) -> Option<i64> {
    Some(match v {
        Value::I8(n) => i64::from(*n),
        Value::I16(n) => i64::from(*n),
        Value::I32(n) => i64::from(*n),
        Value::I64(n) => *n,
        _ => return None,
    })
}

/// The float in a float value.
fn float(v: &Value) -> Option<f64> {
    match v {
        Value::F32(n) => Some(f64::from(*n)),
        Value::F64(n) => Some(*n),
        _ => None,
    }
}

/// The double nearest to a number; `None` if the value is no number.
pub fn to_f64(v: &Value) -> Option<f64> {
    match v {
        Value::BigInt(n) => n.to_f64(),
        Value::Decimal(n) => n.to_f64(),
        _ => float(v).or_else(|| integer(v).map(|n| n as f64)),
    }
}

fn decimal(v: &Value) -> Option<BigDecimal> {
    Some(match v {
        Value::Decimal(n) => n.as_ref().clone(),
        Value::BigInt(n) => BigDecimal::from(n.as_ref().clone()),
        _ => match float(v) {
            Some(f) => decimal_digits(f)?,
            None => BigDecimal::from(integer(v)?),
        },
    })
}

/// The decimal with the digits that a float is printed with: `0.4` becomes the decimal 0.4, not the binary fraction
/// nearest to it. From 2^53 on, a double is an integer and is converted exactly. Numbers stay in one order: below 2^53
/// the printed digits of a double never cross an integer.
fn decimal_digits(f: f64) -> Option<BigDecimal> {
    const INTEGERS_FROM: f64 = 9_007_199_254_740_992.0;
    if f.abs() < INTEGERS_FROM { format!("{f:e}").parse().ok() } else { BigDecimal::from_f64(f) }
}

fn big(v: &Value) -> Option<BigInt> {
    match v {
        Value::BigInt(n) => Some(n.as_ref().clone()),
        _ => integer(v).map(BigInt::from),
    }
}

/// The width of a number's type: an operation computes in the wider of two.
fn width(v: &Value) -> Option<u8> {
    Some(match v {
        Value::I8(_) => 1,
        Value::I16(_) => 2,
        Value::I32(_) => 3,
        Value::I64(_) => 4,
        Value::BigInt(_) => 5,
        Value::F32(_) => 11,
        Value::F64(_) => 12,
        Value::Decimal(_) => 13,
        _ => return None,
    })
}

/// An integer result in the type of width `at_least`, or in the next wider type that holds it.
fn narrow(n: i128, at_least: u8) -> Option<Value> {
    Some(match at_least {
        1 if i8::try_from(n).is_ok() => Value::I8(n as i8),
        ..=2 if i16::try_from(n).is_ok() => Value::I16(n as i16),
        ..=3 if i32::try_from(n).is_ok() => Value::I32(n as i32),
        _ => Value::I64(i64::try_from(n).ok()?),
    })
}

/// The four operations of [`arithmetic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`; integers divide to an integer.
    Divide,
}

/// The most decimal digits of an operand or a result. The time of an operation grows with the square of the digits.
pub const DIGITS_MAX: u64 = 40_000;

/// The bits of a number of [`DIGITS_MAX`] digits.
const BITS_MAX: u64 = DIGITS_MAX * 1000 / 301;

fn too_many_digits() -> Error {
    Error::evaluation(format!("a number would have more than {DIGITS_MAX} digits; use doubles, or smaller numbers"))
}

/// Fails for a big number of too many digits, or a decimal of too large a scale.
fn check_digits(number: &Value) -> Result<()> {
    let fits = match number {
        Value::BigInt(number) => number.bits() <= BITS_MAX,
        Value::Decimal(number) => {
            let (digits, scale) = number.as_bigint_and_scale();
            digits.bits() <= BITS_MAX && scale.unsigned_abs() <= SCALE_MAX
        }
        _ => true,
    };
    if fits { Ok(()) } else { Err(too_many_digits()) }
}

/// The largest scale of a decimal operand: two decimals are computed in the larger of their scales.
const SCALE_MAX: u64 = 100_000;

/// `a op b`, in the wider of the two types.
///
/// # Errors
///
/// If an operand is no number, a result of integers needs more than 64 bits, an integer is divided by zero, or an
/// operand or the result has more than [`DIGITS_MAX`] digits.
pub fn arithmetic(op: Operation, a: &Value, b: &Value) -> Result<Value> {
    [a, b].into_iter().try_for_each(check_digits)?;
    let result = unchecked_arithmetic(op, a, b)?;
    check_digits(&result)?;
    Ok(result)
}

fn unchecked_arithmetic(op: Operation, a: &Value, b: &Value) -> Result<Value> {
    let not_a_number = |v: &Value| Error::evaluation(format!("a number is needed here, not a {}", v.type_name()));
    let (wa, wb) = (width(a).ok_or_else(|| not_a_number(a))?, width(b).ok_or_else(|| not_a_number(b))?);
    let wide = wa.max(wb);
    // A decimal, or a big integer beside a float, keeps every digit.
    if wide == 13 || (wide > 10 && wa.min(wb) == 5) {
        let (Some(x), Some(y)) = (decimal(a), decimal(b)) else {
            let (x, y) = (to_f64(a).unwrap_or(f64::NAN), to_f64(b).unwrap_or(f64::NAN));
            return Ok(Value::F64(float_operation(op, x, y)));
        };
        if op == Operation::Divide && y.is_zero() {
            return Err(Error::evaluation("division by zero"));
        }
        return Ok(Value::Decimal(Arc::new(match op {
            Operation::Add => x + y,
            Operation::Subtract => x - y,
            Operation::Multiply => x * y,
            Operation::Divide => divided(&x, &y),
        })));
    }
    if wide > 10 {
        let (x, y) = (to_f64(a).unwrap_or(f64::NAN), to_f64(b).unwrap_or(f64::NAN));
        let result = float_operation(op, x, y);
        // A float result that overflows becomes a double. So does one of a float and a long, which is wider than its
        // mantissa.
        let as_float = result as f32;
        let stays = wide == 11 && wa.min(wb) != 4 && (as_float.is_finite() || !result.is_finite());
        return Ok(if stays { Value::F32(as_float) } else { Value::F64(result) });
    }
    let by_zero = || Error::evaluation("division by zero");
    if wide == 5 {
        let (x, y) = (big(a).ok_or_else(|| not_a_number(a))?, big(b).ok_or_else(|| not_a_number(b))?);
        if op == Operation::Divide && y.is_zero() {
            return Err(by_zero());
        }
        return Ok(Value::BigInt(Arc::new(match op {
            Operation::Add => x + y,
            Operation::Subtract => x - y,
            Operation::Multiply => x * y,
            Operation::Divide => x / y,
        })));
    }
    let (x, y) = (
        i128::from(integer(a).ok_or_else(|| not_a_number(a))?),
        i128::from(integer(b).ok_or_else(|| not_a_number(b))?),
    );
    let result = match op {
        Operation::Add => x + y,
        Operation::Subtract => x - y,
        Operation::Multiply => x * y,
        Operation::Divide => x.checked_div(y).ok_or_else(by_zero)?,
    };
    narrow(result, wide).ok_or_else(|| Error::evaluation("long overflow: the result needs more than 64 bits"))
}

/// The quotient of two decimals: exact if it has finitely many digits. If not, it is rounded to as many digits after
/// the point as the longer operand has, and at least to ten.
fn divided(x: &BigDecimal, y: &BigDecimal) -> BigDecimal {
    const PLACES_MIN: i64 = 10;
    let quotient = x / y;
    if &quotient * y == *x {
        return quotient;
    }
    let places = x.fractional_digit_count().max(y.fractional_digit_count()).max(PLACES_MIN);
    quotient.with_scale_round(places, bigdecimal::RoundingMode::HalfUp)
}

fn float_operation(op: Operation, x: f64, y: f64) -> f64 {
    match op {
        Operation::Add => x + y,
        Operation::Subtract => x - y,
        Operation::Multiply => x * y,
        Operation::Divide => x / y,
    }
}

/// A number in the wider of its own type and that of another. A number that the wider type does not hold stays as it is
/// (a decimal has no infinity).
pub fn widened(number: &Value, other: &Value) -> Value {
    let zero = match other {
        Value::I8(_) => Value::I8(0),
        Value::I16(_) => Value::I16(0),
        Value::I32(_) => Value::I32(0),
        Value::I64(_) => Value::I64(0),
        Value::BigInt(_) => Value::BigInt(Arc::new(BigInt::zero())),
        Value::F32(_) => Value::F32(0.0),
        Value::F64(_) => Value::F64(0.0),
        Value::Decimal(_) => Value::Decimal(Arc::new(BigDecimal::zero())),
        _ => return number.clone(),
    };
    // A float is too narrow for a long, as in arithmetic.
    if let (Value::F32(number), Value::I64(_)) = (number, other) {
        return Value::F64(f64::from(*number));
    }
    if width(number) >= width(other) {
        return number.clone();
    }
    arithmetic(Operation::Add, number, &zero).unwrap_or_else(|_| number.clone())
}

/// `value * times` (a value met `times` times), in the value's type or the next that holds it.
pub fn times(value: &Value, times: u64) -> Result<Value> {
    if times == 1 {
        return match width(value) {
            Some(_) => Ok(value.clone()),
            None => Err(Error::evaluation(format!("a number is needed here, not a {}", value.type_name()))),
        };
    }
    let factor = match (value, i64::try_from(times)) {
        (_, Err(_)) => Value::BigInt(Arc::new(BigInt::from(times))),
        // The factor takes the value's own type wherever it fits, so that it does not widen the result.
        (Value::F32(_), Ok(n)) => Value::F32(n as f32),
        (_, Ok(n)) => narrow(i128::from(n), 1).unwrap_or(Value::I64(n)),
    };
    arithmetic(Operation::Multiply, value, &factor)
}

/// `sum / count` as `mean()` has it: a double, or a decimal for big operands.
pub fn mean(sum: &Value, count: u64) -> Result<Value> {
    match sum {
        Value::BigInt(_) | Value::Decimal(_) => {
            let total = decimal(sum).ok_or_else(|| Error::bug("a big number has a decimal form"))?;
            Ok(Value::Decimal(Arc::new(divided(&total, &BigDecimal::from(count)))))
        }
        _ => {
            let total = to_f64(sum)
                .ok_or_else(|| Error::evaluation(format!("a number is needed here, not a {}", sum.type_name())))?;
            Ok(Value::F64(total / count as f64))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_promote_and_then_fail_instead_of_wrapping() {
        let add = |a, b| arithmetic(Operation::Add, &a, &b);
        assert_eq!(add(Value::I32(1), Value::I32(2)).unwrap(), Value::I32(3));
        assert_eq!(add(Value::I8(100), Value::I8(100)).unwrap(), Value::I16(200));
        assert_eq!(add(Value::I32(i32::MAX), Value::I32(1)).unwrap(), Value::I64(1 << 31));
        assert!(add(Value::I64(i64::MAX), Value::I64(1)).unwrap_err().message().contains("overflow"));
        assert_eq!(add(Value::I32(1), Value::F64(0.5)).unwrap(), Value::F64(1.5));
        assert!(add(Value::I32(1), Value::from("a")).is_err());
        assert!(arithmetic(Operation::Divide, &Value::I32(1), &Value::I32(0)).is_err());
    }

    #[test]
    fn big_and_small_compare_exactly() {
        let near = Value::I64((1 << 53) + 1);
        assert_eq!(compare(&near, &Value::F64((1_u64 << 53) as f64)), Some(Ordering::Greater));
        assert_eq!(compare(&Value::I32(1), &Value::F64(1.5)), Some(Ordering::Less));
        assert_eq!(compare(&Value::I32(-1), &Value::F64(-1.5)), Some(Ordering::Greater));
        assert_eq!(compare(&Value::F64(f64::NAN), &Value::I32(1)), None);
        let huge = Value::BigInt(Arc::new(BigInt::from(2).pow(100)));
        assert_eq!(compare(&huge, &Value::F64(f64::INFINITY)), Some(Ordering::Less));
        assert_eq!(compare(&Value::I64(1), &huge), Some(Ordering::Less));
    }

    #[test]
    fn a_float_is_the_decimal_it_is_written_as() {
        let decimal = |digits: &str| Value::Decimal(Arc::new(digits.parse().unwrap()));
        assert_eq!(compare(&Value::F64(0.4), &decimal("0.4")), Some(Ordering::Equal));
        assert_eq!(compare(&Value::F64(-1e-7), &decimal("-0.0000001")), Some(Ordering::Equal));
        assert_eq!(compare(&Value::F64(0.1 + 0.2), &decimal("0.3")), Some(Ordering::Greater));
        assert_eq!(arithmetic(Operation::Add, &Value::F64(0.1), &decimal("0.2")).unwrap(), decimal("0.3"));
        // Its shortest digits, 1152921504606847000, would be on the other side.
        let big = Value::F64((1_u64 << 60) as f64);
        assert_eq!(compare(&big, &decimal("1152921504606846990")), Some(Ordering::Less));
        assert_eq!(compare(&big, &Value::I64((1 << 60) + 4)), Some(Ordering::Less));
    }

    #[test]
    fn a_quotient_of_decimals_ends() {
        let decimal = |digits: &str| Value::Decimal(Arc::new(digits.parse().unwrap()));
        let divide = |a: &str, b: &str| arithmetic(Operation::Divide, &decimal(a), &decimal(b)).unwrap();
        assert_eq!(divide("1", "8"), decimal("0.125"));
        assert_eq!(divide("2", "3"), decimal("0.6666666667"));
        assert_eq!(divide("3.23456789012345", "3"), decimal("1.07818929670782"));
        assert_eq!(mean(&decimal("4"), 3).unwrap(), decimal("1.3333333333"));
    }

    #[test]
    fn big_numbers_have_a_limit_of_digits() {
        let digits = |count: usize| Value::BigInt(Arc::new("9".repeat(count).parse().unwrap()));
        let multiply = |a: &Value, b: &Value| arithmetic(Operation::Multiply, a, b);
        assert!(multiply(&digits(20_000), &digits(20_000)).is_ok());
        assert!(multiply(&digits(20_000), &digits(20_100)).unwrap_err().message().contains("40000 digits"));
        assert!(multiply(&digits(41_000), &Value::I32(0)).is_err(), "before it is computed with");
        let decimal = |digits: &str| Value::Decimal(Arc::new(digits.parse().unwrap()));
        assert!(multiply(&decimal("1e-60000"), &decimal("1e-60000")).is_err());
        assert!(arithmetic(Operation::Add, &decimal("1e90000"), &decimal("1")).is_err());
    }

    #[test]
    fn repeating_a_value_is_multiplying_it() {
        assert_eq!(times(&Value::I32(3), 4).unwrap(), Value::I32(12));
        assert_eq!(times(&Value::F32(0.5), 4).unwrap(), Value::F32(2.0));
        assert!(times(&Value::I64(i64::MAX), 2).is_err());
        assert_eq!(mean(&Value::I32(3), 2).unwrap(), Value::F64(1.5));
    }
}
