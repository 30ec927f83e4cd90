//! The plot of the ratios, as SVG: one horizontal bar for each line, on a logarithmic scale.
//!
//! A bar runs from 1 (as fast as the reference) to the ratio: to the left is faster. A tick across it marks the bar that
//! the line has to reach.

use std::fmt::Write;

use crate::bench::versus::Line;

/// The ratios at the left and right ends of the scale.
const SCALE: (f64, f64) = (0.05, 4.0);
/// The ratios with a line and a number.
const MARKS: [f64; 7] = [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0];
/// Where the scale begins and how wide it is, in pixels; the names are to its left.
const LEFT: f64 = 190.0;
const WIDTH: f64 = 480.0;
/// The room to the right of the scale, for the ratios.
const RIGHT: f64 = 70.0;
/// The height of a line.
const STEP: f64 = 20.0;
/// The height of the bar in it.
const THICKNESS: f64 = 12.0;

/// How a text is written.
#[derive(Clone, Copy)]
enum Style {
    Plain,
    Bold,
    /// With its middle where it is put.
    Centered,
}

const MET: &str = "#2a7f62";
const MISSED: &str = "#c8553d";
const GRID: &str = "#d8d8d8";
const TEXT: &str = "#222222";

/// Draws the lines, which are in the order of their groups.
pub(super) fn draw(lines: &[Line]) -> String {
    let mut body = String::new();
    let mut y = 30.0;
    let mut group = None;
    for line in lines {
        if group != Some(line.group) {
            group = Some(line.group);
            y += STEP + 8.0;
            text(&mut body, (8.0, y), Style::Bold, line.group.title());
        }
        y += STEP;
        bar(&mut body, y, line);
    }
    let bottom = y + 10.0;
    let (width, height) = (LEFT + WIDTH + RIGHT, bottom + 30.0);

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Our cost over the reference's, logarithmic: left of 1 is less</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    for mark in MARKS {
        let (color, thickness) = if mark == 1.0 {
            (TEXT, 1.5)
        } else {
            (GRID, 1.0)
        };
        vertical(&mut svg, position(mark), (30.0, bottom), color, thickness);
        let label = (position(mark), bottom + 16.0);
        text(&mut svg, label, Style::Centered, &mark.to_string());
    }
    let heading = "ours / reference (tick: the bar to reach)";
    text(&mut svg, (LEFT, 20.0), Style::Plain, heading);
    svg.push_str(&body);
    svg.push_str("</svg>\n");
    svg
}

/// Draws one line around the base line of its text.
fn bar(svg: &mut String, y: f64, line: &Line) {
    let ratio = line.comparison().ratio;
    let (from, to) = (position(ratio.min(1.0)), position(ratio.max(1.0)));
    let color = if line.meets_its_bar() { MET } else { MISSED };
    let top = y - THICKNESS + 2.0;
    text(svg, (20.0, y), Style::Plain, &line.name);
    put(
        svg,
        format_args!(
            "<rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{THICKNESS}\" fill=\"{color}\"/>",
            (to - from).max(1.0)
        ),
    );
    let span = (top - 2.0, top + THICKNESS + 2.0);
    vertical(svg, position(line.bar), span, TEXT, 2.0);
    text(
        svg,
        (LEFT + WIDTH + 12.0, y),
        Style::Plain,
        &format!("{ratio:.2}"),
    );
}

/// Returns where a ratio is on the scale; what is beyond an end is at it.
fn position(ratio: f64) -> f64 {
    let (least, greatest) = SCALE;
    let share = (ratio.clamp(least, greatest) / least).ln() / (greatest / least).ln();
    LEFT + share * WIDTH
}

fn vertical(svg: &mut String, x: f64, (top, bottom): (f64, f64), color: &str, width: f64) {
    put(
        svg,
        format_args!(
            "<line x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{color}\" stroke-width=\"{width}\"/>"
        ),
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), style: Style, text: &str) {
    let style = match style {
        Style::Plain => "",
        Style::Bold => " font-weight=\"bold\"",
        Style::Centered => " text-anchor=\"middle\"",
    };
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    put(
        svg,
        format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{TEXT}\"{style}>{text}</text>"),
    );
}

fn put(svg: &mut String, element: std::fmt::Arguments<'_>) {
    writeln!(svg, "{element}").expect("a String takes any text");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::versus::Group;
    use crate::bench::versus::tests::line;

    #[test]
    fn the_scale_is_logarithmic_and_ends() {
        let middle = (SCALE.0 * SCALE.1).sqrt();
        assert!((position(middle) - (LEFT + WIDTH / 2.0)).abs() < 1e-9);
        assert_eq!(position(0.0), LEFT);
        assert_eq!(position(1e9), LEFT + WIDTH);
    }

    #[test]
    fn every_line_has_a_bar_and_every_group_a_title() {
        let lines = [
            line(Group::OneThread, "a<b", 0.5, (1.0, 4.0)),
            line(Group::OneThread, "c", 0.5, (3.0, 1.0)),
            line(Group::Process, "d", 1.0, (1.0, 1.0)),
        ];
        let svg = draw(&lines);
        assert_eq!(svg.matches(MET).count(), 2);
        assert_eq!(svg.matches(MISSED).count(), 1);
        assert_eq!(svg.matches("font-weight=\"bold\"").count(), 2);
        assert!(svg.contains("a&lt;b") && svg.contains(">0.25<"));
        let opened = svg.matches('<').count();
        assert_eq!(opened, svg.matches('>').count());
    }
}
