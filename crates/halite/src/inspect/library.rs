//! Executable libraries: the tables that the query function would return, found in the data of the file.
//!
//! The query function is code and is not run. What it returns is the address of a structure that compilers put into
//! the data of the file, so every word of the data is tried for being its start: it has to point at a header of a known
//! version, and every table behind it has to be complete and inside the file. A file whose structure is made at run
//! time is not found; nothing is guessed. The layouts are those of `docs/abi.md`, section 8, which depend on nothing but
//! the size of a pointer.
#![forbid(unsafe_code)]

use hal_abi::library::{LIBRARY_VERSION_0_5, LIBRARY_VERSION_0_6};
use hal_abi::{LOCAL_MEMORY_PAGE_SIZE, SanitizerKind};
#[cfg(feature = "serde")]
use serde::Serialize;

use super::names::lossy;
use super::view::{ElfView, Pointer, Search};

/// Most exports or imports of a library: far above what compilers emit, and as many as loaders accept.
const MAX_TABLE_COUNT: u32 = 1 << 16;

/// What an executable library says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Library {
    /// Version of the library ABI: `0.5` or `0.6`.
    pub abi_version: String,
    /// The name; empty if it has none.
    pub name: String,
    /// The sanitizer it was built with: `none`, `address`, `memory`, `thread`, `undefined`, or a number.
    pub sanitizer: String,
    /// How many 32-bit executable-level constants it must be given.
    pub constant_count: u32,
    /// The functions it needs from plugins, by import ordinal.
    pub imports: Vec<LibraryImport>,
    /// The functions it has, by export ordinal.
    pub exports: Vec<LibraryExport>,
}

/// A function that an executable library needs from a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct LibraryImport {
    /// The name, without the mark of optional ones.
    pub name: String,
    /// Whether the library loads without it.
    pub optional: bool,
}

/// A function of an executable library.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct LibraryExport {
    /// Its ordinal.
    pub ordinal: u32,
    /// Its name; `None` if the library was compiled without debug data.
    pub name: Option<String>,
    /// How many 32-bit constants a dispatch passes.
    pub constant_count: u8,
    /// How many bindings a dispatch passes.
    pub binding_count: u8,
    /// The workgroup size it was compiled for in x, y and z; 0 where that is not fixed or, up to ABI 0.5, not said.
    pub workgroup_size: [u32; 3],
    /// Scratch memory of a workgroup in bytes.
    pub local_memory_byte_length: u32,
    /// A tag that the compiler gave it.
    pub tag: Option<String>,
    /// Where it was made from, as `file:line`.
    pub source: Option<String>,
}

/// Finds the tables of the library in the data of a file.
pub(super) fn find(view: &ElfView<'_>) -> Result<Library, Search> {
    view.find_only(|address| read(view, address))
}

/// Reads the library structure at an address, or returns `None` if there is none.
///
/// ```text
/// 0 header, w imports, 3w exports, then constants and sources; w is the size of a pointer
/// ```
fn read(view: &ElfView<'_>, address: u64) -> Option<Library> {
    let w = view.word_size();
    let at = |words: u64| address.checked_add(words * w);
    let Pointer::To(header) = view.pointer(address)? else {
        return None;
    };
    let layout = Layout::of_version(view.u32(header)?)?;
    let name = view.optional_string(header.checked_add(w)?)?;
    let features = view.u32(header.checked_add(2 * w)?)?;
    let sanitizer = SanitizerKind(view.u32(header.checked_add(2 * w + 4)?)?.cast_signed());
    // No feature is defined.
    if features != 0 {
        return None;
    }
    Some(Library {
        abi_version: layout.abi_version.to_owned(),
        name: name.unwrap_or_default(),
        sanitizer: sanitizer_name(sanitizer),
        imports: read_imports(view, at(1)?)?,
        exports: read_exports(view, &layout, at(3)?)?,
        constant_count: view.u32(at(3 + layout.export_table_words)?)?,
    })
}

/// Returns the name of a sanitizer, or its number if it has none.
pub(super) fn sanitizer_name(sanitizer: SanitizerKind) -> String {
    sanitizer
        .name()
        .map_or_else(|| sanitizer.0.to_string(), str::to_owned)
}

/// What differs between the versions. Places are counted in words from the start of the export table.
struct Layout {
    abi_version: &'static str,
    export_table_words: u64,
    names: u64,
    tags: u64,
    source_locations: u64,
    attributes_size: u64,
    has_workgroup_size: bool,
    /// The offset in bytes of the 16-bit count of local memory pages, after which the counts of constants and bindings
    /// follow.
    pages_offset: u64,
    /// Whether the attributes must be there.
    needs_attributes: bool,
}

impl Layout {
    fn of_version(version: u32) -> Option<Self> {
        match version {
            LIBRARY_VERSION_0_5 => Some(Self {
                abi_version: "0.5",
                export_table_words: 7,
                names: 3,
                tags: 4,
                source_locations: 5,
                attributes_size: 72,
                has_workgroup_size: false,
                pages_offset: 0,
                needs_attributes: false,
            }),
            LIBRARY_VERSION_0_6 => Some(Self {
                abi_version: "0.6",
                export_table_words: 10,
                names: 5,
                tags: 6,
                source_locations: 8,
                attributes_size: 64,
                has_workgroup_size: true,
                pages_offset: 8,
                needs_attributes: true,
            }),
            _ => None,
        }
    }
}

/// Reads the table of imports: a count and an array of names.
fn read_imports(view: &ElfView<'_>, table: u64) -> Option<Vec<LibraryImport>> {
    let count = table_count(view, table)?;
    let names = array(view, table.checked_add(view.word_size())?, count)?;
    (0..u64::from(count))
        .map(|index| {
            let name = string_entry(view, names?, index)??;
            let (optional, name) = match name.strip_prefix('?') {
                Some(name) => (true, name.to_owned()),
                None => (false, name),
            };
            Some(LibraryImport { name, optional })
        })
        .collect()
}

/// Reads the table of exports: a count and parallel arrays.
fn read_exports(view: &ElfView<'_>, layout: &Layout, table: u64) -> Option<Vec<LibraryExport>> {
    let w = view.word_size();
    let count = table_count(view, table)?;
    let array_at = |words: u64| array(view, table.checked_add(words * w)?, count);
    let functions = array_at(1)?;
    let attributes = optional_array(view, table.checked_add(2 * w)?)?;
    let names = optional_array(view, table.checked_add(layout.names * w)?)?;
    let tags = optional_array(view, table.checked_add(layout.tags * w)?)?;
    let locations = optional_array(view, table.checked_add(layout.source_locations * w)?)?;
    if layout.needs_attributes && attributes.is_none() {
        return None;
    }
    (0..count)
        .map(|ordinal| {
            let index = u64::from(ordinal);
            let entry = functions?.checked_add(index * w)?;
            let Pointer::To(function) = view.pointer(entry)? else {
                return None;
            };
            if !view.is_code(function) {
                return None;
            }
            let mut export = match attributes {
                Some(attributes) => {
                    let offset = index * layout.attributes_size;
                    read_attributes(view, layout, attributes.checked_add(offset)?)?
                }
                None => LibraryExport::default(),
            };
            export.ordinal = ordinal;
            export.name = match names {
                // A name table has a name for each function.
                Some(names) => Some(string_entry(view, names, index)??),
                None => None,
            };
            export.tag = match tags {
                Some(tags) => string_entry(view, tags, index)?,
                None => None,
            };
            export.source = locations.and_then(|locations| read_location(view, locations, index));
            Some(export)
        })
        .collect()
}

/// Reads what a function needs.
fn read_attributes(view: &ElfView<'_>, layout: &Layout, address: u64) -> Option<LibraryExport> {
    let field = |offset: u64, length: u64| view.number(address.checked_add(offset)?, length);
    let small = |offset: u64| u8::try_from(field(offset, 1)?).ok();
    let large = |offset: u64, length: u64| u32::try_from(field(offset, length)?).ok();
    let counts = layout.pages_offset;
    let page_size = u32::try_from(LOCAL_MEMORY_PAGE_SIZE).ok()?;
    Some(LibraryExport {
        constant_count: small(counts + 2)?,
        binding_count: small(counts + 3)?,
        workgroup_size: match layout.has_workgroup_size {
            true => [large(12, 4)?, large(16, 4)?, large(20, 2)?],
            false => [0; 3],
        },
        local_memory_byte_length: large(counts, 2)? * page_size,
        ..LibraryExport::default()
    })
}

/// Reads a place in a source file, whose string has a length and no terminator.
fn read_location(view: &ElfView<'_>, locations: u64, index: u64) -> Option<String> {
    // Line and length are 4 bytes each; the size is rounded up to the alignment of a pointer.
    let size = 8 + view.word_size();
    let address = locations.checked_add(index * size)?;
    let (line, length) = (view.u32(address)?, view.u32(address.checked_add(4)?)?);
    let Pointer::To(path) = view.pointer(address.checked_add(8)?)? else {
        return None;
    };
    let path = view.bytes(path, length.into())?;
    (!path.is_empty()).then(|| format!("{}:{line}", lossy(path)))
}

impl Default for LibraryExport {
    /// Returns a function of which nothing is known.
    fn default() -> Self {
        Self {
            ordinal: 0,
            name: None,
            constant_count: 0,
            binding_count: 0,
            workgroup_size: [0; 3],
            local_memory_byte_length: 0,
            tag: None,
            source: None,
        }
    }
}

fn table_count(view: &ElfView<'_>, table: u64) -> Option<u32> {
    view.u32(table).filter(|&count| count <= MAX_TABLE_COUNT)
}

/// Reads the address of an array of `count` entries; the inner `None` is a NULL, which only an empty array may be.
fn array(view: &ElfView<'_>, place: u64, count: u32) -> Option<Option<u64>> {
    optional_array(view, place).filter(|address| address.is_some() || count == 0)
}

/// Reads the address of an array that may be missing; the inner `None` is a NULL.
fn optional_array(view: &ElfView<'_>, place: u64) -> Option<Option<u64>> {
    match view.pointer(place)? {
        Pointer::To(address) => Some(Some(address)),
        Pointer::Null => Some(None),
        Pointer::Elsewhere => None,
    }
}

/// Reads a string through an entry of an array of pointers.
fn string_entry(view: &ElfView<'_>, array: u64, index: u64) -> Option<Option<String>> {
    view.optional_string(array.checked_add(index * view.word_size())?)
}

#[cfg(test)]
mod tests {
    use crate::inspect::testing::{CODE, Image, elf, repository_file};

    const QUERY: &str = "iree_hal_executable_library_query";

    /// Adds a library of ABI 0.6 with one import and one function, whose name may be left out.
    fn add_library(image: &mut Image, version: u64, name: Option<&str>, code: u64) {
        let library_name = image.string("linked");
        let header = image.word(version);
        image.pointer(library_name);
        image.word(0);
        let import = image.string("?lab_scale_add");
        let imports = image.pointer(import);
        let functions = image.pointer(code);
        // No flags; 2 pages, 3 constants, 4 bindings, 5 in x; 6 in y, 7 in z.
        let attributes = image.word(0);
        image.word(2 | 3 << 16 | 4 << 24 | 5 << 32);
        image.word(6 | 7 << 32);
        image.zeros(5);
        let names = name.map(|name| {
            let name = image.string(name);
            image.pointer(name)
        });
        image.pointer(header);
        image.word(1);
        image.pointer(imports);
        image.word(1);
        image.pointer(functions);
        image.pointer(attributes);
        image.word(0);
        image.word(0);
        match names {
            Some(names) => image.pointer(names),
            None => image.word(0),
        };
        image.zeros(4);
        // One executable-level constant, no sources.
        image.word(1);
        image.word(0);
        image.word(0);
    }

    #[test]
    fn the_tables_of_a_library_are_found_in_its_data() {
        let mut image = Image::exporting(QUERY);
        add_library(&mut image, 6, Some("mul"), CODE);
        let library = elf(&image.build()).library.unwrap();
        assert_eq!(
            (library.abi_version.as_str(), library.name.as_str()),
            ("0.6", "linked")
        );
        assert_eq!(library.constant_count, 1);
        assert_eq!(library.imports[0].name, "lab_scale_add");
        assert!(library.imports[0].optional);
        let export = &library.exports[0];
        assert_eq!(export.name.as_deref(), Some("mul"));
        assert_eq!((export.constant_count, export.binding_count), (3, 4));
        assert_eq!(export.workgroup_size, [5, 6, 7]);
        assert_eq!(export.local_memory_byte_length, 8192);
    }

    #[test]
    fn a_structure_that_breaks_any_rule_is_no_library() {
        for (version, code) in [
            (4, CODE),
            (7, CODE),
            (6, 0x1000),
            (6, CODE + 16),
            (6, 1 << 40),
        ] {
            let mut image = Image::exporting(QUERY);
            add_library(&mut image, version, Some("mul"), code);
            let elf = elf(&image.build());
            assert_eq!(elf.library, None, "{version} {code:#x}");
            assert_eq!(
                elf.problems,
                [format!(
                    "it exports `{QUERY}`, but its library tables could not be found in its data"
                )]
            );
        }
    }

    #[test]
    fn two_structures_are_told_of_instead_of_guessing() {
        let mut image = Image::exporting(QUERY);
        add_library(&mut image, 6, Some("mul"), CODE);
        add_library(&mut image, 6, None, CODE);
        let elf = elf(&image.build());
        assert_eq!(elf.library, None);
        assert!(
            elf.problems[0].contains("more than one place"),
            "{:?}",
            elf.problems
        );
    }

    #[test]
    fn without_the_query_symbol_nothing_is_looked_for() {
        let mut image = Image::exporting("something_else");
        add_library(&mut image, 6, Some("mul"), CODE);
        let elf = elf(&image.build());
        assert_eq!((elf.library, elf.problems.len()), (None, 0));
    }

    #[test]
    fn many_structures_that_share_one_large_table_cost_no_more_than_their_file() {
        let mut image = Image::exporting(QUERY);
        let name = image.string(&"n".repeat(4000));
        let names = image.here();
        for _ in 0..2000 {
            image.pointer(name);
        }
        let header = image.word(6);
        image.word(0);
        image.word(0);
        for _ in 0..200 {
            // All imports are there, but no table of exports follows.
            image.pointer(header);
            image.word(2000);
            image.pointer(names);
            image.word(u64::MAX);
        }
        let elf = elf(&image.build());
        assert!(
            elf.problems[0].contains("share too many bytes"),
            "{:?}",
            elf.problems
        );
    }

    #[test]
    fn libraries_of_both_versions_and_of_other_machines_are_read() {
        let fixture = |name: &str| {
            let path = format!("crates/hal-local/tests/fixtures/{name}.so");
            elf(&repository_file(&path)).library.unwrap()
        };
        for (name, version) in [
            ("mul_3_7_0.embedded", "0.5"),
            ("mul_3_13_0.embedded", "0.6"),
            ("mul_3_13_0.system", "0.6"),
            ("mul_3_13_0_arm_64.embedded", "0.6"),
        ] {
            let library = fixture(name);
            assert_eq!(library.abi_version, version, "{name}");
            assert_eq!(library.exports.len(), 1, "{name}");
            assert_eq!(library.exports[0].binding_count, 3, "{name}");
            let export = library.exports[0].name.as_deref().unwrap();
            assert!(export.starts_with("mul_dispatch_0"), "{name}: {export}");
        }
        assert_eq!(fixture("mul_3_8_0_stripped.embedded").exports[0].name, None);
        assert_eq!(
            fixture("dynsum_3_13_0.embedded").exports[0].constant_count,
            4
        );
        assert_eq!(
            fixture("scale_add_3_13_0.embedded").imports[0].name,
            "lab_scale_add"
        );
    }
}
