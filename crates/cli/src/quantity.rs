//! Sizes and times as people write them: `512MB`, `4GiB`, `30s`, `250ms`, `none`.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

/// A size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenQuantity")]
pub struct Size {
    /// The size in bytes.
    pub bytes: u64,
}

/// A time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenQuantity")]
pub enum TimeLimit {
    /// No limit.
    None,
    /// This time.
    After(Duration),
}

impl TimeLimit {
    /// The length; `None` for no limit.
    pub fn duration(self) -> Option<Duration> {
        match self {
            TimeLimit::None => None,
            TimeLimit::After(duration) => Some(duration),
        }
    }
}

/// A quantity in a configuration file: text with a unit, or a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenQuantity {
    Number(u64),
    Text(String),
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text).ok_or_else(|| bad_size(text))?;
        let factor: u64 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" => 1_000,
            "m" | "mb" => 1_000_000,
            "g" | "gb" => 1_000_000_000,
            "t" | "tb" => 1_000_000_000_000,
            "kib" => 1 << 10,
            "mib" => 1 << 20,
            "gib" => 1 << 30,
            "tib" => 1 << 40,
            _ => return Err(bad_size(text)),
        };
        let bytes = number.checked_mul(factor).filter(|bytes| *bytes > 0).ok_or_else(|| bad_size(text))?;
        Ok(Size { bytes })
    }
}

impl FromStr for TimeLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(TimeLimit::None);
        }
        let (number, unit) = split(text).ok_or_else(|| bad_time(text))?;
        let millis: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(bad_time(text)),
        };
        let millis = number.checked_mul(millis).filter(|millis| *millis > 0).ok_or_else(|| bad_time(text))?;
        Ok(TimeLimit::After(Duration::from_millis(millis)))
    }
}

impl TryFrom<WrittenQuantity> for Size {
    type Error = String;

    fn try_from(written: WrittenQuantity) -> Result<Self, String> {
        match written {
            WrittenQuantity::Number(0) => Err(bad_size("0")),
            WrittenQuantity::Number(bytes) => Ok(Size { bytes }),
            WrittenQuantity::Text(text) => text.parse(),
        }
    }
}

impl TryFrom<WrittenQuantity> for TimeLimit {
    type Error = String;

    fn try_from(written: WrittenQuantity) -> Result<Self, String> {
        match written {
            WrittenQuantity::Number(number) => Err(bad_time(&number.to_string())),
            WrittenQuantity::Text(text) => text.parse(),
        }
    }
}

fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim()))
}

fn bad_size(text: &str) -> String {
    format!("`{text}` is not a size: write a whole number above 0 with a unit, as in 512MB or 4GiB")
}

fn bad_time(text: &str) -> String {
    format!("`{text}` is not a time limit: write a whole number above 0 with a unit, as in 30s or 500ms, or `none`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_their_units() {
        for (text, bytes) in [("7", 7), ("512MB", 512_000_000), ("4GiB", 4 << 30), ("2 kb", 2_000), (" 1TiB ", 1 << 40)]
        {
            assert_eq!(text.parse(), Ok(Size { bytes }), "{text}");
        }
        for text in ["", "GB", "1.5GB", "-1", "4 parsecs", "99999999999TB", "0"] {
            assert!(text.parse::<Size>().unwrap_err().contains("is not a size"), "{text}");
        }
    }

    #[test]
    fn lengths_of_time_with_their_units() {
        for (text, millis) in [("30s", 30_000), ("250ms", 250), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(text.parse(), Ok(TimeLimit::After(Duration::from_millis(millis))), "{text}");
        }
        assert_eq!("none".parse(), Ok(TimeLimit::None));
        for text in ["", "30", "s", "0s", "3 weeks"] {
            assert!(text.parse::<TimeLimit>().unwrap_err().contains("is not a time limit"), "{text}");
        }
    }
}
