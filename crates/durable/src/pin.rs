//! Pins: objects that keep a state of a graph, and the log after it, from collection while a process reads them.
//!
//! ```text
//! reader:     put pin/ID for manifest N ──▶ read the newest manifest ──▶ kept_from ≤ N? read on
//!                                                                   └──▶ otherwise delete the pin; N may be gone
//! collector:  put a manifest with a new kept_from ──▶ list pin/ ──▶ delete what is before kept_from and every pin
//! ```
//!
//! - **LOG-81.** A pin holds once the newest manifest, read after the pin was put, has a `kept_from` at or before the pinned
//!   manifest. One of the two sees the other: the collector that moves `kept_from` beyond it lists pins after its manifest
//!   counts.
//! - **LOG-82.** While a pin holds, its manifest and all later ones stay, with their packs and the streams from their floors
//!   on. A pin ends with its time, so the pins of dead readers do no harm. A reader that was slower than that finds an object
//!   missing, and never wrong bytes, because names are not used again.
//! - **LOG-76.** A pin moves by another object, which is put before the old one is deleted: an object never changes. So a
//!   collector that has listed a pin and does not find it lists again: the pin may have moved after the list.

use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::ambient::{draw_uuid, unix_us};
use crate::checkpoint::home::patiently;
use crate::home::{Home, HomeErrorKind, Name, WaitHome};
use crate::manifest::Manifest;
use crate::states::{collected, newest_manifest, read_manifest};

/// The directory of pins.
pub const PINS: &str = "pin";

/// How long a pin holds that is not renewed, unless its options say otherwise.
pub const PIN_TIME: Duration = Duration::from_secs(600);

/// How often pins are listed again because one of them has moved meanwhile.
const LISTS_MAX: u32 = 100;

/// What a pin says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PinText {
    /// What the pin is for: `backup`, `restore`, …
    pub what: String,
    /// The oldest manifest that it keeps.
    pub manifest: u64,
    /// When it ends, in microseconds since 1970.
    pub until: u64,
    /// Who has put it, for people.
    pub who: String,
}

/// How a state is pinned.
#[derive(Clone, Debug)]
pub struct PinOptions {
    /// What the pin is for, in a word.
    pub what: &'static str,
    /// How long it holds without being renewed.
    pub time: Duration,
    /// How long a request is sent again while the home does not answer.
    pub patience: Duration,
}

impl PinOptions {
    /// A pin for a purpose.
    pub fn of(what: &'static str, patience: Duration) -> Self {
        PinOptions { what, time: PIN_TIME, patience }
    }
}

/// A pin that this process holds. Dropping it deletes it.
#[derive(Debug)]
pub struct Pin {
    home: Arc<dyn Home>,
    options: PinOptions,
    manifest: u64,
    /// False once it has ended before it was put again.
    is_unbroken: bool,
    /// The object, and when it ends. `None`: the home refuses writes to this process, so that nothing is pinned.
    held: Option<(Name, u64)>,
}

impl Pin {
    /// Pins a manifest; `None`: the newest one. Returns the manifest too.
    ///
    /// If this process may not write to the home, nothing is pinned, and the manifest may be collected while it is read.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no graph, or if the manifest is not kept.
    pub fn hold(home: Arc<dyn Home>, wanted: Option<u64>, options: PinOptions) -> Result<(Pin, Manifest)> {
        let patience = options.patience;
        loop {
            let number = match wanted {
                Some(number) => number,
                None => newest_manifest(&*home, patience)?.version,
            };
            let mut pin =
                Pin { home: home.clone(), options: options.clone(), manifest: number, is_unbroken: true, held: None };
            pin.put()?;
            // LOG-81: after the pin was put.
            let newest = newest_manifest(&*home, patience)?;
            if newest.kept_from <= number
                && let Some(manifest) = read_manifest(&*home, number, patience)?
            {
                return Ok((pin, manifest));
            }
            if wanted.is_some() {
                return Err(collected(&*home, number));
            }
        }
    }

    /// Puts a pin that names no manifest, into a home that has none: others see what this process does there.
    pub(crate) fn mark(home: Arc<dyn Home>, options: PinOptions) -> Result<Pin> {
        let mut pin = Pin { home, options, manifest: 0, is_unbroken: true, held: None };
        pin.put()?;
        Ok(pin)
    }

    /// Puts a pin of a manifest. It holds if the newest manifest, read after this, keeps the pinned one (LOG-81).
    pub(crate) fn put_for(home: Arc<dyn Home>, manifest: u64, options: PinOptions) -> Result<Pin> {
        let mut pin = Pin { home, options, manifest, is_unbroken: true, held: None };
        pin.put()?;
        Ok(pin)
    }

    /// From now on, each call makes one attempt.
    pub(crate) fn without_patience(mut self) -> Self {
        self.options.patience = Duration::ZERO;
        self
    }

    /// The pinned manifest.
    pub fn manifest(&self) -> u64 {
        self.manifest
    }

    /// Returns false if the home refuses writes to this process, so that nothing is pinned.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Pins a later manifest instead, which the pin kept until now.
    ///
    /// # Errors
    ///
    /// If the home fails. Then the pin stays where it was.
    pub(crate) fn move_to(&mut self, manifest: u64) -> Result<()> {
        if self.held.is_none() {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.manifest, manifest);
        self.put_again().inspect_err(|_| self.manifest = before)
    }

    /// Returns true if it is held and has been since it was put: everything that it keeps is there.
    pub(crate) fn is_unbroken(&self) -> bool {
        self.is_unbroken && self.is_held() && !self.has_ended()
    }

    /// Returns true if the pin has ended because its holder has not renewed it in time.
    pub(crate) fn has_ended(&self) -> bool {
        self.held.as_ref().is_some_and(|(_, until)| *until <= unix_us())
    }

    /// Returns true if a third of the time has passed.
    pub(crate) fn is_due(&self) -> bool {
        let time_us = self.options.time.as_micros() as u64;
        let is_short = |until: u64| until.saturating_sub(unix_us()) <= time_us - time_us / 3;
        self.held.as_ref().is_some_and(|(_, until)| is_short(*until))
    }

    /// Renews the pin once a third of its time has passed. Cheap otherwise.
    ///
    /// # Errors
    ///
    /// If the pin has ended before, so that what it held may be collected; or if the home fails.
    pub fn renew(&mut self) -> Result<()> {
        if self.has_ended() {
            let message = format!(
                "the pin of manifest {} in {} has ended before it was renewed, so what it held may be collected: begin again",
                self.manifest,
                self.home.describe("")
            );
            return Err(Error::new(ErrorKind::Io, message));
        }
        if self.is_due() { self.put_again() } else { Ok(()) }
    }

    /// Puts the pin under another name, and deletes the old one then (LOG-76).
    fn put_again(&mut self) -> Result<()> {
        let old = self.held.take();
        let put = self.put();
        if put.is_err() || self.held.is_none() {
            // The old one keeps what it can until it ends.
            self.held = old;
            return put;
        }
        if let Some((name, until)) = old {
            self.is_unbroken &= until > unix_us();
            // If it stays, it ends with its time, and keeps more than is needed until then.
            let _ = self.home.delete(vec![name]);
        }
        Ok(())
    }

    fn put(&mut self) -> Result<()> {
        let until = unix_us().saturating_add(self.options.time.as_micros() as u64);
        let text = PinText {
            what: self.options.what.to_owned(),
            manifest: self.manifest,
            until,
            who: format!("process {}", std::process::id()),
        };
        let bytes = serde_json::to_vec(&text).map_err(|error| Error::bug(format!("a pin as text: {error}")))?;
        let name = Name::new(&format!("{PINS}/{}", draw_uuid().simple()))?;
        let mut is_refused = false;
        patiently(self.options.patience, || {
            match self.home.put_unique(&name, Box::new(bytes::Bytes::from(bytes.clone()))) {
                Err(error) if error.kind() == HomeErrorKind::Refused => {
                    is_refused = true;
                    Ok(())
                }
                outcome => outcome,
            }
        })?;
        self.held = (!is_refused).then_some((name, until));
        Ok(())
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Some((name, _)) = self.held.take() {
            // If it stays, it ends with its time.
            let _ = self.home.delete(vec![name]);
        }
    }
}

/// The pins in a home that have not ended.
///
/// # Errors
///
/// If the home fails, or if a pin cannot be read: what it keeps is unknown then.
pub fn list_pins(home: &dyn Home, patience: Duration) -> Result<Vec<PinText>> {
    pins_and_ended(home, patience).map(|(pins, _)| pins)
}

/// The pins in a home that have not ended, and the names of those that have: they keep nothing, and may be deleted.
pub(crate) fn pins_and_ended(home: &dyn Home, patience: Duration) -> Result<(Vec<PinText>, Vec<Name>)> {
    let directory = Name::new(PINS)?;
    for _ in 0..LISTS_MAX {
        // Before the list: a pin that has ended by then and was renewed in time is in the list under another name.
        let now_us = unix_us();
        let listed = patiently(patience, || home.list(&directory))?;
        if let Some(found) = read_pins(home, &listed, patience)? {
            let (pins, ended): (Vec<_>, Vec<_>) =
                found.into_iter().zip(listed).partition(|(pin, _)| pin.until > now_us);
            let pins = pins.into_iter().map(|(pin, _)| pin).collect();
            return Ok((pins, ended.into_iter().map(|(_, name)| name).collect()));
        }
    }
    let message = format!("the pins in {} change faster than they are read; try again", home.describe(PINS));
    Err(Error::new(ErrorKind::Io, message))
}

/// Reads pins; `None` if one of them is gone (LOG-76).
fn read_pins(home: &dyn Home, listed: &[Name], patience: Duration) -> Result<Option<Vec<PinText>>> {
    let mut pins = Vec::new();
    for name in listed {
        let Some(bytes) = patiently(patience, || home.get(name))? else { return Ok(None) };
        let text: PinText = serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!(
                "{} is no pin that this version reads ({error}); delete it if no backup, restore or follower uses the graph",
                home.describe(name.as_str())
            );
            Error::new(ErrorKind::Damaged, message)
        })?;
        pins.push(text);
    }
    Ok(Some(pins))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::MemoryHome;
    use crate::stream::names::manifest_name;

    fn home(kept_from: u64, newest: u64) -> Arc<dyn Home> {
        let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
        for number in kept_from..=newest {
            put(&*home, kept_from, number);
        }
        home
    }

    fn put(home: &dyn Home, kept_from: u64, number: u64) {
        let mut manifest = Manifest::first_in_home(uuid::Uuid::from_u128(7), 3).next(number);
        manifest.kept_from = kept_from;
        home.put_new(&Name::new(&manifest_name(number)).unwrap(), manifest.write_object()).unwrap();
    }

    fn options(millis: u64) -> PinOptions {
        PinOptions { time: Duration::from_millis(millis), ..PinOptions::of("test", Duration::ZERO) }
    }

    fn pinned(home: &Arc<dyn Home>) -> Vec<u64> {
        list_pins(&**home, Duration::ZERO).unwrap().iter().map(|pin| pin.manifest).collect()
    }

    #[test]
    fn a_pin_holds_a_kept_manifest_until_it_is_dropped() {
        let home = home(3, 5);
        let (pin, manifest) = Pin::hold(home.clone(), None, options(60_000)).unwrap();
        assert_eq!((pin.manifest(), manifest.version), (5, 5));
        let (old, manifest) = Pin::hold(home.clone(), Some(3), options(60_000)).unwrap();
        assert_eq!((old.manifest(), manifest.version), (3, 3));
        let gone = Pin::hold(home.clone(), Some(2), options(60_000)).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound, "{gone}");
        let mut held = pinned(&home);
        held.sort_unstable();
        assert_eq!(held, [3, 5], "the pin of manifest 2 is gone");
        drop((pin, old));
        assert!(pinned(&home).is_empty());
    }

    #[test]
    fn a_pin_is_renewed_by_another_object_and_ends_with_its_time() {
        let home = home(1, 1);
        let (mut pin, _) = Pin::hold(home.clone(), None, options(2_000)).unwrap();
        let first = pin.held.clone();
        pin.renew().unwrap();
        assert_eq!(pin.held, first, "less than a third has passed");
        std::thread::sleep(Duration::from_millis(700));
        pin.renew().unwrap();
        assert_ne!(pin.held, first);
        assert_eq!(pinned(&home), [1]);
        std::thread::sleep(Duration::from_millis(2_001));
        assert!(pinned(&home).is_empty(), "it has ended");
        assert!(pin.renew().unwrap_err().message().contains("has ended"));
    }

    #[test]
    fn a_pin_that_moves_while_a_collector_reads_is_seen() {
        /// A home whose pin moves after each list of pins, twice.
        #[derive(Debug)]
        struct Moving(Arc<dyn Home>, parking_lot::Mutex<(Pin, u64)>);
        impl Home for Moving {
            fn submit(&self, request: crate::home::Request, done: crate::home::Completion) {
                let is_list =
                    matches!(&request, crate::home::Request::List { directory } if directory.as_str() == PINS);
                self.0.submit(request, done);
                let (pin, moves) = &mut *self.1.lock();
                if is_list && *moves < 2 {
                    *moves += 1;
                    pin.move_to(3 + *moves).unwrap();
                }
            }
            fn describe(&self, name: &str) -> String {
                self.0.describe(name)
            }
            fn traits(&self) -> crate::home::HomeTraits {
                self.0.traits()
            }
        }
        let memory = home(3, 5);
        let (pin, _) = Pin::hold(memory.clone(), Some(3), options(60_000)).unwrap();
        let moving: Arc<dyn Home> = Arc::new(Moving(memory, parking_lot::Mutex::new((pin, 0))));
        assert_eq!(pinned(&moving), [5]);
    }

    /// A home that moves `kept_from` on when a pin is put.
    #[test]
    fn a_manifest_that_is_collected_while_it_is_pinned_is_not_held() {
        #[derive(Debug)]
        struct Racing(Arc<dyn Home>);
        impl Home for Racing {
            fn submit(&self, request: crate::home::Request, done: crate::home::Completion) {
                let is_pin = matches!(&request, crate::home::Request::PutUnique { .. });
                let numbers = || crate::states::manifest_numbers(&*self.0, Duration::ZERO).unwrap();
                if is_pin && numbers().last() == Some(&5) {
                    put(&*self.0, 6, 6);
                }
                self.0.submit(request, done);
            }
            fn describe(&self, name: &str) -> String {
                self.0.describe(name)
            }
            fn traits(&self) -> crate::home::HomeTraits {
                self.0.traits()
            }
        }
        let memory = home(4, 5);
        let racing: Arc<dyn Home> = Arc::new(Racing(memory.clone()));
        assert!(Pin::hold(racing.clone(), Some(5), options(60_000)).is_err());
        assert!(pinned(&memory).is_empty());
        let memory = home(4, 5);
        let racing: Arc<dyn Home> = Arc::new(Racing(memory.clone()));
        let (pin, manifest) = Pin::hold(racing, None, options(60_000)).unwrap();
        assert_eq!((pin.manifest(), manifest.version), (6, 6), "the newest one is pinned instead");
        assert_eq!(pinned(&memory), [6]);
    }
}
