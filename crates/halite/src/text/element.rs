//! One element in text: a decimal number, or the hexadecimal digits of its bytes.
//!
//! Which types are numbers and how each is spelled is `docs/vm.md`, sections "Parsing input items" and
//! "Printing results".
#![forbid(unsafe_code)]

use core::fmt::{self, Write};

use super::format::{Case, General};
use super::number::{NumberError, parse_f32, parse_f64, parse_i64, parse_u64};
use crate::{ElementType, NumericalType};

use crate::minifloat::Narrow;

/// Most bytes of an element: a bit count is at most 255.
pub(crate) const LONGEST_ELEMENT: usize = 32;

/// How the elements of a type are spelled.
#[derive(Clone, Copy)]
pub(crate) enum Spelling {
    /// A decimal integer of this many bytes.
    Integer(Signedness, usize),
    /// A single-precision float.
    F32,
    /// A double-precision float.
    F64,
    /// A narrower float.
    Narrow(Narrow, usize),
    /// Two hexadecimal digits for each of this many bytes.
    Hex(usize),
}

/// How the bits of an integer are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signedness {
    /// Written as signed, read as either.
    Signless,
    Signed,
    Unsigned,
}

/// Why a token is not an element of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElementTextError {
    /// The token is no number, or none of the type.
    #[error("not an element of this type")]
    Number(#[from] NumberError),
    /// The token has another length than the hexadecimal digits of an element.
    #[error("an element is written as {expected} hexadecimal digits, found {found} characters")]
    HexLength {
        /// Digits of an element.
        expected: usize,
        /// Characters of the token.
        found: usize,
    },
    /// A character is no hexadecimal digit.
    #[error("`{character}` is not a hexadecimal digit")]
    HexDigit {
        /// The character.
        character: char,
    },
}

impl Spelling {
    /// Returns how elements of `element_type` are spelled.
    pub(crate) fn of(element_type: ElementType) -> Self {
        let bytes = element_type.byte_count();
        let signedness = match element_type.numerical_type() {
            NumericalType::INTEGER => Signedness::Signless,
            NumericalType::SIGNED_INTEGER => Signedness::Signed,
            NumericalType::UNSIGNED_INTEGER => Signedness::Unsigned,
            _ => {
                return match (element_type, Narrow::of(element_type)) {
                    (ElementType::F32, _) => Self::F32,
                    (ElementType::F64, _) => Self::F64,
                    (_, Some(narrow)) => Self::Narrow(narrow, bytes),
                    _ => Self::Hex(bytes),
                };
            }
        };
        match element_type.bit_count() {
            8 | 16 | 32 | 64 => Self::Integer(signedness, bytes),
            _ => Self::Hex(bytes),
        }
    }

    /// Reads one element into `target`, which has the length of an element.
    pub(crate) fn parse(self, token: &str, target: &mut [u8]) -> Result<(), ElementTextError> {
        match self {
            Self::Integer(signedness, bytes) => {
                let value = parse_integer(token, signedness, bytes)?;
                target.copy_from_slice(&value[..bytes]);
            }
            Self::F32 => target.copy_from_slice(&parse_f32(token)?.to_le_bytes()),
            Self::F64 => target.copy_from_slice(&parse_f64(token)?.to_le_bytes()),
            Self::Narrow(narrow, bytes) => {
                let value = parse_f32(token)?;
                // Text below the smallest number of an IEEE-like format is zero, not rounded.
                let flushes = !matches!(narrow, Narrow::Bf16 | Narrow::F8E8M0FNU);
                let value = if flushes && value.abs() < narrow.smallest() {
                    0f32.copysign(value)
                } else {
                    value
                };
                target.copy_from_slice(&narrow.encode(value).to_le_bytes()[..bytes]);
            }
            Self::Hex(bytes) => parse_hex(token, &mut target[..bytes])?,
        }
        Ok(())
    }

    /// Writes the element whose bytes are `bytes`.
    pub(crate) fn write(self, out: &mut dyn Write, bytes: &[u8]) -> fmt::Result {
        let mut word = [0; 8];
        match self {
            Self::Integer(Signedness::Unsigned, count) => {
                word[..count].copy_from_slice(bytes);
                write!(out, "{}", u64::from_le_bytes(word))
            }
            Self::Integer(_, count) => {
                let negative = bytes[count - 1] & 0x80 != 0;
                word = if negative { [0xFF; 8] } else { [0; 8] };
                word[..count].copy_from_slice(bytes);
                write!(out, "{}", i64::from_le_bytes(word))
            }
            Self::F32 => {
                word[..4].copy_from_slice(bytes);
                let value =
                    f32::from_bits(u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
                write!(out, "{}", General(value.into(), Case::Upper))
            }
            Self::F64 => {
                word.copy_from_slice(bytes);
                write!(out, "{}", General(f64::from_le_bytes(word), Case::Upper))
            }
            Self::Narrow(narrow, count) => {
                word[..count].copy_from_slice(bytes);
                let value = narrow.decode(u16::from_le_bytes([word[0], word[1]]));
                write!(out, "{}", General(value.into(), Case::Upper))
            }
            Self::Hex(_) => bytes.iter().try_for_each(|byte| write!(out, "{byte:02X}")),
        }
    }
}

/// Returns the little-endian bytes of an integer. Those of 32 bits wrap, narrower ones are checked, as in C.
fn parse_integer(
    token: &str,
    signedness: Signedness,
    bytes: usize,
) -> Result<[u8; 8], NumberError> {
    if signedness == Signedness::Unsigned {
        let value = parse_u64(token)?;
        let limit = match bytes {
            1 => u8::MAX.into(),
            2 => u16::MAX.into(),
            _ => u64::MAX,
        };
        return if value <= limit {
            Ok(value.to_le_bytes())
        } else {
            Err(NumberError::OutOfRange)
        };
    }
    let value = parse_i64(token)?;
    let signless = signedness == Signedness::Signless;
    let range = match bytes {
        1 if signless => i8::MIN.into()..=u8::MAX.into(),
        1 => i8::MIN.into()..=i8::MAX.into(),
        2 if signless => i16::MIN.into()..=u16::MAX.into(),
        2 => i16::MIN.into()..=i16::MAX.into(),
        _ => i64::MIN..=i64::MAX,
    };
    if range.contains(&value) {
        Ok(value.to_le_bytes())
    } else {
        Err(NumberError::OutOfRange)
    }
}

fn parse_hex(token: &str, target: &mut [u8]) -> Result<(), ElementTextError> {
    let expected = target.len() * 2;
    if token.len() != expected {
        let found = token.chars().count();
        return Err(ElementTextError::HexLength { expected, found });
    }
    for (index, character) in token.chars().enumerate() {
        let digit = character
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
            .ok_or(ElementTextError::HexDigit { character })?;
        target[index / 2] = target[index / 2] << 4 | digit;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(name: &str, token: &str) -> Result<Vec<u8>, ElementTextError> {
        let element_type: ElementType = name.parse().unwrap();
        let mut bytes = vec![0; element_type.byte_count()];
        Spelling::of(element_type).parse(token, &mut bytes)?;
        Ok(bytes)
    }

    #[track_caller]
    fn check(name: &str, token: &str, printed: &str) {
        let bytes = parse(name, token).unwrap();
        let mut text = String::new();
        Spelling::of(name.parse().unwrap())
            .write(&mut text, &bytes)
            .unwrap();
        assert_eq!(text, printed, "{name} {token}");
    }

    #[track_caller]
    fn check_out_of_range(name: &str, token: &str) {
        let expected = Err(ElementTextError::Number(NumberError::OutOfRange));
        assert_eq!(parse(name, token), expected, "{name} {token}");
    }

    #[test]
    fn narrow_integers_are_checked_and_wide_ones_wrap() {
        check("i8", "255", "-1");
        check("i8", "-128", "-128");
        check("i16", "65535", "-1");
        check("i32", "4294967295", "-1");
        check("i32", "4294967296", "0");
        check("i32", "99999999999", "1215752191");
        check("si32", "4294967295", "-1");
        check("ui8", "255", "255");
        check("ui32", "4294967296", "0");
        check("ui32", "-1", "4294967295");
        check("ui64", "-1", "18446744073709551615");
        check("i64", "0x7FFFFFFFFFFFFFFF", "9223372036854775807");
        for (name, token) in [
            ("i8", "256"),
            ("i8", "-129"),
            ("i16", "65536"),
            ("i16", "-32769"),
            ("si8", "128"),
            ("si16", "32768"),
            ("si16", "-32769"),
            ("ui8", "256"),
            ("ui8", "-1"),
            ("ui16", "65536"),
            ("i64", "18446744073709551615"),
        ] {
            check_out_of_range(name, token);
        }
    }

    #[test]
    fn narrow_floats_flush_below_their_smallest_number() {
        check("f16", "70000", "INF");
        check("f16", "65519", "65504");
        check("f16", "5e-8", "0");
        check("f16", "-5e-8", "-0");
        check("f16", "6e-8", "5.96046E-08");
        check("bf16", "1.00390625", "1");
        check("bf16", "1e-40", "9.18355E-41");
        check("f8E4M3FN", "1000", "NAN");
        check("f8E4M3FN", "449", "448");
        check("f8E4M3FN", "1e-3", "0");
        check("f8E4M3FNUZ", "-1e-10", "0");
        check("f8E5M2", "1e9", "INF");
        check("f8E8M0FNU", "1.5", "2");
        check("f8E8M0FNU", "1e-45", "5.87747E-39");
        check("f16", "-nan", "NAN");
        check("f32", "-nan", "-NAN");
        assert_eq!(
            parse("f16", "1e-46"),
            Err(ElementTextError::Number(NumberError::Underflow))
        );
    }

    #[test]
    fn other_types_are_hexadecimal_bytes_in_memory_order() {
        check("i1", "01", "01");
        check("cf64", "0000803f00000040", "0000803F00000040");
        check("*16", "0102", "0102");
        check("i24", "010203", "010203");
        check("f33", "0102030405", "0102030405");
        assert_eq!(parse("*16", "0102").unwrap(), [1, 2]);
        assert_eq!(
            parse("i1", "1"),
            Err(ElementTextError::HexLength {
                expected: 2,
                found: 1
            })
        );
        assert_eq!(
            parse("i1", "0g"),
            Err(ElementTextError::HexDigit { character: 'g' })
        );
        assert_eq!(
            parse("i1", "é"),
            Err(ElementTextError::HexDigit { character: 'é' })
        );
    }

    const NAMES: [&str; 20] = [
        "i1",
        "i4",
        "i8",
        "i16",
        "i32",
        "i64",
        "si8",
        "si64",
        "ui8",
        "ui16",
        "ui32",
        "ui64",
        "bf16",
        "f16",
        "f8E5M2",
        "f8E4M3FN",
        "f8E8M0FNU",
        "cf64",
        "*24",
        "f7",
    ];

    proptest! {
        #[test]
        fn any_token_gives_an_element_or_an_error(
            name in prop::sample::select(&NAMES[..]),
            token in "\\PC{0,16}|[0-9a-fA-F.xe+-]{0,20}",
        ) {
            let _ = parse(name, &token);
        }

        #[test]
        fn what_was_printed_is_read_back(
            name in prop::sample::select(&NAMES[..]),
            bytes in any::<[u8; 16]>(),
        ) {
            let element_type: ElementType = name.parse().unwrap();
            let bytes = &bytes[..element_type.byte_count()];
            let spelling = Spelling::of(element_type);
            let mut text = String::new();
            spelling.write(&mut text, bytes).unwrap();
            let again = parse(name, &text).unwrap();
            let mut text_again = String::new();
            spelling.write(&mut text_again, &again).unwrap();
            // Six digits of the smallest number may say less than it, and less than that reads as zero.
            let mut magnitude = bytes.to_vec();
            if let Some(last) = magnitude.last_mut() {
                *last &= 0x7F;
            }
            let is_smallest = magnitude.iter().enumerate().all(|(at, byte)| *byte == u8::from(at == 0));
            prop_assert!(text == text_again || is_smallest, "{} reads as {}", text, text_again);
            if matches!(spelling, Spelling::Integer(..) | Spelling::Hex(_)) {
                prop_assert_eq!(bytes, &again[..]);
            }
        }
    }
}
