//! Puts of objects whose bytes come from a source: in one request if they are few, and in parts otherwise.

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::stream::FuturesUnordered;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};

use super::super::{ByteSource, HomeError, HomeErrorKind, HomeResult};

/// The bytes of a part. All parts but the last one have as many, as some stores require. A store takes 10,000 parts, so
/// an object has at most 160 GB.
const PART_BYTES: usize = 16 << 20;

/// Parts that are sent at the same time, for one object.
const PARTS_AT_ONCE: usize = 3;

/// Puts an object. `failed` makes the error of a request that failed. If the source fails, nothing is under the name, and
/// the parts are dropped.
pub(super) async fn put(
    store: &dyn ObjectStore,
    key: &Path,
    source: Box<dyn ByteSource>,
    failed: impl Fn(&object_store::Error) -> HomeError,
) -> HomeResult<()> {
    let mut parts = Parts { source, rest: Bytes::new() };
    let first;
    (parts, first) = parts.next().await?;
    let first = first.unwrap_or_default();
    if first.content_length() < PART_BYTES {
        return store.put(key, first).await.map(drop).map_err(|error| failed(&error));
    }
    let mut upload = store.put_multipart(key).await.map_err(|error| failed(&error))?;
    let sent = send_parts(&mut *upload, parts, first, &failed).await;
    let done = match sent {
        Ok(()) => upload.complete().await.map(drop).map_err(|error| failed(&error)),
        Err(error) => Err(error),
    };
    if done.is_err() {
        // Parts that stay cost money, but harm nothing. The error that counts is the first one.
        let _ = upload.abort().await;
    }
    done
}

async fn send_parts(
    upload: &mut dyn MultipartUpload,
    mut parts: Parts,
    first: PutPayload,
    failed: &impl Fn(&object_store::Error) -> HomeError,
) -> HomeResult<()> {
    let mut under_way = FuturesUnordered::new();
    let mut next = Some(first);
    while let Some(part) = next {
        under_way.push(upload.put_part(part));
        if under_way.len() == PARTS_AT_ONCE {
            under_way.try_next().await.map_err(|error| failed(&error))?;
        }
        (parts, next) = parts.next().await?;
    }
    while under_way.try_next().await.map_err(|error| failed(&error))?.is_some() {}
    Ok(())
}

/// A source cut into parts.
struct Parts {
    source: Box<dyn ByteSource>,
    /// What the last piece has more than the last part needed.
    rest: Bytes,
}

impl Parts {
    /// The next part; `None` after the last one. Making bytes may take its time, so a thread for that does it.
    async fn next(mut self) -> HomeResult<(Self, Option<PutPayload>)> {
        let made = tokio::task::spawn_blocking(move || {
            let part = self.make()?;
            Ok((self, part))
        });
        made.await.unwrap_or_else(|_| {
            let message = "the source of an object panicked; this is a bug, report it";
            Err(HomeError::new(HomeErrorKind::Source, message))
        })
    }

    fn make(&mut self) -> HomeResult<Option<PutPayload>> {
        let (mut pieces, mut len) = (Vec::new(), 0);
        while len < PART_BYTES {
            if self.rest.is_empty() {
                match self.source.next_piece()? {
                    Some(piece) => self.rest = piece,
                    None => break,
                }
            }
            let piece = self.rest.split_to(self.rest.len().min(PART_BYTES - len));
            len += piece.len();
            if !piece.is_empty() {
                pieces.push(piece);
            }
        }
        Ok(if len == 0 { None } else { Some(pieces.into_iter().collect()) })
    }
}
