//! What to do about a mistake, in terms of the command's own flags and subcommands.
//!
//! The library's hints speak of no flags; where the command knows better, it says so here.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use halite::inspect::{self, Content};
use halite::text::{InputError, ItemError, Parameter};
use halite::{Atom, Error, FileKind, Obstacle};

/// What to do when functions are missing that kernels import.
pub(crate) const NAME_PLUGINS: &str =
    "name the plugins that have them with --executable_plugin=PATH";

/// Returns what to do about an error of the library.
pub(crate) fn of_error(error: &Error) -> Option<String> {
    match error {
        Error::Load { origin, .. } => error.file_kind().and_then(|kind| of_file(kind, origin)),
        Error::NativeCodeNotAllowed { .. }
        | Error::Start {
            obstacle: Some(Obstacle::NativeCodeNotAllowed),
            ..
        } => Some(
            "its kernels are native code: leave out --no_native if you trust the program"
                .to_owned(),
        ),
        Error::AsynchronousModel { .. } => error.hint().map(|hint| {
            format!("compile its source again with `halite compile`; without that command, {hint}")
        }),
        Error::Plugin { plugin, .. } => of_plugin(Path::new(plugin)),
        Error::Start { .. } if has_missing_imports(error) => Some(NAME_PLUGINS.to_owned()),
        _ => error.hint(),
    }
}

/// Returns whether the functions are missing that kernels import.
pub(crate) fn has_missing_imports(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().is_some_and(|cause| {
        let text = cause.to_string();
        text.starts_with("missing ") && text.contains(" required executable import")
    })
}

/// Returns what to do about a plugin that cannot be loaded.
pub(crate) fn of_plugin(path: &Path) -> Option<String> {
    let is_bare = path.components().count() == 1 && path.is_relative();
    let description = inspect::describe(&fs::read(path).ok()?).ok()?;
    let path = path.display();
    match description.content {
        Content::Elf(_) | Content::FatElf(_) if is_bare => Some(format!(
            "a name without a `/` is searched by the system; write ./{path}"
        )),
        Content::Elf(_) | Content::FatElf(_) => None,
        Content::Module(_) => Some(format!("`{path}` is a program, not a plugin")),
        Content::Npy(_) => Some(format!("`{path}` is a NumPy array, not a plugin")),
        Content::Other { what } => Some(format!("`{path}` is no plugin but {what}")),
        _ => None,
    }
}

/// Returns what to do with a file that was named as a program and is none.
fn of_file(kind: FileKind, path: &str) -> Option<String> {
    // What comes from standard input has no name to repeat.
    if path.starts_with('<') {
        return None;
    }
    match kind {
        FileKind::MlirText | FileKind::MlirBytecode | FileKind::Onnx => {
            Some(format!("compile it first: halite compile {path}"))
        }
        FileKind::Elf | FileKind::FatElf => Some(format!(
            "a plugin is named with --executable_plugin={path}, an executable is run with \
             `halite exec --executable={path}`; `halite inspect {path}` says which it is"
        )),
        FileKind::Npy => Some(format!(
            "an array is an argument of a function: --input=@{path}"
        )),
        _ => None,
    }
}

/// Returns what to do about an item of `--input` that cannot be read as `parameter`.
pub(crate) fn of_input(
    error: &InputError,
    item: &str,
    parameter: Option<&Parameter<'_>>,
) -> Option<String> {
    if let Some(hint) = error.hint() {
        return Some(hint);
    }
    match &error.source {
        ItemError::Number { .. } => {
            let (_, number) = item.split_once('=')?;
            is_number(number).then(|| format!("a scalar is a number alone: write `{number}`"))
        }
        ItemError::Tensor(_) => of_tensor(item, parameter?),
        _ => None,
    }
}

/// Returns how a tensor is written that the function declares.
fn of_tensor(item: &str, parameter: &Parameter<'_>) -> Option<String> {
    if parameter.atom == Atom::Ref && item.ends_with(".npy") && Path::new(item).exists() {
        return Some(format!("use `@{item}` to read an array from a file"));
    }
    let declared = parameter.declared_type?;
    let shape_and_type = declared.strip_prefix("tensor<")?.strip_suffix('>')?;
    // An encoding may follow the type.
    let shape_and_type = shape_and_type.split(',').next()?.trim();
    let data = if is_number(item) { item } else { "..." };
    let sizes = match shape_and_type.contains('?') {
        true => ", with a size in the place of each `?`",
        false => "",
    };
    Some(format!(
        "a {declared} belongs here: write `{shape_and_type}={data}`{sizes}"
    ))
}

/// Returns whether a text is a number and nothing else.
fn is_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_tensor(item: &str, declared: &str, hint: &str) {
        let parameter = Parameter {
            atom: Atom::Ref,
            declared_type: Some(declared),
        };
        assert_eq!(of_tensor(item, &parameter).as_deref(), Some(hint));
    }

    #[test]
    fn a_number_for_a_tensor_is_written_with_its_declared_type() {
        check_tensor(
            "5",
            "tensor<f32>",
            "a tensor<f32> belongs here: write `f32=5`",
        );
        check_tensor(
            "5",
            "tensor<?x4xf32>",
            "a tensor<?x4xf32> belongs here: write `?x4xf32=5`, with a size in the place of each `?`",
        );
        check_tensor(
            "a.bin",
            "tensor<4xi8, #encoding>",
            "a tensor<4xi8, #encoding> belongs here: write `4xi8=...`",
        );
    }

    #[test]
    fn standard_input_has_no_name_to_repeat() {
        assert_eq!(of_file(FileKind::Npy, "<standard input>"), None);
        assert!(of_file(FileKind::Npy, "a.npy").is_some());
        assert_eq!(of_file(FileKind::Empty, "a.vmfb"), None);
    }
}
