//! Parsing of arguments: literals, tokens, variables, predicates, strategies and nested traversals.
//!
//! All recursion of the parser goes through [`Parser::argument`], which counts the levels (WIRE-2). A comment such as
//! "from its `(`" names the token at which a function begins: the tokens before it have been consumed. After an error
//! the parser is not used again, so its state then does not matter.

use mangrove_graph::{DateTime, Error, ErrorKind, Result, Value};
use smol_str::SmolStr;
use uuid::Uuid;

use super::lexer::{Token, TokenKind};
use super::{Parser, literal, names};
use crate::bytecode::{Argument, Bytecode, Cardinality, Predicate};
use crate::collections;
use crate::limits::NESTING_MAX;

impl<'a> Parser<'a> {
    /// `( argument, … )`
    pub(super) fn arguments(&mut self) -> Result<Vec<Argument>> {
        if self.at(b'{') {
            // Groovy's way to pass a closure: `map { … }`.
            return Err(self.error(ErrorKind::Unsupported, self.token.at, names::LAMBDA_REFUSED));
        }
        self.expect(b'(')?;
        self.call_items(Self::argument)
    }

    /// Arguments of a step or predicate. A bare word may name a `T` token, or a direction as in `mergeE()`. Whether the
    /// step takes a token there, `takes_token` decides from the word, its position and the number of arguments.
    /// Otherwise the word is a variable: `V(id)`, `V(from)`.
    pub(super) fn arguments_of(&mut self, takes_token: impl Fn(&str, usize, usize) -> bool) -> Result<Vec<Argument>> {
        let mut words: Vec<Option<SmolStr>> = Vec::new();
        if self.at(b'{') {
            return self.arguments();
        }
        self.expect(b'(')?;
        let mut arguments = self.call_items(|parser| {
            let bare = parser.token.kind == TokenKind::Name && (parser.ahead.is(b',') || parser.ahead.is(b')'));
            words.push((bare && names::is_token_word(parser.token.text)).then(|| parser.token.text.into()));
            parser.argument()
        })?;
        let count = arguments.len();
        for (at, word) in words.into_iter().enumerate() {
            if let Some(word) = word
                && !takes_token(&word, at, count)
            {
                arguments[at] = Argument::Parameter(word);
            }
        }
        Ok(arguments)
    }

    /// The arguments of a call up to its `)`. A comma may follow the last, as in the official grammar's lists of names.
    fn call_items<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.items_to(b')', true, item)
    }

    /// Items separated by commas up to the closing mark, which is consumed.
    fn items<T>(&mut self, close: u8, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.items_to(close, false, item)
    }

    /// Items separated by commas up to the closing mark, which is consumed. `may_trail`: a comma may follow the last.
    fn items_to<T>(
        &mut self,
        close: u8,
        may_trail: bool,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = Vec::new();
        if self.at(close) {
            self.advance()?;
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.at(b',') {
                self.advance()?;
                if may_trail && self.at(close) {
                    self.advance()?;
                    return Ok(items);
                }
            } else if self.at(close) {
                self.advance()?;
                return Ok(items);
            } else {
                return Err(self.expected(&format!("`{}` or `,`", char::from(close))));
            }
        }
    }

    /// An argument, counted as a level of nesting (WIRE-2).
    pub(super) fn argument(&mut self) -> Result<Argument> {
        if self.depth == NESTING_MAX {
            return Err(self.too_deep());
        }
        let siblings = std::mem::take(&mut self.height);
        self.depth += 1;
        let argument = self.argument_here()?;
        self.depth -= 1;
        self.height = siblings.max(self.height + 1);
        Ok(argument)
    }

    fn too_deep(&self) -> Error {
        let message = format!("arguments nest deeper than {NESTING_MAX} levels, the limit; pass lists as parameters");
        self.error(ErrorKind::Syntax, self.token.at, &message)
    }

    /// An argument whose level has been counted.
    fn argument_here(&mut self) -> Result<Argument> {
        let token = self.token;
        match token.kind {
            TokenKind::Integer => {
                let value = self.literal(literal::integer)?;
                if self.at_range() { self.integer_range(token, &value) } else { Ok(value.into()) }
            }
            TokenKind::Float => self.literal(literal::float).map(Argument::Value),
            TokenKind::String => {
                let value = self.literal(literal::string)?;
                if self.at_range() { self.string_range(token, &value) } else { Ok(Value::String(value).into()) }
            }
            TokenKind::Mark(b'[') => self.list_or_map(),
            TokenKind::Mark(b'{') => self.set(),
            TokenKind::Name => self.word(),
            _ => Err(self.expected("an argument")),
        }
    }

    /// Consumes a token, and makes a value of its text with `read`.
    fn literal<T>(&mut self, read: impl Fn(&str) -> Result<T, String>) -> Result<T> {
        let token = self.token;
        let value = read(token.text).map_err(|message| self.error(ErrorKind::Syntax, token.at, &message))?;
        self.advance()?;
        Ok(value)
    }

    /// Returns true at the `..` of a range.
    fn at_range(&self) -> bool {
        self.at(b'.') && self.ahead.is(b'.')
    }

    /// `1..5`, from its `..`. `start` is the token of the first element.
    fn integer_range(&mut self, start: Token<'a>, first: &Value) -> Result<Argument> {
        self.advance()?;
        self.advance()?;
        if self.token.kind != TokenKind::Integer {
            return Err(self.expected("the whole number the range ends with"));
        }
        let last = self.literal(literal::integer)?;
        let integer = mangrove_graph::numeric::integer;
        let (Some(from), Some(to)) = (integer(first), integer(&last)) else {
            return Err(self.error(ErrorKind::Syntax, start.at, "a range lies within 64 bits"));
        };
        self.spend_range(start, from.abs_diff(to).saturating_add(1))?;
        let narrow = matches!((first, &last), (Value::I32(_), Value::I32(_)));
        let value = |n: i64| match i32::try_from(n) {
            Ok(n) if narrow => Value::I32(n),
            _ => Value::I64(n),
        };
        let values = if from <= to { (from..=to).map(value).collect() } else { (to..=from).rev().map(value).collect() };
        Ok(Value::list(values).into())
    }

    /// `'a'..'e'`, from its `..`: strings that differ in their last character.
    fn string_range(&mut self, start: Token<'a>, first: &str) -> Result<Argument> {
        self.advance()?;
        self.advance()?;
        if self.token.kind != TokenKind::String {
            return Err(self.expected("the string the range ends with"));
        }
        let last = self.literal(literal::string)?;
        let split = |text: &str| text.char_indices().next_back().map(|(at, c)| (text[..at].to_owned(), c));
        let ((prefix, from), (_, to)) = match (split(first), split(&last)) {
            (Some(a), Some(b)) if a.0 == b.0 => (a, b),
            _ => {
                let message = "the strings of a range have the same characters but for the last";
                return Err(self.error(ErrorKind::Syntax, start.at, message));
            }
        };
        self.spend_range(start, u64::from(u32::from(from).abs_diff(u32::from(to))) + 1)?;
        let value = |c: char| Value::string(format!("{prefix}{c}"));
        let values = if from <= to { (from..=to).map(value).collect() } else { (to..=from).rev().map(value).collect() };
        Ok(Value::list(values).into())
    }

    /// Takes the elements of a range from the script's budget, before memory is allocated for them (WIRE-7).
    fn spend_range(&mut self, start: Token<'a>, size: u64) -> Result<()> {
        match self.range_budget.checked_sub(size) {
            Some(rest) => {
                self.range_budget = rest;
                Ok(())
            }
            None => {
                let message = format!(
                    "the ranges of a script may stand for {} elements together, and this one goes beyond; filter with `between` instead",
                    crate::limits::RANGE_SIZE_MAX
                );
                Err(self.error(ErrorKind::Syntax, start.at, &message))
            }
        }
    }

    /// `[a, b]`, `[k: v]` or `[:]`. The token after the first item decides which.
    fn list_or_map(&mut self) -> Result<Argument> {
        self.advance()?;
        if self.at(b':') {
            self.advance()?;
            self.expect(b']')?;
            return Ok(Value::map(Vec::new()).into());
        }
        if self.at(b']') {
            self.advance()?;
            return Ok(Value::list(Vec::new()).into());
        }
        if self.at(b'(') || self.at_bare_key() {
            return self.map_entries(None);
        }
        let first = self.argument()?;
        if self.at(b':') {
            return self.map_entries(Some(first));
        }
        let mut items = vec![first];
        if self.at(b',') {
            self.advance()?;
            items.extend(self.items(b']', Self::argument)?);
        } else if self.at(b']') {
            self.advance()?;
        } else {
            return Err(self.expected("`]`, `,` or `:`"));
        }
        Ok(collections::list_argument(items))
    }

    /// Returns true at a bare word before a colon, which is a string key: `[name: 'x']`, and `[id: 1]` too. A token as
    /// a key is written `[(T.id): 1]`.
    fn at_bare_key(&self) -> bool {
        self.token.kind == TokenKind::Name && self.ahead.is(b':')
    }

    /// The entries of a map up to its `]`. The first key may have been read already.
    fn map_entries(&mut self, mut first_key: Option<Argument>) -> Result<Argument> {
        let entries = self.items(b']', |parser| {
            let key = match first_key.take() {
                Some(key) => key,
                None => parser.map_key()?,
            };
            parser.expect(b':')?;
            Ok((key, parser.argument()?))
        })?;
        Ok(collections::map_argument(entries))
    }

    /// The key of a map entry, with or without parentheses.
    fn map_key(&mut self) -> Result<Argument> {
        if self.at_bare_key() {
            let name = self.name("a key")?;
            return Ok(Value::string(name.text).into());
        }
        if !self.at(b'(') {
            return self.argument();
        }
        self.advance()?;
        let key = self.argument()?;
        self.expect(b')')?;
        Ok(key)
    }

    /// `{a, b}`: a set of literals.
    fn set(&mut self) -> Result<Argument> {
        let open = self.token;
        self.advance()?;
        if self.token.kind == TokenKind::Name && self.token.text == "it" {
            return Err(self.error(ErrorKind::Unsupported, open.at, names::LAMBDA_REFUSED));
        }
        let items = self.items(b'}', Self::argument)?;
        match collections::literals(items) {
            Ok(values) => Ok(collections::set(values).into()),
            Err(_) => {
                let message = "a set holds literals only; pass a list instead, or the set as a parameter";
                Err(self.error(ErrorKind::Unsupported, open.at, message))
            }
        }
    }

    /// An argument that begins with a name. The meaning of a word is decided only here and in the functions that this
    /// one calls.
    fn word(&mut self) -> Result<Argument> {
        let word = self.name("an argument")?;
        if word.text == "new" && self.token.kind == TokenKind::Name {
            let class = self.name("a class")?;
            return self.construction(class);
        }
        if word.text == "__" {
            return self.nested(Bytecode::default());
        }
        if self.at(b'(') {
            return self.call(word);
        }
        if self.at(b'.') {
            return self.member(word);
        }
        Ok(match word.text {
            "null" => Value::Null.into(),
            "true" => Value::Bool(true).into(),
            "false" => Value::Bool(false).into(),
            "NaN" => Value::F64(f64::NAN).into(),
            "Infinity" => Value::F64(f64::INFINITY).into(),
            name => match names::bare_token(name) {
                Some(token) => token,
                None if names::is_strategy(name) => Argument::Strategy(name.into(), Vec::new()),
                None => Argument::Parameter(name.into()),
            },
        })
    }

    /// `name(…)`: a literal's constructor, a predicate, a strategy, or the first step of a nested traversal.
    fn call(&mut self, name: Token<'a>) -> Result<Argument> {
        match name.text {
            "datetime" | "DateTime" | "UUID" | "Duration" | "Binary" => self.typed_literal(name),
            "single" | "list" | "set" => self.cardinality_value(name),
            "Vertex" | "ReferenceVertex" | "Edge" | "ReferenceEdge" => self.construction(name),
            "not" => self.not(name),
            text if names::is_predicate(text) => self.predicate(name),
            text if names::is_strategy(text) => self.construction(name),
            text if names::is_step(text) => {
                let first = self.instruction(name)?;
                self.nested(Bytecode { source: Vec::new(), steps: vec![first] })
            }
            "Lambda" => Err(self.error(ErrorKind::Unsupported, name.at, names::LAMBDA_REFUSED)),
            text => {
                let message = format!("unknown step or predicate `{text}`{}", names::suggest_call(text));
                Err(self.error(ErrorKind::Unsupported, name.at, &message))
            }
        }
    }

    /// `Qualifier.name`, from its `.`: a predicate, an enum's token or a constant.
    fn member(&mut self, qualifier: Token<'a>) -> Result<Argument> {
        if qualifier.text == "it" || qualifier.text == "Lambda" {
            return Err(self.error(ErrorKind::Unsupported, qualifier.at, names::LAMBDA_REFUSED));
        }
        if self.ahead.is(b'.') {
            return Err(self.expected("`)` or `,`"));
        }
        self.advance()?;
        let name = self.name("a name")?;
        match qualifier.text {
            "P" | "TextP" if names::has_predicate(qualifier.text, name.text) => return self.predicate(name),
            "Cardinality" if self.at(b'(') => return self.cardinality_value(name),
            _ => {}
        }
        let message = match names::qualified(qualifier.text, name.text) {
            Some(Some(argument)) => return Ok(argument),
            Some(None) => {
                let suggestion = names::suggest_member(qualifier.text, name.text);
                format!("`{}` has no `{}`{suggestion}", qualifier.text, name.text)
            }
            None if self.at(b'(') => {
                "a traversal that runs to make an argument is not supported; write a nested one, `__.V()`".to_owned()
            }
            None => {
                let suggestion = names::suggest_qualifier(qualifier.text);
                format!("`{}` is no enum or class with members{suggestion}", qualifier.text)
            }
        };
        Err(self.error(ErrorKind::Unsupported, qualifier.at, &message))
    }

    /// The rest of a nested traversal.
    fn nested(&mut self, mut bytecode: Bytecode) -> Result<Argument> {
        self.steps(&mut bytecode)?;
        Ok(Argument::Traversal(bytecode))
    }

    /// `not(…)`, from its `(`. Of a predicate it is a predicate, of any other argument the step.
    fn not(&mut self, name: Token<'a>) -> Result<Argument> {
        let mut instruction = self.instruction(name)?;
        if matches!(instruction.arguments.as_slice(), [Argument::Predicate(_)])
            && let Some(Argument::Predicate(predicate)) = instruction.arguments.pop()
        {
            return self.predicate_chain(predicate.negate());
        }
        self.nested(Bytecode { source: Vec::new(), steps: vec![instruction] })
    }

    /// The predicate of a name, from its `(`, with the predicates chained to it.
    fn predicate(&mut self, name: Token<'a>) -> Result<Argument> {
        let arguments = self.arguments_of(|_, _, _| false)?;
        let predicate = Predicate::from_name(name.text, arguments)
            .map_err(|error| self.error(error.kind(), name.at, error.message()))?;
        self.predicate_chain(predicate)
    }

    /// The `.and(p)`, `.or(p)` and `.negate()` after a predicate. A call that does not extend the same `and` or `or`
    /// nests the result, so it counts as a level below this argument (WIRE-2).
    fn predicate_chain(&mut self, mut predicate: Predicate) -> Result<Argument> {
        while self.at(b'.') {
            self.advance()?;
            let name = self.name("`and`, `or` or `negate`")?;
            let mut arguments = self.arguments()?;
            let operand = match (arguments.pop(), arguments.len()) {
                (Some(Argument::Predicate(operand)), 0) => Some(operand),
                (None, 0) => None,
                _ => {
                    let message = format!("`{}` after a predicate takes one predicate", name.text);
                    return Err(self.error(ErrorKind::InvalidArgument, name.at, &message));
                }
            };
            let flat = matches!((&predicate, name.text), (Predicate::And(_), "and") | (Predicate::Or(_), "or"));
            self.height += usize::from(!flat);
            if self.depth + self.height > NESTING_MAX {
                return Err(self.too_deep());
            }
            predicate = match (name.text, operand) {
                ("and", Some(operand)) => predicate.and(operand),
                ("or", Some(operand)) => predicate.or(operand),
                ("negate", None) => predicate.negate(),
                (text, _) => {
                    let message = format!("`{text}` cannot follow a predicate: `and(p)`, `or(p)` and `negate()` can");
                    return Err(self.error(ErrorKind::Unsupported, name.at, &message));
                }
            };
        }
        Ok(Argument::Predicate(predicate))
    }

    /// A value with its cardinality, `list(v)`, from its `(`.
    fn cardinality_value(&mut self, name: Token<'a>) -> Result<Argument> {
        let mut arguments = self.arguments()?;
        match (Cardinality::from_name(name.text), arguments.pop(), arguments.len()) {
            (Some(cardinality), Some(value), 0) => Ok(Argument::CardinalityValue(cardinality, Box::new(value))),
            (Some(_), ..) => {
                let message = format!("the cardinality `{}` takes one value", name.text);
                Err(self.error(ErrorKind::InvalidArgument, name.at, &message))
            }
            (None, ..) => {
                let suggestion = names::suggest_member("Cardinality", name.text);
                let message = format!("`Cardinality` has no `{}`{suggestion}", name.text);
                Err(self.error(ErrorKind::Unsupported, name.at, &message))
            }
        }
    }

    /// `datetime('…')`, `UUID()` and the other literals that look like calls, from the `(`.
    fn typed_literal(&mut self, name: Token<'a>) -> Result<Argument> {
        let arguments = self.arguments()?;
        let text = match arguments.as_slice() {
            [] => None,
            [Argument::Value(Value::String(text))] => Some(text.as_str()),
            _ => {
                let message = format!("`{}` takes one string literal", name.text);
                return Err(self.error(ErrorKind::InvalidArgument, name.at, &message));
            }
        };
        let value = match (name.text, text) {
            ("datetime" | "DateTime", Some(text)) => DateTime::parse(text).map(Value::DateTime),
            ("datetime" | "DateTime", None) => {
                // The parser has no clock (WIRE-8).
                self.volatile = true;
                self.options.now.map(Value::DateTime)
            }
            ("UUID", Some(text)) => Uuid::try_parse(text).ok().map(Value::Uuid),
            ("UUID", None) => self.fresh_uuid().map(Value::Uuid),
            ("Duration", Some(text)) => literal::duration(text).map(Value::Duration),
            (_, Some(text)) => literal::bytes(text).map(|bytes| Value::Bytes(bytes.into())),
            (_, None) => None,
        };
        value.map(Argument::Value).ok_or_else(|| {
            let message = match (name.text, text) {
                ("datetime" | "DateTime", Some(text)) => {
                    format!("`{text}` is no date; write ISO 8601, such as 2020-01-31 or 2020-01-31T12:00:00Z")
                }
                ("UUID", Some(text)) => {
                    format!("`{text}` is no UUID; write 8-4-4-4-12 hexadecimal digits")
                }
                ("Duration", Some(text)) => format!("`{text}` is no duration; write seconds, such as PT1.5S"),
                ("Binary", Some(_)) => "bytes are written as pairs of hexadecimal digits".to_owned(),
                (text, _) => format!("`{text}` needs its text here"),
            };
            self.error(ErrorKind::InvalidArgument, name.at, &message)
        })
    }

    /// The next random UUID of the script; `None` if the options have none.
    fn fresh_uuid(&mut self) -> Option<Uuid> {
        let base = self.options.fresh_uuid?;
        self.volatile = true;
        let uuid = Uuid::from_u128(base.as_u128().wrapping_add(self.uuids_made));
        self.uuids_made += 1;
        Some(uuid)
    }

    /// `Vertex(id, label)` or `SomeStrategy(key: value, …)`, from its `(`; a `new` before it has been consumed, too.
    fn construction(&mut self, class: Token<'a>) -> Result<Argument> {
        match class.text {
            "Vertex" | "ReferenceVertex" => self.reference(class).map(Argument::Vertex),
            "Edge" | "ReferenceEdge" => self.reference(class).map(Argument::Edge),
            name if names::is_strategy(name) => {
                let configuration = match self.at(b'(') {
                    true => {
                        self.advance()?;
                        self.items(b')', Self::configuration)?
                    }
                    false => Vec::new(),
                };
                Ok(Argument::Strategy(name.into(), configuration))
            }
            name => {
                let message = format!(
                    "`{name}` cannot be made here; strategies and elements can, such as `new ReadOnlyStrategy()`"
                );
                Err(self.error(ErrorKind::Unsupported, class.at, &message))
            }
        }
    }

    /// The id of a reference to an element. A label may follow, and is ignored.
    fn reference(&mut self, class: Token<'a>) -> Result<Value> {
        let arguments = self.arguments()?;
        match arguments.as_slice() {
            [Argument::Value(id)] | [Argument::Value(id), _] => Ok(id.clone()),
            _ => {
                let message = format!("`{}` takes an id and optionally a label", class.text);
                Err(self.error(ErrorKind::InvalidArgument, class.at, &message))
            }
        }
    }

    /// `key: value`, an option of a strategy.
    fn configuration(&mut self) -> Result<(SmolStr, Argument)> {
        let key = match self.token.kind {
            TokenKind::String => self.literal(literal::string)?,
            _ => SmolStr::new(self.name("the name of an option")?.text),
        };
        self.expect(b':')?;
        Ok((key, self.argument()?))
    }
}
