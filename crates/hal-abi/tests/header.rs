//! Compares this crate with the C headers in `include/`: a C compiler is the second witness.
//!
//! A probe that includes the headers is compiled and run; it prints every size, offset and constant,
//! and the numbers must be those of the Rust types. Without a C compiler the test says so and ends.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use hal_abi::library::{self, v0_5, v0_6};
use hal_abi::{
    AllocParams, Allocator, AllocatorCommand, DispatchState, Environment, LOCAL_MEMORY_PAGE_SIZE,
    MAX_BINDINGS, MAX_CONSTANTS, PLUGIN_QUERY_SYMBOL, PLUGIN_VERSION_0_1, PluginEnvironment,
    PluginFeatures, PluginHeader, PluginV0, Processor, Resolution, ResolveParams, SanitizerKind,
    StatusCode, StringPair, StringView, WorkgroupState,
};

/// C expressions and the values they must have.
type Expectations = BTreeMap<String, String>;

/// Expects the size and the offsets of structs. A field is written `rust = c` if its names differ.
macro_rules! expect_structs {
    ($expected:ident, $($rust:ty => $c:ident { $($field:ident $(= $c_field:ident)?),+ })+) => {
        $(
            let size = format!("sizeof({})", stringify!($c));
            $expected.insert(size, size_of::<$rust>().to_string());
            let align = format!("_Alignof({})", stringify!($c));
            $expected.insert(align, align_of::<$rust>().to_string());
            $(
                let name = [stringify!($field) $(, stringify!($c_field))?];
                let offset = format!("offsetof({}, {})", stringify!($c), name[name.len() - 1]);
                $expected.insert(offset, offset_of!($rust, $field).to_string());
            )+
        )+
    };
}

fn plugin_structs(expected: &mut Expectations) {
    expect_structs! { expected,
        StringView => halite_string_view_t { data, size }
        StringPair => halite_string_pair_t { key, value }
        AllocParams => halite_alloc_params_t { byte_length }
        Allocator => halite_allocator_t { self_ = self, ctl }
        PluginHeader => halite_plugin_header_t {
            version, name, description, features, sanitizer, reserved
        }
        PluginEnvironment => halite_plugin_environment_t { host_allocator }
        ResolveParams => halite_plugin_resolve_params_t {
            count, symbol_names, out_fn_ptrs, out_fn_contexts
        }
        PluginV0 => halite_plugin_v0_t { header, load, unload, resolve }
    }
}

fn dispatch_structs(expected: &mut Expectations) {
    expect_structs! { expected,
        Processor => halite_processor_t { data }
        Environment => halite_environment_t {
            constants, import_thunk, import_funcs, import_contexts, processor
        }
        DispatchState => halite_dispatch_state_t {
            workgroup_size_x, workgroup_size_y, workgroup_size_z, constant_count,
            workgroup_count_x, workgroup_count_y, workgroup_count_z, max_concurrency,
            binding_count, constants, binding_ptrs, binding_lengths
        }
        WorkgroupState => halite_workgroup_state_t {
            workgroup_id_x, workgroup_id_y, workgroup_id_z, reserved, processor_id, local_memory,
            local_memory_size
        }
    }
}

fn library_structs(expected: &mut Expectations) {
    expect_structs! { expected,
        library::LibraryHeader => halite_library_header_t { version, name, features, sanitizer }
        library::ImportTable => halite_import_table_t { count, symbols }
        library::ConstantTable => halite_constant_table_t { count }
        library::SourceLocation => halite_source_location_t { line, path_length, path }
        library::StageLocationTable => halite_stage_location_table_t { count, names, locations }
        library::SourceFile => halite_source_file_t { path_length, path, content_length, content }
        library::SourceFileTable => halite_source_file_table_t { count, files }
        v0_6::DispatchAttrs => halite_dispatch_attrs_v0_6_t {
            flags, local_memory_pages, constant_count, binding_count, workgroup_size_x,
            workgroup_size_y, workgroup_size_z, parameter_count, reserved_1
        }
        v0_6::ParameterRecord => halite_parameter_record_t {
            parameter_type, size, flags, name, offset
        }
        v0_6::OccupancyInfo => halite_occupancy_info_t { reserved }
        v0_6::ExportTable => halite_export_table_v0_6_t {
            count, ptrs, attrs, params, occupancy, names, tags, parameter_names, source_locations,
            stage_locations
        }
        v0_6::Library => halite_library_v0_6_t { header, imports, exports, constants, sources }
        v0_5::DispatchAttrs => halite_dispatch_attrs_v0_5_t {
            local_memory_pages, constant_count, binding_count, reserved_0, reserved_1
        }
        v0_5::ExportTable => halite_export_table_v0_5_t {
            count, ptrs, attrs, names, tags, source_locations, stage_locations
        }
        v0_5::Library => halite_library_v0_5_t { header, imports, exports, constants, sources }
    }
}

fn constants(expected: &mut Expectations) {
    for code in 0..=17 {
        let name = StatusCode(code).name().expect("a named code");
        expected.insert(format!("HALITE_{name}"), code.to_string());
    }
    let numbers = [
        ("STATUS_CODE_MASK", u64::from(StatusCode::MASK)),
        ("ALLOCATOR_MALLOC", number(AllocatorCommand::MALLOC.0)),
        ("ALLOCATOR_CALLOC", number(AllocatorCommand::CALLOC.0)),
        ("ALLOCATOR_REALLOC", number(AllocatorCommand::REALLOC.0)),
        ("ALLOCATOR_FREE", number(AllocatorCommand::FREE.0)),
        ("PLUGIN_VERSION_0_1", u64::from(PLUGIN_VERSION_0_1)),
        (
            "PLUGIN_FEATURE_STANDALONE",
            u64::from(PluginFeatures::STANDALONE.0),
        ),
        (
            "PLUGIN_FEATURE_FULL_STATUS",
            u64::from(PluginFeatures::FULL_STATUS.0),
        ),
        ("SANITIZER_NONE", number(SanitizerKind::NONE.0)),
        ("SANITIZER_ADDRESS", number(SanitizerKind::ADDRESS.0)),
        ("SANITIZER_MEMORY", number(SanitizerKind::MEMORY.0)),
        ("SANITIZER_THREAD", number(SanitizerKind::THREAD.0)),
        ("SANITIZER_UNDEFINED", number(SanitizerKind::UNDEFINED.0)),
        (
            "RESOLUTION_MISSING_OPTIONAL",
            u64::from(Resolution::MISSING_OPTIONAL.0),
        ),
        ("MAX_CONSTANTS", MAX_CONSTANTS as u64),
        ("MAX_BINDINGS", MAX_BINDINGS as u64),
        ("LOCAL_MEMORY_PAGE_SIZE", LOCAL_MEMORY_PAGE_SIZE as u64),
        (
            "LIBRARY_VERSION_0_5",
            u64::from(library::LIBRARY_VERSION_0_5),
        ),
        (
            "LIBRARY_VERSION_0_6",
            u64::from(library::LIBRARY_VERSION_0_6),
        ),
        (
            "DISPATCH_FLAG_SEQUENTIAL",
            v0_6::DispatchFlags::SEQUENTIAL.0,
        ),
        (
            "DISPATCH_FLAG_WORKGROUP_SIZE_DYNAMIC",
            v0_6::DispatchFlags::WORKGROUP_SIZE_DYNAMIC.0,
        ),
        ("PARAMETER_CONSTANT", v0_6::ParameterType::CONSTANT.0.into()),
        ("PARAMETER_BINDING", v0_6::ParameterType::BINDING.0.into()),
        (
            "PARAMETER_BUFFER_PTR",
            v0_6::ParameterType::BUFFER_PTR.0.into(),
        ),
        ("PARAMETER_NO_NAME", v0_6::ParameterRecord::NO_NAME.into()),
    ];
    for (name, value) in numbers {
        expected.insert(format!("HALITE_{name}"), value.to_string());
    }
}

fn number(value: i32) -> u64 {
    u64::try_from(value).expect("constants are not negative")
}

/// The text that the probe prints for each string constant.
fn symbols() -> [(&'static str, &'static str); 2] {
    [
        (
            "HALITE_PLUGIN_QUERY_SYMBOL",
            PLUGIN_QUERY_SYMBOL.to_str().expect("ASCII"),
        ),
        (
            "HALITE_LIBRARY_QUERY_SYMBOL",
            library::LIBRARY_QUERY_SYMBOL.to_str().expect("ASCII"),
        ),
    ]
}

/// The source of the probe: prints `expression<TAB>value` lines.
fn probe(expected: &Expectations) -> String {
    let mut source =
        String::from("#include <stdio.h>\n#include \"halite_library.h\"\nint main(void) {\n");
    for expression in expected.keys() {
        writeln!(
            source,
            "printf(\"%s\\t%llu\\n\", \"{expression}\", (unsigned long long)({expression}));"
        )
        .expect("strings take any text");
    }
    for (name, _) in symbols() {
        writeln!(source, "printf(\"%s\\t%s\\n\", \"{name}\", {name});").expect("as above");
    }
    source + "return 0;\n}\n"
}

#[test]
fn the_c_headers_have_the_layouts_and_constants_of_this_crate() {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    if let Err(error) = Command::new(&compiler).arg("--version").output() {
        println!("skipped: there is no C compiler `{compiler}`: {error}");
        return;
    }
    let mut expected = Expectations::new();
    plugin_structs(&mut expected);
    dispatch_structs(&mut expected);
    library_structs(&mut expected);
    constants(&mut expected);

    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("header_probe.c"), folder.join("header_probe"));
    std::fs::write(&source, probe(&expected)).unwrap();
    let compiled = Command::new(&compiler)
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-I",
        ])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
        .arg("-o")
        .args([&program, &source])
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );

    let run = Command::new(&program).output().unwrap();
    assert!(run.status.success(), "the probe failed: {:?}", run.status);
    let printed: Expectations = String::from_utf8(run.stdout)
        .unwrap()
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(expression, value)| (expression.to_owned(), value.to_owned()))
        .collect();
    for (name, value) in symbols() {
        expected.insert(name.to_owned(), value.to_owned());
    }
    assert_eq!(printed, expected);
}
