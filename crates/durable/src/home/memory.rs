//! [`MemoryHome`]: objects in memory, for tests and for graphs that end with their process.
//!
//! Every request is carried out by the thread that submits it, before [`Home::submit`] returns.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;

use super::{ByteSource, Completion, Home, HomeResult, HomeTraits, Name, Put, Reply, Request, cut_ranges};

/// A home in memory.
#[derive(Debug, Default)]
pub struct MemoryHome {
    /// Held for a few instructions, never while a source makes bytes or a completion runs.
    objects: Mutex<BTreeMap<Name, Bytes>>,
}

impl MemoryHome {
    /// An empty home.
    pub fn new() -> Self {
        MemoryHome::default()
    }

    fn answer(&self, request: Request) -> HomeResult<Reply> {
        Ok(match request {
            Request::PutNew { name, bytes } => Reply::Put(self.put_new(name, bytes)),
            Request::PutUnique { name, mut source } => {
                let bytes = read_all(&mut *source)?;
                self.objects.lock().insert(name, bytes);
                Reply::Put(Put::Done)
            }
            Request::Get { name } => Reply::Object(self.objects.lock().get(&name).cloned()),
            Request::Ranges { name, ranges } => {
                let object = self.objects.lock().get(&name).cloned();
                // A wrong range is an error, also if there is no object.
                let len = object.as_ref().map_or(0, Bytes::len) as u64;
                let ranges = cut_ranges(&ranges, len, &|| self.describe(name.as_str()))?;
                let slice = |bytes: Bytes| {
                    ranges.iter().map(|range| bytes.slice(range.start as usize..range.end as usize)).collect()
                };
                Reply::Ranges(object.map(slice))
            }
            Request::Head { name } => Reply::Head(self.objects.lock().get(&name).map(|bytes| bytes.len() as u64)),
            Request::List { directory } => Reply::Names(self.list(&directory)),
            Request::Delete { names } => {
                let mut objects = self.objects.lock();
                for name in &names {
                    objects.remove(name);
                }
                Reply::Deleted
            }
        })
    }

    fn put_new(&self, name: Name, bytes: Bytes) -> Put {
        use std::collections::btree_map::Entry;
        match self.objects.lock().entry(name) {
            Entry::Occupied(_) => Put::Taken,
            Entry::Vacant(free) => {
                free.insert(bytes);
                Put::Done
            }
        }
    }

    fn list(&self, directory: &Name) -> Vec<Name> {
        let prefix = format!("{directory}/");
        let objects = self.objects.lock();
        let within = objects.range::<str, _>((Bound::Included(&*prefix), Bound::Unbounded)).map(|(name, _)| name);
        let within = within.take_while(|name| name.as_str().starts_with(&prefix));
        within.filter(|name| name.directory() == Some(directory.as_str())).cloned().collect()
    }
}

impl Home for MemoryHome {
    fn submit(&self, request: Request, done: Completion) {
        done(self.answer(request));
    }

    fn describe(&self, name: &str) -> String {
        format!("memory:{name}")
    }

    fn traits(&self) -> HomeTraits {
        HomeTraits { is_durable: false, gap_bytes: 0 }
    }
}

fn read_all(source: &mut dyn ByteSource) -> HomeResult<Bytes> {
    let mut bytes = BytesMut::new();
    while let Some(piece) = source.next_piece()? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::contract;
    use super::*;

    #[test]
    fn memory_keeps_the_contract() {
        let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
        contract::check(&home);
        contract::put_before_opening_again(&*home);
        contract::check_after_opening_again(&*home);
    }
}
