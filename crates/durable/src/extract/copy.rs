//! Copies of packs and of objects of streams, piece by piece and several at a time. What is copied is checked on its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use bytes::Bytes;
use mangrove_graph::Result;
use parking_lot::Mutex;

use crate::checkpoint::home::patiently;
use crate::damage::damaged_in;
use crate::disk::Disk;
use crate::home::{ByteSource, Home, HomeError, HomeErrorKind, HomeResult, Name, WaitHome};
use crate::manifest::ManifestPack;
use crate::pin::Pin;
use crate::stream::format::open;

/// Bytes of a pack that are read at a time.
const PIECE_BYTES: u64 = 8 << 20;
/// Objects that are copied at a time.
const COPIES_AT_A_TIME: usize = 4;
/// How often pins are looked at while objects are copied.
const RENEW_EVERY: Duration = Duration::from_secs(1);

/// Where the packs come from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    store: OriginStore,
    patience: Duration,
}

#[derive(Clone, Debug)]
enum OriginStore {
    Home(Arc<dyn Home>),
    Disk(Arc<dyn Disk>),
}

impl Origin {
    /// A home, whose requests are sent again for so long.
    pub(crate) fn of_home(home: Arc<dyn Home>, patience: Duration) -> Self {
        Origin { store: OriginStore::Home(home), patience }
    }

    /// A directory.
    pub(crate) fn of_disk(disk: Arc<dyn Disk>) -> Self {
        Origin { store: OriginStore::Disk(disk), patience: Duration::ZERO }
    }

    /// The home; `None` for a directory.
    pub(crate) fn home(&self) -> Option<&Arc<dyn Home>> {
        match &self.store {
            OriginStore::Home(home) => Some(home),
            OriginStore::Disk(_) => None,
        }
    }

    /// The directory; `None` for a home.
    pub(crate) fn disk(&self) -> Option<&Arc<dyn Disk>> {
        match &self.store {
            OriginStore::Home(_) => None,
            OriginStore::Disk(disk) => Some(disk),
        }
    }

    /// The bytes of a pack.
    pub(crate) fn pack(&self, pack: &ManifestPack) -> PackBytes {
        PackBytes { origin: self.clone(), path: pack.path(), length: pack.bytes, expected: pack.crc32c, at: 0, crc: 0 }
    }

    fn describe(&self, path: &str) -> String {
        match &self.store {
            OriginStore::Home(home) => home.describe(path),
            OriginStore::Disk(disk) => disk.describe(path),
        }
    }

    /// The bytes of a range; fewer at the end.
    fn range(&self, path: &str, from: u64, count: u64) -> Result<Bytes> {
        let missing = || damaged_in(&self.describe(path), 0, "it is missing, and the manifest names it");
        match &self.store {
            OriginStore::Home(home) => {
                let name = Name::new(path)?;
                let ranges = || home.ranges(&name, std::iter::once(from..from.saturating_add(count)).collect());
                let found = patiently(self.patience, ranges)?.ok_or_else(missing)?;
                Ok(found.into_iter().next().unwrap_or_default())
            }
            OriginStore::Disk(disk) => {
                let file = match disk.open_read(path) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(missing()),
                    opened => opened?,
                };
                let mut bytes = vec![0; count as usize];
                let read = file.read_at(from, &mut bytes)?;
                bytes.truncate(read);
                Ok(bytes.into())
            }
        }
    }
}

/// The bytes of a pack, checked against the length and the checksum that its manifest says.
#[derive(Debug)]
pub(crate) struct PackBytes {
    origin: Origin,
    path: String,
    length: u64,
    expected: u32,
    at: u64,
    crc: u32,
}

impl PackBytes {
    /// The next piece; `None` after the last one, if all of it was right.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>> {
        let count = PIECE_BYTES.min(self.length - self.at);
        let damaged = |at: u64, what: String| damaged_in(&self.origin.describe(&self.path), at, what);
        if count == 0 {
            return match self.crc == self.expected {
                true => Ok(None),
                false => Err(damaged(
                    0,
                    format!("its checksum is {:08x}, and the manifest says {:08x}", self.crc, self.expected),
                )),
            };
        }
        let piece = self.origin.range(&self.path, self.at, count)?;
        if piece.len() as u64 != count {
            let at = self.at + piece.len() as u64;
            return Err(damaged(at, format!("it ends there, and the manifest says that it has {} bytes", self.length)));
        }
        self.at += count;
        self.crc = crc32c::crc32c_append(self.crc, &piece);
        Ok(Some(piece))
    }
}

impl ByteSource for PackBytes {
    fn next_piece(&mut self) -> HomeResult<Option<Bytes>> {
        self.next().map_err(|error| HomeError::new(HomeErrorKind::Source, error.message()))
    }
}

/// Copies a pack to a home.
pub(crate) fn copy_pack(origin: &Origin, pack: &ManifestPack, to: &dyn Home, patience: Duration) -> Result<u64> {
    let name = Name::new(&pack.path())?;
    patiently(patience, || to.put_unique(&name, Box::new(origin.pack(pack))))?;
    Ok(pack.bytes)
}

/// Copies an object of a stream from one home to another. Returns its bytes.
pub(crate) fn copy_object(from: &dyn Home, name: &str, to: &dyn Home, patience: Duration) -> Result<u64> {
    let place = Name::new(name)?;
    let found = patiently(patience, || from.get(&place))?;
    let bytes = found.ok_or_else(|| damaged_in(&from.describe(name), 0, "it is missing, and its stream goes on"))?;
    open(&bytes).map_err(|error| error.of(&from.describe(name)))?;
    let length = bytes.len() as u64;
    patiently(patience, || to.put_unique(&place, Box::new(bytes.clone())))?;
    Ok(length)
}

/// Calls `copy` with each item, several at a time, and renews the pins meanwhile. Returns the sum of what the calls return.
pub(crate) fn side_by_side<T: Sync>(
    items: &[T],
    pins: Vec<&mut Pin>,
    copy: impl Fn(&T) -> Result<u64> + Sync,
) -> Result<u64> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Result<u64>> = Mutex::new(Ok(0));
    let note = |outcome: Result<u64>| {
        let mut done = done.lock();
        match (&mut *done, outcome) {
            (Ok(sum), Ok(bytes)) => *sum += bytes,
            (Ok(_), Err(error)) => {
                next.store(items.len(), Ordering::Relaxed);
                *done = Err(error);
            }
            (Err(_), _) => {}
        }
    };
    let run = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            note(copy(item));
        }
    };
    let (end, ended) = channel::<()>();
    std::thread::scope(|scope| {
        let note = &note;
        // A copy may take longer than a pin holds.
        scope.spawn(move || {
            let mut pins = pins;
            while ended.recv_timeout(RENEW_EVERY) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = pins.iter_mut().try_for_each(|pin| pin.renew()) {
                    return note(Err(error));
                }
            }
        });
        let others: Vec<_> = (1..COPIES_AT_A_TIME.min(items.len())).map(|_| scope.spawn(run)).collect();
        run();
        for other in others {
            // The scope passes a panic on.
            let _ = other.join();
        }
        drop(end);
    });
    done.into_inner()
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::home::MemoryHome;
    use crate::pin::{PinOptions, list_pins};

    #[test]
    fn pins_are_renewed_while_a_copy_takes_longer_than_they_hold() {
        let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
        let options = PinOptions { time: Duration::from_secs(3), ..PinOptions::of("test", Duration::ZERO) };
        let mut pin = Pin::mark(home.clone(), options).unwrap();
        let copy = |_: &()| {
            std::thread::sleep(Duration::from_secs(4));
            Ok(list_pins(&*home, Duration::ZERO)?.len() as u64)
        };
        assert_eq!(side_by_side(&[()], vec![&mut pin], copy).unwrap(), 1);
    }

    #[test]
    fn the_bytes_of_copies_are_added_up_and_an_error_is_returned() {
        let copy = |number: &u64| match number {
            9 => Err(mangrove_graph::Error::invalid("the ninth")),
            number => Ok(*number),
        };
        assert_eq!(side_by_side(&[1, 2, 3, 4, 5, 6], Vec::new(), copy).unwrap(), 21);
        let numbers: Vec<u64> = (1..100).collect();
        assert!(side_by_side(&numbers, Vec::new(), copy).unwrap_err().message().contains("the ninth"));
    }
}
