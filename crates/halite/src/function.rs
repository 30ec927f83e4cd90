//! Functions: what a session calls.
#![forbid(unsafe_code)]

use core::cell::Cell;
use core::fmt;

use vm::{Atom, CallingConvention, Context, InvocationOptions, Item, PreparedCall, Trap};

use crate::signature::DeclaredTensor;
use crate::text::Parameter;
use crate::{Error, Signature, Value};

/// Key of the attribute that holds a function's declaration (`docs/vm.md`, section "Reflection attributes").
const DECLARATION: &str = "iree.abi.declaration";

/// A function of a session, looked up once and called often.
pub struct Function<'s> {
    context: &'s Context,
    function: vm::Function,
    signature: Option<Signature>,
    /// The arguments that are declared as tensors; `None` for others.
    tensors: Vec<Option<DeclaredTensor>>,
    /// The memory of the last call, for the next one. A call that comes while one runs makes its own.
    idle_call: Cell<Option<Box<PreparedCall>>>,
}

impl<'s> Function<'s> {
    pub(crate) fn new(context: &'s Context, function: vm::Function) -> Self {
        let signature = function.attribute(DECLARATION).and_then(Signature::parse);
        let inputs = signature.iter().flat_map(|signature| &signature.inputs);
        let mut tensors: Vec<_> = inputs
            .map(|declared| DeclaredTensor::parse(&declared.type_name))
            .collect();
        tensors.resize(function.convention().arguments().len(), None);
        Self {
            context,
            idle_call: Cell::new(None),
            function,
            tensors,
            signature,
        }
    }

    /// Returns the name, without the module's.
    #[must_use]
    pub fn name(&self) -> &str {
        self.function.name()
    }

    /// Returns the declaration as the program was written, when the compiler kept it.
    #[must_use]
    pub fn declaration(&self) -> Option<&str> {
        self.function.attribute(DECLARATION)
    }

    /// Returns what the declaration says the function takes and returns.
    #[must_use]
    pub fn signature(&self) -> Option<&Signature> {
        self.signature.as_ref()
    }

    /// Returns the types that the virtual machine passes. A call is checked against them and against the declaration.
    #[must_use]
    pub fn convention(&self) -> &CallingConvention {
        self.function.convention()
    }

    /// Returns the arguments in the form that [`crate::text::Inputs`] takes.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameter<'_>> {
        let inputs = self
            .signature
            .as_ref()
            .map_or(&[][..], |signature| &signature.inputs);
        let atoms = self
            .convention()
            .arguments()
            .iter()
            .filter_map(|item| match item {
                Item::Atom(atom) => Some(*atom),
                Item::Span(_) => None,
            });
        atoms
            .enumerate()
            .map(|(index, atom)| Parameter {
                atom,
                declared_type: inputs
                    .get(index)
                    .map(|declared| declared.type_name.as_str()),
            })
            .collect()
    }

    /// Calls the function with `arguments` and returns its results.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the arguments do not fit, and as the function fails.
    pub fn invoke(&self, arguments: &[Value]) -> Result<Vec<Value>, Error> {
        self.invoke_with(arguments, InvocationOptions::default())
    }

    /// Calls as [`Function::invoke`], limited and watched as `options` say.
    ///
    /// # Errors
    /// As [`Function::invoke`]; `DEADLINE_EXCEEDED` when the fuel is used up.
    pub fn invoke_with(
        &self,
        arguments: &[Value],
        options: InvocationOptions<'_>,
    ) -> Result<Vec<Value>, Error> {
        let mut results = Vec::with_capacity(self.convention().results().len());
        self.call(arguments, options, &mut results)?;
        Ok(results)
    }

    /// Calls as [`Function::invoke`] and puts the results into `results`, in place of what is in there: its memory serves
    /// from call to call. It is empty after a failure.
    ///
    /// # Errors
    /// As [`Function::invoke`].
    pub fn invoke_into(&self, arguments: &[Value], results: &mut Vec<Value>) -> Result<(), Error> {
        // Before the call: it may use the memory of tensors that go.
        results.clear();
        self.call(arguments, InvocationOptions::default(), results)
    }
}

impl Function<'_> {
    /// Calls the function and appends its results to `results`, unless it fails.
    #[inline]
    fn call(
        &self,
        arguments: &[Value],
        options: InvocationOptions<'_>,
        results: &mut Vec<Value>,
    ) -> Result<(), Error> {
        if arguments.len() != self.tensors.len() {
            return Err(self.wrong_count(arguments.len()));
        }
        let idle = self.idle_call.take();
        let mut call = idle.unwrap_or_else(|| Box::new(PreparedCall::new(&self.function)));
        if let Err(index) = self.pass(arguments, &mut call) {
            call.release_refs();
            self.idle_call.set(Some(call));
            return Err(self.unfit(index, &arguments[index]));
        }
        let values = self
            .context
            .call_prepared(&self.function, &mut call, options);
        let outcome = values.map(|values| results.extend(values.map(Value::from_vm)));
        self.idle_call.set(Some(call));
        outcome.map_err(|trap| self.failed(trap))
    }

    /// Makes `arguments` those of `call`.
    ///
    /// # Errors
    /// Returns the index of the first that does not fit the declaration or the calling convention.
    #[inline]
    fn pass(&self, arguments: &[Value], call: &mut PreparedCall) -> Result<(), usize> {
        let declared = self.tensors.iter().zip(arguments);
        for (index, (declared, argument)) in declared.enumerate() {
            let passed = if let Value::Tensor(tensor) = argument {
                let accepts = |declared: &DeclaredTensor| declared.accepts(tensor);
                declared.as_ref().is_none_or(accepts)
                    && call.set_ref(index, tensor.to_ref()).is_ok()
            } else {
                pass_other(index, argument, declared.is_some(), call)
            };
            if !passed {
                return Err(index);
            }
        }
        Ok(())
    }

    #[cold]
    fn failed(&self, source: Trap) -> Error {
        Error::Call {
            function: self.name().into(),
            source,
        }
    }

    #[cold]
    fn wrong_count(&self, found: usize) -> Error {
        Error::ArgumentCount {
            function: self.name().into(),
            expected: self.tensors.len(),
            found,
        }
    }

    #[cold]
    fn unfit(&self, index: usize, argument: &Value) -> Error {
        let inputs = self.signature.as_ref().map(|signature| &signature.inputs);
        let declared = inputs.and_then(|inputs| inputs.get(index));
        let expected = match (declared, &self.convention().arguments()[index]) {
            (Some(declared), _) => declared.type_name.clone(),
            (None, Item::Atom(Atom::I32)) => "i32".into(),
            (None, Item::Atom(Atom::I64)) => "i64".into(),
            (None, Item::Atom(Atom::F32)) => "f32".into(),
            (None, Item::Atom(Atom::F64)) => "f64".into(),
            (None, Item::Atom(Atom::Ref)) => "a ref".into(),
            (None, Item::Span(_)) => "any number of values".into(),
        };
        Error::Argument {
            function: self.name().into(),
            index,
            name: declared.map_or_else(String::new, |declared| declared.name.clone()),
            expected,
            found: argument.kind(),
        }
    }
}

/// Makes `argument`, which is no tensor, one of `call`, unless it does not fit.
#[inline(never)]
fn pass_other(index: usize, argument: &Value, is_tensor: bool, call: &mut PreparedCall) -> bool {
    let is_missing = is_tensor && matches!(argument, Value::Null);
    !is_missing && call.set(index, argument.to_vm()).is_ok()
}

impl fmt::Debug for Function<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("name", &self.name())
            .field("convention", self.convention())
            .finish_non_exhaustive()
    }
}
