//! Numbers, strings and the other literals, from token text to values.
//!
//! Errors are plain text; the parser adds their position.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_graph::{Duration, Value};
use num_bigint::BigInt;
use smol_str::SmolStr;

use crate::limits::{DECIMAL_SCALE_MAX, NUMBER_LENGTH_MAX};

/// A literal's value, or the message of its error.
type Parsed<T> = Result<T, String>;

/// An integer literal: decimal, hexadecimal (`0x1f`) or octal (`017`), with or without a suffix. Without
/// one it is an int, a long or a big integer, the first that holds it.
pub(super) fn integer(text: &str) -> Parsed<Value> {
    let (sign, body) = split_sign(check_length(text)?);
    let (radix, digits) = match body.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &body[2..]),
        [b'0', b'0'..=b'9' | b'_', ..] => (8, &body[1..]),
        _ => (10, body),
    };
    let (digits, suffix) = match digits.bytes().last() {
        Some(last) if !last.is_ascii_digit() && (radix != 16 || !last.is_ascii_hexdigit()) && last != b'_' => {
            (&digits[..digits.len() - 1], Some(last.to_ascii_lowercase()))
        }
        _ => (digits, None),
    };
    if digits.is_empty() || digits.ends_with('_') {
        return Err(format!("`{text}` is not a whole number: digits are missing at its end"));
    }
    let number = magnitude(sign, digits, radix).ok_or_else(|| match radix {
        8 => format!("`{text}` begins with 0 and is therefore octal, but has other digits than 0 to 7"),
        _ => format!("`{text}` is not a whole number"),
    })?;
    narrow(number, suffix).ok_or_else(|| {
        let range = match suffix {
            Some(b'b') => "a byte (-128 to 127)",
            Some(b's') => "a short (-32768 to 32767)",
            Some(b'i') => "an int (32 bits); write it without the suffix, or with l or n",
            _ => "a long (64 bits); write it without the suffix, or with n",
        };
        format!("`{text}` is out of range for {range}")
    })
}

enum Magnitude {
    Small(i64),
    Big(BigInt),
}

fn magnitude(sign: &str, digits: &str, radix: u32) -> Option<Magnitude> {
    let plain = [sign, &without_underscores(digits)].concat();
    match i64::from_str_radix(&plain, radix) {
        Ok(n) => Some(Magnitude::Small(n)),
        Err(_) => BigInt::parse_bytes(plain.as_bytes(), radix).map(Magnitude::Big),
    }
}

fn narrow(number: Magnitude, suffix: Option<u8>) -> Option<Value> {
    let small = match number {
        Magnitude::Small(n) => n,
        Magnitude::Big(n) => return matches!(suffix, None | Some(b'n')).then(|| Value::BigInt(Arc::new(n))),
    };
    Some(match suffix {
        Some(b'b') => Value::I8(i8::try_from(small).ok()?),
        Some(b's') => Value::I16(i16::try_from(small).ok()?),
        Some(b'i') => Value::I32(i32::try_from(small).ok()?),
        Some(b'l') => Value::I64(small),
        Some(b'n') => Value::BigInt(Arc::new(BigInt::from(small))),
        _ => i32::try_from(small).map_or(Value::I64(small), Value::I32),
    })
}

/// A floating-point literal: a double unless its suffix says float (`f`) or decimal (`m`).
pub(super) fn float(text: &str) -> Parsed<Value> {
    match check_length(text)? {
        "+Infinity" => return Ok(Value::F64(f64::INFINITY)),
        "-Infinity" => return Ok(Value::F64(f64::NEG_INFINITY)),
        _ => {}
    }
    let (body, suffix) = match text.as_bytes().last() {
        Some(last @ (b'f' | b'F' | b'd' | b'D' | b'm' | b'M')) => (&text[..text.len() - 1], last.to_ascii_lowercase()),
        _ => (text, b'd'),
    };
    let plain = without_underscores(body);
    let malformed = || format!("`{text}` is not a number");
    let value = match suffix {
        b'f' => plain.parse().ok().filter(|n: &f32| n.is_finite()).map(Value::F32),
        b'm' => return decimal(&plain).ok_or_else(|| decimal_error(text)),
        _ => plain.parse().ok().filter(|n: &f64| n.is_finite()).map(Value::F64),
    };
    match value {
        Some(value) => Ok(value),
        None if plain.parse::<f64>().is_ok() => {
            Err(format!("`{text}` is too large for its type; write it as a decimal, with the suffix m"))
        }
        None => Err(malformed()),
    }
}

fn decimal(plain: &str) -> Option<Value> {
    let number = BigDecimal::from_str(plain).ok()?;
    let (_, scale) = number.as_bigint_and_exponent();
    (scale.unsigned_abs() <= DECIMAL_SCALE_MAX.unsigned_abs()).then(|| Value::Decimal(Arc::new(number)))
}

fn decimal_error(text: &str) -> String {
    format!("`{text}` is not a decimal this database keeps: its exponent must lie within ±{DECIMAL_SCALE_MAX}")
}

fn check_length(text: &str) -> Parsed<&str> {
    match text.len() <= NUMBER_LENGTH_MAX {
        true => Ok(text),
        false => Err(format!("a number has {} characters; at most {NUMBER_LENGTH_MAX} are read", text.len())),
    }
}

fn split_sign(text: &str) -> (&str, &str) {
    text.split_at(usize::from(text.starts_with(['+', '-'])))
}

fn without_underscores(digits: &str) -> std::borrow::Cow<'_, str> {
    match digits.contains('_') {
        true => digits.replace('_', "").into(),
        false => digits.into(),
    }
}

/// A string literal with its quotes and escapes resolved.
pub(super) fn string(text: &str) -> Parsed<SmolStr> {
    let body = &text[1..text.len() - 1];
    if !body.contains('\\') {
        return Ok(SmolStr::new(body));
    }
    let mut resolved = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(backslash) = rest.find('\\') {
        resolved.push_str(&rest[..backslash]);
        rest = escape(&rest[backslash + 1..], &mut resolved)?;
    }
    resolved.push_str(rest);
    Ok(SmolStr::from(resolved))
}

/// Resolves an escape whose backslash has been passed. Returns the text after it.
fn escape<'a>(text: &'a str, resolved: &mut String) -> Parsed<&'a str> {
    let Some(letter) = text.chars().next() else { return Err("a string ends in a backslash".to_owned()) };
    let rest = &text[letter.len_utf8()..];
    let character = match letter {
        'b' => '\u{8}',
        't' => '\t',
        'n' => '\n',
        'f' => '\u{c}',
        'r' => '\r',
        '"' | '\'' | '\\' => letter,
        // A backslash at the end of a line joins it with the next.
        '\n' => return Ok(rest),
        '\r' if rest.starts_with('\n') => return Ok(&rest[1..]),
        '0'..='7' => return Ok(octal_escape(text, resolved)),
        'u' => return unicode_escape(rest, resolved),
        other => {
            return Err(format!(
                "`\\{}` is no escape; write `\\\\` for a backslash, or one of \\b \\t \\n \\f \\r \\\" \\' \\uXXXX",
                other.escape_debug()
            ));
        }
    };
    resolved.push(character);
    Ok(rest)
}

/// `\7`, `\77`, `\377`: one to three octal digits, three only up to 377.
fn octal_escape<'a>(text: &'a str, resolved: &mut String) -> &'a str {
    let most = if text.as_bytes()[0] <= b'3' { 3 } else { 2 };
    let digits = text.bytes().take(most).take_while(|b| (b'0'..=b'7').contains(b)).count();
    let code = text[..digits].bytes().fold(0, |code, digit| code * 8 + u32::from(digit - b'0'));
    resolved.extend(char::from_u32(code));
    &text[digits..]
}

/// `\uXXXX`, with any number of `u`; two surrogates in a row are one character.
fn unicode_escape<'a>(after_u: &'a str, resolved: &mut String) -> Parsed<&'a str> {
    let (first, rest) = code_unit(after_u)?;
    if let Some(character) = char::from_u32(first) {
        resolved.push(character);
        return Ok(rest);
    }
    let second = rest.strip_prefix("\\u").map(code_unit);
    if let Some(Ok((second, rest))) = second
        && let Some(Ok(character)) = char::decode_utf16([first as u16, second as u16]).next()
    {
        resolved.push(character);
        return Ok(rest);
    }
    Err(format!("`\\u{first:04x}` is half of a surrogate pair; the other half must follow it"))
}

/// Four hexadecimal digits after any further `u`.
fn code_unit(text: &str) -> Parsed<(u32, &str)> {
    let digits = text.trim_start_matches('u');
    let code = digits.get(..4).filter(|four| four.bytes().all(|b| b.is_ascii_hexdigit()));
    match code.and_then(|four| u32::from_str_radix(four, 16).ok()) {
        Some(code) => Ok((code, &digits[4..])),
        None => Err("`\\u` is followed by four hexadecimal digits".to_owned()),
    }
}

/// A length of time as `PT[-]SECONDS[.FRACTION]S`, the form in which durations are printed.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let body = text.strip_prefix("PT")?.strip_suffix('S')?;
    let (negative, body) = match body.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, body),
    };
    let (whole, fraction) = body.split_once('.').unwrap_or((body, "0"));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let mut nanos_text = String::with_capacity(9);
    write!(nanos_text, "{fraction:0<9}").ok()?;
    let total = i128::from(whole.parse::<u64>().ok()?) * 1_000_000_000 + nanos_text.parse::<i128>().ok()?;
    let total = if negative { -total } else { total };
    Some(Duration {
        seconds: i64::try_from(total.div_euclid(1_000_000_000)).ok()?,
        nanos: total.rem_euclid(1_000_000_000) as u32,
    })
}

/// Bytes from hexadecimal text.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16);
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some((digit(*high)? * 16 + digit(*low)?) as u8),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_take_the_first_type_that_holds_them() {
        for (text, value) in [
            ("1", Value::I32(1)),
            ("-0", Value::I32(0)),
            ("2147483648", Value::I64(1 << 31)),
            ("-2147483648", Value::I32(i32::MIN)),
            ("9223372036854775808", Value::BigInt(Arc::new(BigInt::from(1_u64 << 63)))),
            ("1_000", Value::I32(1000)),
            ("0xFF", Value::I32(255)),
            ("0xFFb", Value::I32(0xffb)),
            ("0x1L", Value::I64(1)),
            ("017", Value::I32(15)),
            ("0b", Value::I8(0)),
            ("1s", Value::I16(1)),
            ("1i", Value::I32(1)),
            ("1n", Value::BigInt(Arc::new(BigInt::from(1)))),
        ] {
            assert_eq!(integer(text), Ok(value), "{text}");
        }
        assert!(integer("128b").unwrap_err().contains("-128 to 127"));
        assert!(integer("08").unwrap_err().contains("octal"));
        assert!(integer("99999999999999999999l").unwrap_err().contains("out of range"));
        assert!(integer(&"9".repeat(NUMBER_LENGTH_MAX + 1)).unwrap_err().contains("at most"));
    }

    #[test]
    fn floats_are_doubles_unless_they_say_otherwise() {
        assert_eq!(float("1.0"), Ok(Value::F64(1.0)));
        assert_eq!(float("1.5f"), Ok(Value::F32(1.5)));
        assert_eq!(float("1e3"), Ok(Value::F64(1000.0)));
        assert_eq!(float("1.50m"), Ok(Value::Decimal(Arc::new(BigDecimal::from_str("1.50").unwrap()))));
        assert_eq!(float("-Infinity"), Ok(Value::F64(f64::NEG_INFINITY)));
        assert!(float("1e400").unwrap_err().contains("too large"));
        assert!(float("1e999999999m").unwrap_err().contains("exponent"));
        assert!(float("1e99999999999999999999m").is_err());
    }

    #[test]
    fn strings_resolve_their_escapes() {
        for (text, value) in [
            (r"'a'", "a"),
            (r#""it's""#, "it's"),
            (r"'\'\\\n\t'", "'\\\n\t"),
            (r"'\u0041\uu0042'", "AB"),
            (r"'\uD83D\uDE00'", "😀"),
            (r"'\101\7\400'", "A\u{7}\u{20}0"),
            ("'a\\\nb'", "ab"),
        ] {
            assert_eq!(string(text).as_deref(), Ok(value), "{text}");
        }
        assert!(string(r"'\q'").unwrap_err().contains("no escape"));
        assert!(string(r"'\uD83D'").unwrap_err().contains("surrogate"));
        assert!(string(r"'\u12'").unwrap_err().contains("four hexadecimal"));
    }

    #[test]
    fn durations_and_bytes_read_what_is_printed() {
        for value in [
            Duration { seconds: 0, nanos: 0 },
            Duration { seconds: -2, nanos: 500_000_000 },
            Duration { seconds: -1, nanos: 1 },
            Duration { seconds: i64::MIN, nanos: 0 },
            Duration { seconds: i64::MAX, nanos: 999_999_999 },
        ] {
            assert_eq!(duration(&value.to_string()), Some(value), "{value}");
        }
        assert_eq!(duration("P1D"), None);
        assert_eq!(bytes("00ff"), Some(vec![0, 255]));
        assert_eq!((bytes("0"), bytes("zz")), (None, None));
    }
}
