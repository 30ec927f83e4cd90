//! Which sanitizers run in this process.

use hal_abi::SanitizerKind;
use hal_elf::Sanitizer;
use libloading::os::unix::Library;

/// Returns whether instrumented code of this kind finds its runtime in the process.
///
/// Only the address and thread sanitizers can be shared with a plugin. Their runtimes are found by
/// the initializer that each of them exports, whether they are linked in or preloaded.
pub(crate) fn runs_in_this_process(kind: SanitizerKind) -> bool {
    let initializer: &[u8] = match kind {
        SanitizerKind::ADDRESS => b"__asan_init\0",
        SanitizerKind::THREAD => b"__tsan_init\0",
        _ => return false,
    };
    // SAFETY: the symbol is only looked up, and the pointer is dropped unused.
    unsafe { Library::this().get::<*const ()>(initializer) }.is_ok()
}

/// Returns the sanitizer whose runtime defines a symbol of this name.
pub(crate) fn of_symbol(name: &[u8]) -> Option<SanitizerKind> {
    match Sanitizer::of_symbol(name)? {
        Sanitizer::Address => Some(SanitizerKind::ADDRESS),
        Sanitizer::Thread => Some(SanitizerKind::THREAD),
        Sanitizer::Memory => Some(SanitizerKind::MEMORY),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_runtimes_of_shareable_sanitizers_are_looked_for() {
        for kind in [0, 2, 4, 5, -1, i32::MAX] {
            assert!(!runs_in_this_process(SanitizerKind(kind)), "{kind}");
        }
    }

    #[test]
    fn runtime_symbols_tell_the_sanitizer() {
        assert_eq!(of_symbol(b"__asan_init"), Some(SanitizerKind::ADDRESS));
        assert_eq!(of_symbol(b"__tsan_func_entry"), Some(SanitizerKind::THREAD));
        assert_eq!(of_symbol(b"__msan_init"), Some(SanitizerKind::MEMORY));
        assert_eq!(of_symbol(b"memset"), None);
    }
}
