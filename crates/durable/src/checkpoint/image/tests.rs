//! Images come back as they were, and other bytes are refused.

use std::sync::Arc;

use mangrove_graph::{ElementKind, KeyId, LabelSetId, TabletId, UserId, Value, VertexId};
use mangrove_store::image::{ColumnImage, ColumnValues, PageImage, PageName, SlotSet};
use mangrove_store::{Content, MultiProperty, MultiValue};
use proptest::prelude::*;
use smol_str::SmolStr;
use uuid::Uuid;

use super::head::ImageHead;
use super::slots::SLOT_MAX;
use super::values::ValueRange;
use super::*;
use crate::checkpoint::compress::Compression;
use crate::codec::tests::values;

const COMPRESSIONS: [Compression; 2] = [Compression::None, Compression::Zstd];

fn bytes_of(image: &PageImage, compression: Compression) -> Vec<u8> {
    let mut bytes = Vec::new();
    ImageWriter::new(compression).put(image, &mut bytes).unwrap();
    bytes
}

/// A page of vertices and one of edges.
pub(super) fn images() -> [PageImage; 2] {
    let tablet = TabletId(3);
    let live: SlotSet = [0, 2, 70].into_iter().collect();
    let column = |key, present: &[usize], values| ColumnImage {
        key: KeyId(key),
        present: present.iter().copied().collect(),
        values,
    };
    let columns = vec![
        column(0, &[0, 2, 70], ColumnValues::I64(vec![1, -2, i64::MIN])),
        column(1, &[70], ColumnValues::String(vec!["a".into()])),
        column(2, &[0], ColumnValues::Bool(vec![true])),
        column(3, &[0, 2], ColumnValues::F64(vec![0.5, -0.0])),
        column(4, &[2], ColumnValues::I32(vec![-7])),
        column(9, &[0, 2], ColumnValues::Any(vec![Content::One(Value::from("x")), Content::One(Value::I8(1))])),
    ];
    let vertices = PageImage {
        name: PageName { tablet, kind: ElementKind::Vertex, number: 7 },
        labels: LabelSetId(5),
        capacity: 1_024,
        used: 71,
        generations: (0..71).collect(),
        live,
        ids: vec![(2, UserId::from("chosen")), (70, UserId::int(-1))],
        ends: Vec::new(),
        columns,
    };
    let vertex = |tablet, slot| VertexId::new(TabletId(tablet), slot);
    let edges = PageImage {
        name: PageName { tablet, kind: ElementKind::Edge, number: 0 },
        used: 2,
        generations: Vec::new(),
        live: (0..2).collect(),
        ids: Vec::new(),
        ends: vec![(vertex(3, SLOT_MAX), vertex(u16::MAX, 0)), (vertex(3, 1), vertex(1, 2))],
        columns: Vec::new(),
        ..vertices.clone()
    };
    [vertices, edges]
}

/// Columns of `count` values of every type.
fn column_values(count: usize) -> impl Strategy<Value = ColumnValues> {
    let some = move |strategy: BoxedStrategy<Content>| prop::collection::vec(strategy, count);
    let one = (any::<u32>(), values(), prop::collection::vec((any::<u32>().prop_map(KeyId), values()), 0..3))
        .prop_map(|(ordinal, value, meta)| MultiValue { ordinal, value, meta: Arc::new(meta) });
    let multi = prop::collection::vec(one, 1..4).prop_map(|values| Content::Multi(Arc::new(MultiProperty { values })));
    let any_content = prop_oneof![values().prop_map(Content::One), multi].boxed();
    prop_oneof![
        prop::collection::vec(any::<bool>(), count).prop_map(ColumnValues::Bool),
        prop::collection::vec(any::<i32>(), count).prop_map(ColumnValues::I32),
        prop::collection::vec(any::<i64>(), count).prop_map(ColumnValues::I64),
        prop::collection::vec(any::<f32>().prop_filter("equal to itself", |n| !n.is_nan()), count)
            .prop_map(ColumnValues::F32),
        prop::collection::vec(any::<f64>().prop_filter("equal to itself", |n| !n.is_nan()), count)
            .prop_map(ColumnValues::F64),
        prop::collection::vec(any::<u128>().prop_map(Uuid::from_u128), count).prop_map(ColumnValues::Uuid),
        prop::collection::vec(".{0,40}".prop_map(SmolStr::from), count).prop_map(ColumnValues::String),
        prop::collection::vec("[ab]{0,30}".prop_map(SmolStr::from), count).prop_map(ColumnValues::String),
        some(any_content).prop_map(ColumnValues::Any),
    ]
}

/// A subset of the slots.
fn subset(slots: Vec<usize>) -> impl Strategy<Value = SlotSet> {
    prop_oneof![
        Just(slots.iter().copied().collect::<SlotSet>()),
        prop::sample::subsequence(slots.clone(), 0..=slots.len()).prop_map(|some| some.into_iter().collect()),
    ]
}

fn any_image() -> impl Strategy<Value = PageImage> {
    let used = prop_oneof![Just(0_usize), Just(1_024), 0..130_usize];
    used.prop_flat_map(|used| subset((0..used).collect()).prop_map(move |live| (used, live))).prop_flat_map(
        |(used, live)| {
            let slots: Vec<usize> = live.iter().collect();
            let kind = prop_oneof![Just(ElementKind::Vertex), Just(ElementKind::Edge)];
            let ids = prop_oneof![
                any::<i64>().prop_map(UserId::int),
                any::<i32>().prop_map(|n| UserId::from_value(&Value::I32(n)).unwrap()),
                ".{0,40}".prop_map(|text| UserId::from(text.as_str())),
                any::<u128>().prop_map(|n| UserId::Uuid(Uuid::from_u128(n))),
            ];
            let vertex = (any::<u16>(), 0..=SLOT_MAX);
            let column = subset(slots.clone()).prop_flat_map(|present| {
                (any::<u32>(), column_values(present.len())).prop_map(move |(key, values)| ColumnImage {
                    key: KeyId(key),
                    present,
                    values,
                })
            });
            (
                (kind, any::<u16>(), any::<u32>(), any::<u32>(), any::<u32>()),
                prop_oneof![Just(Vec::new()), prop::collection::vec(any::<u16>(), used)],
                (subset(slots.clone()), prop::collection::vec(ids, slots.len())),
                prop::collection::vec((0..=SLOT_MAX, vertex), slots.len()),
                prop::collection::vec(column, 0..3),
            )
                .prop_map(
                    move |((kind, tablet, number, labels, capacity), generations, ids, ends, columns)| {
                        let (tablet, is_edges) = (TabletId(tablet), kind == ElementKind::Edge);
                        let end = |(source, (other, target))| {
                            (VertexId::new(tablet, source), VertexId::new(TabletId(other), target))
                        };
                        PageImage {
                            name: PageName { tablet, kind, number },
                            labels: LabelSetId(labels),
                            capacity,
                            used: used as u32,
                            generations,
                            live,
                            ids: ids.0.iter().map(|slot| slot as u16).zip(ids.1).collect(),
                            ends: if is_edges { ends.into_iter().map(end).collect() } else { Vec::new() },
                            columns,
                        }
                    },
                )
        },
    )
}

proptest! {
    #[test]
    fn any_image_comes_back_as_it_was(image in any_image()) {
        let mut reader = ImageReader::default();
        for compression in COMPRESSIONS {
            let bytes = bytes_of(&image, compression);
            prop_assert_eq!(&reader.image(&bytes).unwrap(), &image);
            prop_assert_eq!(&reader.check(&bytes).unwrap(), &image);
            let head = ImageHead::check(&bytes).unwrap();
            prop_assert_eq!(head.columns.len(), image.columns.len());
            for (column, head) in image.columns.iter().zip(&head.columns) {
                prop_assert_eq!((column.key, ValueRange::of(&column.values)), (head.key, head.range.clone()));
            }
        }
    }
}

/// The bytes of images that earlier builds wrote, in hexadecimal. Those of the compressed one are read, and not compared
/// with new ones: another version of zstd may compress differently.
#[test]
fn the_layout_does_not_change() {
    let [vertices, edges] = images();
    let mut golden = include_str!("golden.txt").lines().map(|line| {
        (0..line.len()).step_by(2).map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap()).collect::<Vec<u8>>()
    });
    for image in [vertices, edges, wide_image()] {
        let written = bytes_of(&image, Compression::None);
        assert_eq!(golden.next().unwrap_or_default(), written, "{written:02x?}");
    }
    let compressed = golden.next().unwrap_or_default();
    let image = ImageReader::default().check(&compressed);
    assert_eq!(image, Ok(wide_image()), "{:02x?}", bytes_of(&wide_image(), Compression::Zstd));
    assert_eq!(golden.next(), None);
}

/// A page with a dictionary, floating-point numbers of 32 bits and UUIDs.
fn wide_image() -> PageImage {
    let count = 40;
    let live: SlotSet = (0..count).collect();
    let column = |key, values| ColumnImage { key: KeyId(key), present: live, values };
    let columns = vec![
        column(0, ColumnValues::String((0..count).map(|n| ["oak", "a tree in two worlds"][n % 2].into()).collect())),
        column(1, ColumnValues::F32((0..count).map(|n| n as f32 / 2.0).collect())),
        column(2, ColumnValues::Uuid((0..count).map(|n| Uuid::from_u128(n as u128)).collect())),
    ];
    PageImage {
        name: PageName { tablet: TabletId(1), kind: ElementKind::Vertex, number: 0 },
        labels: LabelSetId(0),
        capacity: 64,
        used: count as u32,
        generations: Vec::new(),
        live,
        ids: Vec::new(),
        ends: Vec::new(),
        columns,
    }
}

#[test]
fn every_flipped_byte_is_found_by_the_checksums_of_the_parts() {
    let mut reader = ImageReader::default();
    for image in images().into_iter().chain([wide_image()]) {
        for compression in COMPRESSIONS {
            let bytes = bytes_of(&image, compression);
            for at in 0..bytes.len() {
                let mut other = bytes.clone();
                other[at] ^= 0x10;
                assert!(reader.check(&other).is_err(), "byte {at}");
            }
        }
    }
}

#[test]
fn bytes_that_are_no_image_are_refused_or_make_another_one() {
    let mut reader = ImageReader::default();
    for image in images().into_iter().chain([wide_image()]) {
        for compression in COMPRESSIONS {
            let bytes = bytes_of(&image, compression);
            for at in 0..bytes.len() {
                assert!(reader.image(&bytes[..at]).is_err(), "{at} bytes of {}", bytes.len());
                for flip in [1, 0x10, 0x80, 0xff] {
                    let mut other = bytes.clone();
                    other[at] ^= flip;
                    // Whatever the result is, the decoder must not panic.
                    let _ = reader.image(&other);
                }
            }
        }
    }
}

#[test]
fn ranges_are_those_of_the_values() {
    let text = |text: &str| text.as_bytes().into();
    let cases = [
        (ColumnValues::I32(vec![3, -1, 2]), ValueRange::Integers(-1, 3)),
        (ColumnValues::I64(vec![]), ValueRange::Integers(0, 0)),
        (ColumnValues::F32(vec![1.5, -0.5]), ValueRange::Floats((-0.5_f64).to_bits(), 1.5_f64.to_bits())),
        (ColumnValues::F64(vec![0.0, f64::NAN]), ValueRange::Floats(0, f64::NAN.to_bits())),
        (
            ColumnValues::String(vec!["oak".into(), "ash".into(), "the first sixteen bytes".into()]),
            ValueRange::Texts(text("ash"), text("the first sixtee")),
        ),
        (ColumnValues::Bool(vec![true]), ValueRange::Unknown),
    ];
    for (values, range) in cases {
        assert_eq!(ValueRange::of(&values), range);
    }
}
