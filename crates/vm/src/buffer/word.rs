//! The numbers a buffer is read and written in: 8 to 64 bits wide.

use core::fmt::Debug;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

mod sealed {
    pub trait Sealed {}
}

/// An unsigned number of 8, 16, 32 or 64 bits: the units in which buffers are accessed.
///
/// Sealed: the widths are those of the VM's buffer instructions.
pub trait Word: Copy + Eq + Debug + Send + Sync + sealed::Sealed + 'static {
    /// The atomic of the same width.
    type Atomic;

    /// Returns the value of `atomic`, unordered.
    fn load(atomic: &Self::Atomic) -> Self;

    /// Sets the value of `atomic`, unordered.
    fn store(atomic: &Self::Atomic, value: Self);

    /// Returns the number whose little-endian bytes are the first of `bytes`.
    ///
    /// # Panics
    /// Panics when there are fewer bytes than the width.
    fn from_le_slice(bytes: &[u8]) -> Self;

    /// Writes the little-endian bytes to the start of `bytes`.
    ///
    /// # Panics
    /// Panics when there are fewer bytes than the width.
    fn to_le_slice(self, bytes: &mut [u8]);
}

macro_rules! implement_word {
    ($($word:ty => $atomic:ty),*) => {$(
        impl sealed::Sealed for $word {}

        impl Word for $word {
            type Atomic = $atomic;

            #[inline]
            fn load(atomic: &$atomic) -> Self {
                Self::from_le(atomic.load(Ordering::Relaxed))
            }

            #[inline]
            fn store(atomic: &$atomic, value: Self) {
                atomic.store(value.to_le(), Ordering::Relaxed);
            }

            fn from_le_slice(bytes: &[u8]) -> Self {
                let mut array = [0; size_of::<Self>()];
                array.copy_from_slice(&bytes[..size_of::<Self>()]);
                Self::from_le_bytes(array)
            }

            fn to_le_slice(self, bytes: &mut [u8]) {
                bytes[..size_of::<Self>()].copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

implement_word!(u8 => AtomicU8, u16 => AtomicU16, u32 => AtomicU32, u64 => AtomicU64);
