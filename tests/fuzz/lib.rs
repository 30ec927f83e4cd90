//! What the programs of the fuzzer share. Each is one line; what a target does is in `tests/src/fuzz`.

#[doc(hidden)]
pub use {halite_tests, libfuzzer_sys};

/// Defines the program of a target.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        #[global_allocator]
        static ALLOCATOR: $crate::halite_tests::memory::Watched =
            $crate::halite_tests::memory::Watched;

        static TARGET: std::sync::LazyLock<&$crate::halite_tests::fuzz::Target> =
            std::sync::LazyLock::new(|| {
                $crate::halite_tests::fuzz::Target::find($name).expect("a target of this name")
            });

        $crate::libfuzzer_sys::fuzz_target!(|input: &[u8]| {
            TARGET.exercise(input);
        });
    };
}
