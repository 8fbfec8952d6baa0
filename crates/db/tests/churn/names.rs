//! The names of the model as the graph numbers them, and tags of elements.

use mangrove::{Database, EdgeId, GraphView, KeyId, LabelFilter, LabelSetId, Value, ValueRows, VertexId};

use crate::model::{EDGE_LABELS, KEYS, TAG, Tag, VERTEX_LABELS};

/// A result whose error is a text.
pub type Outcome<T> = Result<T, String>;

/// Labels and keys by their place in the model's arrays.
pub struct Names {
    pub vertex_labels: Vec<LabelSetId>,
    pub edge_labels: Vec<LabelSetId>,
    pub keys: Vec<KeyId>,
    pub tag: KeyId,
}

impl Names {
    pub fn of(db: &Database) -> Self {
        let catalog = db.catalog();
        Names {
            vertex_labels: VERTEX_LABELS.iter().map(|name| catalog.intern_label_text(name)).collect(),
            edge_labels: EDGE_LABELS.iter().map(|name| catalog.intern_label_text(name)).collect(),
            keys: KEYS.iter().map(|name| catalog.intern_key(name)).collect(),
            tag: catalog.intern_key(TAG),
        }
    }

    pub fn vertex_filter(&self, label: Option<usize>) -> LabelFilter {
        filter(&self.vertex_labels, label)
    }

    pub fn edge_filter(&self, label: Option<usize>) -> LabelFilter {
        filter(&self.edge_labels, label)
    }

    /// The tags of vertices, one each.
    pub fn vertex_tags(&self, view: &dyn GraphView, vertices: &[VertexId]) -> mangrove::Result<Vec<Tag>> {
        let mut rows = ValueRows::default();
        view.vertex_values(vertices, self.tag, &mut rows)?;
        Ok(tags_of(vertices.len(), &rows))
    }

    /// The tags of edges, one each.
    pub fn edge_tags(&self, view: &dyn GraphView, edges: &[EdgeId]) -> mangrove::Result<Vec<Tag>> {
        let mut rows = ValueRows::default();
        view.edge_values(edges, self.tag, &mut rows)?;
        Ok(tags_of(edges.len(), &rows))
    }
}

fn filter(labels: &[LabelSetId], label: Option<usize>) -> LabelFilter {
    label.map_or(LabelFilter::Any, |label| LabelFilter::Sets([labels[label]].into()))
}

/// The tag of an element that does not exist.
pub const NO_TAG: Tag = Tag::MAX;

fn tags_of(count: usize, rows: &ValueRows) -> Vec<Tag> {
    let mut tags = vec![NO_TAG; count];
    for (row, value) in rows.row.iter().zip(&rows.value) {
        tags[*row as usize] = tag_of(value);
    }
    tags
}

pub fn tag_of(value: &Value) -> Tag {
    match value {
        Value::I64(tag) => *tag as Tag,
        _ => NO_TAG,
    }
}
