//! What can go wrong between a file and a result, as one type.
#![forbid(unsafe_code)]

use std::io;
use std::path::PathBuf;

use hal_plugin::{PluginError, RegisterError};
use vm::{StatusCode, Trap};
use vm_bytecode::{ArchiveError, FileKind, LoadError};

/// Why a program cannot be loaded, linked or called.
///
/// The message says what failed; the chain of causes ([`std::error::Error::source`]) says why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file is no program, or one that does not verify.
    #[error("cannot load the program `{origin}`")]
    Load {
        /// Where the bytes came from.
        origin: String,
        /// What is wrong with them.
        #[source]
        source: Box<LoadError>,
    },
    /// A session is asked for without a program.
    #[error("a session needs a program")]
    NoProgram,
    /// The program was compiled for the asynchronous execution model.
    #[error(
        "the program `{origin}` was compiled for the asynchronous execution model: it needs the module `{needs}`"
    )]
    AsynchronousModel {
        /// Where the program came from.
        origin: String,
        /// The module it needs.
        needs: String,
    },
    /// A plugin is given to a session that may not run native code.
    #[error("the plugin `{plugin}` is native code, which the session may not run")]
    NativeCodeNotAllowed {
        /// The plugin's path.
        plugin: String,
    },
    /// A plugin cannot be loaded.
    #[error("cannot load the plugin `{plugin}`")]
    Plugin {
        /// The plugin's path.
        plugin: String,
        /// Why.
        #[source]
        source: Box<PluginError>,
    },
    /// A plugin or provider cannot be registered.
    #[error("cannot register `{name}`")]
    Register {
        /// The plugin or provider.
        name: String,
        /// Why.
        #[source]
        source: Box<RegisterError>,
    },
    /// Threads cannot be started.
    #[error("cannot start {threads} threads")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A program cannot be linked, or its initializer failed.
    #[error("cannot start the program `{origin}`")]
    Start {
        /// Where the program came from.
        origin: String,
        /// What went wrong.
        #[source]
        source: Trap,
        /// What is known beyond that.
        obstacle: Option<Obstacle>,
    },
    /// There is no such function.
    #[error("no function `{name}` exported by module `{module}`")]
    FunctionNotFound {
        /// The name asked for.
        name: String,
        /// The module that was looked into.
        module: String,
        /// The functions that it has.
        available: Vec<String>,
    },
    /// A function must be named, since the module has none or many.
    #[error("the module `{module}` has {} functions, one must be named", available.len())]
    FunctionNotNamed {
        /// The module.
        module: String,
        /// The functions that it has.
        available: Vec<String>,
    },
    /// A function is given too few or too many arguments.
    #[error("the function `{function}` takes {expected} arguments, {found} are given")]
    ArgumentCount {
        /// The function.
        function: String,
        /// Arguments that it takes.
        expected: usize,
        /// Arguments given.
        found: usize,
    },
    /// An argument is not what the function declares.
    #[error(
        "the function `{function}` takes {expected} as argument {index}{}, given is {found}",
        in_parentheses(name)
    )]
    Argument {
        /// The function.
        function: String,
        /// The position of the argument.
        index: usize,
        /// Its name; empty when it has none.
        name: String,
        /// The declared type.
        expected: String,
        /// What is given.
        found: String,
    },
    /// A function failed.
    #[error("the function `{function}` failed")]
    Call {
        /// The function.
        function: String,
        /// What went wrong.
        #[source]
        source: Trap,
    },
}

/// What keeps a program from starting, found by looking at its kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// Its kernels are native code, and the session may not run any.
    NativeCodeNotAllowed,
    /// Its kernels are for other machines.
    OtherMachine {
        /// The machines, for example `arm_64`.
        machines: Vec<String>,
        /// This machine.
        host: String,
    },
}

impl Error {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::Read { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => StatusCode::NOT_FOUND,
                io::ErrorKind::PermissionDenied => StatusCode::PERMISSION_DENIED,
                _ => StatusCode::UNKNOWN,
            },
            Self::Load { source, .. } => source.status_code(),
            Self::NoProgram
            | Self::FunctionNotNamed { .. }
            | Self::ArgumentCount { .. }
            | Self::Argument { .. } => StatusCode::INVALID_ARGUMENT,
            Self::AsynchronousModel { .. } => StatusCode::UNIMPLEMENTED,
            Self::NativeCodeNotAllowed { .. } => StatusCode::PERMISSION_DENIED,
            Self::Plugin { source, .. } => from_abi(source.status_code()),
            Self::Register { source, .. } => from_abi(source.status_code()),
            Self::Threads { .. } => StatusCode::RESOURCE_EXHAUSTED,
            Self::Start { source, .. } | Self::Call { source, .. } => source.code(),
            Self::FunctionNotFound { .. } => StatusCode::NOT_FOUND,
        }
    }

    /// Returns what a file is that was taken for a program, if it is of another kind.
    #[must_use]
    pub fn file_kind(&self) -> Option<FileKind> {
        match self {
            Self::Load { source, .. } => match &**source {
                LoadError::Archive(ArchiveError::OtherKind { kind }) => Some(*kind),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns what to do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::AsynchronousModel { .. } => Some(
                "compile it with `--iree-execution-model=inline-dynamic \
                 --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu \
                 --iree-flow-inline-constants-max-byte-length=1000000000 \
                 --iree-opt-const-expr-hoisting=false --iree-opt-const-eval=false`"
                    .into(),
            ),
            Self::NativeCodeNotAllowed { .. } => Some(ALLOW_NATIVE_CODE.into()),
            Self::Start {
                obstacle: Some(obstacle),
                ..
            } => Some(obstacle.hint()),
            Self::Start { source, .. } if source.message().contains("version mismatch") => Some(
                "the program was made by a newer compiler than this runtime knows; \
                 compile it with an IREE release up to 3.13"
                    .into(),
            ),
            Self::Start { source, .. } if source.message().contains("signature mismatch") => Some(
                "the program and the module it imports are of different IREE releases; \
                 compile it again"
                    .into(),
            ),
            Self::FunctionNotFound {
                name, available, ..
            } => Some(match nearest(name, available) {
                Some(near) => format!("did you mean `{near}`?"),
                None => list_functions(available),
            }),
            Self::FunctionNotNamed { available, .. } => Some(list_functions(available)),
            _ => None,
        }
    }
}

const ALLOW_NATIVE_CODE: &str =
    "allow native code with `SessionBuilder::native_code` if the program can be trusted";

impl Obstacle {
    fn hint(&self) -> String {
        match self {
            Self::NativeCodeNotAllowed => ALLOW_NATIVE_CODE.into(),
            Self::OtherMachine { machines, host } => format!(
                "the program's kernels are for {}, this machine is {host}; compile it for {host}",
                machines.join(", ")
            ),
        }
    }
}

/// Returns ` (name)`, or nothing for an empty name.
fn in_parentheses(name: &str) -> String {
    if name.is_empty() {
        return String::new();
    }
    format!(" ({name})")
}

fn list_functions(available: &[String]) -> String {
    if available.is_empty() {
        return "the module has no functions to call".into();
    }
    format!("the module has the functions {}", available.join(", "))
}

/// Returns the name that takes the fewest changes, if they are few.
fn nearest<'a>(name: &str, available: &'a [String]) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let distances = available
        .iter()
        .map(|other| (distance(name, other), other.as_str()));
    distances
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, other)| other)
}

/// Returns the edit distance between two names, regardless of case.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.to_lowercase().chars().enumerate() {
        let mut diagonal = index;
        row[0] = index + 1;
        for (column, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

/// Returns a code of the C boundary as the VM counts it.
fn from_abi(code: hal_abi::StatusCode) -> StatusCode {
    StatusCode::from_low_bits(code.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_miss_is_suggested() {
        let available = ["matmul".to_owned(), "softmax".to_owned(), "mul".to_owned()];
        assert_eq!(nearest("matnul", &available), Some("matmul"));
        assert_eq!(nearest("Mul", &available), Some("mul"));
        assert_eq!(nearest("sofmax", &available), Some("softmax"));
        assert_eq!(nearest("attention", &available), None);
        assert_eq!(nearest("", &available), None);
    }

    #[test]
    fn edit_distances_count_changes() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("same", "SAME"), 0);
    }

    #[test]
    fn errors_move_between_threads() {
        fn check<T: Send + Sync + 'static>() {}
        check::<Error>();
    }
}
