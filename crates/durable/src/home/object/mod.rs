//! [`ObjectHome`]: a bucket of an S3-compatible store as a home.
//!
//! Two clients share the work. The one for [`Request::PutNew`] sends each request once: if it repeated a put whose answer
//! was lost, it would take its own object for another writer's. The other one repeats what may be repeated.
//!
//! The home has a runtime of its own with one thread, which also calls completions. Sources of bytes run on further
//! threads of the runtime, as many as there are large puts under way. When the home is dropped, requests under way are
//! answered `Unknown`.
//!
//! | module | content |
//! |---|---|
//! | `options` | where the bucket is, and how to get in |
//! | `failure` | what an error of the client says about a request |
//! | `upload` | puts of large objects in parts |

mod failure;
mod options;
mod upload;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::rustls::crypto::ring;

use self::failure::{Cause, Purpose, cause, failure, is_absent};
pub use self::options::ObjectOptions;
use super::{
    Completion, Home, HomeError, HomeErrorKind, HomeResult, HomeTraits, Name, Put, Reply, Request, cut_ranges,
};

/// Ranges with a gap of at most this many bytes are read as one: what a store sends in the time of a further request.
const GAP_BYTES: u64 = 64 << 10;

/// Ranges of one request that are read at the same time.
const RANGES_AT_ONCE: usize = 8;

/// More bytes than any object has. Stores fail at numbers that are much larger.
const OBJECT_BYTES_MAX: u64 = 1 << 46;

/// The longest object of a [`Request::PutNew`], in bytes: stores take no more in one request.
const PUT_NEW_BYTES_MAX: usize = 5_000_000_000;

/// A bucket, or a directory in it, as a home.
#[derive(Debug)]
pub struct ObjectHome {
    objects: Arc<Objects>,
    /// `None` only while this is dropped.
    runtime: Option<Runtime>,
}

impl ObjectHome {
    /// Opens the home in a bucket, without asking the store anything.
    pub fn new(options: &ObjectOptions) -> HomeResult<Self> {
        // Without it, the HTTP client would panic. A second call finds the first one's, which is as good.
        let _ = ring::default_provider().install_default();
        let place = format!("s3://{}", options.bucket);
        let once = Arc::new(options.client(false)?);
        let repeating = Arc::new(options.client(true)?);
        Self::over(once, repeating, place, options.endpoint_shown(), options.prefix.as_ref())
    }

    fn over(
        once: Arc<dyn ObjectStore>,
        repeating: Arc<dyn ObjectStore>,
        place: String,
        endpoint: String,
        prefix: Option<&Name>,
    ) -> HomeResult<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("mangrove-home").enable_all().build();
        let runtime = runtime.map_err(|error| {
            let message = format!("cannot start a thread for requests to {place}: {error}; raise the limit of threads");
            HomeError::new(HomeErrorKind::Unavailable, message)
        })?;
        let prefix = prefix.map(|prefix| format!("{prefix}/")).unwrap_or_default();
        let objects = Objects { once, repeating, place, endpoint, prefix };
        Ok(ObjectHome { objects: Arc::new(objects), runtime: Some(runtime) })
    }
}

impl Home for ObjectHome {
    fn submit(&self, request: Request, done: Completion) {
        let objects = self.objects.clone();
        let answer = Answer { done: Some(done), place: self.describe("") };
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move { answer.give(objects.answer(request).await) });
        }
    }

    fn describe(&self, name: &str) -> String {
        self.objects.describe(name)
    }

    fn traits(&self) -> HomeTraits {
        HomeTraits { is_durable: true, gap_bytes: GAP_BYTES }
    }
}

impl Drop for ObjectHome {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The last handle may be dropped by a completion, on a thread of the runtime, which cannot wait for itself.
            runtime.shutdown_background();
        }
    }
}

/// A completion that is called in any case: if the runtime drops the request, with an error.
struct Answer {
    done: Option<Completion>,
    place: String,
}

impl Answer {
    fn give(mut self, answer: HomeResult<Reply>) {
        if let Some(done) = self.done.take() {
            done(answer);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            let message = format!("{} was closed while a request was under way; open it again, and look", self.place);
            done(Err(HomeError::new(HomeErrorKind::Unknown, message)));
        }
    }
}

/// The clients, and what the objects are called there.
#[derive(Debug)]
struct Objects {
    /// Sends each request once.
    once: Arc<dyn ObjectStore>,
    /// Repeats requests that failed.
    repeating: Arc<dyn ObjectStore>,
    /// The URL of the bucket.
    place: String,
    endpoint: String,
    /// What all keys begin with: empty, or a directory and `/`.
    prefix: String,
}

impl Objects {
    fn describe(&self, name: &str) -> String {
        format!("{}/{}{name}", self.place, self.prefix)
    }

    /// The key of an object. The characters of names need no escapes.
    fn key(&self, name: &Name) -> Path {
        Path::from(format!("{}{name}", self.prefix))
    }

    fn failed(&self, error: &object_store::Error, purpose: Purpose, verb: &str, name: &str) -> HomeError {
        failure(error, purpose, verb, &format!("{} at {}", self.describe(name), self.endpoint))
    }

    /// The error of a read; `None` if it says that there is no object.
    fn unless_absent<T>(&self, result: object_store::Result<T>, verb: &str, name: &Name) -> HomeResult<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(self.failed(&error, Purpose::Read, verb, name.as_str())),
        }
    }

    async fn answer(&self, request: Request) -> HomeResult<Reply> {
        let verb = request.verb();
        Ok(match request {
            Request::PutNew { name, bytes } => Reply::Put(self.put_new(&name, bytes).await?),
            Request::PutUnique { name, source } => {
                upload::put(&*self.repeating, &self.key(&name), source, |error| {
                    self.failed(error, Purpose::Repeated, verb, name.as_str())
                })
                .await?;
                Reply::Put(Put::Done)
            }
            Request::Get { name } => {
                let bytes = async { self.repeating.get(&self.key(&name)).await?.bytes().await };
                Reply::Object(self.unless_absent(bytes.await, verb, &name)?)
            }
            Request::Ranges { name, ranges } => Reply::Ranges(self.ranges(&name, &ranges).await?),
            Request::Head { name } => Reply::Head(self.head(&name).await?),
            Request::List { directory } => Reply::Names(self.list(&directory).await?),
            Request::Delete { names } => {
                let keys: Vec<_> = names.iter().map(|name| Ok(self.key(name))).collect();
                let mut deleted = self.repeating.delete_stream(stream::iter(keys).boxed());
                while let Some(result) = deleted.next().await {
                    match result {
                        Err(error) if !is_absent(&error) => {
                            return Err(self.failed(&error, Purpose::Repeated, verb, ""));
                        }
                        _ => {}
                    }
                }
                Reply::Deleted
            }
        })
    }

    async fn put_new(&self, name: &Name, bytes: Bytes) -> HomeResult<Put> {
        if bytes.len() > PUT_NEW_BYTES_MAX {
            let message = format!(
                "cannot put {}: it has {} bytes, and a store takes at most {PUT_NEW_BYTES_MAX} in one request",
                self.describe(name.as_str()),
                bytes.len()
            );
            return Err(HomeError::new(HomeErrorKind::Invalid, message));
        }
        let options = PutOptions::from(PutMode::Create);
        match self.once.put_opts(&self.key(name), bytes.into(), options).await {
            Ok(_) => Ok(Put::Done),
            // Also for a put that met another one under way, of which perhaps neither is left: `settle` tells.
            Err(error) if matches!(cause(&error), Cause::Status(409 | 412)) => Ok(Put::Taken),
            Err(error) => Err(self.failed(&error, Purpose::PutOnce, "put", name.as_str())),
        }
    }

    /// Reads the first byte, and so learns the length. A `HEAD` costs as much, and cannot tell an object that is missing
    /// from a bucket that is.
    async fn head(&self, name: &Name) -> HomeResult<Option<u64>> {
        let options = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        match self.repeating.get_opts(&self.key(name), options).await {
            Err(error) if may_begin_at_the_end(&error) => Ok(Some(self.length(name, error).await?)),
            result => Ok(self.unless_absent(result, "look at", name)?.map(|object| object.meta.size)),
        }
    }

    /// The length of an object after a range of it could not be read. Returns that error if there is no object.
    async fn length(&self, name: &Name, error: object_store::Error) -> HomeResult<u64> {
        let head = self.repeating.head(&self.key(name)).await;
        head.map(|object| object.size).map_err(|_| self.failed(&error, Purpose::Read, "read", name.as_str()))
    }

    async fn ranges(&self, name: &Name, asked: &[Range<u64>]) -> HomeResult<Option<Vec<Bytes>>> {
        let asked = cut_ranges(asked, OBJECT_BYTES_MAX, &|| self.describe(name.as_str()))?;
        let merged = merge(&asked);
        if merged.is_empty() {
            // No bytes are asked for, only whether there is an object.
            return Ok(self.head(name).await?.map(|_| vec![Bytes::new(); asked.len()]));
        }
        let reads = merged.clone().into_iter().map(|range| self.range(name, range));
        let read: Vec<Option<Bytes>> = stream::iter(reads).buffered(RANGES_AT_ONCE).try_collect().await?;
        let Some(read) = read.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let slice = |range: &Range<u64>| {
            if range.is_empty() {
                return Bytes::new();
            }
            // Every range that is not empty lies in the last merged one that begins no later.
            let at = merged.partition_point(|merged| merged.start <= range.start) - 1;
            let within = |position: u64| ((position - merged[at].start) as usize).min(read[at].len());
            read[at].slice(within(range.start)..within(range.end))
        };
        Ok(Some(asked.iter().map(slice).collect()))
    }

    /// Reads one range, cut at the end of the object. `None` if there is no object.
    async fn range(&self, name: &Name, range: Range<u64>) -> HomeResult<Option<Bytes>> {
        let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let bytes = async {
            let result = self.repeating.get_opts(&self.key(name), options).await?;
            let len = result.range.end - result.range.start;
            Ok((result.bytes().await?, len))
        };
        match bytes.await {
            Err(error) if may_begin_at_the_end(&error) => {
                let failed = self.failed(&error, Purpose::Read, "read", name.as_str());
                if self.length(name, error).await? <= range.start { Ok(Some(Bytes::new())) } else { Err(failed) }
            }
            Ok((bytes, len)) if bytes.len() as u64 != len => {
                let message = format!(
                    "{} at {} sent {} bytes of {len}; try again later",
                    self.describe(name.as_str()),
                    self.endpoint,
                    bytes.len()
                );
                Err(HomeError::new(HomeErrorKind::Unavailable, message))
            }
            result => Ok(self.unless_absent(result, "read", name)?.map(|(bytes, _)| bytes)),
        }
    }

    async fn list(&self, directory: &Name) -> HomeResult<Vec<Name>> {
        let listed = self.repeating.list_with_delimiter(Some(&self.key(directory))).await;
        // A directory without objects is not there, and is empty.
        let Some(listed) = self.unless_absent(listed, "list", directory)? else {
            return Ok(Vec::new());
        };
        // Objects of other programs may lie there too.
        let name = |key: &Path| Name::new(key.as_ref().strip_prefix(&self.prefix)?).ok();
        Ok(listed.objects.iter().filter_map(|object| name(&object.location)).collect())
    }
}

/// Returns true for the error by which stores answer if a range begins at the end of the object or after it.
fn may_begin_at_the_end(error: &object_store::Error) -> bool {
    matches!(cause(error), Cause::Status(416) | Cause::Other)
}

/// The ranges to read, ascending, so that each range that is not empty lies in one of them.
fn merge(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP_BYTES) => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests;
