//! Bytecode modules as modules of a context, and their state in one.
//!
//! [`BytecodeModule::load`] is the only way from bytes to something that runs, and it verifies.

use core::cell::{Cell, RefCell, RefMut};
use core::{fmt, ptr};
use std::sync::{Arc, OnceLock, Weak};

use vm::{
    Access, Buffer, BytesOwner, Call, ElementType, Export, Import, ImportTarget, Instance,
    Invocation, Linkage, Module, Object, PreparedCall, Ref, RefTypes, Result, Results, Signal,
    StatusCode, Trap, TrapFrame,
};

use crate::compile::{Fusion, compile};
use crate::interpreter::{Caller, Fast, Interpreter, Metered, Mode, Stack};
use crate::program::{CONTINUES, Function, Program};
use crate::{DebugDatabase, LoadError, ModuleDef, VerifiedModule};

/// Names of the exports that the runtime calls by itself.
const INITIALIZER: &str = "__init";
const FINALIZER: &str = "__deinit";
const NOTIFY: &str = "__notify";

/// A verified bytecode module, ready to join contexts. Shared by contexts and threads.
pub struct BytecodeModule {
    owner: Arc<dyn BytesOwner>,
    verified: VerifiedModule,
    program: Program,
    /// The program with a step for each instruction; made when something is first counted or traced.
    plain_program: OnceLock<Program>,
    exports: Box<[Export]>,
    imports: Box<[Import]>,
    dependencies: Box<[vm::Dependency]>,
    /// The constants, as refs to their buffers.
    rodata: Box<[Ref]>,
}

impl BytecodeModule {
    /// Reads, verifies and prepares the module in the bytes of `owner`, which constants of the module keep alive.
    ///
    /// # Errors
    /// Fails when the bytes are not a module, are damaged, need what this runtime does not have, or do not verify.
    pub fn load(owner: Arc<dyn BytesOwner>) -> core::result::Result<Arc<Self>, LoadError> {
        #[cfg(feature = "tracing")]
        let _span =
            tracing::debug_span!("load_module", byte_length = owner.bytes().len()).entered();
        let verified = VerifiedModule::load(owner.bytes())?;
        Ok(Self::of(owner, verified))
    }

    /// Prepares a verified module, which was read from the bytes of `owner`.
    pub(crate) fn of(owner: Arc<dyn BytesOwner>, verified: VerifiedModule) -> Arc<Self> {
        let def = verified.def();
        let program = compile(&verified, Fusion::Fused);
        let rodata = def.rodata.iter().map(|segment| {
            let bytes =
                Buffer::constant(Arc::clone(&owner), segment.range.clone(), Access::CONSTANT);
            Ref::Buffer(bytes.unwrap_or_else(|_| {
                unreachable!("the verifier checked that the file has the range")
            }))
        });
        Arc::new(Self {
            exports: exports(&verified),
            imports: imports(&verified),
            dependencies: dependencies(def),
            rodata: rodata.collect(),
            plain_program: OnceLock::new(),
            program,
            verified,
            owner,
        })
    }

    /// Returns the description of the module.
    #[must_use]
    pub fn def(&self) -> &ModuleDef {
        self.verified.def()
    }

    /// Returns the verified module.
    #[must_use]
    pub fn verified(&self) -> &VerifiedModule {
        &self.verified
    }

    /// Returns a function as the interpreter runs it when nothing is counted.
    #[cfg(all(test, feature = "jit"))]
    pub(crate) fn function(&self, ordinal: usize) -> &Function {
        &self.program.functions[ordinal]
    }

    fn plain_program(&self) -> &Program {
        self.plain_program
            .get_or_init(|| compile(&self.verified, Fusion::Plain))
    }
}

fn exports(verified: &VerifiedModule) -> Box<[Export]> {
    let def = verified.def();
    let export = |export: &crate::Export| {
        let function = export.function as usize;
        let attributes = def.signatures[function].attributes.iter();
        Export {
            name: export.name.as_str().into(),
            convention: Arc::new(verified.functions()[function].convention().clone()),
            attributes: attributes
                .map(|attribute| {
                    (
                        attribute.key.as_str().into(),
                        attribute.value.as_str().into(),
                    )
                })
                .collect(),
        }
    };
    def.exports.iter().map(export).collect()
}

fn imports(verified: &VerifiedModule) -> Box<[Import]> {
    let imports = verified
        .def()
        .imports
        .iter()
        .zip(verified.import_conventions());
    let import = |(import, convention): (&crate::Import, &vm::CallingConvention)| Import {
        full_name: import.full_name.as_str().into(),
        // An empty convention accepts any export, as in the reference; calls then pass nothing.
        convention: (!convention.text().is_empty()).then(|| Arc::new(convention.clone())),
        optional: import.optional,
    };
    imports.map(import).collect()
}

fn dependencies(def: &ModuleDef) -> Box<[vm::Dependency]> {
    let dependency = |dependency: &crate::Dependency| vm::Dependency {
        name: dependency.name.as_str().into(),
        minimum_version: dependency.minimum_version,
        optional: dependency.optional,
    };
    def.dependencies.iter().map(dependency).collect()
}

impl Module for BytecodeModule {
    fn name(&self) -> &str {
        &self.def().name
    }

    fn version(&self) -> u32 {
        self.def().version
    }

    fn dependencies(&self) -> &[vm::Dependency] {
        &self.dependencies
    }

    fn exports(&self) -> &[Export] {
        &self.exports
    }

    fn imports(&self) -> &[Import] {
        &self.imports
    }

    fn instantiate(self: Arc<Self>, linkage: Linkage<'_>) -> Result<Box<dyn Instance>> {
        Ok(Box::new(self.instance(linkage)?))
    }
}

impl BytecodeModule {
    /// Returns the state of the module in a new context.
    fn instance(self: Arc<Self>, linkage: Linkage<'_>) -> Result<BytecodeInstance> {
        let def = self.def();
        let types = def
            .types
            .iter()
            .map(|name| element_type(def, name, linkage.types))
            .collect::<Result<_>>()?;
        let (global_bytes, global_refs) = (def.global_bytes as usize, def.global_refs as usize);
        Ok(BytecodeInstance {
            types,
            imports: linkage.imports.into(),
            global_bytes: RefCell::new(vec![0; global_bytes].into()),
            global_refs: RefCell::new(vec![Ref::Null; global_refs].into()),
            answers: RefCell::new(vec![None; self.program.answer_count as usize].into()),
            idle_stack: Cell::new(None),
            #[cfg(feature = "jit")]
            hot_after: None,
            module: self,
        })
    }
}

/// Resolves the name of a type of the module's table (`docs/vm.md`, section "Types").
fn element_type(def: &ModuleDef, name: &str, types: &RefTypes) -> Result<ElementType> {
    let known = match name {
        "i8" => Some(ElementType::I8),
        "i16" => Some(ElementType::I16),
        "i32" => Some(ElementType::I32),
        "i64" => Some(ElementType::I64),
        "f32" => Some(ElementType::F32),
        "f64" => Some(ElementType::F64),
        "!vm.opaque" => Some(ElementType::Variant),
        name if name.starts_with("!vm.list") => Some(ElementType::Ref(&vm::LIST_TYPE)),
        name => name
            .strip_prefix('!')
            .and_then(|name| types.get(name))
            .map(ElementType::Ref),
    };
    known.ok_or_else(|| {
        Trap::new(
            StatusCode::NOT_FOUND,
            format!(
                "module '{}' uses the type `{name}`, which is not known",
                def.name
            ),
        )
    })
}

/// A bytecode module whose hot loops run as machine code.
#[cfg(feature = "jit")]
#[derive(Debug)]
struct Compiling {
    module: Arc<BytecodeModule>,
    hot_after: u32,
}

impl BytecodeModule {
    /// Returns the module in a form whose hot loops are compiled to machine code when it runs, with the feature `jit`. What
    /// it computes and how it fails is the same. Loops that cannot be compiled, all of them without the feature and on
    /// processors that there is no code generator for, are interpreted, and so is everything while fuel is counted or
    /// instructions are traced.
    #[must_use]
    pub fn compiling(self: &Arc<Self>) -> Arc<dyn Module> {
        #[cfg(feature = "jit")]
        return self.compiling_after(crate::loops::HOT_AFTER);
        #[cfg(not(feature = "jit"))]
        return Arc::<Self>::clone(self);
    }

    /// As [`BytecodeModule::compiling`], for loops that turned `hot_after` times: tests want machine code at once.
    #[cfg(feature = "jit")]
    #[must_use]
    pub fn compiling_after(self: &Arc<Self>, hot_after: u32) -> Arc<dyn Module> {
        Arc::new(Compiling {
            module: Arc::clone(self),
            hot_after,
        })
    }
}

#[cfg(feature = "jit")]
impl Module for Compiling {
    fn name(&self) -> &str {
        self.module.name()
    }

    fn version(&self) -> u32 {
        self.module.version()
    }

    fn dependencies(&self) -> &[vm::Dependency] {
        self.module.dependencies()
    }

    fn exports(&self) -> &[Export] {
        self.module.exports()
    }

    fn imports(&self) -> &[Import] {
        self.module.imports()
    }

    fn instantiate(self: Arc<Self>, linkage: Linkage<'_>) -> Result<Box<dyn Instance>> {
        let mut instance = Arc::clone(&self.module).instance(linkage)?;
        instance.hot_after = Some(self.hot_after);
        Ok(Box::new(instance))
    }
}

impl fmt::Debug for BytecodeModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BytecodeModule")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// The state of a bytecode module in one context.
pub(crate) struct BytecodeInstance {
    module: Arc<BytecodeModule>,
    types: Box<[ElementType]>,
    imports: Box<[Option<ImportTarget>]>,
    global_bytes: RefCell<Box<[u8]>>,
    global_refs: RefCell<Box<[Ref]>>,
    /// What pure imports gave.
    answers: RefCell<Box<[Option<Answer>]>>,
    /// The stack of the last invocation, for the next one. A call that comes while one runs makes its own.
    idle_stack: Cell<Option<Box<Stack>>>,
    /// The turns after which a loop is compiled, when loops are.
    #[cfg(feature = "jit")]
    hot_after: Option<u32>,
}

/// What a pure import gave for an object.
#[derive(Clone)]
struct Answer {
    /// The object, whose address nothing else has as long as this is kept.
    object: Weak<dyn Object>,
    value: u64,
}

impl BytecodeInstance {
    /// Returns the answer `index`, if it is known for the object that `of` names.
    #[inline(always)]
    pub(crate) fn remembered(&self, index: u32, of: &Ref) -> Option<u64> {
        let answers = self.answers.borrow();
        match (answers.get(index as usize)?, of) {
            (Some(answer), Ref::Object(object))
                if ptr::addr_eq(answer.object.as_ptr(), Arc::as_ptr(object)) =>
            {
                Some(answer.value)
            }
            _ => None,
        }
    }

    /// Sets the answer `index` to `value`, for this object.
    pub(crate) fn remember(&self, index: u32, object: &Arc<dyn Object>, value: u64) {
        if let Some(answer) = self.answers.borrow_mut().get_mut(index as usize) {
            let object = Arc::downgrade(object);
            *answer = Some(Answer { object, value });
        }
    }

    /// Returns the name of the module.
    pub(crate) fn module_name(&self) -> &str {
        self.module.name()
    }

    /// Returns the turns after which a loop is compiled, when loops are.
    #[cfg(feature = "jit")]
    #[inline]
    pub(crate) fn hot_after(&self) -> Option<u32> {
        self.hot_after
    }

    /// Returns the rodata segments, by ordinal.
    #[inline]
    pub(crate) fn rodata(&self) -> &[Ref] {
        &self.module.rodata
    }

    /// Returns the element type at an index of the type table.
    #[inline]
    pub(crate) fn element_type(&self, index: u32) -> ElementType {
        self.types[index as usize]
    }

    /// Returns what an import is bound to.
    #[inline]
    pub(crate) fn import(&self, ordinal: u32) -> Option<ImportTarget> {
        self.imports[ordinal as usize]
    }

    /// Returns the bytes of the value globals at `offset`.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when they do not lie in the globals.
    #[inline]
    pub(crate) fn load_global<const N: usize>(&self, offset: u32) -> Result<[u8; N]> {
        let bytes = self.global_bytes.borrow();
        match bytes
            .get(offset as usize..)
            .and_then(|rest| rest.first_chunk())
        {
            Some(value) => Ok(*value),
            None => Err(no_global(offset, N, bytes.len())),
        }
    }

    /// Sets the bytes of the value globals at `offset`.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when they do not lie in the globals.
    #[inline]
    pub(crate) fn store_global<const N: usize>(&self, offset: u32, value: [u8; N]) -> Result<()> {
        let mut bytes = self.global_bytes.borrow_mut();
        let length = bytes.len();
        match bytes
            .get_mut(offset as usize..)
            .and_then(|rest| rest.first_chunk_mut())
        {
            Some(target) => {
                *target = value;
                Ok(())
            }
            None => Err(no_global(offset, N, length)),
        }
    }

    /// Borrows the ref globals. Nothing that may call back into the module runs while they are borrowed.
    #[inline]
    pub(crate) fn global_refs(&self) -> RefMut<'_, Box<[Ref]>> {
        self.global_refs.borrow_mut()
    }

    /// Returns the trap of a call to an import that is not bound.
    #[cold]
    pub(crate) fn unresolved(&self, ordinal: u32) -> Trap {
        let name = &self.module.imports[ordinal as usize].full_name;
        Trap::new(
            StatusCode::NOT_FOUND,
            format!("optional import `{name}` (ordinal {ordinal}) not resolved"),
        )
    }

    /// Returns the trap of an import whose results do not fit its calling convention.
    #[cold]
    pub(crate) fn wrong_results(&self, ordinal: u32) -> Trap {
        let import = &self.module.imports[ordinal as usize];
        Trap::new(
            StatusCode::INTERNAL,
            format!(
                "the results of `{}` do not fit its calling convention",
                import.full_name
            ),
        )
    }

    /// Calls a function of the module from outside.
    fn call_function(
        &self,
        ordinal: u32,
        invocation: &Invocation<'_>,
        caller: &mut impl Caller,
    ) -> Result<()> {
        invocation.check_interrupt()?;
        invocation.nest(|| {
            if invocation.fuel().is_some() || invocation.tracer().is_some() {
                let program = self.module.plain_program();
                return self.run::<Metered>(program, ordinal, invocation, caller);
            }
            self.run::<Fast>(&self.module.program, ordinal, invocation, caller)
        })
    }

    #[inline]
    fn run<M: Mode>(
        &self,
        program: &Program,
        ordinal: u32,
        invocation: &Invocation<'_>,
        caller: &mut impl Caller,
    ) -> Result<()> {
        let functions = &program.functions;
        let Some(function) = functions.get(ordinal as usize) else {
            return Err(no_function(ordinal));
        };
        let idle = self.idle_stack.take();
        let mut stack = idle.unwrap_or_else(|| Box::new(Stack::new(program)));
        let interpreter = Interpreter {
            functions,
            instance: self,
            invocation,
        };
        let outcome = match interpreter.run::<M>(&mut stack, function, caller) {
            Ok(()) => Ok(()),
            Err(trap) => Err(self.fail(functions, &mut stack, trap)),
        };
        self.idle_stack.set(Some(stack));
        outcome
    }

    /// Adds the frames of the stack to a trap and removes them.
    #[cold]
    fn fail(&self, functions: &[Function], stack: &mut Stack, trap: Trap) -> Trap {
        let trap = self.backtrace(functions, stack, trap);
        stack.unwind();
        trap
    }

    fn backtrace(&self, functions: &[Function], stack: &Stack, trap: Trap) -> Trap {
        let module: Arc<str> = self.module.name().into();
        let def = self.module.def();
        let debug = DebugDatabase::new(def, self.module.owner.bytes());
        stack.frames().iter().rev().fold(trap, |trap, frame| {
            let function = &functions[frame.function as usize];
            // A frame that failed or waits stands after its step; one that never ran stands at its first.
            let offset = function
                .offsets
                .get(frame.next.saturating_sub(1))
                .map(|offset| offset & !CONTINUES);
            let name = def.export_name(frame.function).map(str::to_owned);
            let name = name.or_else(|| debug.as_ref()?.function_name(frame.function));
            trap.in_frame(TrapFrame {
                module: Arc::clone(&module),
                function: name.unwrap_or_else(|| format!("@{}", frame.function)),
                offset,
                location: offset
                    .and_then(|offset| debug.as_ref()?.location(frame.function, offset)),
            })
        })
    }

    /// Calls the export `name` without results, when there is one.
    fn call_special(
        &self,
        name: &str,
        argument: Option<i32>,
        invocation: &Invocation<'_>,
    ) -> Result<()> {
        let def = self.module.def();
        let Some(export) = def.exports.iter().find(|export| export.name == name) else {
            return Ok(());
        };
        let convention = self.module.verified.functions()[export.function as usize].convention();
        let words: Vec<u32> = argument.map(i32::cast_unsigned).into_iter().collect();
        let expected = if words.is_empty() {
            ["0v_v", ""]
        } else {
            ["0i_v", "0i"]
        };
        if !expected.contains(&convention.text()) {
            return Err(Trap::invalid_argument(format!(
                "`{}.{name}` has the calling convention `{convention}`, expected `{}`",
                def.name, expected[0]
            )));
        }
        let mut results = Results::new();
        let arguments = vm::ArgumentBlock::new(&words, &[]);
        let mut call = Call {
            arguments,
            results: &mut results,
            invocation,
            resuming: false,
        };
        self.call_function(export.function, invocation, &mut call)
    }

    /// Returns the function that is exported with this ordinal.
    fn exported(&self, ordinal: u32) -> Result<u32> {
        match self.module.def().exports.get(ordinal as usize) {
            Some(export) => Ok(export.function),
            None => Err(self.no_export(ordinal)),
        }
    }

    #[cold]
    fn no_export(&self, ordinal: u32) -> Trap {
        Trap::new(
            StatusCode::INTERNAL,
            format!("module '{}' has no export {ordinal}", self.module_name()),
        )
    }
}

impl Instance for BytecodeInstance {
    fn initialize(&self, invocation: &Invocation<'_>) -> Result<()> {
        self.call_special(INITIALIZER, None, invocation)
    }

    fn deinitialize(&self, invocation: &Invocation<'_>) -> Result<()> {
        self.call_special(FINALIZER, None, invocation)
    }

    fn notify(&self, signal: Signal, invocation: &Invocation<'_>) -> Result<()> {
        self.call_special(NOTIFY, Some(signal.value()), invocation)
    }

    fn call(&self, ordinal: u32, call: &mut Call<'_, '_>) -> Result<()> {
        self.call_function(self.exported(ordinal)?, call.invocation, call)
    }

    fn call_prepared(
        &self,
        ordinal: u32,
        call: &mut PreparedCall,
        invocation: &Invocation<'_>,
    ) -> Result<()> {
        self.call_function(self.exported(ordinal)?, invocation, call)
    }
}

impl fmt::Debug for BytecodeInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BytecodeInstance")
            .field("module", &self.module)
            .finish_non_exhaustive()
    }
}

#[cold]
fn no_function(ordinal: u32) -> Trap {
    Trap::new(
        StatusCode::INTERNAL,
        format!("module has no function {ordinal}"),
    )
}

#[cold]
fn no_global(offset: u32, width: usize, length: usize) -> Trap {
    Trap::out_of_range(format!(
        "the {width} bytes at offset {offset} lie outside the {length} bytes of globals"
    ))
}
