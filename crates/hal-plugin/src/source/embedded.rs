//! Plugins in freestanding ELF images and FatELF files.

use hal_abi::{PLUGIN_QUERY_SYMBOL, PluginQueryFn};
use hal_elf::Image;

use super::query_function;
use crate::{PluginError, PluginOrigin};

/// Maps the image in `bytes` and finds its query function, which is there as long as the image.
///
/// # Safety
///
/// The image is trusted code: its initializers may run, and what it exports under the plugin
/// query's name is a plugin's query function.
pub(crate) unsafe fn open(
    bytes: &[u8],
    origin: &PluginOrigin,
) -> Result<(PluginQueryFn, Image), PluginError> {
    // SAFETY: trusted code, by this function's contract.
    let image = unsafe { Image::load(bytes) }.map_err(|source| PluginError::Image {
        origin: origin.clone(),
        source,
    })?;
    let Some(address) = image.symbol(PLUGIN_QUERY_SYMBOL) else {
        return Err(PluginError::NotAPlugin {
            origin: origin.clone(),
        });
    };
    // SAFETY: the exported query function, by this function's contract.
    let query = unsafe { query_function(address) };
    Ok((query, image))
}
