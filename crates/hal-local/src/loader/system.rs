//! Executables in the operating system's own shared libraries: [`SystemLibraryLoader`].

#![expect(
    unsafe_code,
    reason = "opening a library runs the code of the executable"
)]

use std::fmt;
use std::sync::{Arc, OnceLock};

use hal_abi::Processor;
use hal_abi::library::LIBRARY_QUERY_SYMBOL;
use hal_elf::{ElfFile, FatElf, Target, is_fat_elf};
use hal_plugin::ImportProvider;

use super::code_image::CodeImage;
use super::{ExecutableLoader, ExecutableParams, LoadError, format};
use crate::processor;
use crate::sys::MemoryLibrary;
use crate::{Executable, Trust};

/// The name of the format, before the architecture.
const STEM: &str = if cfg!(target_vendor = "apple") {
    "system-dylib"
} else if cfg!(windows) {
    "system-dll"
} else {
    "system-elf"
};

/// Whether shared libraries are ELF files here.
const IS_ELF: bool = cfg!(not(any(target_vendor = "apple", windows)));

/// Loads executables that are shared libraries for this operating system's dynamic linker, or FatELF
/// files with one for this host.
///
/// The format is `system-elf-`, `system-dylib-` or `system-dll-`, by operating system, and the
/// architecture of this host. Libraries are bound at once and privately (`RTLD_NOW`,
/// `RTLD_LOCAL`). The footer that some producers append, with debug data for other systems, is of no
/// concern to a dynamic linker and is left alone.
pub struct SystemLibraryLoader {
    provider: Option<Arc<dyn ImportProvider>>,
    format: Option<String>,
    processor: OnceLock<Processor>,
}

impl SystemLibraryLoader {
    /// Returns a loader; `provider` supplies the imports of all executables.
    #[must_use]
    pub fn new(_trust: Trust, provider: Option<Arc<dyn ImportProvider>>) -> Self {
        Self {
            provider,
            format: format::for_host(STEM),
            processor: OnceLock::new(),
        }
    }
}

impl ExecutableLoader for SystemLibraryLoader {
    fn name(&self) -> &str {
        "system-library"
    }

    fn supports_format(&self, format: &str) -> bool {
        format::matches(format, self.format.as_deref())
    }

    /// Any ELF file is taken for a system library, where those are ELF files.
    fn infer_format(&self, data: &[u8]) -> Option<String> {
        if !IS_ELF {
            return None;
        }
        format::elf_traits(data).map(|traits| format!("{STEM}-{}", traits.arch))
    }

    fn try_load(&self, params: &ExecutableParams<'_>) -> Result<Arc<dyn Executable>, LoadError> {
        if !self.supports_format(params.format) {
            return Err(LoadError::other_format(params.format));
        }
        let file = select_file(&params.data)?;
        // SAFETY: `Trust` promises that this loader's executables may be run in this process.
        let image = unsafe { MemoryLibrary::open(file) }?;
        let library = CodeImage {
            query: image.symbol(LIBRARY_QUERY_SYMBOL),
            keep_alive: Box::new(image),
        };
        let processor = *self.processor.get_or_init(processor::detect);
        // SAFETY: `Trust` promises that this loader's executables keep to the library ABI.
        unsafe { library.load(processor, params.constants, self.provider.as_deref()) }
    }
}

/// Returns the file to open: the member of a FatELF file that is for this host, or the whole of any
/// other file.
///
/// ELF files are checked first, as dynamic linkers do not: they map what a damaged file says, and the
/// process faults.
fn select_file(data: &[u8]) -> Result<&[u8], LoadError> {
    let file = if is_fat_elf(data) {
        FatElf::parse(data)
            .and_then(|fat| fat.select(Target::HOST))
            .map_err(|source| LoadError::FatElf { source })?
    } else {
        data
    };
    if IS_ELF {
        ElfFile::parse(file).map_err(|source| LoadError::Elf { source })?;
    }
    Ok(file)
}

impl fmt::Debug for SystemLibraryLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemLibraryLoader")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}
