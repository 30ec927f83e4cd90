//! The names of executable formats on this host, and telling ELF files by their bytes.
//!
//! Facts: `docs/abi.md`, section 10.

use hal_elf::{ElfFile, FatElf, Target, is_fat_elf};

/// Returns the name of the format with this stem for this host, such as `embedded-elf-x86_64`, or
/// `None` if no format name exists for its architecture.
pub(super) fn for_host(stem: &str) -> Option<String> {
    Target::HOST
        .arch_name()
        .map(|arch| format!("{stem}-{arch}"))
}

/// Returns whether a format is that of the host, or a variant of it. Variants have a longer name;
/// producers have always been free to append to it.
pub(super) fn matches(format: &str, host_format: Option<&str>) -> bool {
    host_format.is_some_and(|host_format| format.starts_with(host_format))
}

/// An ELF file, as far as telling formats needs it.
pub(super) struct ElfTraits {
    /// The architecture in the words of format names.
    pub(super) arch: &'static str,
    /// Whether the file needs nothing from a dynamic linker: no libraries, no symbols.
    pub(super) is_freestanding: bool,
}

/// Looks at an ELF file, or at the member of a FatELF file that is for this host. Returns `None` if
/// the data is neither.
pub(super) fn elf_traits(data: &[u8]) -> Option<ElfTraits> {
    let data = if is_fat_elf(data) {
        FatElf::parse(data).ok()?.select(Target::HOST).ok()?
    } else {
        data
    };
    let file = ElfFile::parse(data).ok()?;
    Some(ElfTraits {
        arch: file.target().arch_name()?,
        is_freestanding: file.needed_libraries().is_empty()
            && file.undefined_symbols().next().is_none(),
    })
}
