//! `halite run` on real programs: what it prints, where, and with which exit status.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use halite_cli::{Streams, main_with};
use tempfile::TempDir;

/// What a run of the command comes to.
struct Outcome {
    status: u8,
    stdout: String,
    stderr: String,
}

/// Runs `halite run` with these flags in this process.
fn run<S: AsRef<str>>(flags: &[S]) -> Outcome {
    run_with_stdin(flags, &[])
}

fn run_with_stdin<S: AsRef<str>>(flags: &[S], mut stdin: &[u8]) -> Outcome {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        stdin: &mut stdin,
        stdout: &mut stdout,
        stderr: &mut stderr,
        color: false,
    };
    let arguments = ["halite", "run"]
        .into_iter()
        .chain(flags.iter().map(AsRef::as_ref));
    let status = main_with(arguments.map(OsString::from), &mut streams);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Outcome {
        status,
        stdout: text(stdout),
        stderr: text(stderr),
    }
}

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures")
        .join(path)
}

fn module(path: &str) -> String {
    format!("--module={}", fixture(path).display())
}

const PORTABLE: &str = "3.13.0/vmvx/mul.vmfb";

/// Flags of a call of the portable `mul` on 1, 2, 3, 4 and tens, and more.
fn mul(more: &[&str]) -> Vec<String> {
    let flags = [
        "--function=mul",
        "--input=4xf32=1,2,3,4",
        "--input=4xf32=10",
    ];
    [module(PORTABLE)]
        .into_iter()
        .chain(flags.iter().chain(more).map(|flag| (*flag).to_owned()))
        .collect()
}

#[track_caller]
fn check(flags: &[String], stdout: &str) {
    let outcome = run(flags);
    assert_eq!(
        (outcome.stdout.as_str(), outcome.status),
        (stdout, 0),
        "{}",
        outcome.stderr
    );
}

#[track_caller]
fn check_failure(flags: &[String], status: u8, texts: &[&str]) {
    let outcome = run(flags);
    assert_eq!(outcome.status, status, "{}", outcome.stderr);
    for text in texts {
        assert!(
            outcome.stderr.contains(text),
            "`{text}` is missing in: {}",
            outcome.stderr
        );
    }
}

#[test]
fn results_are_printed_as_by_the_reference() {
    check(
        &mul(&[]),
        "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=10 20 30 40\n",
    );
    check(
        &mul(&["--output_max_element_count=2"]),
        "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=10 20...\n",
    );
    check(
        &mul(&["--output_max_element_count=-1"]),
        "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=10 20 30 40\n",
    );
    check(
        &mul(&["--output=-"]),
        "EXEC @mul\nhal.buffer_view\n4xf32=10 20 30 40\n",
    );
    check(&mul(&["--output="]), "EXEC @mul\n");
}

#[test]
fn flags_are_spelled_and_repeated_freely() {
    let mut flags = mul(&[
        "--output-max-element-count=1",
        "--output_max_element_count=3",
        "--device=local-sync",
        "--module_mode=mmap",
        "--threads=2",
    ]);
    check(
        &flags,
        "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=10 20 30...\n",
    );
    flags[1] = "--function=".into();
    check(
        &flags,
        "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=10 20 30...\n",
    );
}

#[test]
fn flags_come_from_a_file() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("flags");
    fs::write(&path, mul(&[]).join("\n")).unwrap();
    check(
        &[format!("--flagfile={}", path.display())],
        "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=10 20 30 40\n",
    );
}

#[test]
fn a_module_comes_from_standard_input() {
    let bytes = fs::read(fixture(PORTABLE)).unwrap();
    let mut flags = mul(&[]);
    flags[0] = "--module=-".into();
    let outcome = run_with_stdin(&flags, &bytes);
    assert_eq!(
        outcome.stdout,
        "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=10 20 30 40\n"
    );
    let outcome = run_with_stdin(&flags, &[]);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.stderr.contains("<standard input>") && outcome.stderr.contains("an empty file")
    );
}

#[test]
fn expected_outputs_are_compared() {
    check(
        &mul(&["--expected_output=4xf32=10 20 30 40.00001"]),
        "EXEC @mul\n[SUCCESS] all function outputs matched their expected values.\n",
    );
    check(
        &mul(&["--expected_output=(ignored)"]),
        "EXEC @mul\n[SUCCESS] all function outputs matched their expected values.\n",
    );
    check(
        &mul(&[
            "--expected_output=4xf32=10 20 30 40.5",
            "--expected_f32_threshold=1",
        ]),
        "EXEC @mul\n[SUCCESS] all function outputs matched their expected values.\n",
    );
    let outcome = run(&mul(&["--expected_output=4xf32=10 20 30 41"]));
    assert_eq!(outcome.status, 1);
    assert_eq!(
        outcome.stdout,
        "EXEC @mul\n[FAILED] result[0]: element at index 3 (40) does not match the expected (41); \
         expected that the view is equal to contents of a view of 4xf32\n  expected:\n\
         4xf32=10 20 30 41\n  actual:\n4xf32=10 20 30 40\n"
    );
    assert_eq!(outcome.stderr, "");
    let outcome = run(&mul(&[
        "--expected_output=4xf32=10 20 30 40.00001",
        "--equality_mode=exact",
    ]));
    assert_eq!(outcome.status, 1);
    check_failure(
        &mul(&["--expected_output=4xf32=1", "--expected_output=4xf32=1"]),
        1,
        &[
            "error: INVALID_ARGUMENT: cannot read --expected_output 1, `4xf32=1`",
            "only 1 values",
        ],
    );
}

#[test]
fn numbers_are_compared_too() {
    let scalar = |more: &[&str]| {
        let mut flags = vec![module("3.13.0/llvm-cpu/scalar.vmfb")];
        flags.extend(more.iter().map(|flag| (*flag).to_owned()));
        flags
    };
    let row = manifest_row("3.13.0/llvm-cpu/scalar.vmfb");
    let printed = run(&scalar(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    assert_eq!(printed.status, 0, "{}", printed.stderr);
    let values: Vec<String> = printed
        .stdout
        .lines()
        .filter_map(|line| {
            line.strip_prefix("result[")?
                .split_once('=')
                .map(|(_, value)| value.to_owned())
        })
        .collect();
    let mut flags = scalar(&row.iter().map(String::as_str).collect::<Vec<_>>());
    flags.extend(
        values
            .iter()
            .map(|value| format!("--expected_output={value}")),
    );
    let agreed = run(&flags);
    assert!(
        agreed
            .stdout
            .ends_with("[SUCCESS] all function outputs matched their expected values.\n"),
        "{}",
        agreed.stdout
    );
    *flags.last_mut().unwrap() = "--expected_output=12345".into();
    let differed = run(&flags);
    assert_eq!(differed.status, 1);
    assert!(
        differed.stdout.contains("does not match the expected ("),
        "{}",
        differed.stdout
    );
}

/// Returns the flags of the first recorded run of a module.
fn manifest_row(module: &str) -> Vec<String> {
    let manifest = fs::read_to_string(fixture("manifest.jsonl")).unwrap();
    let key = format!("\"module\": \"{module}\"");
    let row = manifest
        .lines()
        .find(|line| line.contains(&key) && line.contains("\"rc\": 0"))
        .unwrap();
    let (_, arguments) = row.split_once("\"args\": [").unwrap();
    let (arguments, _) = arguments.split_once(']').unwrap();
    arguments
        .split("\", \"")
        .map(|argument| argument.trim_matches('"').to_owned())
        .collect()
}

#[test]
fn e11_outputs_are_stored_and_appended() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    check(
        &mul(&[&format!("--output=@{}", path("a.npy"))]),
        "EXEC @mul\n",
    );
    check(
        &mul(&[&format!("--output=+{}", path("a.npy"))]),
        "EXEC @mul\n",
    );
    check(
        &mul(&[&format!("--output=@{}", path("a.bin"))]),
        "EXEC @mul\n",
    );
    assert_eq!(fs::read(path("a.npy")).unwrap().len(), 2 * (128 + 16));
    assert_eq!(fs::read(path("a.bin")).unwrap()[..4], 10f32.to_le_bytes());
    let mut again = mul(&[]);
    again[2] = format!("--input=@{}", path("a.npy"));
    again[3] = format!("--input=+{}", path("a.npy"));
    check(
        &again,
        "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=100 400 900 1600\n",
    );
    check_failure(
        &mul(&["--output=@/nonexistent/a.npy"]),
        1,
        &["error: NOT_FOUND: cannot write `/nonexistent/a.npy`"],
    );
    check_failure(
        &mul(&["--output=a.npy"]),
        1,
        &["error: UNIMPLEMENTED: --output 0 is `a.npy`"],
    );
    check_failure(
        &mul(&["--output=-", "--output=-"]),
        1,
        &["error: OUT_OF_RANGE: 2 outputs"],
    );
}

#[test]
fn e10_missing_inputs_are_listed_with_their_types() {
    check_failure(
        &[module(PORTABLE), "--input=4xf32=1".into()],
        1,
        &[
            "error: INVALID_ARGUMENT: the function `mul` takes 2 inputs, given are 1\n",
            "  missing input 1: tensor<4xf32>\n",
            "hint: add --input=4xf32=...\n",
        ],
    );
    check_failure(
        &[module(PORTABLE)],
        1,
        &["missing input 0", "missing input 1"],
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn e9_a_failing_program_says_why() {
    check_failure(
        &[
            module("3.13.0/llvm-cpu/assert.vmfb"),
            "--input=3xf32=1 2 3".into(),
            "--input=11".into(),
        ],
        1,
        &[
            "error: FAILED_PRECONDITION: the function `chk` failed\n",
            "  caused by: FAILED_PRECONDITION: n must be < 10\n",
            "\n    at module.chk:",
        ],
    );
}

#[test]
fn e9_a_function_without_results_says_so() {
    let outcome = run(&[module("3.13.0/vmvx/nothing.vmfb"), "--input=1".into()]);
    assert_eq!(
        (outcome.stdout.as_str(), outcome.status),
        ("EXEC @nothing\n", 0)
    );
    assert_eq!(
        outcome.stderr,
        "note: the function `nothing` has 0 results\n"
    );
}

#[test]
fn names_that_are_nearly_right_are_suggested() {
    let mut flags = mul(&[]);
    flags[1] = "--function=mull".into();
    check_failure(
        &flags,
        1,
        &[
            "error: NOT_FOUND: no function `mull` exported by module `module`",
            "hint: did you mean `mul`?",
        ],
    );
}

#[test]
fn e1_shapes_that_wrap_are_refused() {
    for shape in [
        "4294967296x4294967296xi8",
        "274177x67280421310721xi8",
        "4294967296x4294967296xf32",
    ] {
        let mut flags = mul(&[]);
        flags[2] = format!("--input={shape}");
        check_failure(
            &flags,
            1,
            &["error: RESOURCE_EXHAUSTED: cannot read --input 0", shape],
        );
    }
}

#[test]
fn e2_an_array_given_as_raw_bytes_is_refused_with_a_hint() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a.npy").display().to_string();
    check(&mul(&[&format!("--output=@{path}")]), "EXEC @mul\n");
    let mut flags = mul(&[]);
    flags[2] = format!("--input=4xf32=@{path}");
    check_failure(
        &flags,
        1,
        &[
            "error: INVALID_ARGUMENT:",
            "is a numpy array",
            &format!("hint: use `@{path}`"),
        ],
    );
}

#[test]
fn e3_missing_files_are_named() {
    for item in ["@nope.npy", "4xf32=@nope.npy", "4xf32=@nope.bin"] {
        let mut flags = mul(&[]);
        flags[2] = format!("--input={item}");
        check_failure(
            &flags,
            1,
            &["error: NOT_FOUND: cannot read --input 0", "nope."],
        );
    }
}

#[test]
fn c15_a_file_that_is_no_module_is_named_by_its_kind() {
    let directory = TempDir::new().unwrap();
    for (name, bytes, kind) in [
        ("a.so", &b"\x7FELF\x02\x01\x01"[..], "an ELF image"),
        ("a.npy", b"\x93NUMPY\x01\x00", "a NumPy array"),
        ("a.mlir", b"module {\n}\n", "MLIR text"),
        ("a.vmfb", b"", "an empty file"),
    ] {
        let path = directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        let path = path.display().to_string();
        check_failure(
            &[format!("--module={path}")],
            1,
            &["error: INVALID_ARGUMENT:", &path, kind],
        );
    }
}

#[test]
fn kernels_for_another_machine_are_named() {
    if cfg!(target_arch = "aarch64") {
        return;
    }
    let mut flags = mul(&[]);
    flags[0] = module("3.13.0/llvm-cpu-aarch64/mul.vmfb");
    check_failure(
        &flags,
        1,
        &[
            "error: UNAVAILABLE:",
            "hint: the program's kernels are for arm_64",
        ],
    );
}

#[test]
fn without_native_code_portable_kernels_run_and_others_are_refused() {
    let expected = "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=10 20 30 40\n";
    check(&mul(&["--no-native"]), expected);
    check(&mul(&["--no_native", "--threads=2"]), expected);
    for native in [
        "3.13.0/llvm-cpu/mul.vmfb",
        "3.13.0/llvm-cpu-system/mul.vmfb",
    ] {
        let flags = [
            module(native),
            "--function=mul".to_owned(),
            "--no-native".to_owned(),
        ];
        let inputs = ["--input=4xf32=1", "--input=4xf32=1"].map(str::to_owned);
        let flags: Vec<String> = flags.into_iter().chain(inputs).collect();
        check_failure(&flags, 1, &["error: ", "native code"]);
    }
    check_failure(
        &mul(&["--no-native", "--executable_plugin=p.so"]),
        2,
        &["executable_plugin"],
    );
}

#[test]
fn wrong_usage_has_status_2() {
    check_failure(&[], 2, &["--module"]);
    check_failure(&mul(&["--bogus=1"]), 2, &["--bogus"]);
    check_failure(
        &mul(&["--equality_mode=bogus"]),
        2,
        &["approximate", "exact"],
    );
    check_failure(&mul(&["extra"]), 2, &["extra"]);
    check_failure(&mul(&["--threads=-1"]), 2, &["--threads"]);
}

#[test]
fn help_goes_to_standard_output() {
    let outcome = run(&["--help"]);
    assert_eq!(outcome.status, 0);
    assert!(outcome.stdout.contains("Example:") && outcome.stdout.contains("--executable_plugin"));
    assert_eq!(outcome.stderr, "");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    struct Closed;
    impl io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut stderr = Vec::new();
    let mut streams = Streams {
        stdin: &mut io::empty(),
        stdout: &mut Closed,
        stderr: &mut stderr,
        color: false,
    };
    let arguments = ["halite", "run"].map(OsString::from).into_iter();
    let status = main_with(
        arguments.chain(mul(&[]).into_iter().map(OsString::from)),
        &mut streams,
    );
    assert_eq!((status, stderr.as_slice()), (0, &b""[..]));
}
