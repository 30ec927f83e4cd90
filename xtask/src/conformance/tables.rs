//! The tables of `crates/vm-bytecode/tests/ops` through an installed `iree-run-module`.
//!
//! The tests of that crate run them through Halite's interpreter; here the reference is asked whether it says the same,
//! where a table claims that it does.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};

use crate::cases::{Case, Outcome, Table};
use crate::manifest::Run;
use crate::workspace::Workspace;
use crate::{iree, process};

/// How far a printed float may be from the table's: the reference prints six digits.
const TOLERANCE: f64 = 6e-6;

/// A case with the modules it needs.
struct Job<'a> {
    table: &'a str,
    modules: &'a [String],
    case: &'a Case,
}

/// Asks the reference for every case that it shares, prints the counts and collects the differences.
pub(super) fn compare(
    workspace: &Workspace,
    reference: &Path,
    failures: &mut Vec<String>,
) -> Result<()> {
    let folder = workspace.root().join("crates/vm-bytecode/tests/ops");
    println!("\n{}", folder.display());
    let mut tables = Vec::new();
    for path in table_files(&folder)? {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let table = Table::parse(&text).map_err(|error| anyhow!("{}: {error}", path.display()))?;
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        // Native functions of the tests are nothing that the reference could load.
        if !table.with.iter().any(|module| module == Table::HOST) {
            tables.push((name, table));
        }
    }
    for (name, table) in &mut tables {
        table.with.push(name.clone());
    }
    let jobs: Vec<Job<'_>> = tables
        .iter()
        .flat_map(|(name, table)| {
            let shared = table.cases.iter().filter(|case| case.is_shared);
            shared.map(move |case| Job {
                table: name,
                modules: &table.with,
                case,
            })
        })
        .collect();

    let differences = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(difference) = run(workspace, reference, &folder, job) {
                        let mut all = differences.lock().unwrap_or_else(PoisonError::into_inner);
                        all.push(format!("{difference:#}"));
                    }
                }
            });
        }
    });
    let differences = differences
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    println!(
        "{:38} reference agrees on {:4} of {:4}",
        "instructions",
        jobs.len() - differences.len(),
        jobs.len()
    );
    failures.extend(differences);
    Ok(())
}

/// Returns the tables of a folder, sorted.
fn table_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "cases")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Runs a case and compares what was printed.
fn run(workspace: &Workspace, reference: &Path, folder: &Path, job: &Job<'_>) -> Result<()> {
    let mut command = workspace.command(reference);
    command.current_dir(folder);
    for module in job.modules {
        command.arg(format!("--module={module}.vmfb"));
    }
    command.arg(format!("--function={}", job.case.function));
    for argument in &job.case.arguments {
        let argument = if argument == "null" {
            "(null)"
        } else {
            argument
        };
        command.arg(format!("--input={argument}"));
    }
    let run = process::capture(&mut command, iree::TIME_LIMIT)?;
    if agrees(&job.case.outcome, &run) {
        return Ok(());
    }
    bail!(
        "{}.cases:{}: {}({})\n  iree-run-module ended with {:?} and printed {:?} {:?}",
        job.table,
        job.case.line,
        job.case.function,
        job.case.arguments.join(", "),
        run.status,
        run.stdout,
        run.stderr
    )
}

/// Tells whether a run came to what a case says.
fn agrees(outcome: &Outcome, run: &Run) -> bool {
    match outcome {
        Outcome::Error(code) => run.status == Some(1) && run.stderr.contains(&format!(": {code};")),
        Outcome::Results(expected) => {
            let printed: Vec<&str> = run
                .stdout
                .lines()
                .filter_map(|line| line.strip_prefix("result[")?.split_once("]: "))
                .map(|(_, value)| value)
                .collect();
            run.status == Some(0)
                && printed.len() == expected.len()
                && expected
                    .iter()
                    .zip(printed)
                    .all(|(expected, printed)| same(expected, printed))
        }
    }
}

/// Tells whether a printed value such as `i32=5` is the one of the table.
fn same(expected: &str, printed: &str) -> bool {
    if printed == "(null)" {
        return expected == "null";
    }
    let Some((element_type, printed)) = printed.split_once('=') else {
        return false;
    };
    if !element_type.starts_with('f') {
        return expected == printed;
    }
    let expected = expected.trim_start_matches('~');
    let (Ok(expected), Ok(printed)) = (expected.parse::<f64>(), printed.parse::<f64>()) else {
        return false;
    };
    if expected.is_nan() || printed.is_nan() {
        return expected.is_nan() && printed.is_nan();
    }
    if expected.is_infinite() || expected == 0.0 {
        return expected.to_bits() == printed.to_bits();
    }
    (expected - printed).abs() <= TOLERANCE * expected.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_compared_exactly_and_floats_to_six_digits() {
        assert!(same("-1", "i32=-1"));
        assert!(!same("1000000001", "i64=1000000000"));
        assert!(same("0.1", "f32=0.1"));
        assert!(same("~0.84147096", "f32=0.841471"));
        assert!(!same("0.85", "f32=0.841471"));
        assert!(!same("-0", "f32=0"));
        assert!(same("nan", "f64=-nan"));
        assert!(!same("inf", "f32=-inf"));
        assert!(same("null", "(null)"));
        assert!(!same("0", "vm.list"));
    }

    #[test]
    fn a_failure_agrees_by_its_code() {
        let run = |status, stderr: &str| Run {
            status,
            stdout: "EXEC @f\n".to_owned(),
            stderr: stderr.to_owned(),
        };
        let outcome = Outcome::Error("OUT_OF_RANGE".to_owned());
        assert!(agrees(
            &outcome,
            &run(Some(1), "x.c:1: OUT_OF_RANGE; message")
        ));
        assert!(!agrees(
            &outcome,
            &run(Some(1), "x.c:1: INTERNAL; OUT_OF_RANGE")
        ));
        assert!(!agrees(&outcome, &run(None, "")));
        assert!(!agrees(
            &Outcome::Results(vec!["1".to_owned()]),
            &run(Some(0), "")
        ));
    }
}
