//! Modules and their instances: what a context links together.
//!
//! A module is immutable and shared by contexts and threads; an instance is its state in one context.

use core::fmt;
use std::sync::Arc;

use crate::{
    ArgumentBlock, CallShape, CallSite, CallingConvention, Invocation, PreparedCall, Ref, RefType,
    Result, Results, StatusCode, Trap,
};

/// A module that a context can link: bytecode or native.
pub trait Module: Send + Sync + fmt::Debug {
    /// Returns the name that imports of other modules use.
    fn name(&self) -> &str;

    /// Returns the version that dependencies of other modules compare.
    fn version(&self) -> u32;

    /// Returns the modules that must be there first.
    fn dependencies(&self) -> &[Dependency] {
        &[]
    }

    /// Returns the functions that other modules or the embedder may call, indexed by export ordinal.
    fn exports(&self) -> &[Export];

    /// Returns the functions the module calls, indexed by import ordinal.
    fn imports(&self) -> &[Import] {
        &[]
    }

    /// Returns the ref types that the module makes known to others.
    fn ref_types(&self) -> &[&'static RefType] {
        &[]
    }

    /// Returns the ordinal of the export with this name, or `None`. The first wins when names repeat.
    fn lookup(&self, name: &str) -> Option<u32> {
        let position = self
            .exports()
            .iter()
            .position(|export| &*export.name == name)?;
        u32::try_from(position).ok()
    }

    /// Creates the module's state in a context.
    ///
    /// `imports` has one entry for each of [`Module::imports`], `None` for an optional one that was not found. The
    /// initializer has not run yet: see [`Instance::initialize`].
    ///
    /// # Errors
    /// Fails when the module cannot work in the context, for example when it names an unknown type.
    fn instantiate(self: Arc<Self>, linkage: Linkage<'_>) -> Result<Box<dyn Instance>>;
}

/// The state of a module in one context. Used by one thread at a time; may move to another between calls.
pub trait Instance: Send + fmt::Debug {
    /// Runs the module's initializer, once, after the instance joined its context.
    ///
    /// # Errors
    /// Fails as the initializer does; the context is then not created.
    fn initialize(&self, _invocation: &Invocation<'_>) -> Result<()> {
        Ok(())
    }

    /// Runs the module's finalizer, once, before the instance is dropped.
    ///
    /// # Errors
    /// Fails as the finalizer does.
    fn deinitialize(&self, _invocation: &Invocation<'_>) -> Result<()> {
        Ok(())
    }

    /// Tells the module of an event.
    ///
    /// # Errors
    /// Fails as the module's handler does.
    fn notify(&self, _signal: Signal, _invocation: &Invocation<'_>) -> Result<()> {
        Ok(())
    }

    /// Calls the export with this ordinal. An instance that then calls imports with [`Invocation::call_or_resume`] does so
    /// inside [`Invocation::nest`], which keeps calls from nesting without end.
    ///
    /// # Errors
    /// Fails as the function does. Results pushed before a failure are ignored.
    fn call(&self, ordinal: u32, call: &mut Call<'_, '_>) -> Result<()>;

    /// Calls the export with this ordinal, of whose calling convention `call` is, for an application. It takes all refs of the
    /// arguments and sets all results, unless it fails.
    ///
    /// # Errors
    /// As [`Instance::call`].
    fn call_prepared(
        &self,
        ordinal: u32,
        call: &mut PreparedCall,
        invocation: &Invocation<'_>,
    ) -> Result<()> {
        call.pass_block(invocation, |call| self.call(ordinal, call))
    }

    /// Calls the export with this ordinal, whose calling convention is `0r_r`, without a block for its argument: `value` is
    /// the argument, and then the result. After a failure it may be null.
    ///
    /// # Errors
    /// Fails as [`Instance::call`] does, and with `INTERNAL` when the function gives anything else than a ref.
    fn call_ref(&self, ordinal: u32, value: &mut Ref, invocation: &Invocation<'_>) -> Result<()> {
        call_ref_by_block(self, ordinal, value, invocation)
    }

    /// Returns whether what the export with this ordinal gives are numbers only and depends on nothing but its arguments:
    /// on numbers by their value, on buffers by their bytes, on objects by which they are. It must have no effect then,
    /// and a caller may remember what it gave instead of calling again.
    fn is_pure(&self, _ordinal: u32) -> bool {
        false
    }

    /// Returns what calls the export with this ordinal from one place of a program, if it gives no results and the
    /// instance has something to prepare. It does what [`Instance::call`] does.
    fn call_site(&self, _ordinal: u32, _shape: CallShape<'_>) -> Option<Box<dyn CallSite>> {
        None
    }
}

/// Calls a function from a ref to a ref as any other.
#[inline(never)]
pub(crate) fn call_ref_by_block<I: Instance + ?Sized>(
    instance: &I,
    ordinal: u32,
    value: &mut Ref,
    invocation: &Invocation<'_>,
) -> Result<()> {
    let mut results = Results::new();
    instance.call(
        ordinal,
        &mut Call {
            arguments: ArgumentBlock::new(&[0; 4], core::slice::from_ref(value)),
            results: &mut results,
            invocation,
            resuming: false,
        },
    )?;
    if !results.words().is_empty() || results.refs().len() != 1 {
        return Err(Trap::new(
            StatusCode::INTERNAL,
            "the results of the function do not fit its calling convention `0r_r`",
        ));
    }
    *value = results.take_ref(0);
    Ok(())
}

/// One call of an exported function.
#[derive(Debug)]
pub struct Call<'a, 'i> {
    /// The arguments, laid out by the function's calling convention.
    pub arguments: ArgumentBlock<'a>,
    /// Where the function appends its results; empty at the call.
    pub results: &'a mut Results,
    /// The invocation that the call belongs to.
    pub invocation: &'a Invocation<'i>,
    /// Whether this is another try of a call that answered `DEFERRED`.
    pub resuming: bool,
}

/// What a module is given when it joins a context.
#[derive(Debug)]
pub struct Linkage<'a> {
    /// The functions bound to the module's imports, by import ordinal.
    pub imports: Vec<Option<ImportTarget>>,
    /// The ref types known in the context.
    pub types: &'a RefTypes,
}

/// An exported function of an instance of the same context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportTarget {
    /// Index of the instance in its context.
    pub instance: usize,
    /// Export ordinal in its module.
    pub ordinal: u32,
}

/// A module that another module needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Name of the module.
    pub name: Box<str>,
    /// The lowest version that will do.
    pub minimum_version: u32,
    /// Whether the module can do without.
    pub optional: bool,
}

/// A function that a module offers.
#[derive(Clone, Debug)]
pub struct Export {
    /// Name, without the module's.
    pub name: Box<str>,
    /// Types of its arguments and results.
    pub convention: Arc<CallingConvention>,
    /// Reflection attributes as key and value, such as `iree.abi.declaration`.
    pub attributes: Arc<[(Box<str>, Box<str>)]>,
}

impl Export {
    /// Returns the value of the reflection attribute `key`.
    #[must_use]
    pub fn attribute(&self, key: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(name, _)| &**name == key)
            .map(|(_, value)| &**value)
    }
}

/// A function that a module calls.
#[derive(Clone, Debug)]
pub struct Import {
    /// Name with the module's: `module.function`, split at the first period.
    pub full_name: Box<str>,
    /// Types of its arguments and results; `None` when the importer accepts any.
    pub convention: Option<Arc<CallingConvention>>,
    /// Whether the module can do without.
    pub optional: bool,
}

/// An event that a context tells its modules (`docs/vm.md`, section "Modules").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The context is used again after a suspend.
    Resume,
    /// The context will not be used for a while.
    Suspend,
    /// Memory is low: free what can be made again.
    LowMemory,
}

impl Signal {
    /// Returns the number that bytecode modules see.
    #[must_use]
    pub const fn value(self) -> i32 {
        match self {
            Self::Resume => 0,
            Self::Suspend => 1,
            Self::LowMemory => 2,
        }
    }
}

/// The ref types known in a context, by name.
#[derive(Clone, Debug)]
pub struct RefTypes(Vec<&'static RefType>);

impl RefTypes {
    /// Returns the types that every context knows.
    #[must_use]
    pub fn builtin() -> Self {
        Self(vec![&crate::BUFFER_TYPE, &crate::LIST_TYPE])
    }

    /// Adds types; one that is known stays once.
    pub fn extend(&mut self, types: &[&'static RefType]) {
        for ref_type in types {
            if !self.0.contains(ref_type) {
                self.0.push(ref_type);
            }
        }
    }

    /// Returns the type with this name, written without `!`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'static RefType> {
        self.0
            .iter()
            .copied()
            .find(|ref_type| ref_type.name() == name)
    }
}

/// Returns the trap of a call to an export that does not exist.
#[cold]
pub(crate) fn unknown_ordinal(module: &str, ordinal: u32) -> Trap {
    Trap::new(
        StatusCode::INTERNAL,
        format!("module {module} has no export {ordinal}"),
    )
}
