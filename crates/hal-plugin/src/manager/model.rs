//! The manager under a model checker: what it promises about threads, in every order in which two or
//! three of them may take turns, or in many thousand orders where all are too many.
//!
//! The code is the manager's own; only the primitives of `snapshot/primitives.rs` are stand-ins. What
//! a weak memory order does to `arc-swap` is not shown here.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::thread;

use crate::{
    Import, ImportProvider, PluginManager, ProviderError, ResolveRequest, ResolvedImports,
};

/// Runs `scenario` in every order of its threads' turns.
fn in_every_order(scenario: impl Fn() + Send + Sync + 'static) {
    shuttle::check_dfs(scenario, None);
}

/// Runs `scenario` in orders that differ in few places from running thread after thread, as the
/// orders that show faults do, and in random ones.
fn in_many_orders(scenario: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_pct(scenario.clone(), 1500, 3);
    shuttle::check_random(scenario, 1500);
}

/// What a [`Tagged`] provider needs to be callable.
struct Code {
    is_there: AtomicBool,
    drops: AtomicUsize,
}

impl Code {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            is_there: AtomicBool::new(true),
            drops: AtomicUsize::new(0),
        })
    }
}

/// A loaded plugin: its code is there until it is dropped.
struct Instance(Arc<Code>);

impl Drop for Instance {
    fn drop(&mut self) {
        self.0.is_there.store(false, Ordering::SeqCst);
        self.0.drops.fetch_add(1, Ordering::SeqCst);
    }
}

/// A provider of every name, whose imports have its tag as their context.
struct Tagged {
    tag: usize,
    instance: Option<Arc<Instance>>,
}

impl Tagged {
    fn new(tag: usize) -> Arc<Self> {
        let instance = None;
        Arc::new(Self { tag, instance })
    }
}

impl ImportProvider for Tagged {
    fn name(&self) -> &str {
        "tagged"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        if let Some(instance) = &self.instance {
            assert!(instance.0.is_there.load(Ordering::SeqCst));
            request.keep_alive(Arc::clone(instance) as _);
        }
        request.fill_with(|_| Some(import(self.tag)));
        Ok(())
    }
}

/// A function that nobody calls.
extern "C" fn function(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

fn import(tag: usize) -> Import {
    Import::from_slot(function, std::ptr::without_provenance_mut(tag))
}

fn tag(imports: &ResolvedImports, index: usize) -> usize {
    imports.get(index).unwrap().context().addr()
}

#[test]
fn no_registration_is_lost_between_two_writers() {
    in_every_order(|| {
        let manager = PluginManager::new();
        let other = manager.clone();
        let writer = thread::spawn(move || {
            other.register_provider("a", Tagged::new(1)).unwrap();
        });
        manager.register_provider("b", Tagged::new(2)).unwrap();
        writer.join().unwrap();
        let snapshot = manager.snapshot();
        let mut names: Vec<&str> = snapshot.names().collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "b"]);
    });
}

#[test]
fn writers_that_add_replace_and_remove_all_have_their_effect() {
    in_many_orders(|| {
        let manager = PluginManager::new();
        manager.register_provider("gone", Tagged::new(1)).unwrap();
        manager.register_provider("kept", Tagged::new(2)).unwrap();
        let changes: [fn(&PluginManager); 3] = [
            |manager| manager.register_provider("new", Tagged::new(3)).unwrap(),
            |manager| drop(manager.replace("kept", Tagged::new(4)).unwrap()),
            |manager| drop(manager.unregister("gone").unwrap()),
        ];
        let writers = changes.map(|change| {
            let manager = manager.clone();
            thread::spawn(move || change(&manager))
        });
        for writer in writers {
            writer.join().unwrap();
        }
        assert!(manager.snapshot().names().eq(["new", "kept"]));
        manager.unregister("new").unwrap();
        assert_eq!(tag(&manager.resolve(&[c"f"]).unwrap(), 0), 4);
    });
}

#[test]
fn a_capacity_holds_against_two_writers() {
    in_every_order(|| {
        let manager = PluginManager::with_capacity(1);
        let other = manager.clone();
        let writer = thread::spawn(move || other.register_provider("a", Tagged::new(1)).is_ok());
        let mine = manager.register_provider("b", Tagged::new(2)).is_ok();
        assert_ne!(mine, writer.join().unwrap());
        assert_eq!(manager.snapshot().len(), 1);
    });
}

#[test]
fn a_resolution_sees_one_snapshot_and_never_an_older_one_than_before() {
    in_many_orders(|| {
        let manager = PluginManager::new();
        manager.register_provider("p", Tagged::new(0)).unwrap();
        let other = manager.clone();
        let writer = thread::spawn(move || {
            for index in 1..4 {
                drop(other.replace("p", Tagged::new(index)).unwrap());
            }
        });
        let mut resolver = manager.resolver();
        let mut imports = ResolvedImports::new();
        let mut last = 0;
        for turn in 0..4 {
            if turn % 2 == 0 {
                resolver.resolve_into(&[c"f", c"g"], &mut imports).unwrap();
            } else {
                imports = manager.resolve(&[c"f", c"g"]).unwrap();
            }
            assert_eq!(tag(&imports, 0), tag(&imports, 1));
            assert!(tag(&imports, 0) >= last);
            last = tag(&imports, 0);
        }
        writer.join().unwrap();
        resolver.resolve_into(&[c"f"], &mut imports).unwrap();
        assert_eq!(tag(&imports, 0), 3);
    });
}

#[test]
fn what_was_registered_before_is_seen_after() {
    in_every_order(|| {
        let manager = PluginManager::new();
        let is_registered = Arc::new(AtomicBool::new(false));
        let writer = {
            let (manager, is_registered) = (manager.clone(), Arc::clone(&is_registered));
            thread::spawn(move || {
                manager.register_provider("p", Tagged::new(7)).unwrap();
                is_registered.store(true, Ordering::SeqCst);
            })
        };
        let mut resolver = manager.resolver();
        let is_registered = is_registered.load(Ordering::SeqCst);
        let mut imports = ResolvedImports::new();
        resolver.resolve_into(&[c"?f"], &mut imports).unwrap();
        if is_registered {
            assert_eq!(tag(&imports, 0), 7);
        }
        writer.join().unwrap();
    });
}

#[test]
fn code_goes_once_and_not_before_its_last_user() {
    in_many_orders(|| {
        let code = Code::new();
        let manager = PluginManager::new();
        let provider = Tagged {
            tag: 1,
            instance: Some(Arc::new(Instance(Arc::clone(&code)))),
        };
        manager.register_provider("p", Arc::new(provider)).unwrap();
        let users: [_; 2] = std::array::from_fn(|index| {
            let (manager, code) = (manager.clone(), Arc::clone(&code));
            thread::spawn(move || {
                let mut imports = ResolvedImports::new();
                let names = [c"?f"];
                if index == 0 {
                    imports = manager.resolve(&names).unwrap();
                } else {
                    manager
                        .resolver()
                        .resolve_into(&names, &mut imports)
                        .unwrap();
                }
                if imports.get(0).is_some() {
                    assert!(code.is_there.load(Ordering::SeqCst));
                }
            })
        });
        drop(manager.unregister("p").unwrap());
        for user in users {
            user.join().unwrap();
        }
        assert_eq!(code.drops.load(Ordering::SeqCst), 1);
    });
}

/// Uses the manager while it is asked and when it goes. If a lock were held, that would wait for
/// ever, which the checker reports.
struct Reentrant(PluginManager);

impl ImportProvider for Reentrant {
    fn name(&self) -> &str {
        "reentrant"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        self.0.register_provider("made", Tagged::new(1)).unwrap();
        drop(self.0.unregister("made").unwrap());
        request.fill_with(|_| Some(import(2)));
        Ok(())
    }
}

impl Drop for Reentrant {
    fn drop(&mut self) {
        self.0.register_provider("last", Tagged::new(3)).unwrap();
    }
}

#[test]
fn no_lock_is_held_while_a_provider_is_asked_or_goes() {
    in_many_orders(|| {
        let manager = PluginManager::new();
        let provider = Reentrant(manager.clone());
        manager.register_provider("p", Arc::new(provider)).unwrap();
        let other = manager.clone();
        let user = thread::spawn(move || {
            let imports = other.resolve(&[c"?f"]).unwrap();
            imports.get(0).map(|import| import.context().addr())
        });
        drop(manager.unregister("p").unwrap());
        let seen = user.join().unwrap();
        assert!(matches!(seen, None | Some(2 | 3)), "{seen:?}");
        assert!(manager.snapshot().names().eq(["last"]));
    });
}
