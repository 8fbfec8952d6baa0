//! Steps from one kind of object to another: neighbors, values, collections, paths, labels.

use mangrove_graph::{Direction, Token, Value};
use mangrove_gremlin::{Argument, Column, Instruction, Order, Pop, Scope};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, ChainPosition, Generator};
use super::schema::ObjectKind;
use crate::script::{int, nested, step, text, token};

const LABELS: [&str; 3] = ["a", "b", "c"];

impl Generator {
    fn some_edge_labels(&mut self) -> Vec<Argument> {
        // Each label once: with a label given twice, stores differ in whether its edges are met twice.
        let mut labels: Vec<&str> = (0..self.rng.random_range(0..3)).map(|_| self.edge_label()).collect();
        labels.sort_unstable();
        labels.dedup();
        labels.into_iter().map(text).collect()
    }

    /// A step along edges. `to` and `toE` take the direction as an argument.
    fn along(&mut self, name: &str, mut labels: Vec<Argument>) -> Instruction {
        if name.starts_with("to") {
            let all = [Direction::Out, Direction::In, Direction::Both];
            let direction = *all.choose(&mut self.rng).expect("not empty");
            labels.insert(0, Argument::Value(Value::Direction(direction)));
        }
        Instruction::new(name, labels)
    }

    pub fn neighbors(&mut self, chain: &mut Chain) {
        let name = *["out", "in", "both", "to"].choose(&mut self.rng).expect("not empty");
        let labels = self.some_edge_labels();
        chain.steps.push(self.along(name, labels));
        chain.spreads(ObjectKind::Vertex);
    }

    pub fn incident(&mut self, chain: &mut Chain) {
        let name = *["outE", "inE", "bothE", "toE"].choose(&mut self.rng).expect("not empty");
        let labels = self.some_edge_labels();
        chain.steps.push(self.along(name, labels));
        chain.spreads(ObjectKind::Edge);
        chain.state.from_vertex = true;
    }

    pub fn edge_ends(&mut self, chain: &mut Chain) {
        let other = if chain.state.from_vertex && chain.state.history { "otherV" } else { "outV" };
        let name = *["outV", "inV", "bothV", other, other].choose(&mut self.rng).expect("not empty");
        if name == "outV" && self.rng.random_bool(0.2) {
            chain.push("toV", [Argument::Value(Value::Direction(Direction::Out))]);
        } else {
            chain.push(name, []);
        }
        if matches!(name, "outV" | "inV") {
            chain.becomes(ObjectKind::Vertex)
        } else {
            chain.spreads(ObjectKind::Vertex)
        }
    }

    /// The content of an element: `values`, `properties`, `id`, `label`, `valueMap`, `elementMap`.
    pub fn element_value(&mut self, chain: &mut Chain) {
        let kind = chain.state.kind.clone();
        let (key, other) = (self.key(&kind), self.key(&kind));
        match self.rng.random_range(0..14) {
            0..=4 => {
                chain.push("values", [text(key.name)]);
                chain.becomes(key.kind.clone());
            }
            5 => {
                chain.push("values", [text(key.name), text(other.name)]);
                chain.spreads(ObjectKind::Mixed);
            }
            6 => {
                chain.push("values", []);
                chain.spreads(ObjectKind::Mixed);
            }
            7 => {
                chain.push("properties", [text(key.name)]);
                chain.becomes(if kind == ObjectKind::Vertex {
                    ObjectKind::VertexProperty
                } else {
                    ObjectKind::EdgeProperty
                });
            }
            8 => {
                chain.push("id", []);
                chain.becomes(ObjectKind::Int(32));
            }
            9 => {
                chain.push("label", []);
                chain.becomes(ObjectKind::Text);
            }
            10 => {
                chain.push("valueMap", [text(key.name), text(other.name)]);
                if self.rng.random_bool(0.4) {
                    chain.push("by", [nested([step("unfold", [])])]);
                }
                chain.becomes(ObjectKind::Opaque);
            }
            11 => {
                chain.push("valueMap", [Argument::Value(true.into())]);
                chain.becomes(ObjectKind::Opaque);
            }
            12 if self.rng.random_bool(0.5) => {
                chain.push("propertyMap", [text(key.name)]);
                let local = Argument::Scope(Scope::Local);
                chain.push(
                    "by",
                    [nested([if self.rng.random_bool(0.5) { step("count", [local]) } else { step("unfold", []) }])],
                );
                chain.becomes(ObjectKind::Opaque);
            }
            12 => {
                chain.push("elementMap", []);
                chain.becomes(ObjectKind::Opaque);
            }
            _ => {
                chain.push("elementMap", [text(key.name)]);
                chain.becomes(ObjectKind::Opaque);
            }
        }
    }

    /// Steps to and over collections.
    pub fn collection(&mut self, chain: &mut Chain) {
        match chain.state.kind.clone() {
            ObjectKind::List(inner) => self.list_step(chain, *inner),
            ObjectKind::Map(key, value) => self.map_step(chain, *key, *value),
            ObjectKind::Entry(key, value) => {
                let keys = self.rng.random_bool(0.5);
                chain.push("select", [Argument::Column(if keys { Column::Keys } else { Column::Values })]);
                chain.becomes(if keys { *key } else { *value });
            }
            ObjectKind::Record(fields) => {
                let Some((name, kind)) = fields.choose(&mut self.rng) else { return };
                chain.push("select", [text(name)]);
                chain.becomes(kind.clone());
            }
            ObjectKind::Path => {
                if self.rng.random_bool(0.5) {
                    self.count_local(chain);
                } else {
                    chain.push("unfold", []);
                    chain.spreads(ObjectKind::Opaque);
                }
            }
            _ => {}
        }
    }

    fn count_local(&mut self, chain: &mut Chain) {
        chain.push("count", [Argument::Scope(Scope::Local)]);
        chain.becomes(ObjectKind::Int(64));
    }

    fn list_step(&mut self, chain: &mut Chain, inner: ObjectKind) {
        let local = Argument::Scope(Scope::Local);
        match self.rng.random_range(0..8) {
            0 => self.count_local(chain),
            1 | 2 if inner.is_number() => {
                let (name, kind) =
                    [("sum", inner.clone()), ("min", inner.clone()), ("max", inner), ("mean", ObjectKind::Float)]
                        .choose(&mut self.rng)
                        .expect("not empty")
                        .clone();
                chain.push(name, [local]);
                // A mean need not be a multiple of a quarter, so sums of means would be rounded.
                chain.becomes(if name == "mean" { ObjectKind::Opaque } else { kind });
            }
            3 if inner.is_plain() => {
                chain.push("dedup", [local]);
                // The order of a set's members is unspecified.
                chain.state.lists_unordered = true;
            }
            4 | 5 if inner.is_homogeneous() => {
                chain.push("order", [local.clone()]);
                if self.rng.random_bool(0.5) {
                    chain.push("by", [Argument::Order(Order::Desc)]);
                }
                // The order of this list is determined now, so it may be read and cut.
                match self.rng.random_range(0..5) {
                    0 => {
                        chain.push("conjoin", [text(";")]);
                        return chain.becomes(ObjectKind::Text);
                    }
                    1 => {
                        chain.push("index", []);
                        return chain.becomes(ObjectKind::Opaque);
                    }
                    2 => chain.push("reverse", []),
                    _ => {}
                }
                if self.rng.random_bool(0.5) {
                    let n = int(self.rng.random_range(1..4));
                    let name = *["limit", "tail", "skip"].choose(&mut self.rng).expect("not empty");
                    chain.push(name, [local, n]);
                }
            }
            _ => {
                chain.push("unfold", []);
                chain.spreads(inner);
            }
        }
    }

    fn map_step(&mut self, chain: &mut Chain, key: ObjectKind, value: ObjectKind) {
        match self.rng.random_range(0..6) {
            0 => self.count_local(chain),
            1 => {
                chain.push("select", [Argument::Column(Column::Keys)]);
                chain.becomes(ObjectKind::List(Box::new(key)));
                chain.state.lists_unordered = true;
            }
            2 => {
                chain.push("select", [Argument::Column(Column::Values)]);
                chain.becomes(ObjectKind::List(Box::new(value)));
                chain.state.lists_unordered = true;
            }
            3 if key.is_homogeneous() && chain.state.position == ChainPosition::Top => {
                chain.push("order", [Argument::Scope(Scope::Local)]);
                chain.push("by", [Argument::Column(Column::Keys)]);
                chain.state.maps_ordered = true;
                chain.end();
            }
            _ => {
                chain.push("unfold", []);
                chain.spreads(ObjectKind::Entry(Box::new(key), Box::new(value)));
            }
        }
    }

    pub fn constant(&mut self, chain: &mut Chain) {
        if self.rng.random_bool(0.3) {
            let (value, kind) = self.literal();
            chain.push("constant", [Argument::Value(value)]);
            chain.becomes(kind);
        }
    }

    pub fn project(&mut self, chain: &mut Chain) {
        let kind = chain.state.kind.clone();
        if !kind.is_plain() {
            return;
        }
        chain.push("project", [text("p"), text("q")]);
        for _ in 0..2 {
            let (arguments, _) = self.by(&kind);
            chain.steps.push(Instruction::new("by", arguments));
        }
        // A missing property leaves out its key, so neither key is certain to be present.
        chain.becomes(ObjectKind::Opaque);
        if kind.is_element() && self.rng.random_bool(0.4) {
            chain.steps.truncate(chain.steps.len() - 2);
            chain.push("by", [token(Token::Label)]);
            chain.push("by", [token(Token::Id)]);
            chain.becomes(ObjectKind::Record(vec![("p", ObjectKind::Text), ("q", ObjectKind::Int(32))]));
        }
    }

    /// Only in a `repeat` may one label stand on several objects of a path; no labels are generated there.
    pub fn label_with_as(&mut self, chain: &mut Chain) {
        let state = &mut chain.state;
        let free = LABELS.into_iter().find(|l| state.labels.iter().all(|(used, _)| used != l));
        let Some(label) = free else { return };
        if !state.history || state.position != ChainPosition::Top || !state.kind.is_plain() {
            return;
        }
        state.labels.push((label, state.kind.clone()));
        chain.push("as", [text(label)]);
    }

    pub fn select_label(&mut self, chain: &mut Chain) {
        let labels = chain.state.labels.clone();
        // The step would look for the name in a map first.
        if labels.is_empty() || !chain.state.kind.is_plain() {
            return;
        }
        chain.state.ordered = false;
        if labels.len() > 1 && self.rng.random_bool(0.6) {
            let (one, other) = (text(labels[0].0), text(labels[1].0));
            if self.rng.random_bool(0.4) {
                let pop = *[Pop::First, Pop::Last, Pop::All].choose(&mut self.rng).expect("not empty");
                chain.push("select", [Argument::Pop(pop), one, other]);
                return chain.becomes(ObjectKind::Opaque);
            }
            chain.push("select", [one, other]);
            if labels[0].1.is_element() && labels[0].1 == labels[1].1 && self.rng.random_bool(0.5) {
                let (arguments, _) = self.by(&labels[0].1);
                chain.steps.push(Instruction::new("by", arguments));
            }
            return chain.becomes(ObjectKind::Opaque);
        }
        let (name, kind) = labels.choose(&mut self.rng).expect("not empty").clone();
        match self.rng.random_range(0..6) {
            0 => {
                chain.push("select", [Argument::Pop(Pop::All), text(name)]);
                chain.becomes(ObjectKind::List(Box::new(kind)));
            }
            1 => {
                let pop = *[Pop::First, Pop::Last, Pop::Mixed].choose(&mut self.rng).expect("not empty");
                chain.push("select", [Argument::Pop(pop), text(name)]);
                chain.becomes(kind);
            }
            2 if kind.is_element() => {
                let (arguments, made) = self.by(&kind);
                chain.push("select", [text(name)]);
                chain.steps.push(Instruction::new("by", arguments));
                chain.becomes(made);
            }
            _ => {
                chain.push("select", [text(name)]);
                chain.becomes(kind);
            }
        }
    }

    pub fn path(&mut self, chain: &mut Chain) {
        if !chain.state.history || chain.state.position != ChainPosition::Top || self.rng.random_bool(0.5) {
            return;
        }
        chain.push("path", []);
        if let Some((label, _)) = chain.state.labels.first()
            && self.rng.random_bool(0.4)
        {
            let name = if self.rng.random_bool(0.5) { "from" } else { "to" };
            chain.push(name, [text(label)]);
        }
        if self.rng.random_bool(0.4) {
            let (value, _) = self.literal();
            let by = nested([step("constant", [Argument::Value(value)])]);
            chain.push("by", []);
            chain.push("by", [by]);
        }
        chain.becomes(ObjectKind::Path);
        chain.state.ordered = false;
    }
}
