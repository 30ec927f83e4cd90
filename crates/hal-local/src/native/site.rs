//! Dispatching again and again from one place: [`DispatchSite`].
//!
//! Holds what is kept between the dispatches of a place and the call of a kernel that it is kept for. Checking a dispatch
//! that the place is not prepared for is the affair of [`Dispatch`]. Facts: `docs/abi.md`, section 7.

#![expect(unsafe_code, reason = "a kernel is a foreign function")]

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::hint::black_box;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hal_abi::{DispatchFn, DispatchState, WorkgroupState};

use super::NativeExecutable;
use super::call::{dispatch_state, workgroup_state};
use super::environment::Aligned;
use crate::binding::{BindingSource, KernelBindings};
use crate::dispatch::has_listener;
use crate::{Binding, Dispatch, DispatchError, Dispatcher, Executable};

/// One place that dispatches again and again, with what it dispatched last.
///
/// Most places of a program always dispatch the same function, with other bindings. The site keeps what a native kernel is
/// given besides those, and what they are checked against: to repeat a dispatch with other bindings costs their checks and
/// the call. Any other dispatch is checked by [`Dispatch`] and run by the dispatcher. Results and errors are the same.
///
/// A site keeps no executable loaded, and allocates only to prepare for a function that it did not dispatch last.
pub struct DispatchSite {
    dispatcher: Arc<dyn Dispatcher>,
    last: Option<Prepared>,
}

/// A loaded executable, shared, with a number that tells it from all others, also from those that are gone.
///
/// Clones have the same number.
#[derive(Clone)]
pub struct ExecutableHandle {
    executable: Arc<dyn Executable>,
    id: u64,
}

/// What a [`DispatchSite`] is asked to run, besides the bindings.
#[derive(Clone, Copy)]
pub struct DispatchRequest<'a> {
    /// The executable.
    pub executable: &'a ExecutableHandle,
    /// Which of its functions: its ordinal.
    pub function: u64,
    /// Workgroup counts in x, y and z.
    pub workgroup_count: [u32; 3],
    /// The constants.
    pub constants: &'a [u32],
}

/// Why a dispatch did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum DispatchRequestError<E> {
    /// A binding could not be had.
    #[error("binding {index} cannot be had")]
    Binding {
        /// Its index.
        index: usize,
        /// Why.
        #[source]
        error: E,
    },
    /// The dispatch is wrong, or failed.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
}

/// A kernel with all that it is given, for dispatches of one workgroup without scratch memory.
///
/// Invariant: `entry` and `environment` are those of `function` of the executable whose handle has the number `executable`,
/// and may be used as long as that lives. `dispatch_state` is that of a dispatch which was checked for the function, and says
/// that there are as many bindings as `addresses` and `lengths` have entries. Those entries and the state's pointers are left
/// from the last dispatch: each call writes them first.
struct Prepared {
    executable: u64,
    function: u64,
    entry: DispatchFn,
    environment: *const hal_abi::Environment,
    dispatch_state: Aligned<DispatchState>,
    workgroup_state: Aligned<WorkgroupState>,
    /// The bits that must not be set in the address of a binding.
    misalignment: usize,
    addresses: Box<[*mut c_void]>,
    lengths: Box<[usize]>,
}

// SAFETY: only the raw pointers are in the way. `environment` may be used from any thread, as the executable, which is
// `Sync`, may; all others are written anew, by whoever has `self` exclusively, before they are used.
unsafe impl Send for Prepared {}

impl ExecutableHandle {
    /// Returns a handle with a number of its own.
    #[must_use]
    pub fn new(executable: Arc<dyn Executable>) -> Self {
        static HANDLES: AtomicU64 = AtomicU64::new(0);
        Self {
            executable,
            id: HANDLES.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Returns the executable.
    #[must_use]
    #[inline]
    pub fn executable(&self) -> &Arc<dyn Executable> {
        &self.executable
    }
}

impl DispatchSite {
    /// Returns a site whose dispatches `dispatcher` runs.
    #[must_use]
    pub fn new(dispatcher: Arc<dyn Dispatcher>) -> Self {
        Self {
            dispatcher,
            last: None,
        }
    }

    /// Runs a dispatch that is like the last one: of the same function of the same executable, on one workgroup, with as many
    /// constants and bindings, all of which can be had and are aligned. `None` when it is another one or cannot be repeated,
    /// or somebody listens to spans; nothing was run then, and [`DispatchSite::dispatch`] takes it.
    ///
    /// # Errors
    ///
    /// Fails as the kernel does.
    #[inline(always)]
    pub fn repeat<'a>(
        &mut self,
        request: DispatchRequest<'a>,
        bindings: impl ExactSizeIterator<Item = Option<Binding<'a>>>,
    ) -> Option<Result<(), DispatchError>> {
        match self.last.as_mut()?.call(&request, bindings)? {
            0 => Some(Ok(())),
            code => {
                let executable = &*request.executable.executable;
                Some(Err(kernel_failed(executable, request.function, code)))
            }
        }
    }

    /// Runs any dispatch to its end, and prepares to repeat it, if it is one workgroup of a native kernel.
    ///
    /// # Errors
    ///
    /// As [`DispatchRequest::run`].
    pub fn dispatch<'a, E, B>(
        &mut self,
        request: DispatchRequest<'a>,
        bindings: B,
    ) -> Result<(), DispatchRequestError<E>>
    where
        B: ExactSizeIterator<Item = Result<Binding<'a>, E>> + Clone + Sync,
    {
        let (dispatcher, last) = (&*self.dispatcher, &mut self.last);
        request.run_and(dispatcher, bindings, |dispatch, bindings| {
            let is_known = |last: &Prepared| last.is_like(&request, bindings.count());
            if request.workgroup_count == [1; 3]
                && !last.as_ref().is_some_and(is_known)
                && let Some(prepared) = Prepared::new(&request, dispatch, bindings, dispatcher)
            {
                *last = Some(prepared);
            }
        })
    }
}

impl<'a> DispatchRequest<'a> {
    /// Has `dispatcher` run the dispatch with these bindings to its end.
    ///
    /// Clones of the iterator must give the same bindings: executables that are not native code ask them for one binding
    /// at a time.
    ///
    /// # Errors
    ///
    /// Fails as the first binding that cannot be had, as [`Dispatch::new`], and as [`Dispatcher::dispatch`].
    pub fn run<E, B>(
        self,
        dispatcher: &dyn Dispatcher,
        bindings: B,
    ) -> Result<(), DispatchRequestError<E>>
    where
        B: ExactSizeIterator<Item = Result<Binding<'a>, E>> + Clone + Sync,
    {
        self.run_and(dispatcher, bindings, |_, _| {})
    }

    /// Runs the dispatch, and calls `then` with it if it succeeded.
    fn run_and<E, B>(
        self,
        dispatcher: &dyn Dispatcher,
        bindings: B,
        then: impl FnOnce(&Dispatch<'_>, &KernelBindings<'_>),
    ) -> Result<(), DispatchRequestError<E>>
    where
        B: ExactSizeIterator<Item = Result<Binding<'a>, E>> + Clone + Sync,
    {
        let source = Listed(bindings.clone(), PhantomData);
        let mut kernel_bindings = KernelBindings::new(&source);
        kernel_bindings
            .try_fill(bindings)
            .map_err(|(index, error)| DispatchRequestError::Binding { index, error })?;
        let executable = &*self.executable.executable;
        let dispatch = Dispatch::prepared(
            executable,
            self.function,
            self.workgroup_count,
            self.constants,
            &kernel_bindings,
        )?;
        dispatcher.dispatch(executable, &dispatch)?;
        then(&dispatch, &kernel_bindings);
        Ok(())
    }
}

impl Prepared {
    /// Prepares for more dispatches like `dispatch`, which was made for `request`; `None` when they need more than a call.
    fn new(
        request: &DispatchRequest<'_>,
        dispatch: &Dispatch<'_>,
        bindings: &KernelBindings<'_>,
        dispatcher: &dyn Dispatcher,
    ) -> Option<Self> {
        let worker = dispatcher.caller()?;
        let attributes = dispatch.export().attributes();
        if worker.denormals().are_flushed() || attributes.local_memory_byte_length != 0 {
            return None;
        }
        let native =
            (&*request.executable.executable as &dyn Any).downcast_ref::<NativeExecutable>()?;
        let entry = native.library.kernel(dispatch.export())?;
        Some(Self {
            function: request.function,
            entry,
            environment: native.environment.as_ptr(),
            dispatch_state: dispatch_state(dispatch, bindings, &worker),
            workgroup_state: workgroup_state(&worker, ptr::null_mut(), 0),
            misalignment: attributes.binding_alignment - 1,
            addresses: vec![ptr::null_mut(); bindings.count()].into(),
            lengths: vec![0; bindings.count()].into(),
            executable: request.executable.id,
        })
    }

    /// Returns whether a dispatch is of the same function, with as many constants and bindings.
    #[inline(always)]
    fn is_like(&self, request: &DispatchRequest<'_>, binding_count: usize) -> bool {
        self.executable == request.executable.id
            && self.function == request.function
            && request.constants.len() == usize::from(self.dispatch_state.0.constant_count)
            && binding_count == self.addresses.len()
    }

    /// Calls the kernel and returns what it returned; `None` when this is no kernel for such a dispatch.
    #[inline(always)]
    fn call<'a>(
        &mut self,
        request: &DispatchRequest<'a>,
        bindings: impl ExactSizeIterator<Item = Option<Binding<'a>>>,
    ) -> Option<c_int> {
        let [x, y, z] = request.workgroup_count;
        let is_one = x == 1 && y == 1 && z == 1;
        if !is_one || !self.is_like(request, bindings.len()) || has_listener() {
            return None;
        }
        let (mut count, mut address_bits) = (0, 0);
        let slots = self.addresses.iter_mut().zip(&mut self.lengths);
        for ((address, length), binding) in slots.zip(bindings) {
            let binding = binding?;
            let start = binding.as_ptr();
            *address = start.cast();
            *length = binding.byte_length();
            address_bits |= start.addr();
            count += 1;
        }
        // Counted: what an iterator says of its length may be wrong.
        if count != self.addresses.len() || address_bits & self.misalignment != 0 {
            return None;
        }
        let pointers = &mut self.dispatch_state.0;
        pointers.constants = request.constants.as_ptr();
        pointers.binding_ptrs = self.addresses.as_ptr();
        pointers.binding_lengths = self.lengths.as_ptr();
        let dispatch_state = &raw const self.dispatch_state.0;
        let workgroup_state = &raw const self.workgroup_state.0;
        let kernel = || {
            // SAFETY: `request` borrows the executable that this was prepared for, so by the type's invariant its code is
            // mapped and its environment may be used. The structures are what the kernel expects: both are aligned to 16
            // bytes and borrowed for the call, the constants are as many as the state says, all bindings were written just
            // now, are aligned as the function wants, and live as long as `request`. That a kernel keeps to its ABI is what
            // `Trust` promised.
            unsafe { (self.entry)(self.environment, dispatch_state, workgroup_state) }
        };
        // Two calls, one for even functions and one for odd ones: a processor guesses where a call goes by where it went, and
        // functions that take turns are often neighbors. `black_box` only keeps the compiler from making them one.
        Some(if self.function.is_multiple_of(2) {
            black_box(());
            kernel()
        } else {
            let code = kernel();
            black_box(());
            code
        })
    }
}

/// Bindings that are asked for one by one, and live as long as `'a`.
struct Listed<'a, B>(B, PhantomData<&'a ()>);

impl<'a, B, E> BindingSource for Listed<'a, B>
where
    B: Iterator<Item = Result<Binding<'a>, E>> + Clone + Sync,
{
    fn binding(&self, index: usize) -> Option<Binding<'_>> {
        self.0.clone().nth(index)?.ok()
    }
}

#[cold]
fn kernel_failed(executable: &dyn Executable, function: u64, code: c_int) -> DispatchError {
    let ordinal = usize::try_from(function).ok();
    match ordinal.and_then(|ordinal| executable.exports().get(ordinal)) {
        Some(export) => DispatchError::kernel_failed(export, [0; 3], code),
        None => DispatchError::id_out_of_range(function, executable),
    }
}

impl fmt::Debug for ExecutableHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutableHandle")
            .field("id", &self.id)
            .field("export_count", &self.executable.export_count())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for DispatchRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DispatchRequest")
            .field("function", &self.function)
            .field("workgroup_count", &self.workgroup_count)
            .field("constants", &self.constants)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for DispatchSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DispatchSite")
            .field("function", &self.last.as_ref().map(|last| last.function))
            .finish_non_exhaustive()
    }
}
