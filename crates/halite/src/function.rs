//! Functions: what a session calls.
#![forbid(unsafe_code)]

use core::fmt;

use vm::{CallingConvention, Context, InvocationOptions, Item};

use crate::text::Parameter;
use crate::{Error, Signature, Value};

/// Key of the attribute that holds a function's declaration (`docs/vm.md`, section "Reflection attributes").
const DECLARATION: &str = "iree.abi.declaration";

/// A function of a session, looked up once and called often.
pub struct Function<'s> {
    context: &'s Context,
    function: vm::Function,
    signature: Option<Signature>,
}

impl<'s> Function<'s> {
    pub(crate) fn new(context: &'s Context, function: vm::Function) -> Self {
        let signature = function.attribute(DECLARATION).and_then(Signature::parse);
        Self {
            context,
            function,
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

    /// Returns the types that calls are checked against.
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

impl fmt::Debug for Function<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("name", &self.name())
            .field("convention", self.convention())
            .finish_non_exhaustive()
    }
}
