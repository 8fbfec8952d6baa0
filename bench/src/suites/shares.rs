//! The shares of CPU time of two users of a server, whose weights are 100 and 300.
//!
//! The server has users with passwords, as `mangrove serve --users-file` does. Each of the two users runs more queries at
//! a time than there are executors, from a connection for each query. The queries do not end by themselves. An
//! administrator reads the CPU time of each from `mangrove.queries`, twice, and ends them with `mangrove.kill`. The share
//! of a user is the growth of the CPU time of its queries, divided by that of all.

use std::time::Duration;

use mangrove::{Database, Error, ErrorKind, Isolation, Parameters, Result, Value};
use mangrove_server::{Access, Config, Rights, TenantWeights, Users, UsersSource};

use super::Context;
use crate::client::Client;
use crate::harness::wrong;
use crate::options::Suite;
use crate::report::{Growing, Metric, Row};
use crate::run_directory::RunDirectory;
use crate::served::{Served, source};

const SUITE: Suite = Suite::Shares;

/// The two users, with their weights.
const USERS: [(&str, u32); 2] = [("one", 100), ("three", 300)];

/// The user that may see and end the queries of others.
const ADMINISTRATOR: &str = "administrator";

const PASSWORD: &str = "a password of the suite shares";

/// A share may be off by this many percent of what the weights say.
const PERCENT_OFF_MAX: f64 = 5.0;

/// The shortest time between the two readings. Tests run for zero seconds, so this is their length.
const SECONDS_MIN: f64 = 0.2;

/// A query that takes as long as it is let: one walk from each vertex of a ring, around it again and again.
const ENDLESS: &str = "g.V().repeat(out()).times(1000000000).count()";

/// Vertices of the ring: several messages of rows.
const RING: usize = 4_096;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    const CASE: &str = "weights 1:3, users of a server";
    if !context.options.wants(CASE, "share") {
        return Ok(());
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let directory = RunDirectory::new(context.options.choices.directory.as_deref())?;
    let users = directory.fresh("users.toml");
    write_users(&users)?;
    let none = TenantWeights::default();
    let weights = USERS.map(|(name, weight)| format!("user/{name}={weight}")).join(",");
    let weights: TenantWeights = weights.parse().map_err(Error::invalid)?;
    weights.replace(&none);
    let measured = measure(&users, cores + 2, context.options.seconds.max(SECONDS_MIN));
    none.replace(&weights);
    let nanos = measured?;
    let (all, weight_sum): (f64, u32) = (nanos.iter().sum(), USERS.iter().map(|(_, weight)| weight).sum());
    for ((name, weight), nanos) in USERS.into_iter().zip(nanos) {
        let wanted = 100.0 * f64::from(weight) / f64::from(weight_sum);
        let share = 100.0 * nanos / all;
        let variant = format!("share of the user with weight {weight}");
        let row = Row::single(SUITE.name(), CASE, &variant, Metric::Count, share, "%").beside(wanted);
        report.push(row.with("cpu", nanos, "ns"));
        let off = 100.0 * (share - wanted).abs() / wanted;
        let row = Row::single(SUITE.name(), CASE, &format!("{name}: off by"), Metric::Share, off, "%");
        report.push(row.aiming_at(PERCENT_OFF_MAX));
    }
    report.note(SUITE.name(), format!("{} queries of each user ran on {cores} executors.", cores + 2));
    Ok(())
}

fn write_users(path: &std::path::Path) -> Result<()> {
    let mut users = Users::default();
    for (name, _) in USERS {
        users.add(name, PASSWORD, Rights::new([("*".into(), Access::Read)]))?;
    }
    users.add(ADMINISTRATOR, PASSWORD, Rights::new([("*".into(), Access::Admin)]))?;
    users.write(path)
}

/// Vertices in a ring.
fn ring() -> Result<Database> {
    let database = Database::in_memory();
    let catalog = database.catalog();
    let transaction = database.begin()?;
    let ids: Vec<_> = (0..RING as i64).map(Into::into).collect();
    let vertices = transaction.insert_vertices(catalog.intern_label_text("node"), &ids)?;
    let ends: Vec<_> = (0..RING).map(|at| (vertices[at], vertices[(at + 1) % RING])).collect();
    transaction.insert_edges(catalog.intern_label_text("next"), &ends)?;
    transaction.commit()?;
    Ok(database)
}

/// Runs queries of both users for this time. Returns the CPU time that each user got, in nanoseconds.
fn measure(users: &std::path::Path, queries_each: usize, seconds: f64) -> Result<[f64; 2]> {
    let change = |config: &mut Config| config.users = Some(UsersSource::File(users.into()));
    let served = Served::start_with(&ring()?, change)?;
    let connect = |user: &str| -> Result<Client> {
        let mut client = Client::connect(served.address(), source(Isolation::Serializable))?;
        client.log_in(user, PASSWORD)?;
        Ok(client)
    };
    let mut administrator = connect(ADMINISTRATOR)?;
    let users = USERS.iter().flat_map(|(user, _)| std::iter::repeat_n(*user, queries_each));
    let clients = users.map(connect).collect::<Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let endless = |mut client: Client| client.evaluate(ENDLESS, &Parameters::new(), &mut |_, _| {});
        let running: Vec<_> = clients.into_iter().map(|client| scope.spawn(move || endless(client))).collect();
        let measured = between_readings(&mut administrator, queries_each, seconds);
        let killed = kill_all(&mut administrator);
        // If the queries could not be ended one by one, they end with the server.
        drop(served);
        let measured = killed.and(measured)?;
        for thread in running {
            match thread.join().map_err(|_| wrong("a client of a query panicked".into()))? {
                Err(error) if error.kind() == ErrorKind::Evaluation => {}
                Err(error) => return Err(error),
                Ok(()) => return Err(wrong("a query without an end has ended".into())),
            }
        }
        Ok(measured)
    })
}

/// Waits until all queries run, and returns the growth of the CPU time of each user over this time.
fn between_readings(administrator: &mut Client, queries_each: usize, seconds: f64) -> Result<[f64; 2]> {
    const LOOKS_MAX: u32 = 10_000;
    for _ in 0..LOOKS_MAX {
        // A query counts when an executor has run it.
        let rows = listed(administrator)?;
        if USERS
            .iter()
            .all(|(user, _)| rows.iter().filter(|row| row.user == *user && row.millis > 0).count() == queries_each)
        {
            let before = USERS.map(|(user, _)| millis_of(&rows, user));
            std::thread::sleep(Duration::from_secs_f64(seconds));
            let rows = listed(administrator)?;
            let after = USERS.map(|(user, _)| millis_of(&rows, user));
            return Ok([0, 1].map(|user| (after[user] - before[user]) as f64 * 1e6));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(wrong("the queries of the users do not all run".into()))
}

/// A row of `mangrove.queries`.
struct Listed {
    id: i64,
    user: String,
    millis: i64,
}

/// The queries of the two users.
fn listed(administrator: &mut Client) -> Result<Vec<Listed>> {
    let mut rows = Vec::new();
    let script = "g.call('mangrove.queries').project('id', 'user', 'millis').by(select('id')).by(select('user')).\
                  by(select('executor_milliseconds'))";
    administrator.evaluate(script, &Parameters::new(), &mut |value, _| rows.push(row_of(value)))?;
    let mut known = rows.into_iter().collect::<Result<Vec<_>>>()?;
    known.retain(|row| USERS.iter().any(|(user, _)| *user == row.user));
    Ok(known)
}

fn row_of(value: &Value) -> Result<Listed> {
    let row = mangrove_queries::to_json(value);
    match (row["id"].as_i64(), row["user"].as_str(), row["millis"].as_i64()) {
        (Some(id), Some(user), Some(millis)) => Ok(Listed { id, user: user.to_owned(), millis }),
        _ => Err(wrong(format!("mangrove.queries returned the row {row}"))),
    }
}

fn millis_of(rows: &[Listed], user: &str) -> i64 {
    rows.iter().filter(|row| row.user == user).map(|row| row.millis).sum()
}

/// Ends the queries of the two users.
fn kill_all(administrator: &mut Client) -> Result<()> {
    for Listed { id, .. } in listed(administrator)? {
        administrator.evaluate(
            &format!("g.call('mangrove.kill').with('id', {id}L)"),
            &Parameters::new(),
            &mut |_, _| {},
        )?;
    }
    Ok(())
}
