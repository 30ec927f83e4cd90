//! Rules for the package manifests: which crate may depend on which, and that all share the workspace's lints.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::iree::TIME_LIMIT;
use crate::process;
use crate::tidy::Finding;
use crate::tidy::tree::Tree;
use crate::workspace::Workspace;

/// A package and the packages of this workspace that it may depend on. `docs/architecture.md` shows the same arrows.
const ARROWS: &[(&str, &[&str])] = &[
    ("hal-abi", &[]),
    ("hal-elf", &["hal-abi"]),
    ("hal-plugin", &["hal-abi", "hal-elf"]),
    ("hal-plugin-sdk", &["hal-abi"]),
    ("hal-local", &["hal-abi", "hal-elf", "hal-plugin"]),
    ("vm", &[]),
    ("vm-bytecode", &["vm"]),
    ("vm-hal-inline", &["vm"]),
    ("vm-hal-loader", &["vm", "hal-local"]),
    ("vm-vmvx", &["vm", "vm-bytecode", "hal-local"]),
    (
        "halite",
        &[
            "hal-abi",
            "hal-elf",
            "hal-plugin",
            "hal-local",
            "vm",
            "vm-bytecode",
            "vm-hal-inline",
            "vm-hal-loader",
            "vm-vmvx",
        ],
    ),
    ("halite-cli", &["halite"]),
    ("xtask", &[]),
];
/// What every sample plugin may depend on.
const PLUGIN_ARROWS: &[&str] = &["hal-abi", "hal-plugin-sdk"];
/// The package that may depend on everything.
const TESTS: &str = "halite-tests";

/// Checks the manifests of all members.
///
/// # Errors
///
/// When `cargo metadata` fails or prints something unexpected.
pub(super) fn check(workspace: &Workspace, tree: &Tree) -> Result<Vec<Finding>> {
    let mut command = workspace.cargo("metadata");
    command.args(["--no-deps", "--offline", "--format-version", "1"]);
    let run = process::capture(&mut command, TIME_LIMIT)?;
    if run.status != Some(0) {
        bail!("cargo metadata failed: {}", run.stderr);
    }
    let metadata: Value = serde_json::from_str(&run.stdout)?;
    let root = workspace.root().to_string_lossy().into_owned();
    let packages = packages(&metadata, &root).context("cargo metadata printed another form")?;

    let mut findings = arrows(&packages);
    for package in &packages {
        if !tree.text(&package.manifest).is_some_and(shares_lints) {
            findings.push(Finding::new(
                &package.manifest,
                0,
                "does not say `[lints] workspace = true`",
            ));
        }
    }
    Ok(findings)
}

/// One member of the workspace.
struct Package {
    name: String,
    /// The manifest's path, relative to the root.
    manifest: String,
    /// The names of all dependencies, of every kind.
    dependencies: Vec<String>,
}

/// Reads the members out of `cargo metadata`.
fn packages(metadata: &Value, root: &str) -> Option<Vec<Package>> {
    let name = |value: &Value| Some(value["name"].as_str()?.to_owned());
    let package = |value: &Value| {
        let manifest = value["manifest_path"].as_str()?.strip_prefix(root)?;
        Some(Package {
            name: name(value)?,
            manifest: manifest.trim_start_matches(['/', '\\']).replace('\\', "/"),
            dependencies: value["dependencies"]
                .as_array()?
                .iter()
                .map(name)
                .collect::<Option<_>>()?,
        })
    };
    metadata["packages"]
        .as_array()?
        .iter()
        .map(package)
        .collect()
}

/// Finds arrows between members that are not in the table.
fn arrows(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages.iter().filter(|package| package.name != TESTS) {
        let row = ARROWS.iter().find(|(name, _)| *name == package.name);
        let allowed = match row {
            Some((_, allowed)) => *allowed,
            None if package.manifest.starts_with("tests/plugins/") => PLUGIN_ARROWS,
            None => {
                let what = format!(
                    "`{}` has no row in xtask/src/tidy/manifests.rs",
                    package.name
                );
                findings.push(Finding::new(&package.manifest, 0, what));
                continue;
            }
        };
        for dependency in &package.dependencies {
            let is_local = packages.iter().any(|other| other.name == *dependency);
            if is_local && !allowed.contains(&dependency.as_str()) {
                let what = format!("`{}` must not depend on `{dependency}`", package.name);
                findings.push(Finding::new(&package.manifest, 0, what));
            }
        }
    }
    findings
}

/// Tells whether a manifest takes its lints from the workspace.
fn shares_lints(manifest: &str) -> bool {
    let mut lines = manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[lints]")
        .skip(1);
    lines.find(|line| !line.is_empty()) == Some("workspace = true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, manifest: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            manifest: manifest.to_owned(),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[track_caller]
    fn check_arrow(from: &str, manifest: &str, to: &str, expected: Option<&str>) {
        let findings = arrows(&[
            package(from, manifest, &[to, "serde"]),
            package(TESTS, "", &[]),
            package(to, "", &[]),
        ]);
        let found = findings
            .iter()
            .find(|finding| finding.path == manifest)
            .map(|finding| finding.what.as_str());
        assert_eq!(found, expected);
    }

    #[test]
    fn an_arrow_upwards_is_found() {
        check_arrow("vm-hal-loader", "m", "hal-local", None);
        check_arrow(
            "hal-local",
            "m",
            "vm",
            Some("`hal-local` must not depend on `vm`"),
        );
        check_arrow(
            "tests-x",
            "tests/plugins/x/Cargo.toml",
            "hal-plugin-sdk",
            None,
        );
        check_arrow(
            "tests-x",
            "tests/plugins/x/Cargo.toml",
            "vm",
            Some("`tests-x` must not depend on `vm`"),
        );
        check_arrow(
            "new",
            "m",
            "vm",
            Some("`new` has no row in xtask/src/tidy/manifests.rs"),
        );
    }

    #[test]
    fn every_arrow_points_to_an_earlier_row() {
        for (index, (name, allowed)) in ARROWS.iter().enumerate() {
            for target in *allowed {
                let earlier = ARROWS[..index].iter().any(|(other, _)| other == target);
                assert!(earlier, "{name} -> {target}");
            }
        }
    }

    #[test]
    fn lints_are_shared_by_two_lines() {
        assert!(shares_lints("[package]\n\n[lints]\nworkspace = true\n"));
        assert!(!shares_lints("[package]\nworkspace = true\n"));
        assert!(!shares_lints("[lints]\n[lints.rust]\nworkspace = true\n"));
    }
}
