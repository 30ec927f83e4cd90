//! Resolution of names.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use hal_plugin_sdk::hal_abi::{Resolution, ResolveParams};
use hal_plugin_sdk::{Call, LoadContext, Plugin, StatusCode, static_plugin};

use crate::host::{Heap, Loaded};

struct Letters;

impl Plugin for Letters {
    const NAME: &'static CStr = c"letters";

    fn load(_: &LoadContext<'_>) -> Result<Self, StatusCode> {
        Ok(Self)
    }
}

fn nothing(_: &Letters, _: &mut Call<'_, ()>) -> Result<(), StatusCode> {
    Ok(())
}

static_plugin! {
    fn letters for Letters {
        // Promise: nothing is viewed.
        unsafe "d" => nothing,
        unsafe "a" => nothing,
        unsafe "c" => nothing,
        unsafe "b" => nothing,
    }
}

unsafe extern "C" fn of_another_provider(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    7
}

/// Checks which names of a request are filled, and what the plugin says about it.
#[track_caller]
fn check(names: &[&str], filled: &[bool], code: StatusCode, resolution: Resolution) {
    let heap = Heap::default();
    let resolved = Loaded::new(letters, &heap, &[]).resolve(names);
    let is_filled: Vec<_> = resolved.functions.iter().map(Option::is_some).collect();
    assert_eq!(is_filled, filled);
    assert_eq!(resolved.code, code);
    assert_eq!(resolved.resolution, resolution);
}

#[test]
fn known_names_are_filled_in_any_order() {
    let complete = Resolution::COMPLETE;
    check(&["a", "b", "c", "d"], &[true; 4], StatusCode::OK, complete);
    check(&["d", "a", "a", "?b"], &[true; 4], StatusCode::OK, complete);
    check(&[], &[], StatusCode::OK, complete);
}

#[test]
fn a_missing_optional_import_is_null() {
    let names = ["?a", "?z", "b"];
    let filled = [true, false, true];
    check(
        &names,
        &filled,
        StatusCode::OK,
        Resolution::MISSING_OPTIONAL,
    );
}

#[test]
fn a_missing_required_import_is_not_found_after_all_others_are_filled() {
    let complete = Resolution::COMPLETE;
    check(
        &["a", "aa", "d"],
        &[true, false, true],
        StatusCode::NOT_FOUND,
        complete,
    );
    check(
        &["?z", "aa", "d"],
        &[false, false, true],
        StatusCode::NOT_FOUND,
        Resolution::MISSING_OPTIONAL,
    );
}

#[test]
fn only_the_first_byte_marks_an_optional_import() {
    let complete = Resolution::COMPLETE;
    check(&["a?"], &[false], StatusCode::NOT_FOUND, complete);
    check(
        &["??a"],
        &[false],
        StatusCode::OK,
        Resolution::MISSING_OPTIONAL,
    );
    check(
        &["?"],
        &[false],
        StatusCode::OK,
        Resolution::MISSING_OPTIONAL,
    );
    check(&[""], &[false], StatusCode::NOT_FOUND, complete);
}

#[test]
fn a_slot_of_another_provider_is_left_alone() {
    let heap = Heap::default();
    let loaded = Loaded::new(letters, &heap, &[]);
    let resolved = loaded.resolve_into(&["a", "z"], vec![Some(of_another_provider); 2]);
    assert_eq!(resolved.code, StatusCode::OK);
    assert_eq!(resolved.contexts, [ptr::null_mut(); 2]);
    for function in resolved.functions {
        // SAFETY: the function takes anything.
        let result =
            unsafe { function.unwrap()(ptr::null_mut(), ptr::null_mut(), ptr::null_mut()) };
        assert_eq!(result, 7);
    }
}

#[test]
fn a_request_without_arrays_is_invalid() {
    let heap = Heap::default();
    let loaded = Loaded::new(letters, &heap, &[]);
    let params = ResolveParams {
        count: 1,
        symbol_names: ptr::null(),
        out_fn_ptrs: ptr::null_mut(),
        out_fn_contexts: ptr::null_mut(),
    };
    let invalid = (StatusCode::INVALID_ARGUMENT, Resolution::COMPLETE);
    assert_eq!(loaded.resolve_raw(&params), invalid);
    let nothing_asked = ResolveParams { count: 0, ..params };
    assert_eq!(
        loaded.resolve_raw(&nothing_asked),
        (StatusCode::OK, Resolution::COMPLETE)
    );
}

#[test]
fn a_null_name_is_invalid() {
    let heap = Heap::default();
    let loaded = Loaded::new(letters, &heap, &[]);
    let names = [ptr::null()];
    let mut functions = [None];
    let mut contexts = [ptr::null_mut()];
    let params = ResolveParams {
        count: 1,
        symbol_names: names.as_ptr(),
        out_fn_ptrs: functions.as_mut_ptr(),
        out_fn_contexts: contexts.as_mut_ptr(),
    };
    assert_eq!(loaded.resolve_raw(&params).0, StatusCode::INVALID_ARGUMENT);
}
