//! The hash of a chosen id, or of the values of a property index.
//!
//! It is FNV-1a of 64 bits over bytes that ids and values which are equal have in common. Other values may have the same bytes,
//! so an entry with the right hash is a candidate.
//!
//! ```text
//! id       1 | integer 8             2 | bytes of the text             3 | UUID 16
//! values   those of each value, one after the other
//! value    1 number: the nearest double 8 (of −0 that of 0)   2 false   3 true   4 character 4   5 text   6 bytes
//!          7 UUID 16   8 point in time: seconds since 1970 in UTC 8, nanoseconds 4   9 duration: seconds 8, nanoseconds 4
//!          10 list: count 8, its members   11 set: count 8   12 map: count 8   13 array: count 8, each number as a double 8
//! text, bytes   count of bytes 8, the bytes
//! ```
//!
//! Numbers are little-endian. Of sets and maps only the count is hashed, since equal ones may have their members in any order.

use mangrove_graph::{UserId, Value, numeric};

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The state of FNV-1a.
struct Fnv(u64);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        self.bytes(&[tag]);
        self.bytes(bytes);
    }

    fn counted(&mut self, tag: u8, bytes: &[u8]) {
        self.count(tag, bytes.len());
        self.bytes(bytes);
    }

    fn count(&mut self, tag: u8, count: usize) {
        self.tagged(tag, &(count as u64).to_le_bytes());
    }

    fn value(&mut self, value: &Value) {
        match value {
            number if number.is_number() => self.tagged(1, &double(numeric::to_f64(number))),
            Value::Bool(false) => self.bytes(&[2]),
            Value::Bool(true) => self.bytes(&[3]),
            Value::Char(c) => self.tagged(4, &u32::from(*c).to_le_bytes()),
            Value::String(text) => self.counted(5, text.as_bytes()),
            Value::Bytes(bytes) => self.counted(6, bytes),
            Value::Uuid(uuid) => self.tagged(7, uuid.as_bytes()),
            Value::DateTime(time) => {
                let (seconds, nanos) = time.instant();
                self.tagged(8, &seconds.to_le_bytes());
                self.bytes(&nanos.to_le_bytes());
            }
            Value::Duration(duration) => {
                self.tagged(9, &duration.seconds.to_le_bytes());
                self.bytes(&duration.nanos.to_le_bytes());
            }
            Value::List(members) => {
                self.count(10, members.len());
                members.iter().for_each(|member| self.value(member));
            }
            Value::Set(members) => self.count(11, members.len()),
            Value::Map(entries) => self.count(12, entries.len()),
            Value::F32Array(numbers) => {
                self.count(13, numbers.len());
                numbers.iter().for_each(|number| self.bytes(&double(Some(f64::from(*number)))));
            }
            // No property holds values of other types.
            _ => self.bytes(&[0]),
        }
    }
}

/// The bytes of a double, the same for both zeros.
fn double(number: Option<f64>) -> [u8; 8] {
    match number {
        None | Some(0.0) => [0; 8],
        Some(number) => number.to_bits().to_le_bytes(),
    }
}

/// The hash of a chosen id.
pub(crate) fn hash_of_id(id: &UserId) -> u64 {
    let mut hash = Fnv(OFFSET);
    match id {
        UserId::Int(int) => hash.tagged(1, &int.number.to_le_bytes()),
        UserId::String(text) => hash.tagged(2, text.as_bytes()),
        UserId::Uuid(uuid) => hash.tagged(3, uuid.as_bytes()),
    }
    hash.0
}

/// The hash of the values of a property index.
pub(crate) fn hash_of_values(values: &[Value]) -> u64 {
    let mut hash = Fnv(OFFSET);
    values.iter().for_each(|value| hash.value(value));
    hash.0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mangrove_graph::compare::equal;
    use mangrove_graph::{DateTime, IntId};

    use super::*;

    #[test]
    fn equal_values_have_one_hash() {
        let decimal = |text: &str| Value::Decimal(Arc::new(text.parse().unwrap()));
        let time = |seconds, offset_seconds| Value::DateTime(DateTime { seconds, nanos: 5, offset_seconds });
        let list = |members: &[Value]| Value::list(members.to_vec());
        let values = [
            Value::I8(1),
            Value::I32(1),
            Value::F64(1.0),
            decimal("1.00"),
            Value::F64(0.0),
            Value::F64(-0.0),
            Value::I64(i64::MAX),
            Value::F64(i64::MAX as f64),
            decimal("0.4"),
            Value::F64(0.4),
            Value::F32(0.5),
            decimal("0.5"),
            Value::from("1"),
            Value::Char('1'),
            time(10, 0),
            time(10, 3_600),
            time(11, 0),
            list(&[Value::I32(1), Value::from("a")]),
            list(&[Value::F64(1.0), Value::from("a")]),
            Value::Set(Arc::new(vec![Value::I32(1), Value::I32(2)])),
            Value::Set(Arc::new(vec![Value::I32(2), Value::I32(1)])),
            Value::F32Array(vec![0.0, 1.0].into()),
            Value::F32Array(vec![-0.0, 1.0].into()),
        ];
        let mut pairs = 0;
        for a in &values {
            for b in values.iter().filter(|b| equal(a, b)) {
                assert_eq!(
                    hash_of_values(std::slice::from_ref(a)),
                    hash_of_values(std::slice::from_ref(b)),
                    "{a:?} {b:?}"
                );
                pairs += 1;
            }
        }
        assert!(pairs > values.len() + 14, "{pairs} pairs of equal values");
        assert_ne!(hash_of_values(&["ab".into(), "c".into()]), hash_of_values(&["a".into(), "bc".into()]));
        assert_ne!(hash_of_values(&[Value::from("1")]), hash_of_values(&[Value::I32(1)]));
    }

    /// Files have these numbers.
    #[test]
    fn hashes_stay_as_they_are() {
        let narrow = UserId::Int(IntId { number: 7, narrow: true });
        assert_eq!(hash_of_id(&narrow), hash_of_id(&UserId::int(7)));
        assert_eq!(hash_of_id(&UserId::int(7)), 0x339f_65d3_8505_e98b);
        assert_eq!(hash_of_id(&UserId::from("marko")), 0xe730_f975_a5c4_dcfd);
        assert_eq!(hash_of_values(&[Value::I32(29)]), 0x5318_2adc_9060_7559);
        assert_eq!(hash_of_values(&["josh".into(), Value::Bool(true)]), 0xaa70_fd33_674e_6825);
    }
}
