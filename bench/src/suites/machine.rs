//! The limits of the machine, which no database can exceed.
//!
//! Memory: random reads that depend on each other, random reads that overlap, and a sequential read. Loopback: a round
//! trip of a 64-byte message between two threads that block, which bounds every request to a server.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use mangrove::{Error, Result};

use super::Context;
use crate::harness::{Operation, measure, verify};
use crate::options::Suite;
use crate::report::{Growing, Row};
use mangrove_generate::random::{below, mix};

const NAME: &str = Suite::Machine.name();

/// The number of reads that overlap in one operation.
const OVERLAPPED: u64 = 1_024;

/// The bytes of a message, each way.
const MESSAGE_BYTES: usize = 64;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    memory(context, report)?;
    loopback(context, report)
}

fn memory(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let bytes = context.options.scale.memory_bytes();
    let count = (bytes / size_of::<u64>()) as u64;
    let words: Arc<Vec<u64>> = Arc::new((0..count).collect());
    let variant = format!("{} MiB", bytes >> 20);
    let schedule = context.schedule.alone();

    let (at, read) = (words.clone(), words.clone());
    let dependent: Box<dyn Operation> = Box::new(move |input: u64| Ok(at[input as usize]));
    let overlapped: Box<dyn Operation> = Box::new(move |input: u64| {
        Ok((0..OVERLAPPED).map(|i| read[below(mix(input ^ (i << 40)), count) as usize]).fold(0, u64::wrapping_add))
    });
    let walk: Box<dyn Operation> =
        Box::new(move |_| Ok(words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word))));

    let mut dependent = [dependent];
    verify("machine dependent read", &mut *dependent[0], count, &mut Ok)?;
    let timing = measure(schedule, count, &mut dependent)?;
    report.push(Row::time(NAME, "dependent random read", &variant, timing));

    let timing = measure(schedule, count, &mut [overlapped])?.divided_by(OVERLAPPED as f64);
    report.push(Row::time(NAME, "overlapped random read", &variant, timing));

    let mut walk = [walk];
    let sum = (count * (count - 1)) / 2;
    verify("machine sequential read", &mut *walk[0], 1, &mut |_| Ok(sum))?;
    let timing = measure(schedule, 1, &mut walk)?;
    report.push(Row::rate(NAME, "sequential read", &variant, timing, bytes as f64, "B/s"));
    Ok(())
}

fn loopback(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let echo = thread::Builder::new().name("bench-echo".to_owned()).spawn(move || echo(&listener))?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let there_and_back: Box<dyn Operation> = Box::new(move |input: u64| {
        let mut message = [0; MESSAGE_BYTES];
        message[..8].copy_from_slice(&input.to_le_bytes());
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        Ok(u64::from_le_bytes(message[..8].try_into().expect("eight bytes are eight bytes")))
    });
    let mut operations = [there_and_back];
    verify("machine loopback", &mut *operations[0], u64::MAX, &mut Ok)?;
    let timing = measure(context.schedule.alone(), u64::MAX, &mut operations)?;
    report.push(Row::time(NAME, "loopback round trip", "64 bytes", timing));
    drop(operations);
    echo.join().map_err(|_| Error::bug("the echo panicked"))?.map_err(Error::from)
}

/// Answers one connection until it closes.
fn echo(listener: &TcpListener) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut message = [0; MESSAGE_BYTES];
    loop {
        match stream.read(&mut message)? {
            0 => return Ok(()),
            count => stream.write_all(&message[..count])?,
        }
    }
}
