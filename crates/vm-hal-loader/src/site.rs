//! The functions that dispatch, and what calls them from one place of a program.

use hal_local::{DispatchError, DispatchRequest, DispatchSite, DispatchSiteError};
use vm::{ArgumentBlock, Call, CallShape, CallSite, Invocation, Result, Trap};

use crate::bindings::{bind, try_bind};
use crate::dispatch::{BindingArgument, DispatchAbi, dispatch_head, parse_dispatch};
use crate::executable::{EXECUTABLE_TYPE, HalExecutable};
use crate::failure::{binding_failure, dispatch_failure};
use crate::functions::Services;

/// A place of a program that calls `executable.dispatch`, of version 1 or, if not `BY_ID`, of version 0.
#[derive(Debug)]
struct DispatchCall<const BY_ID: bool> {
    site: DispatchSite,
    /// `None` when the dispatches of the place have too little in common.
    common: Option<CommonArguments>,
}

/// What all dispatches of a place have in common.
#[derive(Debug)]
struct CommonArguments {
    constant_count: usize,
    bindings: Box<[BindingArgument]>,
}

/// `executable.dispatch`, called from anywhere.
pub(crate) fn dispatch<const BY_ID: bool>(
    services: &Services,
    call: &mut Call<'_, '_>,
) -> Result<()> {
    let mut site = DispatchSite::new(services.dispatcher.clone());
    dispatch_parsed(&mut site, &call.arguments, abi(BY_ID))
}

/// Returns what calls `executable.dispatch` from one place.
pub(crate) fn dispatch_site<const BY_ID: bool>(
    services: &Services,
    shape: CallShape<'_>,
) -> Option<Box<dyn CallSite>> {
    Some(Box::new(DispatchCall::<BY_ID> {
        site: DispatchSite::new(services.dispatcher.clone()),
        common: CommonArguments::of(shape, abi(BY_ID)),
    }))
}

impl<const BY_ID: bool> CallSite for DispatchCall<BY_ID> {
    fn call(&mut self, block: ArgumentBlock<'_>, _invocation: &Invocation<'_>) -> Result<()> {
        match self.repeat(&block) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(dispatch_failure(error)),
            None => dispatch_parsed(&mut self.site, &block, abi(BY_ID)),
        }
    }
}

impl<const BY_ID: bool> DispatchCall<BY_ID> {
    /// Runs the dispatch, if it is like the last one.
    #[inline(always)]
    fn repeat(
        &mut self,
        block: &ArgumentBlock<'_>,
    ) -> Option<core::result::Result<(), DispatchError>> {
        let common = self.common.as_ref()?;
        let head = dispatch_head(block.words(), abi(BY_ID))?;
        let constants = block.words().get(abi(BY_ID).constants_at()..)?;
        let executable: &HalExecutable = block.get(head.executable)?.object_of_type()?;
        let request = DispatchRequest {
            executable: executable.handle(),
            function: head.function,
            workgroup_count: head.workgroup_count,
            constants: constants.get(..common.constant_count)?,
        };
        let bindings = common.bindings.iter();
        let bindings = bindings.map(|argument| try_bind(block, argument));
        self.site.repeat(request, bindings)
    }
}

impl CommonArguments {
    /// Returns what blocks of this shape have in common; `None` when they are no blocks, or bindings vary by more than their
    /// buffers.
    fn of(shape: CallShape<'_>, abi: DispatchAbi) -> Option<Self> {
        let words = shape.words();
        let arguments = parse_dispatch(words, abi).ok()?;
        let constants = abi.constants_at()..abi.constants_at() + arguments.constants.len();
        let may_vary = |at| abi.head_at().contains(&at) || constants.contains(&at);
        let is_common = (0..words.len()).all(|at| may_vary(at) || !shape.varies(at));
        is_common.then(|| Self {
            bindings: arguments.bindings().collect(),
            constant_count: constants.len(),
        })
    }
}

const fn abi(by_id: bool) -> DispatchAbi {
    if by_id {
        DispatchAbi::FunctionId
    } else {
        DispatchAbi::Ordinal
    }
}

/// Runs the dispatch that a block describes and returns when it is done.
#[inline(never)]
fn dispatch_parsed(
    site: &mut DispatchSite,
    block: &ArgumentBlock<'_>,
    abi: DispatchAbi,
) -> Result<()> {
    let arguments = parse_dispatch(block.words(), abi)?;
    let executable: &HalExecutable = block
        .resolve(arguments.executable)?
        .as_object(&EXECUTABLE_TYPE)?;
    let [x, y, z] = arguments.workgroup_count;
    if (x | y | z).cast_signed() < 0 {
        return Err(negative_count(x, y, z));
    }
    let request = DispatchRequest {
        executable: executable.handle(),
        function: arguments.function,
        workgroup_count: arguments.workgroup_count,
        constants: arguments.constants,
    };
    let bindings = arguments.bindings().map(|argument| bind(block, argument));
    site.dispatch(request, bindings).map_err(failure)
}

#[cold]
fn failure(error: DispatchSiteError<Trap>) -> Trap {
    match error {
        DispatchSiteError::Binding { index, error } => binding_failure(index, &error),
        DispatchSiteError::Dispatch(error) => dispatch_failure(error),
    }
}

#[cold]
fn negative_count(x: u32, y: u32, z: u32) -> Trap {
    let [x, y, z] = [x, y, z].map(u32::cast_signed);
    Trap::out_of_range(format!(
        "workgroup counts [{x}, {y}, {z}] are out of range: none may be negative"
    ))
}
