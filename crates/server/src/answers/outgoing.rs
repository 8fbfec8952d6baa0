//! The outgoing queue of a WebSocket, shared by all its requests.
//!
//! A message goes through a bounded queue to the connection's writer task. If nothing else is on its way, the thread
//! that made the message writes it at once instead, because waking the writer's thread takes longer than most queries.
//!
//! - **SERVER-7.** Messages of one request arrive in the order in which the request sent them. `waiting` counts the
//!   messages that were given to the queue and are not written. A thread writes directly only if it holds the sink's
//!   lock and `waiting` is 0.
//!
//! If the connection takes only the beginning of a message, the thread leaves the rest to the writer as
//! [`WriterOrder::Flush`]. Until that is written, `waiting` is above 0 and all other messages queue.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket};
use futures_util::stream::SplitSink;
use futures_util::{Sink, SinkExt};
use mangrove_graph::Draw;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

/// The error that the client has gone away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientGone;

/// A message that waits to be written.
#[derive(Debug)]
pub struct OutgoingMessage {
    /// The message.
    pub message: Message,
    /// The message's draw on the memory budget until it is written; `None` for small ones.
    pub draw: Option<Draw>,
}

impl From<Message> for OutgoingMessage {
    fn from(message: Message) -> Self {
        OutgoingMessage { message, draw: None }
    }
}

/// An order to the writer.
#[derive(Debug)]
enum WriterOrder {
    Message(OutgoingMessage),
    /// Finish a message that another thread began to write, and then release its draw.
    Flush(Option<Draw>),
}

struct QueueState {
    sink: Mutex<SplitSink<WebSocket, Message>>,
    /// Orders that were given to the queue, or are about to be, and are not done.
    waiting: AtomicUsize,
}

/// The sending side of the queue. Cloning is cheap.
#[derive(Clone)]
pub struct Outgoing {
    queue: mpsc::Sender<WriterOrder>,
    shared: Arc<QueueState>,
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing").field("waiting", &self.shared.waiting).finish_non_exhaustive()
    }
}

/// An order counted in `waiting`, until it is dropped or handed over to the writer.
struct WaitingOrder<'a>(&'a AtomicUsize);

impl<'a> WaitingOrder<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Self {
        // SeqCst, as everywhere on this counter: it is read together with the lock of the sink, and is on no hot path.
        waiting.fetch_add(1, Ordering::SeqCst);
        WaitingOrder(waiting)
    }

    /// From here on the writer counts it down.
    fn handed_over(self) {
        std::mem::forget(self);
    }
}

impl Drop for WaitingOrder<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The two ends of a queue in which `count_max` orders may wait.
pub fn outgoing(sink: SplitSink<WebSocket, Message>, count_max: usize) -> (Outgoing, QueueWriter) {
    let (sender, queue) = mpsc::channel(count_max);
    let shared = Arc::new(QueueState { sink: Mutex::new(sink), waiting: AtomicUsize::new(0) });
    (Outgoing { queue: sender, shared: Arc::clone(&shared) }, QueueWriter { queue, shared })
}

impl Outgoing {
    /// Waits for room in the queue and puts a message into it. Fails if the writer has ended.
    pub async fn send(&self, outgoing: impl Into<OutgoingMessage>) -> Result<(), ClientGone> {
        let waits = WaitingOrder::begin(&self.shared.waiting);
        self.queue.send(WriterOrder::Message(outgoing.into())).await.map_err(|_| ClientGone)?;
        waits.handed_over();
        Ok(())
    }

    /// Writes a message on this thread if no other message waits before it. Otherwise returns it, to be sent.
    pub fn write_now(&self, outgoing: OutgoingMessage) -> Result<(), OutgoingMessage> {
        let Ok(mut sink) = self.shared.sink.try_lock() else { return Err(outgoing) };
        // SERVER-7: checked under the lock, since the writer counts an order down only after it has written it.
        if self.shared.waiting.load(Ordering::SeqCst) > 0 {
            return Err(outgoing);
        }
        let mut sink = Pin::new(&mut *sink);
        // No waker is needed: if the sink is not ready, the writer polls it with its own.
        let mut cx = Context::from_waker(Waker::noop());
        if !matches!(sink.as_mut().poll_ready(&mut cx), Poll::Ready(Ok(()))) {
            return Err(outgoing);
        }
        // A broken connection is found by its reader, and by the next order.
        let OutgoingMessage { message, draw } = outgoing;
        if sink.as_mut().start_send(message).is_ok() && sink.as_mut().poll_flush(&mut cx).is_pending() {
            let waits = WaitingOrder::begin(&self.shared.waiting);
            // If the queue is full, the orders in it make the writer flush as well.
            if self.queue.try_send(WriterOrder::Flush(draw)).is_ok() {
                waits.handed_over();
            }
        }
        Ok(())
    }
}

/// The writer: carries out the orders in the queue.
pub struct QueueWriter {
    queue: mpsc::Receiver<WriterOrder>,
    shared: Arc<QueueState>,
}

impl QueueWriter {
    /// Runs until all senders are dropped, the client is gone, or it reads nothing for `stall_max`.
    pub async fn run(mut self, stall_max: Duration, ping_interval: Duration) {
        // Pings are sent also while there is much to write: a client that reads for minutes must get some to answer.
        let mut pings = tokio::time::interval(ping_interval);
        pings.reset();
        loop {
            let (order, is_counted) = tokio::select! {
                order = self.queue.recv() => match order {
                    Some(order) => (order, true),
                    None => break,
                },
                _ = pings.tick() => (WriterOrder::Message(Message::Ping(Bytes::new()).into()), false),
            };
            let mut sink = self.shared.sink.lock().await;
            let write = async {
                // The draw is released after the write: the WebSocket library copies the message into a buffer of its
                // own.
                match order {
                    WriterOrder::Message(OutgoingMessage { message, draw: _draw }) => sink.send(message).await,
                    WriterOrder::Flush(_draw) => sink.flush().await,
                }
            };
            match timeout(stall_max, write).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(_) => {
                    tracing::warn!("a client took nothing for {stall_max:?}; its connection is dropped");
                    return;
                }
            }
            if is_counted {
                self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let _ = timeout(stall_max, async { self.shared.sink.lock().await.close().await }).await;
    }
}
