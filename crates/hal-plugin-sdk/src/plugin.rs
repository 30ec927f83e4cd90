//! The trait a plugin implements.

use core::ffi::CStr;

use crate::{LoadContext, StatusCode};

/// A plugin: the state of one loaded instance.
///
/// A process may hold several instances at once, each from one call of [`Plugin::load`]. Every
/// function of the plugin gets a shared reference to its instance, from any thread and concurrently
/// with itself, hence `Send + Sync`; dropping the instance unloads it.
///
/// The instance lives in memory of the host's allocator, which aligns to 16 bytes; a type that
/// needs more fails to compile.
pub trait Plugin: Sized + Send + Sync + 'static {
    /// The name hosts show in messages.
    const NAME: &'static CStr;

    /// A sentence for people.
    const DESCRIPTION: &'static CStr = c"";

    /// Creates an instance.
    ///
    /// IREE's own tools never pass parameters; Halite passes those of the plugin specification.
    ///
    /// # Errors
    ///
    /// Any code but [`StatusCode::OK`] refuses to load; hosts report it as it is.
    fn load(context: &LoadContext<'_>) -> Result<Self, StatusCode>;
}
