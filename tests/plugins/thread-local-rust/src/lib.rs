//! Sample plugin: `lab_touch`, which leaves a thread-local value with a destructor behind.
//!
//! The destructor is code of this library and runs when the thread ends. A host that calls the
//! function on a thread, unmaps the library, and ends the thread jumps into nothing.

use std::cell::RefCell;
use std::ffi::CStr;

use hal_plugin_sdk::{Call, LoadContext, Plugin, StatusCode, export_plugin};

struct ThreadLocal;

impl Plugin for ThreadLocal {
    const NAME: &'static CStr = c"thread_local_rust";
    const DESCRIPTION: &'static CStr = c"lab_touch: leaves a destructor behind on the thread";

    fn load(_: &LoadContext<'_>) -> Result<Self, StatusCode> {
        Ok(Self)
    }
}

thread_local! {
    /// The calls of this thread, on the heap, so that dropping them runs code.
    static CALLS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

fn touch(_: &ThreadLocal, _: &mut Call<'_, ()>) -> Result<(), StatusCode> {
    CALLS.with_borrow_mut(|calls| {
        let index = calls.len();
        calls.push(index);
    });
    Ok(())
}

export_plugin! {
    ThreadLocal {
        // Promise: `lab_touch` is imported as `() -> ()` and views no memory.
        unsafe "lab_touch" => touch,
    }
}
