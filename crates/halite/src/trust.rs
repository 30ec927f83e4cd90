//! The facade's one door to native code: [`Trust`].
//!
//! It makes the promises of the doors below it on behalf of whoever made it; all other modules of the crate are safe.
#![expect(unsafe_code, reason = "this is where the promise is made")]

use hal_plugin::{Plugin, PluginError, PluginSpec};

/// The embedder's promise that native code may run: kernels in programs, and plugins.
///
/// Without it a session runs programs whose kernels are portable (`vmvx`), and refuses the others.
///
/// # Examples
/// ```
/// // Sound because this process only loads programs that its own build compiled.
/// let trust = unsafe { halite::Trust::native_code() };
/// let builder = halite::Session::builder().native_code(trust);
/// # let _ = builder;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Trust(hal_local::Trust);

impl Trust {
    /// Makes the promise.
    ///
    /// # Safety
    /// For every session and executable that is given this value, and for as long as it or anything that came out of it is alive:
    ///
    /// * its programs come from a compiler and have not been tampered with: their kernels keep the executable library
    ///   ABI (`docs/abi.md`, sections 7 and 8) and touch only memory that they are given;
    /// * functions are called with arguments of the types and shapes that the program was compiled for; what a program
    ///   checks itself it may be left to check; memory that a function is told to write its results to is not read-only;
    /// * an [`Executable`](crate::Executable) is dispatched with the constants, the workgroup counts and bindings of the
    ///   sizes that its functions were compiled for, since kernels check none of them;
    /// * its plugins and import providers keep the plugin ABI (`docs/abi.md`, sections 3 to 5) and may run in this
    ///   process, and what they provide is what the kernels expect;
    /// * no other thread writes to the memory of tensors that a running function was given.
    #[must_use]
    pub const unsafe fn native_code() -> Self {
        // SAFETY: the promise asked for here includes the one asked for there.
        Self(unsafe { hal_local::Trust::native_code() })
    }

    /// Returns the token that the loaders of native executables demand.
    pub(crate) fn loaders(self) -> hal_local::Trust {
        self.0
    }

    /// Loads a plugin and runs its code.
    ///
    /// # Errors
    /// Fails when the plugin cannot be read, mapped or used here, or when its `load` fails.
    pub fn load_plugin(self, spec: &PluginSpec) -> Result<Plugin, PluginError> {
        // SAFETY: whoever made `self` promised that plugins keep the plugin ABI and may run in this process.
        unsafe { Plugin::load(spec) }
    }
}
