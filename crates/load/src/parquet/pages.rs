//! The pages of a column, unpacked within limits.
//!
//! A page declares its unpacked size, its number of values, and the size of its dictionary, and a decoder allocates as
//! much as is declared. So every declaration is checked before a decoder sees the page:
//!
//! | declared | checked against |
//! |---|---|
//! | unpacked size | the compressed bytes, and [`PAGES_BYTES_MAX`] for all columns of a row group together |
//! | entries of a dictionary | the bytes of the dictionary |
//! | values, if each takes memory at once | [`VALUES_MAX`] |

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::basic::{CompressionCodec, Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;

use super::ReadAt;
use super::thrift::{Fault, Thrift, ThriftKind};

/// The most bytes of unpacked pages of one row group in memory: for each column the current page and its dictionary.
const PAGES_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The most values of one page, or of one row, if all of them are in memory at once.
pub(crate) const VALUES_MAX: u64 = 4 * 1024 * 1024;
/// The most bytes of the header of a page. Statistics in it hold a value or two.
const HEADER_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of a header that are read at first. It rarely has a hundred.
const HEADER_BYTES: u64 = 1024;

type Result<T> = std::result::Result<T, ParquetError>;

fn damaged(what: impl std::fmt::Display) -> ParquetError {
    ParquetError::General(what.to_string())
}

/// The budget of the pages of a row group, and of the values of a column's current rows.
#[derive(Clone, Default)]
pub(crate) struct PageBudget {
    /// Bytes of pages in memory, of all columns.
    bytes: Arc<AtomicU64>,
    /// Values of this column since the last rows were taken.
    values: Arc<AtomicU64>,
}

// Relaxed: one thread at a time reads a row group, and no other memory depends on the counts.
const ORDER: Ordering = Ordering::Relaxed;

impl PageBudget {
    /// The budget of another column of the same row group.
    pub(crate) fn for_column(&self) -> Self {
        PageBudget { bytes: self.bytes.clone(), values: Arc::default() }
    }

    /// Starts counting the values of new rows.
    pub(crate) fn begin_rows(&self) {
        self.values.store(0, ORDER);
    }

    fn exchange(&self, before: u64, now: u64) -> Result<()> {
        let held = self.bytes.load(ORDER) - before + now;
        self.bytes.store(held, ORDER);
        if held <= PAGES_BYTES_MAX {
            return Ok(());
        }
        Err(damaged(format!(
            "the pages of its row group that have to be in memory at once take more than {PAGES_BYTES_MAX} bytes; \
             write it with \
             smaller pages"
        )))
    }

    fn take_values(&self, values: u64) -> Result<()> {
        if self.values.fetch_add(values, ORDER) + values <= VALUES_MAX {
            return Ok(());
        }
        Err(damaged(format!("a page, or one row, has more than {VALUES_MAX} values in a list")))
    }
}

/// Reads the pages of one column of one row group.
pub(crate) struct Pages {
    file: Arc<dyn ReadAt>,
    /// The part of the file that is not read yet.
    at: u64,
    end: u64,
    codec: CompressionCodec,
    physical: Type,
    /// Bytes of a value, if all values have the same size.
    width: Option<u64>,
    levels: Levels,
    budget: PageBudget,
    /// Bytes of the current dictionary and of the current page of values.
    held: [u64; 2],
    /// A header that was read but not used yet.
    peeked: Option<Header>,
}

/// The levels that a page has before its values.
#[derive(Clone, Copy)]
struct Levels {
    repetition: bool,
    definition: bool,
}

impl Pages {
    /// The pages of a column chunk of a file that has `len` bytes.
    pub(crate) fn new(
        file: Arc<dyn ReadAt>,
        len: u64,
        chunk: &ColumnChunkMetaData,
        budget: PageBudget,
    ) -> Result<Self> {
        let begin = chunk.dictionary_page_offset().unwrap_or(i64::MAX).min(chunk.data_page_offset());
        let (Ok(at), Ok(size)) = (u64::try_from(begin), u64::try_from(chunk.compressed_size())) else {
            return Err(damaged("it lies before the beginning of the file"));
        };
        let end = at.checked_add(size).filter(|end| *end <= len);
        let end = end.ok_or_else(|| damaged("it lies after the end of the file"))?;
        if chunk.file_path().is_some_and(|path| !path.is_empty()) {
            return Err(damaged("it lies in another file, which is not supported"));
        }
        let column = chunk.column_descr();
        let width = match column.physical_type() {
            Type::BOOLEAN | Type::BYTE_ARRAY => None,
            Type::INT32 | Type::FLOAT => Some(4),
            Type::INT64 | Type::DOUBLE => Some(8),
            Type::INT96 => Some(12),
            Type::FIXED_LEN_BYTE_ARRAY => Some(u64::from(column.type_length().unsigned_abs())),
        };
        Ok(Pages {
            file,
            at,
            end,
            codec: chunk.compression_codec(),
            physical: column.physical_type(),
            width,
            levels: Levels { repetition: column.max_rep_level() > 0, definition: column.max_def_level() > 0 },
            budget,
            held: [0, 0],
            peeked: None,
        })
    }

    /// Reads a part of the file. The caller has checked that it is within the file.
    fn read(&self, at: u64, len: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len as usize];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    /// The header of the next page; `None` at the end.
    fn header(&mut self) -> Result<Option<Header>> {
        if self.peeked.is_some() {
            return Ok(self.peeked);
        }
        let mut window = HEADER_BYTES;
        while self.at < self.end {
            let left = self.end - self.at;
            let bytes = self.read(self.at, window.min(left))?;
            let mut thrift = Thrift::new(&bytes);
            match Header::read(&mut thrift) {
                Err(Fault::Ends) if window < left && window < HEADER_BYTES_MAX => {
                    window *= 4;
                    continue;
                }
                Err(fault) => return Err(damaged(format!("the header of a page is damaged: {fault}"))),
                Ok(header) => {
                    self.at += thrift.position() as u64;
                    if header.packed > self.end - self.at {
                        return Err(damaged("a page is longer than its column"));
                    }
                    if header.kind == PageKind::Other {
                        self.at += header.packed;
                        continue;
                    }
                    self.peeked = Some(header);
                    break;
                }
            }
        }
        Ok(self.peeked)
    }

    fn page(&mut self, header: &Header) -> Result<Page> {
        let role = usize::from(header.kind != PageKind::Dictionary);
        // The page before is dropped when this one is read.
        let before = std::mem::replace(&mut self.held[role], header.unpacked);
        self.budget.exchange(before, header.unpacked)?;
        let bytes = self.read(self.at, header.packed)?;
        self.at += header.packed;
        // In pages of version 2, levels stand uncompressed before the values.
        let plain = header.levels_bytes();
        if plain > header.unpacked || plain > header.packed {
            return Err(damaged("a page is shorter than its levels"));
        }
        let buffer = match header.compressed {
            true => unpack(self.codec, bytes, plain as usize, header.unpacked as usize)?,
            false => bytes,
        };
        self.check_counts(header, &buffer)?;
        let (num_values, encoding) = (header.values, header.encoding);
        Ok(match header.kind {
            PageKind::Dictionary => Page::DictionaryPage { buf: buffer.into(), num_values, encoding, is_sorted: false },
            PageKind::Second => Page::DataPageV2 {
                buf: buffer.into(),
                num_values,
                encoding,
                num_nulls: header.nulls,
                num_rows: header.rows,
                def_levels_byte_len: header.definition_bytes,
                rep_levels_byte_len: header.repetition_bytes,
                is_compressed: header.compressed,
                statistics: None,
            },
            _ => Page::DataPage {
                buf: buffer.into(),
                num_values,
                encoding,
                def_level_encoding: header.definition_encoding,
                rep_level_encoding: header.repetition_encoding,
                statistics: None,
            },
        })
    }

    /// Checks what a page declares against its bytes.
    fn check_counts(&self, header: &Header, buffer: &[u8]) -> Result<()> {
        let values = u64::from(header.values);
        if header.kind == PageKind::Dictionary {
            // A byte array has at least its length.
            let least = match self.physical {
                Type::BOOLEAN => return Err(damaged("booleans have no dictionary")),
                _ => self.width.unwrap_or(4),
            };
            return match values.checked_mul(least).is_some_and(|bytes| bytes <= buffer.len() as u64) {
                true => Ok(()),
                false => Err(damaged("a dictionary declares more values than it has")),
            };
        }
        if self.levels.repetition {
            self.budget.take_values(values)?;
        }
        if matches!(header.encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY) {
            let lengths = self.values_of(header, buffer)?;
            let count_max = values.min(VALUES_MAX);
            let more = || damaged("a page declares more lengths than it has values");
            let after = lengths_end(lengths, count_max).ok_or_else(more)?;
            if header.encoding == Encoding::DELTA_BYTE_ARRAY {
                lengths_end(&lengths[after..], count_max).ok_or_else(more)?;
            }
        }
        Ok(())
    }

    /// The part of a page after its levels.
    fn values_of<'b>(&self, header: &Header, buffer: &'b [u8]) -> Result<&'b [u8]> {
        let short = || damaged("a page is shorter than its levels");
        if header.kind == PageKind::Second {
            return buffer.get(header.levels_bytes() as usize..).ok_or_else(short);
        }
        let mut rest = buffer;
        for (has, encoding) in
            [(self.levels.repetition, header.repetition_encoding), (self.levels.definition, header.definition_encoding)]
        {
            if !has {
                continue;
            }
            if encoding != Encoding::RLE {
                return Err(damaged("levels are packed in a way that is long out of use"));
            }
            let (len, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
            rest = after.get(u32::from_le_bytes(*len) as usize..).ok_or_else(short)?;
        }
        Ok(rest)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // Returns the bytes to the budget. Lowering a count cannot exceed the limit.
        let _ = self.budget.exchange(self.held[0] + self.held[1], 0);
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(header) = self.header()? else { return Ok(None) };
        self.peeked = None;
        self.page(&header).map(Some)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Ok(self.header()?.map(|header| PageMetadata {
            num_rows: (header.kind == PageKind::Second).then_some(header.rows as usize),
            num_levels: (header.kind != PageKind::Dictionary).then_some(header.values as usize),
            is_dict: header.kind == PageKind::Dictionary,
        }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        if let Some(header) = self.header()? {
            self.peeked = None;
            self.at += header.packed;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PageKind {
    Dictionary,
    First,
    Second,
    /// An index, which is skipped.
    Other,
}

/// The header of a page.
#[derive(Clone, Copy, Debug)]
struct Header {
    kind: PageKind,
    packed: u64,
    unpacked: u64,
    values: u32,
    nulls: u32,
    rows: u32,
    encoding: Encoding,
    definition_encoding: Encoding,
    repetition_encoding: Encoding,
    definition_bytes: u32,
    repetition_bytes: u32,
    compressed: bool,
}

impl Header {
    fn read(thrift: &mut Thrift<'_>) -> std::result::Result<Self, Fault> {
        let mut header = Header {
            kind: PageKind::Other,
            packed: 0,
            unpacked: 0,
            values: 0,
            nulls: 0,
            rows: 0,
            encoding: Encoding::PLAIN,
            definition_encoding: Encoding::RLE,
            repetition_encoding: Encoding::RLE,
            definition_bytes: 0,
            repetition_bytes: 0,
            compressed: true,
        };
        thrift.fields(|thrift, number, kind| {
            match (number, kind) {
                (1, ThriftKind::Int) => {
                    header.kind = match thrift.int()? {
                        0 => PageKind::First,
                        2 => PageKind::Dictionary,
                        3 => PageKind::Second,
                        _ => PageKind::Other,
                    }
                }
                (2, ThriftKind::Int) => header.unpacked = count(thrift)?.into(),
                (3, ThriftKind::Int) => header.packed = count(thrift)?.into(),
                (5, ThriftKind::Struct) => header.first(thrift)?,
                (7, ThriftKind::Struct) => header.dictionary(thrift)?,
                (8, ThriftKind::Struct) => header.second(thrift)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(header)
    }

    fn first(&mut self, thrift: &mut Thrift<'_>) -> std::result::Result<(), Fault> {
        thrift.fields(|thrift, number, kind| {
            match (number, kind) {
                (1, ThriftKind::Int) => self.values = count(thrift)?,
                (2, ThriftKind::Int) => self.encoding = encoding(thrift)?,
                (3, ThriftKind::Int) => self.definition_encoding = encoding(thrift)?,
                (4, ThriftKind::Int) => self.repetition_encoding = encoding(thrift)?,
                _ => return Ok(false),
            }
            Ok(true)
        })
    }

    fn dictionary(&mut self, thrift: &mut Thrift<'_>) -> std::result::Result<(), Fault> {
        thrift.fields(|thrift, number, kind| {
            match (number, kind) {
                (1, ThriftKind::Int) => self.values = count(thrift)?,
                (2, ThriftKind::Int) => self.encoding = encoding(thrift)?,
                _ => return Ok(false),
            }
            Ok(true)
        })
    }

    fn second(&mut self, thrift: &mut Thrift<'_>) -> std::result::Result<(), Fault> {
        thrift.fields(|thrift, number, kind| {
            match (number, kind) {
                (1, ThriftKind::Int) => self.values = count(thrift)?,
                (2, ThriftKind::Int) => self.nulls = count(thrift)?,
                (3, ThriftKind::Int) => self.rows = count(thrift)?,
                (4, ThriftKind::Int) => self.encoding = encoding(thrift)?,
                (5, ThriftKind::Int) => self.definition_bytes = count(thrift)?,
                (6, ThriftKind::Int) => self.repetition_bytes = count(thrift)?,
                (7, ThriftKind::True | ThriftKind::False) => self.compressed = kind == ThriftKind::True,
                _ => return Ok(false),
            }
            Ok(true)
        })
    }

    /// Bytes of the levels that stand uncompressed before the values.
    fn levels_bytes(&self) -> u64 {
        match self.kind {
            PageKind::Second => u64::from(self.definition_bytes) + u64::from(self.repetition_bytes),
            _ => 0,
        }
    }
}

fn count(thrift: &mut Thrift<'_>) -> std::result::Result<u32, Fault> {
    let number = thrift.int()?;
    i32::try_from(number).ok().and_then(|n| u32::try_from(n).ok()).ok_or(Fault::Damaged("a count that is none"))
}

fn encoding(thrift: &mut Thrift<'_>) -> std::result::Result<Encoding, Fault> {
    #[expect(deprecated, reason = "old files have it")]
    let packed = Encoding::BIT_PACKED;
    Ok(match thrift.int()? {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        4 => packed,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        _ => return Err(Fault::Damaged("an encoding that is not known")),
    })
}

/// The end of a sequence of delta-encoded numbers; `None` if it is damaged or has more than `count_max` numbers.
fn lengths_end(bytes: &[u8], count_max: u64) -> Option<usize> {
    let mut thrift = Thrift::new(bytes);
    // The numbers have the form of Thrift's.
    let (block, parts, count) = (thrift.unsigned().ok()?, thrift.unsigned().ok()?, thrift.unsigned().ok()?);
    thrift.int().ok()?;
    if count > count_max || parts == 0 || block > 1 << 20 || !block.is_multiple_of(parts.checked_mul(8)?) {
        return None;
    }
    let of_part = block / parts;
    let mut left = count.saturating_sub(1);
    let mut at = thrift.position();
    while left > 0 {
        let mut head = Thrift::new(bytes.get(at..)?);
        head.int().ok()?;
        at += head.position();
        let widths = bytes.get(at..at.checked_add(parts as usize)?)?;
        at += parts as usize;
        for width in widths {
            if left == 0 {
                break;
            }
            at = at.checked_add((u64::from(*width) * of_part / 8) as usize)?;
            left = left.saturating_sub(of_part);
        }
    }
    (at <= bytes.len()).then_some(at)
}

/// Unpacks a page after its first `plain` bytes. The result must have exactly the declared size.
fn unpack(codec: CompressionCodec, packed: Vec<u8>, plain: usize, size: usize) -> Result<Vec<u8>> {
    if codec == CompressionCodec::UNCOMPRESSED {
        return match packed.len() == size {
            true => Ok(packed),
            false => Err(damaged("a page has another size than it declares")),
        };
    }
    let (levels, rest) = packed.split_at(plain);
    let wanted = size - plain;
    // Grows as it fills, because the declared size may be a lie.
    let mut unpacked = levels.to_vec();
    match codec {
        // A page of nulls only may be empty.
        _ if wanted == 0 && rest.is_empty() => {}
        CompressionCodec::SNAPPY => unpack_snappy(rest, wanted, &mut unpacked)?,
        CompressionCodec::GZIP => read_up_to(flate2::read::MultiGzDecoder::new(rest), wanted, &mut unpacked)?,
        CompressionCodec::ZSTD => read_up_to(zstd::Decoder::with_buffer(rest)?, wanted, &mut unpacked)?,
        other => {
            return Err(damaged(format!(
                "it is compressed with {other:?}, which is not supported; write it with snappy, zstd or gzip"
            )));
        }
    }
    if unpacked.len() == size { Ok(unpacked) } else { Err(damaged("a page has another size than it declares")) }
}

/// The most bytes that three bytes of snappy (the shortest copy) can produce.
const SNAPPY_RATIO_MAX: usize = 64;

fn unpack_snappy(packed: &[u8], wanted: usize, unpacked: &mut Vec<u8>) -> Result<()> {
    let declared = snap::raw::decompress_len(packed).map_err(damaged)?;
    if declared != wanted || wanted / SNAPPY_RATIO_MAX > packed.len() {
        return Err(damaged("a page has another size than it declares"));
    }
    let before = unpacked.len();
    unpacked.resize(before + wanted, 0);
    snap::raw::Decoder::new().decompress(packed, &mut unpacked[before..]).map_err(damaged)?;
    Ok(())
}

fn read_up_to(from: impl Read, wanted: usize, unpacked: &mut Vec<u8>) -> Result<()> {
    // Reads one byte more, to see that there is no more.
    from.take(wanted as u64 + 1).read_to_end(unpacked)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn pages_unpack_to_what_they_declare() {
        let zeros = vec![0; 1 << 20];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&zeros).unwrap();
        let gzip = gzip.finish().unwrap();
        let zstd = zstd::encode_all(&zeros[..], 1).unwrap();
        let snappy = snap::raw::Encoder::new().compress_vec(&zeros).unwrap();
        for (codec, packed) in
            [(CompressionCodec::GZIP, gzip), (CompressionCodec::ZSTD, zstd), (CompressionCodec::SNAPPY, snappy)]
        {
            assert_eq!(unpack(codec, packed.clone(), 0, zeros.len()).unwrap(), zeros, "{codec:?}");
            // Too little, too much, and far more than there can be: room is made for none of it.
            for size in [0, 1000, zeros.len() + 1, 1 << 40] {
                assert!(unpack(codec, packed.clone(), 0, size).is_err(), "{codec:?} {size}");
            }
            let mut levels = vec![7, 7];
            levels.extend_from_slice(&packed);
            let unpacked = unpack(codec, levels, 2, zeros.len() + 2).unwrap();
            assert_eq!((&unpacked[..2], unpacked.len()), (&[7, 7][..], zeros.len() + 2));
        }
        assert!(unpack(CompressionCodec::UNCOMPRESSED, vec![1], 0, 2).is_err());
        let told = unpack(CompressionCodec::BROTLI, vec![1], 0, 2).unwrap_err().to_string();
        assert!(told.contains("BROTLI") && told.contains("zstd"), "{told}");
    }

    #[test]
    fn pages_of_a_row_group_share_their_room() {
        let (one, other) = (PageBudget::default(), PageBudget::default());
        let beside = one.for_column();
        assert!(one.exchange(0, PAGES_BYTES_MAX - 1).is_ok() && beside.exchange(0, 1).is_ok());
        assert!(other.exchange(0, PAGES_BYTES_MAX).is_ok(), "of another row group");
        assert!(beside.exchange(1, 2).is_err());
        assert!(beside.take_values(VALUES_MAX).is_ok() && one.take_values(1).is_ok());
        assert!(beside.take_values(1).is_err());
        beside.begin_rows();
        assert!(beside.take_values(1).is_ok());
    }

    #[test]
    fn differences_end_where_their_blocks_do() {
        // Blocks of 128 in 4 parts of 32; five numbers, the first of which is 7; one part of 1 bit.
        let five = [0x80, 0x01, 4, 5, 14, 0, 1, 0, 0, 0, 0b0101, 0, 0, 0, 99];
        assert_eq!(lengths_end(&five, 5), Some(five.len() - 1));
        assert_eq!(lengths_end(&five, 4), None, "more than the page has");
        assert_eq!(lengths_end(&five[..12], 5), None);
        assert_eq!(lengths_end(&[0x80, 0x01, 4, 1, 14], 5), Some(5), "one number has no block");
        assert_eq!(lengths_end(&[0x80, 0x01, 0, 1, 14], 5), None);
        let huge = [0x80, 0x01, 4, 0xff, 0xff, 0xff, 0xff, 0x0f, 0];
        assert_eq!(lengths_end(&huge, u64::from(u32::MAX)), None, "a block that is not there");
    }
}
