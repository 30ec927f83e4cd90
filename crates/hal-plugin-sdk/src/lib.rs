//! Write an IREE executable plugin in safe Rust and export it.
//!
//! A plugin supplies functions that compiled kernels import. The same plugin loads in IREE's own
//! tools and in Halite: as a shared library, as a freestanding ELF image, or linked into the host.
//!
//! A plugin is three pieces: a type that implements [`Plugin`] and holds the state of an instance;
//! for each function a [`parameter_block!`] and a safe `fn` that gets the instance and the
//! [`Call`]; and one [`export_plugin!`] that names the functions. The only `unsafe` in it is the
//! promise there that kernels import each name with the block the function declares.
//!
//! ```
//! #![no_std]
//! # extern crate std;
//! use hal_plugin_sdk::{
//!     Call, ConstPtr, LoadContext, MutPtr, Plugin, StatusCode, export_plugin, parameter_block,
//! };
//!
//! struct Scale;
//!
//! impl Plugin for Scale {
//!     const NAME: &core::ffi::CStr = c"scale";
//!     fn load(_: &LoadContext<'_>) -> Result<Self, StatusCode> {
//!         Ok(Self)
//!     }
//! }
//!
//! parameter_block! {
//!     /// `lab_scale(memref<f32>, index, memref<f32>, index, index, f32)`, bare pointers.
//!     struct ScaleBlock {
//!         x: ConstPtr<f32>, x_offset: usize,
//!         y: MutPtr<f32>, y_offset: usize,
//!         len: usize, factor: f32,
//!     }
//! }
//!
//! fn scale(_: &Scale, call: &mut Call<'_, ScaleBlock>) -> Result<(), StatusCode> {
//!     let block = *call.params();
//!     let x = call.slice(block.x, block.x_offset, block.len)?;
//!     let y = call.slice_mut(block.y, block.y_offset, block.len)?;
//!     y.iter_mut().zip(x).for_each(|(y, x)| *y = block.factor * x);
//!     Ok(())
//! }
//!
//! export_plugin! {
//!     Scale {
//!         // Promise: kernels pass `len` elements behind both pointers and write disjoint tiles.
//!         unsafe "lab_scale" => scale,
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! # Errors
//!
//! A function's error code reaches the host as a number, where any number but 0 fails the dispatch.
//! The SDK itself uses these:
//!
//! | number | code | meaning |
//! |---|---|---|
//! | 3 | INVALID_ARGUMENT | a NULL or misaligned pointer |
//! | 8 | RESOURCE_EXHAUSTED | too many views, or no memory |
//! | 9 | FAILED_PRECONDITION | views that alias |
//! | 11 | OUT_OF_RANGE | an extent past the address space |
//! | 13 | INTERNAL | a panic |
//!
//! # Features
//!
//! * `std` (default): a panic in a plugin is caught at the boundary and becomes INTERNAL.
//! * Without it the crate is `no_std`, and plugins say that they are standalone. Nothing ever
//!   unwinds into the host: a panic goes to the panic handler. [`freestanding!`] provides one that
//!   fails the link if any panic is reachable at all, along with the memory functions that the
//!   compiler calls.
//!
//! # Map
//!
//! [`Plugin`] and [`LoadContext`] are the life of an instance, [`HostAllocator`] its memory;
//! [`Plain`], [`ConstPtr`], [`MutPtr`], [`Memref`] are what blocks are made of; [`Call`], [`Rows`]
//! and [`RowsMut`] are the only ways to a kernel's memory. [`export`] is for the macros.

#![no_std]
#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "turns a kernel's pointers into references")]
mod call;
#[doc(hidden)]
#[expect(unsafe_code, reason = "the functions that foreign code calls")]
pub mod export;
#[doc(hidden)]
#[expect(unsafe_code, reason = "the memory functions of C")]
pub mod freestanding;
mod guard;
#[expect(unsafe_code, reason = "calls the host's allocator")]
mod host;
#[expect(unsafe_code, reason = "reads the host's load parameters")]
mod load;
#[expect(unsafe_code, reason = "implements the marker of plain data")]
mod plain;
mod plugin;
#[expect(unsafe_code, reason = "rows share an extent with memory of others")]
mod rows;
mod symbols;
mod views;

pub use call::Call;
pub use hal_abi::{self, StatusCode};
pub use host::{HostAllocator, HostBuffer};
pub use load::{LoadContext, LoadParam};
pub use plain::{ConstPtr, I1, Memref, MutPtr, Plain};
pub use plugin::Plugin;
pub use rows::{RowShape, Rows, RowsMut};
pub use views::MAX_VIEWS;

#[cfg(test)]
extern crate std;

/// Runs the example of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
