//! Portable executables: kernels that are functions of a bytecode module.
//!
//! The verified module is shared; each range of workgroups runs in a context that no other range uses at the time, and
//! each workgroup in a frame of its own (`docs/vmvx.md`, section "Entry function").

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use hal_local::{
    Binding, Dispatch, DispatchError, Executable, ExportInfo, LookupError, StatusCode, Worker,
};
use vm::{
    Access, Buffer, Context, Function, InterruptHandle, InvocationOptions, List, Module, Ref,
    Result, Trap, Value,
};

use crate::vmvx_module;

/// The calling convention of every kernel: local memory, constants, list of bindings, then workgroup id, size and
/// count.
pub(crate) const ENTRY_CONVENTION: &str = "0rrriiiiiiiii_v";

/// Export that takes the executable's constants.
pub(crate) const SET_CONSTANTS: &str = "__set_constants";

/// Start of the names of exports that are no kernels.
const SPECIAL_PREFIX: &str = "__";

/// A loaded portable executable.
pub(crate) struct VmvxExecutable {
    module: Arc<dyn Module>,
    constants: Box<[u8]>,
    limits: Limits,
    exports: Box<[ExportInfo]>,
    /// Contexts that no range of workgroups uses at the moment, with their kernels by ordinal.
    contexts: Mutex<Vec<Instance>>,
}

/// What stops kernels that do not end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) interrupt: InterruptHandle,
    /// Instructions that a workgroup may run, and each function that sets an executable up.
    pub(crate) fuel: Option<u64>,
}

impl Limits {
    fn options(&self) -> InvocationOptions<'static> {
        InvocationOptions {
            fuel: self.fuel,
            tracer: None,
        }
    }
}

/// A context of the module, and its kernels by export ordinal; `None` for exports that are none.
struct Instance {
    context: Context,
    kernels: Box<[Option<Function>]>,
}

impl VmvxExecutable {
    /// Returns the executable of a module whose exports were described, after trying that a context of it can be made.
    pub(crate) fn new(
        module: Arc<dyn Module>,
        exports: Box<[ExportInfo]>,
        constants: &[u32],
        limits: Limits,
    ) -> Result<Self> {
        let constants = constants
            .iter()
            .flat_map(|constant| constant.to_le_bytes())
            .collect();
        let executable = Self {
            module,
            constants,
            limits,
            exports,
            contexts: Mutex::default(),
        };
        let instance = executable.new_instance()?;
        executable.give_back(instance);
        Ok(executable)
    }

    fn new_instance(&self) -> Result<Instance> {
        let mut builder = Context::builder()
            .interrupt_handle(self.limits.interrupt.clone())
            .module(vmvx_module())
            .module(Arc::clone(&self.module));
        if let Some(fuel) = self.limits.fuel {
            builder = builder.lifecycle_fuel(fuel);
        }
        let context = builder.build()?;
        let lookup = |name: &str| context.lookup(self.module.name(), name);
        if !self.constants.is_empty() {
            let constants = Buffer::copied_from(&self.constants, Access::HOST_CONSTANT)?;
            let arguments = [Value::Ref(constants.into())];
            context.invoke_with(&lookup(SET_CONSTANTS)?, arguments, self.limits.options())?;
        }
        let kernel = |export: &vm::Export| match is_kernel(&export.name) {
            true => lookup(&export.name).map(Some),
            false => Ok(None),
        };
        let kernels = self
            .module
            .exports()
            .iter()
            .map(kernel)
            .collect::<Result<_>>()?;
        Ok(Instance { context, kernels })
    }

    fn take(&self) -> Result<Instance> {
        let instance = self
            .contexts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        instance.map_or_else(|| self.new_instance(), Ok)
    }

    fn give_back(&self, instance: Instance) {
        self.contexts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(instance);
    }

    fn run_tiles(
        &self,
        instance: &Instance,
        dispatch: &Dispatch<'_>,
        tiles: Range<u64>,
    ) -> Result<()> {
        let ordinal = dispatch.ordinal() as usize;
        let Some(Some(kernel)) = instance.kernels.get(ordinal) else {
            return Err(Trap::invalid_argument(format!(
                "{} is not a kernel",
                dispatch.export()
            )));
        };
        let local_memory = Buffer::allocate(
            dispatch.export().attributes().local_memory_byte_length as u64,
            0,
        )?;
        let constants: Vec<u8> = dispatch
            .constants()
            .iter()
            .flat_map(|constant| constant.to_le_bytes())
            .collect();
        let constants = Buffer::copied_from(&constants, Access::HOST_CONSTANT)?;
        let bindings = dispatch
            .bindings()
            .map(|binding| binding_buffer(&binding))
            .collect::<Result<Vec<_>>>()?;

        let size = dispatch.export().attributes().workgroup_size;
        let count = dispatch.grid().count();
        let options = self.limits.options();
        dispatch.grid().try_for_each(tiles, |id| {
            // A list of its own for each workgroup: a kernel may change it.
            let bindings = List::of_refs(&vm::BUFFER_TYPE, bindings.clone())?;
            let buffers = [
                local_memory.clone().into(),
                constants.clone().into(),
                bindings.into(),
            ];
            let numbers = [id, size, count].into_iter().flatten();
            let arguments = buffers
                .into_iter()
                .map(Value::Ref)
                .chain(numbers.map(|number| Value::I32(number.cast_signed())));
            instance
                .context
                .invoke_with(kernel, arguments, options)
                .map(drop)
        })
    }
}

/// Returns whether an export is a kernel.
pub(crate) fn is_kernel(name: &str) -> bool {
    !name.starts_with(SPECIAL_PREFIX)
}

/// Returns a buffer over the bytes of a binding, which the buffer behind it keeps alive.
fn binding_buffer(binding: &Binding<'_>) -> Result<Ref> {
    let owner = binding
        .owner()
        .and_then(|owner| owner.downcast_ref::<Arc<Buffer>>());
    let Some(buffer) = owner else {
        return Err(Trap::new(
            vm::StatusCode::FAILED_PRECONDITION,
            "a portable kernel was given a binding that is not part of a VM buffer",
        ));
    };
    // A binding that lies in its owner starts at or after it; any other fails the range check.
    let offset = binding.as_ptr().addr().wrapping_sub(buffer.address());
    let length = binding.byte_length();
    buffer
        .subspan(if length == 0 { 0 } else { offset as u64 }, length as u64)
        .map(Ref::from)
}

impl Executable for VmvxExecutable {
    fn exports(&self) -> &[ExportInfo] {
        &self.exports
    }

    fn lookup(&self, name: &[u8]) -> core::result::Result<u32, LookupError> {
        let found = core::str::from_utf8(name)
            .ok()
            .and_then(|name| self.module.lookup(name));
        found.ok_or_else(|| LookupError::NotFound {
            name: String::from_utf8_lossy(name).into_owned(),
            export_count: self.exports.len(),
        })
    }

    fn run(
        &self,
        dispatch: &Dispatch<'_>,
        tiles: Range<u64>,
        _worker: &mut Worker,
    ) -> core::result::Result<(), DispatchError> {
        let instance = self.take().map_err(|trap| dispatch_error(dispatch, trap))?;
        let outcome = self.run_tiles(&instance, dispatch, tiles);
        self.give_back(instance);
        outcome.map_err(|trap| dispatch_error(dispatch, trap))
    }
}

#[cold]
fn dispatch_error(dispatch: &Dispatch<'_>, trap: Trap) -> DispatchError {
    DispatchError::executable(dispatch.export(), status_code(trap.code()), trap)
}

/// Returns the status code of the HAL for one of the VM. A kernel that yields broke its contract.
pub(crate) fn status_code(code: vm::StatusCode) -> StatusCode {
    match code {
        vm::StatusCode::DEFERRED => StatusCode::INTERNAL,
        code => StatusCode(code.value().into()),
    }
}

impl fmt::Debug for VmvxExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VmvxExecutable")
            .field("module", &self.module)
            .finish_non_exhaustive()
    }
}
