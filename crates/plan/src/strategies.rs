//! Strategies that change the meaning of a traversal. They rewrite the logical traversal before the rules do, so that
//! the rules optimize the filters, too.
//!
//! `SubgraphStrategy` and `PartitionStrategy` let a traversal see a part of the graph, the [`Subset`]:
//!
//! - After every step that comes to vertices or edges, a filter keeps the elements that belong to the part.
//! - With `SubgraphStrategy`, a hop from vertex to vertex is also restricted to edges of the part. It becomes a hop to
//!   the edge, the filter of edges, and a hop to the other end. The three are nested, so that paths do not show the
//!   edge. A partition tests only the elements that a traversal comes to.
//! - The criteria themselves see the whole graph: the filters are added after nested traversals have been rewritten.
//! - A criterion of vertex properties holds wherever properties are read ([`properties`]).
//!
//! The verifying strategies fail if the traversal has a step that they forbid, and change nothing.

mod properties;

use mangrove_graph::{Direction, Error, Result, Value};

use crate::limits::steps_in;
use crate::logical::upsert::{MergeEntry, MergeFrom};
use crate::logical::*;

impl Subset {
    /// The most steps that the rewriting adds after one step of a traversal.
    pub fn steps_added(&self) -> usize {
        let steps = |criterion: &Option<Traversal>| criterion.as_ref().map_or(0, |criterion| 1 + steps_in(criterion));
        // An edge is tested, and so are both its ends.
        3 * steps(&self.vertices) + steps(&self.edges) + steps(&self.properties)
    }

    /// Rewrites a traversal, and the traversals nested in it, so that it sees this part only. Fails for `io()`, which
    /// is about the whole graph.
    pub fn restrict(&self, traversal: &mut Traversal) -> Result<()> {
        let mut steps = Vec::with_capacity(traversal.steps.len());
        for mut node in std::mem::take(&mut traversal.steps) {
            let mut failure = Ok(());
            node.step.visit_nested_mut(&mut |_, child| {
                if failure.is_ok() {
                    failure = self.restrict(child);
                }
            });
            failure?;
            if self.properties.is_some() {
                self.see_only_in_arguments(&mut node.step);
            }
            self.rewrite(node, &mut steps)?;
        }
        traversal.steps = steps;
        Ok(())
    }

    /// Appends a step to `steps`, or the steps that stand for it, with the filters after it.
    fn rewrite(&self, mut node: StepNode, steps: &mut Vec<StepNode>) -> Result<()> {
        self.mark_new(&mut node.step);
        let position = node.position;
        let plain = |step| StepNode::new(step, position);
        match &mut node.step {
            // `io()` writes the whole graph, and elements that it reads belong to no part.
            Step::File(_) => {
                return Err(Error::unsupported(
                    "io() is about the whole graph; use a source without SubgraphStrategy and PartitionStrategy",
                ));
            }
            Step::Vertices { .. } | Step::EdgeVertex(_) => {
                steps.push(node);
                steps.extend(filter(&self.vertices).map(plain));
            }
            Step::Edges { .. } | Step::Expand { to_edges: true, .. } => {
                steps.push(node);
                steps.extend(self.edge_filters().into_iter().map(plain));
            }
            Step::Expand { to_edges, direction, .. } if self.tests_hops && self.edges.is_some() => {
                *to_edges = true;
                let end = match direction {
                    Direction::Out => EdgeEnd::Target,
                    Direction::In => EdgeEnd::Source,
                    Direction::Both => EdgeEnd::Other,
                };
                let labels = std::mem::take(&mut node.labels);
                let mut hop = vec![node];
                hop.extend(filter(&self.edges).map(plain));
                hop.push(plain(Step::EdgeVertex(end)));
                hop.extend(filter(&self.vertices).map(plain));
                let step = Step::Map { traversal: Traversal { steps: hop }, first: false };
                steps.push(StepNode { labels, ..StepNode::new(step, position) });
            }
            Step::Expand { .. } => {
                steps.push(node);
                steps.extend(filter(&self.vertices).map(plain));
            }
            Step::Properties(_) if self.properties.is_some() => {
                steps.push(node);
                steps.extend(self.property_filter().map(plain));
            }
            Step::Values(keys) if self.properties.is_some() => {
                steps.extend(self.seen_values(std::mem::take(keys)).map(plain));
                label_last(steps, node.labels);
            }
            Step::Has(conditions) if self.properties.is_some() => {
                steps.extend(self.seen_conditions(std::mem::take(conditions)).into_iter().map(plain));
                label_last(steps, node.labels);
            }
            Step::AddVertex { .. } if self.tests_new => {
                steps.push(node);
                steps.extend(filter(&self.vertices).map(plain));
            }
            Step::AddEdge { .. } if self.tests_new => {
                steps.push(node);
                steps.extend(filter(&self.edges).map(plain));
            }
            _ => steps.push(node),
        }
        Ok(())
    }

    /// The filters that keep the edges of the part.
    fn edge_filters(&self) -> Vec<Step> {
        let mut filters: Vec<Step> = filter(&self.edges).collect();
        if let (true, Some(vertices)) = (self.checks_ends, &self.vertices) {
            let end = |end: EdgeEnd| {
                let mut steps = vec![StepNode::new(Step::EdgeVertex(end), None)];
                steps.extend(vertices.steps.iter().cloned());
                Traversal { steps }
            };
            let ends = vec![end(EdgeEnd::Source), end(EdgeEnd::Target)];
            filters.push(Step::FilterTraversal(FilterKind::All, ends));
        }
        filters
    }

    /// Adds the property that marks the part to the elements that a step creates and to the properties that it writes.
    fn mark_new(&self, step: &mut Step) {
        let Some((key, value, meta)) = &self.mark else { return };
        let argument = || Argument::Operand(value.clone());
        let property = PropertyArgument {
            cardinality: None,
            key: key.clone(),
            key_from: None,
            value: argument(),
            meta: Vec::new(),
        };
        let mark_meta = |properties: &mut [PropertyArgument]| {
            if *meta {
                properties.iter_mut().for_each(|p| p.meta.push((key.clone(), argument())));
            }
        };
        match step {
            Step::AddVertex { properties, .. } => {
                mark_meta(properties);
                properties.push(property);
            }
            Step::AddEdge { properties, .. } => properties.push(property),
            Step::Property(written) => mark_meta(std::slice::from_mut(written)),
            Step::Upsert(upsert) => {
                let entry = MergeEntry { key: Value::String(key.clone()), value: value.clone(), cardinality: None };
                upsert.always.push(entry);
            }
            _ => {}
        }
    }
}

/// Adds the labels of a step to the last of the steps that have replaced it.
fn label_last(steps: &mut [StepNode], labels: Vec<Name>) {
    if let Some(last) = steps.last_mut() {
        last.labels.extend(labels);
    }
}

/// The filter by a criterion; nothing if there is no criterion.
fn filter(criterion: &Option<Traversal>) -> impl Iterator<Item = Step> + use<> {
    criterion.clone().map(|criterion| Step::FilterTraversal(FilterKind::All, vec![criterion])).into_iter()
}

/// `ReservedKeysVerificationStrategy`: fails if a property is written under one of these keys.
pub fn refuse_keys(traversal: &Traversal, reserved: &[Name]) -> Result<()> {
    let mut found = None;
    if !reserved.is_empty() {
        refuse_unknown_keys(traversal)?;
    }
    traversal.visit(&mut |node| {
        for key in written_keys(&node.step) {
            if reserved.contains(&key) && found.is_none() {
                found = Some((key, node.position));
            }
        }
    });
    match found {
        None => Ok(()),
        Some((key, position)) => Err(Error::unsupported(format!(
            "The provided traversal is setting a property key to a reserved word: {key}{}",
            position_text(position)
        ))),
    }
}

/// Fails if a property key comes from a nested traversal: such a key is not known before the traversal runs.
fn refuse_unknown_keys(traversal: &Traversal) -> Result<()> {
    let mut unknown = None;
    traversal.visit(&mut |node| {
        let properties = match &node.step {
            Step::AddVertex { properties, .. } | Step::AddEdge { properties, .. } => &properties[..],
            Step::Property(property) => std::slice::from_ref(property),
            _ => &[],
        };
        if properties.iter().any(|property| property.key_from.is_some()) {
            unknown.get_or_insert(node.position);
        }
    });
    match unknown {
        None => Ok(()),
        Some(position) => Err(Error::unsupported(format!(
            "ReservedKeysVerificationStrategy needs property keys that are known when the traversal is compiled: a \
             traversal gives one{}",
            position_text(position)
        ))),
    }
}

/// The property and meta-property keys under which a step writes.
fn written_keys(step: &Step) -> Vec<Name> {
    match step {
        Step::AddVertex { properties, .. } | Step::AddEdge { properties, .. } => {
            properties.iter().flat_map(keys_of_property).collect()
        }
        Step::Property(property) => keys_of_property(property).collect(),
        Step::Upsert(upsert) => upsert
            .maps()
            .flat_map(|map| match &map.from {
                MergeFrom::Entries(entries) => &entries[..],
                MergeFrom::Whole(_) => &[],
            })
            .filter_map(|entry| match &entry.key {
                Value::String(key) => Some(key.clone()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The key of a property, and the keys of its meta-properties.
fn keys_of_property(property: &PropertyArgument) -> impl Iterator<Item = Name> + '_ {
    std::iter::once(&property.key).chain(property.meta.iter().map(|(key, _)| key)).cloned()
}

/// `EdgeLabelVerificationStrategy`: fails if a step along edges names no labels.
pub fn need_edge_labels(traversal: &Traversal) -> Result<()> {
    let mut found = None;
    traversal.visit(&mut |node| {
        if matches!(&node.step, Step::Expand { labels, .. } if labels.is_empty()) && found.is_none() {
            found = Some(node.position);
        }
    });
    match found {
        None => Ok(()),
        Some(position) => Err(Error::unsupported(format!(
            "The provided traversal contains a vertex step without any specified edge label{}; name the labels",
            position_text(position)
        ))),
    }
}

/// The end of an error message that names a position; empty for bytecode from the wire.
fn position_text(position: Option<mangrove_gremlin::Position>) -> String {
    position.map(|at| format!(" at line {}, column {}", at.line, at.column)).unwrap_or_default()
}
