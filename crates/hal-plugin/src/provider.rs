//! The trait of everything that can supply imports, and the error it answers with.

use std::error::Error;
use std::fmt;

use hal_abi::{Status, StatusCode};

use crate::ResolveRequest;

/// Supplies functions for imports by name.
///
/// Implemented by [`Plugin`](crate::Plugin), by [`PluginManager`](crate::PluginManager) (so that
/// managers nest) and by whatever a program offers from Rust.
///
/// Calls arrive from any thread, concurrently. No lock of this crate is held during a call: a
/// provider may resolve through, register with or unregister from the manager that calls it.
pub trait ImportProvider: Send + Sync {
    /// Returns the name shown in errors.
    fn name(&self) -> &str;

    /// Fills the empty slots it knows, and leaves the others alone.
    ///
    /// What was found is decided from the slots alone: a provider that knows none of the names
    /// returns `Ok(())` like one that knows them all.
    ///
    /// # Errors
    ///
    /// An error stops the whole resolution and is reported. One with the code NOT_FOUND is taken for
    /// "ask the others", as plugins mean it.
    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError>;
}

impl fmt::Debug for dyn ImportProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ImportProvider").field(&self.name()).finish()
    }
}

/// Why a provider could not do its work. As small as a pointer, since most calls succeed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ProviderError(Box<ProviderErrorKind>);

/// What happened to a provider.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderErrorKind {
    /// A plugin's `resolve` returned a status that is not OK.
    #[error("`resolve` returned {} (raw value {raw:#x})", Status(*raw).code())]
    Status {
        /// The value as returned. From 0x20 on it is an address that only the plugin understands;
        /// it was neither read nor freed.
        raw: usize,
    },

    /// A provider written in Rust failed.
    #[error("{message}")]
    Failed {
        /// The kind of failure.
        code: StatusCode,
        /// What went wrong.
        message: String,
        /// The cause, if there is one.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },

    /// A provider behind a manager failed.
    #[error("import provider `{provider}` failed")]
    Nested {
        /// The name under which the provider is registered.
        provider: String,
        /// Its error.
        #[source]
        source: ProviderError,
    },

    /// Managers contain each other, or are nested without reason.
    #[error("plugin managers are nested more than {limit} deep; does one contain itself?")]
    TooDeep {
        /// The deepest nesting that is followed.
        limit: usize,
    },
}

impl ProviderError {
    /// Creates the error of a provider written in Rust.
    #[must_use]
    pub fn new(code: StatusCode, message: impl Into<String>) -> Self {
        let message = message.into();
        let source = None;
        ProviderErrorKind::Failed {
            code,
            message,
            source,
        }
        .into()
    }

    /// Creates the error of a provider written in Rust that has a cause.
    #[must_use]
    pub fn with_source(
        code: StatusCode,
        message: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        ProviderErrorKind::Failed {
            code,
            message: message.into(),
            source: Some(source.into()),
        }
        .into()
    }

    /// Returns what happened.
    #[must_use]
    pub fn kind(&self) -> &ProviderErrorKind {
        &self.0
    }

    /// Returns what happened, by value.
    pub(crate) fn into_kind(self) -> ProviderErrorKind {
        *self.0
    }

    /// Returns the status code to report.
    ///
    /// CANCELLED, DEFERRED and OK mean something else than failure to the layers above, so they
    /// become INTERNAL when a provider fails with them. Codes without a name are kept.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self.kind() {
            ProviderErrorKind::Status { raw } => failure_code(Status(*raw).code()),
            ProviderErrorKind::Failed { code, .. } => failure_code(*code),
            ProviderErrorKind::Nested { source, .. } => source.status_code(),
            ProviderErrorKind::TooDeep { .. } => StatusCode::FAILED_PRECONDITION,
        }
    }

    /// Returns whether other providers may still be asked.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status_code() == StatusCode::NOT_FOUND
    }

    /// Names the provider, unless a manager further in has done so.
    pub(crate) fn in_provider(self, provider: &str) -> Self {
        match self.kind() {
            ProviderErrorKind::Nested { .. } | ProviderErrorKind::TooDeep { .. } => self,
            ProviderErrorKind::Status { .. } | ProviderErrorKind::Failed { .. } => {
                ProviderErrorKind::Nested {
                    provider: provider.to_owned(),
                    source: self,
                }
                .into()
            }
        }
    }
}

impl From<ProviderErrorKind> for ProviderError {
    #[cold]
    fn from(kind: ProviderErrorKind) -> Self {
        Self(Box::new(kind))
    }
}

/// Returns the code under which a foreign failure is reported: one that says failure and nothing
/// else.
pub(crate) fn failure_code(code: StatusCode) -> StatusCode {
    match code {
        StatusCode::OK | StatusCode::CANCELLED | StatusCode::DEFERRED => StatusCode::INTERNAL,
        code => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: usize, code: StatusCode, shown: &str) {
        let error = ProviderError::from(ProviderErrorKind::Status { raw });
        assert_eq!(error.status_code(), code);
        assert_eq!(error.to_string(), shown);
    }

    #[test]
    fn statuses_with_a_control_meaning_are_reported_as_internal() {
        let code = StatusCode::INTERNAL;
        check(1, code, "`resolve` returned CANCELLED (raw value 0x1)");
        check(17, code, "`resolve` returned DEFERRED (raw value 0x11)");
    }

    #[test]
    fn a_malformed_status_is_internal() {
        check(
            0x20,
            StatusCode::INTERNAL,
            "`resolve` returned OK (raw value 0x20)",
        );
    }

    #[test]
    fn codes_without_a_name_keep_their_number() {
        for raw in 19..32_u8 {
            check(
                raw.into(),
                StatusCode(raw.into()),
                &format!("`resolve` returned {raw} (raw value {raw:#x})"),
            );
        }
    }

    #[test]
    fn an_address_is_reported_by_its_code_and_value() {
        check(
            0x7f00_1240 | 8,
            StatusCode::RESOURCE_EXHAUSTED,
            "`resolve` returned RESOURCE_EXHAUSTED (raw value 0x7f001248)",
        );
    }

    #[test]
    fn only_the_innermost_provider_is_named() {
        let error = ProviderError::new(StatusCode::INTERNAL, "broken")
            .in_provider("inner")
            .in_provider("outer");
        assert_eq!(error.to_string(), "import provider `inner` failed");
    }

    #[test]
    fn an_error_is_as_small_as_a_pointer() {
        assert_eq!(size_of::<Result<(), ProviderError>>(), size_of::<usize>());
    }
}
