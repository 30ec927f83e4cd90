//! The `build-plugins` task: builds the sample plugins of `tests/plugins/` into `<target>/plugins/`.
//!
//! What is built stands in `tests/plugins/artifacts.txt`; the recipes are the ones that the README beside it documents.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::iree::TIME_LIMIT;
use crate::process;
use crate::workspace::Workspace;

/// Flags of every C plugin.
const C: &[&str] = &[
    "-std=c11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
    "-fPIC",
    "-shared",
    "-I",
    "crates/hal-abi/include",
];
/// What makes a C plugin a standalone image.
const C_FREESTANDING: &[&str] = &[
    "-ffreestanding",
    "-fvisibility=hidden",
    "-fno-plt",
    "-fno-asynchronous-unwind-tables",
    "-fno-stack-protector",
    "-nostdlib",
    "-Wl,--build-id=none,--hash-style=sysv,-z,now,-z,relro,--no-undefined",
];
/// What makes a Rust plugin a standalone image: flags of the compiler.
const RUST_FREESTANDING: &[&str] = &[
    "-C",
    "panic=abort",
    "-C",
    "link-arg=-nostdlib",
    "-C",
    "link-arg=-Wl,--build-id=none,--hash-style=sysv,-Bsymbolic,-z,now,-z,relro,--no-undefined",
];

/// One line of the list.
struct Artifact<'a> {
    file: &'a str,
    recipe: &'a str,
    source: &'a str,
    macros: Vec<&'a str>,
}

/// Builds all sample plugins. Those in C are skipped with a printed reason when there is no C compiler.
///
/// # Errors
///
/// When one cannot be built or put in its place, or the list is malformed.
pub(crate) fn build_plugins(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if let Some(argument) = arguments.first() {
        bail!("unexpected argument `{argument}`");
    }
    let folder = workspace.plugins();
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let list = workspace.root().join("tests/plugins/artifacts.txt");
    let text = std::fs::read_to_string(&list).with_context(|| list.display().to_string())?;
    let compiler = c_compiler();
    let mut skipped = 0;
    for artifact in artifacts(&text)? {
        let path = folder.join(artifact.file);
        match (artifact.recipe, &compiler) {
            ("c-shared", Some(cc)) => c(workspace, cc, &artifact, &[], &path)?,
            ("c-freestanding", Some(cc)) => c(workspace, cc, &artifact, C_FREESTANDING, &path)?,
            ("c-shared" | "c-freestanding", None) => skipped += 1,
            ("rust-shared", _) => rust_shared(workspace, &artifact, &path)?,
            ("rust-freestanding", _) => rust_freestanding(workspace, &artifact, &path)?,
            (recipe, _) => bail!("{}: unknown recipe `{recipe}`", list.display()),
        }
    }
    if skipped > 0 {
        println!("build-plugins: {skipped} plugins in C skipped: no `cc` on PATH");
    }
    Ok(())
}

/// Parses the list of artifacts.
fn artifacts(text: &str) -> Result<Vec<Artifact<'_>>> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|(index, line)| {
            let mut words = line.split_whitespace();
            let mut word = || words.next();
            let (Some(file), Some(recipe), Some(source)) = (word(), word(), word()) else {
                bail!(
                    "artifacts.txt:{}: expected a file, a recipe and a source",
                    index + 1
                );
            };
            Ok(Artifact {
                file,
                recipe,
                source,
                macros: words.collect(),
            })
        })
        .collect()
}

/// Finds the C compiler.
fn c_compiler() -> Option<PathBuf> {
    process::find_on_path("cc")
}

/// Compiles a C plugin.
fn c(
    workspace: &Workspace,
    cc: &Path,
    artifact: &Artifact<'_>,
    flags: &[&str],
    path: &Path,
) -> Result<()> {
    process::run(
        workspace
            .command(cc)
            .args(C)
            .args(flags)
            .args(artifact.macros.iter().map(|name| format!("-D{name}")))
            .arg("-o")
            .arg(path)
            .arg(format!("tests/plugins/{}", artifact.source)),
    )
}

/// Builds a Rust plugin as a shared library.
fn rust_shared(workspace: &Workspace, artifact: &Artifact<'_>, path: &Path) -> Result<()> {
    process::run(
        workspace
            .cargo("build")
            .args(["--release", "--package", artifact.source]),
    )?;
    install(&workspace.target().join("release"), artifact, path)
}

/// Builds a Rust plugin as a standalone image. The explicit target keeps the linker flags away from build tools.
fn rust_freestanding(workspace: &Workspace, artifact: &Artifact<'_>, path: &Path) -> Result<()> {
    let target = host_target(workspace)?;
    process::run(
        workspace
            .cargo("rustc")
            .args([
                "--release",
                "--package",
                artifact.source,
                "--no-default-features",
            ])
            .args(["--target", &target, "--"])
            .args(RUST_FREESTANDING),
    )?;
    install(
        &workspace.target().join(target).join("release"),
        artifact,
        path,
    )
}

/// Puts what cargo built into its place. A new file, not new contents: a process may have the old one mapped.
fn install(folder: &Path, artifact: &Artifact<'_>, path: &Path) -> Result<()> {
    let built = folder.join(format!("lib{}.so", artifact.source.replace('-', "_")));
    let fresh = path.with_extension("new");
    std::fs::copy(&built, &fresh).with_context(|| built.display().to_string())?;
    std::fs::rename(&fresh, path).with_context(|| path.display().to_string())
}

/// Returns the target triple that the toolchain builds for by default.
pub(crate) fn host_target(workspace: &Workspace) -> Result<String> {
    let run = process::capture(workspace.command("rustc").arg("-vV"), TIME_LIMIT)?;
    let line = run
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned)
        .with_context(|| format!("no host in what rustc -vV printed: {:?}", run.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_is_a_file_a_recipe_a_source_and_macros() {
        let artifacts =
            artifacts("# comment\n\na.so c-shared a.c X Y=1\nb.so rust-shared b\n").unwrap();
        let [a, b] = &artifacts[..] else {
            panic!("{} artifacts", artifacts.len())
        };
        assert_eq!((a.file, a.recipe, a.source), ("a.so", "c-shared", "a.c"));
        assert_eq!(a.macros, ["X", "Y=1"]);
        assert_eq!((b.source, b.macros.len()), ("b", 0));
    }

    #[test]
    fn a_short_line_is_refused() {
        let error = artifacts("a.so c-shared\n").err().unwrap();
        assert_eq!(
            error.to_string(),
            "artifacts.txt:1: expected a file, a recipe and a source"
        );
    }
}
