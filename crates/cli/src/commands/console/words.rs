//! The names that completion offers besides the words of the language. The session reads them from the graph.

/// Names that are not words of the language.
#[derive(Clone, Debug, Default)]
pub struct CompletionWords {
    /// Labels of vertices and edges.
    pub labels: Vec<String>,
    /// Property keys.
    pub keys: Vec<String>,
    /// Traversal sources.
    pub sources: Vec<String>,
    /// Services of `call()`.
    pub services: Vec<String>,
    /// Parameters and variables.
    pub variables: Vec<String>,
}
