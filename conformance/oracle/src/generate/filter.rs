//! Filters, orders and cuts.

use mangrove_graph::{Token, Value};
use mangrove_gremlin::{Argument, Comparison, Instruction, Order, Predicate, TextOperation};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, ChainPosition, Generator};
use super::schema::{NAMES, ObjectKind, value};
use crate::script::{int, nested, step, text, token};

impl Generator {
    pub fn is_filter(&mut self, chain: &mut Chain) {
        let kind = chain.state.kind.clone();
        if kind == ObjectKind::Mixed && self.rng.random_bool(0.3) {
            let name = *["NUMBER", "STRING", "INT", "NULL", "BOOLEAN"].choose(&mut self.rng).expect("not empty");
            let of = Predicate::TypeOf(Box::new(Argument::Type(name.into())));
            return chain.push("is", [Argument::Predicate(of)]);
        }
        if kind.is_homogeneous() || kind == ObjectKind::Mixed {
            let test = self.test(&kind);
            chain.push("is", [test]);
        }
    }

    /// A literal or a predicate for values of a scalar kind.
    pub fn test(&mut self, kind: &ObjectKind) -> Argument {
        if self.rng.random_bool(0.2) {
            return Argument::Value(value(&mut self.rng, kind));
        }
        Argument::Predicate(self.predicate(kind, true))
    }

    /// `P.not(P.not(p))` is never generated: the parser reads it as `p`.
    fn predicate(&mut self, kind: &ObjectKind, may_negate: bool) -> Predicate {
        use Comparison::{Eq, Gt, Gte, Lt, Lte, Neq};
        match self.rng.random_range(0..12) {
            0..=4 => {
                let comparison = *[Eq, Neq, Lt, Lte, Gt, Gte].choose(&mut self.rng).expect("not empty");
                Predicate::Compare(comparison, Box::new(self.operand(kind)))
            }
            5 => Predicate::Within((0..self.rng.random_range(0..4)).map(|_| self.operand(kind)).collect()),
            6 => Predicate::Without((0..self.rng.random_range(0..4)).map(|_| self.operand(kind)).collect()),
            7 => {
                let bounds = [(Gte, Lt), (Gt, Lt)].choose(&mut self.rng).copied().expect("not empty");
                let (low, high) = (Box::new(self.operand(kind)), Box::new(self.operand(kind)));
                Predicate::And(vec![Predicate::Compare(bounds.0, low), Predicate::Compare(bounds.1, high)])
            }
            8 => {
                let (low, high) = (Box::new(self.operand(kind)), Box::new(self.operand(kind)));
                Predicate::Or(vec![Predicate::Compare(Lt, low), Predicate::Compare(Gt, high)])
            }
            9 if may_negate => Predicate::Not(Box::new(self.predicate(kind, false))),
            _ if *kind == ObjectKind::Text => self.text_predicate(),
            _ => Predicate::Compare(Gte, Box::new(self.operand(kind))),
        }
    }

    fn operand(&mut self, kind: &ObjectKind) -> Argument {
        Argument::Value(value(&mut self.rng, kind))
    }

    fn text_predicate(&mut self) -> Predicate {
        let name = *NAMES.choose(&mut self.rng).expect("not empty");
        let cut = self.rng.random_range(1..=name.len().min(3));
        let (operation, part) = match self.rng.random_range(0..4) {
            0 => (TextOperation::StartingWith, name[..cut].to_owned()),
            1 => (TextOperation::EndingWith, name[name.len() - cut..].to_owned()),
            2 => (TextOperation::Containing, name[..cut].to_owned()),
            _ => (TextOperation::Regex, format!("^{}.*a$", &name[..1])),
        };
        Predicate::Text(operation, Box::new(text(&part)))
    }

    pub fn has(&mut self, chain: &mut Chain) {
        let kind = chain.state.kind.clone();
        let key = self.key(&kind);
        match self.rng.random_range(0..9) {
            0 => chain.push("has", [text(key.name)]),
            1 => chain.push("hasNot", [text(key.name)]),
            2 => {
                let labels = (0..self.rng.random_range(1..3)).map(|_| text(self.label(&kind))).collect();
                chain.steps.push(Instruction::new("hasLabel", labels));
            }
            3 => {
                let (label, test) = (text(self.label(&kind)), self.test(&key.kind));
                chain.push("has", [label, text(key.name), test]);
            }
            4 => {
                let ids = (0..self.rng.random_range(1..4))
                    .map(|_| if kind == ObjectKind::Vertex { self.vertex_id() } else { self.edge_id() })
                    .collect();
                chain.steps.push(Instruction::new("hasId", ids));
            }
            5 => {
                let test = Argument::Predicate(self.predicate(&ObjectKind::Int(32), true));
                chain.push("has", [token(Token::Id), test]);
            }
            _ => {
                let test = self.test(&key.kind);
                chain.push("has", [text(key.name), test]);
            }
        }
    }

    /// `where`, `filter` and `not` with a child.
    pub fn where_child(&mut self, chain: &mut Chain) {
        let name = *["where", "filter", "not"].choose(&mut self.rng).expect("not empty");
        let child = self.child(&chain.state, ChainPosition::Local, 2);
        chain.push(name, [nested(child.steps)]);
    }

    /// Filters by numbers of edges.
    pub fn test_degrees(&mut self, chain: &mut Chain) {
        let name = *["where", "filter", "not", "and", "or"].choose(&mut self.rng).expect("not empty");
        let count = if matches!(name, "and" | "or") { self.rng.random_range(1..4) } else { 1 };
        let operands = (0..count).map(|_| nested(self.degree_test())).collect();
        chain.steps.push(Instruction::new(name, operands));
    }

    /// A hop, mostly counted and tested.
    fn degree_test(&mut self) -> Vec<Instruction> {
        let name = *["out", "in", "both", "outE", "inE", "bothE"].choose(&mut self.rng).expect("not empty");
        let labels = (0..self.rng.random_range(0..3)).map(|_| text(self.edge_label())).collect();
        let mut steps = vec![Instruction::new(name, labels)];
        match self.rng.random_range(0..8) {
            0 => steps = vec![step("optional", [nested(steps)])],
            1 => steps.push(step("dedup", [])),
            _ => {}
        }
        if self.rng.random_bool(0.8) {
            let test = self.test_of_count();
            steps.extend([step("count", []), step("is", [test])]);
        }
        steps
    }

    /// A test that a small count may pass or fail.
    fn test_of_count(&mut self) -> Argument {
        use Comparison::{Eq, Gt, Gte, Lt, Lte, Neq};
        let mut number = || {
            let number: i32 = self.rng.random_range(0..4);
            match self.rng.random_range(0..8) {
                0 => Argument::Value(Value::I64(i64::from(number))),
                1 => Argument::Value(Value::F64(f64::from(number) + 0.5)),
                _ => int(number),
            }
        };
        let (a, b) = (number(), number());
        let compare = |comparison, operand| Predicate::Compare(comparison, Box::new(operand));
        Argument::Predicate(match self.rng.random_range(0..9) {
            0 => return a,
            1 => Predicate::Within(vec![a, b]),
            2 => Predicate::Without(vec![a, b]),
            3 => Predicate::And(vec![compare(Gte, a), compare(Lt, b)]),
            4 => Predicate::Or(vec![compare(Lt, a), compare(Gt, b)]),
            5 => Predicate::Not(Box::new(compare(Gt, a))),
            _ => compare(*[Eq, Neq, Lt, Lte, Gt, Gte].choose(&mut self.rng).expect("not empty"), a),
        })
    }

    pub fn connective(&mut self, chain: &mut Chain) {
        if chain.state.kind.is_element() && self.rng.random_bool(0.2) {
            return self.infix(chain);
        }
        let name = if self.rng.random_bool(0.5) { "and" } else { "or" };
        let children = (0..2).map(|_| nested(self.child(&chain.state, ChainPosition::Local, 1).steps)).collect();
        chain.steps.push(Instruction::new(name, children));
    }

    /// `and()` and `or()` between filters (infix form).
    fn infix(&mut self, chain: &mut Chain) {
        let mut inner = Chain { steps: Vec::new(), state: chain.state.clone() };
        self.has(&mut inner);
        for _ in 0..self.rng.random_range(1..3) {
            inner.push(if self.rng.random_bool(0.5) { "and" } else { "or" }, []);
            self.has(&mut inner);
        }
        chain.push("where", [nested(inner.steps)]);
    }

    /// `where(P)` with a label or a side effect, and `where(as("a")…)`.
    pub fn where_label(&mut self, chain: &mut Chain) {
        let kind = chain.state.kind.clone();
        if !kind.is_plain() {
            return;
        }
        if let Some((name, _)) = chain.state.side_effects.iter().find(|(_, k)| *k == kind)
            && self.rng.random_bool(0.5)
        {
            let operands = vec![text(name)];
            let within = self.rng.random_bool(0.5);
            let p = if within { Predicate::Within(operands) } else { Predicate::Without(operands) };
            return chain.push("where", [Argument::Predicate(p)]);
        }
        let Some((name, _)) = chain.state.labels.iter().find(|(_, k)| *k == kind).cloned() else { return };
        // A label is not a function of the value: which values remain is determined, but not their order.
        chain.state.ordered = false;
        match self.rng.random_range(0..3) {
            0 if kind == ObjectKind::Vertex => {
                let label = text(self.edge_label());
                chain.push("where", [nested([step("both", [label]), step("as", [text(name)])])]);
            }
            1 if kind == ObjectKind::Vertex => {
                let (label, p) = (text(self.edge_label()), self.equality(name));
                chain.push("where", [nested([step("as", [text(name)]), step("out", [label])])]);
                chain.push("where", [p]);
            }
            _ => {
                let p = self.equality(name);
                chain.push("where", [p]);
                if kind.is_element() && self.rng.random_bool(0.4) {
                    let (arguments, _) = self.by(&kind);
                    chain.steps.push(Instruction::new("by", arguments));
                }
            }
        }
    }

    fn equality(&mut self, label: &str) -> Argument {
        let comparison = if self.rng.random_bool(0.5) { Comparison::Eq } else { Comparison::Neq };
        Argument::Predicate(Predicate::Compare(comparison, Box::new(text(label))))
    }

    pub fn dedup(&mut self, chain: &mut Chain) {
        let kind = chain.state.kind.clone();
        if !kind.is_plain() || chain.state.position == ChainPosition::Body || !chain.state.may_gather {
            return;
        }
        let may_choose = chain.state.ordered || chain.state.position == ChainPosition::Top;
        if kind.is_element() && may_choose && self.rng.random_bool(0.3) {
            let (arguments, _) = self.by(&kind);
            chain.push("dedup", []);
            chain.steps.push(Instruction::new("by", arguments));
            chain.loses_history();
            if !chain.state.ordered {
                self.only_countable(chain);
            }
            return;
        }
        chain.push("dedup", []);
        chain.loses_history();
    }

    /// Which objects remain is not determined, but their number is.
    fn only_countable(&mut self, chain: &mut Chain) {
        if self.rng.random_bool(0.5) {
            chain.push("count", []);
            chain.reduces(ObjectKind::Int(64));
        } else {
            chain.state.count_only = true;
            chain.end();
        }
    }

    pub fn order(&mut self, chain: &mut Chain) {
        let kind = chain.state.kind.clone();
        let direction = if self.rng.random_bool(0.5) { Order::Asc } else { Order::Desc };
        match &kind {
            _ if kind.is_element() => {
                chain.push("order", []);
                let is_total = self.rng.random_bool(0.7);
                if self.rng.random_bool(0.5) || !is_total {
                    let (mut arguments, _) = self.by(&kind);
                    if arguments.is_empty() {
                        arguments.push(token(Token::Label));
                    }
                    arguments.push(Argument::Order(direction));
                    chain.steps.push(Instruction::new("by", arguments));
                }
                if is_total {
                    chain.push("by", [token(Token::Id), Argument::Order(direction)]);
                }
                chain.state.ordered = is_total;
                chain.state.clustered = is_total;
            }
            ObjectKind::Entry(key, _) if key.is_homogeneous() => {
                use mangrove_gremlin::Column;
                chain.push("order", []);
                chain.push("by", [Argument::Column(Column::Values), Argument::Order(direction)]);
                chain.push("by", [Argument::Column(Column::Keys)]);
                // Entries of several maps may tie.
                chain.state.ordered = false;
            }
            _ if kind.is_homogeneous() || kind == ObjectKind::Mixed => {
                chain.push("order", []);
                if self.rng.random_bool(0.5) {
                    chain.push("by", [Argument::Order(direction)]);
                }
                chain.state.ordered = kind.is_homogeneous();
                chain.state.clustered = chain.state.ordered;
            }
            _ => {}
        }
    }

    /// `limit`, `range`, `skip`, `tail`: anywhere if the stream has an order, otherwise only at the end.
    pub fn cut(&mut self, chain: &mut Chain) {
        if !chain.state.may_gather {
            return;
        }
        if !chain.state.ordered && (chain.state.position != ChainPosition::Top || self.rng.random_bool(0.7)) {
            return;
        }
        let (low, length) = (self.rng.random_range(0..4), self.rng.random_range(1..6));
        match self.rng.random_range(0..4) {
            0 => chain.push("limit", [int(length)]),
            1 => chain.push("range", [int(low), int(if length == 5 { -1 } else { low + length })]),
            2 => chain.push("skip", [int(low)]),
            _ if length == 1 => chain.push("tail", []),
            _ => chain.push("tail", [int(length)]),
        }
        chain.loses_history();
        if !chain.state.ordered {
            self.only_countable(chain);
        }
    }

    pub fn path_filter(&mut self, chain: &mut Chain) {
        if chain.state.history && chain.state.kind.is_element() {
            let name = if self.rng.random_bool(0.7) { "simplePath" } else { "cyclicPath" };
            chain.push(name, []);
            chain.state.ordered = false;
        }
    }

    /// Steps that change nothing or return nothing.
    pub fn plain_step(&mut self, chain: &mut Chain) {
        match self.rng.random_range(0..30) {
            0 if chain.state.position == ChainPosition::Top => {
                chain.push("discard", []);
                chain.end();
            }
            1 | 2 => self.time_limit(chain),
            n if n % 3 == 0 => chain.merges([]),
            n if n % 3 == 1 => chain.push("identity", []),
            _ => {
                if let ObjectKind::List(inner) = chain.state.kind.clone()
                    && (inner.is_homogeneous() || *inner == ObjectKind::Mixed)
                {
                    let p = Argument::Predicate(Predicate::Compare(Comparison::Gt, Box::new(self.operand(&inner))));
                    chain.push("none", [p]);
                }
            }
        }
    }

    /// A value for `constant`, and its kind.
    pub fn literal(&mut self) -> (Value, ObjectKind) {
        let kind =
            [ObjectKind::Int(32), ObjectKind::Text, ObjectKind::Bool].choose(&mut self.rng).expect("not empty").clone();
        (value(&mut self.rng, &kind), kind)
    }
}
