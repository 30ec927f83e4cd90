//! Rules for the package manifests: which crate may depend on which, and that all share the workspace's lints.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::iree::TIME_LIMIT;
use crate::process;
use crate::tidy::Finding;
use crate::tidy::tree::Tree;
use crate::workspace::Workspace;

/// A package and the packages of this workspace that it may depend on. `docs/architecture.md` shows the same arrows.
/// Tests (`dev-dependencies`) may name whatever the package reaches through them.
const ARROWS: &[(&str, &[&str])] = &[
    ("hal-abi", &[]),
    ("hal-elf", &["hal-abi"]),
    ("hal-plugin", &["hal-abi", "hal-elf"]),
    ("hal-plugin-sdk", &["hal-abi"]),
    ("hal-local", &["hal-abi", "hal-elf", "hal-plugin"]),
    ("vm", &[]),
    ("vm-jit", &[]),
    ("vm-bytecode", &["vm", "vm-jit"]),
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
    ("minimal", &["halite"]),
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
    /// Its dependencies, of every kind.
    dependencies: Vec<Dependency>,
}

/// One dependency of a member.
struct Dependency {
    name: String,
    /// Whether only tests, examples and benchmarks use it.
    is_dev: bool,
}

/// Reads the members out of `cargo metadata`.
fn packages(metadata: &Value, root: &str) -> Option<Vec<Package>> {
    let name = |value: &Value| Some(value["name"].as_str()?.to_owned());
    let dependency = |value: &Value| {
        let is_dev = value["kind"] == "dev";
        Some(Dependency {
            name: name(value)?,
            is_dev,
        })
    };
    let package = |value: &Value| {
        let manifest = value["manifest_path"].as_str()?.strip_prefix(root)?;
        Some(Package {
            name: name(value)?,
            manifest: manifest.trim_start_matches(['/', '\\']).replace('\\', "/"),
            dependencies: value["dependencies"]
                .as_array()?
                .iter()
                .map(dependency)
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
        for Dependency { name, is_dev } in &package.dependencies {
            let is_local = packages.iter().any(|other| other.name == *name);
            let is_allowed = allowed.contains(&name.as_str()) || *is_dev && reaches(allowed, name);
            if is_local && !is_allowed {
                let what = format!("`{}` must not depend on `{name}`", package.name);
                findings.push(Finding::new(&package.manifest, 0, what));
            }
        }
    }
    findings
}

/// Tells whether one of the packages is or leads to another.
fn reaches(from: &[&str], to: &str) -> bool {
    from.iter().any(|name| {
        let row = ARROWS.iter().find(|(other, _)| other == name);
        *name == to || row.is_some_and(|(_, next)| reaches(next, to))
    })
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

    #[track_caller]
    fn check_arrow(from: &str, manifest: &str, to: &str, is_dev: bool, expected: Option<&str>) {
        let package = |name: &str, manifest: &str, dependencies| Package {
            name: name.to_owned(),
            manifest: manifest.to_owned(),
            dependencies,
        };
        let dependency = |name: &str| Dependency {
            name: name.to_owned(),
            is_dev,
        };
        let findings = arrows(&[
            package(from, manifest, vec![dependency(to), dependency("serde")]),
            package(TESTS, "", Vec::new()),
            package(to, "", Vec::new()),
        ]);
        let found = findings.iter().find(|finding| finding.path == manifest);
        assert_eq!(found.map(|finding| finding.what.as_str()), expected);
    }

    #[test]
    fn an_arrow_upwards_is_found() {
        let upwards = "`hal-local` must not depend on `vm`";
        for is_dev in [false, true] {
            check_arrow("vm-hal-loader", "m", "hal-local", is_dev, None);
            check_arrow("hal-local", "m", "vm", is_dev, Some(upwards));
        }
    }

    #[test]
    fn only_tests_may_skip_a_crate() {
        let skips = "`vm-hal-loader` must not depend on `hal-abi`";
        check_arrow("vm-hal-loader", "m", "hal-abi", false, Some(skips));
        check_arrow("vm-hal-loader", "m", "hal-abi", true, None);
    }

    #[test]
    fn a_sample_plugin_uses_the_kit_only() {
        let manifest = "tests/plugins/x/Cargo.toml";
        check_arrow("x", manifest, "hal-plugin-sdk", false, None);
        check_arrow(
            "x",
            manifest,
            "vm",
            false,
            Some("`x` must not depend on `vm`"),
        );
    }

    #[test]
    fn a_package_needs_a_row() {
        let what = "`new` has no row in xtask/src/tidy/manifests.rs";
        check_arrow("new", "m", "vm", false, Some(what));
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
