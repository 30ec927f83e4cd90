//! The functions of the module, except those that dispatch.

use std::borrow::Cow;
use std::sync::Arc;

use hal_local::{Dispatcher, ExecutableData, ExecutableParams, LoaderRegistry};
use vm::{Buffer, Call, Ref, Result, Trap};

use crate::executable::{EXECUTABLE_TYPE, HalExecutable};
use crate::failure::{load_failure, lookup_failure};

/// What the functions work with; contexts share it.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) loaders: LoaderRegistry,
    pub(crate) dispatcher: Arc<dyn Dispatcher>,
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
