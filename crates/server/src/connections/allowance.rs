//! The bytes that a client may send: few before its login, and never more than the memory budget has room for.
//!
//! The WebSocket library reads a whole message into memory before it returns it, up to the largest that a user may
//! send. So the bytes are counted below the library. [`AllowedStream`] reads no more than the [`Allowance`] has left.
//! When that is spent the connection is told ([`Allowance::spent`]) and ends. A login lifts the limit.
//!
//! The bytes of an unfinished message count in the process's memory budget ([`Allowance::count_in`]). If the budget has
//! no room, reading fails and the connection ends.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use futures_util::task::AtomicWaker;
use mangrove_graph::{Draw, MemoryBudget, Purpose};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// The value of `left` without a limit.
const UNLIMITED: u64 = u64::MAX;

/// Bytes of an unfinished message that do not count yet. Most messages are shorter.
const UNCOUNTED_BYTES_MAX: u64 = 64 << 10;

/// Bytes drawn on the budget at a time.
const GRANT_BYTES: u64 = 256 << 10;

/// The bytes that a connection may still send. All accesses of its atomics are SeqCst: they are few, and none is on a
/// query's path.
#[derive(Debug)]
pub struct Allowance {
    left: AtomicU64,
    /// The reader that waits for more.
    reader: AtomicWaker,
    is_spent: Notify,
    /// Bytes that came since the last whole message.
    unfinished: AtomicU64,
    /// The draw for them; `None` if they are not counted.
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
    /// Limits the bytes that may come from now on.
    pub fn limit(&self, bytes: usize) {
        self.left.store(bytes as u64, Ordering::SeqCst);
    }

    /// Removes the limit.
    pub fn lift(&self) {
        self.left.store(UNLIMITED, Ordering::SeqCst);
        self.reader.wake();
    }

    /// Completes when the client has sent all that it may.
    pub async fn spent(&self) {
        self.is_spent.notified().await;
    }

    /// Counts unfinished messages in this budget from now on.
    pub fn count_in(&self, budget: &MemoryBudget) {
        *self.draw.lock() = (!budget.is_unlimited()).then(|| budget.account(Purpose::Messages));
    }

    /// Notes the end of a message: its request counts it from here on.
    pub fn finished(&self) {
        if self.unfinished.swap(0, Ordering::SeqCst) > UNCOUNTED_BYTES_MAX
            && let Some(draw) = &mut *self.draw.lock()
        {
            draw.shrink(u64::MAX);
        }
    }

    /// Returns true if reading failed because the memory budget had no room.
    pub fn is_overdrawn(&self) -> bool {
        self.is_overdrawn.load(Ordering::SeqCst)
    }

    /// Counts received bytes.
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

    /// The bytes that may be read now; pending while there are none.
    fn poll_left(&self, cx: &mut Context<'_>) -> Poll<u64> {
        let left = self.left.load(Ordering::SeqCst);
        if left > 0 {
            return Poll::Ready(left);
        }
        self.reader.register(cx.waker());
        // Again: the limit may have been lifted before the waker was registered.
        match self.left.load(Ordering::SeqCst) {
            0 => Poll::Pending,
            left => Poll::Ready(left),
        }
    }

    /// Subtracts bytes that were read.
    fn take(&self, bytes: usize, left: u64) {
        if left != UNLIMITED {
            let now = left.saturating_sub(bytes as u64);
            // If the limit was lifted meanwhile, the exchange fails and it stays lifted.
            let _ = self.left.compare_exchange(left, now, Ordering::SeqCst, Ordering::SeqCst);
            if now == 0 {
                self.is_spent.notify_one();
            }
        }
    }
}

/// A stream that reads no more than its allowance has left.
#[derive(Debug)]
pub struct AllowedStream<S> {
    stream: S,
    allowance: std::sync::Arc<Allowance>,
}

impl<S> AllowedStream<S> {
    /// Wraps a stream.
    pub fn new(stream: S, allowance: std::sync::Arc<Allowance>) -> Self {
        AllowedStream { stream, allowance }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for AllowedStream<S> {
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

impl<S: AsyncWrite + Unpin> AsyncWrite for AllowedStream<S> {
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
        let mut stream = AllowedStream::new(&b"0123456789"[..], Arc::clone(&allowance));
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
