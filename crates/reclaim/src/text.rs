//! Checking that a few bytes are text.

#![expect(unsafe_code, reason = "the standard library checks eight bytes one at a time: 80 instructions a string")]

/// The bytes as text, if they are UTF-8. Fast for up to eight bytes of ASCII.
#[inline]
pub fn utf8(bytes: &[u8]) -> Option<&str> {
    if bytes.len() <= 8 && bytes.is_ascii() {
        // SAFETY: ASCII is UTF-8, and these bytes were just found to be ASCII.
        return Some(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).ok()
}
