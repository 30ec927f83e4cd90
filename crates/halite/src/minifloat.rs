//! Narrow floats: conversion between `f32` and the 16- and 8-bit formats, rounded to nearest, ties to even.
//!
//! f16 and bfloat16 come from the `half` crate; the 8-bit formats, which no crate of ours covers, are computed from
//! their parameters. The formats are `docs/vm.md`, section "Element and encoding types", and the OCP 8-bit
//! floating-point specification; f8E8M0FNU follows IREE, which rounds ties up and turns zero and negative numbers
//! into the smallest power.
#![forbid(unsafe_code)]

use half::{bf16, f16};

use crate::ElementType;

/// Parameters of an 8-bit float with a sign.
#[derive(Clone, Copy)]
struct Format {
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
}

/// Which codes are not finite numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Specials {
    /// The top exponent holds infinities and NaNs, as in IEEE 754.
    Ieee,
    /// Only the code of all ones is a NaN; there is no infinity.
    FiniteAllOnes,
    /// Only negative zero's code is a NaN; there is no infinity and no negative zero.
    FiniteUnsignedZero,
}

const E5M2: Format = Format {
    mantissa_bits: 2,
    bias: 15,
    specials: Specials::Ieee,
};
const E4M3FN: Format = Format {
    mantissa_bits: 3,
    bias: 7,
    specials: Specials::FiniteAllOnes,
};
const E5M2FNUZ: Format = Format {
    mantissa_bits: 2,
    bias: 16,
    specials: Specials::FiniteUnsignedZero,
};
const E4M3FNUZ: Format = Format {
    mantissa_bits: 3,
    bias: 8,
    specials: Specials::FiniteUnsignedZero,
};

/// A format that `f32` text is converted to and from.
#[derive(Clone, Copy)]
pub(crate) enum Narrow {
    F16,
    Bf16,
    F8E5M2,
    F8E4M3FN,
    F8E5M2FNUZ,
    F8E4M3FNUZ,
    F8E8M0FNU,
}

impl Narrow {
    /// Returns the format of `element_type`, or `None` when it is not a narrow float.
    pub(crate) fn of(element_type: ElementType) -> Option<Self> {
        Some(match element_type {
            ElementType::F16 => Self::F16,
            ElementType::BF16 => Self::Bf16,
            ElementType::F8E5M2 => Self::F8E5M2,
            ElementType::F8E4M3FN => Self::F8E4M3FN,
            ElementType::F8E5M2FNUZ => Self::F8E5M2FNUZ,
            ElementType::F8E4M3FNUZ => Self::F8E4M3FNUZ,
            ElementType::F8E8M0FNU => Self::F8E8M0FNU,
            _ => return None,
        })
    }

    /// Returns the number that `code`, in the low bits, stands for. NaNs lose sign and payload.
    pub(crate) fn decode(self, code: u16) -> f32 {
        let [low, _] = code.to_le_bytes();
        let value = match self {
            Self::F16 => f16::from_bits(code).to_f32(),
            Self::Bf16 => bf16::from_bits(code).to_f32(),
            Self::F8E5M2 => E5M2.decode(low),
            Self::F8E4M3FN => E4M3FN.decode(low),
            Self::F8E5M2FNUZ => E5M2FNUZ.decode(low),
            Self::F8E4M3FNUZ => E4M3FNUZ.decode(low),
            Self::F8E8M0FNU => decode_e8m0(low),
        };
        if value.is_nan() { f32::NAN } else { value }
    }

    /// Returns the code of the number nearest to `value`. A NaN becomes the code of all ones under its sign, where the
    /// format has one.
    pub(crate) fn encode(self, value: f32) -> u16 {
        let sign: u16 = if value.is_sign_negative() { 0x8000 } else { 0 };
        match self {
            Self::F16 | Self::Bf16 if value.is_nan() => sign | 0x7FFF,
            Self::F16 => f16::from_f32(value).to_bits(),
            Self::Bf16 => bf16::from_f32(value).to_bits(),
            Self::F8E5M2 => E5M2.encode(value).into(),
            Self::F8E4M3FN => E4M3FN.encode(value).into(),
            Self::F8E5M2FNUZ => E5M2FNUZ.encode(value).into(),
            Self::F8E4M3FNUZ => E4M3FNUZ.encode(value).into(),
            Self::F8E8M0FNU => encode_e8m0(value).into(),
        }
    }

    /// Returns the smallest positive number of the format.
    pub(crate) fn smallest(self) -> f32 {
        match self {
            Self::F8E8M0FNU => self.decode(0),
            _ => self.decode(1),
        }
    }
}

impl Format {
    /// Returns the largest code of a finite number.
    fn largest_finite(self) -> u8 {
        match self.specials {
            Specials::Ieee => (0x7F >> self.mantissa_bits << self.mantissa_bits) - 1,
            Specials::FiniteAllOnes => 0x7E,
            Specials::FiniteUnsignedZero => 0x7F,
        }
    }

    fn decode(self, code: u8) -> f32 {
        let magnitude = code & 0x7F;
        let negative = code & 0x80 != 0;
        if self.specials == Specials::FiniteUnsignedZero && code == 0x80 {
            return f32::NAN;
        }
        let value = if magnitude > self.largest_finite() {
            let infinite =
                self.specials == Specials::Ieee && magnitude == self.largest_finite() + 1;
            if infinite { f32::INFINITY } else { f32::NAN }
        } else {
            let exponent = magnitude >> self.mantissa_bits;
            let fraction = magnitude & ((1 << self.mantissa_bits) - 1);
            let hidden = if exponent == 0 {
                0
            } else {
                1 << self.mantissa_bits
            };
            let scale = i32::from(exponent.max(1)) - self.bias - self.mantissa_bits.cast_signed();
            f32::from(hidden | fraction) * power_of_two(scale)
        };
        if negative { -value } else { value }
    }

    fn encode(self, value: f32) -> u8 {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let nan = match self.specials {
            Specials::Ieee | Specials::FiniteAllOnes => sign | 0x7F,
            Specials::FiniteUnsignedZero => 0x80,
        };
        if value.is_nan() {
            return nan;
        }
        let too_large = match self.specials {
            Specials::Ieee => sign | (self.largest_finite() + 1),
            Specials::FiniteAllOnes | Specials::FiniteUnsignedZero => nan,
        };
        if value.is_infinite() {
            return too_large;
        }
        match u8::try_from(self.round(value.abs())) {
            Ok(0) if self.specials == Specials::FiniteUnsignedZero => 0,
            Ok(code) if code <= self.largest_finite() => sign | code,
            _ => too_large,
        }
    }

    /// Returns the code whose number is nearest to the finite `magnitude`, counting on past the largest finite code.
    fn round(self, magnitude: f32) -> u32 {
        let bits = magnitude.to_bits();
        // f32 numbers below the normal range are far below half of the smallest number of every format.
        if bits < 1 << 23 {
            return 0;
        }
        let exponent = (bits >> 23).cast_signed() - 127 + self.bias;
        let significand = (bits & 0x7F_FFFF) | 0x80_0000;
        // Below the normal range of the format the significand moves right instead of the exponent going down.
        let shift = 23 - self.mantissa_bits.cast_signed() + (1 - exponent).max(0);
        let Some(shift) = u32::try_from(shift).ok().filter(|&shift| shift < 32) else {
            return 0;
        };
        let kept = significand >> shift;
        let rest = significand & ((1 << shift) - 1);
        let half = 1 << (shift - 1);
        let up = rest > half || (rest == half && kept & 1 == 1);
        // With the hidden bit in `kept`, the exponent field starts one lower; a carry moves into it by itself.
        let base = (exponent.max(1) - 1).cast_unsigned() << self.mantissa_bits;
        base + kept + u32::from(up)
    }
}

fn decode_e8m0(code: u8) -> f32 {
    match code {
        0xFF => f32::NAN,
        // 2^-127 lies below the normal range of f32.
        0 => f32::from_bits(0x0040_0000),
        _ => f32::from_bits(u32::from(code) << 23),
    }
}

fn encode_e8m0(value: f32) -> u8 {
    if value.is_nan() || value.is_infinite() {
        return 0xFF;
    }
    if value <= 0.0 {
        return 0;
    }
    let bits = value.to_bits();
    if bits < 1 << 23 {
        // Below the normal range of f32: the smallest power, or the next one from halfway between them.
        return u8::from(bits >= 0x0060_0000);
    }
    // Half of the last kept bit carries into the exponent from 1.5 on; the top exponent is the NaN.
    u8::try_from((bits + 0x0040_0000) >> 23).unwrap_or(0xFF)
}

/// Returns two to the power of `exponent`, which must lie in the normal range of f32.
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127).cast_unsigned()) << 23)
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "rounding to f32 is part of the oracle"
)]
mod tests {
    use super::*;

    const SIGNED: [Narrow; 4] = [
        Narrow::F8E5M2,
        Narrow::F8E4M3FN,
        Narrow::F8E5M2FNUZ,
        Narrow::F8E4M3FNUZ,
    ];

    /// Every finite number of the format with its code, by value. Negative codes are left out.
    fn table(format: Narrow, width: u32) -> Vec<(f64, u16)> {
        let codes: u16 = if matches!(format, Narrow::F8E8M0FNU) {
            0xFF
        } else {
            (1 << (width - 1)) - 1
        };
        let mut table: Vec<_> = (0..=codes)
            .map(|code| (f64::from(format.decode(code)), code))
            .filter(|(value, _)| value.is_finite())
            .collect();
        table.sort_by(|left, right| left.0.total_cmp(&right.0));
        table
    }

    /// The plain oracle: searches the table for the nearest number, the even code on a tie. The step past the largest
    /// number is as wide as the one before it.
    #[track_caller]
    fn check_rounding(format: Narrow, table: &[(f64, u16)], value: f32, overflow: u16) {
        let wanted = f64::from(value);
        let (largest, _) = table[table.len() - 1];
        let step = largest - table[table.len() - 2].0;
        let at = table.partition_point(|(number, _)| *number < wanted);
        let expected = match (
            at.checked_sub(1).map(|below| table[below]),
            table.get(at).copied(),
        ) {
            (_, Some((number, code))) if number == wanted => code,
            (Some((below, low)), Some((above, high))) => {
                let (down, up) = (wanted - below, above - wanted);
                if down < up || (down == up && low % 2 == 0) {
                    low
                } else {
                    high
                }
            }
            (Some((below, low)), None) => {
                let (down, up) = (wanted - below, largest + step - wanted);
                if down < up || (down == up && low % 2 == 0) {
                    low
                } else {
                    overflow
                }
            }
            (None, _) => 0,
        };
        assert_eq!(format.encode(value), expected, "{value:e}");
    }

    fn overflow(format: Narrow) -> u16 {
        match format {
            Narrow::F16 => 0x7C00,
            Narrow::Bf16 => 0x7F80,
            Narrow::F8E5M2 => 0x7C,
            Narrow::F8E4M3FN => 0x7F,
            Narrow::F8E5M2FNUZ | Narrow::F8E4M3FNUZ => 0x80,
            Narrow::F8E8M0FNU => 0xFF,
        }
    }

    /// Checks all numbers of the format, the points halfway between them, and their neighbors.
    fn check_format(format: Narrow, width: u32) {
        let table = table(format, width);
        for pair in table.windows(2) {
            let half = f64::midpoint(pair[0].0, pair[1].0) as f32;
            for value in [pair[0].0 as f32, half, half.next_up(), half.next_down()] {
                check_rounding(format, &table, value, overflow(format));
            }
        }
        let largest = table[table.len() - 1].0 as f32;
        let step = largest - table[table.len() - 2].0 as f32;
        for value in [
            largest,
            largest + step / 2.0,
            (largest + step / 2.0).next_down(),
        ] {
            check_rounding(format, &table, value, overflow(format));
        }
    }

    #[test]
    fn eight_bit_floats_round_to_nearest_even() {
        for format in SIGNED {
            check_format(format, 8);
        }
    }

    #[test]
    fn sixteen_bit_floats_round_to_nearest_even() {
        check_format(Narrow::F16, 16);
        // The oracle's last step would leave the range of f32.
        let table = table(Narrow::Bf16, 16);
        for pair in table.windows(2).step_by(7) {
            let half = f64::midpoint(pair[0].0, pair[1].0) as f32;
            for value in [half, half.next_up(), half.next_down()] {
                check_rounding(Narrow::Bf16, &table, value, 0x7F80);
            }
        }
        assert_eq!(Narrow::Bf16.encode(f32::MAX), 0x7F80);
    }

    #[test]
    fn every_code_comes_back_through_f32() {
        for format in SIGNED {
            for code in 0..=0xFF {
                let value = format.decode(code);
                if !value.is_nan() {
                    assert_eq!(format.encode(value), code, "{value}");
                }
            }
        }
        for format in [Narrow::F16, Narrow::Bf16] {
            for code in 0..=0xFFFF {
                let value = format.decode(code);
                if !value.is_nan() {
                    assert_eq!(format.encode(value), code, "{value}");
                }
            }
        }
        for code in 0..0xFF {
            assert_eq!(
                Narrow::F8E8M0FNU.encode(Narrow::F8E8M0FNU.decode(code)),
                code
            );
        }
    }

    #[test]
    fn the_limits_are_those_of_the_formats() {
        for (format, largest, smallest, nan_count) in [
            (Narrow::F8E5M2, 57344.0, 2f32.powi(-16), 6),
            (Narrow::F8E4M3FN, 448.0, 2f32.powi(-9), 2),
            (Narrow::F8E5M2FNUZ, 57344.0, 2f32.powi(-17), 1),
            (Narrow::F8E4M3FNUZ, 240.0, 2f32.powi(-10), 1),
            (Narrow::F8E8M0FNU, 2f32.powi(127), 2f32.powi(-127), 1),
        ] {
            let values: Vec<f32> = (0..=0xFF).map(|code| format.decode(code)).collect();
            let finite = values.iter().copied().filter(|value| value.is_finite());
            assert_eq!(finite.fold(0.0, f32::max), largest);
            assert_eq!(format.smallest(), smallest);
            assert_eq!(
                values.iter().filter(|value| value.is_nan()).count(),
                nan_count
            );
        }
    }

    #[test]
    fn nan_and_infinity_take_the_code_of_the_format() {
        let codes = |value: f32| SIGNED.map(|format| format.encode(value));
        assert_eq!(codes(f32::NAN), [0x7F, 0x7F, 0x80, 0x80]);
        assert_eq!(codes(-f32::NAN), [0xFF, 0xFF, 0x80, 0x80]);
        assert_eq!(codes(f32::INFINITY), [0x7C, 0x7F, 0x80, 0x80]);
        assert_eq!(codes(f32::NEG_INFINITY), [0xFC, 0xFF, 0x80, 0x80]);
        assert_eq!(codes(-0.0), [0x80, 0x80, 0, 0]);
        assert_eq!(Narrow::F16.encode(f32::NAN), 0x7FFF);
        assert_eq!(Narrow::Bf16.encode(-f32::NAN), 0xFFFF);
    }

    #[test]
    fn powers_of_two_round_up_from_one_and_a_half() {
        let code = |value: f32| Narrow::F8E8M0FNU.encode(value);
        assert_eq!(
            [code(1.0), code(1.49), code(1.5), code(3.0), code(2.9)],
            [127, 127, 128, 129, 128]
        );
        assert_eq!(
            [code(0.0), code(-2.0), code(1e-45), code(3e38)],
            [0, 0, 0, 0xFF]
        );
        assert_eq!([code(8.7e-39), code(8.9e-39), code(1.8e-38)], [0, 1, 2]);
        assert_eq!([code(f32::NAN), code(f32::NEG_INFINITY)], [0xFF, 0xFF]);
    }
}
