//! Objects come back, the decoder finds every change of a byte and every cut, and the layout does not change unseen.

use proptest::prelude::*;

use super::*;

fn place(seq: u64) -> Place {
    let database = Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    Place { database, incarnation: 12, seq, nonce: *b"sixteen bytes !!", previous: 0x0102_0304 }
}

fn records(tablets: &[u16], commits: u32) -> Header {
    let (first_ts, last_ts) = if commits == 0 { (0, 0) } else { (70_000, 70_009) };
    let tablets = tablets.iter().map(|tablet| TabletId(*tablet)).collect();
    let batch = Batch { first_ts, last_ts, through: 70_010, commits, tablets };
    Header { place: place(431), cut_us: 1_763_850_000_123_456, content: Content::Records(batch) }
}

fn end(content: Content) -> Header {
    Header { place: place(432), cut_us: 1_763_850_000_123_457, content }
}

/// Objects of every kind: without and with commits, without and with tablets, with and without padding.
fn samples() -> Vec<(Header, Vec<u8>)> {
    let payload: Vec<u8> = (0..200_u32).map(|n| (n * 7) as u8).collect();
    vec![
        (records(&[1, 2, 64, 700, 65_535], 3), payload),
        (records(&[5], 1), b"one".to_vec()),
        (records(&[1, 2, 3, 4, 5, 6, 7, 8], 8), vec![0; 8]),
        (records(&[], 0), Vec::new()),
        (records(&[7], 40), text(5_000)),
        (end(Content::Fence { by: 13 }), Vec::new()),
        (end(Content::Fin), Vec::new()),
    ]
}

/// A payload that becomes shorter as zstd, and not by far.
fn text(bytes: usize) -> Vec<u8> {
    (0_u32..)
        .flat_map(|n| format!("{} knows {};", n.wrapping_mul(2_654_435_761) >> 8, n).into_bytes())
        .take(bytes)
        .collect()
}

/// A payload that no codec makes shorter.
fn noise(bytes: usize) -> Vec<u8> {
    (0_u64..).flat_map(|n| nonce_of(*b"sixteen bytes !!", n)).take(bytes).collect()
}

#[test]
fn objects_come_back() {
    for (header, payload) in samples() {
        let bytes = encode(&header, &payload);
        assert_eq!(decode(&bytes), Ok((header.clone(), Cow::Borrowed(&payload[..]))));
        if !matches!(header.content, Content::Records(_)) {
            assert!(bytes.len() <= END_BYTES_MAX);
        }
    }
}

#[test]
fn every_changed_byte_and_every_cut_is_found() {
    for (header, payload) in samples() {
        let bytes = encode(&header, &payload);
        for at in 0..bytes.len() {
            for change in [1_u8, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                assert!(open(&changed).is_err(), "byte {at} of {header:?} changed by {change:#x}");
            }
        }
        for len in 0..bytes.len() {
            assert!(open(&bytes[..len]).is_err(), "{header:?} cut to {len} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(open(&longer).is_err(), "{header:?} with a byte more");
    }
}

#[test]
fn errors_name_the_place_and_the_way_out() {
    let (header, payload) = samples().swap_remove(0);
    let bytes = encode(&header, &payload);
    let mut changed = bytes.clone();
    let last = changed.len() - 1;
    changed[last] ^= 1;
    let error = decode(&changed).unwrap_err();
    assert!(
        matches!(&error, ObjectError::Damaged { at: 144, what } if what.starts_with("the checksum of the payload"))
    );
    let text = error.of("s3://bucket/log/x").to_string();
    assert!(text.contains("s3://bucket/log/x is damaged at byte 144"), "{text}");
    let mut later = bytes;
    later[8] = 2;
    assert_eq!(decode(&later), Err(ObjectError::Later("format 2".into())));
    let text = decode(&later).unwrap_err().of("s3://bucket/log/x").to_string();
    assert!(text.contains("has format 2") && text.contains("later one"), "{text}");
}

/// Seals a changed header, so that the checks after its checksum see the change.
fn changed(header: &Header, payload: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = encode(header, payload);
    let header_len = get_u32(&bytes, 68) as usize;
    change(&mut bytes);
    seal(&mut bytes, header_len);
    bytes
}

#[test]
fn headers_that_no_writer_makes_are_refused_although_their_checksum_is_right() {
    let (with_commits, payload) = samples().swap_remove(0);
    let fence = end(Content::Fence { by: 13 });
    let damaged = [
        changed(&with_commits, &payload, |bytes| bytes[66] = 1),
        changed(&with_commits, &payload, |bytes| bytes[132] = 0),
        changed(&with_commits, &payload, |bytes| bytes[132..136].fill(0xff)),
        changed(&with_commits, &payload, |bytes| bytes[137] = 0),
        changed(&with_commits, &payload, |bytes| bytes[72..80].fill(0xff)),
        changed(&with_commits, &payload, |bytes| bytes[104..108].fill(0)),
        changed(&with_commits, &payload, |bytes| bytes[120] ^= 1),
        changed(&with_commits, &payload, |bytes| bytes[112..120].fill(0xff)),
        changed(&fence, &[], |bytes| bytes[64] = FIN),
        changed(&fence, &[], |bytes| bytes[104] = 1),
        changed(&fence, &[], |bytes| bytes[CODEC] = ZSTD),
    ];
    for (number, bytes) in damaged.iter().enumerate() {
        assert!(matches!(decode(bytes), Err(ObjectError::Damaged { .. })), "{number}: {:?}", decode(bytes));
    }
    let later = [
        changed(&with_commits, &payload, |bytes| bytes[CODEC] = 2),
        changed(&with_commits, &payload, |bytes| bytes[KIND] = 9),
    ];
    for bytes in &later {
        assert!(matches!(decode(bytes), Err(ObjectError::Later(_))), "{:?}", decode(bytes));
    }
}

/// The objects of `testdata/objects.hex`. After a deliberate change of the layout, run with
/// `MANGROVE_UPDATE_FIXTURES=1` and check again.
#[test]
fn the_layout_does_not_change_unseen() {
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    let objects = samples().into_iter().map(|(header, payload)| encode(&header, &payload));
    let (packed, plain): (Vec<_>, Vec<_>) = objects.partition(|object| object[CODEC] == ZSTD);
    let [packed, plain] = [packed, plain].map(|objects| objects.into_iter().map(hex).collect::<String>());
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/stream/testdata");
    if std::env::var_os("MANGROVE_UPDATE_FIXTURES").is_some() {
        std::fs::write(format!("{directory}/objects.hex"), &plain).unwrap();
        std::fs::write(format!("{directory}/packed.hex"), &packed).unwrap();
    }
    assert_eq!(plain, include_str!("../testdata/objects.hex"), "the layout of objects of a stream has changed");
    // Another version of zstd may write other bytes, but reads these.
    let packed = include_str!("../testdata/packed.hex").trim();
    let packed = (0..packed.len() / 2).map(|at| u8::from_str_radix(&packed[2 * at..2 * at + 2], 16).unwrap());
    let (header, records) = samples().into_iter().find(|(_, payload)| payload.len() >= PACKED_BYTES_MIN).unwrap();
    assert_eq!(decode(&packed.collect::<Vec<u8>>()), Ok((header, Cow::Owned(records))));
}

#[test]
fn long_payloads_are_stored_as_zstd_if_that_is_shorter() {
    let header = records(&[7], 40);
    let stored = |payload: &[u8]| {
        let bytes = encode(&header, payload);
        assert_eq!(decode(&bytes).unwrap().1, payload);
        (bytes[CODEC], bytes.len() - 144)
    };
    assert_eq!(stored(&text(PACKED_BYTES_MIN - 1)), (PLAIN, PACKED_BYTES_MIN - 1));
    let (codec, len) = stored(&text(PACKED_BYTES_MIN));
    assert!(codec == ZSTD && len < PACKED_BYTES_MIN, "{len} bytes");
    assert_eq!(stored(&noise(PACKED_BYTES_MIN)), (PLAIN, PACKED_BYTES_MIN));
    let (codec, len) = stored(&vec![0; 10 << 20]);
    assert!(codec == ZSTD && len < 2_000, "{len} bytes");
}

/// An object whose payload, stored as zstd, and its length are as given. All checksums are right.
fn packed(stored: &[u8], len: u64) -> Vec<u8> {
    let mut bytes = encode(&records(&[7], 40), &[]);
    bytes[CODEC] = ZSTD;
    bytes[108..112].copy_from_slice(&crc32c::crc32c(stored).to_le_bytes());
    bytes[112..120].copy_from_slice(&(stored.len() as u64).to_le_bytes());
    bytes[120..128].copy_from_slice(&len.to_le_bytes());
    seal(&mut bytes, 144);
    bytes.extend_from_slice(stored);
    bytes
}

#[test]
fn payloads_that_unpack_to_another_length_or_to_nothing_are_damage_that_names_the_object() {
    let payload = text(20_000);
    let whole = zstd::bulk::compress(&payload, ZSTD_LEVEL).unwrap();
    assert_eq!(decode(&packed(&whole, 20_000)).unwrap().1, payload);
    // A gibibyte of zeros, in frames of 16 MiB: the first is all that a reader unpacks of it.
    let zeros = zstd::bulk::compress(&vec![0; 16 << 20], ZSTD_LEVEL).unwrap().repeat(64);
    let mut wrong = vec![
        packed(&whole, 19_999),
        packed(&whole, 20_001),
        packed(&whole, u64::MAX),
        packed(&whole, whole.len() as u64 * UNPACKED_BYTES_MAX + 1),
        packed(&whole, whole.len() as u64 * UNPACKED_BYTES_MAX),
        packed(&zeros, 1 << 20),
        packed(&[], 0),
        packed(&[&whole[..], b"more"].concat(), 20_000),
    ];
    wrong.extend((0..whole.len()).map(|len| packed(&whole[..len], 20_000)));
    for (number, bytes) in wrong.iter().enumerate() {
        let error = decode(bytes).unwrap_err();
        assert!(matches!(error, ObjectError::Damaged { .. }), "{number}: {error}");
        let text = error.of("s3://bucket/log/x").to_string();
        assert!(text.starts_with("s3://bucket/log/x is damaged at byte 1"), "{text}");
    }
    // A flipped bit that no checksum has seen: what comes back has the right length, or is an error.
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        if let Ok((_, records)) = decode(&packed(&flipped, 20_000)) {
            assert_eq!(records.len(), 20_000, "byte {at}");
        }
    }
}

proptest! {
    #[test]
    fn any_object_comes_back(
        numbers in prop::array::uniform4(any::<u64>()),
        nonce: Nonce,
        previous: u32,
        span in (1_u64..1000, 0_u64..1000, 0_u64..1000),
        commits in 1_u32..,
        tablets in prop::collection::btree_set(any::<u16>().prop_map(TabletId), 0..40),
        payload in prop::collection::vec(any::<u8>(), 0..300),
        repeated in 1_usize..40,
        kind in 0..3,
    ) {
        let [database, incarnation, seq, cut_us] = numbers;
        let place = Place { database: Uuid::from_u64_pair(database, seq), incarnation, seq, nonce, previous };
        let (first_ts, last_ts, through) = (span.0, span.0 + span.1, span.0 + span.1 + span.2);
        let (content, payload) = match kind {
            0 => (Content::Records(Batch { first_ts, last_ts, through, commits, tablets }), payload.repeat(repeated)),
            1 => (Content::Fence { by: cut_us }, Vec::new()),
            _ => (Content::Fin, Vec::new()),
        };
        let header = Header { place, cut_us, content };
        let bytes = encode(&header, &payload);
        prop_assert_eq!(decode(&bytes), Ok((header, Cow::Borrowed(&payload[..]))));
    }

    #[test]
    fn hostile_bytes_are_refused_or_read(
        at in 0_usize..160,
        bytes in prop::collection::vec(any::<u8>(), 1..24),
        sample in 0_usize..7,
    ) {
        let (header, payload) = samples().swap_remove(sample);
        let hostile = changed(&header, &payload, |object| {
            let end = object.len().min(at + bytes.len());
            let at = at.min(end);
            // The length of the header stays, because the test seals the header.
            for (offset, byte) in bytes.iter().enumerate().take(end - at) {
                if !(68..72).contains(&(at + offset)) {
                    object[at + offset] = *byte;
                }
            }
        });
        if let Ok((header, payload)) = decode(&hostile) {
            let again = encode(&header, &payload);
            prop_assert_eq!(decode(&again), Ok((header, payload)));
        }
    }
}
