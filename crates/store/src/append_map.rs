//! A small map that only grows: the columns and adjacency tables of a page.
//!
//! A page has a handful of them, looked up once a batch and page, so a walk over a few nodes of four
//! entries beats a hash table and needs no lock. Entries fill in order and each is set once; two threads
//! that add the same key meet at the first empty entry, where one of them wins, so a key is never there
//! twice. Positions are stable: cursors keep them.

use std::sync::OnceLock;

const NODE_ENTRIES: usize = 4;

#[derive(Debug)]
struct Node<V> {
    /// Inline, so that a look-up in a page follows no pointer for the first few.
    entries: [OnceLock<(u32, V)>; NODE_ENTRIES],
    next: OnceLock<Box<Node<V>>>,
}

impl<V> Default for Node<V> {
    fn default() -> Self {
        Node { entries: [const { OnceLock::new() }; NODE_ENTRIES], next: OnceLock::new() }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct AppendMap<V> {
    first: Node<V>,
}

impl<V> Default for AppendMap<V> {
    fn default() -> Self {
        AppendMap { first: Node::default() }
    }
}

impl<V> AppendMap<V> {
    /// The value under a key.
    #[inline]
    pub(crate) fn get(&self, key: u32) -> Option<&V> {
        self.iter().find(|(k, _)| *k == key).map(|(_, value)| value)
    }

    /// The entries in the order they were added.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &V)> {
        let mut node = &self.first;
        let mut at = 0;
        std::iter::from_fn(move || {
            if at == NODE_ENTRIES {
                node = node.next.get()?;
                at = 0;
            }
            let (key, value) = node.entries[at].get()?;
            at += 1;
            Some((*key, value))
        })
    }

    /// Calls `each` with position, key and value of the entries in their order until it returns false; whether
    /// it never did. For hot paths, where the iterator does not compile to a plain loop.
    #[inline]
    pub(crate) fn each_while<'a>(&'a self, mut each: impl FnMut(u32, u32, &'a V) -> bool) -> bool {
        let (mut node, mut position) = (&self.first, 0);
        loop {
            for entry in &node.entries {
                let Some((key, value)) = entry.get() else { return true };
                if !each(position, *key, value) {
                    return false;
                }
                position += 1;
            }
            match node.next.get() {
                Some(next) => node = next,
                None => return true,
            }
        }
    }

    /// The value under a key, made where it is missing.
    pub(crate) fn get_or_insert_with(&self, key: u32, make: impl Fn() -> V) -> &V {
        let mut node = &self.first;
        loop {
            for entry in &node.entries {
                let (k, value) = entry.get_or_init(|| (key, make()));
                if *k == key {
                    return value;
                }
            }
            node = node.next.get_or_init(Box::default);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_added_once_and_found_in_order() {
        let map = AppendMap::default();
        for key in (0..20).chain(0..20) {
            map.get_or_insert_with(key * 7, || key);
        }
        assert_eq!(map.get(35), Some(&5));
        assert_eq!(map.get(36), None);
        assert!(map.iter().map(|(_, v)| *v).eq(0..20));
        let mut seen = Vec::new();
        assert!(!map.each_while(|position, key, value| {
            seen.push((position, key, *value));
            position < 9
        }));
        assert!(seen.into_iter().eq((0..10).map(|n| (n, n * 7, n))));
        assert!(map.each_while(|_, _, _| true));
    }
}
