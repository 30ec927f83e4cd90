//! Answers a request for 256 sorted names once, for counting the instructions it takes.
//!
//! ```text
//! cargo build --release --package hal-plugin-sdk --example answer_cost
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*measured*' \
//!     target/release/examples/answer_cost
//! ```
//!
//! The count that callgrind prints ("Collected") is to stay below 60 000. With the argument
//! `reverse` the names come in descending order, which is correct but slower.

#![expect(unsafe_code, reason = "plays the host on the raw ABI")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use hal_plugin_sdk::export::{Exports, Function, StaticHeader, StaticPlugin, sorted};
use hal_plugin_sdk::hal_abi::{ImportFn, PluginV0, Resolution, ResolveParams};
use hal_plugin_sdk::{LoadContext, Plugin, StatusCode};

const COUNT: usize = 256;
const NAME_LENGTH: usize = 21;

/// The names `iree_uk_mmt4d_f32_000` to `iree_uk_mmt4d_f32_255`.
const NAMES: [[u8; NAME_LENGTH]; COUNT] = {
    let mut names = [*b"iree_uk_mmt4d_f32_000"; COUNT];
    let mut index = 0;
    while index < COUNT {
        let digits = [index / 100, index / 10 % 10, index % 10];
        let mut place = 0;
        while place < digits.len() {
            names[index][NAME_LENGTH - digits.len() + place] = b"0123456789"[digits[place]];
            place += 1;
        }
        index += 1;
    }
    names
};

extern "C" fn import(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

const FUNCTIONS: [Function; COUNT] = {
    let mut functions = [Function::new("placeholder", import); COUNT];
    let mut index = 0;
    while index < COUNT {
        if let Ok(name) = str::from_utf8(&NAMES[index]) {
            functions[index] = Function::new(name, import);
        }
        index += 1;
    }
    functions
};

struct Many;

impl Plugin for Many {
    const NAME: &'static CStr = c"many";

    fn load(_: &LoadContext<'_>) -> Result<Self, StatusCode> {
        Ok(Self)
    }
}

impl Exports for Many {
    const FUNCTIONS: &'static [Function] = &sorted(FUNCTIONS);
}

static HEADER: StaticHeader = StaticHeader::new::<Many>();
static PLUGIN: StaticPlugin = StaticPlugin::new::<Many>(&HEADER);

/// The part that is measured.
#[inline(never)]
fn measured(plugin: &PluginV0, params: &ResolveParams) -> Option<Resolution> {
    let mut resolution = Resolution::COMPLETE;
    // SAFETY: the request is valid, and the plugin has no state that resolution reads.
    let status = unsafe { plugin.resolve?(ptr::null_mut(), params, &raw mut resolution) };
    status.is_ok().then_some(resolution)
}

fn main() {
    // SAFETY: the query answers version 0.1 with a plugin of that version.
    let plugin = unsafe { *PLUGIN.query(1).cast::<PluginV0>() };
    let mut names: Vec<CString> = NAMES
        .iter()
        .map(|&name| CString::new(name).expect("digits and letters"))
        .collect();
    if std::env::args().any(|argument| argument == "reverse") {
        names.reverse();
    }
    let names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    let mut functions: Vec<Option<ImportFn>> = vec![None; COUNT];
    let mut contexts = vec![ptr::null_mut(); COUNT];
    let params = ResolveParams {
        count: COUNT,
        symbol_names: names.as_ptr(),
        out_fn_ptrs: functions.as_mut_ptr(),
        out_fn_contexts: contexts.as_mut_ptr(),
    };
    assert_eq!(measured(&plugin, &params), Some(Resolution::COMPLETE));
    assert!(functions.iter().all(Option::is_some));
}
