//! Element and encoding types: what the elements of a tensor are, as IREE numbers and spells them.
//!
//! Holds names and sizes; nothing here converts the elements themselves. The numbering is `docs/vm.md`, section
//! "Element and encoding types": `numerical_type << 24 | bit_count`.

use core::fmt;
use core::str::FromStr;

use vm::StatusCode;

/// Type of the elements of a tensor.
///
/// Any 32-bit number can come from a program, so this is an open newtype: a number that no constant below names is
/// carried along and treated as opaque bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct ElementType(u32);

/// The class of an element type: the high byte of its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct NumericalType(u8);

impl NumericalType {
    /// Bytes of no known meaning.
    pub const OPAQUE: Self = Self(0x00);
    /// Integers that operations take as signed or unsigned.
    pub const INTEGER: Self = Self(0x10);
    /// Signed integers.
    pub const SIGNED_INTEGER: Self = Self(0x11);
    /// Unsigned integers.
    pub const UNSIGNED_INTEGER: Self = Self(0x12);
    /// Truth values, a byte each.
    pub const BOOLEAN: Self = Self(0x13);
    /// IEEE 754 floats.
    pub const FLOAT: Self = Self(0x21);
    /// bfloat16.
    pub const BRAIN_FLOAT: Self = Self(0x22);
    /// Pairs of floats.
    pub const COMPLEX: Self = Self(0x23);
    /// f8E5M2: 8-bit floats with infinities.
    pub const FLOAT8_E5M2: Self = Self(0x24);
    /// f8E4M3FN: 8-bit floats without infinities.
    pub const FLOAT8_E4M3FN: Self = Self(0x25);
    /// f8E5M2FNUZ: without infinities and negative zero.
    pub const FLOAT8_E5M2FNUZ: Self = Self(0x26);
    /// f8E4M3FNUZ: without infinities and negative zero.
    pub const FLOAT8_E4M3FNUZ: Self = Self(0x27);
    /// f8E8M0FNU: powers of two.
    pub const FLOAT8_E8M0FNU: Self = Self(0x28);

    /// Returns the number of the class.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }

    /// Returns whether the class is one of the integers, truth values among them.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        self.0 & 0xF0 == 0x10
    }
}

/// How the elements of a tensor lie in memory; open, like [`ElementType`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct EncodingType(u32);

impl EncodingType {
    /// Only the program knows.
    pub const OPAQUE: Self = Self(0);
    /// One after another without gaps, the last dimension varying fastest.
    pub const DENSE_ROW_MAJOR: Self = Self(1);

    /// Returns the encoding with IREE's number `raw`.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// Returns IREE's number of the encoding.
    #[must_use]
    pub const fn raw(self) -> u32 {
        self.0
    }
}

/// Prefixes before the bit count, longest first where one begins another.
const PREFIXES: [(&str, NumericalType); 8] = [
    ("si", NumericalType::SIGNED_INTEGER),
    ("ui", NumericalType::UNSIGNED_INTEGER),
    ("i", NumericalType::INTEGER),
    ("bf", NumericalType::BRAIN_FLOAT),
    ("cf", NumericalType::COMPLEX),
    ("f", NumericalType::FLOAT),
    ("*", NumericalType::OPAQUE),
    ("x", NumericalType::OPAQUE),
];

/// Types that are spelled as a whole.
const WHOLE_NAMES: [(&str, ElementType); 6] = [
    ("i1", ElementType::BOOL_8),
    ("f8E5M2", ElementType::F8E5M2),
    ("f8E4M3FN", ElementType::F8E4M3FN),
    ("f8E5M2FNUZ", ElementType::F8E5M2FNUZ),
    ("f8E4M3FNUZ", ElementType::F8E4M3FNUZ),
    ("f8E8M0FNU", ElementType::F8E8M0FNU),
];

impl ElementType {
    /// Opaque bytes.
    pub const OPAQUE_8: Self = Self(0x0000_0008);
    /// Opaque 16-bit elements.
    pub const OPAQUE_16: Self = Self(0x0000_0010);
    /// Opaque 32-bit elements.
    pub const OPAQUE_32: Self = Self(0x0000_0020);
    /// Opaque 64-bit elements.
    pub const OPAQUE_64: Self = Self(0x0000_0040);
    /// Truth values of a byte each, spelled `i1`.
    pub const BOOL_8: Self = Self(0x1300_0008);
    /// 4-bit integers, two in a byte.
    pub const I4: Self = Self(0x1000_0004);
    /// 8-bit integers.
    pub const I8: Self = Self(0x1000_0008);
    /// 16-bit integers.
    pub const I16: Self = Self(0x1000_0010);
    /// 32-bit integers.
    pub const I32: Self = Self(0x1000_0020);
    /// 64-bit integers.
    pub const I64: Self = Self(0x1000_0040);
    /// Signed 8-bit integers.
    pub const SI8: Self = Self(0x1100_0008);
    /// Signed 16-bit integers.
    pub const SI16: Self = Self(0x1100_0010);
    /// Signed 32-bit integers.
    pub const SI32: Self = Self(0x1100_0020);
    /// Signed 64-bit integers.
    pub const SI64: Self = Self(0x1100_0040);
    /// Unsigned 8-bit integers.
    pub const UI8: Self = Self(0x1200_0008);
    /// Unsigned 16-bit integers.
    pub const UI16: Self = Self(0x1200_0010);
    /// Unsigned 32-bit integers.
    pub const UI32: Self = Self(0x1200_0020);
    /// Unsigned 64-bit integers.
    pub const UI64: Self = Self(0x1200_0040);
    /// IEEE half precision.
    pub const F16: Self = Self(0x2100_0010);
    /// IEEE single precision.
    pub const F32: Self = Self(0x2100_0020);
    /// IEEE double precision.
    pub const F64: Self = Self(0x2100_0040);
    /// bfloat16.
    pub const BF16: Self = Self(0x2200_0010);
    /// Pairs of `f32`.
    pub const COMPLEX_64: Self = Self(0x2300_0040);
    /// Pairs of `f64`.
    pub const COMPLEX_128: Self = Self(0x2300_0080);
    /// 8-bit floats with 5 exponent bits and infinities.
    pub const F8E5M2: Self = Self(0x2400_0008);
    /// 8-bit floats with 4 exponent bits and no infinities.
    pub const F8E4M3FN: Self = Self(0x2500_0008);
    /// 8-bit floats with 5 exponent bits, one NaN and one zero.
    pub const F8E5M2FNUZ: Self = Self(0x2600_0008);
    /// 8-bit floats with 4 exponent bits, one NaN and one zero.
    pub const F8E4M3FNUZ: Self = Self(0x2700_0008);
    /// 8-bit powers of two.
    pub const F8E8M0FNU: Self = Self(0x2800_0008);

    /// Returns the type with IREE's number `raw`.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// Returns IREE's number of the type.
    #[must_use]
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// Returns the class of the type.
    #[must_use]
    pub const fn numerical_type(self) -> NumericalType {
        NumericalType((self.0 >> 24) as u8)
    }

    /// Returns the width of an element in bits; 0 for a number that is no usable type.
    #[must_use]
    pub const fn bit_count(self) -> usize {
        (self.0 & 0xFF) as usize
    }

    /// Returns the width of an element that stands alone, in bytes.
    #[must_use]
    pub const fn byte_count(self) -> usize {
        self.bit_count().div_ceil(8)
    }

    /// Returns whether a value of the type can stand where `expected` is asked for: it is the same type, its bytes
    /// are opaque, or both are integers of the same width.
    #[must_use]
    #[inline]
    pub fn is_compatible_with(self, expected: Self) -> bool {
        self == expected
            || self.numerical_type() == NumericalType::OPAQUE
            || (self.numerical_type().is_integer()
                && expected.numerical_type().is_integer()
                && self.bit_count() == expected.bit_count())
    }

    /// Returns the bytes that a tensor of this shape takes, densely packed, or `None` when that overflows. A shape
    /// with a dimension of 0 takes none, however large the others are.
    #[must_use]
    #[inline]
    pub fn dense_byte_length(self, shape: &[usize]) -> Option<usize> {
        let count = shape
            .iter()
            .try_fold(1usize, |count, dimension| count.checked_mul(*dimension));
        match count {
            Some(count) => self.storage_byte_length(count),
            None if shape.contains(&0) => Some(0),
            None => None,
        }
    }

    /// Returns the bytes that `element_count` elements take, packed without gaps between their bits, or `None` when
    /// that overflows.
    #[must_use]
    #[inline]
    pub fn storage_byte_length(self, element_count: usize) -> Option<usize> {
        if self.bit_count().is_multiple_of(8) {
            return element_count.checked_mul(self.byte_count());
        }
        let bits = (element_count as u128).checked_mul(self.bit_count() as u128)?;
        usize::try_from(bits.div_ceil(8)).ok()
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = WHOLE_NAMES.iter().find(|(_, whole)| whole == self) {
            return f.write_str(name);
        }
        let numerical_type = self.numerical_type();
        let prefix = PREFIXES
            .iter()
            .find(|(_, known)| *known == numerical_type)
            .map_or("*", |(prefix, _)| prefix);
        write!(f, "{prefix}{}", self.bit_count())
    }
}

impl fmt::Debug for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({:#010x})", self.0)
    }
}

/// Why a text names no element type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseElementTypeError {
    /// The text begins like no type.
    #[error("`{text}` is not an element type (known: i8 si8 ui8 f32 bf16 cf64 *8 and the like)")]
    Unknown {
        /// The whole text.
        text: String,
    },
    /// The number of bits is missing, zero, over 255 or followed by something.
    #[error("`{text}` has no bit count between 1 and 255")]
    BitCount {
        /// The whole text.
        text: String,
    },
}

impl ParseElementTypeError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        StatusCode::INVALID_ARGUMENT
    }
}

impl FromStr for ElementType {
    type Err = ParseElementTypeError;

    fn from_str(text: &str) -> Result<Self, ParseElementTypeError> {
        if let Some((_, whole)) = WHOLE_NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*whole);
        }
        let found = PREFIXES
            .iter()
            .find_map(|(prefix, class)| text.strip_prefix(prefix).map(|rest| (rest, class)));
        let Some((digits, class)) = found else {
            return Err(ParseElementTypeError::Unknown { text: text.into() });
        };
        let canonical =
            digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        match digits.parse::<u8>() {
            Ok(bit_count) if canonical => Ok(Self(u32::from(class.0) << 24 | u32::from(bit_count))),
            _ => Err(ParseElementTypeError::BitCount { text: text.into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_numbers_are_those_of_compiled_programs() {
        assert_eq!(ElementType::F32.raw(), 553_648_160);
        assert_eq!(ElementType::I32.raw(), 268_435_488);
    }

    #[test]
    fn every_spelling_is_read_back() {
        for name in [
            "i1",
            "i4",
            "i8",
            "i64",
            "si8",
            "ui16",
            "f16",
            "f32",
            "f64",
            "bf16",
            "cf64",
            "cf128",
            "*8",
            "*64",
            "f8E5M2",
            "f8E4M3FN",
            "f8E5M2FNUZ",
            "f8E4M3FNUZ",
            "f8E8M0FNU",
            "f33",
            "i255",
            "f7",
        ] {
            let element_type: ElementType = name.parse().unwrap();
            assert_eq!(element_type.to_string(), name);
        }
        assert_eq!("x16".parse(), Ok(ElementType::OPAQUE_16));
        assert_eq!("i1".parse(), Ok(ElementType::BOOL_8));
    }

    #[test]
    fn a_type_without_bits_is_refused() {
        for text in [
            "i0", "*0", "i", "f", "ui", "i256", "f8e5m2", "i08", "i+8", "i 8",
        ] {
            assert_eq!(
                text.parse::<ElementType>(),
                Err(ParseElementTypeError::BitCount { text: text.into() })
            );
        }
        for text in ["", "F32", "c64", " f32", "8", "tensor"] {
            assert_eq!(
                text.parse::<ElementType>(),
                Err(ParseElementTypeError::Unknown { text: text.into() })
            );
        }
    }

    #[test]
    fn a_number_of_no_known_class_prints_as_opaque() {
        assert_eq!(ElementType::from_raw(0x7700_0010).to_string(), "*16");
    }

    #[test]
    fn narrow_elements_share_bytes() {
        assert_eq!(ElementType::I4.storage_byte_length(3), Some(2));
        assert_eq!(ElementType::I32.storage_byte_length(3), Some(12));
        assert_eq!(ElementType::I32.storage_byte_length(usize::MAX), None);
        assert_eq!(
            ElementType::I4.storage_byte_length(usize::MAX),
            Some(usize::MAX / 2 + 1)
        );
        let wide: ElementType = "f33".parse().unwrap();
        assert_eq!(wide.storage_byte_length(2), Some(9));
        assert_eq!(wide.byte_count(), 5);
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn e1_a_shape_whose_product_wraps_has_no_length() {
        assert_eq!(ElementType::I8.dense_byte_length(&[1 << 32, 1 << 32]), None);
        assert_eq!(
            ElementType::I8.dense_byte_length(&[274_177, 67_280_421_310_721]),
            None
        );
        assert_eq!(ElementType::F32.dense_byte_length(&[1 << 62]), None);
        assert_eq!(
            ElementType::F32.dense_byte_length(&[1 << 32, 1 << 32, 0]),
            Some(0)
        );
        assert_eq!(ElementType::F32.dense_byte_length(&[]), Some(4));
        assert_eq!(ElementType::I4.dense_byte_length(&[3, 1]), Some(2));
    }

    #[test]
    fn integers_of_one_width_and_opaque_bytes_are_compatible() {
        assert!(ElementType::BOOL_8.is_compatible_with(ElementType::I8));
        assert!(ElementType::SI32.is_compatible_with(ElementType::UI32));
        assert!(ElementType::OPAQUE_8.is_compatible_with(ElementType::F32));
        assert!(!ElementType::F32.is_compatible_with(ElementType::OPAQUE_32));
        assert!(!ElementType::I8.is_compatible_with(ElementType::I16));
        assert!(!ElementType::F8E5M2.is_compatible_with(ElementType::F8E4M3FN));
        assert!(!ElementType::F16.is_compatible_with(ElementType::BF16));
    }

    proptest! {
        #[test]
        fn any_text_gives_a_type_that_prints_back_or_an_error(text in "[a-zA-Z0-9*]{0,8}") {
            if let Ok(element_type) = text.parse::<ElementType>() {
                prop_assert_eq!(element_type.to_string(), text.replacen('x', "*", usize::from(text.starts_with('x'))));
            }
        }

        #[test]
        fn every_number_prints(raw in any::<u32>()) {
            prop_assert!(!ElementType::from_raw(raw).to_string().is_empty());
        }
    }
}
