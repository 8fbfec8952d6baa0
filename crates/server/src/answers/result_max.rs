//! The limits on the size of results, and the errors for results that exceed them (SERVER-1).
//!
//! The sink (`answers::sink`) checks one result before it is encoded, and held results before and after.

use mangrove_graph::{Error, ErrorKind, Result};

use crate::limits::Limits;

/// The limits on results of one request.
#[derive(Clone, Copy, Debug)]
pub struct ResultMax {
    /// About the most bytes of one result (`result_bytes_max`).
    pub one_bytes: u64,
    /// The most results held back (`held_result_count_max`).
    pub held_count: usize,
    /// The most bytes of results held back: encoded, or by weight before that (`held_result_bytes_max`).
    pub held_bytes: u64,
}

impl ResultMax {
    /// The limits of a server.
    pub fn of(limits: &Limits) -> Self {
        ResultMax {
            one_bytes: limits.result_bytes_max as u64,
            held_count: limits.held_result_count_max,
            held_bytes: limits.held_result_bytes_max as u64,
        }
    }

    /// Returns an error if one result of this weight, in bytes, is too large.
    pub fn check_one(self, bytes: u64) -> Result<()> {
        if bytes <= self.one_bytes {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::MemoryLimit,
            format!(
                "one result has about {bytes} bytes, more than {} (result_bytes_max); return its parts one by one, \
                 with unfold(), or fewer of them",
                self.one_bytes
            ),
        ))
    }

    /// Returns an error if a request may not hold back so many results, or so many bytes of them.
    pub fn check_held(self, count: usize, bytes: u64) -> Result<()> {
        let too_many = match (count > self.held_count, bytes > self.held_bytes) {
            (true, _) => format!("there are more than {} of them (held_result_count_max)", self.held_count),
            (_, true) => format!("they have more than {} bytes (held_result_bytes_max)", self.held_bytes),
            (false, false) => return Ok(()),
        };
        Err(Error::new(
            ErrorKind::MemoryLimit,
            format!(
                "the results of a request that writes are held back until the transaction is committed, and \
                 {too_many}; ask for fewer, with count() or iterate(), or read them in a request of their own"
            ),
        ))
    }
}
