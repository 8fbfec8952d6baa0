//! The trait of errors that the script engine handles. A server reports errors in a form of its own.

use mangrove_graph::{Error, ErrorKind};

/// An error of a script in the form that its host reports.
pub trait ScriptFailure: From<Error> {
    /// The request itself is wrong.
    fn invalid(message: String) -> Self;

    /// The failure with the position of its statement, if that has to be said.
    #[must_use]
    fn at(self, position: Option<&str>) -> Self;

    /// The error itself.
    fn into_error(self) -> Error;

    /// The kind of the error.
    fn kind(&self) -> ErrorKind;
}

impl ScriptFailure for Error {
    fn invalid(message: String) -> Self {
        Error::new(ErrorKind::InvalidArgument, message)
    }

    fn at(self, position: Option<&str>) -> Self {
        match position {
            Some(position) => self.context(position),
            None => self,
        }
    }

    fn into_error(self) -> Error {
        self
    }

    fn kind(&self) -> ErrorKind {
        Error::kind(self)
    }
}
