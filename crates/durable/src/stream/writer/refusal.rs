//! Why a commit is refused before it draws a timestamp.

use std::fmt;

use mangrove_graph::{Error, ErrorKind};

/// Why a commit is refused before it draws a timestamp.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The oldest put has no outcome for this long. The text is what the home said last.
    Unsettled {
        /// Microseconds since the put was sent.
        for_us: u64,
        /// What the home said last, if anything.
        cause: Option<String>,
    },
    /// This many bytes of commits wait.
    Backlog {
        /// Bytes of records.
        bytes: u64,
    },
    /// A successor has ended the stream.
    Fenced {
        /// The incarnation of the successor, if known.
        by: Option<u64>,
    },
    /// The owner is ending the stream.
    Finishing,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const AGAIN: &str = "Nothing is lost; try again later";
        match self {
            Refusal::Unsettled { for_us, cause } => {
                let seconds = *for_us as f64 / 1e6;
                write!(f, "the graph's home has not confirmed the log for {seconds:.1} s")?;
                cause.iter().try_for_each(|cause| write!(f, " ({cause})"))?;
                write!(f, ", so it takes no further commits. {AGAIN}")
            }
            Refusal::Backlog { bytes } => {
                write!(f, "{bytes} bytes of commits wait for the graph's home, so it takes no further commits. {AGAIN}")
            }
            Refusal::Fenced { by: Some(by) } => {
                write!(f, "another process has opened the graph (incarnation {by}), so this one has stopped writing")
            }
            Refusal::Fenced { by: None } => {
                write!(f, "another process has written into this process's log, so this one has stopped writing")
            }
            Refusal::Finishing => f.write_str("the graph is being closed, and takes no further commits"),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::Unsettled { .. } | Refusal::Backlog { .. } => ErrorKind::ReadOnly,
            Refusal::Fenced { .. } | Refusal::Finishing => ErrorKind::Closed,
        };
        Error::new(kind, refusal.to_string())
    }
}
