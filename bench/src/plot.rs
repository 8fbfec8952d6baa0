//! Simple plots, as SVG: lines, and boxes with whiskers.

use std::fmt::Write;

/// A line: a name and points of (x, y).
#[derive(Clone, Debug)]
pub struct Line {
    /// The name of the line.
    pub name: String,
    /// The points, in the order of x.
    pub points: Vec<(f64, f64)>,
}

/// Lines that share their axes.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The title of the y axis.
    pub title: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// What the axes of a plot have the same distances for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Axes {
    /// Equal differences. Both axes begin at zero.
    Linear,
    /// Equal ratios. The axes begin at the least values of a panel; points must be above zero.
    Logarithmic,
}

impl Axes {
    /// The ends of an axis, and where between them a value is, from 0 to 1.
    fn place(self, values: impl Iterator<Item = f64> + Clone) -> (f64, f64, impl Fn(f64) -> f64) {
        let (low, high) = match self {
            Axes::Linear => (0.0, values.fold(0.0, f64::max).max(1e-9)),
            Axes::Logarithmic => {
                let low = values.clone().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
                if low.is_finite() { (low, values.fold(low, f64::max)) } else { (1.0, 1.0) }
            }
        };
        let part = move |value: f64| match self {
            Axes::Linear => value / high,
            Axes::Logarithmic if high > low => (value.max(low) / low).ln() / (high / low).ln(),
            Axes::Logarithmic => 0.5,
        };
        (low, high, part)
    }
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 20.0;
/// The width of the names of lines, right of a panel.
const LEGEND: f64 = 180.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 30.0;
const COLORS: [&str; 9] =
    ["#1b7837", "#b2182b", "#2166ac", "#e08214", "#762a83", "#35978f", "#c51b7d", "#4d4d4d", "#8c510a"];

/// Draws panels one below the other; only the last one labels the x axis.
pub fn svg(x_title: &str, axes: Axes, panels: &[Panel]) -> String {
    let height = HEIGHT * panels.len() as f64 + 20.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (index, panel) in panels.iter().enumerate() {
        draw(&mut text, axes, panel, HEIGHT * index as f64);
    }
    label(&mut text, (WIDTH - LEGEND) / 2.0, height - 6.0, "middle", x_title);
    text.push_str("</svg>\n");
    text
}

fn draw(text: &mut String, axes: Axes, panel: &Panel, y: f64) {
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    let (x_min, x_max, part_of_x) = axes.place(points().map(|point| point.0));
    let (y_min, y_max, part_of_y) = axes.place(points().map(|point| point.1));
    let (inner_width, inner_height) = (WIDTH - LEFT - LEGEND - RIGHT, HEIGHT - TOP - BOTTOM);
    let (bottom, right) = (y + HEIGHT - BOTTOM, LEFT + inner_width);
    shape(text, &format!("<path d=\"M{LEFT} {} V{bottom} H{right}\" fill=\"none\" stroke=\"black\"/>", y + TOP));
    label(text, LEFT, y + 18.0, "start", &panel.title);
    label(text, LEFT - 6.0, y + TOP + 8.0, "end", &number(y_max));
    label(text, LEFT - 6.0, bottom, "end", &number(y_min));
    if axes == Axes::Logarithmic {
        label(text, LEFT, bottom + 16.0, "start", &number(x_min));
    }
    label(text, right, bottom + 16.0, "end", &number(x_max));
    for (index, line) in panel.lines.iter().enumerate() {
        let color = COLORS[index % COLORS.len()];
        let place = |&(px, py): &(f64, f64)| {
            format!("{:.1},{:.1}", LEFT + part_of_x(px) * inner_width, bottom - part_of_y(py) * inner_height)
        };
        let places: Vec<String> = line.points.iter().map(place).collect();
        shape(text, &format!("<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\"/>", places.join(" ")));
        let (x, y) = (right + RIGHT, y + TOP + 8.0 + 14.0 * index as f64);
        shape(text, &format!("<rect x=\"{x}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{color}\"/>", y - 9.0));
        label(text, x + 14.0, y, "start", &line.name);
    }
}

/// A box: the spread of some values, all above zero.
#[derive(Clone, Debug)]
pub struct BoxPlot {
    /// The name below the box.
    pub name: String,
    /// The values, in any order.
    pub values: Vec<f64>,
}

/// The width of a box with the space around it.
const BOX_WIDTH: f64 = 92.0;

/// Draws boxes side by side. Whiskers end at the least and the greatest value; a box lies between the quartiles and has
/// a line at the median. The axis is logarithmic, and a dashed line marks 1.
pub fn boxes_svg(title: &str, boxes: &[BoxPlot]) -> String {
    let values = || boxes.iter().flat_map(|one| one.values.iter().copied());
    let (low, high) = values().fold((1.0f64, 1.0f64), |(low, high), value| (low.min(value), high.max(value)));
    let (low, high) = (low.max(1e-12).log10(), high.log10());
    let scale = (HEIGHT - TOP - BOTTOM) / (high - low).max(1e-9);
    let place = |value: f64| HEIGHT - BOTTOM - (value.max(1e-12).log10() - low) * scale;
    let width = LEFT + BOX_WIDTH * boxes.len() as f64 + RIGHT;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    label(&mut text, LEFT, 18.0, "start", title);
    for value in [low, 0.0, high].map(|power| 10f64.powf(power)) {
        label(&mut text, LEFT - 6.0, place(value) + 4.0, "end", &format!("{value:.2}"));
    }
    let (one, right) = (place(1.0), width - RIGHT);
    shape(&mut text, &format!("<path d=\"M{LEFT} {one:.1} H{right}\" stroke=\"gray\" stroke-dasharray=\"4\"/>"));
    for (index, BoxPlot { name, values }) in boxes.iter().enumerate() {
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { continue };
        let at = |share: f64| place(sorted[(last as f64 * share).round() as usize]);
        let [least, quarter, median, three, greatest] = [0.0, 0.25, 0.5, 0.75, 1.0].map(at);
        let middle = LEFT + BOX_WIDTH * (index as f64 + 0.5);
        let (from, to) = (middle - BOX_WIDTH / 5.0, middle + BOX_WIDTH / 5.0);
        let color = COLORS[index % COLORS.len()];
        shape(&mut text, &format!("<path d=\"M{middle} {least:.1} V{greatest:.1}\" stroke=\"{color}\"/>"));
        let box_path = format!("M{from} {quarter:.1} H{to} V{three:.1} H{from} Z");
        shape(&mut text, &format!("<path class=\"box\" d=\"{box_path}\" fill=\"white\" stroke=\"{color}\"/>"));
        shape(&mut text, &format!("<path d=\"M{from} {median:.1} H{to}\" stroke=\"{color}\" stroke-width=\"2\"/>"));
        label(&mut text, middle, HEIGHT - 10.0, "middle", name);
    }
    text.push_str("</svg>\n");
    text
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
        0.0 => "0".to_owned(),
        v if v < 0.1 => format!("{v:.2e}"),
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
        let text = svg("seconds", Axes::Linear, &[panel.clone(), panel]);
        assert_eq!(text.matches("<polyline").count(), 4);
        assert!(text.contains("a &lt; b") && text.contains("2.00 M"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn equal_ratios_have_equal_distances_on_logarithmic_axes() {
        let line = |points: &[(f64, f64)]| Line { name: "one".to_owned(), points: points.to_vec() };
        let panel = |points: &[(f64, f64)]| Panel { title: "ms".to_owned(), lines: vec![line(points)] };
        let text = svg("vertices", Axes::Logarithmic, &[panel(&[(1e3, 0.01), (1e4, 1.0), (1e5, 100.0)])]);
        // The middle of the axes, which are 610 and 200 long.
        assert!(text.contains("points=\"90.0,230.0 395.0,130.0 700.0,30.0\""), "{text}");
        assert!(text.contains("1.00e-2") && text.contains("100.0 k"), "{text}");
        let text = svg("vertices", Axes::Logarithmic, &[panel(&[(1e3, 2.0)]), panel(&[])]);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn every_box_is_drawn_on_the_logarithmic_axis() {
        let plot = |name: &str, values: &[f64]| BoxPlot { name: name.to_owned(), values: values.to_vec() };
        let text = boxes_svg("faster", &[plot("one", &[0.5, 1.0, 100.0]), plot("two", &[2.0]), plot("none", &[])]);
        assert_eq!(text.matches("class=\"box\"").count(), 2);
        assert!(text.contains(">0.50<") && text.contains(">100.00<"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
