//! Numbers that look random and are the same in every run.

/// Mixes a number with a seed. Different numbers of a seed give different results (the finalizer of SplitMix64: Steele, Lea and Flood 2014).
#[inline]
pub(crate) fn mixed(seed: u64, number: u64) -> u64 {
    let mut bits = number.wrapping_add(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
