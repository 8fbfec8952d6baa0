//! The expressions of `math()`, and the templates of `format()`.
//!
//! An expression is parsed once, when the traversal is compiled, and evaluated over doubles. Its variables are numbered
//! in the order in which they first occur, in which `by()` rotates over them, too; `_` is the object itself. Operators
//! from loose to tight: `+ -`, then `* / %`, a sign, `^` (right-associative), a function of one operand with or without
//! parentheses. Expressions are evaluated by recursion, so their depth is bounded.

use super::operand::Name;

/// The most levels of an expression.
const NESTING_MAX: usize = 64;

/// The most operands of an expression. `a + b + c` is `(a + b) + c`: each operand adds a level to the tree.
const OPERANDS_MAX: usize = 1000;

/// An expression over numbered variables.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number.
    Number(f64),
    /// A variable, by its number.
    Variable(usize),
    /// A function of one operand.
    Unary(Unary, Box<Expression>),
    /// An operator between two operands.
    Binary(Binary, Box<Expression>, Box<Expression>),
}

/// Functions of one operand, and the minus sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of mathematics")]
pub enum Unary {
    Negate,
    Abs,
    Acos,
    Asin,
    Atan,
    Cbrt,
    Ceil,
    Cos,
    Cosh,
    Exp,
    Expm1,
    Floor,
    Log,
    Log10,
    Log1p,
    Log2,
    Signum,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
}

/// Operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of mathematics")]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

const FUNCTIONS: &[(&str, Unary)] = &[
    ("abs", Unary::Abs),
    ("acos", Unary::Acos),
    ("asin", Unary::Asin),
    ("atan", Unary::Atan),
    ("cbrt", Unary::Cbrt),
    ("ceil", Unary::Ceil),
    ("cos", Unary::Cos),
    ("cosh", Unary::Cosh),
    ("exp", Unary::Exp),
    ("expm1", Unary::Expm1),
    ("floor", Unary::Floor),
    ("log", Unary::Log),
    ("log10", Unary::Log10),
    ("log1p", Unary::Log1p),
    ("log2", Unary::Log2),
    ("signum", Unary::Signum),
    ("sin", Unary::Sin),
    ("sinh", Unary::Sinh),
    ("sqrt", Unary::Sqrt),
    ("tan", Unary::Tan),
    ("tanh", Unary::Tanh),
];

impl Expression {
    /// The value of the expression for these values of its variables; `None` for a division by zero.
    pub fn value(&self, variables: &[f64]) -> Option<f64> {
        Some(match self {
            Expression::Number(number) => *number,
            Expression::Variable(variable) => variables.get(*variable).copied().unwrap_or(f64::NAN),
            Expression::Unary(function, operand) => function.of(operand.value(variables)?),
            Expression::Binary(operator, left, right) => {
                let (left, right) = (left.value(variables)?, right.value(variables)?);
                if right == 0.0 && matches!(operator, Binary::Divide | Binary::Remainder) {
                    return None;
                }
                operator.of(left, right)
            }
        })
    }
}

impl Unary {
    fn of(self, x: f64) -> f64 {
        match self {
            Unary::Negate => -x,
            Unary::Abs => x.abs(),
            Unary::Acos => x.acos(),
            Unary::Asin => x.asin(),
            Unary::Atan => x.atan(),
            Unary::Cbrt => x.cbrt(),
            Unary::Ceil => x.ceil(),
            Unary::Cos => x.cos(),
            Unary::Cosh => x.cosh(),
            Unary::Exp => x.exp(),
            Unary::Expm1 => x.exp_m1(),
            Unary::Floor => x.floor(),
            Unary::Log => x.ln(),
            Unary::Log10 => x.log10(),
            Unary::Log1p => x.ln_1p(),
            // As the reference computes it in Java, to the last digit.
            Unary::Log2 => x.ln() / std::f64::consts::LN_2,
            Unary::Signum => {
                if x == 0.0 {
                    0.0
                } else {
                    x.signum()
                }
            }
            Unary::Sin => x.sin(),
            Unary::Sinh => x.sinh(),
            Unary::Sqrt => x.sqrt(),
            Unary::Tan => x.tan(),
            Unary::Tanh => x.tanh(),
        }
    }
}

impl Binary {
    fn of(self, x: f64, y: f64) -> f64 {
        match self {
            Binary::Add => x + y,
            Binary::Subtract => x - y,
            Binary::Multiply => x * y,
            Binary::Divide => x / y,
            Binary::Remainder => x % y,
            Binary::Power => x.powf(y),
        }
    }
}

/// Parses an expression. Returns it with the names of its variables, or the reason why the text is none.
pub fn parse(text: &str) -> Result<(Expression, Vec<Name>), String> {
    let mut parser = Parser { rest: text, variables: Vec::new(), operands: 0 };
    let expression = parser.sum(0)?;
    match parser.peek() {
        None => Ok((expression, parser.variables)),
        Some(more) => Err(format!("an operator is expected before `{more}`")),
    }
}

struct Parser<'a> {
    rest: &'a str,
    variables: Vec<Name>,
    /// The number of operands so far.
    operands: usize,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, character: char) -> bool {
        let found = self.peek() == Some(character);
        if found {
            self.rest = &self.rest[character.len_utf8()..];
        }
        found
    }

    fn sum(&mut self, depth: usize) -> Result<Expression, String> {
        let mut left = self.product(depth)?;
        loop {
            let operator = match self.peek() {
                Some('+') => Binary::Add,
                Some('-') => Binary::Subtract,
                _ => return Ok(left),
            };
            self.rest = &self.rest[1..];
            left = Expression::Binary(operator, Box::new(left), Box::new(self.product(depth)?));
        }
    }

    fn product(&mut self, depth: usize) -> Result<Expression, String> {
        let mut left = self.signed(depth)?;
        loop {
            let operator = match self.peek() {
                Some('*') => Binary::Multiply,
                Some('/') => Binary::Divide,
                Some('%') => Binary::Remainder,
                _ => return Ok(left),
            };
            self.rest = &self.rest[1..];
            left = Expression::Binary(operator, Box::new(left), Box::new(self.signed(depth)?));
        }
    }

    fn signed(&mut self, depth: usize) -> Result<Expression, String> {
        if depth > NESTING_MAX {
            return Err(format!("it nests deeper than {NESTING_MAX}"));
        }
        if self.take('-') {
            return Ok(Expression::Unary(Unary::Negate, Box::new(self.signed(depth + 1)?)));
        }
        if self.take('+') {
            return self.signed(depth + 1);
        }
        let base = self.operand(depth)?;
        if self.take('^') {
            return Ok(Expression::Binary(Binary::Power, Box::new(base), Box::new(self.signed(depth + 1)?)));
        }
        Ok(base)
    }

    fn operand(&mut self, depth: usize) -> Result<Expression, String> {
        self.operands += 1;
        if self.operands > OPERANDS_MAX {
            return Err(format!("it has more than {OPERANDS_MAX} operands"));
        }
        match self.peek() {
            None => Err("it ends where a number, a variable or a function is expected".to_owned()),
            Some('(') => {
                self.rest = &self.rest[1..];
                let inner = self.sum(depth + 1)?;
                if self.take(')') { Ok(inner) } else { Err("a `)` is missing".to_owned()) }
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.word(depth),
            Some(other) => Err(format!("`{other}` is no part of an expression")),
        }
    }

    fn number(&mut self) -> Result<Expression, String> {
        let bytes = self.rest.as_bytes();
        let mut end = 0;
        while end < bytes.len() {
            let exponent = end > 0 && matches!(bytes[end - 1], b'e' | b'E') && matches!(bytes[end], b'+' | b'-');
            if !(bytes[end].is_ascii_digit() || matches!(bytes[end], b'.' | b'e' | b'E') || exponent) {
                break;
            }
            end += 1;
        }
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text.parse().map(Expression::Number).map_err(|_| format!("`{text}` is no number"))
    }

    fn word(&mut self, depth: usize) -> Result<Expression, String> {
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if let Some((_, function)) = FUNCTIONS.iter().find(|(name, _)| *name == word) {
            if depth > NESTING_MAX {
                return Err(format!("it nests deeper than {NESTING_MAX}"));
            }
            return Ok(Expression::Unary(*function, Box::new(self.operand(depth + 1)?)));
        }
        let known = self.variables.iter().position(|name| name == word);
        Ok(Expression::Variable(known.unwrap_or_else(|| {
            self.variables.push(word.into());
            self.variables.len() - 1
        })))
    }
}

/// A part of a template of `format()`.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text as it is.
    Text(Name),
    /// `%{name}`: a property of the element, or else the value of the name.
    Name(Name),
    /// `%{_}`: the value of the next `by()`.
    By,
}

impl Part {
    /// The name whose value replaces this part.
    pub fn name(&self) -> Option<&Name> {
        match self {
            Part::Name(name) => Some(name),
            Part::Text(_) | Part::By => None,
        }
    }
}

/// The parts of a template. A `%{` without a `}` is text.
pub fn template(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("%{") {
        let Some((name, remaining)) = after.split_once('}') else { break };
        if !before.is_empty() {
            parts.push(Part::Text(before.into()));
        }
        parts.push(if name == "_" { Part::By } else { Part::Name(name.into()) });
        rest = remaining;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.into()));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, variables: &[f64], expected: f64) {
        let (expression, _) = parse(text).unwrap();
        let value = expression.value(variables).unwrap();
        assert!((value - expected).abs() < 1e-12, "{text} is {value}, not {expected}");
    }

    #[test]
    fn operators_bind_as_in_mathematics() {
        check("1 + 2 * 3", &[], 7.0);
        check("(1 + 2) * 3", &[], 9.0);
        check("2 ^ 3 ^ 2", &[], 512.0);
        check("-2 ^ 2", &[], -4.0);
        check("0-_", &[5.0], -5.0);
        check("7 % 4 - 1", &[], 2.0);
        check("sin _ + 1", &[0.0], 1.0);
        check("sqrt(a * a) / 2e0", &[3.0], 1.5);
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        for text in ["1 / 0", "1 % 0", "2 * (3 / (1 - 1))"] {
            assert_eq!(parse(text).unwrap().0.value(&[]), None, "{text}");
        }
    }

    #[test]
    fn variables_are_numbered_as_they_come() {
        let (_, names) = parse("b + a * b + _").unwrap();
        assert_eq!(names, ["b", "a", "_"]);
    }

    #[test]
    fn what_is_no_expression_is_refused_with_a_reason() {
        for (text, reason) in
            [("1 +", "ends"), ("(1", "`)`"), ("1 2", "operator"), ("#", "no part"), ("1.2.3", "number")]
        {
            assert!(parse(text).unwrap_err().contains(reason), "{text}");
        }
        assert!(parse(&"(".repeat(10_000)).is_err());
        assert!(parse(&"-".repeat(10_000)).is_err());
        assert!(parse(&"sin ".repeat(10_000)).is_err());
    }

    #[test]
    fn templates_are_cut_at_their_variables() {
        assert_eq!(
            template("%{name} is %{_}!"),
            [Part::Name("name".into()), Part::Text(" is ".into()), Part::By, Part::Text("!".into())]
        );
        assert_eq!(template("50%{"), [Part::Text("50%{".into())]);
    }
}
