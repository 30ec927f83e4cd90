//! Resolution: what is found, what is missing, and what is said about it.

use std::ffi::CStr;
use std::sync::Arc;

use hal_abi::{Resolution, StatusCode};
use hal_plugin::{
    ImportProvider, PluginManager, ProviderError, ResolveError, ResolveRequest, ResolvedImports,
    resolve_imports,
};

use crate::providers::{Answer, Known, tag};

/// Registers each provider under its own name.
fn manager(providers: &[&Arc<Known>]) -> PluginManager {
    let manager = PluginManager::new();
    for &provider in providers {
        manager
            .register_provider(provider.name(), Arc::clone(provider) as _)
            .unwrap();
    }
    manager
}

/// Returns the context of each import; 0 where it is missing.
fn tags(imports: &ResolvedImports) -> Vec<usize> {
    (0..imports.len())
        .map(|index| imports.get(index).map_or(0, tag))
        .collect()
}

#[track_caller]
fn check_missing(error: &ResolveError, missing: &[&str], asked: &[&str]) {
    let ResolveError::MissingImports {
        missing: found_missing,
        asked: found_asked,
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(found_missing, missing);
    assert_eq!(found_asked, asked);
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
}

#[test]
fn every_missing_required_import_is_listed_with_everyone_who_was_asked() {
    let names = [
        c"xsmm_unary_dispatch",
        c"free",
        c"malloc",
        c"xsmm_unary_invoke",
        c"free",
        c"?tuned",
    ];
    let all = ["free", "malloc", "xsmm_unary_dispatch", "xsmm_unary_invoke"];
    let error = manager(&[]).resolve(&names).unwrap_err();
    check_missing(&error, &all, &[]);
    assert_eq!(
        error.to_string(),
        "missing 4 required executable imports: [free, malloc, xsmm_unary_dispatch, \
         xsmm_unary_invoke]; no provider is registered"
    );

    let libc = Arc::new(Known::new("libc", 1, &["malloc", "free"]));
    let error = manager(&[&libc]).resolve(&names).unwrap_err();
    check_missing(&error, &all[2..], &["libc"]);

    let xsmm = Arc::new(Known::new("xsmm", 2, &["xsmm_unary_invoke"]));
    let error = manager(&[&libc, &xsmm]).resolve(&names).unwrap_err();
    check_missing(&error, &all[2..3], &["xsmm", "libc"]);
    assert_eq!(
        error.to_string(),
        "missing 1 required executable import: [xsmm_unary_dispatch]; \
         providers asked: [xsmm, libc]"
    );
}

#[test]
fn the_provider_registered_last_wins() {
    let old = Arc::new(Known::new("old", 1, &["f"]));
    let new = Arc::new(Known::new("new", 2, &["f"]));
    let names = [c"f"];
    assert_eq!(tags(&manager(&[&old, &new]).resolve(&names).unwrap()), [2]);
    assert_eq!(tags(&manager(&[&new, &old]).resolve(&names).unwrap()), [1]);
}

#[test]
fn providers_complete_each_other() {
    let a = Arc::new(Known::new("a", 1, &["f", "h"]));
    let b = Arc::new(Known::new("b", 2, &["g"]));
    let imports = manager(&[&a, &b]).resolve(&[c"f", c"g", c"h"]).unwrap();
    assert_eq!(tags(&imports), [1, 2, 1]);
    assert_eq!(imports.resolution(), Resolution::COMPLETE);
}

#[test]
fn the_walk_ends_when_every_slot_is_filled() {
    let old = Arc::new(Known::new("old", 1, &["f"]));
    let new = Arc::new(Known::new("new", 2, &["f"]));
    manager(&[&old, &new]).resolve(&[c"f"]).unwrap();
    assert_eq!((old.calls(), new.calls()), (0, 1));
}

#[test]
fn the_walk_goes_on_while_an_optional_import_is_missing() {
    let old = Arc::new(Known::new("old", 1, &["tuned"]));
    let new = Arc::new(Known::new("new", 2, &["f"]));
    let imports = manager(&[&old, &new]).resolve(&[c"?tuned", c"f"]).unwrap();
    assert_eq!(tags(&imports), [1, 2]);
}

#[test]
fn a_missing_optional_import_is_null_and_reported() {
    let provider = Arc::new(Known::new("p", 1, &["f"]));
    let imports = manager(&[&provider]).resolve(&[c"?tuned", c"f"]).unwrap();
    assert_eq!(tags(&imports), [0, 1]);
    assert_eq!(imports.resolution(), Resolution::MISSING_OPTIONAL);
}

#[test]
fn optional_imports_resolve_without_any_provider() {
    for imports in [
        resolve_imports(None, &[c"?a", c"?"]).unwrap(),
        manager(&[]).resolve(&[c"?a", c"?"]).unwrap(),
    ] {
        assert_eq!(tags(&imports), [0, 0]);
        assert_eq!(imports.resolution(), Resolution::MISSING_OPTIONAL);
    }
}

#[test]
fn a_required_import_without_a_provider_is_unavailable() {
    let error = resolve_imports(None, &[c"b", c"a", c"?c", c"b"]).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::UNAVAILABLE);
    assert_eq!(
        error.to_string(),
        "no import provider for required executable imports: [a, b]"
    );
}

#[test]
fn no_names_resolve_to_null_arrays_and_nobody_is_asked() {
    let provider = Arc::new(Known::new("p", 1, &["f"]));
    let imports = manager(&[&provider]).resolve(&[]).unwrap();
    assert!(imports.is_empty());
    assert!(imports.functions().is_null());
    assert!(imports.contexts().is_null());
    assert!(imports.get(0).is_none());
    assert_eq!(imports.resolution(), Resolution::COMPLETE);
    assert_eq!(provider.calls(), 0);
}

#[test]
fn names_may_be_empty_unsorted_and_repeated() {
    let names = [c"?a", c"a", c"?a", c"", c" ", c"?"];
    let provider = Arc::new(Known::new("p", 7, &["a", "", " "]));
    let imports = manager(&[&provider]).resolve(&names).unwrap();
    assert_eq!(tags(&imports), [7; 6]);

    let nothing = Arc::new(Known::new("p", 7, &[]));
    let error = manager(&[&nothing]).resolve(&names).unwrap_err();
    check_missing(&error, &["", " ", "a"], &["p"]);
}

#[test]
fn thousands_of_names_resolve() {
    let owned: Vec<_> = (0..4096)
        .rev()
        .map(|index| std::ffi::CString::new(format!("f{index}")).unwrap())
        .collect();
    let names: Vec<&CStr> = owned.iter().map(|name| &**name).collect();
    let symbols: Vec<&str> = names.iter().map(|name| name.to_str().unwrap()).collect();
    let even: Vec<&str> = symbols.iter().copied().step_by(2).collect();
    let all = Arc::new(Known::new("all", 1, &symbols));
    let half = Arc::new(Known::new("half", 2, &even));
    let imports = manager(&[&all, &half]).resolve(&names).unwrap();
    assert!(tags(&imports).chunks(2).all(|pair| pair == [2, 1]));
}

#[test]
fn not_found_goes_on_and_keeps_what_was_filled() {
    let answer = Answer::Error(StatusCode::NOT_FOUND);
    let old = Arc::new(Known::with_answer("old", 1, &["f"], answer));
    let new = Arc::new(Known::with_answer("new", 2, &["g"], answer));
    let imports = manager(&[&old, &new]).resolve(&[c"f", c"g"]).unwrap();
    assert_eq!(tags(&imports), [1, 2]);
}

#[test]
fn any_other_failure_stops_and_names_the_provider() {
    for code in (1..32).map(StatusCode) {
        if code == StatusCode::NOT_FOUND {
            continue;
        }
        let old = Arc::new(Known::new("old", 1, &["f", "g"]));
        let new = Arc::new(Known::with_answer("new", 2, &["g"], Answer::Error(code)));
        let error = manager(&[&old, &new]).resolve(&[c"f", c"g"]).unwrap_err();
        assert_eq!(error.to_string(), "import provider `new` failed");
        let expected = match code {
            StatusCode::CANCELLED | StatusCode::DEFERRED => StatusCode::INTERNAL,
            code => code,
        };
        assert_eq!(error.status_code(), expected);
        assert_eq!(old.calls(), 0);
    }
}

#[test]
fn a_failure_of_an_older_provider_stops_even_if_only_optional_imports_are_missing() {
    let failing = Answer::Error(StatusCode::DATA_LOSS);
    let old = Arc::new(Known::with_answer("old", 1, &[], failing));
    let new = Arc::new(Known::new("new", 2, &["f"]));
    let manager = manager(&[&old, &new]);
    assert!(manager.resolve(&[c"f"]).is_ok());
    let error = manager.resolve(&[c"f", c"?g"]).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::DATA_LOSS);
}

#[test]
fn a_single_provider_resolves_without_a_manager() {
    let provider = Known::new("alone", 3, &["f"]);
    let imports = resolve_imports(Some(&provider), &[c"f", c"?g"]).unwrap();
    assert_eq!(tags(&imports), [3, 0]);
    let error = resolve_imports(Some(&provider), &[c"g"]).unwrap_err();
    check_missing(&error, &["g"], &["alone"]);
}

#[test]
fn the_arrays_stay_where_they_are_when_the_result_moves() {
    let provider = Arc::new(Known::new("p", 9, &["f", "g"]));
    let imports = manager(&[&provider]).resolve(&[c"f", c"?h", c"g"]).unwrap();
    let (functions, contexts) = (imports.functions(), imports.contexts());
    let moved = Box::new(imports);
    assert_eq!(moved.functions(), functions);
    assert_eq!(moved.contexts(), contexts);
    // SAFETY: an array of 3 that lives as long as `moved`.
    let functions = unsafe { std::slice::from_raw_parts(functions, 3) };
    // SAFETY: as above.
    let contexts = unsafe { std::slice::from_raw_parts(contexts, 3) };
    assert_eq!(functions.map_is_some(), [true, false, true]);
    assert_eq!(
        contexts.iter().map(|c| c.addr()).collect::<Vec<_>>(),
        [9, 0, 9]
    );
}

/// Tells for each function whether it is there.
trait MapIsSome {
    fn map_is_some(&self) -> Vec<bool>;
}

impl<T> MapIsSome for [Option<T>] {
    fn map_is_some(&self) -> Vec<bool> {
        self.iter().map(Option::is_some).collect()
    }
}

/// A provider that looks at the request instead of filling it.
struct Watcher;

impl ImportProvider for Watcher {
    fn name(&self) -> &str {
        "watcher"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        let missing: Vec<_> = request.missing().map(|name| name.raw()).collect();
        assert_eq!(missing, [c"?b", c"c"]);
        assert_eq!(request.missing_count(), 2);
        assert!(!request.is_complete());
        request.fill_with(|name| {
            assert_ne!(name.symbol(), b"a", "filled slots are not offered");
            Some(crate::providers::import(2))
        });
        assert!(request.is_complete());
        request.fill_with(|_| panic!("nothing is left to fill"));
        Ok(())
    }
}

#[test]
fn a_provider_sees_only_empty_slots() {
    let manager = PluginManager::new();
    manager
        .register_provider("watcher", Arc::new(Watcher))
        .unwrap();
    let newer = Arc::new(Known::new("newer", 1, &["a"]));
    manager.register_provider("newer", newer).unwrap();
    let imports = manager.resolve(&[c"a", c"?b", c"c"]).unwrap();
    assert_eq!(tags(&imports), [1, 2, 2]);
}

#[test]
fn the_types_can_be_shared_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<PluginManager>();
    check::<ResolvedImports>();
    check::<hal_plugin::Plugin>();
    check::<hal_plugin::Import>();
    check::<ResolveError>();
    check::<hal_plugin::PluginError>();
}
