//! Runs programs compiled by IREE on the CPU.
//!
//! A [`Program`] is a compiled module (`.vmfb`), read and verified. A [`Session`] links programs with what they need
//! and holds their state; its functions take and return [`Value`]s, most of them [`Tensor`]s.
//!
//! ```no_run
//! use halite::{Program, Session, Tensor, Trust};
//!
//! let program = Program::open("mul.vmfb")?;
//! // Sound because we compiled the program ourselves, for arguments of these shapes.
//! let trust = unsafe { Trust::native_code() };
//! let session = Session::builder().program(program).native_code(trust).build()?;
//!
//! let left = Tensor::from_slice(&[4], &[1f32, 2.0, 3.0, 4.0])?;
//! let right = Tensor::from_slice(&[4], &[10f32, 20.0, 30.0, 40.0])?;
//! let results = session.invoke("mul", &[left.into(), right.into()])?;
//! let product = results[0].as_tensor().ok_or("not a tensor")?;
//! assert_eq!(product.to_vec::<f32>()?, [10.0, 40.0, 90.0, 160.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! | items | what they are |
//! |---|---|
//! | [`Program`], [`Session`], [`SessionBuilder`], [`Function`], [`Signature`] | loading, linking, calling |
//! | [`Value`], [`Tensor`], [`Element`], [`ElementType`] | arguments and results |
//! | [`NativeModule`] | modules of the application's own, which programs import |
//! | [`Plugin`], [`PluginManager`], [`Dispatcher`] | what sessions may share: plugins, threads |
//! | [`Executable`], [`Profiler`] | for tools: one kernel on its own, and where the time goes |
//! | [`Trust`] | the promise that native code may run: the crate's one `unsafe` function |
//! | [`Error`] | what can go wrong, with a status code, causes and a hint |
//! | [`text`], [`npy`], [`compare`] | the formats of IREE's tools and NumPy, comparison of results |
//! | [`isolate`] | limits of a process that runs kernels, and how it ended |
//! | [`inspect`] | what files are and hold, and whether a program would run here |
//!
//! # Features
//!
//! `jit`, which is there by default, runs hot loops of bytecode as machine code; see [`Loops`].
//!
//! `tracing` adds spans of the [`tracing`](https://docs.rs/tracing) crate, all at its level `DEBUG`: `load_module`,
//! `compile_loop`, `load_executable`, `load_plugin`, `link`, `resolve`, `invoke`, `dispatch`, and `work` for what a worker does of a
//! dispatch. Without it nothing of that is compiled in.
//!
//! # Safety
//!
//! Any bytes may be loaded as a program; bad ones give an error. Running its kernels is another matter: compiled
//! kernels are machine code, which a session only runs when it was given [`Trust`]. Programs with portable kernels
//! (compiled for `vmvx`) need none.
#![deny(unsafe_code)]

pub mod compare;
mod convert;
mod diagnose;
mod element;
mod error;
mod executable;
mod function;
pub mod inspect;
pub mod isolate;
mod minifloat;
pub mod npy;
mod profile;
mod program;
mod session;
mod signature;
mod tensor;
pub mod text;
mod trust;
mod value;

pub use element::{Element, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU};
pub use error::{Error, Obstacle};
pub use executable::{Executable, ExecutableError, ExecutableOptions};
pub use function::Function;
pub use hal_local::{Dispatcher, ExportAttributes, ExportInfo, InlineDispatcher, PoolDispatcher};
pub use hal_plugin::{Plugin, PluginError, PluginManager, PluginSpec};
pub use profile::{KernelProfile, Profiler, Span, SpanKind, Timeline};
pub use program::Program;
pub use session::{Loops, Session, SessionBuilder};
pub use signature::{Declared, Signature};
pub use tensor::{ExclusiveTensor, Tensor, TensorError};
pub use trust::Trust;
pub use value::Value;
pub use vm::{
    Access, Atom, BUFFER_ALIGNMENT, Buffer, BytesOwner, InterruptHandle, InvocationOptions, List,
    Module, NativeModule, Ref, StatusCode, Trap,
};
pub use vm_bytecode::FileKind;
pub use vm_hal_inline::{
    BufferView, ElementType, EncodingType, MAX_RANK, NumericalType, ParseElementTypeError,
    TraceSink,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
