//! The generator's book: a traversal under construction, and what is known of its stream.

use mangrove_graph::{Token, Value};
use mangrove_gremlin::{Argument, Instruction};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

use super::Options;
use super::schema::{EDGE_LABELS, KEYS, Key, Kind, VERTEX_LABELS, value};
use crate::graph::Graph;
use crate::script::{int, nested, text, token};

/// Where a traversal stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    /// It is the whole traversal.
    Top,
    /// A child that runs for one traverser alone.
    Local,
    /// A child that runs for the whole stream.
    Global,
    /// A global child inside the body of a `repeat`.
    Body,
}

/// What is known of a stream. The words are explained at the module `generate`.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub place: Place,
    pub kind: Kind,
    pub ordered: bool,
    pub clustered: bool,
    pub history: bool,
    pub labels: Vec<(&'static str, Kind)>,
    pub side_effects: Vec<(&'static str, Kind)>,
    /// What traversers carry, if that is known.
    pub sack: Option<Kind>,
    /// The names of the loops around.
    pub loops: Vec<&'static str>,
    /// Whether steps that look at the stream as a whole (reductions, cuts, `dedup`) may be made.
    pub may_gather: bool,
    /// Edges just reached from a vertex: `otherV()` knows where they came from.
    pub from_vertex: bool,
    pub lists_unordered: bool,
    pub maps_ordered: bool,
    pub count_only: bool,
    /// Nothing may follow.
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

    /// A step that gives one object for one: a sequence stays one, the way goes on.
    pub fn becomes(&mut self, kind: Kind) {
        self.state.kind = kind;
        self.state.from_vertex = false;
        self.state.clustered = false;
    }

    /// A step that gives any number of objects for one, in no order.
    pub fn spreads(&mut self, kind: Kind) {
        self.becomes(kind);
        self.state.ordered = false;
    }

    /// A step that gives one object for all: its way begins anew.
    pub fn reduces(&mut self, kind: Kind) {
        self.becomes(kind);
        self.loses_history();
        self.state.ordered = true;
        self.state.clustered = true;
    }

    /// A barrier: equal traversers go on as one from where the first of them stood.
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

    /// What a child leaves behind in the stream it is part of.
    pub fn absorbs(&mut self, child: &State) {
        self.state.lists_unordered |= child.lists_unordered;
    }

    pub fn end(&mut self) {
        self.state.ended = true;
    }
}

/// Makes traversals. See the module `generate`.
pub(crate) struct Generator {
    pub rng: SmallRng,
    pub options: Options,
    pub vertex_ids: Vec<Value>,
    pub edge_ids: Vec<Value>,
    pub depth: usize,
    /// What configures the traversal source.
    pub source: Vec<Instruction>,
}

/// Literals as one list.
fn listed(literals: Vec<Argument>) -> Vec<Argument> {
    let values = literals.into_iter().filter_map(|literal| match literal {
        Argument::Value(value) => Some(value),
        _ => None,
    });
    vec![Argument::Value(Value::list(values.collect()))]
}

/// A way to go on; it may find that it does not apply and do nothing.
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
            place: Place::Top,
            kind: Kind::Vertex,
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
        match self.rng.random_range(0..20) {
            0..=12 => chain.push("V", []),
            13..=15 => {
                let ids = (0..self.rng.random_range(1..4)).map(|_| self.vertex_id()).collect();
                let ids = if self.rng.random_bool(0.1) { listed(ids) } else { ids };
                chain.steps.push(Instruction::new("V", ids));
            }
            16 => {
                let ids = (0..self.rng.random_range(1..4)).map(|_| self.edge_id()).collect();
                chain.steps.push(Instruction::new("E", ids));
                chain.becomes(Kind::Edge);
            }
            17 | 18 => {
                chain.push("E", []);
                chain.becomes(Kind::Edge);
            }
            _ => self.inject(&mut chain),
        }
        chain
    }

    fn inject(&mut self, chain: &mut Chain) {
        if self.rng.random_bool(0.1) {
            return self.search(chain);
        }
        let kinds = [Kind::Int(32), Kind::Float, Kind::Text, Kind::Mixed, Kind::Mixed, Kind::Date];
        let kind = kinds.choose(&mut self.rng).expect("not empty").clone();
        let count = self.rng.random_range(1..6);
        let mut values: Vec<Value> = (0..count).map(|_| self.injected(&kind)).collect();
        if self.rng.random_bool(0.3) {
            // Equal traversers from the beginning.
            values.extend(values.clone());
        }
        let as_list = self.rng.random_bool(0.2);
        if as_list {
            values = vec![Value::list(values)];
        }
        chain.steps.push(Instruction::new("inject", values.into_iter().map(Argument::Value).collect()));
        chain.becomes(if as_list { Kind::List(Box::new(kind)) } else { kind });
    }

    /// Adds up to this many steps.
    pub fn grow(&mut self, chain: &mut Chain, step_count: usize) {
        for _ in 0..step_count {
            if chain.state.ended {
                return;
            }
            let actions = self.actions(&chain.state);
            let before = chain.steps.len();
            // An action that does not apply leaves the chain as it is; another is tried.
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
        if state.place == Place::Top {
            actions.push(Self::effect_in_scope);
        }
        if state.kind == Kind::Vertex {
            actions.extend([Self::meet_again as Action; 2]);
        }
        // What needs something that is seldom there comes up often where it is.
        if state.place == Place::Top && state.history {
            actions.extend([Self::label_with_as as Action; 2]);
        }
        if !state.labels.is_empty() && self.depth < self.options.depth_max {
            actions.extend([Self::select_label as Action, Self::where_label, Self::where_label, Self::path]);
            if state.place == Place::Top && state.history {
                actions.extend([Self::label_with_as as Action; 3]);
            }
        }
        if state.kind == Kind::Vertex && self.depth < self.options.depth_max {
            actions.extend([Self::repeat as Action; 3]);
        }
        // What only this kind offers comes up as often as all the rest.
        let own: &[Action] = match &state.kind {
            Kind::Vertex => {
                &[Self::neighbors, Self::neighbors, Self::incident, Self::has, Self::element_value, Self::special]
            }
            Kind::Edge => &[Self::edge_ends, Self::edge_ends, Self::has, Self::element_value, Self::special],
            Kind::List(_) => &[Self::collection, Self::function],
            Kind::Map(..) | Kind::Entry(..) | Kind::Record(_) | Kind::Path => &[Self::collection],
            Kind::VertexProperty | Kind::EdgeProperty | Kind::MetaProperty => &[Self::property_parts],
            Kind::Text | Kind::Int(_) | Kind::Float => &[Self::function, Self::convert],
            Kind::Bool | Kind::Date => &[Self::convert],
            _ => &[],
        };
        let common = actions.len();
        // Functions of scalars are one way among the others.
        let is_scalar = matches!(state.kind, Kind::Text | Kind::Int(_) | Kind::Float | Kind::Bool | Kind::Date);
        let times = if is_scalar { 4 } else { common };
        for _ in 0..times.checked_div(own.len()).unwrap_or(0) {
            actions.extend_from_slice(own);
        }
        actions
    }

    /// What only elements offer and is asked less often.
    pub fn special(&mut self, chain: &mut Chain) {
        match self.rng.random_range(0..7) {
            4 | 5 if chain.state.kind == Kind::Vertex => self.several_values(chain),
            0 => self.match_patterns(chain),
            1 if chain.state.kind == Kind::Vertex => self.call(chain),
            2 => self.subgraph(chain),
            3 => self.format(chain),
            _ => {}
        }
    }

    /// A child of a stream in this state.
    pub fn child(&mut self, outer: &State, place: Place, step_count: usize) -> Chain {
        let place = if place == Place::Global && outer.place == Place::Body { Place::Body } else { place };
        let is_one = place == Place::Local;
        let state = State { place, ordered: is_one, clustered: is_one, from_vertex: false, ..outer.clone() };
        let mut chain = Chain { steps: Vec::new(), state };
        self.depth += 1;
        self.grow(&mut chain, step_count);
        self.depth -= 1;
        if chain.steps.is_empty() {
            chain.push("identity", []);
        }
        chain
    }

    /// A child with at most one result, of a kind that compares.
    pub fn single(&mut self, kind: &Kind) -> (Vec<Instruction>, Kind) {
        use crate::script::step;
        match kind {
            Kind::Vertex | Kind::Edge => match self.rng.random_range(0..6) {
                0 => (vec![step("label", [])], Kind::Text),
                1 => (vec![step("id", [])], Kind::Int(32)),
                2 if *kind == Kind::Vertex => {
                    let name = *["out", "in", "both", "outE", "inE"].choose(&mut self.rng).expect("not empty");
                    (vec![step(name, [text(self.edge_label())]), step("count", [])], Kind::Int(64))
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
            Kind::List(_) | Kind::Path => {
                (vec![step("count", [Argument::Scope(mangrove_gremlin::Scope::Local)])], Kind::Int(64))
            }
            _ if kind.is_plain() => (vec![step("identity", [])], kind.clone()),
            _ => (vec![step("constant", [int(1)])], Kind::Int(32)),
        }
    }

    /// A random `by` that gives a value that compares, and its kind.
    pub fn by(&mut self, kind: &Kind) -> (Vec<Argument>, Kind) {
        if kind.is_element() {
            match self.rng.random_range(0..4) {
                0 => return (vec![token(Token::Label)], Kind::Text),
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

    /// A key that elements of this kind bear.
    pub fn key(&mut self, kind: &Kind) -> &'static Key {
        const ALL: &[Key] = &KEYS;
        let fitting: Vec<&'static Key> = ALL.iter().filter(|k| k.on_vertices == (*kind == Kind::Vertex)).collect();
        fitting.choose(&mut self.rng).expect("both kinds have keys")
    }

    pub fn edge_label(&mut self) -> &'static str {
        EDGE_LABELS.choose(&mut self.rng).expect("not empty")
    }

    pub fn label(&mut self, kind: &Kind) -> &'static str {
        if *kind == Kind::Edge { self.edge_label() } else { VERTEX_LABELS.choose(&mut self.rng).expect("not empty") }
    }

    /// The id of a vertex; now and then of none.
    pub fn vertex_id(&mut self) -> Argument {
        match self.vertex_ids.choose(&mut self.rng) {
            Some(id) if self.rng.random_bool(0.95) => Argument::Value(id.clone()),
            _ => int(777),
        }
    }

    /// The id of an edge; now and then of none.
    pub fn edge_id(&mut self) -> Argument {
        match self.edge_ids.choose(&mut self.rng) {
            Some(id) if self.rng.random_bool(0.95) => Argument::Value(id.clone()),
            _ => int(7_777),
        }
    }
}
