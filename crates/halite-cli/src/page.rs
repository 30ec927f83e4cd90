//! Text for people: indented lines, columns and durations.
//!
//! Names come from files that anybody may have made, so characters that a terminal would obey are escaped. Columns are
//! so few and plain that no library for tables is used.
#![forbid(unsafe_code)]

use core::fmt::{self, Write as _};
use std::time::Duration;

/// Lines of text, written one after another.
#[derive(Debug, Default)]
pub(crate) struct Page {
    text: String,
}

impl Page {
    /// Adds a line, indented by this many steps.
    pub(crate) fn line(&mut self, indent: usize, text: impl fmt::Display) {
        let start = self.text.len();
        let _ = write!(self.text, "{text}");
        let line = self.text.split_off(start);
        for _ in 0..indent {
            self.text.push_str("  ");
        }
        for character in line.chars() {
            if character.is_control() {
                self.text.extend(character.escape_default());
            } else {
                self.text.push(character);
            }
        }
        let kept = self.text.trim_end_matches(' ').len();
        self.text.truncate(kept);
        self.text.push('\n');
    }

    /// Adds a line with a label and a value beside it.
    pub(crate) fn field(&mut self, indent: usize, label: &str, value: impl fmt::Display) {
        self.line(indent, format_args!("{label:<16}{value}"));
    }

    /// Adds rows of columns, all but the first aligned to the right.
    pub(crate) fn table(&mut self, indent: usize, rows: &[Vec<String>]) {
        let column_count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..column_count).map(width).collect();
        for row in rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let _ = match column {
                    0 => write!(line, "{cell:<width$}"),
                    _ => write!(line, "  {cell:>width$}"),
                };
            }
            self.line(indent, line);
        }
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Returns a number of things in words, `1 byte` or `2 bytes`.
pub(crate) fn count(number: impl fmt::Display, noun: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// A duration with a unit that suits it and four digits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Human(pub(crate) Duration);

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_secs_f64() * 1e9;
        let (value, unit) = match nanoseconds {
            below if below < 1e3 => (nanoseconds, "ns"),
            below if below < 1e6 => (nanoseconds / 1e3, "us"),
            below if below < 1e9 => (nanoseconds / 1e6, "ms"),
            _ => (nanoseconds / 1e9, "s"),
        };
        let digits = match value {
            below if below < 10.0 => 3,
            below if below < 100.0 => 2,
            below if below < 1000.0 => 1,
            _ => 0,
        };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_a_terminal_obeys_are_escaped() {
        let mut page = Page::default();
        page.line(1, "a\u{1b}[31mb\nc ");
        assert_eq!(page.text(), "  a\\u{1b}[31mb\\nc\n");
    }

    #[test]
    fn columns_line_up() {
        let mut page = Page::default();
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        page.table(0, &[row(&["name", "calls"]), row(&["a", "12345678"])]);
        assert_eq!(page.text(), "name     calls\na     12345678\n");
    }

    #[test]
    fn one_thing_is_singular() {
        assert_eq!(count(0, "ref"), "0 refs");
        assert_eq!(count(1, "ref"), "1 ref");
        assert_eq!(count(11, "ref"), "11 refs");
    }

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        let text = |nanoseconds| Human(Duration::from_nanos(nanoseconds)).to_string();
        assert_eq!(text(0), "0.000 ns");
        assert_eq!(text(1234), "1.234 us");
        assert_eq!(text(56_780_000), "56.78 ms");
        assert_eq!(text(2_500_000_000_000), "2500 s");
    }
}
