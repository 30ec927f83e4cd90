//! Threads that load programs, call them, replace plugins and drop sessions, all at once, for as long as somebody likes.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "whatever fails ends the soak"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use halite::{PluginManager, PluginSpec, PoolDispatcher, Program, Session, Tensor, Trust, Value};

use crate::fixtures;

/// Threads that make and call sessions.
const CALLERS: usize = 3;

/// What the threads share.
struct Shared {
    manager: PluginManager,
    pool: Arc<PoolDispatcher>,
    trust: Trust,
    portable: Program,
    /// The program that calls a plugin, and the plugin, where this machine can run them.
    native: Option<(Program, PluginSpec)>,
    is_over: AtomicBool,
    rounds: AtomicU64,
}

/// Lets the threads work until `is_over`, which is asked with the number of rounds so far, and returns that number.
///
/// `plugin` is the path of the built freestanding plugin `scale_add_c.sos`: one that is unmapped when it is dropped.
pub fn soak(plugin: &Path, mut is_over: impl FnMut(u64) -> bool) -> u64 {
    let is_runnable = cfg!(all(target_arch = "x86_64", target_os = "linux")) && plugin.is_file();
    let program = |path: &str| Program::open(fixtures().join(path)).unwrap();
    let shared = Shared {
        manager: PluginManager::new(),
        pool: Arc::new(PoolDispatcher::new(2.try_into().unwrap()).unwrap()),
        // SAFETY: the programs are the committed fixtures, called with arguments of their types, and the plugin is our
        // own.
        trust: unsafe { Trust::native_code() },
        portable: program("3.13.0/vmvx/mul.vmfb"),
        native: is_runnable.then(|| {
            let spec = PluginSpec::parse(plugin.to_str().unwrap()).unwrap();
            (program("3.13.0/llvm-cpu/plugin.vmfb"), spec)
        }),
        is_over: AtomicBool::new(false),
        rounds: AtomicU64::new(0),
    };
    if let Some((_, spec)) = &shared.native {
        shared
            .manager
            .register_plugin(shared.trust.load_plugin(spec).unwrap())
            .unwrap();
    }
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| shared.repeat(Shared::call_sessions));
        }
        scope.spawn(|| shared.repeat(Shared::replace_plugins));
        while !is_over(shared.rounds.load(Ordering::Relaxed)) {
            // A thread that failed will not end the others by itself.
            if shared.is_over.load(Ordering::Relaxed) {
                break;
            }
            thread::yield_now();
        }
        shared.is_over.store(true, Ordering::Relaxed);
    });
    shared.rounds.load(Ordering::Relaxed)
}

impl Shared {
    fn repeat(&self, round: fn(&Self)) {
        /// Ends the soak when its thread does, however that is.
        struct End<'a>(&'a AtomicBool);

        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }

        let _end = End(&self.is_over);
        while !self.is_over.load(Ordering::Relaxed) {
            round(self);
        }
    }

    /// Makes sessions of programs loaded anew, calls them from two threads one after the other, and drops them.
    fn call_sessions(&self) {
        let bytes = self.portable.bytes().to_vec();
        let program = Program::from_bytes(bytes).unwrap();
        let session = Session::builder().program(program).build().unwrap();
        check(&session, "mul", [10.0, 40.0, 90.0, 160.0]);
        if let Some((program, _)) = &self.native {
            let program = Program::from_bytes(program.bytes().to_vec()).unwrap();
            let session = Session::builder()
                .program(program)
                .native_code(self.trust)
                .plugins(self.manager.clone())
                .dispatcher(Arc::<PoolDispatcher>::clone(&self.pool))
                .build()
                .unwrap();
            // The plugin that it resolved may be replaced meanwhile, and is kept.
            thread::scope(|scope| {
                scope.spawn(move || {
                    check(&session, "plugin", [30.0, 60.0, 90.0, 120.0]);
                    check(&session, "plugin", [30.0, 60.0, 90.0, 120.0]);
                });
            });
        }
        self.rounds.fetch_add(1, Ordering::Relaxed);
    }

    /// Puts a plugin that was loaded anew in the place of the one before, and adds and removes another.
    fn replace_plugins(&self) {
        let Some((_, spec)) = &self.native else {
            thread::yield_now();
            return;
        };
        let load = || self.trust.load_plugin(spec).unwrap();
        self.manager
            .replace("scale_add_c", Arc::new(load()))
            .unwrap();
        self.manager
            .register_provider("passing", Arc::new(load()))
            .unwrap();
        drop(self.manager.unregister("passing").unwrap());
    }
}

/// Calls a function of two tensors and compares its result.
fn check(session: &Session, function: &str, expected: [f32; 4]) {
    let tensor = |values: &[f32]| Value::Tensor(Tensor::from_slice(&[4], values).unwrap());
    let arguments = [
        tensor(&[1.0, 2.0, 3.0, 4.0]),
        tensor(&[10.0, 20.0, 30.0, 40.0]),
    ];
    let results = session.invoke(function, &arguments).unwrap();
    let result = results[0].as_tensor().unwrap().to_vec::<f32>().unwrap();
    assert_eq!(result, expected, "{function}");
}
