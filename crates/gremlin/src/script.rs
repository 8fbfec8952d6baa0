//! Scripts: text in the gremlin-lang grammar (TinkerPop 3.8) into [`Bytecode`].
//!
//! A hand-written lexer and recursive-descent parser. Steps are recognized by name. One generic grammar reads the
//! arguments of all of them; the planner decides which arguments a step takes. Unknown steps, predicates and enum
//! values are refused here, where their position in the text is known.
//!
//! The parser keeps WIRE-2 and WIRE-3. Besides:
//!
//! - **WIRE-7.** Time and memory are linear in the length of the script, which [`ParseOptions`] bounds. Range literals
//!   (`1..5`), the only ones that stand for more than their length, share a budget.
//! - **WIRE-8.** Parsing is a function of the text and the options. The clock and the random bits for `datetime()` and
//!   `UUID()` are part of the options.
//!
//! The parser reads more than the official grammar has: assignments (`statement.rs`), and the literals that a printed
//! [`Bytecode`] needs: `Duration('PT1S')`, `Binary('00ff')`, `new Vertex(id)` and `new Edge(id)`. It does not read
//! closures, nor a traversal that is run to make an argument (`g.V(g.V().next())`).

mod argument;
mod diagnostic;
mod lexer;
mod literal;
pub(crate) mod names;
mod statement;
mod terminal;
#[cfg(test)]
mod tests;

pub use statement::{ScriptStatement, Statements, is_unfinished};
pub use terminal::{Terminal, VARIABLE_SIZE_MAX, results_of};

use mangrove_graph::{DateTime, Error, ErrorKind, Result, Value};
use smol_str::SmolStr;
use uuid::Uuid;

use self::diagnostic::TokenPosition;
use self::lexer::{Lexer, Token, TokenKind};
use crate::bytecode::{Argument, Bytecode, Instruction};
use crate::limits::{RANGE_SIZE_MAX, SCRIPT_SIZE_BYTES_MAX};

/// The inputs of parsing besides the text.
#[derive(Clone, Debug)]
pub struct ParseOptions {
    /// The longest script that is read.
    pub size_bytes_max: usize,
    /// The value of `datetime()`; without it, `datetime()` is an error.
    pub now: Option<DateTime>,
    /// A random UUID for `UUID()`: the n-th of a script is this plus n. Without it, `UUID()` is an error.
    pub fresh_uuid: Option<Uuid>,
}

impl Default for ParseOptions {
    fn default() -> Self {
        ParseOptions { size_bytes_max: SCRIPT_SIZE_BYTES_MAX, now: None, fresh_uuid: None }
    }
}

/// One statement of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// A traversal.
    Traversal {
        /// The traversal source that it begins with: `g`, or another source of the server.
        source: SmolStr,
        /// Its source instructions and steps.
        bytecode: Bytecode,
        /// How its results are taken.
        terminal: Terminal,
        /// True if it has a value from the options (`datetime()`, `UUID()`): the same text means something else the
        /// next time, so its plan must not be cached by the text.
        volatile: bool,
    },
    /// `g.tx().commit()` and the like.
    Transaction {
        /// The traversal source.
        source: SmolStr,
        /// The command.
        command: TransactionCommand,
    },
    /// A literal that is assigned to a variable: `limit = 10`.
    Value(Value),
    /// A variable that an earlier statement assigned to.
    Variable(SmolStr),
}

/// A client's command to its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionCommand {
    /// Begin one.
    Begin,
    /// Commit it.
    Commit,
    /// Roll it back.
    Rollback,
}

impl TransactionCommand {
    /// The command of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "begin" => TransactionCommand::Begin,
            "commit" => TransactionCommand::Commit,
            "rollback" => TransactionCommand::Rollback,
            _ => return None,
        })
    }

    /// The command in bytecode as drivers send it: one source instruction `tx` with the command's name. `None` for any
    /// other bytecode.
    pub fn from_bytecode(bytecode: &Bytecode) -> Option<Self> {
        match (bytecode.source.as_slice(), bytecode.steps.as_slice()) {
            ([Instruction { name, arguments, .. }], []) if name == "tx" => match arguments.as_slice() {
                [Argument::Value(Value::String(command))] => TransactionCommand::from_name(command),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The statements of a script, separated by semicolons or line ends. An empty script has none.
pub fn parse(text: &str, options: &ParseOptions) -> Result<Vec<ScriptStatement>> {
    Statements::new(text, options)?.collect()
}

/// The only statement of a script.
///
/// ```
/// use mangrove_gremlin::{ParseOptions, Statement, parse_one};
///
/// let statement = parse_one("g.V().has('age', gt(30)).out()", &ParseOptions::default())?;
/// let Statement::Traversal { bytecode, .. } = statement else { panic!("a transaction") };
/// assert_eq!(bytecode.to_string(), "g.V().has('age', P.gt(30)).out()");
/// # Ok::<(), mangrove_graph::Error>(())
/// ```
pub fn parse_one(text: &str, options: &ParseOptions) -> Result<Statement> {
    let mut statements = parse(text, options)?;
    match (statements.pop(), statements.len()) {
        (Some(ScriptStatement { variable: None, statement, .. }), 0) => Ok(statement),
        (Some(ScriptStatement { variable: Some(name), .. }), 0) => Err(Error::unsupported(format!(
            "the only statement gives the variable `{name}` a value and nothing uses it; write the traversal alone, or \
             a script of several statements"
        ))),
        (None, _) => Err(Error::new(ErrorKind::Syntax, "the script is empty; a traversal such as `g.V()` is expected")),
        (Some(_), rest) => Err(Error::new(
            ErrorKind::Syntax,
            format!("the script has {} statements where one is expected; send them one by one", rest + 1),
        )),
    }
}

/// The parser: the current token, the next one, and the counters that bound the work.
struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    token: Token<'a>,
    ahead: Token<'a>,
    /// The line of the last consumed token.
    line_passed: u32,
    /// The byte offset at which the last consumed token ends.
    end_passed: usize,
    options: &'a ParseOptions,
    /// The number of arguments around the current one.
    depth: usize,
    /// The levels nested below the current argument, as far as it has been read.
    height: usize,
    /// The elements that range literals may still stand for.
    range_budget: u64,
    uuids_made: u128,
    volatile: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, options: &'a ParseOptions) -> Result<Self> {
        if text.len() > options.size_bytes_max {
            return Err(Error::new(
                ErrorKind::Syntax,
                format!(
                    "the script has {} bytes, more than the limit of {}; send values as parameters, or in several requests",
                    text.len(),
                    options.size_bytes_max
                ),
            ));
        }
        let mut lexer = Lexer::new(text);
        let (token, ahead) = (lexer.token()?, lexer.token()?);
        Ok(Parser {
            text,
            lexer,
            token,
            ahead,
            line_passed: 0,
            end_passed: 0,
            options,
            depth: 0,
            height: 0,
            range_budget: RANGE_SIZE_MAX,
            uuids_made: 0,
            volatile: false,
        })
    }

    /// Appends steps, each from its `.`, up to a token that is no `.`.
    fn steps(&mut self, bytecode: &mut Bytecode) -> Result<()> {
        while self.at(b'.') {
            self.advance()?;
            let name = self.name("a step")?;
            self.check_step(name, false)?;
            let instruction = self.instruction(name)?;
            bytecode.steps.push(instruction);
        }
        Ok(())
    }

    /// The instruction of this name, from its `(`.
    fn instruction(&mut self, name: Token<'a>) -> Result<Instruction> {
        let arguments = self.arguments_of(|word, at, count| names::takes_token(name.text, word, at, count))?;
        Ok(Instruction { name: SmolStr::new(name.text), arguments, position: Some(name.at.position) })
    }

    fn check_step(&self, name: Token<'a>, starts: bool) -> Result<()> {
        let message = if !names::is_step(name.text) {
            if names::TERMINALS.contains(&name.text) {
                format!("`{}` takes the results of a whole traversal; it has no place here", name.text)
            } else {
                format!("unknown step `{}`{}", name.text, names::suggest_step(name.text))
            }
        } else if starts && !names::START_STEPS.contains(&name.text) {
            format!("`{}` cannot begin a traversal; these can: {}", name.text, names::START_STEPS.join(", "))
        } else {
            return Ok(());
        };
        Err(self.error(ErrorKind::Unsupported, name.at, &message))
    }

    fn advance(&mut self) -> Result<()> {
        self.line_passed = self.token.at.position.line;
        self.end_passed = self.token.at.offset + self.token.text.len();
        self.token = self.ahead;
        self.ahead = self.lexer.token()?;
        Ok(())
    }

    fn at(&self, mark: u8) -> bool {
        self.token.is(mark)
    }

    fn on_same_line(&self) -> bool {
        self.token.at.position.line == self.line_passed
    }

    /// Consumes a mark that must be there.
    fn expect(&mut self, mark: u8) -> Result<()> {
        match self.at(mark) {
            true => self.advance(),
            false => Err(self.expected(&format!("`{}`", char::from(mark)))),
        }
    }

    /// Consumes a name that must be there.
    fn name(&mut self, what: &str) -> Result<Token<'a>> {
        let token = self.token;
        if token.kind != TokenKind::Name {
            return Err(self.expected(what));
        }
        self.advance()?;
        Ok(token)
    }

    fn expected(&self, what: &str) -> Error {
        let message = format!("expected {what}, found {}", self.token.describe());
        self.error(ErrorKind::Syntax, self.token.at, &message)
    }

    fn error(&self, kind: ErrorKind, at: TokenPosition, message: &str) -> Error {
        diagnostic::error(kind, self.text, at, message)
    }
}
