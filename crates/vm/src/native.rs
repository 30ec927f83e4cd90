//! Native modules: modules whose functions are written in Rust.
//!
//! [`NativeModule::builder`] takes closures. A typed one ([`NativeModuleBuilder::function`]) has its calling convention
//! derived from its Rust types; a raw one ([`NativeModuleBuilder::raw_function`]) reads its argument block itself, which
//! spans need and which borrows refs instead of retaining them. One from a ref to a ref
//! ([`NativeModuleBuilder::ref_function`]) needs no block at all.

use core::fmt;
use std::sync::Arc;

use crate::module::{call_ref_by_block, unknown_ordinal};
use crate::{
    ArgumentReader, Atom, Buffer, Call, CallShape, CallSite, CallingConvention, ConventionError,
    Dependency, Export, Instance, Invocation, Linkage, List, Module, Ref, RefType, Result, Results,
    Signal,
};

type BlockFunction<S> = Box<dyn Fn(&S, &mut Call<'_, '_>) -> Result<()> + Send + Sync>;
type SiteFactory<S> = Box<dyn Fn(&S, CallShape<'_>) -> Option<Box<dyn CallSite>> + Send + Sync>;
type RefFunction<S> = Box<dyn Fn(&S, &mut Ref) -> Result<()> + Send + Sync>;
type StateFactory<S> = Box<dyn Fn() -> S + Send + Sync>;
type SignalHandler<S> = Box<dyn Fn(&S, Signal) + Send + Sync>;

/// A module of Rust functions over a state of type `S`, one for each context.
pub struct NativeModule<S> {
    name: Box<str>,
    version: u32,
    dependencies: Vec<Dependency>,
    ref_types: Vec<&'static RefType>,
    exports: Vec<Export>,
    functions: Vec<NativeFunction<S>>,
    state: StateFactory<S>,
    signal_handler: Option<SignalHandler<S>>,
}

/// A function of a native module.
struct NativeFunction<S> {
    /// Reads its arguments from their block.
    by_block: BlockFunction<S>,
    /// The same without a block, for some functions from a ref to a ref.
    by_ref: Option<RefFunction<S>>,
    /// See [`NativeModuleBuilder::pure_function`].
    is_pure: bool,
    /// See [`NativeModuleBuilder::function_with_sites`].
    sites: Option<SiteFactory<S>>,
}

impl<S> NativeFunction<S> {
    fn by_block(
        function: impl Fn(&S, &mut Call<'_, '_>) -> Result<()> + Send + Sync + 'static,
        is_pure: bool,
    ) -> Self {
        Self {
            by_block: Box::new(function),
            by_ref: None,
            is_pure,
            sites: None,
        }
    }
}

/// Collects the functions of a [`NativeModule`].
pub struct NativeModuleBuilder<S> {
    module: NativeModule<S>,
    error: Option<NativeModuleError>,
}

/// Why a native module cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NativeModuleError {
    /// The calling convention of a raw function does not parse.
    #[error("function {module}.{function} has a bad calling convention")]
    Convention {
        /// Name of the module.
        module: String,
        /// Name of the function.
        function: String,
        /// What is wrong with it.
        #[source]
        source: ConventionError,
    },
    /// Two functions have the same name and calling convention.
    #[error(
        "function {module}.{function} is registered twice with the calling convention `{convention}`"
    )]
    Duplicate {
        /// Name of the module.
        module: String,
        /// Name of the function.
        function: String,
        /// Calling convention of both.
        convention: String,
    },
}

impl NativeModule<()> {
    /// Returns a builder of a module without state.
    #[must_use]
    pub fn builder(name: &str, version: u32) -> NativeModuleBuilder<()> {
        NativeModule::builder_with_state(name, version, || ())
    }
}

impl<S: Send + 'static> NativeModule<S> {
    /// Returns a builder of a module whose state in each context is made by `state`.
    ///
    /// The state is used by one thread at a time; functions get it shared, because one may call another through the
    /// context: use [`core::cell::RefCell`] or a lock for what changes.
    #[must_use]
    pub fn builder_with_state(
        name: &str,
        version: u32,
        state: impl Fn() -> S + Send + Sync + 'static,
    ) -> NativeModuleBuilder<S> {
        NativeModuleBuilder {
            module: Self {
                name: name.into(),
                version,
                dependencies: Vec::new(),
                ref_types: Vec::new(),
                exports: Vec::new(),
                functions: Vec::new(),
                state: Box::new(state),
                signal_handler: None,
            },
            error: None,
        }
    }
}

impl<S: Send + 'static> NativeModuleBuilder<S> {
    /// Adds a dependency on another module.
    #[must_use]
    pub fn dependency(mut self, dependency: Dependency) -> Self {
        self.module.dependencies.push(dependency);
        self
    }

    /// Makes a ref type known to modules that name it.
    #[must_use]
    pub fn ref_type(mut self, ref_type: &'static RefType) -> Self {
        self.module.ref_types.push(ref_type);
        self
    }

    /// Makes `handler` the one that is told of the context's events.
    #[must_use]
    pub fn on_signal(mut self, handler: impl Fn(&S, Signal) + Send + Sync + 'static) -> Self {
        self.module.signal_handler = Some(Box::new(handler));
        self
    }

    /// Adds a function whose calling convention follows from its types: [`i32`], [`i64`], [`f32`], [`f64`], [`Ref`],
    /// `Arc<Buffer>` and `Arc<List>` as arguments, and a tuple of the same as its result.
    ///
    /// A null or a ref of another type where a buffer or list is asked for is an `INVALID_ARGUMENT` error of the call.
    ///
    /// # Examples
    /// ```
    /// # use vm::NativeModule;
    /// let module = NativeModule::builder("math", 0)
    ///     .function("add", |_: &(), a: i32, b: i32| Ok((a.wrapping_add(b),)))
    ///     .build()?;
    /// # Ok::<(), vm::NativeModuleError>(())
    /// ```
    #[must_use]
    pub fn function<A>(self, name: &str, function: impl TypedFunction<S, A>) -> Self {
        let text = function.convention();
        self.raw_function(name, &text, move |state, call| function.call(state, call))
    }

    /// Adds a function that reads its argument block and pushes its results itself. The caller has checked that it
    /// uses this calling convention.
    ///
    /// Functions may share a name when their conventions differ: an import is bound to the one whose convention it
    /// spells, and to the last one added when it spells none.
    #[must_use]
    pub fn raw_function(
        self,
        name: &str,
        convention: &str,
        function: impl Fn(&S, &mut Call<'_, '_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.add(name, convention, NativeFunction::by_block(function, false))
    }

    /// Adds a raw function as [`NativeModuleBuilder::raw_function`] does, one that has no effect and gives numbers that
    /// depend on nothing but its arguments, so that a caller may remember them: see [`Instance::is_pure`].
    #[must_use]
    pub fn pure_function(
        self,
        name: &str,
        convention: &str,
        function: impl Fn(&S, &mut Call<'_, '_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.add(name, convention, NativeFunction::by_block(function, true))
    }

    /// Adds a raw function as [`NativeModuleBuilder::raw_function`] does, one without results that can be prepared for a
    /// place that calls it: see [`Instance::call_site`].
    #[must_use]
    pub fn function_with_sites(
        self,
        name: &str,
        convention: &str,
        function: impl Fn(&S, &mut Call<'_, '_>) -> Result<()> + Send + Sync + 'static,
        sites: impl Fn(&S, CallShape<'_>) -> Option<Box<dyn CallSite>> + Send + Sync + 'static,
    ) -> Self {
        let function = NativeFunction {
            sites: Some(Box::new(sites)),
            ..NativeFunction::by_block(function, false)
        };
        self.add(name, convention, function)
    }

    /// Adds a function of the calling convention `0r_r`, which gets its argument as a ref of its own: what the ref owns
    /// can go into the result without being counted.
    #[must_use]
    pub fn ref_function(
        self,
        name: &str,
        function: impl Fn(&S, Ref) -> Result<Ref> + Clone + Send + Sync + 'static,
    ) -> Self {
        let same = function.clone();
        let by_block = move |state: &S, call: &mut Call<'_, '_>| {
            let argument = call.arguments.reader().reference()?.clone();
            call.results.push_ref(same(state, argument)?);
            Ok(())
        };
        let by_ref = move |state: &S, value: &mut Ref| {
            *value = function(state, core::mem::take(value))?;
            Ok(())
        };
        let function = NativeFunction {
            by_ref: Some(Box::new(by_ref)),
            ..NativeFunction::by_block(by_block, false)
        };
        self.add(name, "0r_r", function)
    }

    fn add(mut self, name: &str, convention: &str, function: NativeFunction<S>) -> Self {
        let convention = match CallingConvention::parse(convention) {
            Ok(convention) => Arc::new(convention),
            Err(source) => {
                let (module, function) = (self.module.name.to_string(), name.to_owned());
                self.error.get_or_insert(NativeModuleError::Convention {
                    module,
                    function,
                    source,
                });
                return self;
            }
        };
        if self
            .module
            .exports
            .iter()
            .any(|export| &*export.name == name && export.convention == convention)
        {
            self.error.get_or_insert(NativeModuleError::Duplicate {
                module: self.module.name.to_string(),
                function: name.to_owned(),
                convention: convention.text().to_owned(),
            });
        }
        self.module.exports.push(Export {
            name: name.into(),
            convention,
            attributes: Arc::new([]),
        });
        self.module.functions.push(function);
        self
    }

    /// Returns the module.
    ///
    /// # Errors
    /// Fails when a calling convention does not parse or a function was added twice.
    pub fn build(self) -> core::result::Result<Arc<NativeModule<S>>, NativeModuleError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(Arc::new(self.module)),
        }
    }
}

impl<S: Send + 'static> Module for NativeModule<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn dependencies(&self) -> &[Dependency] {
        &self.dependencies
    }

    fn exports(&self) -> &[Export] {
        &self.exports
    }

    fn ref_types(&self) -> &[&'static RefType] {
        &self.ref_types
    }

    fn instantiate(self: Arc<Self>, _linkage: Linkage<'_>) -> Result<Box<dyn Instance>> {
        let state = (self.state)();
        Ok(Box::new(NativeInstance {
            module: self,
            state,
        }))
    }
}

struct NativeInstance<S> {
    module: Arc<NativeModule<S>>,
    state: S,
}

impl<S: Send + 'static> Instance for NativeInstance<S> {
    fn notify(&self, signal: Signal, _invocation: &Invocation<'_>) -> Result<()> {
        if let Some(handler) = &self.module.signal_handler {
            handler(&self.state, signal);
        }
        Ok(())
    }

    #[inline]
    fn call(&self, ordinal: u32, call: &mut Call<'_, '_>) -> Result<()> {
        match self.module.functions.get(ordinal as usize) {
            Some(function) => (function.by_block)(&self.state, call),
            None => Err(unknown_ordinal(&self.module.name, ordinal)),
        }
    }

    #[inline]
    fn call_ref(&self, ordinal: u32, value: &mut Ref, invocation: &Invocation<'_>) -> Result<()> {
        let function = self.module.functions.get(ordinal as usize);
        match function.and_then(|function| function.by_ref.as_ref()) {
            Some(function) => function(&self.state, value),
            None => call_ref_by_block(self, ordinal, value, invocation),
        }
    }

    fn is_pure(&self, ordinal: u32) -> bool {
        let function = self.module.functions.get(ordinal as usize);
        function.is_some_and(|function| function.is_pure)
    }

    fn call_site(&self, ordinal: u32, shape: CallShape<'_>) -> Option<Box<dyn CallSite>> {
        let function = self.module.functions.get(ordinal as usize)?;
        function.sites.as_ref()?(&self.state, shape)
    }
}

impl<S> fmt::Debug for NativeModule<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeModule")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("exports", &self.exports.len())
            .finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for NativeModuleBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeModuleBuilder")
            .field("module", &self.module)
            .field("error", &self.error)
            .finish()
    }
}

impl<S> fmt::Debug for NativeInstance<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeInstance")
            .field("module", &self.module)
            .finish_non_exhaustive()
    }
}

/// A Rust type that an argument of a typed function can have.
pub trait Argument: Sized {
    /// How the calling convention spells it.
    const ATOM: Atom;

    /// Reads it from an argument block.
    ///
    /// # Errors
    /// Fails when the block ends before it or a ref is of another type.
    fn read(reader: &mut ArgumentReader<'_>) -> Result<Self>;
}

/// A Rust type that a result of a typed function can have.
pub trait ReturnValue {
    /// How the calling convention spells it.
    const ATOM: Atom;

    /// Appends it to the results.
    fn push(self, results: &mut Results);
}

/// A tuple of results of a typed function.
pub trait ReturnValues {
    /// Appends how the calling convention spells them to `text`.
    fn spell(text: &mut String);

    /// Appends them to the results.
    fn push(self, results: &mut Results);
}

/// A closure that can be a function of a native module over a state `S`. `A` is the tuple of its argument types and
/// its result.
pub trait TypedFunction<S, A>: Send + Sync + 'static {
    /// Returns the calling convention that follows from the types.
    fn convention(&self) -> String;

    /// Reads the arguments, calls the closure and pushes its results.
    ///
    /// # Errors
    /// Fails when an argument does not have the type asked for, and as the closure does.
    fn call(&self, state: &S, call: &mut Call<'_, '_>) -> Result<()>;
}

macro_rules! implement_value {
    ($($rust:ty, $atom:ident, $read:ident $($cloned:ident)?, $push:ident;)*) => {$(
        impl Argument for $rust {
            const ATOM: Atom = Atom::$atom;

            fn read(reader: &mut ArgumentReader<'_>) -> Result<Self> {
                reader.$read()$(.map(Clone::$cloned))?
            }
        }

        impl ReturnValue for $rust {
            const ATOM: Atom = Atom::$atom;

            fn push(self, results: &mut Results) {
                results.$push(self);
            }
        }
    )*};
}

implement_value! {
    i32, I32, i32, push_i32;
    i64, I64, i64, push_i64;
    f32, F32, f32, push_f32;
    f64, F64, f64, push_f64;
    Ref, Ref, reference clone, push_ref;
    Arc<Buffer>, Ref, buffer clone, push_ref;
    Arc<List>, Ref, list clone, push_ref;
}

macro_rules! implement_tuples {
    ($($type:ident $value:ident)*) => {
        impl<$($type: ReturnValue),*> ReturnValues for ($($type,)*) {
            fn spell(_text: &mut String) {
                $(_text.push($type::ATOM.letter());)*
            }

            fn push(self, _results: &mut Results) {
                let ($($value,)*) = self;
                $($value.push(_results);)*
            }
        }

        impl<S, Closure, Return, $($type: Argument),*> TypedFunction<S, ($($type,)* Return,)> for Closure
        where
            Closure: Fn(&S, $($type),*) -> Result<Return> + Send + Sync + 'static,
            Return: ReturnValues,
        {
            fn convention(&self) -> String {
                let mut text = String::from("0");
                $(text.push($type::ATOM.letter());)*
                text.push('_');
                Return::spell(&mut text);
                spell_nothing_as_v(text)
            }

            fn call(&self, state: &S, call: &mut Call<'_, '_>) -> Result<()> {
                let mut _reader = call.arguments.reader();
                $(let $value = $type::read(&mut _reader)?;)*
                self(state, $($value),*)?.push(call.results);
                Ok(())
            }
        }
    };
}

implement_tuples!();
implement_tuples!(A a);
implement_tuples!(A a B b);
implement_tuples!(A a B b C c);
implement_tuples!(A a B b C c D d);
implement_tuples!(A a B b C c D d E e);
implement_tuples!(A a B b C c D d E e F f);
implement_tuples!(A a B b C c D d E e F f G g);
implement_tuples!(A a B b C c D d E e F f G g H h);

/// Spells missing arguments and results as `v`, as compilers do: conventions are compared byte by byte.
fn spell_nothing_as_v(text: String) -> String {
    match text.split_once('_') {
        Some((arguments, results)) => {
            let arguments = if arguments == "0" { "0v" } else { arguments };
            let results = if results.is_empty() { "v" } else { results };
            format!("{arguments}_{results}")
        }
        None => text,
    }
}
