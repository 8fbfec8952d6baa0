//! The types of the values of settings: how each is read from text and shown.

use std::fmt::Display;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mangrove::FeedContent;
use mangrove_server::TenantWeights;

use super::LogFormat;
use crate::quantity::{Size, TimeLimit};

/// A value of a setting, which is read from text and shown as TOML.
pub trait Field {
    /// Sets the value from text. The error says which text would be right.
    fn read(&mut self, text: &str) -> Result<(), String>;

    /// The value as the configuration file has it; `None` if it is not set.
    fn show(&self) -> Option<String>;

    /// Makes a path relative to a folder.
    fn resolve(&mut self, _: &Path) {}
}

/// A text as a TOML string.
pub fn quoted(text: impl Display) -> String {
    let mut quoted = String::from("\"");
    for c in text.to_string().chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Field for $number {
            fn read(&mut self, text: &str) -> Result<(), String> {
                // A size is a number of bytes, or has a unit.
                let read = text.parse().ok().or_else(|| text.parse::<Size>().ok()?.bytes.try_into().ok());
                *self = read.ok_or_else(|| format!("`{text}` is no whole number (or size, as in 10MiB)"))?;
                Ok(())
            }

            fn show(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}

numbers!(usize, u32, u64);

impl Field for Option<u64> {
    fn read(&mut self, text: &str) -> Result<(), String> {
        if text == "none" {
            *self = None;
            return Ok(());
        }
        let mut number = 0_u64;
        number.read(text)?;
        *self = Some(number);
        Ok(())
    }

    fn show(&self) -> Option<String> {
        Some(self.map_or_else(|| quoted("none"), |number| number.to_string()))
    }
}

impl Field for Option<NonZeroU32> {
    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = match text {
            "none" => None,
            _ => Some(text.parse().map_err(|_| format!("`{text}` is neither `none` nor a whole number from 1 on"))?),
        };
        Ok(())
    }

    fn show(&self) -> Option<String> {
        Some(self.map_or_else(|| quoted("none"), |number| number.to_string()))
    }
}

impl Field for bool {
    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = text.parse().map_err(|_| format!("`{text}` is neither true nor false"))?;
        Ok(())
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Field for Duration {
    fn read(&mut self, text: &str) -> Result<(), String> {
        // A bare number is seconds, because the name `drain_seconds` has the unit. A time of 0 is allowed here.
        let limit = match text.strip_suffix('s').unwrap_or(text).parse() {
            Ok(seconds) => TimeLimit::After(Duration::from_secs(seconds)),
            Err(_) => text.parse()?,
        };
        *self = limit.duration().ok_or("this limit cannot be `none`")?;
        Ok(())
    }

    fn show(&self) -> Option<String> {
        Some(time(*self))
    }
}

fn time(duration: Duration) -> String {
    let millis = duration.as_millis();
    quoted(if millis.is_multiple_of(1_000) { format!("{}s", millis / 1_000) } else { format!("{millis}ms") })
}

impl Field for Option<Duration> {
    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = text.parse::<TimeLimit>()?.duration();
        Ok(())
    }

    fn show(&self) -> Option<String> {
        Some(self.map_or_else(|| quoted("none"), time))
    }
}

/// The smallest memory limit that is accepted: a smaller one lacks its unit.
const MEMORY_LIMIT_MIN: u64 = 1 << 20;

/// Reads a memory limit of a graph.
pub fn memory_limit(text: &str) -> Result<Size, String> {
    let size: Size = text.parse()?;
    match size.bytes {
        MEMORY_LIMIT_MIN.. => Ok(size),
        bytes => Err(format!(
            "`{text}` is {bytes} bytes, in which no graph fits: write a unit, as in 2GiB, and at least 1MiB"
        )),
    }
}

impl Field for Option<Size> {
    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = Some(memory_limit(text)?);
        Ok(())
    }

    fn show(&self) -> Option<String> {
        self.map(|size| size.bytes.to_string())
    }
}

impl Field for SocketAddr {
    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = text.parse().map_err(|_| format!("`{text}` is no address with a port, as in 127.0.0.1:8182"))?;
        Ok(())
    }

    fn show(&self) -> Option<String> {
        Some(quoted(self))
    }
}

impl Field for String {
    fn read(&mut self, text: &str) -> Result<(), String> {
        text.clone_into(self);
        Ok(())
    }

    fn show(&self) -> Option<String> {
        Some(quoted(self))
    }
}

/// A list, separated by commas.
impl Field for Vec<String> {
    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Ok(())
    }

    fn show(&self) -> Option<String> {
        (!self.is_empty()).then(|| quoted(self.join(",")))
    }
}

impl Field for TenantWeights {
    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = text.parse()?;
        Ok(())
    }

    fn show(&self) -> Option<String> {
        (!self.is_empty()).then(|| quoted(self))
    }
}

impl Field for Option<String> {
    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = Some(text.to_owned());
        Ok(())
    }

    fn show(&self) -> Option<String> {
        self.as_ref().map(quoted)
    }

    fn resolve(&mut self, folder: &Path) {
        // `memory:` and other locations with a scheme are not paths.
        if let Some(location) = self
            && !location.contains(':')
        {
            *location = folder.join(&*location).to_string_lossy().into_owned();
        }
    }
}

impl Field for Option<PathBuf> {
    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = Some(text.into());
        Ok(())
    }

    fn show(&self) -> Option<String> {
        self.as_ref().map(|path| quoted(path.display()))
    }

    fn resolve(&mut self, folder: &Path) {
        if let Some(path) = self {
            *path = folder.join(&*path);
        }
    }
}

impl Field for FeedContent {
    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = text.parse().map_err(|error: mangrove::Error| error.message().to_owned())?;
        Ok(())
    }

    fn show(&self) -> Option<String> {
        Some(quoted(self))
    }
}

impl Field for LogFormat {
    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = match text {
            "text" => LogFormat::Text,
            "json" => LogFormat::Json,
            _ => return Err(format!("`{text}` is no form of log: write text or json")),
        };
        Ok(())
    }

    fn show(&self) -> Option<String> {
        Some(quoted(match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }))
    }
}
