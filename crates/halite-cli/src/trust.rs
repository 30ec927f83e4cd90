//! The command's door to native code: the user's own request.
#![expect(unsafe_code, reason = "this is where the user's promise is passed on")]

use halite::Trust;

/// Returns the trust of whoever typed the command.
pub(crate) fn of_the_user() -> Trust {
    // SAFETY: the command runs the modules and plugins that its user named in order to have them run, in a process
    // of its own that holds nothing else. That they are what the user takes them for is the user's promise, as with
    // any program that is started by name; `docs/safety.md` and the command's help say so.
    unsafe { Trust::native_code() }
}
