//! Statements: the parts of a script, one after the other, with their positions.
//!
//! A statement is a traversal, a command to the transaction, or an assignment to a name:
//!
//! ```text
//! ada = g.addV('person').next()
//! ids = [1, 2, 3]; others = g.V(ids).toList()
//! g.V(ada).addE('knows').to(others)
//! ada
//! ```
//!
//! In the statements that follow, an assigned name is a parameter. The parser runs nothing and does not know the
//! values. [`ScriptStatement::variable`] tells the runner of the script which name gets the result of a statement.
//!
//! A statement ends with a semicolon, or at the end of a line if it is complete: all brackets are closed, and the next
//! line does not begin with a `.`.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use mangrove_graph::{ErrorKind, Result};
use smol_str::SmolStr;

use super::lexer::{Lexer, TokenKind};
use super::{ParseOptions, Parser, Statement, Terminal, Token, names};
use crate::bytecode::{Argument, Bytecode, Position};

/// A statement of a script, with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptStatement {
    /// The name that gets the result of the statement.
    pub variable: Option<SmolStr>,
    /// The statement itself, without the name that it assigns to.
    pub statement: Statement,
    /// The position at which the statement begins.
    pub position: Position,
    /// The bytes of the statement in the script, without the separator after it.
    pub range: Range<usize>,
    /// The bytes of the statement without the name that it assigns to.
    pub expression: Range<usize>,
}

impl ScriptStatement {
    /// The statement's number, counted from 1, and position, as errors show them.
    pub fn place(&self, number: usize) -> impl fmt::Display + use<> {
        let Position { line, column } = self.position;
        format!("statement {number} (line {line}, column {column})")
    }
}

/// The statements of a script, parsed one after the other.
pub struct Statements<'a> {
    parser: Parser<'a>,
    /// The names that have been assigned so far.
    variables: HashSet<SmolStr>,
    /// True after an error, which ends the iteration.
    is_over: bool,
}

impl<'a> Statements<'a> {
    /// The statements of a text.
    pub fn new(text: &'a str, options: &'a ParseOptions) -> Result<Self> {
        Ok(Statements { parser: Parser::new(text, options)?, variables: HashSet::new(), is_over: false })
    }

    /// The next statement; `None` at the end of the script.
    fn statement(&mut self) -> Result<Option<ScriptStatement>> {
        let parser = &mut self.parser;
        while parser.at(b';') {
            parser.advance()?;
        }
        if parser.token.kind == TokenKind::End {
            return Ok(None);
        }
        let first = parser.token;
        let assigned = match first.kind == TokenKind::Name && parser.ahead.is(b'=') {
            true => Some(parser.assigned()?),
            false => None,
        };
        let expression_start = parser.token.at.offset;
        let statement = match assigned {
            Some(variable) => parser.assigned_value(variable, &self.variables)?,
            None => parser.expression(&self.variables)?,
        };
        let end = parser.end_passed;
        if !parser.at(b';') && parser.token.kind != TokenKind::End && parser.on_same_line() {
            return Err(parser.expected("`.`, `;` or the end of the script"));
        }
        let variable = assigned.map(|name| SmolStr::new(name.text));
        self.variables.extend(variable.clone());
        let (position, range) = (first.at.position, first.at.offset..end);
        Ok(Some(ScriptStatement { variable, statement, position, range, expression: expression_start..end }))
    }
}

impl Iterator for Statements<'_> {
    type Item = Result<ScriptStatement>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let statement = self.statement().transpose();
        self.is_over = !matches!(statement, Some(Ok(_)));
        statement
    }
}

/// Returns true if a text is no complete script but may become one with more text: a bracket or a quote is open, or the
/// text ends with a `.`. After an error before the end of the text more text would not help, so the result is false.
pub fn is_unfinished(text: &str) -> bool {
    let mut lexer = Lexer::new(text);
    loop {
        match lexer.token() {
            Ok(token) if token.kind == TokenKind::End => break,
            Ok(_) => {}
            Err(_) => return lexer.at_open_string(),
        }
    }
    let options = ParseOptions { size_bytes_max: text.len(), ..ParseOptions::default() };
    let Ok(mut statements) = Statements::new(text, &options) else { return false };
    loop {
        match statements.next() {
            Some(Ok(_)) => {}
            Some(Err(_)) => return statements.parser.token.kind == TokenKind::End,
            None => return false,
        }
    }
}

impl<'a> Parser<'a> {
    /// The name that a statement assigns to. Consumes the name and the `=` after it.
    fn assigned(&mut self) -> Result<Token<'a>> {
        let name = self.name("a name")?;
        let is_word = names::bare_token(name.text).is_some() || names::is_strategy(name.text);
        if is_word || matches!(name.text, "__" | "null" | "true" | "false" | "NaN" | "Infinity") {
            let message =
                format!("`{}` is a word of the language and cannot be a variable; choose another name", name.text);
            return Err(self.error(ErrorKind::Syntax, name.at, &message));
        }
        self.expect(b'=')?;
        Ok(name)
    }

    /// The right side of an assignment: a traversal that results in a value, a value, or a name that has one.
    fn assigned_value(&mut self, variable: Token<'a>, known: &HashSet<SmolStr>) -> Result<Statement> {
        if self.token.kind == TokenKind::Name && self.ahead.is(b'.') {
            let statement = self.expression(known)?;
            match statement {
                Statement::Traversal { terminal, .. } => self.check_assigned(variable, terminal)?,
                _ => return Err(self.error(ErrorKind::Syntax, variable.at, "a transaction is no value")),
            }
            return Ok(statement);
        }
        let at = self.token.at;
        match self.argument()? {
            Argument::Value(value) => Ok(Statement::Value(value)),
            Argument::Parameter(name) => Ok(Statement::Variable(name)),
            _ => {
                let message =
                    "a variable is given a value or the result of a traversal of a source, such as `g.V().next()`";
                Err(self.error(ErrorKind::Unsupported, at, message))
            }
        }
    }

    /// A traversal, a command to a transaction, or a variable. `known` are the variables so far.
    fn expression(&mut self, known: &HashSet<SmolStr>) -> Result<Statement> {
        self.volatile = false;
        let source = self.token;
        if source.kind != TokenKind::Name || source.text == "__" {
            return Err(self.expected("a traversal source such as `g`"));
        }
        let is_variable = known.contains(source.text);
        self.advance()?;
        if is_variable && self.at(b'.') {
            let message = format!(
                "`{0}` is a variable, and steps follow traversal sources; begin with `g.V({0})` or `g.inject({0})`",
                source.text
            );
            return Err(self.error(ErrorKind::Unsupported, source.at, &message));
        }
        let source = SmolStr::new(source.text);
        if is_variable { Ok(Statement::Variable(source)) } else { self.traversal(source) }
    }

    /// The rest of a statement after a traversal source.
    fn traversal(&mut self, source: SmolStr) -> Result<Statement> {
        let mut bytecode = Bytecode::default();
        let mut terminal = Terminal::None;
        while self.at(b'.') {
            self.advance()?;
            let name = self.name("a step")?;
            if bytecode.steps.is_empty() && name.text == "tx" {
                return Ok(Statement::Transaction { source, command: self.transaction()? });
            }
            if bytecode.steps.is_empty() && names::SOURCE_METHODS.contains(&name.text) {
                let instruction = self.instruction(name)?;
                bytecode.source.push(instruction);
            } else if names::TERMINALS.contains(&name.text) && !bytecode.steps.is_empty() {
                terminal = self.terminal(name)?;
                break;
            } else {
                self.check_step(name, bytecode.steps.is_empty())?;
                let instruction = self.instruction(name)?;
                bytecode.steps.push(instruction);
            }
        }
        if self.at(b'.') {
            let message = "nothing may follow the method that ends a traversal";
            return Err(self.error(ErrorKind::Unsupported, self.token.at, message));
        }
        Ok(Statement::Traversal { source, bytecode, terminal, volatile: self.volatile })
    }

    /// The command of `g.tx().commit()`, from the first `(`.
    fn transaction(&mut self) -> Result<super::TransactionCommand> {
        self.expect(b'(')?;
        self.expect(b')')?;
        self.expect(b'.')?;
        let name = self.name("`commit`, `rollback` or `begin`")?;
        let command = super::TransactionCommand::from_name(name.text).ok_or_else(|| {
            let message = format!("unknown transaction method `{}`; there are begin, commit and rollback", name.text);
            self.error(ErrorKind::Unsupported, name.at, &message)
        })?;
        self.expect(b'(')?;
        self.expect(b')')?;
        Ok(command)
    }
}
