//! The module: the names and calling conventions of its functions and the state they share.

use std::borrow::Cow;
use std::sync::Arc;

use vm::{Buffer, BufferPool, Call, Module, NativeModule, NativeModuleBuilder, Result, Signal};

use crate::buffer_view::{BUFFER_VIEW_TYPE, BufferView};
use crate::{HAL_BUFFER_TYPE, buffer, device, view_functions};

/// The version that modules require, the same in all releases of the compiler.
const VERSION: u32 = 0;

/// Receives the tensors that a program traces with `flow.tensor.trace`.
///
/// Implemented by closures.
pub trait TraceSink: Send + Sync {
    /// Takes note of `views`, which the program calls `key`.
    fn trace(&self, key: &str, views: &[&BufferView]);
}

impl<F: Fn(&str, &[&BufferView]) + Send + Sync> TraceSink for F {
    fn trace(&self, key: &str, views: &[&BufferView]) {
        self(key, views);
    }
}

/// Returns the `hal_inline` module.
///
/// Contexts that link the module share nothing but `trace_sink`, which is told of traced tensors; without one, traces
/// are dropped. Each context has a [`BufferPool`] of its own: memory of a buffer that is gone is used again, as it was
/// left, for the next one of the same size. [`vm::Signal::Suspend`] and [`vm::Signal::LowMemory`] free what the pool keeps.
#[must_use]
#[expect(
    clippy::missing_panics_doc,
    reason = "the module is made of constants and always builds"
)]
pub fn module(trace_sink: Option<Arc<dyn TraceSink>>) -> Arc<dyn Module> {
    let module = NativeModule::builder_with_state("hal_inline", VERSION, BufferPool::new)
        .on_signal(trim)
        .ref_type(&HAL_BUFFER_TYPE)
        .ref_type(&BUFFER_VIEW_TYPE);
    let module = with_buffers(module);
    let module = with_buffer_views(module, trace_sink)
        .raw_function("device.query.i64", "0rr_iI", query_i64)
        .build();
    module.expect("the conventions are constants that parse, each with its own name")
}

fn with_buffers(module: NativeModuleBuilder<BufferPool>) -> NativeModuleBuilder<BufferPool> {
    module
        .raw_function("buffer.allocate", "0iI_rr", buffer::allocate)
        .raw_function(
            "buffer.allocate.initialized",
            "0irII_rr",
            buffer::allocate_initialized,
        )
        .raw_function("buffer.length", "0r_I", buffer::length)
        .ref_function("buffer.storage", buffer::storage)
        .raw_function("buffer.subspan", "0rII_r", buffer::subspan)
        .raw_function("buffer.wrap", "0rII_r", buffer::wrap)
}

fn with_buffer_views(
    module: NativeModuleBuilder<BufferPool>,
    trace_sink: Option<Arc<dyn TraceSink>>,
) -> NativeModuleBuilder<BufferPool> {
    module
        .function_with_sites(
            "buffer_view.assert",
            "0rriiCID_v",
            view_functions::assert,
            view_functions::assert_site,
        )
        .ref_function("buffer_view.buffer", view_functions::buffer)
        .raw_function("buffer_view.create", "0rIIiiCID_r", view_functions::create)
        .raw_function("buffer_view.dim", "0ri_I", view_functions::dim)
        .raw_function(
            "buffer_view.element_type",
            "0r_i",
            view_functions::element_type,
        )
        .raw_function(
            "buffer_view.encoding_type",
            "0r_i",
            view_functions::encoding_type,
        )
        .raw_function("buffer_view.rank", "0r_i", view_functions::rank)
        .raw_function(
            "buffer_view.trace",
            "0rCrD_v",
            move |_: &BufferPool, call| view_functions::trace(trace_sink.as_deref(), call),
        )
}

/// Frees memory that no buffer uses when it may be wanted elsewhere.
fn trim(pool: &BufferPool, signal: Signal) {
    match signal {
        Signal::Suspend | Signal::LowMemory => pool.trim(),
        Signal::Resume => {}
    }
}

/// `device.query.i64`, `0rr_iI`: category and key to whether the fact is known, and its value.
fn query_i64(_pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let category = bytes(arguments.buffer()?);
    let key = bytes(arguments.buffer()?);
    let fact = device::query(&category, &key);
    call.results.push_i32(i32::from(fact.is_some()));
    call.results.push_i64(fact.unwrap_or(0));
    Ok(())
}

/// Returns the bytes of a buffer, copied only if they could change.
fn bytes(buffer: &Buffer) -> Cow<'_, [u8]> {
    match buffer.as_constant() {
        Some(bytes) => Cow::Borrowed(bytes),
        None => Cow::Owned(buffer.to_vec()),
    }
}
