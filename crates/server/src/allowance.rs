//! How much a client may send before it has logged in.
//!
//! The WebSocket library reads a whole message into memory before it hands the message over, up to the largest that a user
//! may send. So the bytes of a stranger are counted below it: [`Allowed`] reads no more than the [`Allowance`] has left, and
//! when that is spent the connection is told so ([`Allowance::spent`]) and ends. A login lifts the limit.
//!
//! What has come of a message that is not whole counts in the process's memory budget ([`Allowance::count_in`]). Where that
//! leaves no more, reading fails, and the connection ends.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use futures_util::task::AtomicWaker;
use mangrove_graph::{Draw, MemoryBudget, Purpose};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// Without a limit.
const UNLIMITED: u64 = u64::MAX;

/// What a connection may have received of a message before it counts. Most messages are shorter.
const UNCOUNTED_BYTES_MAX: u64 = 64 << 10;

/// So much is drawn on the budget at a time.
const GRANT_BYTES: u64 = 256 << 10;

/// What a connection may still send. All accesses of its atomic are SeqCst: they are few, and none is on a query's way.
#[derive(Debug)]
pub struct Allowance {
    left: AtomicU64,
    /// The reader that waits for more.
    reader: AtomicWaker,
    is_spent: Notify,
    /// Bytes that came since the last whole message.
    unfinished: AtomicU64,
    /// What is drawn for them; `None` where they are not counted.
    draw: Mutex<Option<Draw>>,
    is_overdrawn: AtomicBool,
}

impl Default for Allowance {
    fn default() -> Self {
        Allowance {
            left: AtomicU64::new(UNLIMITED),
            reader: AtomicWaker::new(),
            is_spent: Notify::new(),
            unfinished: AtomicU64::new(0),
            draw: Mutex::new(None),
            is_overdrawn: AtomicBool::new(false),
        }
    }
}

impl Allowance {
    /// From now on so many bytes may come.
    pub fn limit(&self, bytes: usize) {
        self.left.store(bytes as u64, Ordering::SeqCst);
    }

    /// Any number of bytes may come.
    pub fn lift(&self) {
        self.left.store(UNLIMITED, Ordering::SeqCst);
        self.reader.wake();
    }

    /// Completes when the client sends more than it may.
    pub async fn spent(&self) {
        self.is_spent.notified().await;
    }

    /// From now on messages come, and count in this budget while they are put together.
    pub fn count_in(&self, budget: &MemoryBudget) {
        *self.draw.lock() = (!budget.is_unlimited()).then(|| budget.account(Purpose::Messages));
    }

    /// A message is whole, and counts by itself from now on.
    pub fn finished(&self) {
        if self.unfinished.swap(0, Ordering::SeqCst) > UNCOUNTED_BYTES_MAX
            && let Some(draw) = &mut *self.draw.lock()
        {
            draw.shrink(u64::MAX);
        }
    }

    /// Whether a message was given up because the memory budget had no room for it.
    pub fn is_overdrawn(&self) -> bool {
        self.is_overdrawn.load(Ordering::SeqCst)
    }

    /// So many bytes have come.
    fn received(&self, bytes: usize) -> io::Result<()> {
        let unfinished = self.unfinished.fetch_add(bytes as u64, Ordering::SeqCst).saturating_add(bytes as u64);
        if unfinished <= UNCOUNTED_BYTES_MAX {
            return Ok(());
        }
        let mut draw = self.draw.lock();
        let Some(draw) = draw.as_mut() else { return Ok(()) };
        let needed = unfinished.saturating_sub(draw.bytes());
        if needed == 0 {
            return Ok(());
        }
        draw.grow_generously(needed, needed.next_multiple_of(GRANT_BYTES)).map_err(|error| {
            self.is_overdrawn.store(true, Ordering::SeqCst);
            io::Error::other(error)
        })
    }

    /// How many bytes may be read now; waits while there are none.
    fn poll_left(&self, cx: &mut Context<'_>) -> Poll<u64> {
        let left = self.left.load(Ordering::SeqCst);
        if left > 0 {
            return Poll::Ready(left);
        }
        self.reader.register(cx.waker());
        // Again: the limit may have been lifted before the waker was there.
        match self.left.load(Ordering::SeqCst) {
            0 => Poll::Pending,
            left => Poll::Ready(left),
        }
    }

    /// So many bytes were read of those that were left.
    fn take(&self, bytes: usize, left: u64) {
        if left != UNLIMITED {
            let now = left.saturating_sub(bytes as u64);
            // A limit that was lifted meanwhile stays so.
            let _ = self.left.compare_exchange(left, now, Ordering::SeqCst, Ordering::SeqCst);
            if now == 0 {
                self.is_spent.notify_one();
            }
        }
    }
}

/// A stream of which no more is read than an allowance has left.
#[derive(Debug)]
pub struct Allowed<S> {
    stream: S,
    allowance: std::sync::Arc<Allowance>,
}

impl<S> Allowed<S> {
    /// Around a stream.
    pub fn new(stream: S, allowance: std::sync::Arc<Allowance>) -> Self {
        Allowed { stream, allowance }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Allowed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let left = ready!(self.allowance.poll_left(cx));
        if left == UNLIMITED {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
            return Poll::Ready(self.allowance.received(buffer.filled().len() - before));
        }
        let length = buffer.remaining().min(usize::try_from(left).unwrap_or(usize::MAX));
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(length));
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buffer.advance(read);
        self.allowance.take(read, left);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Allowed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_limit_holds_until_it_is_lifted() {
        let allowance = Arc::new(Allowance::default());
        let mut stream = Allowed::new(&b"0123456789"[..], Arc::clone(&allowance));
        assert_eq!(stream.read_u8().await.unwrap(), b'0');
        allowance.limit(4);
        let mut bytes = [0; 10];
        assert_eq!(stream.read(&mut bytes[..3]).await.unwrap(), 3);
        assert!(allowance.spent().now_or_never().is_none(), "a byte is left");
        assert_eq!(stream.read(&mut bytes).await.unwrap(), 1);
        allowance.spent().now_or_never().expect("nothing is left");
        assert!(stream.read(&mut bytes).now_or_never().is_none());
        allowance.lift();
        assert_eq!(stream.read(&mut bytes).await.unwrap(), 5);
    }
}
