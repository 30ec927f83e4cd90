//! Contexts: modules linked together, with their state, ready to be called.

use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use crate::module::RefTypes;
use crate::{
    ArgumentBlock, ArgumentWriter, Call, CallShape, CallSite, CallingConvention, Export, Import,
    ImportTarget, Instance, Linkage, Module, PreparedCall, Ref, Result, Results, Signal,
    StatusCode, Trap, Value,
};

/// How deep calls may nest from module to module and through native functions that call back in.
///
/// A call of a bytecode module from outside counts, and one that a native function makes; calls inside a bytecode module do
/// not: they have a stack of their own. Each level here uses the thread's stack, which this keeps from overflowing.
pub const MAX_CALL_DEPTH: u32 = 64;

/// Modules linked together and their state.
///
/// Used by one thread at a time; may move to another between calls. Modules are shared with other contexts.
pub struct Context {
    /// Tells contexts of a process apart.
    id: u64,
    instances: Vec<Box<dyn Instance>>,
    modules: Vec<Arc<dyn Module>>,
    interrupt: InterruptHandle,
    /// Instructions that each call of a module's initializer, finalizer or handler of signals may run.
    lifecycle_fuel: Option<u64>,
    /// Block and results of the last call, for the next one. A call that comes while one runs makes its own.
    idle_scratch: Cell<Option<Box<Scratch>>>,
}

#[derive(Default)]
struct Scratch {
    arguments: ArgumentWriter,
    results: Results,
}

/// A function of a module of a context, looked up once and called often.
#[derive(Clone, Debug)]
pub struct Function {
    /// The context it was looked up in.
    context: u64,
    target: ImportTarget,
    export: Export,
}

/// Stops the programs of a context from another thread.
///
/// Cheap to clone. A stopped program fails with `CANCELLED` at its next branch backwards or call; native kernels run
/// to their end.
#[derive(Clone, Debug, Default)]
pub struct InterruptHandle(Arc<AtomicBool>);

/// What all calls of one invocation share: the instances of the context and the limits.
pub struct Invocation<'a> {
    instances: &'a [Box<dyn Instance>],
    interrupt: &'a AtomicBool,
    fuel: Option<Cell<u64>>,
    depth: Cell<u32>,
    tracer: Option<&'a dyn Tracer>,
}

/// How an invocation is limited and watched. The default is neither.
#[derive(Clone, Copy, Default)]
pub struct InvocationOptions<'a> {
    /// The most bytecode instructions to run; when they are used up, the program fails with `DEADLINE_EXCEEDED`.
    pub fuel: Option<u64>,
    /// Is told of every instruction before it runs.
    pub tracer: Option<&'a dyn Tracer>,
}

/// Is told of every bytecode instruction before it runs.
pub trait Tracer {
    /// Takes note of the instruction at `offset` in the body of the function `ordinal` of `module`.
    fn instruction(&self, module: &str, ordinal: u32, offset: u32);
}

/// Links modules into a [`Context`].
#[derive(Debug, Default)]
pub struct ContextBuilder {
    modules: Vec<Arc<dyn Module>>,
    interrupt: InterruptHandle,
    lifecycle_fuel: Option<u64>,
}

impl ContextBuilder {
    /// Adds a module after those it depends on. When two have the same name, later imports find the newer one.
    #[must_use]
    pub fn module(mut self, module: Arc<dyn Module>) -> Self {
        self.modules.push(module);
        self
    }

    /// Lets `handle` stop the programs of the context, as well as those of other contexts it was given to.
    #[must_use]
    pub fn interrupt_handle(mut self, handle: InterruptHandle) -> Self {
        self.interrupt = handle;
        self
    }

    /// Lets each call of an initializer, a finalizer or a handler of signals run at most `instructions`, as
    /// [`InvocationOptions::fuel`] does for other calls. Without it they run as long as they like.
    #[must_use]
    pub fn lifecycle_fuel(mut self, instructions: u64) -> Self {
        self.lifecycle_fuel = Some(instructions);
        self
    }

    /// Links the modules and runs their initializers, in the order they were added.
    ///
    /// # Errors
    /// `NOT_FOUND` when a required dependency or import is missing or a dependency is too old, `INTERNAL` when an
    /// import and an export differ in their calling convention, and as the initializers fail.
    pub fn build(self) -> Result<Context> {
        static CONTEXTS: AtomicU64 = AtomicU64::new(0);
        let mut context = Context {
            id: CONTEXTS.fetch_add(1, Ordering::Relaxed),
            instances: Vec::with_capacity(self.modules.len()),
            modules: Vec::with_capacity(self.modules.len()),
            interrupt: self.interrupt,
            lifecycle_fuel: self.lifecycle_fuel,
            idle_scratch: Cell::new(None),
        };
        let mut types = RefTypes::builtin();
        for module in &self.modules {
            types.extend(module.ref_types());
        }
        for module in self.modules {
            #[cfg(feature = "tracing")]
            let _span = tracing::debug_span!("link", module = module.name()).entered();
            check_dependencies(&*module, &context.modules)?;
            let imports = module
                .imports()
                .iter()
                .map(|import| bind(&*module, import, &context.modules))
                .collect::<Result<_>>()?;
            let instance = Arc::clone(&module).instantiate(Linkage {
                imports,
                types: &types,
            })?;
            context.modules.push(module);
            context.instances.push(instance);
            let invocation = context.lifecycle_invocation();
            if let Some(instance) = context.instances.last() {
                instance.initialize(&invocation)?;
            }
        }
        Ok(context)
    }
}

fn check_dependencies(module: &dyn Module, registered: &[Arc<dyn Module>]) -> Result<()> {
    for dependency in module
        .dependencies()
        .iter()
        .filter(|dependency| !dependency.optional)
    {
        let found = registered
            .iter()
            .rev()
            .find(|candidate| candidate.name() == &*dependency.name);
        let Some(found) = found else {
            return Err(Trap::new(
                StatusCode::NOT_FOUND,
                format!(
                    "module '{}' requires module '{}', which is not there",
                    module.name(),
                    dependency.name
                ),
            ));
        };
        if found.version() < dependency.minimum_version {
            return Err(Trap::new(
                StatusCode::NOT_FOUND,
                format!(
                    "required module '{}' version mismatch; have {} but module '{}' requires {}",
                    dependency.name,
                    found.version(),
                    module.name(),
                    dependency.minimum_version
                ),
            ));
        }
    }
    Ok(())
}

/// Finds the export that an import names, in the newest module of that name that has it.
fn bind(
    importer: &dyn Module,
    import: &Import,
    registered: &[Arc<dyn Module>],
) -> Result<Option<ImportTarget>> {
    let (module_name, function) = import
        .full_name
        .split_once('.')
        .unwrap_or((&import.full_name, ""));
    let mut mismatch = None;
    for (instance, module) in registered
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, module)| module.name() == module_name)
    {
        let exports = (0u32..)
            .zip(module.exports())
            .filter(|(_, export)| &*export.name == function);
        for (ordinal, export) in exports {
            match &import.convention {
                Some(convention) if *convention != export.convention => {
                    mismatch = Some(&export.convention)
                }
                _ => return Ok(Some(ImportTarget { instance, ordinal })),
            }
        }
        if mismatch.is_some() {
            break;
        }
    }
    if let (Some(found), Some(expected)) = (mismatch, &import.convention) {
        return Err(Trap::new(
            StatusCode::INTERNAL,
            format!(
                "import function {} signature mismatch between module '{}' and source '{module_name}'; \
                 expected {expected} but got {found}",
                import.full_name,
                importer.name()
            ),
        ));
    }
    if import.optional {
        return Ok(None);
    }
    Err(Trap::new(
        StatusCode::NOT_FOUND,
        format!(
            "required import `{}` of module '{}' was not found",
            import.full_name,
            importer.name()
        ),
    ))
}

impl Context {
    /// Returns a builder.
    #[must_use]
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// Returns the modules, in the order they were added.
    #[must_use]
    pub fn modules(&self) -> &[Arc<dyn Module>] {
        &self.modules
    }

    /// Returns a handle that stops the context's programs.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.interrupt.clone()
    }

    /// Returns the function `function` of the newest module named `module` that has it.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such module or function.
    pub fn lookup(&self, module: &str, function: &str) -> Result<Function> {
        let named = self
            .modules
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, candidate)| candidate.name() == module);
        for (instance, candidate) in named {
            if let Some(ordinal) = candidate.lookup(function)
                && let Some(export) = candidate.exports().get(ordinal as usize)
            {
                let target = ImportTarget { instance, ordinal };
                return Ok(Function {
                    context: self.id,
                    target,
                    export: export.clone(),
                });
            }
        }
        Err(Trap::new(
            StatusCode::NOT_FOUND,
            format!("no function `{function}` exported by module '{module}'"),
        ))
    }

    /// Calls `function`, which was looked up in this context, with `arguments` and returns its results.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the arguments do not fit the calling convention or the function is of another context,
    /// and as the function fails.
    pub fn invoke(
        &self,
        function: &Function,
        arguments: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<Value>> {
        self.invoke_with(function, arguments, InvocationOptions::default())
    }

    /// Calls as [`Context::invoke`], limited and watched as `options` say.
    ///
    /// # Errors
    /// As [`Context::invoke`]; `DEADLINE_EXCEEDED` when the fuel is used up, `CANCELLED` after an interrupt.
    pub fn invoke_with(
        &self,
        function: &Function,
        arguments: impl IntoIterator<Item = Value>,
        options: InvocationOptions<'_>,
    ) -> Result<Vec<Value>> {
        function.in_span(|| self.invoke_in_span(function, arguments, options))
    }

    fn invoke_in_span(
        &self,
        function: &Function,
        arguments: impl IntoIterator<Item = Value>,
        options: InvocationOptions<'_>,
    ) -> Result<Vec<Value>> {
        let mut scratch = self.idle_scratch.take().unwrap_or_default();
        scratch.results.clear();
        let values = scratch
            .arguments
            .push_arguments(&function.export.convention, &[], arguments)
            .and_then(|()| {
                let arguments = scratch.arguments.block();
                self.call(function, arguments, &mut scratch.results, options)
            })
            .and_then(|()| scratch.results.take_values(&function.export.convention));
        // The arguments are the function's no longer; a caller may want its tensors back.
        scratch.arguments.clear();
        self.idle_scratch.set(Some(scratch));
        values
    }

    /// Calls `function`, which was looked up in this context, with a block that the caller laid out by its calling
    /// convention; the results are appended to `results`. Unlike [`Context::invoke`] it can pass spans.
    ///
    /// # Errors
    /// As the function fails, also when the block does not fit its convention, and `INVALID_ARGUMENT` when the
    /// function is of another context.
    pub fn call(
        &self,
        function: &Function,
        arguments: ArgumentBlock<'_>,
        results: &mut Results,
        options: InvocationOptions<'_>,
    ) -> Result<()> {
        if function.context != self.id {
            return Err(foreign());
        }
        self.invocation(options)
            .call(function.target, arguments, results)
    }

    /// Calls `function`, which was looked up in this context, with the arguments of `call`, which was prepared for it,
    /// and returns its results. Of the ways to call a function often this is the fastest.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the call was prepared for a function of another calling convention, and as
    /// [`Context::invoke_with`].
    #[inline]
    pub fn call_prepared<'c>(
        &self,
        function: &Function,
        call: &'c mut PreparedCall,
        options: InvocationOptions<'_>,
    ) -> Result<impl ExactSizeIterator<Item = Value> + use<'c>> {
        let outcome = match call.fits(&function.export.convention) {
            _ if function.context != self.id => Err(foreign()),
            true => function.in_span(|| {
                self.invocation(options)
                    .call_prepared(function.target, call)
            }),
            false => Err(other_convention(function)),
        };
        match outcome {
            Ok(()) => Ok(call.take_results()),
            Err(trap) => {
                call.release_refs();
                Err(trap)
            }
        }
    }

    /// Tells all modules of an event: in the order they were added for [`Signal::Resume`], else in reverse.
    ///
    /// # Errors
    /// Fails as the first handler that fails; later ones are not told.
    pub fn notify(&self, signal: Signal) -> Result<()> {
        let invocation = self.lifecycle_invocation();
        match signal {
            Signal::Resume => self
                .instances
                .iter()
                .try_for_each(|instance| instance.notify(signal, &invocation)),
            Signal::Suspend | Signal::LowMemory => self
                .instances
                .iter()
                .rev()
                .try_for_each(|instance| instance.notify(signal, &invocation)),
        }
    }

    /// Returns the invocation of a call that the runtime makes by itself.
    fn lifecycle_invocation(&self) -> Invocation<'_> {
        self.invocation(InvocationOptions {
            fuel: self.lifecycle_fuel,
            tracer: None,
        })
    }

    fn invocation<'a>(&'a self, options: InvocationOptions<'a>) -> Invocation<'a> {
        Invocation {
            instances: &self.instances,
            interrupt: &self.interrupt.0,
            fuel: options.fuel.map(Cell::new),
            depth: Cell::new(0),
            tracer: options.tracer,
        }
    }
}

impl Drop for Context {
    /// Runs the finalizers in reverse order. A finalizer that fails does not keep the others from running.
    fn drop(&mut self) {
        while let Some(instance) = self.instances.pop() {
            let invocation = self.lifecycle_invocation();
            // There is nobody left to tell: the state is gone either way.
            let _ = instance.deinitialize(&invocation);
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("modules", &self.modules)
            .finish_non_exhaustive()
    }
}

impl Function {
    /// Returns the name, without the module's.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.export.name
    }

    /// Returns the types of the arguments and results.
    #[must_use]
    pub fn convention(&self) -> &CallingConvention {
        &self.export.convention
    }

    /// Returns the types of the arguments and results, to be kept.
    pub(crate) fn shared_convention(&self) -> &Arc<CallingConvention> {
        &self.export.convention
    }

    /// Returns the value of the reflection attribute `key`, such as `iree.abi.declaration`.
    #[must_use]
    pub fn attribute(&self, key: &str) -> Option<&str> {
        self.export.attribute(key)
    }

    /// Does `work` in the span of a call. When nobody listens, this is one comparison.
    #[inline(always)]
    fn in_span<T>(&self, work: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing")]
        if tracing::level_filters::LevelFilter::current() >= tracing::Level::DEBUG {
            return self.in_entered_span(work);
        }
        work()
    }

    #[cfg(feature = "tracing")]
    #[cold]
    fn in_entered_span<T>(&self, work: impl FnOnce() -> T) -> T {
        tracing::debug_span!("invoke", function = self.name()).in_scope(work)
    }
}

impl InterruptHandle {
    /// Stops running and later programs of the context, until [`InterruptHandle::reset`].
    pub fn interrupt(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lets programs run again.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl<'a> Invocation<'a> {
    /// Calls an export of an instance of the context.
    ///
    /// # Errors
    /// Fails as the function does; `RESOURCE_EXHAUSTED` when calls nest deeper than [`MAX_CALL_DEPTH`].
    #[inline]
    pub fn call(
        &self,
        target: ImportTarget,
        arguments: ArgumentBlock<'_>,
        results: &mut Results,
    ) -> Result<()> {
        self.nest(|| self.call_or_resume(target, arguments, results, false))
    }

    /// Calls as [`Invocation::call`], without counting how deep calls nest, which a module that calls imports does for
    /// itself with [`Invocation::nest`]; `resuming` tells the callee that it answered `DEFERRED` before.
    ///
    /// # Errors
    /// Fails as the function does.
    #[inline]
    pub fn call_or_resume(
        &self,
        target: ImportTarget,
        arguments: ArgumentBlock<'_>,
        results: &mut Results,
        resuming: bool,
    ) -> Result<()> {
        let mut call = Call {
            arguments,
            results,
            invocation: self,
            resuming,
        };
        self.instance(target)?.call(target.ordinal, &mut call)
    }

    /// Calls an export of an instance of the context whose calling convention is `0r_r`: `value` is its argument, and then
    /// its result. How deep calls nest is not counted, as by [`Invocation::call_or_resume`]: the caller does.
    ///
    /// # Errors
    /// Fails as the function does; `INTERNAL` when it gives anything else than a ref.
    #[inline]
    pub fn call_ref(&self, target: ImportTarget, value: &mut Ref) -> Result<()> {
        self.instance(target)?.call_ref(target.ordinal, value, self)
    }

    /// Returns what calls an export of an instance of the context from one place of a program, if the instance wants one:
    /// see [`Instance::call_site`]. How deep calls nest is not counted, as by [`Invocation::call_or_resume`].
    ///
    /// # Errors
    /// Fails when the target is of another context.
    pub fn call_site(
        &self,
        target: ImportTarget,
        shape: CallShape<'_>,
    ) -> Result<Option<Box<dyn CallSite>>> {
        Ok(self.instance(target)?.call_site(target.ordinal, shape))
    }

    #[inline]
    fn call_prepared(&self, target: ImportTarget, call: &mut PreparedCall) -> Result<()> {
        self.instance(target)?
            .call_prepared(target.ordinal, call, self)
    }

    #[inline]
    fn instance(&self, target: ImportTarget) -> Result<&dyn Instance> {
        match self.instances.get(target.instance) {
            Some(instance) => Ok(&**instance),
            None => Err(foreign()),
        }
    }

    /// Returns whether a caller may remember what an export gives: see [`Instance::is_pure`].
    #[must_use]
    pub fn is_pure(&self, target: ImportTarget) -> bool {
        self.instances
            .get(target.instance)
            .is_some_and(|instance| instance.is_pure(target.ordinal))
    }

    /// Does `work` one level of calls below the present one: what may call others and be called by them again.
    ///
    /// # Errors
    /// Fails as `work` does; `RESOURCE_EXHAUSTED` when calls nest deeper than [`MAX_CALL_DEPTH`].
    #[inline]
    pub fn nest<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let depth = self.depth.get();
        if depth >= MAX_CALL_DEPTH {
            return Err(too_deep());
        }
        self.depth.set(depth + 1);
        let outcome = work();
        self.depth.set(depth);
        outcome
    }

    /// Returns the instructions that may still run, or `None` when they are not counted.
    #[must_use]
    pub fn fuel(&self) -> Option<u64> {
        self.fuel.as_ref().map(Cell::get)
    }

    /// Takes one instruction from the fuel.
    ///
    /// # Errors
    /// `DEADLINE_EXCEEDED` when none is left.
    pub fn burn(&self) -> Result<()> {
        let Some(fuel) = &self.fuel else {
            return Ok(());
        };
        match fuel.get().checked_sub(1) {
            Some(left) => {
                fuel.set(left);
                Ok(())
            }
            None => Err(Trap::new(
                StatusCode::DEADLINE_EXCEEDED,
                "the budget of instructions is used up",
            )),
        }
    }

    /// Tells that a native function is about to do a piece of its work, when arguments decide how many there are. Each
    /// counts as an instruction.
    ///
    /// # Errors
    /// `CANCELLED` after an interrupt, `DEADLINE_EXCEEDED` when the fuel is used up.
    #[inline]
    pub fn do_piece(&self) -> Result<()> {
        self.check_interrupt()?;
        self.burn()
    }

    /// Returns the tracer, when there is one.
    #[must_use]
    pub fn tracer(&self) -> Option<&'a dyn Tracer> {
        self.tracer
    }

    /// Returns whether the invocation was interrupted.
    #[must_use]
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Returns the flag that is set when the invocation is interrupted, for code that looks at it by itself.
    #[must_use]
    pub fn interrupt_flag(&self) -> &AtomicBool {
        self.interrupt
    }

    /// Checks that the invocation was not interrupted.
    ///
    /// # Errors
    /// `CANCELLED` when it was.
    #[inline]
    pub fn check_interrupt(&self) -> Result<()> {
        if self.is_interrupted() {
            Err(interrupted())
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for Invocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation")
            .field("fuel", &self.fuel)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for InvocationOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InvocationOptions")
            .field("fuel", &self.fuel)
            .field("traced", &self.tracer.is_some())
            .finish()
    }
}

#[cold]
fn interrupted() -> Trap {
    Trap::new(StatusCode::CANCELLED, "the invocation was interrupted")
}

#[cold]
fn foreign() -> Trap {
    Trap::invalid_argument("the function belongs to another context")
}

#[cold]
fn other_convention(function: &Function) -> Trap {
    Trap::invalid_argument(format!(
        "the call of `{}` was prepared for a function of another calling convention than `{}`",
        function.name(),
        function.convention()
    ))
}

#[cold]
fn too_deep() -> Trap {
    Trap::new(
        StatusCode::RESOURCE_EXHAUSTED,
        format!("calls between modules nest deeper than {MAX_CALL_DEPTH}"),
    )
}

#[cfg(test)]
mod tests;
