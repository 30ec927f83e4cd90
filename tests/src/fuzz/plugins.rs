//! The header of a plugin, and sequences of registrations and resolutions.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hal_abi::{
    PLUGIN_VERSION_0_1, PluginEnvironment, PluginFeatures, PluginHeader, PluginV0, Resolution,
    ResolveParams, SanitizerKind, Status, StringPair,
};
use hal_plugin::{
    Import, ImportProvider, KeepAlive, ManagerSnapshot, Plugin, PluginManager, ProviderError,
    ResolveError, ResolveRequest, ResolvedImports,
};

use super::{Outcome, Source};

thread_local! {
    /// What the query of this thread's plugin answers.
    static ANSWER: Cell<*const *const PluginHeader> = const { Cell::new(ptr::null()) };
    static LOADED: Cell<u32> = const { Cell::new(0) };
}

unsafe extern "C" fn query(_: u32, _: *mut c_void) -> *const *const PluginHeader {
    ANSWER.get()
}

unsafe extern "C" fn load(
    _: *const PluginEnvironment,
    _: usize,
    _: *const StringPair,
    _: *mut *mut c_void,
) -> Status {
    LOADED.set(LOADED.get() + 1);
    Status::OK
}

unsafe extern "C" fn unload(_: *mut c_void) {
    LOADED.set(LOADED.get() - 1);
}

unsafe extern "C" fn resolve(
    _: *mut c_void,
    _: *const ResolveParams,
    _: *mut Resolution,
) -> Status {
    Status::OK
}

/// A plugin with any header: it is loaded if and only if the header says that it can be.
///
/// ```text
/// input   0 which pointers are there, 1 version, 5 features, 9 sanitizer, 13 reserved (8 words),
///         45 length and bytes of the name, length and bytes of the description
/// ```
pub(super) fn plugin_header(input: &[u8]) -> Outcome {
    let mut source = Source(input);
    let present = source.byte();
    let version = source.word();
    let features = PluginFeatures(source.word());
    let sanitizer = SanitizerKind(source.word().cast_signed());
    let reserved = [(); 8].map(|()| u64::from(source.word()));
    let name = c_string(source.bytes());
    let description = c_string(source.bytes());
    let pointer = |bit: u8, text: &CStr| -> *const c_char {
        if present & bit != 0 {
            text.as_ptr()
        } else {
            ptr::null()
        }
    };
    let header = PluginHeader {
        version,
        name: pointer(1, &name),
        description: pointer(2, &description),
        features,
        sanitizer,
        reserved,
    };
    let plugin = PluginV0 {
        header: if present & 4 != 0 {
            &raw const header
        } else {
            ptr::null()
        },
        load: (present & 8 != 0).then_some(load as _),
        unload: (present & 16 != 0).then_some(unload as _),
        resolve: (present & 32 != 0).then_some(resolve as _),
    };
    ANSWER.set(if present & 64 != 0 {
        ptr::from_ref(&plugin).cast()
    } else {
        ptr::null()
    });

    LOADED.set(0);
    // SAFETY: the query answers NULL or a structure that lives until the end of this function, as the plugin does; its
    // pointers are NULL or valid, and its functions keep the plugin ABI.
    let loaded = unsafe { Plugin::from_static(query, &[]) };
    let is_sound = present & (4 | 8 | 32 | 64) == 4 | 8 | 32 | 64
        && version == PLUGIN_VERSION_0_1
        && !features.contains(PluginFeatures::FULL_STATUS)
        && reserved == [0; 8];
    let outcome = match loaded {
        Ok(plugin) => {
            assert!(is_sound);
            let shown = if present & 1 != 0 {
                name.to_string_lossy().into_owned()
            } else {
                String::new()
            };
            assert_eq!(plugin.name(), shown);
            assert_eq!(LOADED.get(), 1);
            drop(plugin);
            assert_eq!(LOADED.get(), u32::from(present & 16 == 0));
            Outcome::Ran
        }
        Err(error) => {
            // A sanitizer may run in this process or not.
            assert!(!is_sound || sanitizer != SanitizerKind::NONE, "{error}");
            assert_eq!(LOADED.get(), 0, "a refused plugin was loaded");
            Outcome::Refused
        }
    };
    ANSWER.set(ptr::null());
    outcome
}

/// Returns the bytes up to the first NUL.
fn c_string(bytes: &[u8]) -> CString {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    CString::new(text).unwrap()
}

pub(super) fn plugin_header_seeds() -> Vec<Vec<u8>> {
    let sound = |present: u8| {
        let mut bytes = vec![present];
        bytes.extend(PLUGIN_VERSION_0_1.to_le_bytes());
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([0; 32]);
        bytes.extend(b"\x04mine\x05about");
        bytes
    };
    [0x7F, 0x6F, 0x3F, 0x7E].map(sound).into()
}

unsafe extern "C" fn called(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

/// A provider of some of eight names.
struct Provider {
    id: usize,
    /// A bit for each name that it knows.
    knows: u8,
    /// Counts the providers that live.
    alive: Arc<AtomicUsize>,
    /// Is kept alive by what was resolved from the provider.
    kept: KeepAlive,
}

impl Provider {
    fn new(id: usize, knows: u8, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self {
            id,
            knows,
            alive: Arc::clone(alive),
            kept: Arc::new(id),
        }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ImportProvider for Provider {
    fn name(&self) -> &str {
        "provider"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        let before = request.missing_count();
        request.fill_with(|name| {
            let index = name.symbol().first()?.wrapping_sub(b'a');
            let knows = index < 8 && self.knows & 1 << index != 0;
            let context = ptr::without_provenance_mut(self.id);
            // SAFETY: the function ignores its arguments, and is part of the program.
            knows.then(|| unsafe { Import::new(called, context) })
        });
        if request.missing_count() < before {
            request.keep_alive(Arc::clone(&self.kept));
        }
        Ok(())
    }
}

/// The names that are asked for, by bit; required, then optional.
const NAMES: [[&CStr; 8]; 2] = [
    [c"a", c"b", c"c", c"d", c"e", c"f", c"g", c"h"],
    [c"?a", c"?b", c"?c", c"?d", c"?e", c"?f", c"?g", c"?h"],
];

/// The names under which providers are registered.
const LABELS: [&str; 4] = ["one", "two", "three", ""];

/// Registers, replaces, unregisters, resolves and drops as the input says, beside a plain list that does the same.
pub(super) fn registry(input: &[u8]) -> Outcome {
    let mut source = Source(input);
    let alive = Arc::new(AtomicUsize::new(0));
    let manager = PluginManager::new();
    let mut list: Vec<(&str, usize, u8)> = Vec::new();
    let mut results: Vec<(ResolvedImports, Vec<Option<usize>>)> = Vec::new();
    let mut snapshots: Vec<(ManagerSnapshot, Vec<&str>)> = Vec::new();
    let mut next_id = 1;
    while !source.is_empty() {
        let (operation, operand) = (source.byte(), source.byte());
        let label = LABELS[usize::from(operand & 3)];
        let newest = list.iter().rposition(|(name, ..)| *name == label);
        match operation % 8 {
            0 | 1 => {
                let knows = source.byte();
                let provider = Arc::new(Provider::new(next_id, knows, &alive));
                manager.register_provider(label, provider).unwrap();
                list.push((label, next_id, knows));
                next_id += 1;
            }
            2 => {
                let knows = source.byte();
                let provider = Arc::new(Provider::new(next_id, knows, &alive));
                let replaced = manager.replace(label, provider);
                assert_eq!(replaced.is_ok(), newest.is_some());
                if let Some(newest) = newest {
                    list[newest] = (label, next_id, knows);
                }
                next_id += 1;
            }
            3 => {
                assert_eq!(manager.unregister(label).is_ok(), newest.is_some());
                newest.map(|newest| list.remove(newest));
            }
            4 | 5 => {
                let names: Vec<&CStr> = (0..8)
                    .filter(|bit| operand & 1 << bit != 0)
                    .map(|bit| NAMES[usize::from(source.byte() & 1)][bit])
                    .collect();
                resolve_beside(&manager, &list, &names, &mut results);
            }
            6 if !results.is_empty() => {
                let (imports, expected) = results.swap_remove(usize::from(operand) % results.len());
                assert_eq!(identities(&imports), expected);
            }
            7 if operand & 4 != 0 => {
                let names = list.iter().rev().map(|(name, ..)| *name).collect();
                snapshots.push((manager.snapshot(), names));
            }
            _ => snapshots.clear(),
        }
        assert_eq!(manager.snapshot().len(), list.len());
    }
    for (imports, expected) in &results {
        assert_eq!(&identities(imports), expected);
    }
    for (snapshot, expected) in &snapshots {
        let mut names: Vec<&str> = snapshot.names().collect();
        names.sort_unstable();
        let mut expected = expected.clone();
        expected.sort_unstable();
        assert_eq!(names, expected);
    }
    drop((manager, results, snapshots));
    assert_eq!(alive.load(Ordering::Relaxed), 0, "providers are still held");
    Outcome::Ran
}

/// Resolves names, and finds them in the list from its end.
fn resolve_beside(
    manager: &PluginManager,
    list: &[(&str, usize, u8)],
    names: &[&CStr],
    results: &mut Vec<(ResolvedImports, Vec<Option<usize>>)>,
) {
    let find = |name: &&CStr| {
        let symbol = name
            .to_bytes()
            .strip_prefix(b"?")
            .unwrap_or(name.to_bytes());
        let bit = symbol[0] - b'a';
        let knows = |(.., knows): &&(&str, usize, u8)| knows & 1 << bit != 0;
        list.iter().rev().find(knows).map(|(_, id, _)| *id)
    };
    let expected: Vec<Option<usize>> = names.iter().map(find).collect();
    let is_missing = |(name, found): (&&CStr, &Option<usize>)| {
        found.is_none() && !name.to_bytes().starts_with(b"?")
    };
    let misses = names.iter().zip(&expected).any(is_missing);
    match manager.resolve(names) {
        Ok(imports) => {
            assert!(!misses);
            assert_eq!(identities(&imports), expected);
            results.push((imports, expected));
        }
        Err(ResolveError::MissingImports { .. } | ResolveError::NoProvider { .. }) => {
            assert!(misses)
        }
        Err(error) => unreachable!("{error}"),
    }
}

/// Returns which provider each import came from.
fn identities(imports: &ResolvedImports) -> Vec<Option<usize>> {
    let identity = |index| imports.get(index).map(|import| import.context().addr());
    (0..imports.len()).map(identity).collect()
}

pub(super) fn registry_seeds() -> Vec<Vec<u8>> {
    vec![
        vec![
            0, 0, 0x0F, 0, 1, 0xF0, 4, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 7, 4, 6, 0,
        ],
        vec![0, 0, 1, 0, 0, 3, 2, 0, 2, 4, 3, 1, 1, 3, 0, 3, 0, 4, 1, 0],
        vec![7, 4, 0, 2, 0xFF, 5, 1, 0, 3, 2, 5, 1, 0, 7, 0],
    ]
}
