//! The text of `explain()` as a tree, for programs that show plans in another form.
//!
//! The text is all that a server sends. It begins with lines about the whole plan, up to the one about the path. Each
//! line after it is an operator, or a part of a scope, and what is inside is indented.

use std::iter::Peekable;

use crate::physical::Flow;

/// A plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanTree {
    /// What is said about it as a whole: the topic of each line, and the rest of the line.
    pub about: Vec<(String, String)>,
    /// The outermost operators.
    pub operators: Vec<PlanNode>,
}

/// An operator, or a part of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanNode {
    /// What it does.
    pub text: String,
    /// How the stream goes through it. A part of a scope is none of these, and has [`Flow::Sequential`].
    pub flow: Flow,
    /// The rows that are expected to leave it, if that was estimated.
    pub expected_rows: Option<u64>,
    /// True if it is a part of the scope around it, as the body of a loop is. Then its operators are inside.
    pub is_part: bool,
    /// The parts of a scope, or the operators of a part.
    pub inside: Vec<PlanNode>,
}

/// The lines that begin a part of a scope.
const PARTS: [&str; 10] = [
    "first result of",
    "whether there is a result of",
    "scope",
    "branch",
    "otherwise",
    "always",
    "members",
    "body",
    "until",
    "on several nodes",
];

/// The words that a longer line begins with, if it begins a part.
const BEGINNINGS_OF_PARTS: [&str; 4] = ["option ", "until ", "emit ", OTHERWISE];

/// The words before the number of vertices with which an operator does not work.
pub(super) const OTHERWISE: &str = "on several nodes, or if indexes find";

/// The last topic of the lines about the whole plan.
const LAST_TOPIC: &str = "path";

impl PlanTree {
    /// Reads the answer to `explain()`.
    pub fn read(text: &str) -> Self {
        let topics = text.lines().map_while(|line| line.split_once(": "));
        let about = topics.clone().position(|(topic, _)| topic == LAST_TOPIC).map_or(0, |last| last + 1);
        let lines = text.lines().skip(about).map(|line| (line.len() - line.trim_start().len(), line.trim_start()));
        PlanTree {
            about: topics.take(about).map(|(topic, said)| (topic.to_owned(), said.to_owned())).collect(),
            operators: nodes(&mut lines.peekable(), 0, false),
        }
    }
}

/// Takes the lines that are indented by at least so much. `in_operator`: they are inside an operator.
fn nodes<'a>(
    lines: &mut Peekable<impl Iterator<Item = (usize, &'a str)>>,
    indent: usize,
    in_operator: bool,
) -> Vec<PlanNode> {
    let mut nodes = Vec::new();
    while let Some((at, line)) = lines.next_if(|(at, _)| *at >= indent) {
        let is_part = in_operator && is_part(line);
        let inside = self::nodes(lines, at + 1, !is_part);
        let (line, expected_rows) = split_expected(line);
        let (text, flow) = split_flow(line);
        nodes.push(PlanNode { text: text.to_owned(), flow, expected_rows, is_part, inside });
    }
    nodes
}

/// What follows an operator, if the stream does not go through it message by message: ` (barrier)`.
pub(super) fn flow_text(flow: Flow) -> &'static str {
    match flow {
        Flow::Sequential => "",
        Flow::Barrier => " (barrier)",
        Flow::Branch => " (branch)",
    }
}

/// An operator, and how the stream goes through it.
fn split_flow(line: &str) -> (&str, Flow) {
    let shown = |flow: Flow| Some((line.strip_suffix(flow_text(flow))?, flow));
    shown(Flow::Barrier).or_else(|| shown(Flow::Branch)).unwrap_or((line, Flow::Sequential))
}

/// What follows an operator from which so many rows are expected: ` (~98000 rows)`.
pub(super) fn expected_text(rows: f64) -> String {
    format!("{EXPECTED_BEGIN}{rows:.0}{EXPECTED_END}")
}

const EXPECTED_BEGIN: &str = " (~";
const EXPECTED_END: &str = " rows)";

/// An operator, and the rows that are expected to leave it.
fn split_expected(line: &str) -> (&str, Option<u64>) {
    let split = line.strip_suffix(EXPECTED_END).and_then(|line| line.rsplit_once(EXPECTED_BEGIN));
    match split.and_then(|(text, rows)| Some((text, rows.parse().ok()?))) {
        Some((text, rows)) => (text, Some(rows)),
        None => (line, None),
    }
}

fn is_part(line: &str) -> bool {
    PARTS.contains(&line) || BEGINNINGS_OF_PARTS.iter().any(|begin| line.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_operators_and_the_parts_inside_them() {
        let text = "\
rules: hop over edges
path: none; on one thread: it writes
until
repeat (branch)
  body
    expand out (~98000 rows)
    has 'a: (~b rows)'
    dedup (barrier) (~9 rows)
  until 2 iterations
results
";
        let node = |text: &str, is_part, inside| PlanNode {
            text: text.to_owned(),
            flow: Flow::Sequential,
            expected_rows: None,
            is_part,
            inside,
        };
        let hop = PlanNode { expected_rows: Some(98_000), ..node("expand out", false, Vec::new()) };
        let about = [("rules", "hop over edges"), ("path", "none; on one thread: it writes")];
        let once = node("dedup", false, Vec::new());
        let once = PlanNode { flow: Flow::Barrier, expected_rows: Some(9), ..once };
        let body = vec![hop, node("has 'a: (~b rows)'", false, Vec::new()), once];
        let parts = vec![node("body", true, body), node("until 2 iterations", true, Vec::new())];
        assert_eq!(
            PlanTree::read(text),
            PlanTree {
                about: about.map(|(topic, said)| (topic.to_owned(), said.to_owned())).to_vec(),
                operators: vec![
                    node("until", false, Vec::new()),
                    PlanNode { flow: Flow::Branch, ..node("repeat", false, parts) },
                    node("results", false, Vec::new())
                ],
            }
        );
    }

    #[test]
    fn a_text_of_another_server_has_no_lines_about_the_whole() {
        let tree = PlanTree::read("Traversal Explanation: x\nfinal: y");
        assert_eq!((tree.about.len(), tree.operators.len()), (0, 2));
    }
}
