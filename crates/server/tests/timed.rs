//! The integration tests that measure times or have short time limits. They are a program, so that tests that keep all cores
//! busy do not run beside them.

mod common;
mod http;
mod limits;
mod rights;
mod security;
mod sessions;
mod shares;
