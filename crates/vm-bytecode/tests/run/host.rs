//! The native module `host`, whose functions the fixture `imports` calls, and what the tests see of it.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use vm::{
    ArgumentWriter, Atom, Call, ImportTarget, InterruptHandle, Module, NativeModule, Object, Ref,
    RefType, Result, Results, StatusCode, Trap, Value,
};

/// The type of tokens.
pub(crate) static TOKEN_TYPE: RefType = RefType::new("test.token");

/// An object that is counted while it lives.
#[derive(Debug)]
struct Token(Arc<AtomicUsize>);

impl Object for Token {
    fn ref_type(&self) -> &'static RefType {
        &TOKEN_TYPE
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the functions of the module share with the test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    alive: Arc<AtomicUsize>,
    made: Arc<AtomicUsize>,
    interrupt: Arc<Mutex<Option<InterruptHandle>>>,
    notes: Arc<Mutex<Vec<i32>>>,
    callbacks: Arc<Mutex<Vec<ImportTarget>>>,
}

impl Host {
    /// Returns the number of tokens that are still held.
    pub(crate) fn tokens_alive(&self) -> usize {
        self.alive.load(Ordering::Relaxed)
    }

    /// Returns the number of tokens that were ever made.
    pub(crate) fn tokens_made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// Lets `host.interrupt` stop what the handle stops.
    pub(crate) fn interrupt_through(&self, handle: InterruptHandle) {
        *self.interrupt.lock().unwrap() = Some(handle);
    }

    /// Takes what was noted since the last time.
    pub(crate) fn take_notes(&self) -> Vec<i32> {
        std::mem::take(&mut self.notes.lock().unwrap())
    }

    /// Sets the functions that `host.call_back` may call, by the index it is given.
    pub(crate) fn set_callbacks(&self, callbacks: Vec<ImportTarget>) {
        *self.callbacks.lock().unwrap() = callbacks;
    }

    fn token(&self) -> Ref {
        self.alive.fetch_add(1, Ordering::Relaxed);
        self.made.fetch_add(1, Ordering::Relaxed);
        Ref::object(Arc::new(Token(Arc::clone(&self.alive))))
    }

    fn interrupt(&self) {
        if let Some(handle) = &*self.interrupt.lock().unwrap() {
            handle.interrupt();
        }
    }

    /// Builds the module. Its state in a context is the number of answers that are still to be deferred.
    pub(crate) fn module(&self) -> Arc<dyn Module> {
        let host = || self.clone();
        let (token, tokens, interrupt, note, deferred, call_back) =
            (host(), host(), host(), host(), host(), host());
        NativeModule::builder_with_state("host", 0, || Cell::new(0))
            .ref_type(&TOKEN_TYPE)
            .function("add", |_: &Cell<i32>, a: i32, b: i32| {
                Ok((a.wrapping_add(b),))
            })
            .function(
                "mixed",
                |_: &Cell<i32>, a: i32, b: i64, c: f32, d: f64, e: Ref| Ok((e, d, c, b, a)),
            )
            .raw_function("spans", "0iCiDCrIID_I", |_, call| spans(call))
            .raw_function("deferred", "0i_i", move |left, call| {
                deferred_times(&deferred, left, call)
            })
            .raw_function("deferred_spans", "0rCIDCfD_If", deferred_spans)
            .function("fails", |_: &Cell<i32>, status: i32| {
                let code = StatusCode::from_low_bits(status.cast_unsigned());
                Err::<(), _>(Trap::new(code, "as the argument says"))
            })
            .function("token", move |_: &Cell<i32>| Ok((token.token(),)))
            .function("tokens", move |_: &Cell<i32>| {
                Ok((i32::try_from(tokens.tokens_alive()).unwrap_or(i32::MAX),))
            })
            .function("pass", |_: &Cell<i32>, value: Ref| Ok((value,)))
            .raw_function("owners", "0r_i", |_, call| owners(call))
            .raw_function("owners_of_two", "0rr_i", |_, call| owners(call))
            .raw_function("call_back", "0ii_i", move |_, call| {
                call_back_in(&call_back, call)
            })
            .function("interrupt", move |_: &Cell<i32>| {
                interrupt.interrupt();
                Ok(())
            })
            .function("note", move |_: &Cell<i32>, value: i32| {
                note.notes.lock().unwrap().push(value);
                Ok(())
            })
            .build()
            .unwrap()
    }
}

/// Returns how many refs there are to the buffer that is the first argument.
fn owners(call: &mut Call<'_, '_>) -> Result<()> {
    let count = Arc::strong_count(call.arguments.reader().buffer()?);
    call.results
        .push_i32(i32::try_from(count).unwrap_or(i32::MAX));
    Ok(())
}

/// Returns 1000 times the fixed argument, and the sum over all tuples with the length of each buffer.
fn spans(call: &mut Call<'_, '_>) -> Result<()> {
    const BINDING: [Atom; 3] = [Atom::Ref, Atom::I64, Atom::I64];
    let mut reader = call.arguments.reader();
    let mut sum = i64::from(reader.i32()?).wrapping_mul(1000);
    for _ in 0..reader.span(&[Atom::I32])? {
        sum = sum.wrapping_add(reader.i32()?.into());
    }
    for _ in 0..reader.span(&BINDING)? {
        let length = i64::try_from(reader.buffer()?.length()).unwrap();
        for number in [length, reader.i64()?, reader.i64()?] {
            sum = sum.wrapping_add(number);
        }
    }
    reader.finish()?;
    call.results.push_i64(sum);
    Ok(())
}

/// Answers `DEFERRED` as often as the argument says, then returns it. A negative number is never done, and asks for an
/// interrupt.
fn deferred_times(host: &Host, left: &Cell<i32>, call: &mut Call<'_, '_>) -> Result<()> {
    let times = call.arguments.reader().i32()?;
    if !call.resuming {
        left.set(times);
    }
    if left.get() == 0 {
        call.results.push_i32(times);
        return Ok(());
    }
    if left.get() < 0 {
        host.interrupt();
    } else {
        left.set(left.get() - 1);
    }
    // Results of a call that is not done do not count.
    call.results.push_i32(-1);
    Err(Trap::new(StatusCode::DEFERRED, "not done"))
}

/// Answers `DEFERRED` once, then returns the sums of the two spans. The ref must be there both times.
fn deferred_spans(_: &Cell<i32>, call: &mut Call<'_, '_>) -> Result<()> {
    let mut reader = call.arguments.reader();
    reader.buffer()?;
    let (mut integers, mut floats) = (0, 0.0);
    for _ in 0..reader.span(&[Atom::I64])? {
        integers = reader.i64()?.wrapping_add(integers);
    }
    for _ in 0..reader.span(&[Atom::F32])? {
        floats += reader.f32()?;
    }
    if !call.resuming {
        return Err(Trap::new(StatusCode::DEFERRED, "not done"));
    }
    call.results.push_i64(integers);
    call.results.push_f32(floats);
    Ok(())
}

/// Calls the function of an index with the first argument and returns its result.
fn call_back_in(host: &Host, call: &mut Call<'_, '_>) -> Result<()> {
    let mut reader = call.arguments.reader();
    let (value, which) = (reader.i32()?, reader.i32()?);
    let target = usize::try_from(which)
        .ok()
        .and_then(|which| host.callbacks.lock().unwrap().get(which).copied())
        .ok_or_else(|| Trap::invalid_argument("no such callback"))?;
    let mut arguments = ArgumentWriter::new();
    arguments.push(Value::I32(value));
    let mut results = Results::new();
    call.invocation
        .call(target, arguments.block(), &mut results)?;
    call.results.push_i32(results.words()[0].cast_signed());
    Ok(())
}
