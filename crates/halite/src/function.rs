//! Functions: what a session calls.
#![forbid(unsafe_code)]

use core::fmt;

use vm::{Atom, CallingConvention, Context, InvocationOptions, Item};

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
}

impl<'s> Function<'s> {
    pub(crate) fn new(context: &'s Context, function: vm::Function) -> Self {
        let signature = function.attribute(DECLARATION).and_then(Signature::parse);
        let inputs = signature.iter().flat_map(|signature| &signature.inputs);
        let tensors = inputs.map(|declared| DeclaredTensor::parse(&declared.type_name));
        Self {
            context,
            function,
            tensors: tensors.collect(),
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
        let expected = self.convention().arguments().len();
        if arguments.len() != expected {
            return Err(Error::ArgumentCount {
                function: self.name().into(),
                expected,
                found: arguments.len(),
            });
        }
        self.check_arguments(arguments)?;
        let arguments = arguments.iter().map(Value::to_vm);
        match self.context.invoke_with(&self.function, arguments, options) {
            Ok(results) => Ok(results.into_iter().map(Value::from_vm).collect()),
            Err(source) => Err(Error::Call {
                function: self.name().into(),
                source,
            }),
        }
    }
}

impl Function<'_> {
    /// Compares arguments with the calling convention and the declaration.
    fn check_arguments(&self, arguments: &[Value]) -> Result<(), Error> {
        let items = self.convention().arguments().iter().zip(arguments);
        for (index, (item, argument)) in items.enumerate() {
            if !is_passed_as(argument, item) {
                return Err(self.unfit(index, item, argument));
            }
            match (self.tensors.get(index), argument) {
                (Some(Some(declared)), Value::Tensor(tensor)) if !declared.accepts(tensor) => {
                    return Err(self.unfit(index, item, argument));
                }
                (Some(Some(_)), Value::Null) => return Err(self.unfit(index, item, argument)),
                _ => {}
            }
        }
        Ok(())
    }

    #[cold]
    fn unfit(&self, index: usize, item: &Item, argument: &Value) -> Error {
        let inputs = self.signature.as_ref().map(|signature| &signature.inputs);
        let declared = inputs.and_then(|inputs| inputs.get(index));
        let expected = match (declared, item) {
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

/// Tells whether an argument is of the kind that the calling convention passes.
fn is_passed_as(argument: &Value, item: &Item) -> bool {
    let atom = match argument {
        Value::I32(_) => Atom::I32,
        Value::I64(_) => Atom::I64,
        Value::F32(_) => Atom::F32,
        Value::F64(_) => Atom::F64,
        Value::Null
        | Value::Tensor(_)
        | Value::Storage(_)
        | Value::Buffer(_)
        | Value::List(_)
        | Value::Opaque(_) => Atom::Ref,
    };
    matches!(item, Item::Atom(expected) if *expected == atom)
}

impl fmt::Debug for Function<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("name", &self.name())
            .field("convention", self.convention())
            .finish_non_exhaustive()
    }
}
