//! The argument block of `executable.dispatch`, in both its versions: words in, checked arguments out.
//!
//! Offsets in words, where `c` is the number of constants (`docs/vm.md`, section "Argument blocks"):
//!
//! | ordinal | function id | content |
//! |---|---|---|
//! | 0 | 0 | executable: index of a ref, and three words of zero |
//! | 4 | 4 (2 words) | the function |
//! | 5, 6, 7 | 6, 7, 8 | workgroup counts in x, y and z |
//! | 8 | 9 | `c` |
//! | 9 | 10 | the constants |
//! | 9 + c | 10 + c | the number of bindings |
//! | next even | next even | bindings, 8 words each: index of a ref and three words of zero, offset, length |
//!
//! The offsets follow from the calling convention and from no struct: a C struct of the five fixed values of the
//! second version has a tail padding that the block has not.

use core::ops::Range;

/// The most bindings of a dispatch, as the ABI of executables limits them. IREE's own module stops at 32.
pub const MAX_BINDINGS: usize = 64;

/// Words that a ref takes; the first is its index.
const REF_WORDS: usize = 4;

/// Words that a binding takes.
const BINDING_WORDS: usize = REF_WORDS + 4;

/// The two versions of the function, which differ in how they name what is dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DispatchAbi {
    /// By a 32-bit ordinal: version 0 of the module, compilers before IREE 3.12.
    Ordinal,
    /// By a 64-bit id that was looked up before: version 1 of the module.
    FunctionId,
}

impl DispatchAbi {
    /// Returns the calling convention of the function.
    #[must_use]
    pub const fn convention(self) -> &'static str {
        match self {
            Self::Ordinal => "0riiiiCiDCrIID_v",
            Self::FunctionId => "0rIiiiCiDCrIID_v",
        }
    }

    /// Returns where the function and the workgroup counts are, in words.
    pub(crate) const fn head_at(self) -> Range<usize> {
        REF_WORDS..self.fixed_word_count()
    }

    /// Returns where the constants begin, in words.
    pub(crate) const fn constants_at(self) -> usize {
        self.fixed_word_count() + 1
    }

    /// Returns the number of words before the count of constants.
    #[inline]
    const fn fixed_word_count(self) -> usize {
        match self {
            Self::Ordinal => 8,
            Self::FunctionId => 9,
        }
    }
}

/// The arguments of a dispatch, borrowed from their block. Refs are indices into the refs of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchArguments<'a> {
    /// Index of the executable's ref.
    pub executable: u32,
    /// The function: its position in the executable. An ordinal is sign-extended, so that -1 is no function.
    pub function: u64,
    /// Workgroup counts in x, y and z.
    pub workgroup_count: [u32; 3],
    /// The constants.
    pub constants: &'a [u32],
    /// Invariant: at most [`MAX_BINDINGS`].
    bindings: &'a [[u32; BINDING_WORDS]],
}

/// What a block says first: the fields of [`DispatchArguments`] up to the constants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DispatchHead {
    pub(crate) executable: u32,
    pub(crate) function: u64,
    pub(crate) workgroup_count: [u32; 3],
}

/// A binding of a dispatch: a part of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingArgument {
    /// Index of the buffer's ref.
    pub buffer: u32,
    /// Where the part begins, in bytes.
    pub offset: u64,
    /// Length of the part in bytes.
    pub length: u64,
}

/// Why a block holds no arguments of a dispatch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchArgumentsError {
    /// The block ends before its arguments.
    #[error(
        "argument/result signature mismatch; `{convention}` needs at least {needed} words here, \
         the block has {word_count}"
    )]
    TooShort {
        /// The calling convention.
        convention: &'static str,
        /// Words up to the end of the value that is missing.
        needed: u64,
        /// Words of the block.
        word_count: usize,
    },
    /// The block goes on after its arguments.
    #[error(
        "argument/result signature mismatch; `{convention}` takes {needed} words here, \
         the block has {word_count}"
    )]
    TooLong {
        /// The calling convention.
        convention: &'static str,
        /// Words of the arguments.
        needed: u64,
        /// Words of the block.
        word_count: usize,
    },
    /// There are more bindings than any function may take.
    #[error("too many bindings: {count} were passed, the limit is {MAX_BINDINGS}")]
    TooManyBindings {
        /// The number of bindings.
        count: usize,
    },
}

impl DispatchArguments<'_> {
    /// Returns the bindings in order, at most [`MAX_BINDINGS`].
    #[inline]
    pub fn bindings(&self) -> impl ExactSizeIterator<Item = BindingArgument> + Clone + '_ {
        self.bindings.iter().map(
            |&[buffer, .., offset_low, offset_high, length_low, length_high]| BindingArgument {
                buffer,
                offset: wide(offset_low, offset_high),
                length: wide(length_low, length_high),
            },
        )
    }
}

/// Returns the arguments of a dispatch in a block of these words.
///
/// Nothing is read before it is known to be there, and nothing is allocated: the result borrows the block.
///
/// # Errors
/// Fails when the block is shorter or longer than its own counts say, or has too many bindings.
#[inline]
pub fn parse_dispatch(
    words: &[u32],
    abi: DispatchAbi,
) -> Result<DispatchArguments<'_>, DispatchArgumentsError> {
    match parse(words, abi) {
        Some(arguments) => Ok(arguments),
        None => Err(explain(words, abi)),
    }
}

/// Returns what a block says first, or `None` when it ends before.
#[inline]
pub(crate) fn dispatch_head(words: &[u32], abi: DispatchAbi) -> Option<DispatchHead> {
    let (executable, function, workgroup_count) = match abi {
        DispatchAbi::Ordinal => {
            let &[executable, _, _, _, ordinal, x, y, z] = words.first_chunk()?;
            let function = i64::from(ordinal.cast_signed()).cast_unsigned();
            (executable, function, [x, y, z])
        }
        DispatchAbi::FunctionId => {
            let &[executable, _, _, _, low, high, x, y, z] = words.first_chunk()?;
            (executable, wide(low, high), [x, y, z])
        }
    };
    Some(DispatchHead {
        executable,
        function,
        workgroup_count,
    })
}

/// Returns the arguments, or `None` when the block has another length than they take, or too many bindings.
#[inline]
fn parse(words: &[u32], abi: DispatchAbi) -> Option<DispatchArguments<'_>> {
    let DispatchHead {
        executable,
        function,
        workgroup_count,
    } = dispatch_head(words, abi)?;
    let rest = words.get(abi.fixed_word_count()..)?;
    let (&constant_count, rest) = rest.split_first()?;
    let (constants, rest) = rest.split_at_checked(constant_count as usize)?;
    let (&binding_count, rest) = rest.split_first()?;

    let binding_count = binding_count as usize;
    if binding_count > MAX_BINDINGS {
        return None;
    }

    // Bindings begin at an even word. After a span of none a writer may pad the block to the same end.
    let padding = (abi.fixed_word_count() + 2 + constants.len()) % 2;
    let bindings = match binding_count {
        0 if rest.len() <= padding => &[],
        0 => return None,
        count => {
            let (bindings, left) = rest.get(padding..)?.as_chunks();
            if bindings.len() != count || !left.is_empty() {
                return None;
            }
            bindings
        }
    };
    Some(DispatchArguments {
        executable,
        function,
        workgroup_count,
        constants,
        bindings,
    })
}

/// Returns why [`parse`] refuses a block.
#[cold]
fn explain(words: &[u32], abi: DispatchAbi) -> DispatchArgumentsError {
    let (convention, word_count) = (abi.convention(), words.len());
    let too_short = |needed| DispatchArgumentsError::TooShort {
        convention,
        needed,
        word_count,
    };
    let count_at = |offset: u64| {
        let offset = usize::try_from(offset).ok()?;
        words.get(offset).map(|count| u64::from(*count))
    };

    let fixed = abi.fixed_word_count() as u64;
    let Some(constant_count) = count_at(fixed) else {
        return too_short(fixed + 1);
    };
    let bindings_count_at = fixed + 1 + constant_count;
    let Some(binding_count) = count_at(bindings_count_at) else {
        return too_short(bindings_count_at + 1);
    };
    let needed = match binding_count {
        0 => bindings_count_at + 1,
        count => (bindings_count_at + 1).next_multiple_of(2) + count * BINDING_WORDS as u64,
    };
    if (word_count as u64) < needed {
        return too_short(needed);
    }
    if (word_count as u64) == needed {
        return DispatchArgumentsError::TooManyBindings {
            count: usize::try_from(binding_count).unwrap_or(usize::MAX),
        };
    }
    DispatchArgumentsError::TooLong {
        convention,
        needed,
        word_count,
    }
}

#[inline]
fn wide(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[cfg(test)]
mod tests;
