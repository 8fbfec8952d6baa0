//! Where in a traversal a step stands, for error messages.
//!
//! A script has lines and columns. Bytecode from the wire has none: there a step is found by its number,
//! counted from 1 over all instructions of its chain (modulators too), and by the steps it is nested in.

use std::fmt;

use mangrove_graph::Error;
use mangrove_gremlin::{Instruction, Position};

/// The place of an instruction. Sites live on the stack of the compiler: each points to the one it is
/// nested in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    /// The name as Gremlin writes it.
    pub name: &'a str,
    /// Where it stands in the script.
    pub position: Option<Position>,
    /// How many traversals it is nested in.
    pub depth: usize,
    number: usize,
    parent: Option<&'a Site<'a>>,
}

impl<'a> Site<'a> {
    /// The site of the instruction at `index` of a chain nested in `parent`.
    pub fn new(instruction: &'a Instruction, index: usize, parent: Option<&'a Site<'a>>) -> Self {
        Site {
            name: &instruction.name,
            position: instruction.position,
            depth: parent.map_or(0, |site| site.depth + 1),
            number: index + 1,
            parent,
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

    /// A value that is wrong here.
    pub fn invalid(&self, what: impl fmt::Display) -> Error {
        Error::invalid(format!("{self}: {what}"))
    }

    /// A form that is not understood, or stands in the wrong place.
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
