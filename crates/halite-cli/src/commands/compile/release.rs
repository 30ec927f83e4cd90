//! Releases of the compiler: which are known, and which flags they take.
#![forbid(unsafe_code)]

use core::fmt;

use halite::StatusCode;

use super::Backend;
use super::tool::Tool;
use crate::failure::Failure;

/// A release of the compiler, such as 3.13.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Release {
    major: u32,
    minor: u32,
}

/// The oldest and the newest release whose programs are known to run.
const KNOWN: [Release; 2] = [Release::new(2, 9), Release::new(3, 13)];

/// The releases that reject programs with kernels in the inline execution model.
const WITHOUT_INLINE_KERNELS: [Release; 2] = [Release::new(3, 9), Release::new(3, 11)];

/// The release that has a flag against making the functions of imported models asynchronous.
const ASYNC_ENTRY_POINTS: Release = Release::new(3, 12);

/// The first release whose importer has the flag.
const OPSET_VERSION: Release = Release::new(3, 0);

impl Release {
    const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Returns the release in what `--version` prints: `IREE compiler version 3.13.0rc20261016 @ 89ece87b`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (_, version) = text.split_once("IREE compiler version ")?;
        let mut parts = version.split(|character: char| !character.is_ascii_digit());
        let mut next = || parts.next()?.parse().ok();
        Some(Self::new(next()?, next()?))
    }

    /// Checks that the programs of this release are known to run.
    pub(super) fn require_known(self, compiler: &Tool) -> Result<(), Failure> {
        let [first, last] = KNOWN;
        if (first..=last).contains(&self) {
            return Ok(());
        }
        let what = format!("`{compiler}` is of release {self}, known are {first} to {last}");
        let hint = "name a compiler of a known release with --compiler=PATH".to_owned();
        Err(Failure::work(StatusCode::FAILED_PRECONDITION, what).with_hint(Some(hint)))
    }

    /// Returns the flags that make a program of the inline execution model.
    ///
    /// The flags about constants keep them in the functions that use them: the model has no place for others.
    pub(super) fn flags(self, backend: Backend, is_imported: bool) -> Vec<&'static str> {
        let mut flags = vec![
            "--iree-execution-model=inline-dynamic",
            "--iree-hal-target-device=local",
            "--iree-flow-inline-constants-max-byte-length=1000000000",
            "--iree-opt-const-expr-hoisting=false",
            "--iree-opt-const-eval=false",
        ];
        match backend {
            Backend::LlvmCpu => flags.extend([
                "--iree-hal-local-target-device-backends=llvm-cpu",
                "--iree-llvmcpu-target-cpu=host",
            ]),
            Backend::Vmvx => flags.push("--iree-hal-local-target-device-backends=vmvx"),
        }
        if is_imported && self >= ASYNC_ENTRY_POINTS {
            flags.push("--iree-torch-emit-async-entry-points=false");
        }
        flags
    }

    /// Returns the flags that the importer of models takes.
    ///
    /// Older operator sets lack what the compiler relies on; a newer one than this stays as it is.
    pub(super) fn import_flags(self) -> &'static [&'static str] {
        match self >= OPSET_VERSION {
            true => &["--opset-version", "17"],
            false => &[],
        }
    }

    /// Returns why this release may have failed, if that is known.
    pub(super) fn hint(self, is_imported: bool) -> Option<String> {
        if is_imported && self < ASYNC_ENTRY_POINTS {
            return Some(format!(
                "compilers before release {ASYNC_ENTRY_POINTS} make functions of imported models asynchronous, \
                 which this runtime does not run; take a newer one"
            ));
        }
        let [first, last] = WITHOUT_INLINE_KERNELS;
        let hint = || {
            format!(
                "compilers of the releases {first} to {last} reject programs with kernels for this runtime; \
                 take one before or after them"
            )
        };
        (first..=last).contains(&self).then(hint)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_found_in_what_the_compiler_prints() {
        let text = "IREE (https://iree.dev):\n  IREE compiler version 3.13.0rc20261016 @ 89ece87b\n  LLVM version 24.0.0git\n";
        assert_eq!(Release::parse(text), Some(Release::new(3, 13)));
        let text = "IREE (https://iree.dev):\n  IREE compiler version 3.7.1 @ cb2048e0";
        assert_eq!(Release::parse(text), Some(Release::new(3, 7)));
        assert_eq!(Release::parse("LLVM version 24.0.0git"), None);
        assert_eq!(Release::parse("IREE compiler version unknown"), None);
    }

    #[test]
    fn releases_are_ordered_by_number() {
        assert!(Release::new(3, 9) < Release::new(3, 10));
    }

    #[test]
    fn what_a_release_cannot_do_is_known() {
        let has_hint = |minor, is_imported| Release::new(3, minor).hint(is_imported).is_some();
        assert!(has_hint(9, false) && !has_hint(12, false) && !has_hint(8, false));
        assert!(has_hint(8, true) && !has_hint(12, true));
    }

    #[test]
    fn only_imported_models_need_a_flag_against_asynchronous_functions() {
        let flag = "--iree-torch-emit-async-entry-points=false";
        let has = |minor, is_imported| {
            Release::new(3, minor)
                .flags(Backend::LlvmCpu, is_imported)
                .contains(&flag)
        };
        assert!(has(13, true) && !has(13, false) && !has(5, true));
    }
}
