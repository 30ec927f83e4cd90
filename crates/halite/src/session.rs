//! Sessions: programs linked together, with their state, ready to be called.
#![forbid(unsafe_code)]

use core::fmt;
use core::num::NonZero;
use std::sync::Arc;
use std::thread;

use hal_local::{
    Dispatcher, EmbeddedElfLoader, ExecutableLoader, InlineDispatcher, LoaderRegistry,
    PoolDispatcher, SystemLibraryLoader,
};
use hal_plugin::{ImportProvider, PluginManager, PluginSpec};
use vm::{Context, ContextBuilder, InterruptHandle, Module, StatusCode, Trap};
use vm_hal_inline::TraceSink;
use vm_vmvx::VmvxLoader;

use crate::{Error, Function, Obstacle, Profiler, Program, Trust, Value, diagnose};

/// Programs linked together, with their state.
///
/// A session is used by one thread at a time and may move to another between calls. Sessions share nothing but what
/// they were given: programs, plugins, dispatchers.
///
/// # Examples
/// ```no_run
/// use halite::{Program, Session, Tensor, Trust};
///
/// // Sound because we compiled the program ourselves.
/// let trust = unsafe { Trust::native_code() };
/// let session = Session::builder().native_code(trust).program(Program::open("mul.vmfb")?).build()?;
///
/// let input = Tensor::from_slice(&[4], &[1f32, 2.0, 3.0, 4.0])?;
/// let results = session.invoke("mul", &[input.clone().into(), input.into()])?;
/// println!("{:?}", results[0].as_tensor());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    context: Context,
    /// The program whose functions are called by their names alone: the last one given.
    program: Program,
    plugins: PluginManager,
}

/// How the loops of bytecode run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loops {
    /// All in the interpreter.
    Interpreted,
    /// Hot ones as machine code that the session makes, where that can be done: on x86-64, with the feature `jit`. It
    /// computes the same, bit for bit, and accesses the same memory.
    Compiled,
}

impl Loops {
    /// Returns how loops run when nobody says it.
    pub(crate) fn of(trust: Option<Trust>) -> Self {
        match trust {
            Some(_) => Self::Compiled,
            None => Self::Interpreted,
        }
    }
}

/// Makes a [`Session`].
#[must_use]
pub struct SessionBuilder {
    programs: Vec<Program>,
    modules: Vec<Arc<dyn Module>>,
    loaders: Vec<Arc<dyn ExecutableLoader>>,
    trust: Option<Trust>,
    plugins: Option<PluginManager>,
    plugin_specs: Vec<PluginSpec>,
    dispatcher: Option<Arc<dyn Dispatcher>>,
    threads: usize,
    trace_sink: Option<Arc<dyn TraceSink>>,
    profiler: Option<Profiler>,
    interrupt: InterruptHandle,
    lifecycle_fuel: Option<u64>,
    loops: Option<Loops>,
}

impl SessionBuilder {
    /// Adds a program after those it depends on. Functions are looked up in the last one.
    pub fn program(mut self, program: Program) -> Self {
        self.programs.push(program);
        self
    }

    /// Allows kernels of native code and plugins.
    pub fn native_code(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// Adds a module of the application's own, which programs may import. It takes the place of a module that the
    /// session would provide under the same name.
    pub fn module(mut self, module: Arc<dyn Module>) -> Self {
        self.modules.push(module);
        self
    }

    /// Adds a loader of executables, asked before those that the session has.
    pub fn loader(mut self, loader: Arc<dyn ExecutableLoader>) -> Self {
        self.loaders.push(loader);
        self
    }

    /// Resolves imports of kernels through `plugins`, which other sessions may share, instead of a manager of the
    /// session's own.
    pub fn plugins(mut self, plugins: PluginManager) -> Self {
        self.plugins = Some(plugins);
        self
    }

    /// Loads a plugin when the session is built; later ones are asked first. Needs [`SessionBuilder::native_code`].
    pub fn plugin(mut self, spec: PluginSpec) -> Self {
        self.plugin_specs.push(spec);
        self
    }

    /// Runs kernels with `dispatcher`, which other sessions may share.
    pub fn dispatcher(mut self, dispatcher: Arc<dyn Dispatcher>) -> Self {
        self.dispatcher = Some(dispatcher);
        self
    }

    /// Runs kernels on this many threads: 1, as without this call, is the caller's alone; 0 is one for each core.
    /// A dispatcher that was given goes first.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Tells `sink` of the tensors that programs trace.
    pub fn trace_sink(mut self, sink: Arc<dyn TraceSink>) -> Self {
        self.trace_sink = Some(sink);
        self
    }

    /// Measures the dispatches of kernels with `profiler`.
    pub fn profiler(mut self, profiler: Profiler) -> Self {
        self.profiler = Some(profiler);
        self
    }

    /// Lets `handle` stop what the session runs, its initializers too, as well as what other sessions run that it was
    /// given to.
    pub fn interrupt_handle(mut self, handle: InterruptHandle) -> Self {
        self.interrupt = handle;
        self
    }

    /// Lets each initializer and finalizer run at most `instructions`; [`InvocationOptions`](crate::InvocationOptions)
    /// limit the calls.
    pub fn lifecycle_fuel(mut self, instructions: u64) -> Self {
        self.lifecycle_fuel = Some(instructions);
        self
    }

    /// Says how loops of bytecode run. Without this call hot ones are compiled if the session may run native code, and all
    /// are interpreted if it may not.
    pub fn loops(mut self, loops: Loops) -> Self {
        self.loops = Some(loops);
        self
    }

    /// Loads the plugins, links the programs and runs their initializers.
    ///
    /// # Errors
    /// Fails when there is no program, a plugin cannot be loaded, a program needs what is not there, or an initializer
    /// fails.
    pub fn build(self) -> Result<Session, Error> {
        let program = self.programs.last().cloned().ok_or(Error::NoProgram)?;
        let plugins = self.plugins.unwrap_or_default();
        load_plugins(&plugins, &self.plugin_specs, self.trust)?;
        let profiler = self.profiler.as_ref();
        let dispatcher = match self.dispatcher {
            Some(dispatcher) => watched(dispatcher, profiler),
            None => new_dispatcher(self.threads, profiler)?,
        };
        let loops = self.loops.unwrap_or_else(|| Loops::of(self.trust));
        let loaders = registry(
            self.loaders,
            self.trust,
            &plugins,
            loops,
            profiler,
            &self.interrupt,
        );

        check_execution_model(&self.programs, &self.modules)?;

        let is_own = |name: &str| self.modules.iter().any(|module| module.name() == name);
        let mut modules = Vec::new();
        // Programs may name types of these without importing a function, so they are always there.
        if !is_own("hal_inline") {
            modules.push(vm_hal_inline::module(self.trace_sink.clone()));
        }
        if !is_own("hal_loader") {
            modules.push(vm_hal_loader::module(loaders, dispatcher));
        }
        if !is_own("vmvx")
            && self
                .programs
                .iter()
                .any(|program| program.depends_on("vmvx"))
        {
            modules.push(vm_vmvx::vmvx_module());
        }
        modules.extend(self.modules.iter().cloned());
        for program in &self.programs {
            modules.push(runnable(program, loops));
        }
        let context = Context::builder().interrupt_handle(self.interrupt);
        let mut context = modules.into_iter().fold(context, ContextBuilder::module);
        if let Some(fuel) = self.lifecycle_fuel {
            context = context.lifecycle_fuel(fuel);
        }
        let context = context
            .build()
            .map_err(|source| start_error(&self.programs, &program, source, self.trust))?;
        Ok(Session {
            context,
            program,
            plugins,
        })
    }
}

impl Session {
    /// Returns a builder of a session that runs kernels on the caller's thread and no machine code.
    pub fn builder() -> SessionBuilder {
        SessionBuilder {
            programs: Vec::new(),
            modules: Vec::new(),
            loaders: Vec::new(),
            trust: None,
            plugins: None,
            plugin_specs: Vec::new(),
            dispatcher: None,
            threads: 1,
            trace_sink: None,
            profiler: None,
            interrupt: InterruptHandle::default(),
            lifecycle_fuel: None,
            loops: None,
        }
    }

    /// Returns the function `name` of the last program, or, written `module.name`, of any module.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none.
    pub fn function(&self, name: &str) -> Result<Function<'_>, Error> {
        let module = self.program.name();
        let found = self
            .context
            .lookup(module, name)
            .or_else(|error| match name.split_once('.') {
                Some((module, name)) => self.context.lookup(module, name),
                None => Err(error),
            });
        match found {
            Ok(function) => Ok(Function::new(&self.context, function)),
            Err(_) => Err(Error::FunctionNotFound {
                name: name.into(),
                module: module.into(),
                available: self.available(),
            }),
        }
    }

    /// Returns the only function of the last program.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it has none or more than one.
    pub fn only_function(&self) -> Result<Function<'_>, Error> {
        match &self.available()[..] {
            [name] => self.function(name),
            _ => Err(Error::FunctionNotNamed {
                module: self.program.name().into(),
                available: self.available(),
            }),
        }
    }

    /// Calls the function `name` with `arguments` and returns its results.
    ///
    /// Look a function up once with [`Session::function`] to call it often.
    ///
    /// # Errors
    /// Fails when there is no such function, when the arguments do not fit it, and as it fails.
    pub fn invoke(&self, name: &str, arguments: &[Value]) -> Result<Vec<Value>, Error> {
        self.function(name)?.invoke(arguments)
    }

    /// Returns the plugins that imports of kernels are resolved through.
    #[must_use]
    pub fn plugins(&self) -> &PluginManager {
        &self.plugins
    }

    /// Returns the program whose functions are called by their names alone.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns a handle that stops the session's functions from another thread.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.context.interrupt_handle()
    }

    /// Returns the linked modules.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    fn available(&self) -> Vec<String> {
        self.program.function_names().map(str::to_owned).collect()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionBuilder")
            .field("programs", &self.programs)
            .field("plugins", &self.plugin_specs)
            .finish_non_exhaustive()
    }
}

/// Checks that no program needs the module of the asynchronous execution model, unless somebody provides it.
fn check_execution_model(programs: &[Program], own: &[Arc<dyn Module>]) -> Result<(), Error> {
    const MODULE: &str = "hal";
    let mut names = programs.iter().map(Program::name);
    let provided =
        own.iter().any(|module| module.name() == MODULE) || names.any(|name| name == MODULE);
    match programs.iter().find(|program| program.depends_on(MODULE)) {
        Some(program) if !provided => Err(Error::AsynchronousModel {
            origin: program.origin().into(),
            needs: MODULE.into(),
        }),
        _ => Ok(()),
    }
}

fn load_plugins(
    plugins: &PluginManager,
    specs: &[PluginSpec],
    trust: Option<Trust>,
) -> Result<(), Error> {
    for spec in specs {
        let name = spec.path().display().to_string();
        let Some(trust) = trust else {
            return Err(Error::NativeCodeNotAllowed { plugin: name });
        };
        let plugin = match trust.load_plugin(spec) {
            Ok(plugin) => plugin,
            Err(error) => {
                let source = Box::new(error);
                return Err(Error::Plugin {
                    plugin: name,
                    source,
                });
            }
        };
        if let Err(error) = plugins.register_plugin(plugin) {
            let source = Box::new(error);
            return Err(Error::Register { name, source });
        }
    }
    Ok(())
}

/// Returns the module of a program in the form in which it is run.
fn runnable(program: &Program, loops: Loops) -> Arc<dyn Module> {
    match loops {
        Loops::Compiled => program.module().compiling(),
        Loops::Interpreted => Arc::<vm_bytecode::BytecodeModule>::clone(program.module()),
    }
}

/// Returns the loader of portable kernels.
fn portable_loader(loops: Loops) -> VmvxLoader {
    match loops {
        Loops::Compiled => VmvxLoader::new().compile_loops(),
        Loops::Interpreted => VmvxLoader::new(),
    }
}

/// Returns the loaders in the order in which they are asked.
pub(crate) fn registry(
    own: Vec<Arc<dyn ExecutableLoader>>,
    trust: Option<Trust>,
    plugins: &PluginManager,
    loops: Loops,
    profiler: Option<&Profiler>,
    interrupt: &InterruptHandle,
) -> LoaderRegistry {
    let mut loaders = own
        .into_iter()
        .fold(LoaderRegistry::new(), LoaderRegistry::with);
    if let Some(trust) = trust {
        let provider: Arc<dyn ImportProvider> = Arc::new(plugins.clone());
        let embedded = EmbeddedElfLoader::new(trust.loaders(), Some(Arc::clone(&provider)));
        let system = SystemLibraryLoader::new(trust.loaders(), Some(provider));
        loaders = loaders.with(Arc::new(embedded)).with(Arc::new(system));
    }
    let portable = portable_loader(loops).interrupt_handle(interrupt.clone());
    loaders = loaders.with(Arc::new(portable));
    match profiler {
        Some(profiler) => profiler.watch_loaders(loaders),
        None => loaders,
    }
}

/// Returns a dispatcher of this many threads, 0 for one on each core.
pub(crate) fn new_dispatcher(
    threads: usize,
    profiler: Option<&Profiler>,
) -> Result<Arc<dyn Dispatcher>, Error> {
    let threads = match NonZero::new(threads) {
        Some(threads) => threads,
        None => thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN),
    };
    if threads.get() == 1 {
        return Ok(watched(Arc::new(InlineDispatcher::new()), profiler));
    }
    match PoolDispatcher::new(threads) {
        Ok(pool) => Ok(watched(Arc::new(pool), profiler)),
        Err(source) => Err(Error::Threads {
            threads: threads.get(),
            source,
        }),
    }
}

fn watched(dispatcher: Arc<dyn Dispatcher>, profiler: Option<&Profiler>) -> Arc<dyn Dispatcher> {
    match profiler {
        Some(profiler) => profiler.watch_dispatcher(dispatcher),
        None => dispatcher,
    }
}

/// Returns the error of a context that cannot be built, with what can be found out about its cause.
fn start_error(
    programs: &[Program],
    program: &Program,
    source: Trap,
    trust: Option<Trust>,
) -> Error {
    let obstacle = match source.code() {
        StatusCode::UNAVAILABLE | StatusCode::NOT_FOUND => find_obstacle(programs, trust),
        _ => None,
    };
    Error::Start {
        origin: program.origin().into(),
        source,
        obstacle,
    }
}

fn find_obstacle(programs: &[Program], trust: Option<Trust>) -> Option<Obstacle> {
    let targets: Vec<_> = programs.iter().flat_map(diagnose::kernel_targets).collect();
    if targets.is_empty() {
        return None;
    }
    let host = hal_elf::Target::HOST;
    if !targets.contains(&host) {
        return Some(Obstacle::OtherMachine {
            machines: targets.into_iter().map(diagnose::target_name).collect(),
            host: diagnose::target_name(host),
        });
    }
    trust.is_none().then_some(Obstacle::NativeCodeNotAllowed)
}
