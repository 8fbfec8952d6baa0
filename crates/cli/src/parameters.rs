//! Parameters of scripts as on the command line: `who=marko`, `ids=[1, 2]`.

use mangrove::{Error, ErrorKind, Parameters, Value};
use smol_str::SmolStr;

/// Parses several `NAME=VALUE`, as `--param` gives them.
pub fn parse(given: &[String]) -> Result<Parameters, Error> {
    given.iter().map(|text| parse_one(text).map_err(|error| error.context("--param"))).collect()
}

/// Parses `NAME=VALUE`. The value is JSON, or else the text itself.
pub fn parse_one(text: &str) -> Result<(SmolStr, Value), Error> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| Error::invalid(format!("{text}: write NAME=VALUE, as in who=marko or age=29")))?;
    Ok((name.into(), parameter(name, value)?))
}

/// The value of JSON text, or else the text itself.
fn parameter(name: &str, text: &str) -> Result<Value, Error> {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(json) => from_json(json).map_err(|e| e.context(name)),
        Err(_) => Ok(Value::from(text)),
    }
}

/// A whole number gets the type that it has in a script: int, or long if it does not fit.
fn from_json(json: serde_json::Value) -> Result<Value, Error> {
    use serde_json::Value as Json;
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Bool(b),
        Json::Number(number) => from_number(&number)?,
        Json::String(text) => Value::from(text),
        Json::Array(items) => Value::list(items.into_iter().map(from_json).collect::<Result<_, _>>()?),
        Json::Object(entries) => {
            let entry = |(key, value): (String, Json)| Ok((Value::from(key), from_json(value)?));
            Value::map(entries.into_iter().map(entry).collect::<Result<_, Error>>()?)
        }
    })
}

fn from_number(number: &serde_json::Number) -> Result<Value, Error> {
    if let Some(whole) = number.as_i64() {
        return Ok(i32::try_from(whole).map_or(Value::I64(whole), Value::I32));
    }
    let text = number.to_string();
    if text.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("{text} does not fit 64 bits; write it into the script, as {text}N"),
        ));
    }
    number.as_f64().map(Value::F64).ok_or_else(|| Error::invalid(format!("{text} is no number that fits a double")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_json_or_text() {
        let given = ["a=1", "b=3000000000", "c=1.5", "d=marko", "e=\"7\"", "f=[1,\"x\"]", "g=true", "h=a=b"];
        let values: Vec<Value> = parse(&given.map(str::to_owned)).unwrap().into_values().collect();
        let expected = vec![
            Value::I32(1),
            Value::I64(3_000_000_000),
            Value::F64(1.5),
            Value::from("marko"),
            Value::from("7"),
            Value::list(vec![Value::I32(1), Value::from("x")]),
            Value::Bool(true),
            Value::from("a=b"),
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn bad_parameters_are_named() {
        for (given, part) in [("marko", "NAME=VALUE"), ("=1", "NAME=VALUE"), ("n=99999999999999999999", "64 bits")] {
            let error = parse(&[given.to_owned()]).unwrap_err();
            assert!(error.message().contains(part), "{error}");
        }
    }
}
