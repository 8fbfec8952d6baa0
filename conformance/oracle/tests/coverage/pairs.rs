//! Which steps were generated in the scope of which.
//!
//! A scope is the position of a child: `where`, `union`, `order.by`, `choose.option`. A step that is right on its own
//! may be wrong for one traverser among many, so a pair that never occurs is a blind spot. Most of the missing pairs
//! make no sense or have no determined answer. The long form (`ORACLE_CASES=200000`) lists all of them for inspection.

use std::collections::{BTreeMap, BTreeSet};

use mangrove_gremlin::{Argument, Bytecode, vocabulary};

use super::words::LEFT_OUT;
use super::{TRAVERSALS, generated};

/// Fewer pairs than this mean that the generator lost a feature.
const PAIRS_MIN: usize = 1_400;

/// How often each step came up in each scope.
type Pairs = BTreeMap<String, BTreeMap<String, usize>>;

fn count(traversal: &Bytecode, scope: &str, pairs: &mut Pairs) {
    let mut modulated = "";
    for instruction in &traversal.steps {
        let name = instruction.name.as_str();
        let is_modulator = matches!(name, "by" | "option" | "from" | "to" | "until" | "emit" | "times" | "with" | "as");
        let inner = if is_modulator { format!("{modulated}.{name}") } else { name.to_owned() };
        if !is_modulator {
            modulated = name;
            *pairs.entry(scope.to_owned()).or_default().entry(name.to_owned()).or_default() += 1;
        }
        // A modulator before a repeat belongs to the repeat, too.
        let inner = if matches!(name, "until" | "emit") { format!("repeat.{name}") } else { inner };
        for argument in &instruction.arguments {
            if let Argument::Traversal(child) = argument {
                count(child, &inner, pairs);
            }
        }
    }
}

#[test]
fn steps_are_generated_in_the_scopes_of_steps() {
    let long = std::env::var("ORACLE_CASES").ok().map(|n| n.parse().expect("ORACLE_CASES is a number"));
    let mut pairs = Pairs::new();
    match long {
        Some(more) => generated(more).for_each(|traversal| count(&traversal, "the whole", &mut pairs)),
        None => TRAVERSALS.iter().for_each(|traversal| count(traversal, "the whole", &mut pairs)),
    }
    let is_left_out = |step: &str| LEFT_OUT.iter().any(|(name, _)| *name == step);
    let modulators = ["as", "by", "option", "from", "times", "until", "emit", "with"];
    let steps: BTreeSet<&str> = vocabulary::steps().iter().copied().collect();
    let steps: Vec<&str> = steps.into_iter().filter(|step| !is_left_out(step) && !modulators.contains(step)).collect();
    let met: usize = pairs.values().map(BTreeMap::len).sum();
    println!("{met} pairs of {} steps and {} scopes", steps.len(), pairs.len());
    for (scope, inside) in &pairs {
        let total: usize = inside.values().sum();
        println!("{scope}: {total} steps, {} different", inside.len());
        if long.is_some() {
            let never: Vec<&str> = steps.iter().copied().filter(|step| !inside.contains_key(*step)).collect();
            println!("    never: {}", never.join(" "));
        }
    }
    assert!(met >= PAIRS_MIN, "only {met} pairs");
}
