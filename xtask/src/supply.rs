//! The `supply` task: the crates that Halite is built from, and the toolchain that builds it.
//!
//! `deny` asks `cargo deny` about licenses, sources, duplicates and, where the database can be had, known faults.
//! `minimal-versions` builds the workspace with the oldest versions that its manifests allow. The oldest toolchain is the
//! pinned one, which `tidy` checks, so that every build tests it.

use std::fs;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::process;
use crate::workspace::Workspace;

/// How long it may take to get the database of advisories.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs the named checks, or both.
///
/// # Errors
///
/// When one of them fails.
pub(crate) fn supply(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let known = ["deny", "minimal-versions"];
    if let Some(argument) = arguments
        .iter()
        .find(|argument| !known.contains(&argument.as_str()))
    {
        bail!(
            "unexpected argument `{argument}`; known are {}",
            known.join(", ")
        );
    }
    let wants =
        |name: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == name);
    if wants("deny") {
        deny(workspace)?;
    }
    if wants("minimal-versions") {
        minimal_versions(workspace)?;
    }
    Ok(())
}

fn deny(workspace: &Workspace) -> Result<()> {
    if process::find_on_path("cargo-deny").is_none() {
        println!("supply deny: skipped: no `cargo-deny` on PATH: cargo install cargo-deny");
        return Ok(());
    }
    let check = [
        "--log-level",
        "error",
        "check",
        "licenses",
        "bans",
        "sources",
    ];
    process::run(workspace.cargo("deny").args(check))?;
    let mut fetch = workspace.cargo("deny");
    let run = process::capture(fetch.args(["fetch", "db"]), LIMIT)?;
    if run.status != Some(0) {
        let mut lines = run
            .stderr
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        // The last is what git says.
        let why = lines.next_back().unwrap_or_default();
        println!("supply deny: advisories skipped: no database: {why}");
        return Ok(());
    }
    process::run(workspace.cargo("deny").args(["check", "advisories"]))
}

/// Checks the workspace with a lockfile of the oldest versions, and puts the lockfile back.
fn minimal_versions(workspace: &Workspace) -> Result<()> {
    let path = workspace.root().join("Cargo.lock");
    let lockfile = fs::read(&path)?;
    let mut resolve = workspace.cargo("generate-lockfile");
    resolve
        .arg("-Zdirect-minimal-versions")
        .env("RUSTC_BOOTSTRAP", "1");
    let mut check = workspace.cargo("check");
    check.args(["--workspace", "--all-targets"]);
    let outcome = process::run(&mut resolve).and_then(|()| {
        if fs::read(&path)? == lockfile {
            println!("supply minimal-versions: the lockfile has them, so every build tests them");
            return Ok(());
        }
        process::run(&mut check)
    });
    fs::write(&path, lockfile)?;
    outcome
}
