//! ELF images: what the file says of itself, and the tables of the library or plugin in it.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use hal_abi::PLUGIN_QUERY_SYMBOL;
use hal_abi::library::LIBRARY_QUERY_SYMBOL;
use hal_elf::{ElfError, ElfFile, SegmentKind, Target};
#[cfg(feature = "serde")]
use serde::Serialize;

use super::names::{NameList, lossy};
use super::view::{ElfView, Search};
use super::{Library, PluginHeader, library, plugin};

/// What an ELF image says of itself.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Elf {
    /// The machine, such as `x86-64`.
    pub machine: String,
    /// The machine in the words of executable formats, such as `x86_64`; `None` for one that they do not know.
    pub architecture: Option<String>,
    /// Bits of a pointer: 32 or 64.
    pub bits: u32,
    /// `little-endian` or `big-endian`.
    pub byte_order: String,
    /// `shared object`, `executable`, `relocatable object`, `core dump`, or a number.
    pub file_type: String,
    /// Bytes of memory that its segments take.
    pub memory_byte_length: u64,
    /// Bytes of memory that hold code.
    pub code_byte_length: u64,
    /// Whether it needs neither libraries nor symbols of others.
    pub freestanding: bool,
    /// The name it gives itself.
    pub soname: Option<String>,
    /// The libraries that it asks the system for.
    pub needed_libraries: NameList,
    /// The symbols that others must define.
    pub undefined_symbols: NameList,
    /// The symbols that it defines for others.
    pub exported_symbols: NameList,
    /// How many relocations of each type there are.
    pub relocations: BTreeMap<String, usize>,
    /// The executable library in it, if it has one and its tables were found.
    pub library: Option<Library>,
    /// The plugin in it, if it has one and its header was found.
    pub plugin: Option<PluginHeader>,
    /// What could not be found out.
    pub problems: Vec<String>,
    /// What the file is for.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub target: Target,
}

/// Describes the ELF image in `bytes`.
pub(super) fn describe(bytes: &[u8]) -> Result<Elf, ElfError> {
    let file = ElfFile::parse(bytes)?;
    let exports = |name: &std::ffi::CStr| {
        file.exported_symbols()
            .any(|symbol| symbol.name == name.to_bytes())
    };
    let (has_library, has_plugin) = (exports(LIBRARY_QUERY_SYMBOL), exports(PLUGIN_QUERY_SYMBOL));
    let mut problems = Vec::new();
    let library = has_library
        .then(|| library::find(&ElfView::new(&file)))
        .and_then(|found| {
            keep(
                found,
                "its library tables",
                LIBRARY_QUERY_SYMBOL,
                &mut problems,
            )
        });
    let plugin = has_plugin
        .then(|| plugin::find(&ElfView::new(&file)))
        .and_then(|found| {
            keep(
                found,
                "its plugin header",
                PLUGIN_QUERY_SYMBOL,
                &mut problems,
            )
        });

    let target = file.target();
    let loaded = || {
        file.segments()
            .iter()
            .filter(|segment| segment.kind == SegmentKind::LOAD)
    };
    let code = loaded().filter(|segment| segment.flags.is_executable());
    let sum = |sizes: &mut dyn Iterator<Item = u64>| sizes.fold(0, u64::saturating_add);
    Ok(Elf {
        machine: target.machine.to_string(),
        architecture: target.arch_name().map(str::to_owned),
        bits: if target.class.word_size() == 8 {
            64
        } else {
            32
        },
        byte_order: target.byte_order.to_string(),
        file_type: file.header().file_type.to_string(),
        memory_byte_length: sum(&mut loaded().map(|segment| segment.memory_size)),
        code_byte_length: sum(&mut code.map(|segment| segment.memory_size)),
        freestanding: file.needed_libraries().is_empty()
            && file.undefined_symbols().next().is_none(),
        soname: file.soname().map(lossy),
        needed_libraries: file.needed_libraries().iter().copied().collect(),
        undefined_symbols: file.undefined_symbols().map(|symbol| symbol.name).collect(),
        exported_symbols: file.exported_symbols().map(|symbol| symbol.name).collect(),
        relocations: relocations(&file),
        library,
        plugin,
        problems,
        target,
    })
}

/// Keeps what was found, or says why it was not.
fn keep<T>(
    found: Result<T, Search>,
    what: &str,
    symbol: &std::ffi::CStr,
    problems: &mut Vec<String>,
) -> Option<T> {
    let reason = match found {
        Ok(found) => return Some(found),
        Err(Search::NotFound) => "could not be found in its data",
        Err(Search::Ambiguous) => "could be at more than one place of its data",
        Err(Search::GivenUp) => {
            "could not be looked for to the end, as its tables share too many bytes"
        }
    };
    problems.push(format!(
        "it exports `{}`, but {what} {reason}",
        symbol.to_string_lossy()
    ));
    None
}

fn relocations(file: &ElfFile<'_>) -> BTreeMap<String, usize> {
    let counts = file.relocation_counts().into_iter();
    let mut relocations: BTreeMap<String, usize> = counts
        .map(|(kind, count)| (kind.to_string(), count))
        .collect();
    if file.packed_relocation_count() != 0 {
        relocations.insert("RELR".to_owned(), file.packed_relocation_count());
    }
    relocations
}
