//! Call sites: what a callee keeps for one place of a program that calls it again and again.
//!
//! Most of what a program passes at one place never changes: how many tuples a span has, offsets and lengths of bindings,
//! counts of workgroups. A callee that wants to look at that once makes a [`CallSite`] for the place.

use core::fmt;

use crate::{ArgumentBlock, Invocation, Result};

/// One place that calls one export, prepared by the instance that has the export.
///
/// Owned by the caller and used by one thread at a time; may move to another between calls. Keep no refs in it that a
/// program could miss: a site lives as long as the caller's stack, which may be as long as the context.
pub trait CallSite: Send + fmt::Debug {
    /// Calls the export, which gives no results, with a block of the shape that the site was made for.
    ///
    /// # Errors
    /// Fails as the function does.
    fn call(&mut self, arguments: ArgumentBlock<'_>, invocation: &Invocation<'_>) -> Result<()>;
}

/// What the argument blocks of all calls from one place have in common: their length, and the words that do not vary.
/// Indices of refs are words as well; what the refs are may be another thing each time.
#[derive(Clone, Copy, Debug)]
pub struct CallShape<'a> {
    words: &'a [u32],
    varying: &'a [bool],
}

impl<'a> CallShape<'a> {
    /// Returns the shape of blocks with these words, where those that `varying` tells may be any; words past the end of
    /// `varying` never vary.
    #[must_use]
    pub fn new(words: &'a [u32], varying: &'a [bool]) -> Self {
        Self { words, varying }
    }

    /// Returns the words of a block.
    #[must_use]
    pub fn words(self) -> &'a [u32] {
        self.words
    }

    /// Returns whether the word at `position` may be another one in another block.
    #[must_use]
    pub fn varies(self, position: usize) -> bool {
        self.varying.get(position).is_some_and(|varies| *varies)
    }
}
