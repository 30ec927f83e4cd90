//! C's `%g`: floats with six significant digits.
//!
//! Built on the standard library's exact scientific notation, which rounds to nearest, ties to even, on the exact
//! binary value, as C libraries do; only the layout of the digits is done here.
#![forbid(unsafe_code)]

use core::fmt::{self, Write};

/// Significant digits of `%g` without a precision.
const PRECISION: i32 = 6;

/// Whether letters are written as by `%g` or as by `%G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// `%g`: `inf`, `nan`, `1e+10`.
    Lower,
    /// `%G`: `INF`, `NAN`, `1E+10`.
    Upper,
}

/// A float that displays as C's `%g` or `%G` writes it. The sign of a NaN is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct General(pub(crate) f64, pub(crate) Case);

impl fmt::Display for General {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, case) = *self;
        if value.is_sign_negative() {
            f.write_char('-')?;
        }
        let magnitude = value.abs();
        match (magnitude.is_nan(), magnitude.is_infinite(), case) {
            (true, _, Case::Lower) => return f.write_str("nan"),
            (true, _, Case::Upper) => return f.write_str("NAN"),
            (_, true, Case::Lower) => return f.write_str("inf"),
            (_, true, Case::Upper) => return f.write_str("INF"),
            _ => {}
        }

        // "d.ddddde[-]x": always one digit, a point and five digits before the `e`.
        let mut scientific = Short::default();
        write!(scientific, "{magnitude:.5e}")?;
        let scientific = scientific.text();
        let (significand, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
        let exponent: i32 = exponent.parse().map_err(|_| fmt::Error)?;
        let (first, rest) = significand.split_once('.').unwrap_or((significand, ""));

        if !(-4..PRECISION).contains(&exponent) {
            write_point(f, first, rest)?;
            let letter = if case == Case::Upper { 'E' } else { 'e' };
            let sign = if exponent < 0 { '-' } else { '+' };
            return write!(f, "{letter}{sign}{:02}", exponent.unsigned_abs());
        }
        match usize::try_from(exponent) {
            Ok(moved) => {
                let (integer, fraction) = rest.split_at(moved.min(rest.len()));
                f.write_str(first)?;
                write_point(f, integer, fraction)
            }
            Err(_) => {
                let zeros = "000"; // The exponent is -4 to -1.
                let count = usize::try_from(-1 - exponent).unwrap_or(0);
                f.write_str("0.")?;
                f.write_str(&zeros[..count.min(zeros.len())])?;
                f.write_str(first)?;
                f.write_str(rest.trim_end_matches('0'))
            }
        }
    }
}

/// Writes a number's digits without trailing zeros of the fraction and without a trailing point.
fn write_point(f: &mut fmt::Formatter<'_>, integer: &str, fraction: &str) -> fmt::Result {
    f.write_str(integer)?;
    match fraction.trim_end_matches('0') {
        "" => Ok(()),
        fraction => write!(f, ".{fraction}"),
    }
}

/// A short text without an allocation: there is one for each element of a tensor.
#[derive(Default)]
struct Short {
    /// `d.ddddde-ddd` has 12 characters.
    bytes: [u8; 16],
    length: usize,
}

impl Short {
    fn text(&self) -> &str {
        // Whole strings were written, so this is UTF-8.
        str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let target = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        target.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "the oracle counts a few hundred digits"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(value: f64, expected: &str) {
        assert_eq!(General(value, Case::Upper).to_string(), expected);
        assert_eq!(
            General(value, Case::Lower).to_string(),
            expected.to_lowercase()
        );
    }

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        check(0.0, "0");
        check(-0.0, "-0");
        check(1.0, "1");
        check(-2.5, "-2.5");
        check(100_000.0, "100000");
        check(999_999.4, "999999");
        check(999_999.5, "1E+06");
        check(1_234_567.0, "1.23457E+06");
        check(0.0001, "0.0001");
        check(0.000_123_456_78, "0.000123457");
        check(0.000_099_999_94, "9.99999E-05");
        check(0.000_099_999_996, "0.0001");
        check(0.000_01, "1E-05");
        check(16_777_216.0, "1.67772E+07");
        check(1e10, "1E+10");
        check(1e100, "1E+100");
        check(f64::MIN_POSITIVE * f64::EPSILON, "4.94066E-324");
        check(f64::MAX, "1.79769E+308");
        check(f64::from(1e-40_f32), "9.99995E-41");
        check(0.101_562_5, "0.101562");
        check(1.015_625, "1.01562");
        check(0.000_976_562_5, "0.000976562");
        check(123_456.5, "123456");
        check(123_457.5, "123458");
        check(f64::INFINITY, "INF");
        check(f64::NEG_INFINITY, "-INF");
        check(f64::NAN.copysign(1.0), "NAN");
        check(f64::NAN.copysign(-1.0), "-NAN");
    }

    /// The plain oracle: the digits of the value's exact decimal expansion, computed in a vector of decimal digits and
    /// rounded by hand.
    fn oracle(value: f64) -> String {
        let bits = value.to_bits();
        let sign = if bits >> 63 == 1 { "-" } else { "" };
        let raw_exponent = (bits >> 52 & 0x7FF) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let significand = if raw_exponent == 0 {
            fraction
        } else {
            fraction | 1 << 52
        };
        if significand == 0 {
            return format!("{sign}0");
        }
        let mut exponent = raw_exponent.max(1) - 1075;
        // Digits of the integer `significand`, least significant first, and a decimal exponent.
        let mut digits: Vec<u8> = Vec::new();
        let mut rest = significand;
        while rest > 0 {
            digits.push((rest % 10) as u8);
            rest /= 10;
        }
        let mut point = 0i32;
        while exponent != 0 {
            // Times two; or times five with one more decimal place, which halves.
            let factor = if exponent > 0 { 2 } else { 5 };
            let mut carry = 0;
            for digit in &mut digits {
                let product = *digit * factor + carry;
                *digit = product % 10;
                carry = product / 10;
            }
            if carry > 0 {
                digits.push(carry);
            }
            if exponent > 0 {
                exponent -= 1;
            } else {
                exponent += 1;
                point += 1;
            }
        }
        digits.reverse();
        let mut decimal = digits.len() as i32 - 1 - point;
        let tail = digits.split_off(digits.len().min(6));
        digits.resize(6, 0);
        let up = match tail.first() {
            Some(&5) if tail[1..].iter().all(|&digit| digit == 0) => digits[5] % 2 == 1,
            Some(&digit) => digit >= 5,
            None => false,
        };
        if up {
            let mut at = 6;
            loop {
                if at == 0 {
                    digits.insert(0, 1);
                    digits.pop();
                    decimal += 1;
                    break;
                }
                at -= 1;
                digits[at] = (digits[at] + 1) % 10;
                if digits[at] != 0 {
                    break;
                }
            }
        }
        let text: String = digits
            .iter()
            .map(|digit| char::from(b'0' + digit))
            .collect();
        let trim = |text: String| match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        };
        if !(-4..6).contains(&decimal) {
            let significand = trim(format!("{}.{}", &text[..1], &text[1..]));
            let exponent_sign = if decimal < 0 { '-' } else { '+' };
            return format!("{sign}{significand}E{exponent_sign}{:02}", decimal.abs());
        }
        if decimal < 0 {
            return sign.to_owned()
                + &trim(format!("0.{}{text}", "0".repeat((-1 - decimal) as usize)));
        }
        let split = decimal as usize + 1;
        sign.to_owned() + &trim(format!("{}.{}", &text[..split], &text[split..]))
    }

    proptest! {
        #[test]
        fn doubles_agree_with_the_exact_expansion(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            prop_assert_eq!(General(value, Case::Upper).to_string(), oracle(value));
        }

        #[test]
        fn everyday_numbers_agree_with_the_exact_expansion(mantissa in -20_000_000i32..20_000_000, shift in 0u32..30) {
            let value = f64::from(mantissa) / f64::from(1u32 << shift);
            let text = General(value, Case::Upper).to_string();
            prop_assert_eq!(&text, &oracle(value));
        }
    }
}
