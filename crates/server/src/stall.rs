//! A connection that ends when its other side takes nothing for too long.
//!
//! HTTP and WebSockets hold back what makes an answer while a client does not read it, which bounds memory and not time:
//! a client that never reads would keep its place, its queries and what is on the way to it for ever. Here, below both,
//! a write that waits for longer than [`Limits::write_stall_max`](crate::config::Limits::write_stall_max) fails. Any byte
//! that is taken begins the time anew.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// See the module.
#[derive(Debug)]
pub struct Stalling<S> {
    stream: S,
    stall_max: Duration,
    /// Runs while a write waits.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> Stalling<S> {
    /// Around a stream.
    pub fn new(stream: S, stall_max: Duration) -> Self {
        Stalling { stream, stall_max, timer: None }
    }

    /// Has the stream write something, unless that takes too long.
    fn watched<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(written) = write(Pin::new(&mut self.stream), cx) {
            self.timer = None;
            return Poll::Ready(written);
        }
        let stall_max = self.stall_max;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(stall_max)));
        ready!(timer.as_mut().poll(cx));
        tracing::warn!("a client took nothing for {stall_max:?} (write_stall_max); its connection is dropped");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.watched(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.watched(cx, |stream, cx| stream.poll_write_vectored(cx, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watched(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watched(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}
