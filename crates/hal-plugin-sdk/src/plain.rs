//! The types that parameter blocks and buffers are made of.
//!
//! A parameter block is the C struct through which a kernel passes results, arguments and extra
//! fields to an imported function (`docs/abi.md`, section 6). [`parameter_block!`](crate::parameter_block!) declares one.

use core::fmt;

/// Plain data: a type that C can lay out and for which every bit pattern is a valid value.
///
/// [`parameter_block!`](crate::parameter_block!) implements it for parameter blocks, after checking
/// that every field is plain.
///
/// # Safety
///
/// Every bit pattern is a valid value of the type, and its layout is that of a C type.
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain_numbers {
    ($($type:ty),+) => {
        $(
            // SAFETY: numbers have no invalid bit patterns and are laid out as in C.
            unsafe impl Plain for $type {}
        )+
    };
}

plain_numbers!(i8, u8, i16, u16, i32, u32, i64, u64, isize, usize, f32, f64);

// SAFETY: there is one bit pattern, of no bits. It stands for the block of an import without
// results, arguments and fields, which is never read.
unsafe impl Plain for () {}

// SAFETY: an array is as plain as its elements and is laid out as in C.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// A pointer to memory that the function reads, as a kernel passes it.
///
/// Only [`Call`](crate::Call) turns it into memory.
#[repr(transparent)]
pub struct ConstPtr<T>(pub(crate) *const T);

/// A pointer to memory that the function reads and writes, as a kernel passes it.
///
/// Only [`Call`](crate::Call) turns it into memory.
#[repr(transparent)]
pub struct MutPtr<T>(pub(crate) *mut T);

impl<T> ConstPtr<T> {
    /// Returns whether the pointer is NULL.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl<T> MutPtr<T> {
    /// Returns whether the pointer is NULL.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the same pointer, for reading only.
    #[must_use]
    pub fn as_const(self) -> ConstPtr<T> {
        ConstPtr(self.0.cast_const())
    }
}

macro_rules! pointer_traits {
    ($type:ident) => {
        impl<T> Clone for $type<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $type<T> {}

        impl<T> fmt::Debug for $type<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Pointer::fmt(&self.0, f)
            }
        }

        // SAFETY: a raw pointer may have any bits; it is laid out as in C.
        unsafe impl<T: 'static> Plain for $type<T> {}
    };
}

pointer_traits!(ConstPtr);
pointer_traits!(MutPtr);

/// A one-bit integer: a byte of which only bit 0 counts.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct I1(pub u8);

impl I1 {
    /// Returns whether bit 0 is set.
    #[must_use]
    pub const fn is_set(self) -> bool {
        self.0 & 1 != 0
    }
}

// SAFETY: any byte is valid.
unsafe impl Plain for I1 {}

/// A memref descriptor: what a ranked memref without `llvm.bareptr` is passed as.
///
/// Element `i` of a memref of rank 1 is `aligned[offset + i * strides[0]]`; all numbers count
/// elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memref<T, const RANK: usize> {
    /// The start of the allocation; kernels pass the same value as in `aligned`.
    pub base: MutPtr<T>,
    /// The pointer that `offset` counts from.
    pub aligned: MutPtr<T>,
    /// The position of the first element.
    pub offset: usize,
    /// The number of elements in each dimension.
    pub sizes: [usize; RANK],
    /// The distance between neighbors in each dimension.
    pub strides: [usize; RANK],
}

// SAFETY: pointers and numbers, in a `repr(C)` struct.
unsafe impl<T: Plain, const RANK: usize> Plain for Memref<T, RANK> {}

/// Declares the parameter block of an imported function.
///
/// The fields are those of the C struct, in its order: the result (several results are one field
/// of another parameter block), the arguments, and the extra fields the import asked for. The
/// macro adds `repr(C)`, `Clone`, `Copy`, `Debug` and [`Plain`].
///
/// | in the import's signature | field |
/// |---|---|
/// | `index` | `usize` |
/// | `i1` | [`I1`] |
/// | `i8` to `i64`, `f32`, `f64` | the number of that width; compilers demote `f64` to `f32` by default |
/// | `memref<T>` with `llvm.bareptr` | [`ConstPtr`] or [`MutPtr`] |
/// | `memref<..xT>` of rank `R` | [`Memref`]`<T, R>` |
/// | extra field `"processor_id"` | `u32` |
/// | extra field `"processor_data"` | `ConstPtr<u64>`, to 8 words |
///
/// # Examples
///
/// ```
/// use hal_plugin_sdk::{ConstPtr, parameter_block};
///
/// parameter_block! {
///     /// The block of `lab_sum`: `(memref<f32>, index, index) -> f32`.
///     pub struct SumBlock {
///         result: f32,
///         values: ConstPtr<f32>,
///         values_offset: usize,
///         value_count: usize,
///     }
/// }
/// assert_eq!(size_of::<SumBlock>(), 4 * size_of::<usize>());
/// ```
#[macro_export]
macro_rules! parameter_block {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $type:ty),* $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        $visibility struct $name {
            $($(#[$field_attribute])* $field_visibility $field: $type),*
        }

        // SAFETY: the struct is `repr(C)` and each of its fields is plain, as checked below.
        unsafe impl $crate::Plain for $name {}

        const _: () = {
            $($crate::export::require_plain::<$type>();)*
            // A block has the fields its import has, used or not.
            let _every_field_is_used = |block: &$name| {
                $(let _ = &block.$field;)*
            };
        };
    };
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    parameter_block! {
        struct Results {
            first: i8,
            second: f64,
            third: i32,
        }
    }

    parameter_block! {
        struct Everything {
            results: Results,
            a: i8,
            b: I1,
            c: i16,
            d: f64,
            e: ConstPtr<f32>,
            f: usize,
            g: i64,
        }
    }

    #[test]
    fn several_results_are_one_padded_struct_before_the_arguments() {
        assert_eq!(size_of::<Results>(), 24);
        assert_eq!(offset_of!(Everything, a), 24);
        assert_eq!(offset_of!(Everything, b), 25);
        assert_eq!(offset_of!(Everything, c), 26);
        assert_eq!(offset_of!(Everything, d), 32);
        assert_eq!(offset_of!(Everything, e), 40);
    }

    #[test]
    fn a_memref_descriptor_is_pointers_then_numbers() {
        let word = size_of::<usize>();
        assert_eq!(size_of::<Memref<f32, 2>>(), 7 * word);
        assert_eq!(offset_of!(Memref<f32, 2>, strides), 5 * word);
    }

    #[test]
    fn only_bit_0_of_a_one_bit_integer_counts() {
        assert!(I1(1).is_set());
        assert!(I1(0xFF).is_set());
        assert!(!I1(0xFE).is_set());
    }
}
