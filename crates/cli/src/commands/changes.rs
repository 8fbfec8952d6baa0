//! `mangrove changes`: the change feed as JSON lines, of a directory or of a server.

use std::io::{self, BufWriter, Write};

use mangrove::{Error, ErrorKind, Result};

use crate::Failure;
use crate::args::ChangesArgs;
use crate::client::events;

/// Prints the changes that are asked for.
pub fn run(args: &ChangesArgs) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut left = args.limit.unwrap_or(u64::MAX);
    match &args.url {
        Some(url) if left > 0 => of_server(args, url, &mut left, &mut out)?,
        Some(_) => {}
        None => {
            let changes = mangrove::read_changes(args.data.as_deref().unwrap_or_default(), args.from)?;
            let mut changes = if args.plain { changes.plain() } else { changes };
            while left > 0
                && let Some(line) = changes.next()?
            {
                writeln!(out, "{}", line.json)?;
                left -= 1;
            }
        }
    }
    out.flush()?;
    Ok(())
}

fn of_server(args: &ChangesArgs, url: &str, left: &mut u64, out: &mut dyn Write) -> Result<(), Failure> {
    let mut query =
        format!("/changes?aliases.g={}&follow={}&types={}", encoded(&args.source), args.follow, !args.plain);
    if let Some(from) = args.from {
        query.push_str(&format!("&from={from}"));
    }
    let mut last = args.from.map(|from| from.to_string());
    let mut failure = None;
    let ended = events::read(url, &query, &mut |event| {
        if event.kind.as_deref() == Some("error") {
            return Err(events::message(&event.data));
        }
        let written = writeln!(out, "{}", event.data).and_then(|()| out.flush());
        if let Err(error) = written {
            failure = Some(Failure::from(error));
            return Ok(false);
        }
        last = event.id.or(last.take());
        *left -= 1;
        Ok(*left > 0)
    });
    match (failure, ended) {
        (Some(failure), _) => Err(failure),
        (None, Ok(is_whole)) if is_whole || !args.follow => Ok(()),
        (None, ended) => {
            let error = ended.err().unwrap_or_else(|| Error::new(ErrorKind::Io, "the server ended the feed"));
            let way_out = last.map(|last| format!("go on with --from {last}"));
            Err(way_out.map_or(error.clone(), |way_out| error.and(way_out)).into())
        }
    }
}

/// A text in a query string.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
