//! Plugins: the header that the query function would return, found in the data of the file.
//!
//! As for executable libraries ([`super::library`]), the query function is not run: every word of the data is tried for
//! being the start of a plugin structure of ABI 0.1 (`docs/abi.md`, section 4). A plugin that makes its structure when
//! it is queried is not found.
#![forbid(unsafe_code)]

use hal_abi::{PLUGIN_VERSION_0_1, PluginFeatures, SanitizerKind};
#[cfg(feature = "serde")]
use serde::Serialize;

use super::library::sanitizer_name;
use super::view::{ElfView, Pointer, Search};

/// The known features and their names.
const FEATURES: [(PluginFeatures, &str); 2] = [
    (PluginFeatures::STANDALONE, "STANDALONE"),
    (PluginFeatures::FULL_STATUS, "FULL_STATUS"),
];

/// What a plugin says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct PluginHeader {
    /// Version of the plugin ABI: `0.1`.
    pub abi_version: String,
    /// The name; empty if it has none.
    pub name: String,
    /// The description; empty if it has none.
    pub description: String,
    /// The names of its features: `STANDALONE`, `FULL_STATUS`; unknown bits as one number.
    pub features: Vec<String>,
    /// The sanitizer it was built with: `none`, `address`, `memory`, `thread`, `undefined`, or a number.
    pub sanitizer: String,
}

/// Finds the structure of the plugin in the data of a file.
pub(super) fn find(view: &ElfView<'_>) -> Result<PluginHeader, Search> {
    view.find_only(|address| read(view, address))
}

/// Reads the plugin structure at an address, or returns `None` if there is none.
///
/// ```text
/// structure  0 header, w load, 2w unload, 3w resolve
/// header     0 version, w name, 2w description, 3w features, 3w+4 sanitizer; w is the size of a pointer
/// ```
fn read(view: &ElfView<'_>, address: u64) -> Option<PluginHeader> {
    let w = view.word_size();
    let function = |words: u64| match view.pointer(address.checked_add(words * w)?)? {
        Pointer::To(function) => Some(Some(view.is_code(function))),
        Pointer::Null => Some(None),
        Pointer::Elsewhere => None,
    };
    let Pointer::To(header) = view.pointer(address)? else {
        return None;
    };
    if view.u32(header)? != PLUGIN_VERSION_0_1 {
        return None;
    }
    let has_functions =
        function(1)? == Some(true) && function(2)? != Some(false) && function(3)? == Some(true);
    if !has_functions {
        return None;
    }
    let features = view.u32(header.checked_add(3 * w)?)?;
    let sanitizer = SanitizerKind(view.u32(header.checked_add(3 * w + 4)?)?.cast_signed());
    Some(PluginHeader {
        abi_version: "0.1".to_owned(),
        name: view
            .optional_string(header.checked_add(w)?)?
            .unwrap_or_default(),
        description: view
            .optional_string(header.checked_add(2 * w)?)?
            .unwrap_or_default(),
        features: plugin_feature_names(PluginFeatures(features)),
        sanitizer: sanitizer_name(sanitizer),
    })
}

/// Returns the names of a plugin's feature bits, the unknown ones as one number.
#[must_use]
pub fn plugin_feature_names(features: PluginFeatures) -> Vec<String> {
    let known = FEATURES
        .iter()
        .filter(|(feature, _)| features.contains(*feature));
    let mut names: Vec<String> = known.map(|(_, name)| (*name).to_owned()).collect();
    let unknown = FEATURES
        .iter()
        .fold(features.0, |bits, (feature, _)| bits & !feature.0);
    if unknown != 0 {
        names.push(format!("{unknown:#x}"));
    }
    names
}

#[cfg(test)]
mod tests {
    use crate::inspect::testing::{CODE, Image, elf};

    fn plugin_image(version: u64, resolve: u64) -> Vec<u8> {
        let mut image = Image::exporting("iree_hal_executable_plugin_query");
        let name = image.string("scale_add");
        let header = image.word(version);
        image.pointer(name);
        image.word(0);
        // Standalone, an unknown feature, no sanitizer.
        image.word(0x11);
        image.zeros(8);
        image.pointer(header);
        image.pointer(CODE);
        image.word(0);
        image.pointer(resolve);
        image.build()
    }

    #[test]
    fn the_header_of_a_plugin_is_found_in_its_data() {
        let plugin = elf(&plugin_image(1, CODE + 8)).plugin.unwrap();
        assert_eq!(
            (plugin.name.as_str(), plugin.description.as_str()),
            ("scale_add", "")
        );
        assert_eq!(plugin.features, ["STANDALONE", "0x10"]);
        assert_eq!(plugin.sanitizer, "none");
    }

    #[test]
    fn a_structure_without_functions_or_of_another_version_is_no_plugin() {
        for (version, resolve) in [(0, CODE), (2, CODE), (1, 0x1000)] {
            let elf = elf(&plugin_image(version, resolve));
            assert_eq!(elf.plugin, None);
            assert!(
                elf.problems[0].contains("plugin header"),
                "{:?}",
                elf.problems
            );
        }
    }
}
