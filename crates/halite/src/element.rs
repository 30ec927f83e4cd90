//! Elements: the Rust types whose values tensors are made of.
//!
//! Holds the trait and the types that neither the language nor `half` has: the 8-bit floats. How they are converted is
//! in [`crate::minifloat`].
#![forbid(unsafe_code)]

use core::fmt;

use bytemuck::Pod;
use half::{bf16, f16};

use crate::ElementType;
use crate::minifloat::Narrow;

/// A Rust type whose values are elements of tensors.
///
/// | Rust type | element types, the first for new tensors |
/// |---|---|
/// | `i8`, `i16`, `i32`, `i64` | `i8`, `si8`, and so on |
/// | `u8`, `u16`, `u32`, `u64` | `ui8`, `i8`, `opaque8`, and so on; `u8` reads truth values too |
/// | `f16`, `bf16` (of the crate `half`), `f32`, `f64` | of the same name |
/// | `[f32; 2]`, `[f64; 2]` | complex numbers: real part, imaginary part |
/// | [`F8E5M2`], [`F8E4M3FN`], [`F8E5M2FNUZ`], [`F8E4M3FNUZ`], [`F8E8M0FNU`] | of the same name |
///
/// Truth values have [`Tensor::from_bools`](crate::Tensor::from_bools), elements smaller than a byte only
/// [`Tensor::from_bytes`](crate::Tensor::from_bytes).
pub trait Element: Pod + sealed::Sealed {
    /// The type of a tensor made of such values.
    const ELEMENT_TYPE: ElementType;
    /// Types of the same representation, which can be read as such values.
    const READABLE: &'static [ElementType];
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($rust:ty => $first:ident $(, $other:ident)*;)*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const ELEMENT_TYPE: ElementType = ElementType::$first;
            const READABLE: &'static [ElementType] = &[ElementType::$first $(, ElementType::$other)*];
        }
    )*};
}

macro_rules! narrow_floats {
    ($($(#[$doc:meta])* $name:ident => $format:ident, $first:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// Equality is that of the codes: a NaN equals itself, and the two zeros differ.
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// Returns the number of this code.
            #[must_use]
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits)
            }

            /// Returns the code.
            #[must_use]
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// Returns the number nearest to `value`.
            #[must_use]
            pub fn from_f32(value: f32) -> Self {
                let [code, _] = Narrow::$format.encode(value).to_le_bytes();
                Self(code)
            }

            /// Returns the number, which every `f32` of its value holds exactly.
            #[must_use]
            pub fn to_f32(self) -> f32 {
                Narrow::$format.decode(self.0.into())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        elements! { $name => $first; }
    )*};
}

narrow_floats! {
    /// An 8-bit float with 5 bits of exponent and 2 of mantissa, with infinities.
    F8E5M2 => F8E5M2, F8E5M2;
    /// An 8-bit float with 4 bits of exponent and 3 of mantissa, without infinities.
    F8E4M3FN => F8E4M3FN, F8E4M3FN;
    /// An 8-bit float with 5 bits of exponent and 2 of mantissa, without infinities and negative zero.
    F8E5M2FNUZ => F8E5M2FNUZ, F8E5M2FNUZ;
    /// An 8-bit float with 4 bits of exponent and 3 of mantissa, without infinities and negative zero.
    F8E4M3FNUZ => F8E4M3FNUZ, F8E4M3FNUZ;
    /// A power of two with 8 bits of exponent; no zero and no negative numbers.
    F8E8M0FNU => F8E8M0FNU, F8E8M0FNU;
}

elements! {
    i8 => I8, SI8;
    i16 => I16, SI16;
    i32 => I32, SI32;
    i64 => I64, SI64;
    u8 => UI8, I8, BOOL_8, OPAQUE_8;
    u16 => UI16, I16, OPAQUE_16;
    u32 => UI32, I32, OPAQUE_32;
    u64 => UI64, I64, OPAQUE_64;
    f16 => F16;
    bf16 => BF16;
    f32 => F32;
    f64 => F64;
    [f32; 2] => COMPLEX_64;
    [f64; 2] => COMPLEX_128;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Element>() {
        for element_type in T::READABLE {
            assert_eq!(element_type.byte_count(), size_of::<T>(), "{element_type}");
        }
        assert_eq!(T::READABLE[0], T::ELEMENT_TYPE);
    }

    #[test]
    fn elements_are_as_large_as_their_types() {
        check::<i8>();
        check::<i16>();
        check::<i32>();
        check::<i64>();
        check::<u8>();
        check::<u16>();
        check::<u32>();
        check::<u64>();
        check::<f16>();
        check::<bf16>();
        check::<f32>();
        check::<f64>();
        check::<[f32; 2]>();
        check::<[f64; 2]>();
        check::<F8E5M2>();
        check::<F8E4M3FN>();
        check::<F8E5M2FNUZ>();
        check::<F8E4M3FNUZ>();
        check::<F8E8M0FNU>();
    }

    #[test]
    fn small_floats_convert_to_and_from_f32() {
        assert_eq!(F8E5M2::from_f32(-1.5).to_f32(), -1.5);
        assert_eq!(F8E4M3FN::from_f32(448.0).to_bits(), 0x7E);
        assert_eq!(F8E5M2FNUZ::from_f32(0.5).to_f32(), 0.5);
        assert_eq!(
            F8E4M3FNUZ::from_bits(0x80).to_f32().to_bits(),
            f32::NAN.to_bits()
        );
        assert_eq!(format!("{:?}", F8E8M0FNU::from_f32(0.25)), "0.25");
    }
}
