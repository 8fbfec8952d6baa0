//! A traversal under construction, and the generator's record of its stream.

use mangrove_graph::{Token, Value};
use mangrove_gremlin::{Argument, Instruction};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

use super::Options;
use super::schema::{EDGE_LABELS, KEYS, Key, ObjectKind, VERTEX_LABELS, value};
use crate::graph::Graph;
use crate::script::{int, nested, text, token};

/// The position of a chain within the traversal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ChainPosition {
    /// The whole traversal.
    Top,
    /// A child that runs once for each traverser.
    Local,
    /// A child that runs once for the whole stream.
    Global,
    /// A global child in the body of a `repeat`.
    Body,
}

/// The generator's facts about a stream. The header of `generate` defines *ordered*, *clustered* and *history*.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub position: ChainPosition,
    pub kind: ObjectKind,
    pub ordered: bool,
    pub clustered: bool,
    pub history: bool,
    pub labels: Vec<(&'static str, ObjectKind)>,
    pub side_effects: Vec<(&'static str, ObjectKind)>,
    /// The kind of values in the sack, if known.
    pub sack: Option<ObjectKind>,
    /// The names of the enclosing loops.
    pub loops: Vec<&'static str>,
    /// True if steps on the stream as a whole (reductions, cuts, `dedup`) may follow.
    pub may_gather: bool,
    /// True if the edges were reached from a vertex by the last step, so that `otherV()` is defined.
    pub from_vertex: bool,
    /// True if a list in the stream has members in no determined order.
    pub lists_unordered: bool,
    pub maps_ordered: bool,
    /// True if only the number of results is determined.
    pub count_only: bool,
    /// True if no step may follow.
    pub ended: bool,
}

/// A traversal under construction.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub steps: Vec<Instruction>,
    pub state: State,
}

impl Chain {
    pub fn push<const N: usize>(&mut self, name: &str, arguments: [Argument; N]) {
        self.steps.push(crate::script::step(name, arguments));
    }

    /// A step that returns one object for each: a sequence keeps its order, and the path goes on.
    pub fn becomes(&mut self, kind: ObjectKind) {
        self.state.kind = kind;
        self.state.from_vertex = false;
        self.state.clustered = false;
    }

    /// A step that returns any number of objects for each, in no order.
    pub fn spreads(&mut self, kind: ObjectKind) {
        self.becomes(kind);
        self.state.ordered = false;
    }

    /// A step that returns one object for the whole stream; its path begins anew.
    pub fn reduces(&mut self, kind: ObjectKind) {
        self.becomes(kind);
        self.loses_history();
        self.state.ordered = true;
        self.state.clustered = true;
    }

    /// A barrier: equal traversers are merged at the position of the first.
    pub fn merges<const N: usize>(&mut self, arguments: [Argument; N]) {
        self.push("barrier", arguments);
        self.state.ordered &= self.state.clustered;
    }

    pub fn loses_history(&mut self) {
        self.state.history = false;
        self.state.from_vertex = false;
        self.state.sack = None;
        self.state.labels.clear();
    }

    /// Applies the facts about a child's stream that also hold for the stream around it.
    pub fn absorbs(&mut self, child: &State) {
        self.state.lists_unordered |= child.lists_unordered;
    }

    pub fn end(&mut self) {
        self.state.ended = true;
    }
}

/// Generates traversals.
pub(crate) struct Generator {
    pub rng: SmallRng,
    pub options: Options,
    pub vertex_ids: Vec<Value>,
    pub edge_ids: Vec<Value>,
    pub depth: usize,
    /// The instructions that configure the traversal source.
    pub source: Vec<Instruction>,
}

/// A list of literals.
fn listed(literals: Vec<Argument>) -> Vec<Argument> {
    let values = literals.into_iter().filter_map(|literal| match literal {
        Argument::Value(value) => Some(value),
        _ => None,
    });
    vec![Argument::Value(Value::list(values.collect()))]
}

/// A function that adds steps to the chain, or does nothing where it does not apply.
pub(crate) type Action = fn(&mut Generator, &mut Chain);

impl Generator {
    pub fn new(rng: SmallRng, graph: &Graph, options: &Options) -> Self {
        let vertex_ids = graph.vertices().map(|(_, v)| v.id.to_value()).collect();
        let edge_ids = graph.edges().map(|(_, e)| e.id.to_value()).collect();
        Generator { rng, options: options.clone(), vertex_ids, edge_ids, depth: 0, source: Vec::new() }
    }

    /// A traversal that only reads.
    pub fn read(&mut self) -> Chain {
        if self.rng.random_bool(0.08) {
            let forms: [fn(&mut Self) -> Chain; 6] = [
                Self::ordered_branched_injected,
                Self::merged_sacks,
                Self::one_bulk,
                Self::folded_side_effect,
                Self::gathered_sacks,
                Self::seen_properties,
            ];
            return forms.choose(&mut self.rng).expect("not empty")(self);
        }
        let mut chain = self.start();
        if self.rng.random_bool(0.3) {
            self.configure(&mut chain);
        }
        let step_count = self.rng.random_range(1..=self.options.step_count_max);
        self.grow(&mut chain, step_count);
        chain
    }

    pub fn start(&mut self) -> Chain {
        let state = State {
            position: ChainPosition::Top,
            kind: ObjectKind::Vertex,
            ordered: false,
            clustered: false,
            history: true,
            labels: Vec::new(),
            side_effects: Vec::new(),
            sack: None,
            loops: Vec::new(),
            may_gather: true,
            from_vertex: false,
            lists_unordered: false,
            maps_ordered: false,
            count_only: false,
            ended: false,
        };
        let mut chain = Chain { steps: Vec::new(), state };
        match self.rng.random_range(0..21) {
            20 => self.remember_first(&mut chain),
            0..=12 => chain.push("V", []),
            13..=15 => {
                let ids = (0..self.rng.random_range(1..4)).map(|_| self.vertex_id()).collect();
                let ids = if self.rng.random_bool(0.1) { listed(ids) } else { ids };
                chain.steps.push(Instruction::new("V", ids));
            }
            16 => {
                let ids = (0..self.rng.random_range(1..4)).map(|_| self.edge_id()).collect();
                chain.steps.push(Instruction::new("E", ids));
                chain.becomes(ObjectKind::Edge);
            }
            17 | 18 => {
                chain.push("E", []);
                chain.becomes(ObjectKind::Edge);
            }
            _ => self.inject(&mut chain),
        }
        chain
    }

    fn inject(&mut self, chain: &mut Chain) {
        if self.rng.random_bool(0.1) {
            return self.search(chain);
        }
        let kinds = [
            ObjectKind::Int(32),
            ObjectKind::Float,
            ObjectKind::Text,
            ObjectKind::Mixed,
            ObjectKind::Mixed,
            ObjectKind::Date,
        ];
        let kind = kinds.choose(&mut self.rng).expect("not empty").clone();
        let count = self.rng.random_range(1..6);
        let mut values: Vec<Value> = (0..count).map(|_| self.injected(&kind)).collect();
        if self.rng.random_bool(0.3) {
            // Merges equal traversers from the beginning.
            values.extend(values.clone());
        }
        let as_list = self.rng.random_bool(0.2);
        if as_list {
            values = vec![Value::list(values)];
        }
        chain.steps.push(Instruction::new("inject", values.into_iter().map(Argument::Value).collect()));
        chain.becomes(if as_list { ObjectKind::List(Box::new(kind)) } else { kind });
    }

    /// Adds up to this many steps.
    pub fn grow(&mut self, chain: &mut Chain, step_count: usize) {
        for _ in 0..step_count {
            if chain.state.ended {
                return;
            }
            let actions = self.actions(&chain.state);
            let before = chain.steps.len();
            // If the action does not apply, the chain is unchanged and the loop tries another.
            for _ in 0..8 {
                let action = actions.choose(&mut self.rng).expect("every kind has actions");
                action(self, chain);
                if chain.steps.len() > before || chain.state.ended {
                    break;
                }
            }
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions: Vec<Action> = vec![
            Self::is_filter,
            Self::dedup,
            Self::order,
            Self::cut,
            Self::label_with_as,
            Self::select_label,
            Self::path,
            Self::path_filter,
            Self::constant,
            Self::project,
            Self::reduce,
            Self::reduce_in_branches,
            Self::fold,
            Self::group,
            Self::aggregate,
            Self::plain_step,
            Self::rarity,
            Self::start_again,
            Self::tree,
            Self::rare_form,
            Self::cap_all,
            Self::inject_again,
        ];
        if state.sack.is_some() {
            actions.extend([Self::sack as Action; 4]);
        }
        if self.depth < self.options.depth_max {
            actions.extend([
                Self::where_child as Action,
                Self::connective,
                Self::where_label,
                Self::union,
                Self::coalesce,
                Self::choose,
                Self::choose_option,
                Self::branch,
                Self::optional,
                Self::local_or_flat_map,
                Self::map_child,
                Self::side_effect,
                Self::repeat,
            ]);
        }
        if state.position == ChainPosition::Top {
            actions.push(Self::effect_in_scope);
        }
        if state.kind == ObjectKind::Vertex {
            actions.extend([Self::meet_again as Action; 2]);
            actions.push(Self::optional_hop);
            if self.depth < self.options.depth_max {
                actions.extend([Self::test_degrees as Action; 2]);
            }
        }
        // Actions that need a rare state come up often in that state.
        if state.position == ChainPosition::Top && state.history {
            actions.extend([Self::label_with_as as Action; 2]);
        }
        if !state.labels.is_empty() && self.depth < self.options.depth_max {
            actions.extend([Self::select_label as Action, Self::where_label, Self::where_label, Self::path]);
            if state.position == ChainPosition::Top && state.history {
                actions.extend([Self::label_with_as as Action; 3]);
            }
        }
        if state.kind == ObjectKind::Vertex && self.depth < self.options.depth_max {
            actions.extend([Self::repeat as Action; 3]);
        }
        // Actions that only this kind of object has come up as often as all others together.
        let own: &[Action] = match &state.kind {
            ObjectKind::Vertex => {
                &[Self::neighbors, Self::neighbors, Self::incident, Self::has, Self::element_value, Self::special]
            }
            ObjectKind::Edge => &[Self::edge_ends, Self::edge_ends, Self::has, Self::element_value, Self::special],
            ObjectKind::List(_) => &[Self::collection, Self::function],
            ObjectKind::Map(..) | ObjectKind::Entry(..) | ObjectKind::Record(_) | ObjectKind::Path => {
                &[Self::collection]
            }
            ObjectKind::VertexProperty | ObjectKind::EdgeProperty | ObjectKind::MetaProperty => &[Self::property_parts],
            ObjectKind::Text | ObjectKind::Int(_) | ObjectKind::Float => &[Self::function, Self::convert],
            ObjectKind::Bool | ObjectKind::Date => &[Self::convert],
            _ => &[],
        };
        let common = actions.len();
        // Functions of scalars together weigh as one action.
        let is_scalar = matches!(
            state.kind,
            ObjectKind::Text | ObjectKind::Int(_) | ObjectKind::Float | ObjectKind::Bool | ObjectKind::Date
        );
        let times = if is_scalar { 4 } else { common };
        for _ in 0..times.checked_div(own.len()).unwrap_or(0) {
            actions.extend_from_slice(own);
        }
        actions
    }

    /// Actions that only elements have, at a lower rate.
    pub fn special(&mut self, chain: &mut Chain) {
        match self.rng.random_range(0..7) {
            4 | 5 if chain.state.kind == ObjectKind::Vertex => self.several_values(chain),
            0 => self.match_patterns(chain),
            1 if chain.state.kind == ObjectKind::Vertex => self.call(chain),
            2 => self.subgraph(chain),
            3 => self.format(chain),
            _ => {}
        }
    }

    /// A child for a stream in this state.
    pub fn child(&mut self, outer: &State, position: ChainPosition, step_count: usize) -> Chain {
        let position = if position == ChainPosition::Global && outer.position == ChainPosition::Body {
            ChainPosition::Body
        } else {
            position
        };
        let is_one = position == ChainPosition::Local;
        let state = State { position, ordered: is_one, clustered: is_one, from_vertex: false, ..outer.clone() };
        let mut chain = Chain { steps: Vec::new(), state };
        self.depth += 1;
        self.grow(&mut chain, step_count);
        self.depth -= 1;
        if chain.steps.is_empty() {
            chain.push("identity", []);
        }
        chain
    }

    /// A child with at most one result, of a comparable kind.
    pub fn single(&mut self, kind: &ObjectKind) -> (Vec<Instruction>, ObjectKind) {
        use crate::script::step;
        match kind {
            ObjectKind::Vertex | ObjectKind::Edge => match self.rng.random_range(0..6) {
                0 => (vec![step("label", [])], ObjectKind::Text),
                1 => (vec![step("id", [])], ObjectKind::Int(32)),
                2 if *kind == ObjectKind::Vertex => {
                    let name = *["out", "in", "both", "outE", "inE"].choose(&mut self.rng).expect("not empty");
                    (vec![step(name, [text(self.edge_label())]), step("count", [])], ObjectKind::Int(64))
                }
                3 => {
                    let key = self.key(kind);
                    let other = Argument::Value(value(&mut self.rng, &key.kind));
                    let both = [nested([step("values", [text(key.name)])]), nested([step("constant", [other])])];
                    (vec![step("coalesce", both)], key.kind.clone())
                }
                _ => {
                    let key = self.key(kind);
                    (vec![step("values", [text(key.name)])], key.kind.clone())
                }
            },
            ObjectKind::List(_) | ObjectKind::Path => {
                (vec![step("count", [Argument::Scope(mangrove_gremlin::Scope::Local)])], ObjectKind::Int(64))
            }
            _ if kind.is_plain() => (vec![step("identity", [])], kind.clone()),
            _ => (vec![step("constant", [int(1)])], ObjectKind::Int(32)),
        }
    }

    /// A random `by` that returns a comparable value, and the kind of that value.
    pub fn by(&mut self, kind: &ObjectKind) -> (Vec<Argument>, ObjectKind) {
        if kind.is_element() {
            match self.rng.random_range(0..4) {
                0 => return (vec![token(Token::Label)], ObjectKind::Text),
                1 | 2 => {
                    let key = self.key(kind);
                    return (vec![text(key.name)], key.kind.clone());
                }
                _ => {}
            }
        }
        if kind.is_plain() && self.rng.random_bool(0.3) {
            return (Vec::new(), kind.clone());
        }
        let (steps, made) = self.single(kind);
        (vec![nested(steps)], made)
    }

    /// A key of elements of this kind.
    pub fn key(&mut self, kind: &ObjectKind) -> &'static Key {
        const ALL: &[Key] = &KEYS;
        let fitting: Vec<&'static Key> =
            ALL.iter().filter(|k| k.on_vertices == (*kind == ObjectKind::Vertex)).collect();
        fitting.choose(&mut self.rng).expect("both kinds have keys")
    }

    pub fn edge_label(&mut self) -> &'static str {
        EDGE_LABELS.choose(&mut self.rng).expect("not empty")
    }

    pub fn label(&mut self, kind: &ObjectKind) -> &'static str {
        if *kind == ObjectKind::Edge {
            self.edge_label()
        } else {
            VERTEX_LABELS.choose(&mut self.rng).expect("not empty")
        }
    }

    /// The id of a vertex; sometimes an id that no vertex has.
    pub fn vertex_id(&mut self) -> Argument {
        match self.vertex_ids.choose(&mut self.rng) {
            Some(id) if self.rng.random_bool(0.95) => Argument::Value(id.clone()),
            _ => int(777),
        }
    }

    /// The id of an edge; sometimes an id that no edge has.
    pub fn edge_id(&mut self) -> Argument {
        match self.edge_ids.choose(&mut self.rng) {
            Some(id) if self.rng.random_bool(0.95) => Argument::Value(id.clone()),
            _ => int(7_777),
        }
    }
}
