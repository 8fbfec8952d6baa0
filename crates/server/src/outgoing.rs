//! The way out of a WebSocket, shared by all of its requests.
//!
//! A message goes through a bounded queue to the connection's writer, or, where nothing else is on its way, is written at
//! once by the thread that made it: to wake the writer's thread takes longer than most queries. Invariants:
//!
//! 1. Messages of one request arrive in the order in which it sent them. `waiting` counts what was given to the queue and
//!    is not written yet; only at zero is anything written beside the queue, so nothing overtakes.
//! 2. What a thread could only begin to write, because the client's side is full, the writer goes on with: it is given the
//!    word to, and until it has, everything else queues.

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

use crate::wire::Gone;

/// A message on its way out.
#[derive(Debug)]
pub struct Letter {
    /// What is sent.
    pub message: Message,
    /// What it takes of the memory budget until it is written; none for small ones.
    pub draw: Option<Draw>,
}

impl From<Message> for Letter {
    fn from(message: Message) -> Self {
        Letter { message, draw: None }
    }
}

/// What the writer is given.
#[derive(Debug)]
enum Word {
    Letter(Letter),
    /// Go on with what was begun, which takes so much of the memory budget.
    Flush(Option<Draw>),
}

struct Shared {
    sink: Mutex<SplitSink<WebSocket, Message>>,
    /// Words that were given to the queue, or are about to be, and are not written yet.
    waiting: AtomicUsize,
}

/// Where requests send their answers.
#[derive(Clone)]
pub struct Outgoing {
    queue: mpsc::Sender<Word>,
    shared: Arc<Shared>,
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing").field("waiting", &self.shared.waiting).finish_non_exhaustive()
    }
}

/// One that waits, unless it was taken back.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Self {
        // SeqCst, as everywhere on this counter: it is read beside the lock of the sink, and is off any hot path.
        waiting.fetch_add(1, Ordering::SeqCst);
        Waits(waiting)
    }

    /// The writer counts it off.
    fn handed_over(self) {
        std::mem::forget(self);
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The two ends of the way out; so many messages may wait.
pub fn outgoing(sink: SplitSink<WebSocket, Message>, count_max: usize) -> (Outgoing, Writer) {
    let (sender, queue) = mpsc::channel(count_max);
    let shared = Arc::new(Shared { sink: Mutex::new(sink), waiting: AtomicUsize::new(0) });
    (Outgoing { queue: sender, shared: Arc::clone(&shared) }, Writer { queue, shared })
}

impl Outgoing {
    /// Sends a message when there is room in the queue.
    pub async fn send(&self, letter: impl Into<Letter>) -> Result<(), Gone> {
        let waits = Waits::begin(&self.shared.waiting);
        self.queue.send(Word::Letter(letter.into())).await.map_err(|_| Gone)?;
        waits.handed_over();
        Ok(())
    }

    /// Writes a message on this thread, if nothing is before it. Else it is handed back.
    pub fn write_now(&self, letter: Letter) -> Result<(), Letter> {
        let Ok(mut sink) = self.shared.sink.try_lock() else { return Err(letter) };
        // Under the lock: the writer counts a word off only when it is written.
        if self.shared.waiting.load(Ordering::SeqCst) > 0 {
            return Err(letter);
        }
        let mut sink = Pin::new(&mut *sink);
        // Whoever is to be woken is the writer, which asks again by itself.
        let mut cx = Context::from_waker(Waker::noop());
        if !matches!(sink.as_mut().poll_ready(&mut cx), Poll::Ready(Ok(()))) {
            return Err(letter);
        }
        // A connection that broke is found by its reader, and by the next word.
        let Letter { message, draw } = letter;
        if sink.as_mut().start_send(message).is_ok() && sink.as_mut().poll_flush(&mut cx).is_pending() {
            let waits = Waits::begin(&self.shared.waiting);
            // A queue that is full has the writer flush, too.
            if self.queue.try_send(Word::Flush(draw)).is_ok() {
                waits.handed_over();
            }
        }
        Ok(())
    }
}

/// Writes what is in the queue.
pub struct Writer {
    queue: mpsc::Receiver<Word>,
    shared: Arc<Shared>,
}

impl Writer {
    /// Until no request can send anymore, the client is gone, or it takes nothing for too long.
    pub async fn run(mut self, stall_max: Duration, ping_interval: Duration) {
        // Also while there is much to write: a client that reads for minutes must have something to answer.
        let mut pings = tokio::time::interval(ping_interval);
        pings.reset();
        loop {
            let (word, is_counted) = tokio::select! {
                word = self.queue.recv() => match word {
                    Some(word) => (word, true),
                    None => break,
                },
                _ = pings.tick() => (Word::Letter(Message::Ping(Bytes::new()).into()), false),
            };
            let mut sink = self.shared.sink.lock().await;
            let write = async {
                // What is drawn is given back when all is written: the WebSocket library copies a message into a buffer of its own.
                match word {
                    Word::Letter(Letter { message, draw: _draw }) => sink.send(message).await,
                    Word::Flush(_draw) => sink.flush().await,
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
