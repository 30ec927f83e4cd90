//! What happens to the command line before it is parsed: `--flagfile` is expanded, and dashes in the names of flags
//! become underscores, as IREE's runtime tools spell them. Flags of the compiler, which `halite compile` passes on, are
//! put behind its own and stay as they are.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs;

use halite::StatusCode;

use crate::failure::Failure;

/// How deep flag files may name each other.
const MAX_DEPTH: usize = 16;

/// How the flags of the compiler begin.
const COMPILER_FLAG: &str = "--iree-";

/// Returns the arguments with flag files in the place of `--flagfile=PATH` and all names in one spelling.
///
/// A flag file has a flag on each line; lines that are empty or begin with `#` do not count.
pub(crate) fn expand(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Vec<OsString>, Failure> {
    let mut expanded: Vec<OsString> = Vec::new();
    let mut compiler_flags = Vec::new();
    let mut has_end_of_flags = false;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let Some(flag) = argument.to_str().filter(|text| text.starts_with("--")) else {
            expanded.push(argument);
            continue;
        };
        if flag == "--" {
            expanded.push(argument);
            expanded.extend(arguments);
            has_end_of_flags = true;
            break;
        }
        let is_compile = expanded.get(1).is_some_and(|command| command == "compile");
        if is_compile && flag.starts_with(COMPILER_FLAG) {
            compiler_flags.push(argument);
            continue;
        }
        if flag == "--flagfile" {
            return Err(Failure::Usage(
                "--flagfile needs a value: --flagfile=PATH".into(),
            ));
        }
        push(flag, 0, &mut expanded)?;
    }
    if !compiler_flags.is_empty() && !has_end_of_flags {
        expanded.push("--".into());
    }
    expanded.extend(compiler_flags);
    Ok(expanded)
}

fn push(flag: &str, depth: usize, expanded: &mut Vec<OsString>) -> Result<(), Failure> {
    let Some(path) = flag.strip_prefix("--flagfile=") else {
        expanded.push(spelled(flag).into());
        return Ok(());
    };
    if depth == MAX_DEPTH {
        return Err(Failure::Usage(format!(
            "flag files name each other over {MAX_DEPTH} levels deep, last `{path}`"
        )));
    }
    let text = fs::read_to_string(path).map_err(|source| {
        let code = match source.kind() {
            std::io::ErrorKind::NotFound => StatusCode::NOT_FOUND,
            _ => StatusCode::UNKNOWN,
        };
        Failure::work(code, format!("cannot read the flag file `{path}`")).caused_by(source)
    })?;
    let lines = text.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        push(line, depth + 1, expanded)?;
    }
    Ok(())
}

/// Returns a flag with underscores in its name; its value stays as it is.
fn spelled(flag: &str) -> String {
    let (name, value) = flag.split_at(flag.find('=').unwrap_or(flag.len()));
    match name.strip_prefix("--") {
        Some(name) => format!("--{}{value}", name.replace('-', "_")),
        None => flag.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tempfile::TempDir;

    use super::*;

    fn expanded(arguments: &[&str]) -> Result<Vec<String>, Failure> {
        let arguments = expand(arguments.iter().map(OsString::from))?;
        Ok(arguments
            .iter()
            .map(|argument| argument.to_str().unwrap().to_owned())
            .collect())
    }

    fn flag_file(directory: &Path, name: &str, text: &str) -> String {
        let path = directory.join(name);
        fs::write(&path, text).unwrap();
        format!("--flagfile={}", path.display())
    }

    #[test]
    fn names_are_spelled_with_underscores_and_values_left_alone() {
        assert_eq!(
            expanded(&[
                "halite",
                "run",
                "--executable-plugin=a-b.so",
                "--input",
                "-5-",
                "--",
                "--a-b"
            ])
            .unwrap(),
            [
                "halite",
                "run",
                "--executable_plugin=a-b.so",
                "--input",
                "-5-",
                "--",
                "--a-b"
            ]
        );
    }

    #[test]
    fn flags_of_the_compiler_go_behind_the_commands_own() {
        assert_eq!(
            expanded(&["halite", "compile", "--iree-a-b=1", "x.mlir", "--no-c"]).unwrap(),
            [
                "halite",
                "compile",
                "x.mlir",
                "--no_c",
                "--",
                "--iree-a-b=1"
            ]
        );
        assert_eq!(
            expanded(&["halite", "compile", "--iree-a", "--", "-O3"]).unwrap(),
            ["halite", "compile", "--", "-O3", "--iree-a"]
        );
        assert_eq!(
            expanded(&["halite", "run", "--iree-a"]).unwrap(),
            ["halite", "run", "--iree_a"]
        );
    }

    #[test]
    fn flag_files_are_expanded_in_place() {
        let directory = TempDir::new().unwrap();
        let inner = flag_file(directory.path(), "inner", "--b-c=2\n");
        let outer = flag_file(
            directory.path(),
            "outer",
            &format!("# a comment\n\n  --a=1 \n{inner}\n"),
        );
        assert_eq!(
            expanded(&["x", &outer, "--d"]).unwrap(),
            ["x", "--a=1", "--b_c=2", "--d"]
        );
    }

    #[test]
    fn flag_files_that_name_themselves_are_refused() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("loop");
        let flag = format!("--flagfile={}", path.display());
        fs::write(&path, &flag).unwrap();
        let failure = expanded(&["x", &flag]).unwrap_err();
        assert_eq!(failure.exit_status(), 2);
    }

    #[test]
    fn a_missing_flag_file_is_named() {
        let failure = expanded(&["x", "--flagfile=/nonexistent/flags"]).unwrap_err();
        assert_eq!(failure.exit_status(), 1);
        assert!(failure.to_string().contains("/nonexistent/flags"));
        assert_eq!(expanded(&["x", "--flagfile"]).unwrap_err().exit_status(), 2);
    }
}
