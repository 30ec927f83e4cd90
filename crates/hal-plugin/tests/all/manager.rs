//! The manager: registration, order, nesting, re-entrancy and threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use hal_abi::StatusCode;
use hal_plugin::{
    ImportProvider, PluginManager, ProviderError, RegisterError, ResolveError, ResolveRequest,
    resolve_imports,
};

use crate::providers::{Known, borrow, tag};

fn known(tag: usize, symbols: &[&str]) -> Arc<Known> {
    Arc::new(Known::new("known", tag, symbols))
}

/// Returns the context of the import `f`.
#[track_caller]
fn resolve_f(provider: &dyn ImportProvider) -> usize {
    let imports = resolve_imports(Some(provider), &[c"f"]).unwrap();
    tag(imports.get(0).unwrap())
}

#[test]
fn a_provider_registered_later_is_seen_by_later_resolutions() {
    let manager = PluginManager::new();
    let handle = manager.clone();
    assert!(manager.resolve(&[c"f"]).is_err());
    handle.register_provider("p", known(1, &["f"])).unwrap();
    let first = manager.resolve(&[c"f"]).unwrap();
    handle.register_provider("q", known(2, &["f"])).unwrap();
    assert_eq!(resolve_f(&manager), 2);
    assert_eq!(tag(first.get(0).unwrap()), 1, "what was resolved stays");
}

#[test]
fn there_is_no_capacity_unless_one_is_asked_for() {
    let manager = PluginManager::new();
    for index in 0..500 {
        manager
            .register_provider("p", known(index, &["f"]))
            .unwrap();
    }
    assert_eq!(manager.snapshot().len(), 500);

    let manager = PluginManager::with_capacity(1);
    manager.register_provider("p", known(1, &["f"])).unwrap();
    let error = manager
        .register_provider("q", known(2, &["f"]))
        .unwrap_err();
    assert_eq!(error.status_code(), StatusCode::RESOURCE_EXHAUSTED);
    assert_eq!(
        error.to_string(),
        "cannot register `q`: the capacity of 1 providers is reached"
    );
    manager.unregister("p").unwrap();
    manager.register_provider("q", known(2, &["f"])).unwrap();
    assert!(
        PluginManager::with_capacity(0)
            .register_provider("p", known(1, &[]))
            .is_err()
    );
    assert!(
        PluginManager::with_capacity(usize::MAX)
            .register_provider("p", known(1, &[]))
            .is_ok()
    );
}

#[test]
fn replacing_keeps_the_place_in_the_order() {
    let manager = PluginManager::new();
    manager.register_provider("a", known(1, &["f"])).unwrap();
    manager.register_provider("b", known(2, &["f"])).unwrap();
    let previous = manager.replace("a", known(3, &["f"])).unwrap();
    assert_eq!(resolve_f(&*previous), 1);
    assert_eq!(resolve_f(&manager), 2);
    manager.replace("b", known(4, &["f"])).unwrap();
    assert_eq!(resolve_f(&manager), 4);
    assert!(manager.snapshot().names().eq(["b", "a"]));
}

#[test]
fn unregistering_removes_the_newest_of_a_name() {
    let manager = PluginManager::new();
    for index in 1..=3 {
        manager
            .register_provider("same", known(index, &["f"]))
            .unwrap();
    }
    assert_eq!(resolve_f(&*manager.unregister("same").unwrap()), 3);
    assert_eq!(resolve_f(&manager), 2);
    manager.unregister("same").unwrap();
    manager.unregister("same").unwrap();
    let error = manager.unregister("same").unwrap_err();
    assert!(matches!(error, RegisterError::NotRegistered { .. }));
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
    let error = manager.replace("same", known(1, &[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no provider is registered under the name `same`"
    );
}

#[test]
fn a_snapshot_does_not_change() {
    let manager = PluginManager::new();
    manager.register_provider("a", known(1, &["f"])).unwrap();
    let snapshot = manager.snapshot();
    manager.unregister("a").unwrap();
    manager.register_provider("b", known(2, &["f"])).unwrap();
    assert!(snapshot.names().eq(["a"]));
    assert_eq!(resolve_f(&snapshot), 1);
    assert_eq!(resolve_f(&manager), 2);
}

#[test]
fn default_providers_come_first_so_that_later_ones_override_them() {
    let manager = PluginManager::builder()
        .default_provider("builtin", known(1, &["f", "g"]))
        .default_provider("builtin 2", known(2, &["g"]))
        .build()
        .unwrap();
    manager.register_provider("user", known(3, &["f"])).unwrap();
    let imports = manager.resolve(&[c"f", c"g"]).unwrap();
    assert_eq!(tag(imports.get(0).unwrap()), 3);
    assert_eq!(tag(imports.get(1).unwrap()), 2);
    assert!(
        manager
            .snapshot()
            .names()
            .eq(["user", "builtin 2", "builtin"])
    );

    let error = PluginManager::builder()
        .capacity(1)
        .default_provider("a", known(1, &[]))
        .default_provider("b", known(2, &[]))
        .build()
        .unwrap_err();
    assert_eq!(error.status_code(), StatusCode::RESOURCE_EXHAUSTED);
}

#[test]
fn managers_nest_and_name_everyone_who_was_asked() {
    let inner = PluginManager::builder().name("inner").build().unwrap();
    inner.register_provider("deep", known(1, &["f"])).unwrap();
    let outer = PluginManager::new();
    outer.register_provider("first", known(2, &["g"])).unwrap();
    outer.register_provider("nested", Arc::new(inner)).unwrap();
    let imports = outer.resolve(&[c"f", c"g"]).unwrap();
    assert_eq!(tag(imports.get(0).unwrap()), 1);
    assert_eq!(tag(imports.get(1).unwrap()), 2);

    let error = outer.resolve(&[c"h"]).unwrap_err();
    let ResolveError::MissingImports { asked, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(asked, ["nested", "first", "deep"]);
}

#[test]
fn a_manager_that_contains_itself_fails_and_does_not_overflow_the_stack() {
    let manager = PluginManager::new();
    manager.register_provider("p", known(1, &["f"])).unwrap();
    manager
        .register_provider("me", Arc::new(manager.clone()))
        .unwrap();
    let error = manager.resolve(&[c"f"]).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::FAILED_PRECONDITION);
    // The cycle would keep both alive.
    manager.unregister("me").unwrap();
    assert_eq!(resolve_f(&manager), 1);
}

/// Notes when it is dropped, and calls back into a manager.
struct Noted {
    index: usize,
    drops: Arc<Mutex<Vec<usize>>>,
    manager: Option<PluginManager>,
}

impl ImportProvider for Noted {
    fn name(&self) -> &str {
        "noted"
    }

    fn resolve(&self, _: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        Ok(())
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(manager) = &self.manager {
            manager
                .register_provider("from drop", known(1, &[]))
                .unwrap();
            manager.unregister("from drop").unwrap();
        }
        self.drops.lock().unwrap().push(self.index);
    }
}

#[test]
fn registrations_are_dropped_newest_first() {
    let drops = Arc::new(Mutex::new(Vec::new()));
    let manager = PluginManager::new();
    for index in 0..4 {
        let drops = Arc::clone(&drops);
        let manager_of_drop = None;
        let noted = Noted {
            index,
            drops,
            manager: manager_of_drop,
        };
        manager.register_provider("noted", Arc::new(noted)).unwrap();
    }
    drop(manager.clone());
    assert!(drops.lock().unwrap().is_empty());
    drop(manager);
    assert_eq!(*drops.lock().unwrap(), [3, 2, 1, 0]);
}

#[test]
fn a_provider_may_use_the_manager_while_it_goes_away() {
    let drops = Arc::new(Mutex::new(Vec::new()));
    let manager = PluginManager::with_capacity(2);
    let noted = |index| {
        let drops = Arc::clone(&drops);
        let manager = Some(manager.clone());
        Arc::new(Noted {
            index,
            drops,
            manager,
        })
    };
    manager.register_provider("a", noted(0)).unwrap();
    drop(manager.unregister("a").unwrap());
    manager.register_provider("a", noted(1)).unwrap();
    drop(manager.replace("a", noted(2)).unwrap());
    // Providers that are refused go away too.
    assert!(manager.replace("b", noted(3)).is_err());
    manager.unregister("a").unwrap();
    assert_eq!(*drops.lock().unwrap(), [0, 1, 3, 2]);
}

/// Registers one more provider each time it is asked, and resolves through the manager.
struct Reentrant {
    manager: PluginManager,
    is_inside: AtomicBool,
}

impl ImportProvider for Reentrant {
    fn name(&self) -> &str {
        "reentrant"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        if self.is_inside.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.manager
            .register_provider("made", known(5, &["late"]))
            .unwrap();
        let imports = self.manager.resolve(&[c"late"]).unwrap();
        let late = imports.get(0).unwrap();
        request.fill_with(|name| (name.symbol() == b"f").then_some(late));
        self.manager.unregister("made").unwrap();
        self.is_inside.store(false, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn a_provider_may_call_back_into_the_manager() {
    let manager = PluginManager::new();
    let reentrant = Arc::new(Reentrant {
        manager: manager.clone(),
        is_inside: AtomicBool::new(false),
    });
    manager.register_provider("reentrant", reentrant).unwrap();
    assert_eq!(resolve_f(&manager), 5);
    manager.unregister("reentrant").unwrap();
}

#[test]
fn no_registration_is_lost_between_64_threads_and_every_resolution_sees_one_snapshot() {
    const WRITERS: usize = 64;
    const TOTAL: usize = 1000;
    let manager = PluginManager::new();
    let start = Barrier::new(WRITERS + 2);
    let next = AtomicUsize::new(0);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut writers = Vec::new();
        for _ in 0..WRITERS {
            writers.push(scope.spawn(|| {
                start.wait();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= TOTAL {
                        return;
                    }
                    // Each knows two names: a resolution that saw half a registration would show.
                    let provider = Known::new("p", index + 1, &["f", "g"]);
                    manager
                        .register_provider(format!("p{index}"), Arc::new(provider))
                        .unwrap();
                }
            }));
        }
        for _ in 0..2 {
            scope.spawn(|| {
                start.wait();
                while !is_done.load(Ordering::Relaxed) {
                    let snapshot = manager.snapshot();
                    let Ok(imports) = manager.resolve(&[c"f", c"g"]) else {
                        assert!(snapshot.is_empty());
                        continue;
                    };
                    let both = [0, 1].map(|index| tag(imports.get(index).unwrap()));
                    assert_eq!(both[0], both[1]);
                    assert!(manager.snapshot().len() >= snapshot.len());
                }
            });
        }
        for writer in writers {
            writer.join().unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    let snapshot = manager.snapshot();
    let mut names: Vec<&str> = snapshot.names().collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), TOTAL);
}

#[test]
fn a_resolution_error_lists_exactly_the_providers_of_its_snapshot() {
    let manager = PluginManager::new();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Pairs come and go in one order, so that a mixture of two snapshots would show.
            for index in 0..200 {
                let name = format!("p{index}");
                manager
                    .register_provider(name.clone(), known(1, &[]))
                    .unwrap();
                manager
                    .register_provider(format!("{name}'"), known(1, &[]))
                    .unwrap();
                manager.unregister(&name).unwrap();
                manager.unregister(&format!("{name}'")).unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
        });
        while !is_done.load(Ordering::Relaxed) {
            let error = manager.resolve(&[c"f"]).unwrap_err();
            let ResolveError::MissingImports { asked, .. } = error else {
                panic!("{error}");
            };
            match asked.as_slice() {
                [] | [_] => {}
                [newer, older] => assert_eq!(*newer, format!("{older}'")),
                _ => panic!("{asked:?}"),
            }
        }
    });
}

#[test]
fn a_panicking_provider_leaves_the_manager_usable() {
    struct Panicking;
    impl ImportProvider for Panicking {
        fn name(&self) -> &str {
            "panicking"
        }
        fn resolve(&self, _: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
            panic!("on purpose");
        }
    }
    let manager = PluginManager::new();
    manager.register_provider("p", known(1, &["f"])).unwrap();
    manager
        .register_provider("panicking", Arc::new(Panicking))
        .unwrap();
    let handle = manager.clone();
    assert!(
        thread::spawn(move || handle.resolve(&[c"f"]).is_ok())
            .join()
            .is_err()
    );
    manager.unregister("panicking").unwrap();
    assert_eq!(resolve_f(&manager), 1);
}

#[test]
fn the_locked_arc_swap_is_new_enough() {
    let lockfile = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    let lockfile = std::fs::read_to_string(lockfile).unwrap();
    let (_, package) = lockfile
        .split_once("name = \"arc-swap\"\nversion = \"")
        .unwrap();
    let (version, _) = package.split_once('"').unwrap();
    let numbers: Vec<u32> = version
        .split('.')
        .map(|part| part.parse().unwrap())
        .collect();
    assert!(
        numbers >= vec![1, 9, 5],
        "arc-swap {version} hands out values of other cells"
    );
}

#[test]
fn names_borrowed_from_owned_strings_resolve() {
    let manager = PluginManager::new();
    manager.register_provider("p", known(1, &["f"])).unwrap();
    let owned = vec![c"f".to_owned()];
    assert_eq!(manager.resolve(&borrow(&owned)).unwrap().len(), 1);
}
