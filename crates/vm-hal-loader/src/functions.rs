//! The functions of the module.

use core::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use hal_local::{
    Dispatch, DispatchError, Dispatcher, Executable, ExecutableData, ExecutableParams,
    InlineDispatcher, KernelBindings, LoaderRegistry,
};
use vm::{Buffer, Call, Ref, Result, Trap};

use crate::bindings::{PassedBindings, bind};
use crate::dispatch::{DispatchAbi, parse_dispatch};
use crate::executable::{EXECUTABLE_TYPE, HalExecutable};
use crate::failure::{binding_failure, dispatch_failure, load_failure, lookup_failure};

/// What the functions work with; contexts share it.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) loaders: LoaderRegistry,
    pub(crate) runner: Runner,
}

/// A dispatcher; the one of most sessions is named, so that its code is part of the dispatching function's.
#[derive(Clone)]
pub(crate) enum Runner {
    Inline(Arc<InlineDispatcher>),
    Other(Arc<dyn Dispatcher>),
}

impl Runner {
    pub(crate) fn new(dispatcher: Arc<dyn Dispatcher>) -> Self {
        let any: Arc<dyn Any + Send + Sync> = Arc::clone(&dispatcher) as _;
        match any.downcast() {
            Ok(inline) => Self::Inline(inline),
            Err(_) => Self::Other(dispatcher),
        }
    }

    #[inline(always)]
    fn dispatch(
        &self,
        executable: &dyn Executable,
        dispatch: &Dispatch<'_>,
    ) -> core::result::Result<(), DispatchError> {
        match self {
            Self::Inline(dispatcher) => dispatcher.dispatch(executable, dispatch),
            Self::Other(dispatcher) => dispatcher.dispatch(executable, dispatch),
        }
    }
}

/// `executable.query_support`, `0r_i`: the name of a format to whether any loader takes it.
pub(crate) fn query_support(services: &Services, call: &mut Call<'_, '_>) -> Result<()> {
    let format = text(call.arguments.reader().buffer()?);
    let supported = services.loaders.supports_format(&format);
    call.results.push_i32(supported.into());
    Ok(())
}

/// `executable.load`, `0rrr_r`: format, data and constants or null to an executable.
pub(crate) fn load(services: &Services, call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let format = text(arguments.buffer()?);
    let data = executable_data(arguments.buffer()?);
    let constants = match arguments.reference()? {
        Ref::Null => Vec::new(),
        constants => constants_of(constants.as_buffer()?)?,
    };
    let params = ExecutableParams {
        format: &format,
        data,
        constants: &constants,
    };
    let executable = services
        .loaders
        .load(&params)
        .map_err(|error| load_failure(&format, error))?;
    call.results.push_ref(HalExecutable::new(executable));
    Ok(())
}

/// `executable.lookup.function`, `0rr_I`: executable and name to the id of a function, which is its ordinal.
///
/// Programs ask before every dispatch, with a constant of theirs; a bytecode module remembers the answer where it asks.
pub(crate) fn lookup_function(_services: &Services, call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let executable: &HalExecutable = arguments.reference()?.as_object(&EXECUTABLE_TYPE)?;
    let name = arguments.buffer()?;
    let name = match name.as_constant() {
        Some(bytes) => Cow::Borrowed(bytes),
        None => Cow::Owned(name.to_vec()),
    };
    let ordinal = executable
        .executable()
        .lookup(&name)
        .map_err(|error| lookup_failure(&error))?;
    call.results.push_i64(ordinal.into());
    Ok(())
}

/// `executable.dispatch` of version 0.
pub(crate) fn dispatch_by_ordinal(services: &Services, call: &mut Call<'_, '_>) -> Result<()> {
    dispatch(services, call, DispatchAbi::Ordinal)
}

/// `executable.dispatch` of version 1.
pub(crate) fn dispatch_by_id(services: &Services, call: &mut Call<'_, '_>) -> Result<()> {
    dispatch(services, call, DispatchAbi::FunctionId)
}

/// Runs a function of an executable on parts of buffers and returns when it is done.
///
/// Inlined into both callers, which are called through pointers: `abi` is then a constant and the arguments are not
/// copied once more.
#[inline(always)]
fn dispatch(services: &Services, call: &mut Call<'_, '_>, abi: DispatchAbi) -> Result<()> {
    let block = call.arguments;
    let arguments = parse_dispatch(block.words(), abi)?;
    let executable: &HalExecutable = block
        .resolve(arguments.executable)?
        .as_object(&EXECUTABLE_TYPE)?;
    let [x, y, z] = arguments.workgroup_count;
    if (x | y | z).cast_signed() < 0 {
        return Err(negative_count(x, y, z));
    }

    let passed = PassedBindings {
        block: &call.arguments,
        abi,
    };
    let mut bindings = KernelBindings::new(&passed);
    let bound = arguments.bindings().map(|argument| bind(&block, argument));
    if let Err((index, trap)) = bindings.try_fill(bound) {
        return Err(binding_failure(index, &trap));
    }
    let Some(export) = executable.export(arguments.function) else {
        return Err(no_function(arguments.function, executable));
    };
    match Dispatch::prepared(export, [x, y, z], arguments.constants, &bindings) {
        Ok(dispatch) => services
            .runner
            .dispatch(&**executable.executable(), &dispatch)
            .map_err(dispatch_failure),
        Err(error) => Err(dispatch_failure(error)),
    }
}

/// Returns the bytes of a buffer as text; what is not UTF-8 is replaced.
fn text(buffer: &Buffer) -> String {
    String::from_utf8_lossy(&buffer.to_vec()).into_owned()
}

/// Returns the bytes of a buffer for a loader to keep: shared when they are constant, copied when they could change.
fn executable_data(buffer: &Arc<Buffer>) -> ExecutableData {
    match buffer.as_constant() {
        Some(_) => ExecutableData::new(Arc::new(ConstantBytes(Arc::clone(buffer)))),
        None => buffer.to_vec().into(),
    }
}

/// A buffer of constant bytes.
struct ConstantBytes(Arc<Buffer>);

impl AsRef<[u8]> for ConstantBytes {
    fn as_ref(&self) -> &[u8] {
        // Constant bytes stay constant.
        self.0.as_constant().unwrap_or_default()
    }
}

/// Returns the words of a buffer of executable-level constants.
fn constants_of(buffer: &Buffer) -> Result<Vec<u32>> {
    let bytes = buffer.to_vec();
    let (words, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(Trap::invalid_argument(format!(
            "constant buffer data must contain 4-byte elements but data length is {}",
            bytes.len()
        )));
    }
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

#[cold]
fn no_function(id: u64, executable: &HalExecutable) -> Trap {
    dispatch_failure(DispatchError::id_out_of_range(
        id,
        &**executable.executable(),
    ))
}

#[cold]
fn negative_count(x: u32, y: u32, z: u32) -> Trap {
    let [x, y, z] = [x, y, z].map(u32::cast_signed);
    Trap::out_of_range(format!(
        "workgroup counts [{x}, {y}, {z}] are out of range: none may be negative"
    ))
}
