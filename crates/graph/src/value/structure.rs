//! The values that `tree()` and `subgraph()` build: a [`Tree`] and a [`GraphValue`].
//!
//! Both are results for clients; neither can be stored in a property. While a query runs, their vertices and edges are
//! ids. Before a client gets them, the ids are replaced by detached elements. The code that builds them keeps keys and
//! elements distinct under `compare::equivalent`; no function here checks it.

use super::Value;

/// A key with a tree below it, and so on. A key occurs once on its level. The keys of a level are in the order in which
/// they were first met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// The keys of this level, each with the tree below it.
    pub branches: Vec<(Value, Tree)>,
}

impl Tree {
    /// The greatest depth of a tree, in levels. Trees are compared, encoded and dropped by recursion, so the code that
    /// builds a tree checks the depth.
    pub const DEPTH_MAX: usize = 128;

    /// The number of keys on all levels.
    pub fn size(&self) -> usize {
        self.branches.iter().map(|(_, below)| 1 + below.size()).sum()
    }

    /// Calls `f` for every key on every level: first for a key, then for the keys below it.
    pub fn visit<'a>(&'a self, f: &mut dyn FnMut(&'a Value)) {
        for (key, below) in &self.branches {
            f(key);
            below.visit(f);
        }
    }

    /// The tree with its keys replaced by the results of `next`, which is called in the order of [`Tree::visit`].
    pub fn with_keys(&self, next: &mut dyn FnMut(&Value) -> Value) -> Tree {
        Tree { branches: self.branches.iter().map(|(key, below)| (next(key), below.with_keys(next))).collect() }
    }
}

/// A part of a graph, as `subgraph()` gathers it: edges, and the vertices at their ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphValue {
    /// The vertices, each once.
    pub vertices: Vec<Value>,
    /// The edges, each once.
    pub edges: Vec<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare;

    #[test]
    fn trees_are_equal_whatever_the_order_of_their_branches() {
        let leaf = |n: i32| (Value::I32(n), Tree::default());
        let tree = |branches| Value::Tree(Tree { branches }.into());
        let (a, b) = (tree(vec![leaf(1), leaf(2)]), tree(vec![leaf(2), leaf(1)]));
        assert!(compare::equal(&a, &b) && compare::equivalent(&a, &b));
        let deeper = tree(vec![leaf(1), (Value::I32(2), Tree { branches: vec![leaf(3)] })]);
        assert!(!compare::equal(&a, &deeper));
        assert_eq!(compare::order(&a, &b), std::cmp::Ordering::Equal);
        let hash = |value: &Value| {
            let mut state = std::hash::DefaultHasher::new();
            compare::hash_equivalent(value, &mut state);
            std::hash::Hasher::finish(&state)
        };
        assert_eq!(hash(&a), hash(&b));
        assert_ne!(hash(&a), hash(&deeper));
    }

    #[test]
    fn keys_are_replaced_in_the_order_they_are_visited() {
        let below = Tree { branches: vec![(Value::I32(2), Tree::default())] };
        let tree = Tree { branches: vec![(Value::I32(1), below), (Value::I32(3), Tree::default())] };
        let mut seen = Vec::new();
        tree.visit(&mut |key| seen.push(key.clone()));
        assert_eq!(seen, [Value::I32(1), Value::I32(2), Value::I32(3)]);
        assert_eq!(tree.size(), 3);
        let mut n = 10;
        let replaced = tree.with_keys(&mut |_| {
            n += 1;
            Value::I32(n)
        });
        assert!(replaced.get(&Value::I32(11)).and_then(|below| below.get(&Value::I32(12))).is_some());
    }
}
