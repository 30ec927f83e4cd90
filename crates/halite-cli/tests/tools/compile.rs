//! `halite compile`, with a script in the place of IREE's tools.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support::{Outcome, fails, halite, root, says};

/// A folder with sources to compile, what comes out of them, and tools of several releases.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(TempDir::new().unwrap());
        let program = root().join("tests/fixtures/3.13.0/vmvx/mul.vmfb");
        for (name, text) in [
            ("mul.mlir", "module {}"),
            ("broken.mlir", "module {}"),
            ("model.onnx", "a model"),
            ("model.onnx.result", "module {}"),
            ("other.onnx", "a model"),
            ("other.onnx.result", "module {}"),
        ] {
            fs::write(folder.path(name), text).unwrap();
        }
        for name in ["mul.mlir.result", "model.imported.mlir.result"] {
            fs::copy(&program, folder.path(name)).unwrap();
        }
        for release in ["2.9.0", "3.10.0", "3.13.0", "3.99.0", "none"] {
            fs::create_dir(folder.path(release)).unwrap();
            for tool in ["iree-compile", "iree-import-onnx"] {
                let script =
                    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/stand_in/tool.sh");
                symlink(script, folder.path(release).join(tool)).unwrap();
            }
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `halite compile` on a file with the tools of a release.
    fn compile(&self, file: &str, release: &str, more: &[&str]) -> Outcome {
        let file = self.path(file).display().to_string();
        let compiler = self.path(release).join("iree-compile");
        let flag = format!("--compiler={}", compiler.display());
        let mut outcome = halite(&[&["compile", &file, &flag], more].concat());
        let folder = self.0.path().display().to_string();
        for text in [&mut outcome.stdout, &mut outcome.stderr] {
            *text = text.replace(&folder, "{folder}");
        }
        outcome
    }

    /// Returns the flags that the tool was given which made a file.
    fn flags(&self, output: &str) -> Vec<String> {
        let flags = fs::read_to_string(self.path(&format!("{output}.flags"))).unwrap();
        flags.lines().map(str::to_owned).collect()
    }
}

#[test]
fn a_program_is_compiled_beside_its_source_and_checked() {
    let folder = Folder::new();
    let outcome = folder.compile("mul.mlir", "3.13.0", &[]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    assert_eq!(outcome.stdout, "{folder}/mul.vmfb: will run here\n");
    assert_eq!(
        folder.flags("mul.vmfb"),
        [
            "--iree-execution-model=inline-dynamic",
            "--iree-hal-target-device=local",
            "--iree-flow-inline-constants-max-byte-length=1000000000",
            "--iree-opt-const-expr-hoisting=false",
            "--iree-opt-const-eval=false",
            "--iree-hal-local-target-device-backends=llvm-cpu",
            "--iree-llvmcpu-target-cpu=host",
        ]
    );
}

#[test]
fn flags_of_the_compiler_take_the_place_of_the_commands() {
    let folder = Folder::new();
    let output = folder.path("out.vmfb").display().to_string();
    let more = [
        "-o",
        &output,
        "--backend=vmvx",
        "--iree-opt-const-eval=true",
        "-v",
        "--",
        "-O2",
    ];
    let outcome = folder.compile("mul.mlir", "2.9.0", &more);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    says(
        &outcome,
        &[
            "info: `{folder}/2.9.0/iree-compile` is of release 2.9\n",
            "info: running {folder}/2.9.0/iree-compile {folder}/mul.mlir -o {folder}/out.vmfb --iree",
        ],
    );
    assert_eq!(
        folder.flags("out.vmfb"),
        [
            "--iree-execution-model=inline-dynamic",
            "--iree-hal-target-device=local",
            "--iree-flow-inline-constants-max-byte-length=1000000000",
            "--iree-opt-const-expr-hoisting=false",
            "--iree-hal-local-target-device-backends=vmvx",
            "-O2",
            "--iree-opt-const-eval=true",
        ]
    );
}

#[test]
fn a_model_is_imported_first_by_the_importer_beside_the_compiler() {
    let folder = Folder::new();
    let outcome = folder.compile("model.onnx", "3.13.0", &[]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    assert_eq!(outcome.stdout, "{folder}/model.vmfb: will run here\n");
    assert_eq!(
        folder.flags("model.imported.mlir"),
        ["--opset-version", "17"]
    );
    assert!(!folder.path("model.imported.mlir").exists());
    let flag = "--iree-torch-emit-async-entry-points=false".to_owned();
    assert!(folder.flags("model.vmfb").contains(&flag));
    // The importer of this release has no such flag, nor has its compiler the other.
    assert_eq!(folder.compile("model.onnx", "2.9.0", &[]).status, 0);
    assert!(folder.flags("model.imported.mlir").is_empty());
    assert!(!folder.flags("model.vmfb").contains(&flag));
}

#[test]
fn a_file_where_the_imported_model_would_go_is_left_alone() {
    let folder = Folder::new();
    fs::write(folder.path("model.imported.mlir"), "mine").unwrap();
    let outcome = folder.compile("model.onnx", "3.13.0", &[]);
    assert_eq!(outcome.status, 1);
    says(
        &outcome,
        &["error: ALREADY_EXISTS: cannot make `{folder}/model.imported.mlir`"],
    );
    let text = fs::read_to_string(folder.path("model.imported.mlir")).unwrap();
    assert_eq!(text, "mine");
}

#[test]
fn a_result_that_will_not_run_here_is_kept_and_has_its_reasons() {
    let folder = Folder::new();
    fs::write(folder.path("mul.mlir.result"), "no program").unwrap();
    let outcome = folder.compile("mul.mlir", "3.13.0", &[]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (1, ""));
    assert!(
        outcome
            .stdout
            .starts_with("{folder}/mul.vmfb: will not run here, for 1 reason\n  file: "),
        "{}",
        outcome.stdout
    );
    assert!(folder.path("mul.vmfb").exists());
}

#[test]
fn a_tool_that_fails_is_quoted_in_few_lines() {
    let folder = Folder::new();
    let outcome = folder.compile("broken.mlir", "3.13.0", &[]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (1, ""));
    assert_eq!(
        outcome.stderr,
        "error: UNKNOWN: cannot compile `{folder}/broken.mlir`
  `{folder}/3.13.0/iree-compile` failed with exit status: 1
  it says: {folder}/broken.mlir:3:8: error: 'util.initializer' op failed to inline into combined initializer
"
    );
    let outcome = folder.compile("broken.mlir", "3.13.0", &["-v"]);
    says(&outcome, &["note: see current operation: module"]);
}

#[test]
fn releases_that_reject_the_execution_model_are_named() {
    let folder = Folder::new();
    let outcome = folder.compile("broken.mlir", "3.10.0", &[]);
    assert_eq!(outcome.status, 1);
    says(
        &outcome,
        &["hint: compilers of the releases 3.9 to 3.11 reject programs with kernels"],
    );
    let outcome = folder.compile("other.onnx", "2.9.0", &[]);
    assert_eq!(outcome.status, 1);
    says(
        &outcome,
        &["hint: compilers before release 3.12 make functions of imported models asynchronous"],
    );
    // Programs without kernels are no trouble.
    assert_eq!(folder.compile("mul.mlir", "3.10.0", &[]).status, 0);
}

#[test]
fn a_compiler_of_another_release_or_of_none_is_refused() {
    let folder = Folder::new();
    let outcome = folder.compile("mul.mlir", "3.99.0", &[]);
    assert_eq!(outcome.status, 1);
    assert_eq!(
        outcome.stderr,
        "error: FAILED_PRECONDITION: `{folder}/3.99.0/iree-compile` is of release 3.99, known are 2.9 to 3.13
hint: name a compiler of a known release with --compiler=PATH
"
    );
    let outcome = folder.compile("mul.mlir", "none", &[]);
    assert_eq!(outcome.status, 1);
    assert_eq!(
        outcome.stderr,
        "error: FAILED_PRECONDITION: `{folder}/none/iree-compile --version` names no release of IREE
  it says: IREE (https://iree.dev):
"
    );
}

#[test]
fn tools_that_are_missing_are_named_with_the_flag_for_them() {
    let folder = Folder::new();
    let outcome = folder.compile("mul.mlir", "3.0.0", &[]);
    assert_eq!(outcome.status, 1);
    says(
        &outcome,
        &[
            "error: NOT_FOUND: cannot run `{folder}/3.0.0/iree-compile`\n  caused by: ",
            "hint: install it with `pip install iree-base-compiler[onnx]`, or name it with --compiler=PATH\n",
        ],
    );
    let outcome = folder.compile(
        "model.onnx",
        "3.13.0",
        &["--importer=/nonexistent/importer"],
    );
    assert_eq!(outcome.status, 1);
    says(
        &outcome,
        &[
            "cannot run `/nonexistent/importer`",
            "name it with --importer=PATH\n",
        ],
    );
}

#[test]
fn tools_are_found_where_the_system_finds_programs() {
    let folder = Folder::new();
    let compile = |path: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_halite"));
        command.arg("compile").arg(folder.path("mul.mlir"));
        command.env("PATH", path).output().unwrap()
    };
    // The script needs programs of the system.
    let path = std::env::var("PATH").unwrap();
    let with_tools = format!("{}:{path}", folder.path("3.13.0").display());
    let output = compile(Path::new(&with_tools));
    assert!(output.status.success(), "{output:?}");
    let output = compile(&folder.path("3.0.0"));
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("error: NOT_FOUND: cannot run `iree-compile`\n"),
        "{stderr}"
    );
}

#[test]
fn what_is_no_source_is_named_by_its_kind() {
    fails(
        1,
        &["compile", "{fixtures}/3.13.0/vmvx/mul.vmfb"],
        &[
            "error: INVALID_ARGUMENT: `{fixtures}/3.13.0/vmvx/mul.vmfb` cannot be compiled",
            "  the file is a compiled program\n",
            "hint: run it with --module={fixtures}/3.13.0/vmvx/mul.vmfb\n",
        ],
    );
    fails(
        1,
        &["compile", "/nonexistent/a.tflite"],
        &["its name ends neither in"],
    );
    fails(2, &["compile"], &["FILE"]);
}
