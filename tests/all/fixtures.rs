//! The committed fixtures are complete, documented and small. What they do when run is tested in `programs`.

use std::collections::BTreeSet;
use std::path::Path;

use halite_tests::fixtures;

use crate::manifest::Row;

/// The most bytes that all fixtures may have together.
const MAX_BYTES: u64 = 200 * 1024;

/// Returns the rows of the committed manifest.
pub(crate) fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(fixtures().join("manifest.jsonl")).unwrap();
    text.lines().map(|line| Row::parse(line).unwrap()).collect()
}

/// Returns the path and size of every file below a folder, relative to the fixtures.
fn files(folder: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let name = path
                .strip_prefix(fixtures())
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            found.push((name, path.metadata().unwrap().len()));
        }
    }
    found
}

#[test]
fn every_module_is_run_by_the_manifest() {
    let run: BTreeSet<String> = rows().into_iter().map(|row| row.module).collect();
    let present = files(&fixtures()).into_iter().map(|(name, _)| name);
    let present: BTreeSet<String> = present.filter(|name| name.ends_with(".vmfb")).collect();
    assert_eq!(run, present);
}

#[test]
fn a_module_lies_where_its_row_says() {
    for row in rows() {
        assert_eq!(
            row.module,
            format!("{}/{}/{}.vmfb", row.release, row.config, row.program)
        );
        assert_eq!(row.model, "inline", "{}", row.module);
    }
}

#[test]
fn every_module_has_its_source() {
    for row in rows() {
        let source = fixtures().join(format!("src/{}.mlir", row.program));
        assert!(source.is_file(), "{}", source.display());
    }
}

#[test]
fn native_modules_say_their_machine() {
    for row in rows() {
        let bytes = std::fs::read(fixtures().join(&row.module)).unwrap();
        let is_native = bytes.windows(4).any(|window| window == b"\x7fELF");
        assert_eq!(row.machine.is_some(), is_native, "{}", row.module);
    }
}

#[test]
fn the_fixtures_stay_small() {
    let total: u64 = files(&fixtures()).iter().map(|(_, size)| size).sum();
    assert!(total <= MAX_BYTES, "{total} bytes");
}

#[test]
fn plugins_are_taken_from_the_folder_that_xtask_fills() {
    let plugins = Path::new("/plugins");
    for row in rows().into_iter().filter(Row::needs_plugin) {
        let arguments = row.arguments(plugins);
        assert!(
            arguments
                .iter()
                .any(|argument| argument.contains("/plugins/")),
            "{}",
            row.module
        );
    }
}
