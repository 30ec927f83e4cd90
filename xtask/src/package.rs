//! The `package` task: packs every crate that is to be published, as `cargo publish` would, and checks what is said of it.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::iree::TIME_LIMIT;
use crate::process;
use crate::workspace::Workspace;

/// What a manifest must say for a crate to be found and understood.
const FIELDS: &[&str] = &[
    "description",
    "license",
    "readme",
    "repository",
    "keywords",
    "categories",
    "rust_version",
];

/// Files that each crate must hold: the texts of its licenses.
const FILES: &[&str] = &["LICENSE-MIT", "LICENSE-APACHE"];

/// Checks the manifests and packs the crates, without building them from their packages.
///
/// # Errors
///
/// When a manifest lacks something or a crate cannot be packed.
pub(crate) fn package(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if let Some(argument) = arguments.first() {
        bail!("unexpected argument `{argument}`");
    }
    let mut command = workspace.cargo("metadata");
    command.args(["--no-deps", "--offline", "--format-version", "1"]);
    let run = process::capture(&mut command, TIME_LIMIT)?;
    if run.status != Some(0) {
        bail!("cargo metadata failed: {}", run.stderr);
    }
    let metadata: Value = serde_json::from_str(&run.stdout)?;
    let packages = metadata["packages"].as_array();
    let packages = packages.context("cargo metadata printed another form")?;
    // `publish = false` is an empty list of registries.
    let published = |package: &&Value| {
        package["publish"]
            .as_array()
            .is_none_or(|list| !list.is_empty())
    };
    let published: Vec<&Value> = packages.iter().filter(published).collect();
    let missing: Vec<String> = published
        .iter()
        .flat_map(|package| missing(package))
        .collect();
    if !missing.is_empty() {
        bail!("{}", missing.join("; "));
    }
    let mut command = workspace.cargo("package");
    // Dependencies between the crates are taken from the workspace, not from the registry.
    command.args(["--quiet", "--no-verify", "--allow-dirty"]);
    for package in &published {
        command.args(["--package", package["name"].as_str().unwrap_or_default()]);
    }
    process::run(&mut command)
}

/// Returns what a package's manifest does not say and which files its folder does not have.
fn missing(package: &Value) -> Vec<String> {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let is_empty = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => true,
    };
    let fields = FIELDS.iter().filter(|field| is_empty(&package[**field]));
    let files = FILES
        .iter()
        .filter(|file| !manifest.with_file_name(file).is_file());
    let name = package["name"].as_str().unwrap_or_default();
    fields
        .chain(files)
        .map(|what| format!("{name}: no {what}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_fields_and_files_are_named() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/vm/Cargo.toml");
        let mut package = serde_json::json!({
            "manifest_path": manifest, "name": "a", "description": "x", "license": "MIT", "readme": "README.md", "repository": "r",
            "keywords": [], "categories": ["c"], "rust_version": "1.95",
        });
        assert_eq!(missing(&package), ["a: no keywords"]);
        package["keywords"] = serde_json::json!(["k"]);
        package["manifest_path"] = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into();
        let expected = ["a: no LICENSE-MIT", "a: no LICENSE-APACHE"];
        assert_eq!(missing(&package), expected);
    }
}
