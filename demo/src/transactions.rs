//! Two transactions: one is rolled back, one commits. Each reads its own writes. Reads outside the transaction do not
//! see them before the commit. An unexpected answer fails the demo.

use std::io::Write;

use mangrove::{Database, Error, Result, Transaction, Value};

use crate::{now, shown, table};

const ROUTES_OF_ATLANTA: &str = "g.V('ATL').bothE('route').count()";
const ROUTES_OF_THE_NEW_AIRLINE: &str = "g.E().has('route', 'airline', 'MGV').count()";

/// Runs both transactions and prints a table for each.
pub fn run(db: &Database, out: &mut dyn Write) -> Result<()> {
    let before = number(db.query(ROUTES_OF_ATLANTA)?.collect()?)?;
    writeln!(out, "Transaction 1 drops the routes of Atlanta, and is rolled back.")?;
    let inside = compare(
        db,
        out,
        ROUTES_OF_ATLANTA,
        |tx| tx.query("g.V('ATL').bothE('route').drop()")?.collect(),
        End::RollBack,
    )?;
    expect("routes of Atlanta inside", inside.inside, 0)?;
    expect("routes of Atlanta after the rollback", inside.after, before)?;

    writeln!(out, "Transaction 2 adds two routes of a new airline, and commits.")?;
    let open = "g.V('BOI').as('a').V('BGR').as('b').addE('route').from('a').to('b').property('airline', 'MGV')\
                .addE('route').from('b').to('a').property('airline', 'MGV')";
    let opened = compare(db, out, ROUTES_OF_THE_NEW_AIRLINE, |tx| tx.query(open)?.collect(), End::Commit)?;
    expect("routes of the new airline outside before the commit", opened.outside, 0)?;
    expect("routes of the new airline after the commit", opened.after, 2)
}

/// The end of a transaction.
enum End {
    Commit,
    RollBack,
}

/// The answer to a query within a transaction, outside it at the same time, and after its end.
struct Answers {
    inside: i64,
    outside: i64,
    after: i64,
}

/// Runs `write` in a transaction and then `question` three times: within it, outside it, and after its end. Prints the
/// answers.
fn compare(
    db: &Database,
    out: &mut dyn Write,
    question: &str,
    write: impl FnOnce(&Transaction) -> Result<Vec<Value>>,
    end: End,
) -> Result<Answers> {
    let begin = now();
    let tx = db.begin()?;
    write(&tx)?;
    let inside = number(tx.query(question)?.collect()?)?;
    let outside = number(db.query(question)?.collect()?)?;
    let ended = match end {
        End::Commit => tx.commit().map(|_| "committed")?,
        End::RollBack => {
            tx.rollback();
            "rolled back"
        }
    };
    let elapsed = begin.elapsed();
    let after = number(db.query(question)?.collect()?)?;
    let mut table = table(&["question", "inside", "outside meanwhile", &format!("after it was {ended}")]);
    table.add_row([question.to_owned(), inside.to_string(), outside.to_string(), after.to_string()]);
    writeln!(out, "{table}\n   {}\n", shown(elapsed))?;
    Ok(Answers { inside, outside, after })
}

/// The result of a query that counts.
fn number(results: Vec<Value>) -> Result<i64> {
    match results.as_slice() {
        [Value::I64(n)] => Ok(*n),
        other => Err(Error::bug(format!("count() returned {other:?}"))),
    }
}

fn expect(what: &str, found: i64, expected: i64) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::bug(format!("{what}: found {found}, expected {expected}")))
}
