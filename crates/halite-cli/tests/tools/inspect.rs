//! `halite inspect`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{SamplePlugin, fails, halite, halite_with_stdin, prints, root};

#[test]
fn a2_the_imports_of_a_module_are_shown_before_it_is_run() {
    prints(
        "inspect_plugin_program.txt",
        &["inspect", "{fixtures}/3.13.0/llvm-cpu/plugin.vmfb"],
    );
}

#[test]
fn programs_of_old_releases_and_with_portable_kernels_are_described() {
    prints(
        "inspect_2_9_0.txt",
        &["inspect", "{fixtures}/2.9.0/llvm-cpu/mul.vmfb"],
    );
    prints(
        "inspect_vmvx.txt",
        &["inspect", "{fixtures}/3.13.0/vmvx/mul.vmfb"],
    );
    prints(
        "inspect_aarch64.txt",
        &["inspect", "{fixtures}/3.13.0/llvm-cpu-aarch64/mul.vmfb"],
    );
}

#[test]
fn json_has_an_object_for_each_file_on_a_line_of_its_own() {
    let files = [
        "{fixtures}/3.13.0/llvm-cpu/mul.vmfb",
        "{fixtures}/3.13.0/vmvx/mul.vmfb",
    ];
    let outcome = halite(&["inspect", "--json", files[0], files[1]]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let objects: Vec<Value> = outcome
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(objects.len(), 2);
    for (object, file) in objects.iter().zip(files) {
        assert_eq!(object["file"], file);
        assert_eq!(object["schema"], 1);
        assert_eq!(object["kind"], "module");
        assert_eq!(object["releases"]["first"], "3.12");
        assert_eq!(object["execution_model"], "inline-dynamic");
    }
    assert_eq!(objects[0]["executables"][0]["kind"], "elf");
    assert_eq!(
        objects[0]["executables"][0]["library"]["exports"][0]["binding_count"],
        3
    );
    assert_eq!(objects[1]["executables"][0]["kind"], "module");
}

/// Adds the names of all fields of a value; those of objects with names of their own are left out.
fn add_fields(value: &Value, fields: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                fields.insert(name.clone());
                if !["attributes", "relocations"].contains(&name.as_str()) {
                    add_fields(value, fields);
                }
            }
        }
        Value::Array(array) => array.iter().for_each(|value| add_fields(value, fields)),
        _ => {}
    }
}

#[test]
fn every_field_of_the_json_is_documented() {
    let mut commands = vec![
        vec![
            "check",
            "--json",
            "{fixtures}/3.13.0/llvm-cpu-aarch64/mul.vmfb",
        ],
        vec![
            "inspect",
            "--json",
            "{fixtures}/3.13.0/llvm-cpu/plugin.vmfb",
            "{fixtures}/3.13.0/vmvx/mul.vmfb",
            "{fixtures}/2.9.0/llvm-cpu/mul.vmfb",
        ],
        vec![
            "bench",
            "--format=json",
            "--benchmark_min_time=0",
            "--module={fixtures}/3.13.0/vmvx/mul.vmfb",
            "--input=4xf32=1",
            "--input=4xf32=1",
        ],
    ];
    let array = root().join("crates/halite-cli/tests/snapshots/files/array.npy");
    let array = array.display().to_string();
    commands.push(vec!["inspect", "--json", &array]);
    let plugin = SamplePlugin::build().map(|plugin| (plugin.path(), plugin));
    if let Some((path, _)) = &plugin {
        commands.push(vec!["inspect", "--json", path]);
    }
    let mut fields = BTreeSet::new();
    for command in commands {
        let outcome = halite(&command);
        assert_eq!(outcome.stderr, "", "{command:?}");
        for line in outcome.stdout.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            // A field that is there twice would be lost.
            assert_eq!(value.to_string().len(), line.len(), "{line}");
            add_fields(&value, &mut fields);
        }
    }
    let document = fs::read_to_string(root().join("docs/inspect.md")).unwrap();
    let is_documented = |field: &str| {
        document
            .split(|character: char| !character.is_alphanumeric() && character != '_')
            .any(|word| word == field)
    };
    let missing: Vec<_> = fields
        .iter()
        .filter(|field| !is_documented(field))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_library_is_described_by_its_tables() {
    let path = root().join("crates/hal-local/tests/fixtures/dynsum_3_13_0.embedded.so");
    let outcome = halite(&["inspect", &path.display().to_string()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("executable library for x86-64, "),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("2 bindings, 4 constants"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_plugin_is_described_without_running_it() {
    let Some(plugin) = SamplePlugin::build() else {
        return;
    };
    let outcome = halite(&["inspect", &plugin.path()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains(
            "plugin          `scale_add_c`, ABI 0.1, features STANDALONE, sanitizer none\n"
        ),
        "{}",
        outcome.stdout
    );
}

#[test]
fn other_files_are_named_and_unknown_ones_are_an_error() {
    let outcome = halite_with_stdin(&["inspect", "-"], b"func.func @f() { return }");
    assert_eq!(
        outcome.stdout,
        "<standard input>: MLIR text, which must be compiled first, 25 bytes\n"
    );
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("a.npy"), b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }             \n12345678").unwrap();
    let outcome = halite(&["inspect", &path("a.npy")]);
    assert!(
        outcome.stdout.contains("  shape           [2, 1]\n"),
        "{}{}",
        outcome.stdout,
        outcome.stderr
    );
    fs::write(path("unknown"), [0xFF, 0, 1, 2]).unwrap();
    fails(
        1,
        &["inspect", &path("unknown")],
        &["error: INVALID_ARGUMENT: cannot describe"],
    );
    fails(
        1,
        &["inspect", &path("nowhere")],
        &["error: NOT_FOUND: cannot read"],
    );
    fails(2, &["inspect"], &["FILE"]);
}

#[test]
fn names_cannot_control_the_terminal() {
    let mut file = fs::read(root().join("tests/fixtures/3.13.0/vmvx/mul.vmfb")).unwrap();
    let name = b"mul_dispatch_0_elementwise_4_f32";
    let places: Vec<usize> = (0..file.len() - name.len())
        .filter(|at| file[*at..].starts_with(name))
        .collect();
    for place in places {
        file[place..place + 4].copy_from_slice(b"\x1b[2J");
    }
    let outcome = halite_with_stdin(&["inspect", "-"], &file);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("\\u{1b}[2Jdispatch"),
        "{}",
        outcome.stdout
    );
    assert!(!outcome.stdout.contains('\u{1b}'));
}

#[test]
fn functions_are_disassembled_by_name() {
    prints(
        "disassemble_loop.txt",
        &[
            "inspect",
            "--disassemble=loop",
            "{fixtures}/3.13.0/llvm-cpu/loop.vmfb",
        ],
    );
    let all = halite(&[
        "inspect",
        "--disassemble",
        "{fixtures}/3.13.0/llvm-cpu/loop.vmfb",
    ]);
    assert!(all.stdout.contains("vm.module @module"), "{}", all.stdout);
    fails(
        1,
        &[
            "inspect",
            "--disassemble=lop",
            "{fixtures}/3.13.0/llvm-cpu/loop.vmfb",
        ],
        &["error: NOT_FOUND: cannot disassemble", "no function `lop`"],
    );
}
