//! Running the command in this process, comparing what it prints, and building a plugin.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use halite_cli::{Streams, main_with};
use tempfile::TempDir;

/// What a run of the command comes to.
pub(crate) struct Outcome {
    pub(crate) status: u8,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `halite` with these arguments. `{fixtures}` in an argument stands for the folder of the fixtures, and in what
/// is printed as well.
pub(crate) fn halite(arguments: &[&str]) -> Outcome {
    halite_with_stdin(arguments, &[])
}

pub(crate) fn halite_with_stdin(arguments: &[&str], mut stdin: &[u8]) -> Outcome {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        stdin: &mut stdin,
        stdout: &mut stdout,
        stderr: &mut stderr,
        color: false,
    };
    let fixtures = root().join("tests/fixtures").display().to_string();
    let arguments = ["halite"]
        .iter()
        .chain(arguments)
        .map(|argument| OsString::from(argument.replace("{fixtures}", &fixtures)));
    let status = main_with(arguments, &mut streams);
    let text = |bytes| {
        String::from_utf8(bytes)
            .unwrap()
            .replace(&fixtures, "{fixtures}")
    };
    Outcome {
        status,
        stdout: text(stdout),
        stderr: text(stderr),
    }
}

/// Checks that a run succeeds and prints the text in `expected/`.
#[track_caller]
pub(crate) fn prints(expected: &str, arguments: &[&str]) {
    let outcome = halite(arguments);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    compare(expected, &outcome.stdout);
}

/// Checks that a run fails with this status, prints the text in `expected/`, and says these things on standard error.
#[track_caller]
pub(crate) fn prints_and_fails(expected: &str, arguments: &[&str], errors: &[&str]) {
    let outcome = halite(arguments);
    assert_eq!(outcome.status, 1, "{}", outcome.stderr);
    compare(expected, &outcome.stdout);
    says(&outcome, errors);
}

/// Checks that a run fails without output and says these things on standard error.
#[track_caller]
pub(crate) fn fails(status: u8, arguments: &[&str], errors: &[&str]) {
    let outcome = halite(arguments);
    assert_eq!(
        (outcome.status, outcome.stdout.as_str()),
        (status, ""),
        "{}",
        outcome.stderr
    );
    says(&outcome, errors);
}

#[track_caller]
pub(crate) fn says(outcome: &Outcome, texts: &[&str]) {
    for text in texts {
        assert!(
            outcome.stderr.contains(text),
            "{text:?} is missing in:\n{}",
            outcome.stderr
        );
    }
}

/// Compares a text with the one in `expected/`, or writes it there.
#[track_caller]
pub(crate) fn compare(name: &str, found: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/expected");
    let path = folder.join(name);
    if env::var_os("HALITE_RENEW").is_some() {
        fs::write(&path, found).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert!(
        found == expected,
        "{name}: expected\n{expected}\nfound\n{found}"
    );
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sample plugin `scale_add` in a folder of its own.
pub(crate) struct SamplePlugin(TempDir);

impl SamplePlugin {
    /// Builds the plugin, or prints why it cannot be and returns `None`.
    pub(crate) fn build() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let root = root();
        let status = Command::new("cc")
            .args(["-std=c11", "-O1", "-fPIC", "-shared", "-I"])
            .arg(root.join("crates/hal-abi/include"))
            .arg("-o")
            .arg(folder.path().join("scale_add.so"))
            .arg(root.join("tests/plugins/scale_add.c"))
            .status();
        match status {
            Ok(status) => assert!(status.success(), "the C compiler failed"),
            Err(error) => {
                println!("skipped: cannot run the C compiler `cc`: {error}");
                return None;
            }
        }
        Some(Self(folder))
    }

    /// Returns the path of the plugin.
    pub(crate) fn path(&self) -> String {
        self.0.path().join("scale_add.so").display().to_string()
    }
}
