//! The `fixtures` task: compiles the fixture modules of the installed release anew and records what they print.
//!
//! Only rows of the compiler's own release change; the modules of other releases need those releases. The flags here are
//! the ones that `tests/fixtures/README.md` documents.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use crate::manifest::Row;
use crate::workspace::Workspace;
use crate::{iree, plugins, process};

/// Flags that all inline-dynamic configurations share.
const INLINE_DYNAMIC: &[&str] = &[
    "--iree-execution-model=inline-dynamic",
    "--iree-hal-target-device=local",
];
/// Flags of the native code generator.
const LLVM_CPU: &[&str] = &[
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=generic",
];
/// The x86-64 target.
const X86_64: &[&str] = &["--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu"];
/// The 64-bit Arm target.
const AARCH64: &[&str] = &["--iree-llvmcpu-target-triple=aarch64-unknown-linux-gnu"];

/// One way to compile a program.
struct Config {
    name: &'static str,
    flags: &'static [&'static [&'static str]],
    /// A linker the compiler starts; other linkers give other bytes.
    linker: Option<&'static str>,
}

/// The ways to compile that this task knows.
const CONFIGS: &[Config] = &[
    Config {
        name: "llvm-cpu",
        flags: &[INLINE_DYNAMIC, LLVM_CPU, X86_64],
        linker: None,
    },
    Config {
        name: "llvm-cpu-system",
        flags: &[
            INLINE_DYNAMIC,
            LLVM_CPU,
            X86_64,
            &["--iree-llvmcpu-link-embedded=false"],
        ],
        linker: Some("ld.lld"),
    },
    Config {
        name: "llvm-cpu-aarch64",
        flags: &[INLINE_DYNAMIC, LLVM_CPU, AARCH64],
        linker: None,
    },
    Config {
        name: "vmvx",
        flags: &[
            INLINE_DYNAMIC,
            &["--iree-hal-local-target-device-backends=vmvx"],
        ],
        linker: None,
    },
    Config {
        name: "vmvx-inline",
        flags: &[&[
            "--iree-execution-model=inline-static",
            "--iree-hal-target-device=local",
            "--iree-hal-local-target-device-backends=vmvx-inline",
        ]],
        linker: None,
    },
];

/// Renews the fixtures of the installed release, or prints what is missing to do so.
///
/// # Errors
///
/// When a tool is found and fails, or the manifest cannot be read or written.
pub(crate) fn fixtures(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if let Some(argument) = arguments.first() {
        bail!("unexpected argument `{argument}`");
    }
    let (Some(compiler), Some(runner)) =
        (iree::find("iree-compile"), iree::find("iree-run-module"))
    else {
        println!(
            "fixtures: skipped: {}",
            iree::missing(&["iree-compile", "iree-run-module"])
        );
        return Ok(());
    };
    let release = iree::compiler_release(workspace, &compiler)?;
    println!("fixtures: renewing those of release {release}");
    plugins::build_plugins(workspace, &[])?;

    let manifest = workspace.fixtures().join("manifest.jsonl");
    let text =
        std::fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
    let mut compiled = BTreeSet::new();
    let mut renewed = String::new();
    for (index, line) in text.lines().enumerate() {
        let row = Row::parse(line)
            .map_err(|error| anyhow!("{}:{}: {error}", manifest.display(), index + 1))?;
        if row.release != release {
            renewed.push_str(line);
            renewed.push('\n');
            continue;
        }
        if compiled.insert(row.module.clone()) {
            compile(workspace, &compiler, &row)?;
        }
        renewed.push_str(&record(workspace, &runner, &row, line)?);
        renewed.push('\n');
    }
    std::fs::write(&manifest, renewed).with_context(|| manifest.display().to_string())
}

/// Compiles one module in place.
fn compile(workspace: &Workspace, compiler: &Path, row: &Row) -> Result<()> {
    let Some(config) = CONFIGS.iter().find(|config| config.name == row.config) else {
        println!(
            "fixtures: {} kept: configuration `{}` has no single command",
            row.module, row.config
        );
        return Ok(());
    };
    if let Some(linker) = config.linker
        && process::find_on_path(linker).is_none()
    {
        println!("fixtures: {} kept: {linker} is not on PATH", row.module);
        return Ok(());
    }
    process::run(
        workspace
            .command(compiler)
            .current_dir(workspace.fixtures())
            .arg(format!("src/{}.mlir", row.program))
            .args(config.flags.iter().copied().flatten())
            .args(["-o", &row.module]),
    )
}

/// Runs a row with the release's own tool and returns its line with what came out.
fn record(workspace: &Workspace, runner: &Path, row: &Row, line: &str) -> Result<String> {
    if row.is_foreign() {
        return Ok(line.to_owned());
    }
    let mut command = workspace.command(runner);
    command
        .current_dir(workspace.fixtures())
        .arg(format!("--module={}", row.module))
        .args(row.arguments(&workspace.plugins()));
    let run = process::capture(&mut command, iree::TIME_LIMIT)?;
    let status = run
        .status
        .with_context(|| format!("{} was killed on {}", runner.display(), row.module))?;
    if row.rc == Some(status) && row.stdout == run.stdout {
        return Ok(line.to_owned());
    }
    println!("fixtures: {} {:?}: recorded anew", row.module, row.args);
    let mut value: Value = serde_json::from_str(line)?;
    value["rc"] = status.into();
    value["stdout"] = run.stdout.into();
    Ok(value.to_string())
}
