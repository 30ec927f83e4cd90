//! Plugins linked into the test program, whose behavior is chosen by load parameters.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::Mutex;

use hal_abi::{
    AllocParams, Allocator, AllocatorCommand, ImportFn, PluginEnvironment, PluginFeatures,
    PluginHeader, PluginV0, Resolution, ResolveParams, SanitizerKind, Status, StringPair,
    StringView,
};
use hal_plugin::{Parameter, Plugin};

use crate::providers::function;

/// What the probes did, by the value of their parameter `id`.
static EVENTS: Mutex<Option<HashMap<String, Vec<Event>>>> = Mutex::new(None);

/// Something that happened to a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// `load`: whether `*out_self` was NULL, and the parameters but `id`.
    Load(bool, Vec<(String, String)>),
    /// `unload`: the tag, 0 if there is none.
    Unload(usize),
    /// `resolve`: the names, each with whether its slot was filled; and the resolution bits on entry.
    Resolve(Vec<(String, bool)>, u32),
}

/// Returns what happened to the probe `id`.
pub(crate) fn events(id: &str) -> Vec<Event> {
    let events = EVENTS.lock().unwrap();
    let events = events.as_ref().and_then(|events| events.get(id));
    events.cloned().unwrap_or_default()
}

/// Returns how often the probe `id` was unloaded.
pub(crate) fn unload_count(id: &str) -> usize {
    let is_unload = |event: &&Event| matches!(event, Event::Unload(_));
    events(id).iter().filter(is_unload).count()
}

fn record(id: &str, event: Event) {
    let mut events = EVENTS.lock().unwrap();
    let events = events.get_or_insert_default();
    events.entry(id.to_owned()).or_default().push(event);
}

/// Loads a probe. The parameters it understands:
///
/// | key | value |
/// |---|---|
/// | `id` | where its events go; required |
/// | `knows` | symbols, separated by commas |
/// | `tag` | the context of its functions |
/// | `load`, `resolve` | the raw status to return instead of the honest one |
/// | `bits` | the resolution bits to report; `none` to leave them unwritten |
/// | `clobber` | overwrite slots that are filled already |
/// | `context_only` | write contexts, but no functions |
/// | `leak` | how many bytes to allocate and never free |
pub(crate) fn load(parameters: &[Parameter<'_>]) -> Result<Plugin, hal_plugin::PluginError> {
    // SAFETY: a plugin of our own that obeys the ABI as far as this crate relies on it.
    unsafe { Plugin::from_static(query, parameters) }
}

/// A header that every host accepts.
pub(crate) fn header() -> PluginHeader {
    PluginHeader {
        version: 1,
        name: c"probe".as_ptr(),
        description: c"a plugin for tests".as_ptr(),
        features: PluginFeatures::STANDALONE,
        sanitizer: SanitizerKind::NONE,
        reserved: [0; 8],
    }
}

/// The functions of the probe. The header is set by [`answer`].
pub(crate) fn table() -> PluginV0 {
    PluginV0 {
        header: ptr::null(),
        load: Some(on_load),
        unload: Some(on_unload),
        resolve: Some(on_resolve),
    }
}

/// Makes an answer to a query out of a header and a table. Both live forever.
pub(crate) fn answer(header: PluginHeader, mut table: PluginV0) -> *const *const PluginHeader {
    table.header = forever(header);
    ptr::from_ref(forever(table)).cast()
}

/// Keeps a value until the process ends.
pub(crate) fn forever<T: Copy + 'static>(value: T) -> &'static T {
    let value: &'static T = Box::leak(Box::new(value));
    keep(ptr::from_ref(value).cast());
    value
}

/// Notes a block that is leaked on purpose, where leak checkers find it.
fn keep(block: *const c_void) {
    static BLOCKS: Mutex<Vec<Kept>> = Mutex::new(Vec::new());
    struct Kept(#[expect(dead_code, reason = "it is only kept")] *const c_void);
    // SAFETY: the pointer is never used.
    unsafe impl Send for Kept {}
    BLOCKS.lock().unwrap().push(Kept(block));
}

unsafe extern "C" fn query(max_version: u32, reserved: *mut c_void) -> *const *const PluginHeader {
    assert_eq!(max_version, 1);
    assert!(reserved.is_null());
    answer(header(), table())
}

struct Probe {
    parameters: HashMap<String, String>,
    allocator: Allocator,
}

impl Probe {
    fn id(&self) -> &str {
        &self.parameters["id"]
    }

    fn number(&self, key: &str) -> Option<usize> {
        let text = self.parameters.get(key)?;
        Some(text.parse().unwrap())
    }

    fn is(&self, key: &str) -> bool {
        self.parameters.contains_key(key)
    }
}

fn text(view: StringView) -> String {
    // SAFETY: the host passes living strings during `load`.
    let bytes = unsafe { std::slice::from_raw_parts(view.data.cast::<u8>(), view.size) };
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Allocates from the host.
pub(crate) fn allocate(allocator: Allocator, byte_length: usize) -> *mut c_void {
    let mut block = ptr::null_mut();
    let params = AllocParams { byte_length };
    let (command, params) = (AllocatorCommand::MALLOC, (&raw const params).cast());
    // SAFETY: the allocator lives until `unload`, and the pointers are to locals.
    let status =
        unsafe { allocator.ctl.unwrap()(allocator.self_, command, params, &raw mut block) };
    assert!(status.is_ok());
    block
}

unsafe extern "C" fn on_load(
    environment: *const PluginEnvironment,
    count: usize,
    params: *const StringPair,
    out_self: *mut *mut c_void,
) -> Status {
    let mut list = Vec::new();
    // SAFETY: the host passes `count` pairs, and a pointer that is not NULL if there are none.
    for pair in unsafe { std::slice::from_raw_parts(params, count) } {
        list.push((text(pair.key), text(pair.value)));
    }
    // SAFETY: the host passes an environment.
    let allocator = unsafe { (*environment).host_allocator };
    let probe = Probe {
        parameters: list.iter().cloned().collect(),
        allocator,
    };
    // SAFETY: the host passes a place for the state.
    let is_null = unsafe { (*out_self).is_null() };
    list.retain(|(key, _)| key != "id");
    record(probe.id(), Event::Load(is_null, list));
    if let Some(byte_length) = probe.number("leak") {
        keep(allocate(probe.allocator, byte_length));
    }
    if let Some(raw) = probe.number("load") {
        return Status(raw);
    }
    // SAFETY: as above.
    unsafe { *out_self = Box::into_raw(Box::new(probe)).cast() };
    Status::OK
}

unsafe extern "C" fn on_unload(state: *mut c_void) {
    // SAFETY: the state that `on_load` stored; it is used here for the last time. NULL would be a
    // fault of the host, and crash.
    let probe = unsafe { Box::from_raw(state.cast::<Probe>()) };
    record(probe.id(), Event::Unload(probe.number("tag").unwrap_or(0)));
}

unsafe extern "C" fn on_resolve(
    state: *mut c_void,
    params: *const ResolveParams,
    out_resolution: *mut Resolution,
) -> Status {
    // SAFETY: the state that `on_load` stored.
    let probe = unsafe { &*state.cast::<Probe>() };
    // SAFETY: the host passes parameters.
    let params = unsafe { params.read() };
    // SAFETY: an array of `count` names, living during this call.
    let names = unsafe { slice(params.symbol_names, params.count) };
    // SAFETY: an array of `count` functions.
    let functions: &mut [Option<ImportFn>] =
        unsafe { std::slice::from_raw_parts_mut(params.out_fn_ptrs, params.count) };
    // SAFETY: an array of `count` contexts.
    let contexts = unsafe { std::slice::from_raw_parts_mut(params.out_fn_contexts, params.count) };

    let knows: Vec<&str> = probe
        .parameters
        .get("knows")
        .map_or(vec![], |s| s.split(',').collect());
    let mut seen = Vec::new();
    let mut is_missing = false;
    let mut bits = 0;
    for (index, &name) in names.iter().enumerate() {
        // SAFETY: the host passes NUL-terminated names.
        let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap();
        seen.push((name.to_owned(), functions[index].is_some()));
        if functions[index].is_some() && !probe.is("clobber") {
            continue;
        }
        let (symbol, is_optional) = match name.strip_prefix('?') {
            Some(symbol) => (symbol, true),
            None => (name, false),
        };
        if knows.contains(&symbol) {
            contexts[index] = ptr::without_provenance_mut(probe.number("tag").unwrap_or(0));
            if !probe.is("context_only") {
                functions[index] = Some(function);
            }
        } else if is_optional {
            bits |= Resolution::MISSING_OPTIONAL.0;
        } else {
            is_missing = true;
        }
    }
    // SAFETY: the host passes a place for the bits.
    record(
        probe.id(),
        Event::Resolve(seen, unsafe { (*out_resolution).0 }),
    );
    match probe.parameters.get("bits").map(String::as_str) {
        Some("none") => {}
        // SAFETY: as above.
        Some(text) => unsafe { *out_resolution = Resolution(text.parse().unwrap()) },
        // SAFETY: as above.
        None => unsafe { *out_resolution = Resolution(bits) },
    }
    match probe.number("resolve") {
        Some(raw) => Status(raw),
        None if is_missing => Status(5),
        None => Status::OK,
    }
}

/// # Safety
///
/// `first` is the first of `count` living pointers.
unsafe fn slice<'a>(first: *const *const c_char, count: usize) -> &'a [*const c_char] {
    // SAFETY: by this function's contract.
    unsafe { std::slice::from_raw_parts(first, count) }
}
