//! Measures what one resolution costs: `resolve_cost [MODE] [PROVIDERS] [NAMES] [REPEATS]`.
//!
//! Times are times on a processor, as Linux accounts them. The oldest provider knows every name; all others know nothing. The modes:
//!
//! | mode | what is measured |
//! |---|---|
//! | `reused` | a `Resolver` into memory of the caller |
//! | `fresh` | `PluginManager::resolve` into new memory each time |
//! | `contended` | both, alone and while another thread registers without pause; prints the ratio |
//!
//! To count instructions, run it under callgrind twice and divide the difference:
//!
//! ```text
//! cargo build --release -p hal-plugin --example resolve_cost
//! valgrind --tool=callgrind target/release/examples/resolve_cost reused 8 16 0
//! valgrind --tool=callgrind target/release/examples/resolve_cost reused 8 16 1000
//! ```

#![expect(
    clippy::print_stdout,
    reason = "the result of a command goes to stdout"
)]

use std::error::Error;
use std::ffi::{CStr, CString, c_int, c_void};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, thread};

use hal_plugin::{
    Import, ImportProvider, PluginManager, ProviderError, RegisterError, ResolveRequest,
    ResolvedImports,
};

unsafe extern "C" fn function(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

/// Knows nothing.
struct Nothing;

impl ImportProvider for Nothing {
    fn name(&self) -> &str {
        "nothing"
    }

    fn resolve(&self, _: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        Ok(())
    }
}

/// Knows every name.
struct Everything;

impl ImportProvider for Everything {
    fn name(&self) -> &str {
        "everything"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        // SAFETY: `function` can be called at any time, on any thread, with any arguments.
        let import = unsafe { Import::new(function, std::ptr::null_mut()) };
        request.fill_with(|_| Some(import));
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = arguments.first().map_or("reused", String::as_str);
    let number = |index: usize, default: usize| -> Result<usize, Box<dyn Error>> {
        Ok(arguments
            .get(index)
            .map_or(Ok(default), |text| text.parse())?)
    };
    let provider_count = number(1, 8)?;
    let name_count = number(2, 16)?;
    let repeat_count = number(3, 100_000)?;

    let manager = PluginManager::new();
    manager.register_provider("everything", Arc::new(Everything))?;
    for _ in 1..provider_count {
        manager.register_provider("nothing", Arc::new(Nothing))?;
    }
    let owned = (0..name_count)
        .map(|index| CString::new(format!("import_{index:04}")))
        .collect::<Result<Vec<CString>, _>>()?;
    let names: Vec<&CStr> = owned.iter().map(CString::as_c_str).collect();

    let what = format!("{provider_count} providers, {name_count} names");
    match mode {
        "fresh" | "reused" => {
            let resolve = if mode == "fresh" { fresh } else { reused };
            let elapsed = resolve(&manager, &names, repeat_count)?;
            println!(
                "{mode}: {what}: {:.1} ns per resolution",
                mean(elapsed, repeat_count)
            );
        }
        "contended" => {
            for (name, resolve) in [("fresh", fresh as Resolve), ("reused", reused)] {
                let (quiet, busy, registrations) =
                    contended(resolve, &manager, &names, repeat_count)?;
                println!(
                    "{name}: {what}: {quiet:.1} ns alone, {busy:.1} ns during {registrations} \
                     registrations: {:.2} times",
                    busy / quiet
                );
            }
        }
        _ => return Err(format!("no mode `{mode}`").into()),
    }
    Ok(())
}

/// Resolves a number of times, and returns how long that took.
type Resolve = fn(&PluginManager, &[&CStr], usize) -> Result<Duration, Box<dyn Error>>;

/// Resolves into new memory each time.
fn fresh(
    manager: &PluginManager,
    names: &[&CStr],
    repeat_count: usize,
) -> Result<Duration, Box<dyn Error>> {
    let start = thread_time()?;
    for _ in 0..repeat_count {
        black_box(manager.resolve(names)?);
    }
    Ok(thread_time()? - start)
}

/// Resolves into the same memory each time.
fn reused(
    manager: &PluginManager,
    names: &[&CStr],
    repeat_count: usize,
) -> Result<Duration, Box<dyn Error>> {
    let mut resolver = manager.resolver();
    let mut imports = ResolvedImports::new();
    let start = thread_time()?;
    for _ in 0..repeat_count {
        resolver.resolve_into(names, &mut imports)?;
        black_box(&imports);
    }
    Ok(thread_time()? - start)
}

/// Returns the time of a resolution in nanoseconds with and without a thread that registers and
/// unregisters without pause, and how often it did.
fn contended(
    resolve: Resolve,
    manager: &PluginManager,
    names: &[&CStr],
    repeat_count: usize,
) -> Result<(f64, f64, usize), Box<dyn Error>> {
    let quiet = resolve(manager, names, repeat_count)?;
    let is_done = AtomicBool::new(false);
    let registrations = AtomicUsize::new(0);
    let busy = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                manager.register_provider("coming and going", Arc::new(Nothing))?;
                manager.unregister("coming and going")?;
                registrations.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<(), RegisterError>(())
        });
        let busy = resolve(manager, names, repeat_count);
        is_done.store(true, Ordering::Relaxed);
        writer.join().expect("the writer does not panic")?;
        busy
    })?;
    Ok((
        mean(quiet, repeat_count),
        mean(busy, repeat_count),
        registrations.into_inner(),
    ))
}

/// Returns the time that this thread has spent on a processor, so that other programs do not count.
fn thread_time() -> Result<Duration, Box<dyn Error>> {
    // Giving up the processor brings the account up to date.
    thread::yield_now();
    let account = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = account.split(' ').next().unwrap_or_default();
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

fn mean(elapsed: Duration, repeat_count: usize) -> f64 {
    elapsed.as_secs_f64() * 1e9 / repeat_count.max(1) as f64
}
