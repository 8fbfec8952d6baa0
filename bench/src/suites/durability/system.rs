//! The systems to which clients commit, and the small writes: the database, in memory and in a directory, and the
//! floor, the least sequence of system calls of a durable commit.
//!
//! Every client has [`VERTICES_A_CLIENT`] vertices of its own, found by their ids. So no transaction meets a conflict,
//! and the figures are those of the log.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use mangrove::{Database, DatabaseOptions, LabelFilter, Result, Share, Value, ValueRows, VertexId};

use super::clients::{Client, Perform};
use crate::harness::wrong;
use crate::people::{self, PeopleContent, PeopleNames};
use crate::run_directory::{RunDirectory, open};
use crate::social::KNOWS;

/// Vertices of a client.
pub(super) const VERTICES_A_CLIENT: u64 = 256;

/// The property that transactions write.
const UPDATED: &str = "updated";

/// The writes of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// A property of each of this many vertices.
    Properties(u64),
    /// This many edges, each between two vertices that are found by their ids.
    Edges(u64),
}

impl Work {
    pub(super) fn name(self) -> String {
        match self {
            Work::Properties(1) => "1 property".to_owned(),
            Work::Properties(count) => format!("{count} properties"),
            Work::Edges(1) => "1 edge".to_owned(),
            Work::Edges(count) => format!("{count} edges"),
        }
    }

    /// The number of writes of a transaction; divides [`VERTICES_A_CLIENT`].
    pub(super) fn count(self) -> u64 {
        match self {
            Work::Properties(count) | Work::Edges(count) => count,
        }
    }

    /// The numbers of the vertices to which (or from which) a client's transaction of this number writes.
    pub(super) fn vertices(self, client: u64, number: u64) -> impl Iterator<Item = u64> {
        let first = number * self.count() % VERTICES_A_CLIENT;
        (0..self.count()).map(move |place| client * VERTICES_A_CLIENT + first + place)
    }

    /// The target of the edge from a vertex: another vertex of the same client.
    pub(super) fn target(source: u64, number: u64) -> u64 {
        let first = source - source % VERTICES_A_CLIENT;
        first + (source + 1 + number % (VERTICES_A_CLIENT - 1)) % VERTICES_A_CLIENT
    }

    /// The number of the last of `done` transactions that wrote a vertex.
    pub(super) fn last_writer(self, vertex: u64, done: u64) -> Option<u64> {
        let groups = VERTICES_A_CLIENT / self.count();
        let group = vertex % VERTICES_A_CLIENT / self.count();
        let last = done.checked_sub(1)?;
        let round = (last + groups - group) / groups;
        round.checked_sub(1).map(|round| round * groups + group)
    }
}

/// A system that takes commits from several clients.
pub(super) trait System {
    /// The name in reports.
    fn name(&self) -> &'static str;

    /// A new client with this number; each client has another one.
    fn client(&self, number: u64) -> Result<Client>;

    /// The syncs so far, and the commits in them, if the system counts them.
    fn syncs(&self) -> Option<(u64, u64)> {
        None
    }

    /// Checks that all acknowledged writes are there, after the clients are gone. The argument is the number of
    /// transactions by client.
    fn check(self: Box<Self>, done: &[u64]) -> Result<()>;
}

/// The floor: a 4 KiB write to a file that was filled with zeros, and `fdatasync`. With one client, no durable commit
/// is faster.
pub(super) struct Floor {
    file: File,
}

const BLOCK: u64 = 4 << 10;
const FLOOR_BLOCKS: u64 = 1_024;

impl Floor {
    pub(super) fn new(run_directory: &RunDirectory) -> Result<Self> {
        let file = File::create_new(run_directory.fresh("floor"))?;
        file.write_all_at(&vec![0; (BLOCK * FLOOR_BLOCKS) as usize], 0)?;
        file.sync_all()?;
        Ok(Floor { file })
    }

    /// The only client.
    pub(super) fn client(&self) -> Result<Client> {
        let file = self.file.try_clone()?;
        Ok(Client::new(Box::new(move |number| {
            let block = [number as u8 | 1; BLOCK as usize];
            file.write_all_at(&block, number % FLOOR_BLOCKS * BLOCK)?;
            Ok(file.sync_data()?)
        })))
    }
}

/// The database.
pub(super) struct Mangrove {
    database: Database,
    work: Work,
    /// Its directory; `None`: in memory.
    directory: Option<PathBuf>,
}

impl Mangrove {
    /// A database with the vertices of this many clients.
    pub(super) fn new(work: Work, clients: u64, directory: Option<PathBuf>) -> Result<Self> {
        let database = match &directory {
            Some(directory) => open(directory, &DatabaseOptions::default())?,
            None => Database::in_memory(),
        };
        load_people(&database, clients)?;
        Ok(Mangrove { database, work, directory })
    }
}

/// Loads the vertices of this many clients.
pub(super) fn load_people(database: &Database, clients: u64) -> Result<()> {
    let mut loader = database.bulk_load()?;
    let people = people::batches(database, (clients * VERTICES_A_CLIENT) as usize, PeopleContent::Ids);
    people::load(&mut loader, PeopleNames::of(database).person, &people)?;
    loader.finish()
}

impl System for Mangrove {
    fn name(&self) -> &'static str {
        if self.directory.is_some() { "local" } else { "memory" }
    }

    fn client(&self, number: u64) -> Result<Client> {
        Ok(Client::new(client_of(&self.database, self.work, number)))
    }

    fn syncs(&self) -> Option<(u64, u64)> {
        self.database.durability().map(|durability| (durability.log.writes(), durability.log.commits()))
    }

    fn check(self: Box<Self>, done: &[u64]) -> Result<()> {
        let Mangrove { database, work, directory } = *self;
        let Some(directory) = directory else { return check(&database, work, done) };
        drop(database);
        check(&open(&directory, &DatabaseOptions::default())?, work, done)
    }
}

/// A client of the database.
pub(super) fn client_of(database: &Database, work: Work, client: u64) -> Perform {
    let knows = database.catalog().intern_label_text(KNOWS);
    let (database, mut ids, mut ends) = (database.clone(), Vec::new(), Vec::new());
    Box::new(move |number| {
        let transaction = database.begin()?;
        ids.clear();
        ids.extend(work.vertices(client, number).map(people::id));
        match work {
            Work::Properties(_) => {
                let value = Value::I64(number as i64);
                let values: Vec<_> =
                    vertices(&transaction, &ids)?.into_iter().map(|vertex| (vertex, value.clone())).collect();
                transaction.set_vertex_property(UPDATED, &values)?;
            }
            Work::Edges(count) => {
                ids.extend(work.vertices(client, number).map(|source| people::id(Work::target(source, number))));
                let found = vertices(&transaction, &ids)?;
                let (sources, targets) = found.split_at(count as usize);
                ends.clear();
                ends.extend(sources.iter().copied().zip(targets.iter().copied()));
                transaction.insert_edges(knows, &ends)?;
            }
        }
        transaction.commit().map(drop)
    })
}

/// The vertices with these ids; all of them exist.
fn vertices(transaction: &mangrove::Transaction, ids: &[mangrove::UserId]) -> Result<Vec<VertexId>> {
    let mut found = Vec::new();
    transaction.view().find_vertices(ids, &mut found)?;
    found.into_iter().map(|vertex| vertex.ok_or_else(|| wrong("a vertex is missing".to_owned()))).collect()
}

/// Checks that a database has all transactions of its clients, by client.
pub(super) fn check(database: &Database, work: Work, done: &[u64]) -> Result<()> {
    let transaction = database.begin_read()?;
    if let Work::Edges(count) = work {
        let expected = done.iter().sum::<u64>() * count;
        let found = transaction.view().count_edges(&LabelFilter::Any, Share::ALL)?;
        return if found == expected {
            Ok(())
        } else {
            Err(wrong(format!("{expected} edges were committed and {found} are there")))
        };
    }
    let key = database.catalog().intern_key(UPDATED);
    for (client, &done) in done.iter().enumerate() {
        let numbers: Vec<_> = (0..VERTICES_A_CLIENT).map(|vertex| client as u64 * VERTICES_A_CLIENT + vertex).collect();
        let ids: Vec<_> = numbers.iter().copied().map(people::id).collect();
        let mut rows = ValueRows::default();
        transaction.view().vertex_values(&vertices(&transaction, &ids)?, key, &mut rows)?;
        let expected = numbers.iter().filter_map(|&vertex| work.last_writer(vertex, done));
        let expected: Vec<_> = expected.map(|number| Value::I64(number as i64)).collect();
        if rows.value != expected {
            return Err(wrong(format!("client {client} has committed {done} transactions, and not all are there")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_writer_of_a_vertex_is_the_last_that_wrote_it() {
        for work in [Work::Properties(1), Work::Properties(16), Work::Properties(256)] {
            for done in [0, 1, 2, 15, 16, 17, 255, 256, 257, 1_000] {
                let mut last = [None; VERTICES_A_CLIENT as usize];
                for number in 0..done {
                    work.vertices(0, number).for_each(|vertex| last[vertex as usize] = Some(number));
                }
                for (vertex, last) in last.into_iter().enumerate() {
                    assert_eq!(work.last_writer(vertex as u64, done), last, "{work:?}, {done}, {vertex}");
                }
            }
        }
    }

    #[test]
    fn edges_stay_with_their_client_and_are_no_loops() {
        for number in 0..1_000 {
            for source in Work::Edges(16).vertices(3, number) {
                let target = Work::target(source, number);
                assert_eq!((source / VERTICES_A_CLIENT, target / VERTICES_A_CLIENT), (3, 3));
                assert_ne!(source, target);
            }
        }
    }

    #[test]
    fn a_check_finds_a_lost_commit() {
        for work in [Work::Properties(16), Work::Edges(16)] {
            let mangrove = Mangrove::new(work, 1, None).unwrap();
            let mut perform = client_of(&mangrove.database, work, 0);
            (0..3).for_each(|number| perform(number).unwrap());
            check(&mangrove.database, work, &[3]).unwrap();
            assert!(check(&mangrove.database, work, &[4]).is_err());
        }
    }
}
