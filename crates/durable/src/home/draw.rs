//! Random draws from a seed (SplitMix64), for pauses and delays: equal seeds draw equal numbers.

/// The next 64 bits.
pub(super) fn bits(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut n = *state;
    n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// The next number from 0 to 1, without 1.
pub(super) fn fraction(state: &mut u64) -> f64 {
    (bits(state) >> 11) as f64 / (1_u64 << 53) as f64
}
