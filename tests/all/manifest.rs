//! Rows of a fixture manifest: what to run, and when what came out is right.
//!
//! `tests/fixtures/README.md` says what each field means. The rule of [`Row::judge`] is shared by the cross-crate tests
//! and by `cargo xtask conformance`, which includes this file; it holds nothing that runs a program.

use std::path::Path;

use serde_json::Value;

/// Stands for the folder of the built sample plugins in an argument.
const PLUGINS: &str = "{plugins}";
/// Begins an argument that names a plugin.
const PLUGIN_FLAG: &str = "--executable_plugin=";

/// One run of one function of one module, with what the compiler's own release printed.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The execution model the module was compiled for: `inline` or `async`.
    pub(crate) model: String,
    /// The compiler's release, for example `3.13.0`.
    pub(crate) release: String,
    /// The name of the compiler flags, for example `llvm-cpu`.
    pub(crate) config: String,
    /// The name of the program.
    pub(crate) program: String,
    /// The module file, relative to the manifest's folder.
    pub(crate) module: String,
    /// The processor its native code is for, `None` when it has none or the manifest does not say.
    pub(crate) machine: Option<String>,
    /// The flags of the run, see [`Row::arguments`].
    pub(crate) args: Vec<String>,
    /// The recorded exit status; `None` where the module could not be run.
    pub(crate) rc: Option<i32>,
    /// The recorded standard output.
    pub(crate) stdout: String,
    /// Texts that the error of a failing run must hold.
    pub(crate) stderr_has: Vec<String>,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// The exit status, `None` when a signal or a time limit ended the program.
    pub(crate) status: Option<i32>,
    /// The standard output.
    pub(crate) stdout: String,
    /// The standard error.
    pub(crate) stderr: String,
}

impl Row {
    /// Parses one line of a manifest.
    ///
    /// # Errors
    ///
    /// When the line is no JSON object or a field is missing or has another type; the text names the field.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        Ok(Self {
            model: text(&value, "model")?,
            release: text(&value, "release")?,
            config: text(&value, "config")?,
            program: text(&value, "program")?,
            module: text(&value, "module")?,
            machine: optional(&value, "machine", text)?,
            args: texts(&value, "args")?,
            rc: optional(&value, "rc", status)?,
            stdout: text(&value, "stdout")?,
            stderr_has: optional(&value, "stderr_has", texts)?.unwrap_or_default(),
        })
    }

    /// Tells whether the run loads a plugin.
    #[must_use]
    pub(crate) fn needs_plugin(&self) -> bool {
        self.args
            .iter()
            .any(|argument| argument.starts_with(PLUGIN_FLAG))
    }

    /// Returns the flags of the run, with the folder of the built plugins put in.
    #[must_use]
    pub(crate) fn arguments(&self, plugins: &Path) -> Vec<String> {
        let plugins = plugins.to_string_lossy();
        self.args
            .iter()
            .map(|argument| argument.replace(PLUGINS, &plugins))
            .collect()
    }

    /// Tells whether the module holds native code that this machine cannot run.
    #[must_use]
    pub(crate) fn is_foreign(&self) -> bool {
        self.machine
            .as_deref()
            .is_some_and(|machine| machine != std::env::consts::ARCH)
    }

    /// Judges a run of `halite run` with this row's arguments.
    ///
    /// A run that the reference finished must finish and print the same bytes. A run that it refused, or a module for
    /// another machine, must end with status 1 (not by a signal, a panic or a time limit) and an error that holds every
    /// text of `stderr_has`, or the status of a wrong machine.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the run.
    pub(crate) fn judge(&self, run: &Run) -> Result<(), String> {
        if self.rc == Some(0) && !self.is_foreign() {
            return if run.status == Some(0) && run.stdout == self.stdout {
                Ok(())
            } else {
                Err(format!(
                    "expected status 0 and {:?}, found {}",
                    self.stdout,
                    run.shown()
                ))
            };
        }
        if run.status != Some(1) {
            return Err(format!("expected status 1, found {}", run.shown()));
        }
        let wrong_machine = ["UNAVAILABLE".to_owned()];
        let wanted = if self.is_foreign() {
            &wrong_machine[..]
        } else {
            &self.stderr_has
        };
        match wanted
            .iter()
            .find(|text| !run.stderr.contains(text.as_str()))
        {
            None => Ok(()),
            Some(text) => Err(format!(
                "expected an error with `{text}`, found {}",
                run.shown()
            )),
        }
    }
}

impl Run {
    /// Shows status and streams on one line.
    fn shown(&self) -> String {
        let status = match self.status {
            Some(status) => format!("status {status}"),
            None => "a signal or the time limit".to_owned(),
        };
        format!(
            "{status}, stdout {:?}, stderr {:?}",
            self.stdout, self.stderr
        )
    }
}

/// Reads a field that may be absent or null.
fn optional<T>(
    value: &Value,
    name: &str,
    read: fn(&Value, &str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    match value.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => read(value, name).map(Some),
    }
}

/// Reads a field that holds text.
fn text(value: &Value, name: &str) -> Result<String, String> {
    match value.get(name).and_then(Value::as_str) {
        Some(text) => Ok(text.to_owned()),
        None => Err(format!("field `{name}` is no text")),
    }
}

/// Reads a field that holds a list of texts.
fn texts(value: &Value, name: &str) -> Result<Vec<String>, String> {
    value
        .get(name)
        .and_then(Value::as_array)
        .and_then(|items| {
            items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect()
        })
        .ok_or_else(|| format!("field `{name}` is no list of texts"))
}

/// Reads a field that holds an exit status.
fn status(value: &Value, name: &str) -> Result<i32, String> {
    value
        .get(name)
        .and_then(Value::as_i64)
        .and_then(|status| i32::try_from(status).ok())
        .ok_or_else(|| format!("field `{name}` is no exit status"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rc: &str, extra: &str) -> Row {
        Row::parse(&format!(
            r#"{{"model": "inline", "release": "3.13.0", "config": "llvm-cpu", "program": "mul", "module": "m.vmfb",
                "args": ["--plugin={{plugins}}/a.so", "--function=mul"], "rc": {rc}, "stdout": "EXEC @mul\n"{extra}}}"#
        ))
        .unwrap()
    }

    fn run(status: Option<i32>, stdout: &str, stderr: &str) -> Run {
        Run {
            status,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        }
    }

    #[test]
    fn a_missing_field_is_named() {
        let error = Row::parse(r#"{"model": "inline"}"#).unwrap_err();
        assert_eq!(error, "field `release` is no text");
    }

    #[test]
    fn the_plugin_folder_is_put_into_the_arguments() {
        let arguments = row("0", "").arguments(Path::new("/p"));
        assert_eq!(arguments, ["--plugin=/p/a.so", "--function=mul"]);
    }

    #[test]
    fn a_good_run_prints_the_same_bytes() {
        let row = row("0", "");
        assert_eq!(row.judge(&run(Some(0), "EXEC @mul\n", "")), Ok(()));
        assert!(row.judge(&run(Some(0), "EXEC @mul", "")).is_err());
        assert!(row.judge(&run(Some(1), "EXEC @mul\n", "")).is_err());
    }

    #[test]
    fn a_refused_run_names_the_cause_and_does_not_crash() {
        let row = row("1", r#", "stderr_has": ["NOT_FOUND", "nope"]"#);
        assert_eq!(
            row.judge(&run(Some(1), "", "error: NOT_FOUND: nope")),
            Ok(())
        );
        assert!(row.judge(&run(Some(1), "", "error: NOT_FOUND")).is_err());
        assert!(row.judge(&run(Some(101), "", "NOT_FOUND nope")).is_err());
        assert!(row.judge(&run(None, "", "NOT_FOUND nope")).is_err());
    }

    #[test]
    fn a_module_for_another_machine_is_unavailable() {
        let row = row("0", r#", "machine": "pdp11""#);
        assert_eq!(row.judge(&run(Some(1), "", "error: UNAVAILABLE")), Ok(()));
        assert!(row.judge(&run(Some(0), "EXEC @mul\n", "")).is_err());
    }
}
