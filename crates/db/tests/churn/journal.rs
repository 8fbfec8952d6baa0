//! The journal of a process that is killed: the entries of its book as lines, which outlive it.
//!
//! `T writer number begin op;op;…` asks for a commit, `A writer number ts` has it acknowledged, `X writer number`
//! refused.

use crate::book::{Attempt, Closed};
use crate::model::{Op, State};

/// The line for an attempt that asks for its commit.
pub fn asked(attempt: &Attempt) -> String {
    let ops: Vec<String> = attempt.ops.iter().map(written).collect();
    format!("T {} {} {} {}\n", attempt.writer, attempt.number, attempt.begin_ts, ops.join(";"))
}

/// The line for one that was acknowledged.
pub fn acknowledged(attempt: &Attempt, ts: u64) -> String {
    format!("A {} {} {ts}\n", attempt.writer, attempt.number)
}

/// The line for one that was refused.
pub fn refused(attempt: &Attempt) -> String {
    format!("X {} {}\n", attempt.writer, attempt.number)
}

/// Reads the journal of a process that began with the graph `base`.
pub fn read(text: &str, base: State) -> Closed {
    let mut closed = Closed { base: base.into(), ..Closed::default() };
    let mut asking: Vec<Attempt> = Vec::new();
    // A line without its end was not written completely.
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        let number = |at: usize| -> u64 { words[at].parse().unwrap() };
        if words[0] == "T" {
            let ops = words[4].split(';').map(op_of).collect();
            asking.push(Attempt { writer: number(1) as usize, number: number(2), begin_ts: number(3), ops });
            continue;
        }
        let place = asking.iter().position(|attempt| attempt.writer == number(1) as usize).unwrap();
        let attempt = asking.swap_remove(place);
        match words[0] {
            "A" => drop(closed.commits.insert(number(3), attempt)),
            _ => closed.aborted += 1,
        }
    }
    closed.unknown = asking;
    closed
}

fn written(op: &Op) -> String {
    match op {
        Op::AddVertex { tag, label, id } => format!("v {tag} {label} {id}"),
        Op::AddEdge { tag, label, from, to } => format!("e {tag} {label} {from} {to}"),
        Op::DeleteVertex { tag } => format!("dv {tag}"),
        Op::DeleteEdge { tag } => format!("de {tag}"),
        Op::SetVertex { tag, key, value } => format!("sv {tag} {key} {value}"),
        Op::AddToList { tag, key, value } => format!("al {tag} {key} {value}"),
        Op::AddToSet { tag, key, value } => format!("as {tag} {key} {value}"),
        Op::RemoveVertexProperty { tag, key } => format!("rv {tag} {key}"),
        Op::SetEdge { tag, key, value } => format!("se {tag} {key} {value}"),
        Op::RemoveEdgeProperty { tag, key } => format!("re {tag} {key}"),
    }
}

fn op_of(text: &str) -> Op {
    let words: Vec<&str> = text.split(' ').collect();
    let number = |at: usize| -> u64 { words[at].parse().unwrap() };
    let (tag, at) = (number(1), |at: usize| number(at) as usize);
    match words[0] {
        "v" => Op::AddVertex { tag, label: at(2), id: words[3].parse().unwrap() },
        "e" => Op::AddEdge { tag, label: at(2), from: number(3), to: number(4) },
        "dv" => Op::DeleteVertex { tag },
        "de" => Op::DeleteEdge { tag },
        "sv" => Op::SetVertex { tag, key: at(2), value: number(3) },
        "al" => Op::AddToList { tag, key: at(2), value: number(3) },
        "as" => Op::AddToSet { tag, key: at(2), value: number(3) },
        "rv" => Op::RemoveVertexProperty { tag, key: at(2) },
        "se" => Op::SetEdge { tag, key: at(2), value: number(3) },
        "re" => Op::RemoveEdgeProperty { tag, key: at(2) },
        other => panic!("the journal has the operation {other}"),
    }
}
