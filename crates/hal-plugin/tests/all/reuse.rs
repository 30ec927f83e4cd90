//! Resolving into memory of the caller, again and again.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::{ptr, slice};

use hal_abi::{Resolution, StatusCode};
use hal_plugin::{
    ImportProvider, PluginManager, ProviderError, ResolveRequest, ResolvedImports,
    resolve_imports_into,
};

use crate::probe::{self, Event, events, unload_count};
use crate::providers::{Answer, Known, import, tag};

fn known(tag: usize, symbols: &[&str]) -> Arc<Known> {
    Arc::new(Known::new("known", tag, symbols))
}

/// Returns each function and context as they stand in the arrays.
fn arrays(imports: &ResolvedImports) -> Vec<(bool, usize)> {
    if imports.is_empty() {
        return Vec::new();
    }
    // SAFETY: the array has `len` entries and lives as long as `imports`.
    let functions = unsafe { slice::from_raw_parts(imports.functions(), imports.len()) };
    // SAFETY: as above.
    let contexts = unsafe { slice::from_raw_parts(imports.contexts(), imports.len()) };
    let entries = functions.iter().zip(contexts);
    entries
        .map(|(function, context)| (function.is_some(), context.addr()))
        .collect()
}

#[test]
fn memory_that_is_large_enough_is_used_again() {
    let provider = known(7, &["a", "b", "c"]);
    let mut imports = ResolvedImports::new();
    let mut resolve = |names: &[&CStr]| {
        resolve_imports_into(Some(&*provider), names, &mut imports).unwrap();
        assert_eq!(arrays(&imports), vec![(true, 7); names.len()]);
        (imports.functions(), imports.contexts())
    };
    let (functions, contexts) = resolve(&[c"a", c"b"]);
    assert_eq!(functions.wrapping_add(2).cast(), contexts);
    let (again, contexts) = resolve(&[c"c"]);
    assert_eq!(again, functions);
    assert_eq!(functions.wrapping_add(1).cast(), contexts);
    assert_eq!(resolve(&[]), (ptr::null(), ptr::null()));
    assert_eq!(resolve(&[c"b", c"a"]).0, functions);
    resolve(&[c"a", c"b", c"c", c"a", c"b", c"c", c"a", c"b", c"c"]);
}

#[test]
fn nothing_of_the_last_resolution_is_left() {
    let all = known(7, &["a", "b"]);
    let mut imports = ResolvedImports::new();
    resolve_imports_into(Some(&*all), &[c"a", c"b"], &mut imports).unwrap();
    assert_eq!(imports.resolution(), Resolution::COMPLETE);

    let some = known(9, &["b"]);
    resolve_imports_into(Some(&*some), &[c"?a", c"b"], &mut imports).unwrap();
    assert_eq!(arrays(&imports), [(false, 0), (true, 9)]);
    assert_eq!(imports.resolution(), Resolution::MISSING_OPTIONAL);

    resolve_imports_into(None, &[c"?b", c"?a"], &mut imports).unwrap();
    assert_eq!(arrays(&imports), [(false, 0); 2]);
    imports.clear();
    assert!(imports.is_empty());
    assert_eq!(imports.resolution(), Resolution::COMPLETE);
}

#[test]
fn a_plugin_sees_empty_slots_in_memory_that_was_used_before() {
    let id = "empty slots in used memory";
    let mut imports = ResolvedImports::new();
    let all = known(7, &["a", "b"]);
    resolve_imports_into(Some(&*all), &[c"a", c"b"], &mut imports).unwrap();
    let plugin = probe::load(&[("id", id), ("knows", "b"), ("tag", "5")]).unwrap();
    resolve_imports_into(Some(&plugin), &[c"?a", c"b"], &mut imports).unwrap();
    assert_eq!(arrays(&imports), [(false, 0), (true, 5)]);
    let seen = vec![("?a".to_owned(), false), ("b".to_owned(), false)];
    assert!(events(id).contains(&Event::Resolve(seen, 0)));
}

#[test]
fn resolving_again_releases_the_plugins_of_before() {
    let id = "released by the next resolution";
    let plugin = probe::load(&[("id", id), ("knows", "f"), ("tag", "1")]).unwrap();
    let mut imports = ResolvedImports::new();
    resolve_imports_into(Some(&plugin), &[c"f"], &mut imports).unwrap();
    drop(plugin);
    assert_eq!(unload_count(id), 0);
    resolve_imports_into(None, &[], &mut imports).unwrap();
    assert_eq!(unload_count(id), 1);
}

#[test]
fn a_failed_resolution_leaves_nothing_behind() {
    let id = "released by a failed resolution";
    let plugin = probe::load(&[("id", id), ("knows", "f"), ("tag", "1")]).unwrap();
    let mut imports = ResolvedImports::new();
    resolve_imports_into(Some(&plugin), &[c"f", c"g"], &mut imports).unwrap_err();
    assert!(imports.is_empty());
    drop(plugin);
    assert_eq!(unload_count(id), 1, "`f` was found, and is given up");

    let failing = Known::with_answer("p", 1, &["f"], Answer::Error(StatusCode::INTERNAL));
    resolve_imports_into(Some(&failing), &[c"f"], &mut imports).unwrap_err();
    assert!(imports.is_empty());
    resolve_imports_into(Some(&*known(3, &["f"])), &[c"f"], &mut imports).unwrap();
    assert_eq!(arrays(&imports), [(true, 3)]);
}

/// Fills what it is asked for, and panics before it says what must be kept alive.
struct Panicking;

impl ImportProvider for Panicking {
    fn name(&self) -> &str {
        "panicking"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        request.fill_with(|_| Some(import(1)));
        panic!("on purpose");
    }
}

#[test]
fn no_import_of_a_provider_that_panicked_can_be_seen() {
    let mut imports = ResolvedImports::new();
    let resolve = AssertUnwindSafe(|| {
        let _ = resolve_imports_into(Some(&Panicking), &[c"f"], &mut imports);
    });
    assert!(catch_unwind(resolve).is_err());
    assert!(imports.is_empty() && imports.get(0).is_none());
}

#[test]
fn a_resolver_sees_the_registrations_as_they_are() {
    let manager = PluginManager::new();
    let mut resolver = manager.resolver();
    let mut imports = ResolvedImports::new();
    let error = resolver.resolve_into(&[c"f"], &mut imports).unwrap_err();
    assert_eq!(
        error.to_string(),
        "missing 1 required executable import: [f]; no provider is registered"
    );
    for index in 1..4 {
        manager
            .register_provider("p", known(index, &["f"]))
            .unwrap();
        resolver.resolve_into(&[c"f"], &mut imports).unwrap();
        assert_eq!(tag(imports.get(0).unwrap()), index);
    }
    manager.unregister("p").unwrap();
    resolver.resolve_into(&[c"f"], &mut imports).unwrap();
    assert_eq!(tag(imports.get(0).unwrap()), 2);
    let error = resolver.resolve_into(&[c"g"], &mut imports).unwrap_err();
    assert!(error.to_string().ends_with("providers asked: [p, p]"));
}

#[test]
fn a_resolver_names_the_provider_that_fails() {
    let manager = PluginManager::new();
    let failing = Known::with_answer("p", 1, &[], Answer::Error(StatusCode::DATA_LOSS));
    manager.register_provider("bad", Arc::new(failing)).unwrap();
    let mut imports = ResolvedImports::new();
    let error = manager
        .resolver()
        .resolve_into(&[c"f"], &mut imports)
        .unwrap_err();
    assert_eq!(error.to_string(), "import provider `bad` failed");
    assert_eq!(error.status_code(), StatusCode::DATA_LOSS);
}

#[test]
fn a_resolver_lets_go_of_what_was_unregistered_when_it_is_used_again() {
    let manager = PluginManager::new();
    let provider = known(1, &["f"]);
    let weak: Weak<Known> = Arc::downgrade(&provider);
    manager.register_provider("p", provider).unwrap();
    let mut resolver = manager.resolver();
    let mut imports = ResolvedImports::new();
    resolver.resolve_into(&[c"?f"], &mut imports).unwrap();
    drop(manager.unregister("p").unwrap());
    assert!(weak.upgrade().is_some());
    resolver.resolve_into(&[c"?f"], &mut imports).unwrap();
    assert!(weak.upgrade().is_none());
}
