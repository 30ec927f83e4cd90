//! What threads see of a manager's snapshots, with the real `arc-swap` under them.
//!
//! Small scenarios of few steps: natively each runs many times, in orders that the machine chooses. `cargo xtask miri`
//! runs each once for many seeds, on an imagined processor with a weak memory order, where a load may give a value that
//! is no longer the newest, and where memory that is used after it was freed is reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use hal_plugin::{
    Import, ImportProvider, PluginManager, ProviderError, ResolveRequest, ResolvedImports,
};

use crate::providers::{import, tag};

/// Runs a scenario many times; under Miri once, as it repeats the whole program.
fn repeat(scenario: impl Fn()) {
    let count = if cfg!(miri) { 1 } else { 200 };
    (0..count).for_each(|_| scenario());
}

/// What a [`Tagged`] provider needs to be callable: a plugin's code, for example.
#[derive(Default)]
struct Code {
    is_gone: AtomicBool,
    drops: AtomicUsize,
}

/// Keeps the code until it is dropped. Nothing here orders memory but the counting of references.
struct Instance(Arc<Code>);

impl Drop for Instance {
    fn drop(&mut self) {
        self.0.is_gone.store(true, Ordering::Relaxed);
        self.0.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// A provider of every name, whose imports have its tag as their context.
struct Tagged {
    /// On the heap, so that reading it from a provider that is gone is seen.
    tag: Box<usize>,
    instance: Arc<Instance>,
}

impl Tagged {
    fn new(tag: usize) -> Arc<Self> {
        Self::with_code(tag, &Arc::default())
    }

    fn with_code(tag: usize, code: &Arc<Code>) -> Arc<Self> {
        Arc::new(Self {
            tag: Box::new(tag),
            instance: Arc::new(Instance(Arc::clone(code))),
        })
    }

    fn import(&self) -> Import {
        assert!(!self.instance.0.is_gone.load(Ordering::Relaxed));
        import(*self.tag)
    }
}

impl ImportProvider for Tagged {
    fn name(&self) -> &str {
        "tagged"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        request.keep_alive(Arc::clone(&self.instance) as _);
        request.fill_with(|_| Some(self.import()));
        Ok(())
    }
}

/// Returns the one tag of two imports that were resolved together.
#[track_caller]
fn tag_of_both(imports: &ResolvedImports) -> usize {
    let [first, second] = [0, 1].map(|index| tag(imports.get(index).unwrap()));
    assert_eq!(first, second, "one resolution saw two snapshots");
    first
}

#[test]
fn a_reader_never_sees_an_older_snapshot_than_before() {
    repeat(|| {
        let manager = PluginManager::new();
        manager.register_provider("p", Tagged::new(1)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                for next in 2..=6 {
                    drop(manager.replace("p", Tagged::new(next)).unwrap());
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut resolver = manager.resolver();
                    let mut imports = ResolvedImports::new();
                    let mut last = 0;
                    for turn in 0..6 {
                        if turn % 2 == 0 {
                            resolver.resolve_into(&[c"f", c"g"], &mut imports).unwrap();
                        } else {
                            imports = manager.resolve(&[c"f", c"g"]).unwrap();
                        }
                        let seen = tag_of_both(&imports);
                        assert!(seen >= last, "{seen} after {last}");
                        last = seen;
                    }
                });
            }
        });
    });
}

#[test]
fn what_was_registered_before_a_message_is_seen_after_it() {
    repeat(|| {
        let manager = PluginManager::new();
        let sent = AtomicUsize::new(0);
        let mut resolver = manager.resolver();
        let mut imports = ResolvedImports::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                for next in 1..=4 {
                    manager.register_provider("p", Tagged::new(next)).unwrap();
                    // Pairs with the load below.
                    sent.store(next, Ordering::Release);
                }
            });
            for _ in 0..8 {
                let received = sent.load(Ordering::Acquire);
                resolver.resolve_into(&[c"?f"], &mut imports).unwrap();
                let seen = imports.get(0).map_or(0, tag);
                assert!(seen >= received, "{seen} after {received}");
            }
        });
    });
}

#[test]
fn no_registration_is_lost_between_three_writers() {
    repeat(|| {
        let manager = PluginManager::new();
        thread::scope(|scope| {
            let manager = &manager;
            for writer in 0..3 {
                scope.spawn(move || {
                    for turn in 0..3 {
                        let name = format!("{writer}{turn}");
                        manager.register_provider(name, Tagged::new(1)).unwrap();
                    }
                });
            }
        });
        let snapshot = manager.snapshot();
        let mut names: Vec<&str> = snapshot.names().collect();
        names.sort_unstable();
        let all = ["00", "01", "02", "10", "11", "12", "20", "21", "22"];
        assert_eq!(names, all);
    });
}

#[test]
fn code_goes_once_and_not_before_its_last_user() {
    repeat(|| {
        let code = Arc::new(Code::default());
        let manager = PluginManager::new();
        manager
            .register_provider("p", Tagged::with_code(1, &code))
            .unwrap();
        thread::scope(|scope| {
            for index in 0..2 {
                let (manager, code) = (&manager, &code);
                scope.spawn(move || {
                    let mut imports = ResolvedImports::new();
                    let mut resolver = manager.resolver();
                    for _ in 0..3 {
                        if index == 0 {
                            imports = manager.resolve(&[c"?f"]).unwrap();
                        } else {
                            resolver.resolve_into(&[c"?f"], &mut imports).unwrap();
                        }
                        if imports.get(0).is_some() {
                            assert!(!code.is_gone.load(Ordering::Relaxed));
                        }
                    }
                });
            }
            drop(manager.unregister("p").unwrap());
        });
        assert_eq!(code.drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_snapshot_is_never_that_of_another_manager() {
    repeat(|| {
        // Snapshots come and go, so that one manager's next may lie where the other's last lay.
        let managers = [100, 200].map(|tag| {
            let manager = PluginManager::new();
            manager.register_provider("p", Tagged::new(tag)).unwrap();
            manager
        });
        thread::scope(|scope| {
            for (manager, base) in managers.iter().zip([100, 200]) {
                scope.spawn(move || {
                    for next in 1..=4 {
                        drop(manager.replace("p", Tagged::new(base + next)).unwrap());
                    }
                });
            }
            scope.spawn(|| {
                let mut last = [0; 2];
                for _ in 0..4 {
                    for (index, manager) in managers.iter().enumerate() {
                        let seen = tag_of_both(&manager.resolve(&[c"f", c"g"]).unwrap());
                        assert_eq!(seen / 100, index + 1);
                        assert!(seen >= last[index]);
                        last[index] = seen;
                    }
                }
            });
        });
    });
}

#[test]
fn a_thread_may_hold_more_snapshots_than_it_has_fast_slots_for() {
    // `arc-swap` has eight for each thread; beyond them it asks the writers to help.
    const DEPTH: usize = 12;
    repeat(|| {
        let managers: Vec<PluginManager> = (0..DEPTH).map(|_| PluginManager::new()).collect();
        for pair in managers.windows(2) {
            let inner = Arc::new(pair[1].clone());
            pair[0].register_provider("inner", inner).unwrap();
        }
        let innermost = managers.last().unwrap();
        innermost.register_provider("p", Tagged::new(1)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                for next in 2..=4 {
                    drop(innermost.replace("p", Tagged::new(next)).unwrap());
                }
            });
            let mut last = 0;
            for _ in 0..3 {
                let seen = tag_of_both(&managers[0].resolve(&[c"f", c"g"]).unwrap());
                assert!(seen >= last, "{seen} after {last}");
                last = seen;
            }
        });
    });
}
