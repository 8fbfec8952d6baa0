//! [`WaitHome`]: the requests of a home as methods that wait for the answer. Recovery and tests use them; executors and
//! the stream of commits never wait.

use std::ops::Range;
use std::sync::mpsc::sync_channel;

use bytes::Bytes;

use super::{ByteSource, Home, HomeError, HomeErrorKind, HomeResult, Name, Put, Reply, Request};

/// The requests of every [`Home`], waited for.
pub trait WaitHome: Home {
    /// Submits a request and waits for the answer.
    fn wait_for(&self, request: Request) -> HomeResult<Reply> {
        let verb = request.verb();
        let (sender, answers) = sync_channel(1);
        // The receiver stays until the answer is there, so sending cannot fail.
        self.submit(request, Box::new(move |answer| drop(sender.send(answer))));
        // Only a home that breaks HOME-4 drops a completion without a call.
        answers.recv().unwrap_or_else(|_| {
            let home = self.describe("");
            Err(HomeError::new(
                HomeErrorKind::Unknown,
                format!("{home} gave no answer to a request to {verb} something"),
            ))
        })
    }

    /// [`Request::PutNew`].
    fn put_new(&self, name: &Name, bytes: Bytes) -> HomeResult<Put> {
        match self.wait_for(Request::PutNew { name: name.clone(), bytes })? {
            Reply::Put(put) => Ok(put),
            _ => Err(mismatched(self.describe(name.as_str()))),
        }
    }

    /// [`Request::PutUnique`].
    fn put_unique(&self, name: &Name, source: Box<dyn ByteSource>) -> HomeResult<()> {
        match self.wait_for(Request::PutUnique { name: name.clone(), source })? {
            Reply::Put(Put::Done) => Ok(()),
            _ => Err(mismatched(self.describe(name.as_str()))),
        }
    }

    /// [`Request::Get`].
    fn get(&self, name: &Name) -> HomeResult<Option<Bytes>> {
        match self.wait_for(Request::Get { name: name.clone() })? {
            Reply::Object(bytes) => Ok(bytes),
            _ => Err(mismatched(self.describe(name.as_str()))),
        }
    }

    /// [`Request::Ranges`].
    fn ranges(&self, name: &Name, ranges: Vec<Range<u64>>) -> HomeResult<Option<Vec<Bytes>>> {
        match self.wait_for(Request::Ranges { name: name.clone(), ranges })? {
            Reply::Ranges(bytes) => Ok(bytes),
            _ => Err(mismatched(self.describe(name.as_str()))),
        }
    }

    /// The first bytes of an object, all of them if there is no limit; `None` if there is no object.
    fn first_bytes(&self, name: &Name, bytes_max: Option<usize>) -> HomeResult<Option<Bytes>> {
        match bytes_max {
            None => self.get(name),
            Some(count) => {
                let first = self.ranges(name, std::iter::once(0..count as u64).collect())?;
                Ok(first.map(|ranges| ranges.into_iter().next().unwrap_or_default()))
            }
        }
    }

    /// [`Request::Head`].
    fn head(&self, name: &Name) -> HomeResult<Option<u64>> {
        match self.wait_for(Request::Head { name: name.clone() })? {
            Reply::Head(len) => Ok(len),
            _ => Err(mismatched(self.describe(name.as_str()))),
        }
    }

    /// [`Request::List`].
    fn list(&self, directory: &Name) -> HomeResult<Vec<Name>> {
        match self.wait_for(Request::List { directory: directory.clone() })? {
            Reply::Names(names) => Ok(names),
            _ => Err(mismatched(self.describe(directory.as_str()))),
        }
    }

    /// [`Request::Delete`].
    fn delete(&self, names: Vec<Name>) -> HomeResult<()> {
        match self.wait_for(Request::Delete { names })? {
            Reply::Deleted => Ok(()),
            _ => Err(mismatched(self.describe(""))),
        }
    }
}

impl<H: Home + ?Sized> WaitHome for H {}

fn mismatched(object: String) -> HomeError {
    HomeError::new(
        HomeErrorKind::Unknown,
        format!("{object}: the home answered another request than the one it was sent; this is a bug, report it"),
    )
}
