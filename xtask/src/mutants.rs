//! The `mutants` task: tries mutants of real modules, executables and plugins in child processes.
//!
//! The work is in `tests/src/mutants.rs`; this splits it into batches, so that a crash or a hang ends one child and not
//! the campaign, and says which mutant it was.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use crate::{plugins, process};

/// Mutants when no number is given.
const COUNT: u64 = 100_000;

/// Mutants of a child.
const BATCH: u64 = 2_000;

/// How long a child may take. It needs seconds.
const LIMIT: Duration = Duration::from_secs(300);

/// What came of the mutants of a kind: refused, taken, run, panicked.
type Tally = [u64; 4];

/// Tries mutants, `[--count N] [--first N]`.
///
/// # Errors
///
/// When a mutant crashes, hangs or panics.
pub(crate) fn mutants(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let (first, count) = parse(arguments)?;
    plugins::build_plugins(workspace, &[])?;
    let mut build = workspace.cargo("build");
    process::run(build.args(["--package", "halite-tests", "--example", "mutants"]))?;
    let program = workspace.target().join("debug/examples/mutants");
    let state = workspace.target().join("mutants.state");

    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut findings = Vec::new();
    let mut next = first;
    while next < first + count {
        let batch = BATCH.min(first + count - next);
        let mut command = workspace.command(&program);
        command.args([next.to_string(), batch.to_string()]);
        command.arg(&state).arg(workspace.plugins());
        let run = process::capture(&mut command, LIMIT)?;
        for line in run.stdout.lines() {
            match line.strip_prefix("panic: ") {
                Some(mutant) => findings.push(format!("panic: {mutant}")),
                None => add(&mut tallies, line)?,
            }
        }
        next += batch;
        if run.status != Some(0) {
            let bytes = fs::read(&state)?;
            let at = bytes
                .first_chunk()
                .map_or(next, |at| u64::from_le_bytes(*at));
            let how = run.stderr.lines().last().unwrap_or_default();
            findings.push(format!("mutant {at} crashed or did not end: {how}"));
            // The rest of the batch is still to do.
            next = at + 1;
        }
        if (next - first).is_multiple_of(20_000) {
            println!(
                "mutants: {} tried, {} findings",
                next - first,
                findings.len()
            );
        }
    }
    for (kind, [refused, taken, ran, _]) in &tallies {
        println!("{kind}: {refused} refused, {taken} taken, {ran} run");
    }
    println!(
        "mutants: {count} tried from {first}, {} findings",
        findings.len()
    );
    if findings.is_empty() {
        return Ok(());
    }
    for finding in &findings {
        println!("{finding}");
    }
    bail!("{} findings", findings.len());
}

fn parse(arguments: &[String]) -> Result<(u64, u64)> {
    let (mut first, mut count) = (0, COUNT);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => (
                argument.as_str(),
                arguments.next().cloned().unwrap_or_default(),
            ),
        };
        let number = || {
            value
                .parse()
                .with_context(|| format!("`{value}` is no number"))
        };
        match name {
            "--count" => count = number()?,
            "--first" => first = number()?,
            _ => bail!("unexpected argument `{argument}`"),
        }
    }
    Ok((first, count))
}

/// Adds a line `kind: refused taken ran panicked`.
fn add(tallies: &mut BTreeMap<String, Tally>, line: &str) -> Result<()> {
    let (kind, numbers) = line
        .split_once(": ")
        .with_context(|| format!("a child printed `{line}`"))?;
    let tally = tallies.entry(kind.to_owned()).or_default();
    for (sum, number) in tally.iter_mut().zip(numbers.split(' ')) {
        *sum += number.parse::<u64>()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_children_add_up() {
        let mut tallies = BTreeMap::new();
        add(&mut tallies, "modules: 1 2 3 0").unwrap();
        add(&mut tallies, "modules: 10 20 30 1").unwrap();
        assert_eq!(tallies["modules"], [11, 22, 33, 1]);
        assert!(add(&mut tallies, "noise").is_err());
    }

    #[test]
    fn the_numbers_are_read() {
        let parse = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(String::from).collect();
            parse(&words)
        };
        assert_eq!(parse("").unwrap(), (0, COUNT));
        assert_eq!(parse("--count 5 --first=7").unwrap(), (7, 5));
        assert!(parse("--count x").is_err());
        assert!(parse("5").is_err());
    }
}
