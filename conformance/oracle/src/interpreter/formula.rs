//! `math()` and `format()`.

use mangrove_graph::Value;
use mangrove_graph::numeric::to_f64;
use smol_str::SmolStr;

use super::by::round_robin;
use super::convert::text_of;
use super::step::Step;
use super::{Interpreter, Outcome, Traverser, unsupported, wrong};

impl Interpreter<'_> {
    /// `math("…")`: each variable takes the next `by`, in the order of their first occurrences.
    pub(crate) fn math(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let Value::String(text) = step.value(0)? else { return unsupported("math() without a text") };
        let tokens = tokens(text)?;
        let mut variables: Vec<(SmolStr, f64)> = Vec::new();
        for token in &tokens {
            let Token::Word(name) = token else { continue };
            if is_function(name) || variables.iter().any(|(known, _)| known == name) {
                continue;
            }
            let object = if name == "_" { Some(t.value.clone()) } else { self.scope(name, t) };
            let Some(object) = object else { return Ok(None) };
            let Some(value) = self.by(round_robin(&step.by, variables.len()), &t.holding(object))? else {
                return Ok(None);
            };
            match to_f64(&value) {
                Some(number) => variables.push((name.clone(), number)),
                None => return wrong(format!("math() of a {}", value.type_name())),
            }
        }
        let mut formula = Formula { tokens: &tokens, at: 0, variables: &variables };
        let result = formula.sum()?;
        if formula.at < tokens.len() {
            unsupported(format!("the formula {text}"))
        } else {
            Ok(Some(Value::F64(result)))
        }
    }

    /// `format("… %{name} … %{_} …")`: a property of the element, else the value that the name refers to; `_` takes the
    /// next `by`.
    pub(crate) fn format(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let Value::String(template) = step.value(0)? else { return unsupported("format() without a text") };
        let (mut made, mut rest, mut by_count) = (String::new(), template.as_str(), 0);
        while let Some((before, behind)) = rest.split_once("%{") {
            let Some((name, behind)) = behind.split_once('}') else { return unsupported("an open variable") };
            rest = behind;
            made.push_str(before);
            let value = if name == "_" {
                by_count += 1;
                self.by(round_robin(&step.by, by_count - 1), t)?
            } else {
                let own = match t.value {
                    Value::Vertex(_) | Value::Edge(_) => self.value_of_key(name, &t.value)?,
                    _ => None,
                };
                own.or_else(|| self.scope(name, t))
            };
            match value {
                Some(Value::Null) => return unsupported("a null in format()"),
                Some(value) => made.push_str(&text_of(&value)?),
                None => return Ok(None),
            }
        }
        Ok(Some(Value::from(made + rest)))
    }
}

#[derive(Debug, PartialEq)]
enum Token {
    Number(f64),
    Word(SmolStr),
    Sign(char),
}

fn is_function(name: &str) -> bool {
    matches!(name, "abs" | "sqrt" | "floor" | "ceil" | "signum")
}

fn tokens(text: &str) -> Outcome<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let belongs: fn(char) -> bool = match first {
            '0'..='9' => |c| c.is_ascii_digit() || c == '.',
            'a'..='z' | '_' => |c| c.is_ascii_lowercase() || c == '_',
            _ => |_| false,
        };
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len()).max(1);
        let (token, behind) = rest.split_at(length);
        tokens.push(match (first, token.parse()) {
            ('0'..='9', Ok(number)) => Token::Number(number),
            ('a'..='z' | '_', _) => Token::Word(token.into()),
            ('+' | '-' | '*' | '/' | '^' | '(' | ')', _) => Token::Sign(first),
            _ => return unsupported(format!("{token} in a formula")),
        });
        rest = behind.trim_start();
    }
    Ok(tokens)
}

/// Parses by recursive descent, and evaluates at the same time.
struct Formula<'a> {
    tokens: &'a [Token],
    at: usize,
    variables: &'a [(SmolStr, f64)],
}

impl Formula<'_> {
    fn takes(&mut self, sign: char) -> bool {
        let found = self.tokens.get(self.at) == Some(&Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn sum(&mut self) -> Outcome<f64> {
        let mut result = self.product()?;
        loop {
            if self.takes('+') {
                result += self.product()?;
            } else if self.takes('-') {
                result -= self.product()?;
            } else {
                return Ok(result);
            }
        }
    }

    fn product(&mut self) -> Outcome<f64> {
        let mut result = self.power()?;
        loop {
            if self.takes('*') {
                result *= self.power()?;
            } else if self.takes('/') {
                let divisor = self.power()?;
                if divisor == 0.0 {
                    return wrong("division by zero");
                }
                result /= divisor;
            } else {
                return Ok(result);
            }
        }
    }

    fn power(&mut self) -> Outcome<f64> {
        let base = self.operand()?;
        if self.takes('^') { Ok(base.powf(self.power()?)) } else { Ok(base) }
    }

    fn operand(&mut self) -> Outcome<f64> {
        if self.takes('(') {
            let inner = self.sum()?;
            return if self.takes(')') { Ok(inner) } else { unsupported("an open parenthesis in a formula") };
        }
        let token = self.tokens.get(self.at);
        self.at += 1;
        match token {
            Some(Token::Number(number)) => Ok(*number),
            Some(Token::Word(name)) if is_function(name) => {
                let of = self.operand()?;
                Ok(match name.as_str() {
                    "abs" => of.abs(),
                    "sqrt" => of.sqrt(),
                    "floor" => of.floor(),
                    "ceil" => of.ceil(),
                    _ => of.signum(),
                })
            }
            Some(Token::Word(name)) => match self.variables.iter().find(|(known, _)| known == name) {
                Some((_, number)) => Ok(*number),
                None => unsupported(format!("the variable {name} in a formula")),
            },
            other => unsupported(format!("{other:?} in a formula")),
        }
    }
}
