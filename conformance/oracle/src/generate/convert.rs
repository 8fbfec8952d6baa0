//! Conversions between texts, numbers, booleans and dates, and functions of dates.

use mangrove_graph::Value;
use mangrove_gremlin::Argument;
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, Generator};
use super::schema::{ObjectKind, value};
use crate::script::{int, nested, step, text};

impl Generator {
    /// A conversion for the kind of object in the stream, if there is one.
    pub fn convert(&mut self, chain: &mut Chain) {
        match chain.state.kind.clone() {
            ObjectKind::Int(_) | ObjectKind::Float => self.convert_number(chain),
            ObjectKind::Bool => {
                let name = if self.rng.random_bool(0.5) { "asString" } else { "asBool" };
                chain.push(name, []);
                chain.becomes(if name == "asString" { ObjectKind::Text } else { ObjectKind::Bool });
            }
            ObjectKind::Date => self.date_step(chain),
            ObjectKind::Text => match self.rng.random_range(0..4) {
                0 => {
                    chain.push("constant", [text(["12", "-3", "7000000000"][self.rng.random_range(0..2)])]);
                    chain.push("asNumber", []);
                    chain.becomes(ObjectKind::Int(32));
                }
                1 => {
                    chain.push("constant", [text(["true", "FALSE"][self.rng.random_range(0..2)])]);
                    chain.push("asBool", []);
                    chain.becomes(ObjectKind::Bool);
                }
                2 => {
                    chain.push("constant", [text("2024-02-28T12:00:00Z")]);
                    chain.push("asDate", []);
                    chain.becomes(ObjectKind::Date);
                }
                _ => {
                    chain.push("format", [text("is %{_}")]);
                    chain.becomes(ObjectKind::Text);
                }
            },
            _ => {}
        }
    }

    fn convert_number(&mut self, chain: &mut Chain) {
        let is_whole = chain.state.kind != ObjectKind::Float;
        match self.rng.random_range(0..6) {
            0 => {
                chain.push("asString", []);
                chain.becomes(ObjectKind::Text);
            }
            1 if is_whole => {
                chain.push("asString", []);
                chain.push("asNumber", []);
                chain.becomes(ObjectKind::Int(32));
            }
            2 => {
                chain.push("asBool", []);
                chain.becomes(ObjectKind::Bool);
            }
            3 if is_whole => {
                chain.push("asDate", []);
                chain.becomes(ObjectKind::Date);
            }
            _ => {
                let types = [
                    ("INT", ObjectKind::Int(32)),
                    ("LONG", ObjectKind::Int(64)),
                    ("DOUBLE", ObjectKind::Float),
                    ("BYTE", ObjectKind::Mixed),
                ];
                let (name, kind) = types.choose(&mut self.rng).expect("not empty").clone();
                chain.push("asNumber", [Argument::Type(name.into())]);
                chain.becomes(kind);
            }
        }
    }

    fn date_step(&mut self, chain: &mut Chain) {
        if self.rng.random_bool(0.6) {
            let unit = *["second", "minute", "hour", "day"].choose(&mut self.rng).expect("not empty");
            chain.push("dateAdd", [Argument::DateUnit(unit.into()), int(self.rng.random_range(-40..40))]);
            return chain.becomes(ObjectKind::Date);
        }
        let other = Argument::Value(value(&mut self.rng, &ObjectKind::Date));
        let as_child = self.rng.random_bool(0.3);
        chain.push("dateDiff", [if as_child { nested([step("constant", [other])]) } else { other }]);
        chain.becomes(ObjectKind::Int(64));
    }

    /// `format()` of an element. A missing property drops the traverser.
    pub fn format(&mut self, chain: &mut Chain) {
        let kind = chain.state.kind.clone();
        let (template, by) = match kind {
            ObjectKind::Vertex => ("%{name} at %{_}", "age"),
            ObjectKind::Edge => ("%{since} at %{_}", "since"),
            _ => return,
        };
        chain.push("format", [text(template)]);
        chain.push("by", [text(by)]);
        chain.becomes(ObjectKind::Text);
    }

    /// A value for `inject()`, sometimes null.
    pub fn injected(&mut self, kind: &ObjectKind) -> Value {
        if *kind == ObjectKind::Mixed && self.rng.random_bool(0.2) {
            return Value::Null;
        }
        value(&mut self.rng, kind)
    }
}
