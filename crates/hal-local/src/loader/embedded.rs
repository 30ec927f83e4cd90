//! Executables in freestanding ELF images: [`EmbeddedElfLoader`].

#![expect(
    unsafe_code,
    reason = "loading an image runs the code of the executable"
)]

use std::fmt;
use std::sync::{Arc, OnceLock};

use hal_abi::Processor;
use hal_abi::library::LIBRARY_QUERY_SYMBOL;
use hal_elf::Image;
use hal_plugin::ImportProvider;

use super::code_image::CodeImage;
use super::{ExecutableLoader, ExecutableParams, LoadError, format};
use crate::processor;
use crate::{Executable, Trust};

/// The name of the format, before the architecture.
const STEM: &str = "embedded-elf";

/// Loads executables in the compiler's default format: freestanding ELF images, which need no
/// dynamic linker, or FatELF files with one for this host.
///
/// The format is `embedded-elf-` and the architecture of this host.
pub struct EmbeddedElfLoader {
    provider: Option<Arc<dyn ImportProvider>>,
    format: Option<String>,
    processor: OnceLock<Processor>,
}

impl EmbeddedElfLoader {
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

impl ExecutableLoader for EmbeddedElfLoader {
    fn name(&self) -> &str {
        "embedded-elf"
    }

    fn supports_format(&self, format: &str) -> bool {
        format::matches(format, self.format.as_deref())
    }

    /// Any freestanding ELF file is taken for an embedded one.
    fn infer_format(&self, data: &[u8]) -> Option<String> {
        let traits = format::elf_traits(data).filter(|traits| traits.is_freestanding)?;
        Some(format!("{STEM}-{}", traits.arch))
    }

    fn try_load(&self, params: &ExecutableParams<'_>) -> Result<Arc<dyn Executable>, LoadError> {
        if !self.supports_format(params.format) {
            return Err(LoadError::other_format(params.format));
        }
        // SAFETY: `Trust` promises that this loader's executables may be run in this process.
        let image =
            unsafe { Image::load(&params.data) }.map_err(|source| LoadError::Elf { source })?;
        let library = CodeImage {
            query: image.symbol(LIBRARY_QUERY_SYMBOL),
            keep_alive: Box::new(image),
        };
        let processor = *self.processor.get_or_init(processor::detect);
        // SAFETY: `Trust` promises that this loader's executables keep to the library ABI.
        unsafe { library.load(processor, params.constants, self.provider.as_deref()) }
    }
}

impl fmt::Debug for EmbeddedElfLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedElfLoader")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}
