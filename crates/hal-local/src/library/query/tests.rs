//! Libraries as tables in memory, well-formed and not.

use std::ffi::{CString, c_char, c_int};
use std::ptr;

use hal_abi::library::v0_6::DispatchFlags;
use hal_abi::library::{ConstantTable, ImportTable, SourceFileTable, SourceLocation};
use hal_abi::{DispatchFn, DispatchState, StatusCode, WorkgroupState};
use proptest::prelude::*;

use super::*;
use crate::ExportAttributes;

unsafe extern "C" fn kernel(
    _environment: *const Environment,
    _dispatch: *const DispatchState,
    _workgroup: *const WorkgroupState,
) -> c_int {
    0
}

/// What a library says, before it is laid out for a version.
#[derive(Clone, Debug)]
struct Spec {
    version: u32,
    sanitizer: SanitizerKind,
    /// The kernels; `None` for NULL entries.
    entries: Option<Vec<Option<DispatchFn>>>,
    /// Per kernel: pages of local memory, constants, bindings.
    attributes: Option<Vec<(u16, u8, u8)>>,
    names: Option<Vec<Option<CString>>>,
    imports: Option<Vec<Option<CString>>>,
    /// The files that the kernels come from; `None` for NULL paths.
    sources: Option<Vec<Option<&'static str>>>,
    constant_count: u32,
    /// Counts to claim instead of the lengths of the tables.
    export_count: Option<u32>,
    import_count: Option<u32>,
}

impl Spec {
    /// Returns a library with `count` kernels named `k0`, `k1` and so on.
    fn new(version: u32, count: usize) -> Self {
        let name = |index| Some(CString::new(format!("k{index}")).unwrap());
        Self {
            version,
            sanitizer: SanitizerKind::NONE,
            entries: Some(vec![Some(kernel); count]),
            attributes: Some(vec![(0, 0, 1); count]),
            names: Some((0..count).map(name).collect()),
            imports: Some(Vec::new()),
            sources: None,
            constant_count: 0,
            export_count: None,
            import_count: None,
        }
    }

    /// Lays the library out and reads it.
    fn read(&self) -> Result<Library, LibraryError> {
        let header = LibraryHeader {
            version: self.version,
            name: c"spec".as_ptr(),
            features: 0,
            sanitizer: self.sanitizer,
        };
        let pointers = |names: &Option<Vec<Option<CString>>>| -> Option<Vec<*const c_char>> {
            let pointer =
                |name: &Option<CString>| name.as_ref().map_or(ptr::null(), |name| name.as_ptr());
            names
                .as_ref()
                .map(|names| names.iter().map(pointer).collect())
        };
        let import_pointers = pointers(&self.imports);
        let imports = ImportTable {
            count: self.import_count.unwrap_or(count_of(&self.imports)),
            symbols: address_of(&import_pointers),
        };
        let name_pointers = pointers(&self.names);
        let count = self.export_count.unwrap_or(count_of(&self.entries));
        let sources = SourceFileTable {
            count: 0,
            files: ptr::null(),
        };
        let location = |path: &Option<&'static str>| SourceLocation {
            line: 7,
            path_length: path.map_or(3, |path| u32::try_from(path.len()).unwrap()),
            path: path.map_or(ptr::null(), |path| path.as_ptr().cast()),
        };
        let locations = self.sources.as_ref();
        let locations = locations.map(|paths| paths.iter().map(location).collect::<Vec<_>>());
        let constants = ConstantTable {
            count: self.constant_count,
        };
        if self.version == LIBRARY_VERSION_0_5 {
            let attributes = self.attributes.as_ref().map(|attributes| {
                let attrs =
                    |&(local_memory_pages, constant_count, binding_count)| v0_5::DispatchAttrs {
                        local_memory_pages,
                        constant_count,
                        binding_count,
                        reserved_0: u32::MAX,
                        reserved_1: [u64::MAX; 8],
                    };
                attributes.iter().map(attrs).collect::<Vec<_>>()
            });
            let library = v0_5::Library {
                header: &raw const header,
                imports,
                exports: v0_5::ExportTable {
                    count,
                    ptrs: address_of(&self.entries),
                    attrs: address_of(&attributes),
                    names: address_of(&name_pointers),
                    tags: ptr::null(),
                    source_locations: address_of(&locations),
                    stage_locations: ptr::null(),
                },
                constants,
                sources,
            };
            // SAFETY: the structure is that of the version in its header.
            return unsafe { read_library((&raw const library).cast()) };
        }
        let attributes = self.attributes.as_ref().map(|attributes| {
            let attrs =
                |&(local_memory_pages, constant_count, binding_count)| v0_6::DispatchAttrs {
                    flags: DispatchFlags(!DispatchFlags::SEQUENTIAL.0),
                    local_memory_pages,
                    constant_count,
                    binding_count,
                    workgroup_size_x: 0,
                    workgroup_size_y: 4,
                    workgroup_size_z: u16::MAX,
                    parameter_count: u16::MAX,
                    reserved_1: [u64::MAX; 5],
                };
            attributes.iter().map(attrs).collect::<Vec<_>>()
        });
        let library = v0_6::Library {
            header: &raw const header,
            imports,
            exports: v0_6::ExportTable {
                count,
                ptrs: address_of(&self.entries),
                attrs: address_of(&attributes),
                params: ptr::null(),
                occupancy: ptr::null(),
                names: address_of(&name_pointers),
                tags: ptr::null(),
                parameter_names: ptr::null(),
                source_locations: address_of(&locations),
                stage_locations: ptr::null(),
            },
            constants,
            sources,
        };
        // SAFETY: the structure is that of version 0.6, or its version is unknown and refused.
        unsafe { read_library((&raw const library).cast()) }
    }
}

fn count_of<T>(table: &Option<Vec<T>>) -> u32 {
    table
        .as_ref()
        .map_or(0, |table| u32::try_from(table.len()).unwrap())
}

fn address_of<T>(table: &Option<Vec<T>>) -> *const T {
    table.as_ref().map_or(ptr::null(), |table| table.as_ptr())
}

#[track_caller]
fn check_refused(spec: &Spec, code: StatusCode, message: &str) {
    let error = spec.read().expect_err("the library was accepted");
    assert_eq!(error.to_string(), message);
    assert_eq!(error.status_code(), code);
}

const VERSIONS: [u32; 2] = [LIBRARY_VERSION_0_5, LIBRARY_VERSION_0_6];
const PRECONDITION: StatusCode = StatusCode::FAILED_PRECONDITION;

#[test]
fn a_version_in_the_header_that_is_not_known_is_refused() {
    let known = "known are 0.5 (IREE releases 2.9.0 to 3.7.1) and 0.6 (3.8.0 and later)";
    for (version, text) in [
        (0, "0.0 (compilers before release 2.9.0)"),
        (4, "0.4 (compilers before release 2.9.0)"),
        (7, "0.7 (compilers later than this loader)"),
        (u32::MAX, "0.4294967295 (compilers later than this loader)"),
    ] {
        let message = format!("executable library version {text} is not known; {known}");
        check_refused(&Spec::new(version, 1), PRECONDITION, &message);
    }
}

#[test]
fn a_library_without_a_header_is_refused() {
    let library: *const LibraryHeader = ptr::null();
    // SAFETY: only the pointer to the header is read, which is NULL.
    let error = unsafe { read_library(&raw const library) }.unwrap_err();
    assert_eq!(error.to_string(), "executable library has no header");
}

#[test]
fn code_built_with_a_sanitizer_is_refused() {
    for (kind, text) in [
        (1, "address"),
        (2, "memory"),
        (3, "thread"),
        (4, "undefined"),
        (9, "kind 9"),
    ] {
        let spec = Spec {
            sanitizer: SanitizerKind(kind),
            ..Spec::new(6, 1)
        };
        let message = format!(
            "executable library was built with the {text} sanitizer, whose runtime this process does not have"
        );
        check_refused(&spec, StatusCode::UNAVAILABLE, &message);
    }
}

#[test]
fn attributes_are_mandatory_since_version_0_6() {
    for count in [0, 2] {
        let spec = Spec {
            attributes: None,
            ..Spec::new(6, count)
        };
        let message =
            format!("executable library has {count} entries but no table of function attributes");
        check_refused(&spec, PRECONDITION, &message);
    }
}

#[test]
fn without_attributes_in_version_0_5_counts_are_unknown() {
    let library = Spec {
        attributes: None,
        ..Spec::new(5, 2)
    }
    .read()
    .unwrap();
    let expected = ExportAttributes {
        binding_alignment: 64,
        ..ExportAttributes::default()
    };
    assert_eq!(library.exports()[1].attributes(), &expected);
    assert_eq!(expected.binding_count, None);
}

#[test]
fn kernels_know_where_they_come_from_if_the_library_says() {
    for version in VERSIONS {
        let spec = Spec {
            sources: Some(vec![Some("src/mul.mlir"), None]),
            ..Spec::new(version, 2)
        };
        let library = spec.read().unwrap();
        let source = |index: usize| library.exports()[index].source();
        assert_eq!(source(0).unwrap().to_string(), "src/mul.mlir:7");
        assert_eq!(source(1), None);
        let library = Spec::new(version, 1).read().unwrap();
        assert_eq!(library.exports()[0].source(), None);
    }
}

#[test]
fn null_function_pointers_are_refused() {
    for version in VERSIONS {
        let spec = Spec {
            entries: None,
            export_count: Some(1),
            ..Spec::new(version, 1)
        };
        check_refused(
            &spec,
            PRECONDITION,
            "executable library has 1 entries but no table of function pointers",
        );
        let spec = Spec {
            entries: Some(vec![Some(kernel), None]),
            ..Spec::new(version, 2)
        };
        check_refused(
            &spec,
            PRECONDITION,
            "entry 1 of the table of function pointers of the executable library is NULL",
        );
    }
}

#[test]
fn null_and_empty_names_are_refused() {
    for version in VERSIONS {
        let spec = Spec {
            names: Some(vec![Some(c"a".into()), None]),
            ..Spec::new(version, 2)
        };
        check_refused(
            &spec,
            PRECONDITION,
            "entry 1 of the table of function names of the executable library is NULL",
        );
        let spec = Spec {
            names: Some(vec![Some(c"".into())]),
            ..Spec::new(version, 1)
        };
        check_refused(
            &spec,
            PRECONDITION,
            "function #0 of the executable library has an empty name",
        );
    }
}

#[test]
fn null_import_names_are_refused() {
    for version in VERSIONS {
        let spec = Spec {
            imports: None,
            import_count: Some(2),
            ..Spec::new(version, 1)
        };
        check_refused(
            &spec,
            PRECONDITION,
            "executable library has 2 entries but no table of import names",
        );
        let spec = Spec {
            imports: Some(vec![None]),
            ..Spec::new(version, 1)
        };
        check_refused(
            &spec,
            PRECONDITION,
            "entry 0 of the table of import names of the executable library is NULL",
        );
        assert!(
            Spec {
                imports: None,
                ..Spec::new(version, 1)
            }
            .read()
            .is_ok()
        );
    }
}

#[test]
fn counts_that_cannot_be_are_refused_before_the_tables_are_read() {
    for version in VERSIONS {
        for count in [1 << 17, u32::MAX] {
            let spec = Spec {
                export_count: Some(count),
                ..Spec::new(version, 1)
            };
            let message = format!("executable library has {count} functions; the limit is 65536");
            check_refused(&spec, PRECONDITION, &message);
            let spec = Spec {
                import_count: Some(count),
                ..Spec::new(version, 1)
            };
            let message = format!("executable library has {count} imports; the limit is 65536");
            check_refused(&spec, PRECONDITION, &message);
        }
    }
}

#[test]
fn more_constants_or_bindings_than_64_are_out_of_range() {
    for version in VERSIONS {
        let with = |constants, bindings| Spec {
            attributes: Some(vec![(0, 64, 64), (0, constants, bindings)]),
            ..Spec::new(version, 2)
        };
        assert!(with(64, 64).read().is_ok());
        let code = StatusCode::OUT_OF_RANGE;
        check_refused(
            &with(65, 0),
            code,
            "function `k1` of the executable library takes 65 constants; the limit is 64",
        );
        check_refused(
            &with(0, 255),
            code,
            "function `k1` of the executable library takes 255 bindings; the limit is 64",
        );
    }
}

#[test]
fn the_first_of_several_functions_with_a_name_is_found() {
    let names = [c"a", c"b", c"b", c"a"]
        .map(|name| Some(name.into()))
        .to_vec();
    let library = Spec {
        names: Some(names),
        ..Spec::new(6, 4)
    }
    .read()
    .unwrap();
    assert_eq!(library.lookup(b"a"), Ok(0));
    assert_eq!(library.lookup(b"b"), Ok(1));
}

#[test]
fn a_library_without_a_table_of_names_is_accepted() {
    for version in VERSIONS {
        let library = Spec {
            names: None,
            ..Spec::new(version, 2)
        }
        .read()
        .unwrap();
        let error = library.lookup(b"k0").unwrap_err();
        assert_eq!(error.status_code(), StatusCode::UNAVAILABLE);
        assert_eq!(library.exports()[1].name(), None);
    }
}

#[test]
fn an_empty_library_is_accepted() {
    for version in VERSIONS {
        assert!(Spec::new(version, 0).read().unwrap().exports().is_empty());
    }
}

#[test]
fn constants_must_match_the_library() {
    let library = Spec {
        constant_count: 2,
        ..Spec::new(6, 1)
    }
    .read()
    .unwrap();
    assert_eq!(library.check_constants(&[7, 8]), Ok(()));
    assert!(library.check_constants(&[]).is_err());
    assert!(library.check_constants(&[1, 2, 3]).is_err());
}

#[test]
fn a_misaligned_table_is_refused() {
    let words = [0_u64; 2];
    // SAFETY: the table is refused before it is read.
    let error =
        unsafe { tables::table::<u64>(words.as_ptr().wrapping_byte_add(1), 1, "test words") }
            .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("table of test words of the executable library is at the misaligned")
    );
}

proptest! {
    #[test]
    fn both_layouts_of_attributes_say_the_same(
        attributes in proptest::collection::vec((any::<u16>(), 0u8..=64, 0u8..=64), 0..20),
    ) {
        for version in VERSIONS {
            let spec = Spec { attributes: Some(attributes.clone()), ..Spec::new(version, attributes.len()) };
            let library = spec.read().unwrap();
            prop_assert_eq!(library.exports().len(), attributes.len());
            for ((index, export), &(pages, constants, bindings)) in
                (0_u32..).zip(library.exports().iter()).zip(&attributes)
            {
                let is_newer = version == LIBRARY_VERSION_0_6;
                let expected = ExportAttributes {
                    constant_count: Some(constants.into()),
                    binding_count: Some(bindings.into()),
                    workgroup_size: if is_newer { [1, 4, u16::MAX.into()] } else { [1; 3] },
                    local_memory_byte_length: usize::from(pages) * 4096,
                    binding_alignment: 64,
                    is_sequential: false,
                };
                prop_assert_eq!(export.attributes(), &expected);
                prop_assert_eq!(export.ordinal(), index);
                prop_assert_eq!(library.lookup(format!("k{index}").as_bytes()), Ok(index));
            }
        }
    }
}
