//! Other embedded stores that do the same small writes, each with its strictest durability: a commit is synced when it
//! returns.
//!
//! Neither store lets transactions write concurrently. redb makes them wait for each other. For SQLite a mutex around
//! one connection does, which is faster than several connections that find the file busy and sleep. An edge is one
//! entry by source and one by target, as in an application that queries both directions.

use std::path::PathBuf;
use std::sync::Arc;

use mangrove::{Error, ErrorKind, Result};
use redb::{Database, Durability, ReadableDatabase, ReadableTableMetadata, TableDefinition};

use super::clients::Client;
use super::system::{System, VERTICES_A_CLIENT, Work};
use crate::harness::wrong;

const PEOPLE: TableDefinition<'_, u64, i64> = TableDefinition::new("people");
/// Source, target, and a number to distinguish edges between the same two vertices.
const OUT: TableDefinition<'_, (u64, u64, u64), ()> = TableDefinition::new("out");
const IN: TableDefinition<'_, (u64, u64, u64), ()> = TableDefinition::new("in");

/// redb with durability `Immediate`.
pub(super) struct Redb {
    database: Arc<Database>,
    work: Work,
}

fn of_redb(error: impl Into<redb::Error>) -> Error {
    Error::new(ErrorKind::Io, format!("redb: {}", error.into()))
}

impl Redb {
    /// A store with the vertices of this many clients.
    pub(super) fn new(work: Work, clients: u64, path: PathBuf) -> Result<Self> {
        let database = Database::create(path).map_err(of_redb)?;
        let write = database.begin_write().map_err(of_redb)?;
        {
            let mut people = write.open_table(PEOPLE).map_err(of_redb)?;
            for vertex in 0..clients * VERTICES_A_CLIENT {
                people.insert(vertex, -1).map_err(of_redb)?;
            }
            write.open_table(OUT).map_err(of_redb)?;
            write.open_table(IN).map_err(of_redb)?;
        }
        write.commit().map_err(of_redb)?;
        Ok(Redb { database: Arc::new(database), work })
    }
}

impl System for Redb {
    fn name(&self) -> &'static str {
        "redb"
    }

    fn client(&self, client: u64) -> Result<Client> {
        let (database, work) = (self.database.clone(), self.work);
        Ok(Client::new(Box::new(move |number| {
            let mut write = database.begin_write().map_err(of_redb)?;
            write.set_durability(Durability::Immediate).map_err(of_redb)?;
            match work {
                Work::Properties(_) => {
                    let mut people = write.open_table(PEOPLE).map_err(of_redb)?;
                    for vertex in work.vertices(client, number) {
                        people.insert(vertex, number as i64).map_err(of_redb)?;
                    }
                }
                Work::Edges(_) => {
                    let mut out = write.open_table(OUT).map_err(of_redb)?;
                    let mut into = write.open_table(IN).map_err(of_redb)?;
                    for source in work.vertices(client, number) {
                        let target = Work::target(source, number);
                        out.insert((source, target, number), ()).map_err(of_redb)?;
                        into.insert((target, source, number), ()).map_err(of_redb)?;
                    }
                }
            }
            write.commit().map_err(of_redb)
        })))
    }

    fn check(self: Box<Self>, done: &[u64]) -> Result<()> {
        let read = self.database.begin_read().map_err(of_redb)?;
        match self.work {
            Work::Properties(_) => {
                let people = read.open_table(PEOPLE).map_err(of_redb)?;
                check_properties(self.name(), self.work, done, |vertex| {
                    Ok(people.get(vertex).map_err(of_redb)?.map(|value| value.value()))
                })
            }
            Work::Edges(count) => {
                let expected = done.iter().sum::<u64>() * count;
                let out = read.open_table(OUT).map_err(of_redb)?.len().map_err(of_redb)?;
                let into = read.open_table(IN).map_err(of_redb)?.len().map_err(of_redb)?;
                check_edges(self.name(), expected, out, into)
            }
        }
    }
}

fn check_properties(
    name: &str,
    work: Work,
    done: &[u64],
    mut read: impl FnMut(u64) -> Result<Option<i64>>,
) -> Result<()> {
    for (client, &done) in (0u64..).zip(done) {
        for vertex in client * VERTICES_A_CLIENT..(client + 1) * VERTICES_A_CLIENT {
            let expected = work.last_writer(vertex, done).map_or(-1, |number| number as i64);
            if read(vertex)? != Some(expected) {
                return Err(wrong(format!("{name}: a committed value of vertex {vertex} is missing")));
            }
        }
    }
    Ok(())
}

fn check_edges(name: &str, expected: u64, out: u64, into: u64) -> Result<()> {
    if (out, into) == (expected, expected) {
        return Ok(());
    }
    Err(wrong(format!("{name}: {expected} edges were committed, found {out} by source and {into} by target")))
}

#[cfg(feature = "sqlite")]
pub(super) use sqlite::Sqlite;

#[cfg(feature = "sqlite")]
mod sqlite {
    use parking_lot::Mutex;
    use rusqlite::Connection;

    use super::{
        Arc, Client, Error, ErrorKind, PathBuf, Result, System, VERTICES_A_CLIENT, Work, check_edges, check_properties,
    };

    /// SQLite with a write-ahead log and `synchronous=FULL`.
    pub(in super::super) struct Sqlite {
        connection: Arc<Mutex<Connection>>,
        work: Work,
    }

    fn of_sqlite(error: rusqlite::Error) -> Error {
        Error::new(ErrorKind::Io, format!("SQLite: {error}"))
    }

    const SCHEMA: &str = "\
        PRAGMA journal_mode = WAL; \
        PRAGMA synchronous = FULL; \
        CREATE TABLE people (id INTEGER PRIMARY KEY, updated INTEGER NOT NULL); \
        CREATE TABLE out (source INTEGER, target INTEGER, number INTEGER, PRIMARY KEY (source, target, number)) WITHOUT ROWID; \
        CREATE TABLE into_ (target INTEGER, source INTEGER, number INTEGER, PRIMARY KEY (target, source, number)) WITHOUT ROWID;";

    impl Sqlite {
        /// A store with the vertices of this many clients.
        pub(in super::super) fn new(work: Work, clients: u64, path: PathBuf) -> Result<Self> {
            let mut connection = Connection::open(path).map_err(of_sqlite)?;
            connection.execute_batch(SCHEMA).map_err(of_sqlite)?;
            let transaction = connection.transaction().map_err(of_sqlite)?;
            {
                let mut insert = transaction.prepare("INSERT INTO people VALUES (?1, -1)").map_err(of_sqlite)?;
                for vertex in 0..clients * VERTICES_A_CLIENT {
                    insert.execute([vertex as i64]).map_err(of_sqlite)?;
                }
            }
            transaction.commit().map_err(of_sqlite)?;
            Ok(Sqlite { connection: Arc::new(Mutex::new(connection)), work })
        }
    }

    fn write(connection: &mut Connection, work: Work, client: u64, number: u64) -> rusqlite::Result<()> {
        let transaction = connection.transaction()?;
        match work {
            Work::Properties(_) => {
                let mut update = transaction.prepare_cached("UPDATE people SET updated = ?2 WHERE id = ?1")?;
                for vertex in work.vertices(client, number) {
                    update.execute([vertex as i64, number as i64])?;
                }
            }
            Work::Edges(_) => {
                let mut out = transaction.prepare_cached("INSERT INTO out VALUES (?1, ?2, ?3)")?;
                let mut into = transaction.prepare_cached("INSERT INTO into_ VALUES (?1, ?2, ?3)")?;
                for source in work.vertices(client, number) {
                    let target = Work::target(source, number) as i64;
                    out.execute([source as i64, target, number as i64])?;
                    into.execute([target, source as i64, number as i64])?;
                }
            }
        }
        transaction.commit()
    }

    impl System for Sqlite {
        fn name(&self) -> &'static str {
            "sqlite"
        }

        fn client(&self, client: u64) -> Result<Client> {
            let (connection, work) = (self.connection.clone(), self.work);
            Ok(Client::new(Box::new(move |number| {
                write(&mut connection.lock(), work, client, number).map_err(of_sqlite)
            })))
        }

        fn check(self: Box<Self>, done: &[u64]) -> Result<()> {
            let connection = self.connection.lock();
            let number = |query: &str, vertex: Option<u64>| {
                let vertex = vertex.map(|vertex| vertex as i64);
                connection.query_row(query, rusqlite::params_from_iter(vertex), |row| row.get(0)).map_err(of_sqlite)
            };
            match self.work {
                Work::Properties(_) => check_properties(self.name(), self.work, done, |vertex| {
                    number("SELECT updated FROM people WHERE id = ?1", Some(vertex)).map(Some)
                }),
                Work::Edges(count) => {
                    let expected = done.iter().sum::<u64>() * count;
                    let count = |table: &str| number(&format!("SELECT count(*) FROM {table}"), None);
                    check_edges(self.name(), expected, count("out")? as u64, count("into_")? as u64)
                }
            }
        }
    }
}
