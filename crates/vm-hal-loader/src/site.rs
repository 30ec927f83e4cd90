//! The functions that dispatch, and what calls them from one place of a program.

use hal_local::{DispatchError, DispatchRequest, DispatchRequestError, DispatchSite};
use vm::{ArgumentBlock, Call, CallShape, CallSite, Invocation, Result, Trap};

use crate::bindings::{bind, try_bind};
use crate::dispatch::{
    BindingArgument, DispatchAbi, DispatchArguments, dispatch_head, parse_dispatch,
};
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
    let block = &call.arguments;
    let (request, arguments) = parsed_request(block, abi(BY_ID))?;
    let bindings = arguments.bindings().map(|argument| bind(block, argument));
    let outcome = request.run(&*services.dispatcher, bindings);
    outcome.map_err(failure)
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
            None => self.dispatch(&block),
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

    /// Runs any dispatch.
    #[inline(never)]
    fn dispatch(&mut self, block: &ArgumentBlock<'_>) -> Result<()> {
        let (request, arguments) = parsed_request(block, abi(BY_ID))?;
        let bindings = arguments.bindings().map(|argument| bind(block, argument));
        self.site.dispatch(request, bindings).map_err(failure)
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

/// Returns the dispatch that a block describes, and all of its arguments.
fn parsed_request<'a>(
    block: &ArgumentBlock<'a>,
    abi: DispatchAbi,
) -> Result<(DispatchRequest<'a>, DispatchArguments<'a>)> {
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
    Ok((request, arguments))
}

#[cold]
fn failure(error: DispatchRequestError<Trap>) -> Trap {
    match error {
        DispatchRequestError::Binding { index, error } => binding_failure(index, &error),
        DispatchRequestError::Dispatch(error) => dispatch_failure(error),
    }
}

#[cold]
fn negative_count(x: u32, y: u32, z: u32) -> Trap {
    let [x, y, z] = [x, y, z].map(u32::cast_signed);
    Trap::out_of_range(format!(
        "workgroup counts [{x}, {y}, {z}] are out of range: none may be negative"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the block of a dispatch with so many constants, and two bindings with their offset and length.
    fn block(abi: DispatchAbi, constant_count: u32) -> Vec<u32> {
        let mut words = vec![0, 0, 0, 0, 5];
        if abi == DispatchAbi::FunctionId {
            words.push(0);
        }
        words.extend([1, 1, 1, constant_count]);
        words.extend(0..constant_count);
        words.push(2);
        words.resize(words.len().next_multiple_of(2), 0);
        words.extend([1, 0, 0, 0, 64, 0, 128, 0]);
        words.extend([2, 0, 0, 0, 0, 1, 4, 0]);
        words
    }

    #[test]
    fn bindings_are_common_unless_any_of_their_words_varies() {
        for abi in [DispatchAbi::Ordinal, DispatchAbi::FunctionId] {
            for constant_count in 0..4 {
                let words = block(abi, constant_count);
                let bindings_at = words.len() - 16;
                for position in 0..words.len() {
                    let varying: Vec<_> = (0..words.len()).map(|at| at == position).collect();
                    let common = CommonArguments::of(CallShape::new(&words, &varying), abi);
                    // The executable's ref, the counts, the padding and the bindings stay.
                    let head = 4..abi.constants_at() - 1;
                    let constants =
                        abi.constants_at()..abi.constants_at() + constant_count as usize;
                    let may_vary = head.contains(&position) || constants.contains(&position);
                    assert_eq!(
                        common.is_some(),
                        may_vary,
                        "{abi:?} {constant_count} {position}"
                    );
                    assert!(position < bindings_at || common.is_none());
                }
                let common = CommonArguments::of(CallShape::new(&words, &[]), abi).unwrap();
                let parsed = parse_dispatch(&words, abi).unwrap();
                assert_eq!(common.constant_count, parsed.constants.len());
                let bindings: Vec<_> = parsed.bindings().collect();
                assert_eq!(*common.bindings, *bindings);
                assert_eq!((bindings[0].offset, bindings[1].offset), (64, 1 << 32));
            }
        }
    }

    #[test]
    fn what_is_no_block_has_nothing_in_common_with_others() {
        let abi = DispatchAbi::FunctionId;
        let words = block(abi, 1);
        let short = &words[..words.len() - 1];
        assert!(CommonArguments::of(CallShape::new(short, &[]), abi).is_none());
    }
}
