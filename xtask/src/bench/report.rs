//! Tables as text that is Markdown too, and the document that keeps them.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};

/// A table: a row of titles and rows of as many cells.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table without rows.
    pub(super) fn new(titles: &[&str]) -> Self {
        let titles = titles.iter().map(ToString::to_string).collect();
        Self { rows: vec![titles] }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (index, row) in self.rows.iter().enumerate() {
            for (cell, width) in row.iter().zip(&widths) {
                write!(f, "| {cell:width$} ")?;
            }
            writeln!(f, "|")?;
            if index == 0 {
                for width in &widths {
                    write!(f, "|{}", "-".repeat(width + 2))?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// Shows a time in nanoseconds with the unit that suits it.
pub(super) fn time(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns => (ns / 1e6, "ms"),
    };
    let decimals = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// Puts a text into a document, between the comments `<!-- name -->` and `<!-- /name -->`.
///
/// # Errors
///
/// When the file cannot be read or written, or does not have the two comments.
pub(super) fn renew(path: &Path, name: &str, text: &str) -> Result<()> {
    let shown = || path.display().to_string();
    let old = std::fs::read_to_string(path).with_context(shown)?;
    let new = replaced(&old, name, text)
        .with_context(|| format!("{} has no section `{name}`", path.display()))?;
    std::fs::write(path, new).with_context(shown)
}

/// Returns the document with another text in a section.
fn replaced(document: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = document.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!(
        "{before}{begin}\n{}\n\n{end}{after}",
        text.trim_end()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned() {
        let mut table = Table::new(&["a", "long"]);
        table.row(["xyz".to_owned(), String::new()]);
        assert_eq!(
            table.to_string(),
            "| a   | long |\n|-----|------|\n| xyz |      |\n"
        );
    }

    #[test]
    fn a_time_has_three_digits() {
        for (nanoseconds, text) in [
            (1.234, "1.23 ns"),
            (1234.0, "1.23 us"),
            (56_789.0, "56.8 us"),
            (2.5e6, "2.50 ms"),
            (345e6, "345 ms"),
        ] {
            assert_eq!(time(nanoseconds), text);
        }
    }

    #[test]
    fn a_section_is_replaced_and_nothing_else() {
        let document = "a\n<!-- t -->\nold\n<!-- /t -->\nb\n";
        let new = replaced(document, "t", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- t -->\n\nnew\n\n<!-- /t -->\nb\n");
        assert_eq!(replaced(&new, "t", "new").as_deref(), Some(new.as_str()));
        assert_eq!(replaced(document, "u", "new"), None);
    }
}
