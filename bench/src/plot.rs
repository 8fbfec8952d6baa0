//! Simple line plots, as SVG.

use std::fmt::Write;

/// A line: a name and points of (x, y).
#[derive(Clone, Debug)]
pub struct Line {
    /// The name of the line.
    pub name: String,
    /// The points, in the order of x.
    pub points: Vec<(f64, f64)>,
}

/// Lines that share their axes. Both axes begin at zero.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The title of the y axis.
    pub title: String,
    /// The lines.
    pub lines: Vec<Line>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 30.0;
const COLORS: [&str; 5] = ["#1b7837", "#b2182b", "#2166ac", "#e08214", "#762a83"];

/// Draws panels one below the other; only the last one labels the x axis.
pub fn svg(x_title: &str, panels: &[Panel]) -> String {
    let height = HEIGHT * panels.len() as f64 + 20.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (index, panel) in panels.iter().enumerate() {
        draw(&mut text, panel, HEIGHT * index as f64);
    }
    label(&mut text, WIDTH / 2.0, height - 6.0, "middle", x_title);
    text.push_str("</svg>\n");
    text
}

fn draw(text: &mut String, panel: &Panel, y: f64) {
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    let largest = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(0.0, f64::max).max(1e-9);
    let (x_max, y_max) = (largest(|point| point.0), largest(|point| point.1));
    let (inner_width, inner_height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let (bottom, right) = (y + HEIGHT - BOTTOM, WIDTH - RIGHT);
    shape(text, &format!("<path d=\"M{LEFT} {} V{bottom} H{right}\" fill=\"none\" stroke=\"black\"/>", y + TOP));
    label(text, LEFT, y + 18.0, "start", &panel.title);
    label(text, LEFT - 6.0, y + TOP + 8.0, "end", &number(y_max));
    label(text, LEFT - 6.0, bottom, "end", "0");
    label(text, right, bottom + 16.0, "end", &number(x_max));
    for (index, line) in panel.lines.iter().enumerate() {
        let color = COLORS[index % COLORS.len()];
        let place = |&(px, py): &(f64, f64)| {
            format!("{:.1},{:.1}", LEFT + px / x_max * inner_width, bottom - py / y_max * inner_height)
        };
        let places: Vec<String> = line.points.iter().map(place).collect();
        shape(text, &format!("<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\"/>", places.join(" ")));
        let (x, y) = (right - 150.0, y + 18.0 + 14.0 * index as f64);
        shape(text, &format!("<rect x=\"{x}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{color}\"/>", y - 9.0));
        label(text, x + 14.0, y, "start", &line.name);
    }
}

fn shape(text: &mut String, shape: &str) {
    text.push_str(shape);
    text.push('\n');
}

fn label(text: &mut String, x: f64, y: f64, anchor: &str, what: &str) {
    let escaped = what.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(text, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{escaped}</text>")
        .expect("writing to a string does not fail");
}

fn number(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.2} G", v / 1e9),
        v if v >= 1e6 => format!("{:.2} M", v / 1e6),
        v if v >= 1e3 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_drawn_inside_its_panel() {
        let line = |name: &str| Line { name: name.to_owned(), points: vec![(0.0, 1.0), (1.0, 2e6), (2.0, 3.0)] };
        let panel = Panel { title: "a < b".to_owned(), lines: vec![line("on"), line("off")] };
        let text = svg("seconds", &[panel.clone(), panel]);
        assert_eq!(text.matches("<polyline").count(), 4);
        assert!(text.contains("a &lt; b") && text.contains("2.00 M"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
