//! The `fuzz` task: runs the fuzz targets for a while and says what came of it.
//!
//! The targets are in `tests/src/fuzz`; this builds their programs (`tests/fuzz`) with `cargo fuzz`, gives each the
//! same time, and keeps what they find. Plain tests replay the committed inputs without any of this.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use crate::{plugins, process};

/// Minutes for all targets together when none are given.
const MINUTES: u64 = 15;

/// Options of every run: an input may take 20 seconds and 4 GiB, sanitizer included. A block that is too large is NULL
/// and no finding: errors are promised there. Neither is an input that takes half that time, on a busy machine.
const OPTIONS: &[&str] = &[
    "-timeout=20",
    "-report_slow_units=20",
    "-rss_limit_mb=4096",
    "-malloc_limit_mb=65536",
    "-print_final_stats=1",
    "-use_value_profile=1",
];

/// The targets that run programs, which may make lists that hold themselves: those are never freed (`docs/vm.md`).
const MAY_LEAK: &[&str] = &["run", "session"];

const SANITIZER_OPTIONS: &str =
    "allocator_may_return_null=1:max_allocation_size_mb=2048:detect_odr_violation=0";

/// What a run came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    executed: u64,
    covered: u64,
    features: u64,
}

/// Fuzzes the named targets, or all, for a time that they share.
///
/// # Errors
///
/// When a target finds something, or a program cannot be built.
pub(crate) fn fuzz(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let folder = workspace.root().join("tests/fuzz");
    let known = targets(&folder)?;
    let (minutes, named) = parse(arguments, &known)?;
    if let Some(reason) = missing() {
        println!("fuzz: skipped: {reason}");
        return Ok(());
    }
    let wanted = if named.is_empty() { known } else { named };
    let seconds = (minutes * 60 / wanted.len() as u64).max(1);
    let work = workspace.target().join("fuzz");
    write_seeds(workspace, &work)?;
    let programs = build(workspace, &work)?;

    let mut findings = Vec::new();
    for target in &wanted {
        let (tally, found) = run(workspace, &programs, &work, target, seconds)?;
        println!(
            "fuzz {target}: {} runs in {seconds} s, {} edges, {} features, {} findings",
            tally.executed,
            tally.covered,
            tally.features,
            found.len()
        );
        findings.extend(found);
    }
    if findings.is_empty() {
        return Ok(());
    }
    for path in &findings {
        println!("found: {}", path.display());
    }
    bail!(
        "{} findings; their output is in {}",
        findings.len(),
        work.display()
    );
}

/// Reads `[--minutes N] [target ...]`.
fn parse(arguments: &[String], known: &[String]) -> Result<(u64, Vec<String>)> {
    let (mut minutes, mut named) = (MINUTES, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let value = match argument.split_once('=') {
            Some(("--minutes", value)) => Some(value.to_owned()),
            _ if argument == "--minutes" => Some(arguments.next().cloned().unwrap_or_default()),
            _ => None,
        };
        if let Some(value) = value {
            minutes = value
                .parse()
                .with_context(|| format!("`{value}` is no number of minutes"))?;
        } else if known.contains(argument) {
            named.push(argument.clone());
        } else {
            bail!(
                "no fuzz target `{argument}`; there are {}",
                known.join(", ")
            );
        }
    }
    Ok((minutes, named))
}

/// Returns the targets in the order of the manifest of their programs.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
    let programs = manifest.split("[[bin]]").skip(1);
    let name = |program: &str| {
        let line = program.lines().find(|line| line.starts_with("name = "));
        let name = line.and_then(|line| line.split('"').nth(1));
        name.map(str::to_owned)
            .context("a program without a name in tests/fuzz/Cargo.toml")
    };
    programs.map(name).collect()
}

/// Says what is missing to fuzz.
fn missing() -> Option<String> {
    let lacks = |program: &str| process::find_on_path(program).is_none();
    if lacks("cargo-fuzz") {
        return Some("no `cargo-fuzz` on PATH: cargo install cargo-fuzz".to_owned());
    }
    if lacks("c++") && std::env::var_os("CXX").is_none() {
        return Some("no C++ compiler (`c++`) on PATH, which the fuzzer is built with".to_owned());
    }
    None
}

/// Writes the inputs to begin with.
fn write_seeds(workspace: &Workspace, work: &Path) -> Result<()> {
    let mut command = workspace.cargo("run");
    command.args(["--quiet", "--package", "halite-tests", "--example", "seeds"]);
    process::run(command.arg("--").arg(work.join("seeds")))
}

/// Builds the programs and returns their folder.
fn build(workspace: &Workspace, work: &Path) -> Result<PathBuf> {
    let target = plugins::host_target(workspace)?;
    let folder = work.join("build");
    let mut command = workspace.cargo("fuzz");
    command.args(["build", "--fuzz-dir", "tests/fuzz", "--target", &target]);
    command.arg("--target-dir").arg(&folder);
    command.env("RUSTC_BOOTSTRAP", "1");
    process::run(&mut command)?;
    Ok(folder.join(target).join("release"))
}

/// Runs one program and returns what it did and the files of what it found.
fn run(
    workspace: &Workspace,
    programs: &Path,
    work: &Path,
    target: &str,
    seconds: u64,
) -> Result<(Tally, Vec<PathBuf>)> {
    let (corpus, found) = (
        work.join("corpus").join(target),
        work.join("found").join(target),
    );
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&found)?;
    let before = files(&found)?;
    let log = work.join(format!("{target}.log"));
    let mut command = workspace.command(programs.join(target));
    command
        .arg(&corpus)
        .arg(work.join("seeds").join(target))
        .args(OPTIONS)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", found.display()))
        .env("ASAN_OPTIONS", SANITIZER_OPTIONS)
        .stdin(Stdio::null())
        .stdout(File::create(&log)?)
        .stderr(File::options().append(true).open(&log)?);
    if MAY_LEAK.contains(&target) {
        command.arg("-detect_leaks=0");
    }
    let mut child = command
        .spawn()
        .with_context(|| format!("starting the program of `{target}`"))?;
    // The program ends by itself; this is for one that does not.
    let limit = Duration::from_secs(2 * seconds + 600);
    let status = process::wait(&mut child, limit)?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let mut findings = files(&found)?;
    findings.retain(|file| !before.contains(file));
    if status != Some(0) && findings.is_empty() {
        // It ended in a way that left no input behind.
        findings.push(log);
    }
    Ok((tally(&text), findings))
}

/// Reads the counts that a program prints.
fn tally(log: &str) -> Tally {
    let mut tally = Tally::default();
    for line in log.lines() {
        if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            tally.executed = count.trim().parse().unwrap_or(0);
        }
        let mut words = line.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "cov:" => tally.covered = number(words.next()).max(tally.covered),
                "ft:" => tally.features = number(words.next()).max(tally.features),
                _ => {}
            }
        }
    }
    tally
}

fn number(word: Option<&str>) -> u64 {
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Returns the files of a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_a_run_are_read() {
        let log = "#2\tINITED cov: 12 ft: 13 corp: 1/1b exec/s: 0 rss: 60Mb\n\
                   #99\tNEW    cov: 15 ft: 40 corp: 2/2b lim: 4 exec/s: 0\n\
                   stat::number_of_executed_units: 1234\n";
        let expected = Tally {
            executed: 1234,
            covered: 15,
            features: 40,
        };
        assert_eq!(tally(log), expected);
    }

    #[test]
    fn a_target_that_is_not_there_is_refused_with_those_that_are() {
        let known = ["run".to_owned(), "npy".to_owned()];
        let parse = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&text| text.into()).collect();
            parse(&arguments, &known)
        };
        assert_eq!(
            parse(&["npy", "--minutes", "3"]).unwrap(),
            (3, vec!["npy".into()])
        );
        assert_eq!(parse(&["--minutes=4"]).unwrap(), (4, vec![]));
        assert!(parse(&["--minutes", "x"]).is_err());
        let error = parse(&["npz"]).unwrap_err().to_string();
        assert_eq!(error, "no fuzz target `npz`; there are run, npy");
    }
}
