//! A plugin's answer to the query, checked once and copied. Past this point there are no pointers
//! into the plugin but the functions.

use std::ffi::{CStr, c_char};
use std::ptr;

use hal_abi::{
    PLUGIN_VERSION_0_1, PluginFeatures, PluginHeader, PluginLoadFn, PluginQueryFn, PluginResolveFn,
    PluginUnloadFn, PluginV0, SanitizerKind,
};

use crate::RejectReason;

/// A checked plugin structure of ABI 0.1.
#[derive(Debug)]
pub(crate) struct PluginTable {
    /// The name in the header; empty if it has none.
    pub(crate) name: String,
    /// The description in the header; empty if it has none.
    pub(crate) description: String,
    pub(crate) version: u32,
    pub(crate) features: PluginFeatures,
    pub(crate) load: PluginLoadFn,
    pub(crate) unload: Option<PluginUnloadFn>,
    pub(crate) resolve: PluginResolveFn,
}

impl PluginTable {
    /// Calls `query` and checks the answer. `host_has` tells whether a sanitizer runs in this
    /// process.
    ///
    /// Published plugins answer NULL to a `max_version` above 1, so 1 is all that is ever asked.
    ///
    /// # Safety
    ///
    /// `query` is a plugin's query function (`docs/abi.md`, section 4), and its code stays mapped as
    /// long as the functions in the result are in use.
    pub(crate) unsafe fn query(
        query: PluginQueryFn,
        host_has: impl FnOnce(SanitizerKind) -> bool,
    ) -> Result<Self, RejectReason> {
        // SAFETY: a plugin's query function, by this function's contract; it is pure and takes any
        // version and NULL.
        let answer = unsafe { query(PLUGIN_VERSION_0_1, ptr::null_mut()) };
        if answer.is_null() {
            return Err(RejectReason::VersionRefused {
                asked: PLUGIN_VERSION_0_1,
            });
        }
        check_aligned(answer, "structure")?;
        // SAFETY: not NULL, aligned, and a plugin answers with a structure whose first field is the
        // pointer to its header.
        let header = unsafe { answer.read() };
        if header.is_null() {
            return Err(bad_pointer("header", "NULL"));
        }
        check_aligned(header, "header")?;
        // SAFETY: not NULL and aligned; every version of the header starts with the version, and
        // only that field is read before the version is known.
        let version = unsafe { header.cast::<u32>().read() };
        if version != PLUGIN_VERSION_0_1 {
            return Err(RejectReason::VersionMismatch { found: version });
        }
        // SAFETY: a header of version 1, immutable while the plugin is mapped.
        let header: PluginHeader = unsafe { header.read() };

        // SAFETY: NULL or a NUL-terminated string that the plugin owns.
        let name = unsafe { text(header.name) };
        // SAFETY: as above.
        let description = unsafe { text(header.description) };
        if header.features.contains(PluginFeatures::FULL_STATUS) {
            return Err(RejectReason::FullStatus { plugin: name });
        }
        if header.sanitizer != SanitizerKind::NONE && !host_has(header.sanitizer) {
            return Err(RejectReason::Sanitizer {
                plugin: name,
                kind: header.sanitizer,
            });
        }
        if let Some(index) = header.reserved.iter().position(|&value| value != 0) {
            return Err(RejectReason::Reserved {
                plugin: name,
                index,
                value: header.reserved[index],
            });
        }

        check_aligned(answer.cast::<PluginV0>(), "structure")?;
        // SAFETY: a structure of version 1, which is a `PluginV0`.
        let plugin = unsafe { answer.cast::<PluginV0>().read() };
        Ok(Self {
            name,
            description,
            version,
            features: header.features,
            load: plugin
                .load
                .ok_or_else(|| bad_pointer("load function", "NULL"))?,
            unload: plugin.unload,
            resolve: plugin
                .resolve
                .ok_or_else(|| bad_pointer("resolve function", "NULL"))?,
        })
    }
}

fn bad_pointer(what: &'static str, problem: &'static str) -> RejectReason {
    RejectReason::BadPointer { what, problem }
}

fn check_aligned<T>(pointer: *const T, what: &'static str) -> Result<(), RejectReason> {
    if pointer.is_aligned() {
        return Ok(());
    }
    Err(bad_pointer(what, "misaligned"))
}

/// Copies a C string, with a replacement for what is not UTF-8; NULL is the empty string.
///
/// # Safety
///
/// `string` is NULL or NUL-terminated and valid during the call.
unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: not NULL, and NUL-terminated by this function's contract.
    unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use hal_abi::{Resolution, ResolveParams, Status, StringPair};

    use super::*;

    unsafe extern "C" fn load(
        _: *const hal_abi::PluginEnvironment,
        _: usize,
        _: *const StringPair,
        _: *mut *mut c_void,
    ) -> Status {
        Status::OK
    }

    unsafe extern "C" fn resolve(
        _: *mut c_void,
        _: *const ResolveParams,
        _: *mut Resolution,
    ) -> Status {
        Status::OK
    }

    /// Answers with a plugin that is built for the sanitizer `KIND`.
    unsafe extern "C" fn query<const KIND: i32>(
        _: u32,
        _: *mut c_void,
    ) -> *const *const PluginHeader {
        let plugin: &'static PluginV0 = const {
            &PluginV0 {
                header: &PluginHeader {
                    version: PLUGIN_VERSION_0_1,
                    name: ptr::null(),
                    description: ptr::null(),
                    features: PluginFeatures::NONE,
                    sanitizer: SanitizerKind(KIND),
                    reserved: [0; 8],
                },
                load: Some(load),
                unload: None,
                resolve: Some(resolve),
            }
        };
        ptr::from_ref(plugin).cast()
    }

    #[test]
    fn an_instrumented_plugin_needs_its_sanitizer_in_the_process() {
        let asan = SanitizerKind::ADDRESS;
        let tsan = SanitizerKind::THREAD;
        // SAFETY: a plugin of our own.
        unsafe { PluginTable::query(query::<1>, |kind| kind == asan) }.unwrap();
        // SAFETY: as above.
        unsafe { PluginTable::query(query::<3>, |kind| kind == tsan) }.unwrap();
        // SAFETY: as above.
        let error = unsafe { PluginTable::query(query::<1>, |kind| kind == tsan) }.unwrap_err();
        assert_eq!(
            error.to_string(),
            "plugin `` is built with the address sanitizer (ASan), which does not run in this \
             process"
        );
        // SAFETY: as above.
        let error = unsafe { PluginTable::query(query::<3>, |_| false) }.unwrap_err();
        assert!(matches!(error, RejectReason::Sanitizer { kind, .. } if kind == tsan));
    }

    #[test]
    fn a_plain_plugin_does_not_ask_for_sanitizers() {
        // SAFETY: a plugin of our own.
        unsafe { PluginTable::query(query::<0>, |_| unreachable!()) }.unwrap();
    }
}
