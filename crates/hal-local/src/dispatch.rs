//! A request to run a function on some memory, checked: [`Dispatch`].

mod error;

use std::ops::Range;

use hal_abi::{MAX_BINDINGS, MAX_CONSTANTS};

pub use error::DispatchError;

use crate::binding::{Bindings, KernelBindings};
use crate::{Binding, Executable, ExportInfo, Grid};

/// A dispatch that fits the function it names.
///
/// Invariant: constants and bindings are as many as `export` wants (or at most the limits of the
/// ABI, if it does not say), bindings are aligned as it wants, and the count in z fits 16 bits.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch<'a> {
    export: &'a ExportInfo,
    grid: Grid,
    constants: &'a [u32],
    bindings: Bindings<'a>,
}

impl<'a> Dispatch<'a> {
    /// Checks a dispatch of the function `id` of `executable`, which is its ordinal.
    ///
    /// A workgroup count of zero is legal: nothing will run. Counts are unsigned, so a negative
    /// count of a caller with signed integers is a very large one.
    ///
    /// # Errors
    ///
    /// Fails if the id is out of range, the counts exceed what the ABI can express, or constants or
    /// bindings are not what the function wants.
    pub fn new(
        executable: &'a dyn Executable,
        id: u64,
        workgroup_count: [u32; 3],
        constants: &'a [u32],
        bindings: &'a [Binding<'a>],
    ) -> Result<Self, DispatchError> {
        let bindings = Bindings::listed(bindings);
        Self::check(executable, id, workgroup_count, constants, bindings)
    }

    /// As [`Dispatch::new`], of bindings in the form that native kernels are given.
    pub(crate) fn prepared(
        executable: &'a dyn Executable,
        id: u64,
        workgroup_count: [u32; 3],
        constants: &'a [u32],
        bindings: &'a KernelBindings<'a>,
    ) -> Result<Self, DispatchError> {
        let bindings = Bindings::prepared(bindings);
        Self::check(executable, id, workgroup_count, constants, bindings)
    }

    fn check(
        executable: &'a dyn Executable,
        id: u64,
        workgroup_count: [u32; 3],
        constants: &'a [u32],
        bindings: Bindings<'a>,
    ) -> Result<Self, DispatchError> {
        let Some(export) = usize::try_from(id)
            .ok()
            .and_then(|ordinal| executable.exports().get(ordinal))
        else {
            return Err(DispatchError::id_out_of_range(id, executable));
        };
        let attributes = export.attributes();
        match attributes.constant_count {
            Some(expected) if constants.len() == expected => {}
            None if constants.len() <= MAX_CONSTANTS => {}
            _ => return Err(DispatchError::constant_count(export, constants.len())),
        }
        match attributes.binding_count {
            Some(expected) if bindings.count() == expected => {}
            None if bindings.count() <= MAX_BINDINGS => {}
            _ => return Err(DispatchError::binding_count(export, bindings.count())),
        }
        if bindings.address_bits() & (attributes.binding_alignment - 1) != 0 {
            return Err(bindings.misaligned(export));
        }
        let [x, y, z] = workgroup_count;
        if z > u32::from(u16::MAX) {
            return Err(DispatchError::count_z(export, z));
        }
        let Some(grid) = Grid::new(workgroup_count) else {
            return Err(DispatchError::count_total(export, x, y, z));
        };
        Ok(Self {
            export,
            grid,
            constants,
            bindings,
        })
    }

    /// Returns the function.
    #[must_use]
    #[inline]
    pub fn export(&self) -> &'a ExportInfo {
        self.export
    }

    /// Returns the position of the function in its executable.
    #[must_use]
    #[inline]
    pub fn ordinal(&self) -> u32 {
        self.export.ordinal()
    }

    /// Returns the workgroups to run.
    #[must_use]
    #[inline]
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Returns the constants.
    #[must_use]
    #[inline]
    pub fn constants(&self) -> &'a [u32] {
        self.constants
    }

    /// Returns the bindings.
    pub fn bindings(&self) -> impl Iterator<Item = Binding<'a>> + use<'a> {
        let bindings = self.bindings;
        (0..bindings.count()).map_while(move |index| bindings.get(index))
    }

    /// Returns the bindings, in the form they were given in.
    #[inline]
    pub(crate) fn given_bindings(&self) -> &Bindings<'a> {
        &self.bindings
    }

    /// Does `work` in the span of running the dispatch. When nobody listens, this is one comparison.
    #[inline(always)]
    pub(crate) fn in_span<T>(&self, work: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing")]
        if has_listener() {
            return self.in_entered_span(work);
        }
        work()
    }

    #[cfg(feature = "tracing")]
    #[cold]
    fn in_entered_span<T>(&self, work: impl FnOnce() -> T) -> T {
        let workgroups = self.grid.total();
        tracing::debug_span!("dispatch", kernel = %self.export, workgroups).in_scope(work)
    }

    /// Returns the numbers of all workgroups.
    #[must_use]
    #[inline]
    pub fn tiles(&self) -> Range<u64> {
        0..self.grid.total()
    }
}

/// Returns whether somebody listens to the spans of dispatches.
#[inline(always)]
pub(crate) fn has_listener() -> bool {
    #[cfg(feature = "tracing")]
    return tracing::level_filters::LevelFilter::current() >= tracing::Level::DEBUG;
    #[cfg(not(feature = "tracing"))]
    return false;
}
