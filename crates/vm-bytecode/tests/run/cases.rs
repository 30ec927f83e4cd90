//! The tables of cases, `tests/ops/*.cases`: what functions of the fixtures return.
//!
//! Reads them as text only, with nothing but the standard library: the tests of this crate run them through the
//! interpreter, and `cargo xtask conformance vm` through an installed `iree-run-module`. `tests/ops/README.md` describes
//! the format.

/// A table: the cases of one fixture.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Names of the modules that are loaded before the fixture.
    pub(crate) with: Vec<String>,
    /// The cases in order.
    pub(crate) cases: Vec<Case>,
}

/// One call and what it gives.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Line of the table, from 1.
    pub(crate) line: usize,
    /// Name of the exported function.
    pub(crate) function: String,
    /// Arguments in order, as written.
    pub(crate) arguments: Vec<String>,
    /// Whether the reference runtime gives the same; `false` where it crashes, hangs or is known to be wrong.
    pub(crate) is_shared: bool,
    /// What the call gives.
    pub(crate) outcome: Outcome,
}

/// What a call gives.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The results in order, as written. `~` before a float says that it is rounded.
    Results(Vec<String>),
    /// A failure with this status code, by its name.
    Error(String),
}

impl Table {
    /// Name of the module that stands for native functions, which only the tests of this crate have.
    pub(crate) const HOST: &str = "host";

    /// Reads a table.
    ///
    /// # Errors
    /// Fails with the line and what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut table = Self::default();
        for (index, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(modules) = line.strip_prefix("with ") {
                table
                    .with
                    .extend(modules.split_whitespace().map(str::to_owned));
                continue;
            }
            let case = Case::parse(index + 1, line)
                .ok_or_else(|| format!("line {}: not a case: {line}", index + 1))?;
            table.cases.push(case);
        }
        Ok(table)
    }
}

impl Case {
    fn parse(line: usize, text: &str) -> Option<Self> {
        let (function, rest) = text.split_once('(')?;
        let (arguments, rest) = rest.split_once(") ")?;
        let (arrow, outcome) = rest.split_once(' ')?;
        let is_shared = match arrow {
            "->" => true,
            "=>" => false,
            _ => return None,
        };
        let outcome = match outcome.strip_prefix("error ") {
            Some(code) => Outcome::Error(code.to_owned()),
            None if outcome == "()" => Outcome::Results(Vec::new()),
            None => Outcome::Results(values(outcome)),
        };
        Some(Self {
            line,
            function: function.to_owned(),
            arguments: values(arguments),
            is_shared,
            outcome,
        })
    }
}

fn values(text: &str) -> Vec<String> {
    text.split(", ")
        .filter(|value| !value.is_empty())
        .map(str::to_owned)
        .collect()
}
