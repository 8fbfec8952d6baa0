//! Cuts a table into rows, and rows into fields.
//!
//! The format is RFC 4180 with one addition: a quote that is never closed costs one row, not the rest of the file.
//!
//! - A field that *begins* with the quote character is quoted. It ends at the next single quote character. A doubled
//!   quote character stands for itself, and line ends inside the quotes belong to the field.
//! - A quote character anywhere else is an ordinary character.
//! - A row ends at LF or CRLF. Empty lines are skipped. A byte order mark at the start is dropped.
//! - If a quoted field is not closed within [`RECORD_BYTES_MAX`] bytes, or before the end of the file, the row is
//!   *broken*. Only its first line is reported, and reading goes on at its second line, which may be a good row.
//!
//! Few rows have a quote. The others are found and cut with `memchr` and never copied: fields are ranges into the
//! reader's buffer, which stay valid until the next row is read.
//!
//! For parsing on several threads the reader also cuts a table into [`Chunk`]s of whole rows. If no quote is near it
//! cuts at any line end, else row by row. Whether a row is broken may depend on bytes after its chunk. So a chunk
//! carries the list of its broken rows, and the rows of all chunks are exactly the rows of the file (LOAD-4).

use std::io::{self, Read};
use std::ops::Range;

use super::bytes::{ELEMENT_BYTES_MAX_DEFAULT, too_long};
use memchr::{memchr, memchr_iter, memrchr};

const CHUNK_BYTES: u64 = 256 * 1024;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Bytes of the longest row with quotes. In a longer one, a closing quote is missing.
pub(crate) const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The characters that separate and quote the fields of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TableDialect {
    pub(crate) delimiter: u8,
    /// `None`: no field is quoted.
    pub(crate) quote: Option<u8>,
    /// Inside quotes this character makes the next one ordinary. A doubled quote works besides.
    pub(crate) escape: Option<u8>,
}

/// The result of [`RecordReader::next`].
pub(crate) enum RecordOutcome {
    /// A row. [`RecordReader::field`] has its fields.
    Row,
    /// A row that cannot be cut into fields, with the reason. [`RecordReader::raw`] has its first line.
    Broken(&'static str),
    /// The end.
    End,
}

/// Whole rows of a table, for another thread to cut.
pub(crate) struct Chunk {
    text: Vec<u8>,
    /// Lines of the file before it.
    lines_before: u64,
    /// The line numbers of its broken rows, ascending, each with the reason.
    broken: Vec<(u64, &'static str)>,
}

/// Reads the rows of a table in their order.
pub(crate) struct RecordReader<R> {
    input: R,
    dialect: TableDialect,
    chunk_bytes: u64,
    /// Bytes of the longest line that is accepted, with quotes or without.
    line_bytes_max: u64,
    buffer: Vec<u8>,
    /// The unread part of `buffer` begins here.
    start: usize,
    at_end: bool,
    /// Lines before the unread part.
    lines: u64,
    /// The current row: its first line, its text without the line end, and its fields.
    line: u64,
    raw: Range<usize>,
    fields: Vec<Range<usize>>,
    /// For each field whether it stands in quotes. Valid only if the row has a quote.
    quoted: Vec<bool>,
    any_quoted: bool,
    /// The texts of fields that differ from the file (doubled quotes, escapes). Their ranges are offset by `UNESCAPED`.
    unescaped: Vec<u8>,
    /// If this reads a chunk: the broken rows that the chunk names.
    broken: Vec<(u64, &'static str)>,
}

/// Offset of the ranges into `unescaped`, larger than any position in `buffer`.
const UNESCAPED: usize = 1 << 62;

impl RecordReader<io::Empty> {
    /// Reads the rows of a chunk.
    pub(crate) fn of_chunk(chunk: Chunk, dialect: TableDialect) -> Self {
        let Chunk { text, lines_before, broken } = chunk;
        RecordReader {
            buffer: text,
            lines: lines_before,
            broken,
            at_end: true,
            ..RecordReader::new(io::empty(), dialect)
        }
    }

    /// Goes to the next row of a chunk, which cannot fail.
    pub(crate) fn next_in_chunk(&mut self) -> RecordOutcome {
        // A chunk is in memory, and the reader that cut it has checked the length of its lines.
        self.next().unwrap_or(RecordOutcome::End)
    }

    /// The text of the chunk.
    pub(crate) fn into_text(self) -> Vec<u8> {
        self.buffer
    }
}

impl<R: Read> RecordReader<R> {
    pub(crate) fn new(input: R, dialect: TableDialect) -> Self {
        RecordReader {
            input,
            dialect,
            chunk_bytes: CHUNK_BYTES,
            line_bytes_max: ELEMENT_BYTES_MAX_DEFAULT,
            buffer: Vec::new(),
            start: 0,
            at_end: false,
            lines: 0,
            line: 0,
            raw: 0..0,
            fields: Vec::new(),
            quoted: Vec::new(),
            any_quoted: false,
            unescaped: Vec::new(),
            broken: Vec::new(),
        }
    }

    /// The same reader with another limit for the length of a line, in bytes.
    pub(crate) fn with_lines_of(self, line_bytes_max: u64) -> Self {
        RecordReader { line_bytes_max, ..self }
    }

    /// The line, counted from 1, on which the current row begins.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The text of the current row.
    pub(crate) fn raw(&self) -> &[u8] {
        &self.buffer[self.raw.clone()]
    }

    /// How many fields the current row has.
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field of the current row.
    pub(crate) fn field(&self, index: usize) -> &[u8] {
        let range = &self.fields[index];
        match range.start.checked_sub(UNESCAPED) {
            Some(start) => &self.unescaped[start..range.end - UNESCAPED],
            None => &self.buffer[range.clone()],
        }
    }

    /// The range of the current row's text. If this reads a chunk, it is a range of the chunk's text.
    pub(crate) fn raw_range(&self) -> Range<usize> {
        self.raw.clone()
    }

    /// Takes whole rows of about this many bytes; `None` at the end.
    pub(crate) fn next_chunk(&mut self, bytes: usize) -> io::Result<Option<Chunk>> {
        while self.buffer.len() - self.start < bytes && self.fill()? {}
        let unread = &self.buffer[self.start..];
        let lines_before = self.lines;
        let quoted = self.dialect.quote.is_some_and(|quote| memchr(quote, unread).is_some());
        let whole_rows = if self.at_end { Some(unread.len()) } else { memrchr(b'\n', unread).map(|at| at + 1) };
        if let (false, Some(len)) = (quoted, whole_rows) {
            let text = unread[..len].to_vec();
            self.lines += memchr_iter(b'\n', &text).count() as u64;
            self.start += len;
            return Ok((len > 0).then_some(Chunk { text, lines_before, broken: Vec::new() }));
        }
        let mut chunk = Chunk { text: Vec::with_capacity(bytes + bytes / 4), lines_before, broken: Vec::new() };
        let mut lines = lines_before;
        while chunk.text.len() < bytes {
            match self.next()? {
                RecordOutcome::End => break,
                RecordOutcome::Broken(reason) => chunk.broken.push((self.line, reason)),
                RecordOutcome::Row => {}
            }
            // Empty lines were skipped. They are put back, so that the lines of the chunk keep their numbers.
            chunk.text.resize(chunk.text.len() + (self.line - 1 - lines) as usize, b'\n');
            chunk.text.extend_from_slice(self.raw());
            // If the row itself ends in a carriage return, CRLF keeps it from becoming part of the line end.
            chunk.text.extend_from_slice(if self.raw().ends_with(b"\r") { b"\r\n" } else { b"\n" });
            lines = self.lines;
        }
        Ok((!chunk.text.is_empty()).then_some(chunk))
    }

    /// The input.
    pub(crate) fn input(&self) -> &R {
        &self.input
    }

    /// Returns true if a field of the current row stands in quotes.
    pub(crate) fn is_quoted(&self, index: usize) -> bool {
        self.any_quoted && self.quoted[index]
    }

    /// Goes to the next row.
    pub(crate) fn next(&mut self) -> io::Result<RecordOutcome> {
        loop {
            let Some(mut end) = self.line_end(0)? else { return Ok(RecordOutcome::End) };
            if self.lines == 0 && self.text(end).starts_with(BYTE_ORDER_MARK) {
                self.start += BYTE_ORDER_MARK.len();
                end -= BYTE_ORDER_MARK.len();
            }
            self.line = self.lines + 1;
            if self.text(end).is_empty() {
                self.consume(end, 1);
                continue;
            }
            return self.cut(end);
        }
    }

    /// The first line end at or after `from`; both count from `start`. The end of the file also ends a line. `None` if
    /// nothing is left. May move the buffer.
    fn line_end(&mut self, from: usize) -> io::Result<Option<usize>> {
        if from > self.buffer.len() - self.start {
            // The end of the file has ended the line before.
            return Ok(None);
        }
        let mut searched = from;
        loop {
            let unread = &self.buffer[self.start..];
            if let Some(found) = memchr(b'\n', &unread[searched..]) {
                return Ok(Some(searched + found));
            }
            searched = unread.len();
            if searched as u64 > self.line_bytes_max {
                let message = format!("line {}: {}", self.lines + 1, too_long("line", self.line_bytes_max));
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            if !self.fill()? {
                return Ok((searched > from).then_some(searched));
            }
        }
    }

    /// Reads more bytes. Returns false at the end of the input.
    fn fill(&mut self) -> io::Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        let kept = self.buffer.len();
        let taken = (&mut self.input).take(self.chunk_bytes).read_to_end(&mut self.buffer)?;
        self.at_end = taken == 0;
        debug_assert_eq!(self.buffer.len(), kept + taken);
        Ok(taken > 0)
    }

    /// The text of the unread part up to a line end, without a carriage return.
    fn text(&self, end: usize) -> &[u8] {
        let text = &self.buffer[self.start..self.start + end];
        text.strip_suffix(b"\r").unwrap_or(text)
    }

    /// Marks everything up to the line end, and the line end, as read.
    fn consume(&mut self, end: usize, lines: u64) {
        self.start = (self.start + end + 1).min(self.buffer.len());
        self.lines += lines;
    }

    /// Cuts the row whose first line ends at `end`.
    fn cut(&mut self, end: usize) -> io::Result<RecordOutcome> {
        self.fields.clear();
        self.unescaped.clear();
        self.any_quoted = false;
        let text = self.text(end);
        if let Some(quote) = self.dialect.quote
            && memchr(quote, text).is_some()
        {
            return self.cut_quoted(end, quote);
        }
        let (from, to) = (self.start, self.start + text.len());
        self.cut_plain(from, to);
        self.raw = from..to;
        self.consume(end, 1);
        Ok(RecordOutcome::Row)
    }

    fn cut_plain(&mut self, from: usize, to: usize) {
        let mut begin = from;
        for at in memchr_iter(self.dialect.delimiter, &self.buffer[from..to]) {
            self.fields.push(begin..from + at);
            begin = from + at + 1;
        }
        self.fields.push(begin..to);
    }

    /// Cuts a row that has a quote, and so may continue after the end of its first line.
    fn cut_quoted(&mut self, first_end: usize, quote: u8) -> io::Result<RecordOutcome> {
        if let Ok(at) = self.broken.binary_search_by_key(&self.line, |(line, _)| *line) {
            return Ok(self.broken(first_end, self.broken[at].1));
        }
        let mut end = first_end;
        let mut lines = 1;
        loop {
            let (from, to) = (self.start, self.start + self.text(end).len());
            match self.cut_fields(from, to, quote) {
                Cut::Done => {
                    self.raw = from..to;
                    self.consume(end, lines);
                    return Ok(RecordOutcome::Row);
                }
                Cut::AfterQuote => return Ok(self.broken(first_end, "text follows a closing quote")),
                Cut::Open => match self.extend_to_quote(end, quote)? {
                    Some((next, more)) => (end, lines) = (next, lines + more),
                    None => return Ok(self.broken(first_end, "a quoted field is never closed")),
                },
            }
        }
    }

    /// The first line end after `end` that has a quote before it, and how many lines further it is. Lines without a
    /// quote cannot close the field, so cutting again there is useless.
    fn extend_to_quote(&mut self, mut end: usize, quote: u8) -> io::Result<Option<(usize, u64)>> {
        let mut lines = 0;
        while end < RECORD_BYTES_MAX {
            let Some(next) = self.line_end(end + 1)? else { return Ok(None) };
            lines += 1;
            if memchr(quote, &self.buffer[self.start + end + 1..self.start + next]).is_some() {
                return Ok(Some((next, lines)));
            }
            end = next;
        }
        Ok(None)
    }

    /// Reports a broken row: its first line is consumed, and its second line is read next.
    fn broken(&mut self, first_end: usize, reason: &'static str) -> RecordOutcome {
        self.raw = self.start..self.start + self.text(first_end).len();
        self.fields.clear();
        self.consume(first_end, 1);
        RecordOutcome::Broken(reason)
    }

    /// Cuts `buffer[from..to]` into fields, quoted ones among them.
    fn cut_fields(&mut self, from: usize, to: usize, quote: u8) -> Cut {
        self.fields.clear();
        self.unescaped.clear();
        self.quoted.clear();
        self.any_quoted = true;
        let mut at = from;
        loop {
            self.quoted.push(at < to && self.buffer[at] == quote);
            if at < to && self.buffer[at] == quote {
                match self.cut_quoted_field(at + 1, to, quote) {
                    Some(next) => at = next,
                    None => return Cut::Open,
                }
                if at < to && self.buffer[at] != self.dialect.delimiter {
                    return Cut::AfterQuote;
                }
            } else {
                let length = memchr(self.dialect.delimiter, &self.buffer[at..to]).unwrap_or(to - at);
                self.fields.push(at..at + length);
                at += length;
            }
            if at == to {
                return Cut::Done;
            }
            at += 1;
        }
    }

    /// Cuts the quoted field whose text begins at `begin`. Returns the position after its closing quote.
    fn cut_quoted_field(&mut self, begin: usize, to: usize, quote: u8) -> Option<usize> {
        let mut at = begin;
        // The first byte that is not copied yet. Text is copied only if a character of it is dropped.
        let mut kept = begin;
        let copy_start = self.unescaped.len();
        loop {
            let byte = *self.buffer[..to].get(at)?;
            if Some(byte) == self.dialect.escape && at + 1 < to {
                self.unescaped.extend_from_slice(&self.buffer[kept..at]);
                (kept, at) = (at + 1, at + 2);
            } else if byte == quote && self.buffer[..to].get(at + 1) == Some(&quote) {
                self.unescaped.extend_from_slice(&self.buffer[kept..=at]);
                (kept, at) = (at + 2, at + 2);
            } else if byte == quote {
                break;
            } else {
                at += 1;
            }
        }
        if kept == begin {
            self.fields.push(begin..at);
        } else {
            self.unescaped.extend_from_slice(&self.buffer[kept..at]);
            self.fields.push(UNESCAPED + copy_start..UNESCAPED + self.unescaped.len());
        }
        Some(at + 1)
    }
}

enum Cut {
    Done,
    /// The text ends inside a quoted field.
    Open,
    /// A closing quote is followed by something other than a delimiter or the end.
    AfterQuote,
}

/// The delimiter of a table, guessed from its first line: the one of comma, pipe, tab and semicolon that occurs most
/// often outside quotes, or a comma if none occurs.
pub(crate) fn detect_delimiter(first_line: &[u8]) -> u8 {
    let mut counts = [(b',', 0), (b'|', 0), (b'\t', 0), (b';', 0)];
    let mut quoted = false;
    for byte in first_line {
        if *byte == b'"' {
            quoted = !quoted;
        }
        if let Some((_, count)) = counts.iter_mut().find(|(candidate, _)| candidate == byte && !quoted) {
            *count += 1;
        }
    }
    // Reversed, because `max_by_key` returns the last of equal candidates and the first is wanted.
    counts.iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(delimiter, _)| *delimiter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, dialect: TableDialect) -> Vec<(u64, Result<Vec<String>, String>)> {
        let whole = rows_by_chunk(text, dialect, CHUNK_BYTES);
        // Small chunks, so that every buffer border is met.
        for chunk_bytes in [1, 2, 3, 5] {
            assert_eq!(rows_by_chunk(text, dialect, chunk_bytes), whole, "in chunks of {chunk_bytes}");
        }
        for bytes in [1, 4, 9] {
            assert_eq!(rows_in_chunks(text, dialect, bytes), whole, "in {bytes} bytes at a time");
        }
        whole
    }

    /// Cut into chunks of whole rows first.
    fn rows_in_chunks(text: &str, dialect: TableDialect, bytes: usize) -> Vec<(u64, Result<Vec<String>, String>)> {
        let mut reader = RecordReader::new(text.as_bytes(), dialect);
        reader.chunk_bytes = 2;
        let mut found = Vec::new();
        while let Some(chunk) = reader.next_chunk(bytes).unwrap() {
            found.extend(all_rows(RecordReader::of_chunk(chunk, dialect)));
        }
        found
    }

    fn rows_by_chunk(text: &str, dialect: TableDialect, chunk_bytes: u64) -> Vec<(u64, Result<Vec<String>, String>)> {
        let mut reader = RecordReader::new(text.as_bytes(), dialect);
        reader.chunk_bytes = chunk_bytes;
        all_rows(reader)
    }

    fn all_rows<R: Read>(mut reader: RecordReader<R>) -> Vec<(u64, Result<Vec<String>, String>)> {
        let mut found = Vec::new();
        loop {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let row = match reader.next().unwrap() {
                RecordOutcome::End => return found,
                RecordOutcome::Row => Ok((0..reader.len()).map(|i| text(reader.field(i))).collect()),
                RecordOutcome::Broken(reason) => Err(format!("{reason}: {}", text(reader.raw()))),
            };
            found.push((reader.line(), row));
        }
    }

    const COMMA: TableDialect = TableDialect { delimiter: b',', quote: Some(b'"'), escape: None };

    #[track_caller]
    fn check(text: &str, dialect: TableDialect, expected: &[(u64, Result<&[&str], &str>)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(line, row)| {
                let row = row.map(|fields| fields.iter().map(|f| (*f).to_owned()).collect()).map_err(str::to_owned);
                (*line, row)
            })
            .collect();
        assert_eq!(rows(text, dialect), expected);
    }

    #[test]
    fn plain_rows_and_line_ends() {
        check("a,b\r\n\nc,\n,d", COMMA, &[(1, Ok(&["a", "b"])), (3, Ok(&["c", ""])), (4, Ok(&["", "d"]))]);
        check("\u{feff}a\n", COMMA, &[(1, Ok(&["a"]))]);
        check("", COMMA, &[]);
    }

    #[test]
    fn quoted_fields() {
        check(
            "\"a,b\",c\n\"x \"\"y\"\"\",\"line\r\nend\"\nz,\"\"\n5\" pipe,q\n",
            COMMA,
            &[
                (1, Ok(&["a,b", "c"])),
                (2, Ok(&["x \"y\"", "line\r\nend"])),
                (4, Ok(&["z", ""])),
                (5, Ok(&["5\" pipe", "q"])),
            ],
        );
        let escaped = TableDialect { escape: Some(b'\\'), ..COMMA };
        check(r#""a \"b\" \\",c"#, escaped, &[(1, Ok(&[r#"a "b" \"#, "c"]))]);
        check("a|\"b|c", TableDialect { delimiter: b'|', quote: None, ..COMMA }, &[(1, Ok(&["a", "\"b", "c"]))]);
    }

    #[test]
    fn a_broken_quote_costs_one_row() {
        check(
            "a,\"b\nc,d\n\"e\"f,g\nh,i\n",
            COMMA,
            &[
                (1, Err("text follows a closing quote: a,\"b")),
                (2, Ok(&["c", "d"])),
                (3, Err("text follows a closing quote: \"e\"f,g")),
                (4, Ok(&["h", "i"])),
            ],
        );
        check(
            "a,\"b\nc,d\ne,f",
            COMMA,
            &[(1, Err("a quoted field is never closed: a,\"b")), (2, Ok(&["c", "d"])), (3, Ok(&["e", "f"]))],
        );
    }

    /// The output of a correct writer is read back, whatever the fields contain.
    #[test]
    fn written_tables_are_read_back() {
        let field = proptest::string::string_regex("[ab,|\"\n\\\\é]{0,6}").unwrap();
        let table = proptest::collection::vec(proptest::collection::vec(field, 2..4), 0..6);
        proptest::proptest!(|(table in table)| {
            let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
            for row in &table {
                writer.write_record(row).unwrap();
            }
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let read: Vec<_> = rows(&text, COMMA).into_iter().map(|(_, row)| row.unwrap()).collect();
            proptest::prop_assert_eq!(read, table);
        });
    }

    /// Garbage is cut somehow: every line belongs to a row, and no row is met twice.
    #[test]
    fn garbage_never_stops_the_reader() {
        proptest::proptest!(|(text in "[ab,\"\n\r\\\\]{0,40}")| {
            let escaped = TableDialect { escape: Some(b'\\'), ..COMMA };
            for dialect in [COMMA, escaped, TableDialect { quote: None, ..COMMA }] {
                let found = rows(&text, dialect);
                proptest::prop_assert!(found.is_sorted_by(|(a, _), (b, _)| a < b));
                let last = found.last().map_or(0, |(line, _)| *line);
                proptest::prop_assert!(last <= text.split('\n').count() as u64);
            }
        });
    }

    #[test]
    fn delimiters_are_detected_outside_quotes() {
        assert_eq!(detect_delimiter(b"id|name|x"), b'|');
        assert_eq!(detect_delimiter(b"\"a|b|c\",d"), b',');
        assert_eq!(detect_delimiter(b"id"), b',');
        assert_eq!(detect_delimiter(b"a\tb"), b'\t');
        assert_eq!(detect_delimiter(b"a;b,c;d"), b';');
    }
}
