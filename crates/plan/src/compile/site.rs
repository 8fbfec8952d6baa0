//! The position of a step in a traversal, for error messages.
//!
//! A step of a script has a line and a column. A step of bytecode from the wire is found by its number, counted from 1
//! over all instructions of its chain (modulators included), and by the steps that it is nested in.

use std::fmt;

use mangrove_graph::Error;
use mangrove_gremlin::{Instruction, Position};

use crate::literals::Literals;

/// The position of an instruction. Sites are on the stack of the compiler; each points to the site that it is nested
/// in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    /// The name of the instruction.
    pub name: &'a str,
    /// The position in the script; `None` for bytecode from the wire.
    pub position: Option<Position>,
    /// The number of traversals that it is nested in.
    pub depth: usize,
    number: usize,
    parent: Option<&'a Site<'a>>,
    /// The literals that were taken out of the traversal.
    pub literals: &'a Literals<'a>,
}

impl<'a> Site<'a> {
    /// The site of the instruction at `index` of a chain nested in `parent`.
    pub fn new(
        instruction: &'a Instruction,
        index: usize,
        parent: Option<&'a Site<'a>>,
        literals: &'a Literals<'a>,
    ) -> Self {
        Site {
            name: &instruction.name,
            position: instruction.position,
            depth: parent.map_or(0, |site| site.depth + 1),
            number: index + 1,
            parent,
            literals,
        }
    }

    /// The site of the step that this one's chain is an argument of.
    pub fn parent(&self) -> Option<&'a Site<'a>> {
        self.parent
    }

    /// The sites around this one, the nearest first.
    pub fn ancestors(&self) -> impl Iterator<Item = &'a Site<'a>> {
        std::iter::successors(self.parent, |site| site.parent)
    }

    /// The error for a value that is wrong here.
    pub fn invalid(&self, what: impl fmt::Display) -> Error {
        Error::invalid(format!("{self}: {what}"))
    }

    /// The error for a form that is not supported, or not in this position.
    pub fn unsupported(&self, what: impl fmt::Display) -> Error {
        Error::unsupported(format!("{self}: {what}"))
    }
}

impl fmt::Display for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name)?;
        if let Some(at) = self.position {
            return write!(f, " at line {}, column {}", at.line, at.column);
        }
        write!(f, " (step {}", self.number)?;
        for site in self.ancestors() {
            write!(f, " in `{}`, step {}", site.name, site.number)?;
        }
        write!(f, ")")
    }
}
