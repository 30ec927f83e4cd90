//! Executables that compilers made, with real bindings. Where they come from: `fixtures/README.md`.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::error::Error;
use std::ffi::{c_int, c_void};
use std::slice;
use std::sync::Arc;

use hal_abi::StatusCode;
use hal_local::{
    Binding, EmbeddedElfLoader, Executable, ExecutableData, ExecutableLoader, ExecutableParams,
    InlineDispatcher, LoadError, LookupError, SystemLibraryLoader,
};
use hal_plugin::{Import, ImportProvider, ProviderError, ResolveRequest};

use crate::support::{Memory, dispatch, trust};

const MUL_3_13_0: &[u8] = include_bytes!("../fixtures/mul_3_13_0.embedded.so");
const MUL_3_8_0_STRIPPED: &[u8] = include_bytes!("../fixtures/mul_3_8_0_stripped.embedded.so");
const MUL_3_7_0: &[u8] = include_bytes!("../fixtures/mul_3_7_0.embedded.so");
const MUL_3_13_0_SYSTEM: &[u8] = include_bytes!("../fixtures/mul_3_13_0.system.so");
const MUL_3_13_0_ARM_64: &[u8] = include_bytes!("../fixtures/mul_3_13_0_arm_64.embedded.so");
const DYNSUM_3_13_0: &[u8] = include_bytes!("../fixtures/dynsum_3_13_0.embedded.so");
const SCALE_ADD_3_13_0: &[u8] = include_bytes!("../fixtures/scale_add_3_13_0.embedded.so");

const MUL: &str = "mul_dispatch_0_elementwise_4_f32";

fn load_embedded(bytes: &[u8]) -> Result<Arc<dyn Executable>, LoadError> {
    load_embedded_with(bytes, None)
}

fn load_embedded_with(
    bytes: &[u8],
    provider: Option<Arc<dyn ImportProvider>>,
) -> Result<Arc<dyn Executable>, LoadError> {
    let data = ExecutableData::copy_of(bytes);
    EmbeddedElfLoader::new(trust(), provider).try_load(&ExecutableParams {
        format: "embedded-elf-x86_64",
        data,
        constants: &[],
    })
}

fn load_system(bytes: &[u8]) -> Result<Arc<dyn Executable>, LoadError> {
    let data = ExecutableData::copy_of(bytes);
    SystemLibraryLoader::new(trust(), None).try_load(&ExecutableParams {
        format: "system-elf-x86_64",
        data,
        constants: &[],
    })
}

#[track_caller]
fn check_mul(executable: &dyn Executable) {
    let export = executable.export(0).unwrap();
    assert_eq!(export.attributes().binding_count, Some(3));
    assert_eq!(export.attributes().constant_count, Some(0));
    let inputs = [
        Memory::of_f32(&[1.0, 2.0, 3.0, 4.0]),
        Memory::of_f32(&[10.0, 20.0, 30.0, 40.0]),
    ];
    let output = Memory::of_f32(&[0.0; 4]);
    let bindings = [inputs[0].binding(), inputs[1].binding(), output.binding()];
    let dispatch = hal_local::Dispatch::new(executable, 0, [1, 1, 1], &[], &bindings).unwrap();
    hal_local::Dispatcher::dispatch(&InlineDispatcher::new(), executable, &dispatch).unwrap();
    assert_eq!(output.to_f32(), [10.0, 40.0, 90.0, 160.0]);
}

#[test]
fn an_embedded_library_of_version_0_6_runs() {
    let executable = load_embedded(MUL_3_13_0).unwrap();
    assert_eq!(executable.lookup(MUL.as_bytes()), Ok(0));
    assert_eq!(executable.export_count(), 1);
    check_mul(&*executable);
}

#[test]
fn an_embedded_library_of_version_0_5_runs() {
    let executable = load_embedded(MUL_3_7_0).unwrap();
    assert_eq!(executable.lookup(MUL.as_bytes()), Ok(0));
    check_mul(&*executable);
}

#[test]
fn a_library_without_names_runs_by_ordinal_only() {
    let executable = load_embedded(MUL_3_8_0_STRIPPED).unwrap();
    let error = executable.lookup(MUL.as_bytes()).unwrap_err();
    assert!(matches!(error, LookupError::NoNames { .. }));
    assert_eq!(error.status_code(), StatusCode::UNAVAILABLE);
    assert_eq!(executable.export(0).unwrap().to_string(), "#0");
    check_mul(&*executable);
}

#[test]
fn a_system_library_runs() {
    let executable = load_system(MUL_3_13_0_SYSTEM).unwrap();
    assert_eq!(executable.lookup(MUL.as_bytes()), Ok(0));
    check_mul(&*executable);
}

#[test]
fn each_loader_can_load_the_files_of_the_other() {
    check_mul(&*load_system(MUL_3_7_0).unwrap());
    check_mul(&*load_embedded(MUL_3_13_0_SYSTEM).unwrap());
}

#[test]
fn two_system_libraries_that_are_open_at_once_are_not_mistaken_for_each_other() {
    // The second one gets the file descriptor of the first.
    let first = load_system(MUL_3_13_0_SYSTEM).unwrap();
    let second = load_system(DYNSUM_3_13_0).unwrap();
    let third = load_system(MUL_3_7_0).unwrap();
    assert_eq!(first.lookup(MUL.as_bytes()), Ok(0));
    assert_eq!(second.lookup(b"dynsum_dispatch_0_reduction_DxD_f32"), Ok(0));
    assert_eq!(third.lookup(MUL.as_bytes()), Ok(0));
    check_mul(&*first);
    drop(second);
    check_mul(&*third);
}

#[test]
fn a_debug_footer_is_left_alone() {
    // Magic, version, flags, then offsets and sizes that lead nowhere.
    let mut file = MUL_3_13_0_SYSTEM.to_vec();
    file.extend(b"IREEDBG\0");
    file.extend([0_u8; 8]);
    for value in [u64::MAX, u64::MAX, 1 << 63, u64::MAX] {
        file.extend(value.to_le_bytes());
    }
    check_mul(&*load_system(&file).unwrap());
    check_mul(&*load_embedded(&file).unwrap());
}

/// Returns a FatELF file with these members, for x86-64 and 64-bit Arm.
fn fat_elf(members: &[(u16, &[u8])]) -> Vec<u8> {
    let mut file = vec![
        0xFA,
        0x70,
        0x0E,
        0x1F,
        1,
        0,
        u8::try_from(members.len()).unwrap(),
        0,
    ];
    let mut offset = 4096;
    for (machine, member) in members {
        file.extend(machine.to_le_bytes());
        file.extend([0, 0, 2, 1, 0, 0]);
        file.extend(u64::try_from(offset).unwrap().to_le_bytes());
        file.extend(u64::try_from(member.len()).unwrap().to_le_bytes());
        offset += member.len().next_multiple_of(4096);
    }
    for (_, member) in members {
        file.resize(file.len().next_multiple_of(4096), 0);
        file.extend(*member);
    }
    file
}

#[test]
fn the_member_for_this_host_is_taken_from_a_fat_file() {
    let file = fat_elf(&[(183, MUL_3_13_0_ARM_64), (62, MUL_3_13_0)]);
    check_mul(&*load_embedded(&file).unwrap());
    check_mul(&*load_system(&file).unwrap());
    let loader = EmbeddedElfLoader::new(trust(), None);
    assert_eq!(
        loader.infer_format(&file).as_deref(),
        Some("embedded-elf-x86_64")
    );

    let file = fat_elf(&[(183, MUL_3_13_0_ARM_64)]);
    for error in [
        load_embedded(&file).err().unwrap(),
        load_system(&file).err().unwrap(),
    ] {
        assert!(!error.is_declined());
        assert!(error.source().is_some(), "{error}");
    }
    assert_eq!(loader.infer_format(&file), None);
}

#[test]
fn formats_are_inferred_from_the_bytes() {
    let embedded = EmbeddedElfLoader::new(trust(), None);
    let system = SystemLibraryLoader::new(trust(), None);
    assert_eq!(
        embedded.infer_format(MUL_3_13_0).as_deref(),
        Some("embedded-elf-x86_64")
    );
    assert_eq!(
        embedded.infer_format(MUL_3_13_0_ARM_64).as_deref(),
        Some("embedded-elf-arm_64")
    );
    assert!(!embedded.supports_format("embedded-elf-arm_64"));
    assert_eq!(
        system.infer_format(MUL_3_13_0_SYSTEM).as_deref(),
        Some("system-elf-x86_64")
    );
}

#[test]
fn an_image_for_another_machine_is_refused() {
    let error = load_embedded(MUL_3_13_0_ARM_64).err().unwrap();
    assert!(matches!(error, LoadError::Elf { .. }), "{error}");
    assert_eq!(error.status_code(), StatusCode::FAILED_PRECONDITION);
    assert!(matches!(
        load_system(MUL_3_13_0_ARM_64),
        Err(LoadError::Open { .. })
    ));
}

#[test]
fn a_file_cut_short_anywhere_is_refused_or_runs() {
    for length in (0..MUL_3_13_0_SYSTEM.len()).step_by(61) {
        let file = &MUL_3_13_0_SYSTEM[..length];
        for executable in [load_embedded(file), load_system(file)]
            .into_iter()
            .flatten()
        {
            check_mul(&*executable);
        }
    }
}

#[test]
fn constants_reach_a_compiled_kernel() {
    // The length of a row and the number of rows, 64 bits each, low words first.
    let executable = load_embedded(DYNSUM_3_13_0).unwrap();
    let input = Memory::of_f32(&[-1.0, -4.0, 3.5, 4.0, 10.0, 10.0]);
    let output = Memory::of_f32(&[0.0; 3]);
    let dispatcher = InlineDispatcher::new();
    let bindings = [Binding::shared(input.bytes(), None), output.binding()];
    let function = "dynsum_dispatch_0_reduction_DxD_f32";
    dispatch(
        &dispatcher,
        &*executable,
        function,
        [3, 1, 1],
        &[2, 0, 3, 0],
        &bindings,
    )
    .unwrap();
    assert_eq!(output.to_f32(), [-5.0, 7.5, 20.0]);
}

/// Knows `lab_scale_add`.
struct ScaleAdd;

#[repr(C)]
struct ScaleAddParams {
    a: *const f32,
    a_offset: usize,
    b: *const f32,
    b_offset: usize,
    c: *mut f32,
    c_offset: usize,
    count: usize,
}

/// Computes `c = 10 a + b`.
unsafe extern "C" fn scale_add(
    params: *mut c_void,
    _context: *mut c_void,
    _reserved: *mut c_void,
) -> c_int {
    // SAFETY: the program declares the import with these parameters.
    let params = unsafe { &*params.cast::<ScaleAddParams>() };
    // SAFETY: `a` has `count` numbers from its offset on.
    let a = unsafe { params.a.add(params.a_offset) };
    // SAFETY: as above.
    let a = unsafe { slice::from_raw_parts(a, params.count) };
    // SAFETY: so has `b`.
    let b = unsafe { params.b.add(params.b_offset) };
    // SAFETY: as above.
    let b = unsafe { slice::from_raw_parts(b, params.count) };
    // SAFETY: so has `c`, which the kernel may write and which is apart from the others.
    let c = unsafe { params.c.add(params.c_offset) };
    // SAFETY: as above.
    let c = unsafe { slice::from_raw_parts_mut(c, params.count) };
    for (c, (a, b)) in c.iter_mut().zip(a.iter().zip(b)) {
        *c = 10.0 * a + b;
    }
    0
}

impl ImportProvider for ScaleAdd {
    fn name(&self) -> &str {
        "scale-add"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        request.fill_with(|name| {
            let known = name.symbol() == b"lab_scale_add";
            // SAFETY: the function takes the parameters the program passes.
            known.then(|| unsafe { Import::new(scale_add, std::ptr::null_mut()) })
        });
        Ok(())
    }
}

#[test]
fn a_compiled_kernel_calls_its_import() {
    let executable = load_embedded_with(SCALE_ADD_3_13_0, Some(Arc::new(ScaleAdd))).unwrap();
    let (a, b) = (
        Memory::of_f32(&[1.0, 2.0, 3.0]),
        Memory::of_f32(&[4.0, 5.0, 6.0]),
    );
    let c = Memory::of_f32(&[0.0; 3]);
    let bindings = [a.binding(), b.binding(), c.binding()];
    dispatch(
        &InlineDispatcher::new(),
        &*executable,
        "scale_add",
        [1; 3],
        &[3, 0],
        &bindings,
    )
    .unwrap();
    assert_eq!(c.to_f32(), [14.0, 25.0, 36.0]);
}

#[test]
fn a_compiled_kernel_without_its_import_is_not_loaded() {
    let error = load_embedded(SCALE_ADD_3_13_0).err().unwrap();
    assert!(matches!(error, LoadError::Imports { .. }), "{error}");
    assert!(
        error
            .source()
            .unwrap()
            .to_string()
            .contains("lab_scale_add")
    );
}

#[test]
fn an_executable_outlives_its_loader_its_data_and_its_provider() {
    let provider = Arc::new(ScaleAdd);
    let loader = EmbeddedElfLoader::new(trust(), Some(provider.clone()));
    let owner = Arc::new(SCALE_ADD_3_13_0.to_vec());
    let params = ExecutableParams {
        format: "embedded-elf-x86_64",
        data: ExecutableData::new(owner.clone()),
        constants: &[],
    };
    let executable = loader.try_load(&params).unwrap();
    drop(params);
    drop(loader);
    drop(provider);
    assert_eq!(
        Arc::strong_count(&owner),
        1,
        "nothing refers to the module's bytes"
    );
    drop(owner);
    let memory = [(); 3].map(|()| Memory::of_f32(&[1.0; 3]));
    let bindings = [
        memory[0].binding(),
        memory[1].binding(),
        memory[2].binding(),
    ];
    dispatch(
        &InlineDispatcher::new(),
        &*executable,
        "scale_add",
        [1; 3],
        &[3, 0],
        &bindings,
    )
    .unwrap();
    assert_eq!(memory[2].to_f32(), [11.0; 3]);
}
