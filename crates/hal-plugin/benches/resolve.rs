//! Times resolutions of 1, 16 and 256 names through 1, 8 and 64 providers.
//!
//! The oldest provider knows every name; all others know nothing. `docs/performance.md` says more.

use std::ffi::{CStr, CString, c_int, c_void};
use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion};
use hal_plugin::{
    Import, ImportProvider, PluginManager, ProviderError, ResolveRequest, ResolvedImports,
};

unsafe extern "C" fn function(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

/// Knows every name, or none.
struct Provider {
    knows_all: bool,
}

impl ImportProvider for Provider {
    fn name(&self) -> &str {
        "provider"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        if self.knows_all {
            // SAFETY: `function` can be called at any time, on any thread, with any arguments.
            let import = unsafe { Import::new(function, std::ptr::null_mut()) };
            request.fill_with(|_| Some(import));
        }
        Ok(())
    }
}

fn manager(provider_count: usize) -> PluginManager {
    let manager = PluginManager::new();
    for index in 0..provider_count {
        let knows_all = index == 0;
        manager
            .register_provider("provider", Arc::new(Provider { knows_all }))
            .expect("there is no limit");
    }
    manager
}

fn resolve(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("resolve");
    for provider_count in [1, 8, 64] {
        let manager = manager(provider_count);
        for name_count in [1, 16, 256] {
            let owned: Vec<CString> = (0..name_count)
                .map(|index| CString::new(format!("import_{index:04}")).expect("no NUL"))
                .collect();
            let names: Vec<&CStr> = owned.iter().map(CString::as_c_str).collect();
            let case = format!("{provider_count} providers, {name_count} names");

            let mut resolver = manager.resolver();
            let mut imports = ResolvedImports::new();
            group.bench_function(BenchmarkId::new("reused", &case), |bencher| {
                bencher.iter(|| resolver.resolve_into(black_box(&names), &mut imports));
            });
            group.bench_function(BenchmarkId::new("fresh", &case), |bencher| {
                bencher.iter(|| manager.resolve(black_box(&names)));
            });
        }
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    resolve(&mut criterion);
    criterion.final_summary();
}
