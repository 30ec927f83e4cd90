//! Errors of executables as the VM reports them.

use hal_local::{DispatchError, LoadError, LookupError};
use vm::{StatusCode, Trap};

use crate::DispatchArgumentsError;

/// Returns the trap of a failed load; `format` is what the program asked for.
#[cold]
pub(crate) fn load_failure(format: &str, error: LoadError) -> Trap {
    let code = failure_code(error.status_code().0);
    match error {
        LoadError::NoLoader { asked, .. } => {
            let asked = if asked.is_empty() {
                "none".to_owned()
            } else {
                asked.join(", ")
            };
            Trap::new(
                code,
                format!(
                    "no executable loader registered for the given executable format '{format}'; \
                     loaders asked: {asked}"
                ),
            )
        }
        error => Trap::from_error(
            code,
            format!("cannot load the executable of format '{format}'"),
            error,
        ),
    }
}

/// Returns the trap of a function that was not found.
#[cold]
pub(crate) fn lookup_failure(error: &LookupError) -> Trap {
    Trap::new(failure_code(error.status_code().0), error.to_string())
}

/// Returns the trap of a dispatch that was refused or failed.
#[cold]
pub(crate) fn dispatch_failure(error: DispatchError) -> Trap {
    let (code, message) = (failure_code(error.status_code().0), error.to_string());
    match error {
        DispatchError::Executable { source, .. } => Trap::from_error(code, message, source),
        _ => Trap::new(code, message),
    }
}

/// Returns the trap of a binding that is no part of a buffer, with its position.
#[cold]
pub(crate) fn binding_failure(index: usize, trap: &Trap) -> Trap {
    Trap::new(trap.code(), format!("{} (binding {index})", trap.message()))
}

/// Returns the code of a failure below as the VM's. Success and the sign of a call that yielded would be taken for
/// something else than a failure.
fn failure_code(code: u32) -> StatusCode {
    match StatusCode::from_low_bits(code) {
        StatusCode::OK | StatusCode::DEFERRED => StatusCode::INTERNAL,
        code => code,
    }
}

impl From<DispatchArgumentsError> for Trap {
    #[cold]
    fn from(error: DispatchArgumentsError) -> Self {
        let code = match error {
            DispatchArgumentsError::TooShort { .. } | DispatchArgumentsError::TooLong { .. } => {
                StatusCode::INVALID_ARGUMENT
            }
            DispatchArgumentsError::TooManyBindings { .. } => StatusCode::RESOURCE_EXHAUSTED,
        };
        Self::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_failure_has_a_code_that_means_something_else() {
        assert_eq!(failure_code(0), StatusCode::INTERNAL);
        assert_eq!(failure_code(17), StatusCode::INTERNAL);
        assert_eq!(failure_code(5), StatusCode::NOT_FOUND);
        assert_eq!(failure_code(31).value(), 31);
    }
}
