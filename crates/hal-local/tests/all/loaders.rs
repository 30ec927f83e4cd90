//! Loaders and registries: who is asked, who stops the search, what errors say.

use std::error::Error;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use hal_abi::StatusCode;
use hal_local::{
    Decline, EmbeddedElfLoader, Executable, ExecutableData, ExecutableLoader, ExecutableParams,
    InlineDispatcher, LoadError, LoaderRegistry, StaticLibraryLoader, SystemLibraryLoader,
};
use hal_plugin::{Import, ImportProvider, PluginManager, ProviderError, ResolveRequest};

use crate::kernels;
use crate::support::{Memory, dispatch, load_static, static_params, trust};

/// A loader that answers every request with one error.
struct Refusing(fn() -> LoadError);

impl ExecutableLoader for Refusing {
    fn name(&self) -> &str {
        "refusing"
    }

    fn supports_format(&self, _format: &str) -> bool {
        true
    }

    fn infer_format(&self, _data: &[u8]) -> Option<String> {
        None
    }

    fn try_load(&self, _params: &ExecutableParams<'_>) -> Result<Arc<dyn Executable>, LoadError> {
        Err((self.0)())
    }
}

fn static_loader(queries: &[hal_abi::library::LibraryQueryFn]) -> Arc<dyn ExecutableLoader> {
    Arc::new(StaticLibraryLoader::new(trust(), None, queries).unwrap())
}

fn native_loaders() -> LoaderRegistry {
    LoaderRegistry::new()
        .with(Arc::new(EmbeddedElfLoader::new(trust(), None)))
        .with(Arc::new(SystemLibraryLoader::new(trust(), None)))
}

fn load_error(registry: &LoaderRegistry, params: &ExecutableParams<'_>) -> LoadError {
    registry
        .load(params)
        .err()
        .expect("the executable was loaded")
}

#[test]
fn a_loader_that_does_not_have_the_executable_passes_it_on() {
    let registry = LoaderRegistry::new()
        .with(static_loader(&[kernels::query_other]))
        .with(static_loader(&[kernels::query]));
    let executable = registry.load(&static_params("kernels")).unwrap();
    assert_eq!(executable.lookup(b"record"), Ok(2));
}

#[test]
fn not_found_and_cancelled_go_on_to_the_next_loader() {
    for (code, status) in [
        (Decline::NotFound, StatusCode::NOT_FOUND),
        (Decline::Cancelled, StatusCode::CANCELLED),
    ] {
        let error = LoadError::Declined {
            code,
            reason: "no".to_owned(),
        };
        assert!(error.is_declined());
        assert_eq!(error.status_code(), status);
    }
    let registry = LoaderRegistry::new()
        .with(Arc::new(Refusing(|| LoadError::Declined {
            code: Decline::NotFound,
            reason: "a".to_owned(),
        })))
        .with(Arc::new(Refusing(|| LoadError::Declined {
            code: Decline::Cancelled,
            reason: "b".to_owned(),
        })))
        .with(static_loader(&[kernels::query]));
    assert!(registry.load(&static_params("kernels")).is_ok());
}

#[test]
fn any_other_error_ends_the_search() {
    let registry = LoaderRegistry::new()
        .with(Arc::new(Refusing(|| LoadError::Loader {
            loader: "refusing".to_owned(),
            code: StatusCode::INTERNAL,
            source: "broken".into(),
        })))
        .with(static_loader(&[kernels::query]));
    let error = load_error(&registry, &static_params("kernels"));
    assert_eq!(error.status_code(), StatusCode::INTERNAL);
    assert_eq!(error.source().unwrap().to_string(), "broken");
}

#[test]
fn a_failure_whose_code_is_not_found_ends_the_search_too() {
    let registry = LoaderRegistry::new()
        .with(Arc::new(
            StaticLibraryLoader::new(trust(), None, &[kernels::query_importer]).unwrap(),
        ))
        .with(static_loader(&[kernels::query_other]));
    let error = load_error(&registry, &static_params("importer"));
    assert!(matches!(error, LoadError::Imports { .. }), "{error}");
}

#[test]
fn the_error_of_a_format_without_a_loader_names_the_format_and_the_loaders() {
    let registry = native_loaders().with(static_loader(&[kernels::query]));
    let error = load_error(&registry, &static_params("nobody"));
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
    assert_eq!(
        error.to_string(),
        "no executable loader registered for the given executable format `static`; loaders asked: \
         embedded-elf (other formats), system-library (other formats), \
         static-library (no library is named `nobody`)"
    );
    let error = load_error(&LoaderRegistry::new(), &static_params("kernels"));
    assert_eq!(
        error.to_string(),
        "no executable loader registered for the given executable format `static`; loaders asked: none"
    );
}

#[test]
fn a_static_library_is_named_with_or_without_a_nul() {
    let loader = static_loader(&[kernels::query]);
    for name in ["kernels", "kernels\0"] {
        assert!(loader.try_load(&static_params(name)).is_ok());
        assert_eq!(
            loader.infer_format(name.as_bytes()).as_deref(),
            Some("static")
        );
    }
    for name in ["", "\0", "kernel", "kernels\0\0", "kernelss"] {
        let error = loader.try_load(&static_params(name)).err().unwrap();
        assert!(error.is_declined(), "{name:?}: {error}");
        assert_eq!(loader.infer_format(name.as_bytes()), None);
    }
    assert!(loader.supports_format("static"));
    assert!(!loader.supports_format("static-x86_64"));
}

#[test]
fn the_first_of_several_static_libraries_with_a_name_counts() {
    let loader = static_loader(&[kernels::query, kernels::query_other, kernels::query]);
    assert_eq!(
        loader
            .try_load(&static_params("kernels"))
            .unwrap()
            .export_count(),
        8
    );
}

#[test]
fn a_library_of_another_version_says_which_and_who_made_it() {
    let message = |query| {
        let error = load_static(query, "old", None).err().unwrap();
        assert_eq!(error.status_code(), StatusCode::FAILED_PRECONDITION);
        error.source().unwrap().to_string()
    };
    let known = "known are 0.5 (IREE releases 2.9.0 to 3.7.1) and 0.6 (3.8.0 and later)";
    assert_eq!(
        message(kernels::query_version_4),
        format!(
            "executable library version 0.4 (compilers before release 2.9.0) is not known; {known}"
        )
    );
    assert_eq!(
        message(kernels::query_nothing),
        format!("executable library version (none given) is not known; {known}")
    );
}

#[test]
fn executable_level_constants_must_be_as_many_as_the_library_takes() {
    let loader = static_loader(&[kernels::query]);
    let params = ExecutableParams {
        constants: &[1, 2],
        ..static_params("kernels")
    };
    let error = loader.try_load(&params).err().unwrap();
    assert_eq!(error.status_code(), StatusCode::FAILED_PRECONDITION);
    assert_eq!(
        error.source().unwrap().to_string(),
        "executable library `kernels` takes 0 executable-level constants, not 2"
    );
}

/// Knows one function, which adds its context to its first parameter.
struct Adder {
    name: &'static str,
    function: &'static str,
}

unsafe extern "C" fn add(
    params: *mut c_void,
    context: *mut c_void,
    _reserved: *mut c_void,
) -> c_int {
    let params = params.cast::<u32>();
    // SAFETY: the kernels of these tests pass a `u32` to the import.
    let value = unsafe { params.read() };
    let sum = value + u32::try_from(context.addr()).unwrap();
    // SAFETY: as above.
    unsafe { params.write(sum) };
    0
}

impl ImportProvider for Adder {
    fn name(&self) -> &str {
        self.name
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        request.fill_with(|name| {
            let known = name.symbol() == self.function.as_bytes();
            // SAFETY: the function lives as long as the program and may be called from any thread.
            known.then(|| unsafe { Import::new(add, std::ptr::without_provenance_mut(40)) })
        });
        Ok(())
    }
}

#[test]
fn kernels_call_their_imports_with_the_context_of_the_provider() {
    let provider = Arc::new(Adder {
        name: "adder",
        function: "test_add",
    });
    let executable =
        load_static(kernels::query_importer, "importer", Some(provider.clone())).unwrap();
    let memory = Memory::zeroed(4);
    let dispatcher = InlineDispatcher::new();
    dispatch(
        &dispatcher,
        &*executable,
        "call_import_0",
        [1; 3],
        &[],
        &[memory.binding()],
    )
    .unwrap();
    assert_eq!(memory.to_u32(), [40]);
}

#[test]
fn calling_a_missing_optional_import_fails_the_dispatch() {
    let provider = Arc::new(Adder {
        name: "adder",
        function: "test_add",
    });
    let executable = load_static(kernels::query_importer, "importer", Some(provider)).unwrap();
    let memory = Memory::zeroed(4);
    let dispatcher = InlineDispatcher::new();
    let error = dispatch(
        &dispatcher,
        &*executable,
        "call_import_1",
        [1; 3],
        &[],
        &[memory.binding()],
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "function `call_import_1` failed in workgroup [0, 0, 0]: the kernel returned 5"
    );
}

#[test]
fn a6_an_executable_loads_once_its_plugin_is_registered_and_an_older_one_stays_as_it_is() {
    let manager = PluginManager::new();
    let load = || {
        let provider = Arc::new(manager.clone());
        load_static(kernels::query_importer, "importer", Some(provider))
    };
    let result = |executable: &dyn Executable, function| {
        let memory = Memory::zeroed(4);
        let (dispatcher, binding) = (InlineDispatcher::new(), memory.binding());
        dispatch(&dispatcher, executable, function, [1; 3], &[], &[binding])?;
        Ok::<_, hal_local::DispatchError>(memory.to_u32())
    };
    let register = |function| {
        let provider = Arc::new(Adder {
            name: "adder",
            function,
        });
        manager.register_provider("adder", provider).unwrap();
    };
    assert_eq!(load().err().unwrap().status_code(), StatusCode::NOT_FOUND);
    register("test_add");
    let older = load().unwrap();
    assert_eq!(result(&*older, "call_import_0").unwrap(), [40]);
    register("test_missing");
    let newer = load().unwrap();
    assert_eq!(result(&*newer, "call_import_1").unwrap(), [40]);
    assert!(result(&*older, "call_import_1").is_err());
    assert_eq!(result(&*older, "call_import_0").unwrap(), [40]);
}

#[test]
fn missing_imports_are_named_with_the_providers_that_were_asked() {
    let manager = PluginManager::new();
    for name in ["first", "second"] {
        manager
            .register_provider(
                name,
                Arc::new(Adder {
                    name,
                    function: "test_sub",
                }),
            )
            .unwrap();
    }
    let error = load_static(kernels::query_importer, "importer", Some(Arc::new(manager)))
        .err()
        .unwrap();
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
    assert!(!error.is_declined());
    assert_eq!(
        error.to_string(),
        "the imports of executable library `importer` are not satisfied"
    );
    assert_eq!(
        error.source().unwrap().to_string(),
        "missing 1 required executable import: [test_add]; providers asked: [second, first]"
    );
}

#[test]
fn formats_are_those_of_the_host_and_longer() {
    let registry = native_loaders();
    let arch = hal_elf::Target::HOST.arch_name().unwrap();
    for format in [
        "embedded-elf-ARCH",
        "embedded-elf-ARCH-xyz",
        "system-elf-ARCH",
    ] {
        assert!(
            registry.supports_format(&format.replace("ARCH", arch)),
            "{format}"
        );
    }
    for format in [
        "embedded-elf",
        "embedded-elf-",
        "system-dll-ARCH",
        "embedded-fatelf",
        "static",
        "",
        "vmvx-bytecode-fb",
        "embedded-elf-pdp_11",
    ] {
        assert!(
            !registry.supports_format(&format.replace("ARCH", arch)),
            "{format}"
        );
    }
}

#[test]
fn data_of_no_known_format_is_not_inferred() {
    let registry = native_loaders();
    for data in [
        &b""[..],
        b"\x7f",
        b"\x7fELF",
        &[0; 64],
        b"\xfa\x70\x0e\x1f",
        b"PK\x03\x04",
        &[0x7f; 4096],
    ] {
        assert_eq!(registry.infer_format(data), None, "{data:?}");
    }
}

#[test]
fn garbage_is_an_error_that_ends_the_search() {
    let registry = native_loaders();
    let arch = hal_elf::Target::HOST.arch_name().unwrap();
    for stem in ["embedded-elf", "system-elf"] {
        for bytes in [
            &b""[..],
            b"\x7fELF",
            &[0xFF; 300],
            b"\xfa\x70\x0e\x1f\x01\x00\x00\x00",
        ] {
            let format = format!("{stem}-{arch}");
            let data = ExecutableData::copy_of(bytes);
            let error = load_error(
                &registry,
                &ExecutableParams {
                    format: &format,
                    data,
                    constants: &[],
                },
            );
            assert!(
                !error.is_declined() && !matches!(error, LoadError::NoLoader { .. }),
                "{error}"
            );
            assert!(error.source().is_some());
        }
    }
}

#[test]
fn a_loader_declines_a_format_that_is_not_its_own() {
    let loaders: [Arc<dyn ExecutableLoader>; 3] = [
        Arc::new(EmbeddedElfLoader::new(trust(), None)),
        Arc::new(SystemLibraryLoader::new(trust(), None)),
        static_loader(&kernels::ALL[..1]),
    ];
    for loader in loaders {
        let params = ExecutableParams {
            format: "bogus",
            ..static_params("kernels")
        };
        let error = loader.try_load(&params).err().unwrap();
        assert_eq!(
            error.status_code(),
            StatusCode::CANCELLED,
            "{}",
            loader.name()
        );
    }
}
