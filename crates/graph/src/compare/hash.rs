//! Hashes that agree with equality or with equivalence (GRAPH-8).
//!
//! After its query has ended, a collection or a long text is hashed by its address in memory. Such a hash agrees with
//! nothing, but it is well spread. A table that grows at that time hashes all its keys again, which would take minutes
//! if many keys had one hash.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::LazyLock;

use super::watch::{MEMBERS_AT_ONCE, Pace};
use super::{Sameness, is_number};
use crate::numeric::to_f64;
use crate::value::{Tree, Value};

/// The seeds for members of sets and maps: one for the whole process, unknown outside it.
static MEMBERS: LazyLock<foldhash::quality::RandomState> = LazyLock::new(Default::default);

/// Feeds a hasher so that the same values have the same hash.
pub(super) fn feed<P: Pace, H: Hasher>(by: Sameness, value: &Value, state: &mut H) {
    if by == Sameness::Equal && is_number(value) {
        // Equal numbers have the same nearest double. Unequal ones may have it, too.
        return match to_f64(value) {
            Some(0.0) | None => 0_u64.hash(state),
            Some(f) => f.to_bits().hash(state),
        };
    }
    std::mem::discriminant(value).hash(state);
    match value {
        Value::Null => {}
        Value::Bool(v) => v.hash(state),
        Value::I8(v) => v.hash(state),
        Value::I16(v) => v.hash(state),
        Value::I32(v) => v.hash(state),
        Value::I64(v) => v.hash(state),
        Value::BigInt(v) => v.hash(state),
        Value::F32(v) => float_bits(f64::from(*v)).hash(state),
        Value::F64(v) => float_bits(*v).hash(state),
        // Decimals of one value may have different scales; they have one normal form.
        Value::Decimal(v) => v.normalized().hash(state),
        Value::Char(v) => v.hash(state),
        Value::String(v) if !P::has_time_for_bytes(v.len()) => address(v.as_str()).hash(state),
        Value::String(v) => v.hash(state),
        Value::Bytes(v) if !P::has_time_for_bytes(v.len()) => address(&**v).hash(state),
        Value::Bytes(v) => v.hash(state),
        Value::Uuid(v) => v.hash(state),
        Value::DateTime(v) => v.instant().hash(state),
        Value::Duration(v) => v.hash(state),
        Value::List(v) => in_order::<P, H, _>(v, state, |value, state| feed::<P, H>(by, value, state)),
        // The order of the members of a set or map does not matter, nor does that of the summands.
        Value::Set(v) => sum::<P, _>(v, |value| alone::<P>(by, value)).hash(state),
        Value::Map(v) => {
            let entry = |(key, value): &(Value, Value)| alone::<P>(by, key).rotate_left(1) ^ alone::<P>(by, value);
            sum::<P, _>(v, entry).hash(state);
        }
        Value::Entry(v) => {
            if !P::has_time_for(2) {
                return address(&v.0).hash(state);
            }
            feed::<P, H>(by, &v.0, state);
            feed::<P, H>(by, &v.1, state);
        }
        Value::BulkSet(v) => in_order::<P, H, _>(v, state, |(value, count), state| {
            feed::<P, H>(by, value, state);
            count.hash(state);
        }),
        Value::F32Array(v) if !P::has_time_for_bytes(size_of_val(&**v)) => address(&**v).hash(state),
        Value::F32Array(v) => v.iter().for_each(|f| float_bits(f64::from(*f)).hash(state)),
        Value::Vertex(v) => v.hash(state),
        Value::Edge(v) => v.hash(state),
        Value::VertexProperty(v) => (v.vertex, v.key, v.ordinal).hash(state),
        Value::Property(v) => {
            v.key.hash(state);
            feed::<P, H>(by, &v.value, state);
        }
        Value::Path(v) => in_order::<P, H, _>(&v.objects, state, |value, state| feed::<P, H>(by, value, state)),
        Value::Tree(v) => of_tree::<P>(v).hash(state),
        Value::Graph(v) => {
            // Graphs are compared with their elements under equivalence, for equality too.
            let element = |value: &Value| alone::<P>(Sameness::Equivalent, value);
            sum::<P, _>(&v.vertices, element).hash(state);
            sum::<P, _>(&v.edges, element).hash(state);
        }
        Value::Token(v) => v.hash(state),
        Value::Direction(v) => v.hash(state),
        Value::Detached(_) | Value::TraversalMetrics(_) => {}
    }
}

fn in_order<P: Pace, H: Hasher, T>(members: &[T], state: &mut H, mut feed: impl FnMut(&T, &mut H)) {
    members.len().hash(state);
    for part in members.chunks(MEMBERS_AT_ONCE) {
        if !P::has_time_for(part.len()) {
            return address(part).hash(state);
        }
        part.iter().for_each(|member| feed(member, state));
    }
}

/// The address of something in memory.
fn address<T: ?Sized>(part: &T) -> usize {
    std::ptr::from_ref(part).cast::<()>().addr()
}

/// The hash of one member of a set or map. It has a state of its own, since the state of the whole depends on the
/// order.
fn alone<P: Pace>(by: Sameness, value: &Value) -> u64 {
    let mut state = MEMBERS.build_hasher();
    feed::<P, _>(by, value, &mut state);
    state.finish()
}

/// A hash that does not depend on the order of the members.
fn sum<P: Pace, T>(members: &[T], hash: impl Fn(&T) -> u64) -> u64 {
    let mut sum = members.len() as u64;
    for part in members.chunks(MEMBERS_AT_ONCE) {
        if !P::has_time_for(part.len()) {
            return MEMBERS.hash_one(address(part));
        }
        sum = part.iter().map(&hash).fold(sum, u64::wrapping_add);
    }
    sum
}

/// Feeds a tree. Trees are compared with their keys under equivalence, for equality too.
fn of_tree<P: Pace>(tree: &Tree) -> u64 {
    sum::<P, _>(&tree.branches, |(key, below)| {
        alone::<P>(Sameness::Equivalent, key).rotate_left(1) ^ of_tree::<P>(below).rotate_left(7)
    })
}

fn float_bits(v: f64) -> u64 {
    if v.is_nan() {
        f64::NAN.to_bits()
    } else if v == 0.0 {
        0
    } else {
        v.to_bits()
    }
}
