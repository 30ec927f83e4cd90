//! The `api` task: lists the public API of the libraries in `docs/api/`, one file for each crate.
//!
//! What rustdoc knows of a crate as JSON becomes one line for each public item. The JSON is an unstable feature of the
//! toolchain, which `RUSTC_BOOTSTRAP` switches on; since the toolchain is pinned, so is its form.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process;
use crate::workspace::Workspace;

/// The libraries. The command's own library is for its tests.
const LIBRARIES: &[&str] = &[
    "hal-abi",
    "hal-elf",
    "hal-plugin",
    "hal-plugin-sdk",
    "hal-local",
    "vm",
    "vm-jit",
    "vm-bytecode",
    "vm-hal-inline",
    "vm-hal-loader",
    "vm-vmvx",
    "halite",
];
/// The form of the JSON that the pinned toolchain writes, and the one that `public-api` reads. They differ in a field
/// that names the files of other crates, which is not used.
const WRITTEN_FORMAT: u64 = 57;
const READ_FORMAT: u64 = 56;

/// Writes the lists, or with `--check` only tells whether they are current.
///
/// # Errors
///
/// When rustdoc fails, or a list is not current.
pub(crate) fn api(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        [other, ..] => bail!("unexpected argument `{other}`"),
    };
    let folder = workspace.root().join("docs/api");
    std::fs::create_dir_all(&folder)?;
    let mut stale = Vec::new();
    for library in LIBRARIES {
        let list = list(workspace, library)?;
        let path = folder.join(format!("{library}.txt"));
        if std::fs::read_to_string(&path).is_ok_and(|found| found == list) {
            continue;
        }
        if check {
            stale.push(*library);
        } else {
            std::fs::write(&path, list).with_context(|| path.display().to_string())?;
            println!("api: {} renewed", path.display());
        }
    }
    if !stale.is_empty() {
        bail!(
            "the public API of {} is not what docs/api/ lists: look at what `cargo xtask api` changes",
            stale.join(", ")
        );
    }
    Ok(())
}

/// Returns the public items of a library, one a line.
fn list(workspace: &Workspace, library: &str) -> Result<String> {
    // A build folder of its own: build scripts look at the variable, and everything would be built again each time.
    let target = workspace.target().join("api");
    process::run(
        workspace
            .cargo("rustdoc")
            .args(["--quiet", "--package", library, "--lib", "--"])
            .args(["-Z", "unstable-options", "--output-format", "json"])
            .env("CARGO_TARGET_DIR", &target)
            .env("RUSTC_BOOTSTRAP", "1"),
    )?;
    let name = library.replace('-', "_");
    let json = target.join(format!("doc/{name}.json"));
    relabel(&json).with_context(|| json.display().to_string())?;
    let api = public_api::Builder::from_rustdoc_json(&json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    let mut list = String::new();
    for item in api.items() {
        writeln!(list, "{item}")?;
    }
    Ok(list)
}

/// Gives a JSON file the number of the form that is read.
fn relabel(path: &Path) -> Result<()> {
    let mut value: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    match value["format_version"].as_u64() {
        Some(READ_FORMAT) => return Ok(()),
        Some(WRITTEN_FORMAT) => {}
        other => bail!("rustdoc writes another form than {WRITTEN_FORMAT}: {other:?}"),
    }
    value["format_version"] = READ_FORMAT.into();
    std::fs::write(path, value.to_string())?;
    Ok(())
}
