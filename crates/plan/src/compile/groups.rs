//! Finds the step that each modulator belongs to.
//!
//! The result is a [`Call`] for each step, with its modulators. Modulators follow their step, with these exceptions:
//!
//! - `until`, `emit` and `times` may also come before their `repeat`. After a loop that has its own, they belong to the
//!   next one.
//! - `as` at the head of a nested traversal labels the object that enters it.
//! - A `property()` directly after `addV()` or `addE()` belongs to the new element.

use mangrove_graph::{Error, Result};
use mangrove_gremlin::{Argument, Instruction};

use super::arguments::names;
use super::site::Site;
use crate::limits::STEP_LABELS_MAX;
use crate::literals::Literals;
use crate::logical::Name;

/// A step with its modulators.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// Its position in the traversal, for errors.
    pub site: Site<'a>,
    /// The arguments. A reader takes them from the front.
    pub arguments: &'a [Argument],
    /// True for the first step of a root traversal.
    pub first: bool,
    /// The labels that `as()` gives it.
    pub labels: Vec<Name>,
    modulators: Vec<Modulator<'a>>,
    kind: CallKind,
}

/// A modulator of a step.
#[derive(Debug)]
pub(super) struct Modulator<'a> {
    /// Its position in the traversal, for errors.
    pub site: Site<'a>,
    /// The arguments.
    pub arguments: &'a [Argument],
    /// True if it comes before its step (`until(…).repeat(…)`).
    pub before: bool,
}

/// How far the step of a call is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallKind {
    Step,
    /// `repeat` with its body.
    Loop,
    /// `until`, `emit` or `times` before their `repeat`, which has not come yet.
    PendingLoop,
    /// The start of a nested traversal, to which `as()` has given labels.
    LabelledStart,
}

impl<'a> Call<'a> {
    fn new(kind: CallKind, site: Site<'a>, arguments: &'a [Argument]) -> Self {
        Call { site, arguments, first: false, labels: Vec::new(), modulators: Vec::new(), kind }
    }

    /// Returns true if it is a loop that the modulator `name` may modulate. A loop that has one of that kind is
    /// complete; a second one begins the next loop.
    fn takes_as_loop(&self, name: &str) -> bool {
        let leaves = |name: &str| name != "emit";
        match self.kind {
            CallKind::PendingLoop => true,
            CallKind::Loop => !self.modulators.iter().any(|modulator| {
                matches!(modulator.site.name, "until" | "emit" | "times") && leaves(modulator.site.name) == leaves(name)
            }),
            CallKind::Step | CallKind::LabelledStart => false,
        }
    }

    /// Returns true if it stands for the object that enters a nested traversal.
    pub fn is_labelled_start(&self) -> bool {
        self.kind == CallKind::LabelledStart
    }

    /// Removes and returns the modulators of a name, in order.
    pub fn take(&mut self, name: &str) -> Vec<Modulator<'a>> {
        self.modulators.extract_if(.., |modulator| modulator.site.name == name).collect()
    }

    /// Removes and returns the only modulator of a name. Two are an error.
    pub fn take_one(&mut self, name: &str) -> Result<Option<Modulator<'a>>> {
        let mut found = self.take(name).into_iter();
        let first = found.next();
        match found.next() {
            None => Ok(first),
            Some(second) => Err(second.site.unsupported(format_args!(
                "The {}()-step already has its {name}()-modulator declared; keep one of them",
                self.site.name
            ))),
        }
    }

    /// Fails if a modulator is left.
    pub fn finish(&self) -> Result<()> {
        match self.modulators.first() {
            None => Ok(()),
            Some(left) => Err(left.site.unsupported(format_args!(
                "does not modulate `{}`; {}",
                self.site.name,
                place_of(left.site.name)
            ))),
        }
    }
}

/// The steps of a chain in order, each with its modulators.
pub(super) fn groups<'a>(
    instructions: &'a [Instruction],
    parent: Option<&'a Site<'a>>,
    literals: &'a Literals<'a>,
) -> Result<Vec<Call<'a>>> {
    let mut calls: Vec<Call<'a>> = Vec::with_capacity(instructions.len());
    for (index, instruction) in instructions.iter().enumerate() {
        attach(&mut calls, Site::new(instruction, index, parent, literals), &instruction.arguments)?;
    }
    if let Some(at) = calls.iter().position(|call| call.kind == CallKind::PendingLoop) {
        return Err(no_repeat(&calls[at], at.checked_sub(1).map(|before| &calls[before])));
    }
    if let (None, Some(first)) = (parent, calls.first_mut()) {
        first.first = true;
    }
    Ok(calls)
}

/// The error for a modulator without a loop of its own, with the step before it.
fn no_repeat(pending: &Call<'_>, before: Option<&Call<'_>>) -> Error {
    if !before.is_some_and(|call| call.kind == CallKind::Loop) {
        return pending.site.unsupported("The repeat()-traversal was not defined; add repeat(…) next to it");
    }
    let kind = if pending.site.name == "emit" { "emit" } else { "until" };
    let hint = if pending.site.name == "times" {
        "times(n) is one too: write until(or(…, loops().is(n)))"
    } else {
        "keep one of them"
    };
    pending.site.unsupported(format_args!(
        "The repeat()-step already has its {kind}()-modulator declared; {hint}, or add a repeat(…) that this one belongs to"
    ))
}

fn attach<'a>(calls: &mut Vec<Call<'a>>, site: Site<'a>, arguments: &'a [Argument]) -> Result<()> {
    match site.name {
        "as" => label(calls, site, arguments),
        "until" | "emit" | "times" => {
            if !calls.last().is_some_and(|call| call.takes_as_loop(site.name)) {
                calls.push(Call::new(CallKind::PendingLoop, site, &[]));
            }
            modulate(calls, site, arguments)
        }
        "repeat" => {
            match calls.last_mut() {
                Some(pending) if pending.kind == CallKind::PendingLoop => {
                    (pending.kind, pending.site, pending.arguments) = (CallKind::Loop, site, arguments);
                }
                _ => calls.push(Call::new(CallKind::Loop, site, arguments)),
            }
            Ok(())
        }
        "property" if matches!(calls.last(), Some(Call { site: Site { name: "addV" | "addE", .. }, .. })) => {
            modulate(calls, site, arguments)
        }
        // `to(Direction.OUT, …)` is a step, the general form of out().
        "to" if is_direction(arguments) => {
            calls.push(Call::new(CallKind::Step, site, arguments));
            Ok(())
        }
        "by" | "from" | "to" | "option" | "with" | "read" | "write" => modulate(calls, site, arguments),
        _ => {
            calls.push(Call::new(CallKind::Step, site, arguments));
            Ok(())
        }
    }
}

fn is_direction(arguments: &[Argument]) -> bool {
    matches!(arguments.first(), Some(Argument::Value(mangrove_graph::Value::Direction(_))))
}

fn label<'a>(calls: &mut Vec<Call<'a>>, site: Site<'a>, arguments: &'a [Argument]) -> Result<()> {
    if arguments.is_empty() {
        return Err(site.invalid("takes one or more step labels, not nothing"));
    }
    let labels = names(&site, arguments, "a step label")?;
    if calls.is_empty() {
        if site.parent().is_none() {
            return Err(nothing_before(&site));
        }
        calls.push(Call::new(CallKind::LabelledStart, site, &[]));
    }
    let call = calls.last_mut().expect("the start was pushed if there was no step");
    for label in labels {
        if !call.labels.contains(&label) {
            call.labels.push(label);
        }
    }
    if call.labels.len() > STEP_LABELS_MAX {
        return Err(site.unsupported(format_args!("a step bears at most {STEP_LABELS_MAX} labels")));
    }
    Ok(())
}

fn modulate<'a>(calls: &mut [Call<'a>], site: Site<'a>, arguments: &'a [Argument]) -> Result<()> {
    let call = calls.last_mut().ok_or_else(|| nothing_before(&site))?;
    let before = call.kind == CallKind::PendingLoop;
    call.modulators.push(Modulator { site, arguments, before });
    Ok(())
}

fn nothing_before(site: &Site<'_>) -> Error {
    site.unsupported(format_args!("there is no step before it; {}", place_of(site.name)))
}

/// The steps that a modulator belongs to, for error messages.
fn place_of(name: &str) -> &'static str {
    match name {
        "as" => "as() belongs after the step it labels",
        "by" => {
            "by() belongs after order, group, groupCount, dedup, aggregate, path, simplePath, cyclicPath, project, \
             select, valueMap or where(P)"
        }
        "from" | "to" => "from() and to() belong after addE, path, simplePath or cyclicPath",
        "option" => "option() belongs after choose with one argument",
        "with" => {
            "with() belongs after valueMap, call or io, after an algorithm, after a step with scope instances, or at the \
             traversal source"
        }
        "read" | "write" => "read() and write() belong after io",
        "property" => "property() belongs after a step that gives elements",
        _ => "until(), emit() and times() belong next to repeat",
    }
}
