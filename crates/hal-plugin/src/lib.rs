//! Import providers and the executable plugin manager: registration, snapshots, resolution, plugin
//! lifetime.
//!
//! Kernels compiled by IREE may import functions by name. This crate finds those functions: in
//! plugins (shared objects, freestanding ELF images, or code linked into the program) and in
//! providers written in Rust. It calls plugins through their ABI (`docs/abi.md`, sections 2 to 6);
//! the functions it finds are called by others.
//!
//! ```text
//! names ──► PluginManager ──► newest provider ──► … ──► oldest provider ──► ResolvedImports
//!           one snapshot      Plugin, PluginManager, or a Rust type         functions, contexts,
//!                                                                           and what keeps them alive
//! ```
//!
//! # Examples
//!
//! ```no_run
//! use hal_plugin::{Plugin, PluginManager, PluginSpec};
//!
//! let manager = PluginManager::new();
//! let spec = PluginSpec::parse("./kernels.so?tile=8")?;
//! // Sound because `kernels.so` is a plugin of our own that obeys the plugin ABI.
//! manager.register_plugin(unsafe { Plugin::load(&spec) }?)?;
//!
//! let imports = manager.resolve(&[c"my_matmul", c"?my_prefetch"])?;
//! println!("{imports:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What resolution guarantees
//!
//! * Providers are asked newest first, until no slot is empty. Slots of optional imports (`?name`)
//!   count: an older provider may know them.
//! * A filled slot is never changed by an older provider.
//! * Success is decided from the slots, never from what providers claim. If a required import is
//!   missing the error lists all of them, sorted, and every provider that was asked.
//! * NOT_FOUND goes on to the next provider; any other failure ends the resolution.
//! * Statuses of plugins are normalized: CANCELLED, DEFERRED and malformed ones are reported as
//!   INTERNAL, since the layers above would take them for something else than failure.
//!
//! # Lifetimes
//!
//! [`ResolvedImports`] keeps alive every plugin that supplied one of its functions; a manager keeps
//! alive every provider registered with it. A plugin's `unload` is called once, only after a
//! successful `load`, and when nothing can call into it any more. Then:
//!
//! * a freestanding image is unmapped. It cannot have left anything behind: it has no way to
//!   register destructors with the system;
//! * a system library **stays mapped until the process ends**. It may have registered thread-local
//!   or exit-time destructors that run later, on threads this crate knows nothing of, and closing it
//!   would pull the code away under them. The price is the address space of each library loaded.
//!
//! A system library named by a path is mapped from a private copy of its file, so that loading a
//! path again after the file has changed runs the new code, and so that overwriting the file does
//! not change code that is running. Debuggers and profilers therefore see a deleted temporary file,
//! and `$ORIGIN` in the library's run path is the temporary directory (`TMPDIR`, or `/tmp`), which
//! must allow execution. A bare file name goes to the system's loader as it is: the search path
//! applies, the library is shared with whoever else opened it, and it is never read again.
//!
//! # Threads
//!
//! Everything here is `Send` and `Sync`. Registrations are immutable snapshots that are replaced as
//! a whole: a resolution reads one of them without waiting for anybody, and writers queue behind a
//! mutex that is held only while the next snapshot is made from the last. **No lock is held while a
//! provider or a plugin runs**, be it in `resolve`, `load` or `unload`, so any of them may call back
//! into the manager. `load` and `unload` run on the thread that loads the plugin and on the one that
//! drops its last user.
//!
//! # Safety
//!
//! Running code from a file takes trust. It enters at [`Plugin::load`], [`Plugin::from_static`] and
//! [`Plugin::from_bytes`] for plugins, and at [`Import::new`] for functions of the program; all
//! four are `unsafe`, and everything else is safe. What a plugin says about itself is checked before
//! it is used: version, features, sanitizer, reserved fields and NULL pointers.
//!
//! # Modules
//!
//! | module | what it holds |
//! |---|---|
//! | `import`, `provider`, `request` | [`Import`], [`ImportProvider`], [`ResolveRequest`]: the language in which functions are asked for and given |
//! | `resolution`, `slots` | [`resolve_imports`], [`ResolvedImports`] and their storage |
//! | `manager`, `resolver`, `snapshot` | [`PluginManager`], [`Resolver`] and the cell that publishes the registrations |
//! | `spec`, `source`, `plugin` | [`PluginSpec`], how code is found and mapped, and [`Plugin`] with the memory it is lent |
//! | `error` | the errors and their status codes |
//!
//! # Features
//!
//! `tracing` adds the spans `load_plugin` and `resolve` of the [`tracing`](https://docs.rs/tracing) crate.

#![deny(unsafe_code)]

mod error;
#[expect(
    unsafe_code,
    reason = "making an import is a promise, which the type carries between threads"
)]
mod import;
mod manager;
#[expect(
    unsafe_code,
    reason = "it calls plugins, reads their structures and lends them memory"
)]
mod plugin;
mod provider;
mod request;
mod resolution;
mod resolver;
#[expect(
    unsafe_code,
    reason = "it owns the block that kernels read through raw addresses"
)]
mod slots;
mod snapshot;
#[expect(
    unsafe_code,
    reason = "it maps code and turns an exported address into a function"
)]
mod source;
mod spec;

pub use error::{PluginError, RegisterError, RejectReason, ResolveError};
pub use import::{Import, ImportName, KeepAlive};
pub use manager::{ManagerSnapshot, PluginManager, PluginManagerBuilder};
pub use plugin::{Parameter, Plugin, PluginMemory, PluginOrigin};
pub use provider::{ImportProvider, ProviderError, ProviderErrorKind};
pub use request::ResolveRequest;
pub use resolution::{ResolvedImports, resolve_imports, resolve_imports_into};
pub use resolver::Resolver;
pub use spec::{PluginFormat, PluginSpec, SpecError};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
