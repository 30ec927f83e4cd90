//! Numbers in text, read as the C library reads them.
//!
//! `strtol` with base 0 and `strtof`/`strtod`, on one token: the longest prefix that is a number counts, what follows
//! it is ignored (`docs/vm.md`, section "Parsing input items").
#![forbid(unsafe_code)]

/// Longest token that is read as a number, in bytes.
pub(crate) const LONGEST_NUMBER: usize = 31;

/// Why a token is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NumberError {
    /// The token does not begin with a number.
    #[error("not a number")]
    NotANumber,
    /// The token is over 31 bytes long.
    #[error("longer than {LONGEST_NUMBER} characters")]
    TooLong,
    /// The number lies outside the range of its type.
    #[error("out of range")]
    OutOfRange,
    /// The number is not zero but too small for its type.
    #[error("too small to be told from zero")]
    Underflow,
}

/// Reads an integer of up to 64 bits with its sign: decimal, `0x` hexadecimal or `0` octal.
pub(crate) fn parse_i64(token: &str) -> Result<i64, NumberError> {
    let (negative, magnitude) = parse_integer(token)?;
    let magnitude = i128::from(magnitude);
    let value = if negative { -magnitude } else { magnitude };
    i64::try_from(value).map_err(|_| NumberError::OutOfRange)
}

/// Reads an unsigned integer of up to 64 bits; a minus sign negates it modulo 2^64, as in C.
pub(crate) fn parse_u64(token: &str) -> Result<u64, NumberError> {
    let (negative, magnitude) = parse_integer(token)?;
    Ok(if negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    })
}

/// Reads a float of single precision.
pub(crate) fn parse_f32(token: &str) -> Result<f32, NumberError> {
    match parse_float(token)? {
        Float::Finite(Decimal { text, is_zero }) => {
            let value: f32 = text.parse().map_err(|_| NumberError::NotANumber)?;
            check_underflow(value == 0.0, is_zero).map(|()| value)
        }
        Float::Hex(hex) => {
            let value = hex.to_f32();
            check_underflow(value == 0.0, hex.significand == 0).map(|()| value)
        }
        Float::Infinity { negative } => Ok(signed(f32::INFINITY, negative)),
        Float::Nan { negative, payload } => {
            // The low 22 bits of a quiet NaN are its payload.
            let payload = u32::try_from(payload & 0x3F_FFFF).unwrap_or(0);
            let bits = 0x7FC0_0000 | payload;
            Ok(f32::from_bits(bits | u32::from(negative) << 31))
        }
    }
}

/// Reads a float of double precision.
pub(crate) fn parse_f64(token: &str) -> Result<f64, NumberError> {
    match parse_float(token)? {
        Float::Finite(Decimal { text, is_zero }) => {
            let value: f64 = text.parse().map_err(|_| NumberError::NotANumber)?;
            check_underflow(value == 0.0, is_zero).map(|()| value)
        }
        Float::Hex(hex) => {
            let value = hex.to_f64();
            check_underflow(value == 0.0, hex.significand == 0).map(|()| value)
        }
        Float::Infinity { negative } => Ok(if negative {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        }),
        Float::Nan { negative, payload } => {
            let bits = 0x7FF8_0000_0000_0000 | (payload & 0x7_FFFF_FFFF_FFFF);
            Ok(f64::from_bits(bits | u64::from(negative) << 63))
        }
    }
}

fn signed(value: f32, negative: bool) -> f32 {
    if negative { -value } else { value }
}

fn check_underflow(value_is_zero: bool, text_is_zero: bool) -> Result<(), NumberError> {
    if value_is_zero && !text_is_zero {
        return Err(NumberError::Underflow);
    }
    Ok(())
}

/// Splits a sign off. Whitespace before it is not expected: tokens have none.
fn split_sign(token: &str) -> Result<(bool, &str), NumberError> {
    if token.len() > LONGEST_NUMBER {
        return Err(NumberError::TooLong);
    }
    Ok(match token.as_bytes().first() {
        Some(b'-') => (true, &token[1..]),
        Some(b'+') => (false, &token[1..]),
        _ => (false, token),
    })
}

/// Returns what follows `0x` when a hexadecimal digit (or a point) does.
fn strip_hex_prefix(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

fn parse_integer(token: &str) -> Result<(bool, u64), NumberError> {
    let (negative, text) = split_sign(token)?;
    let hex = strip_hex_prefix(text).filter(|rest| digit_count(rest, 16) > 0);
    let (digits, radix) = match hex {
        Some(rest) => (rest, 16),
        None if text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let count = digit_count(digits, radix);
    if count == 0 {
        return Err(NumberError::NotANumber);
    }
    match u64::from_str_radix(&digits[..count], radix) {
        Ok(magnitude) => Ok((negative, magnitude)),
        Err(_) => Err(NumberError::OutOfRange),
    }
}

/// Returns how many leading characters are digits; each is one byte.
fn digit_count(text: &str, radix: u32) -> usize {
    text.bytes()
        .take_while(|&byte| char::from(byte).is_digit(radix))
        .count()
}

enum Float<'a> {
    Finite(Decimal<'a>),
    Hex(HexFloat),
    Infinity { negative: bool },
    Nan { negative: bool, payload: u64 },
}

/// A decimal float in the form that the standard library reads.
struct Decimal<'a> {
    text: &'a str,
    is_zero: bool,
}

/// `significand * 2^exponent`, where the last bit of the significand stands for any nonzero bits below it.
#[derive(Clone, Copy)]
struct HexFloat {
    negative: bool,
    significand: u64,
    exponent: i64,
}

fn parse_float(token: &str) -> Result<Float<'_>, NumberError> {
    let (negative, text) = split_sign(token)?;
    if starts_with_ignoring_case(text, "inf") {
        return Ok(Float::Infinity { negative });
    }
    if starts_with_ignoring_case(text, "nan") {
        return Ok(Float::Nan {
            negative,
            payload: nan_payload(&text[3..]),
        });
    }
    if let Some(hex) = strip_hex_prefix(text).and_then(|rest| parse_hex(negative, rest)) {
        return Ok(Float::Hex(hex));
    }
    let integer = digit_count(text, 10);
    let mut end = integer;
    let mut digits = integer;
    if text[integer..].starts_with('.') {
        let fraction = digit_count(&text[integer + 1..], 10);
        digits += fraction;
        end += 1 + fraction;
    }
    if digits == 0 {
        return Err(NumberError::NotANumber);
    }
    let is_zero = text[..end].bytes().all(|byte| matches!(byte, b'0' | b'.'));
    end += exponent_length(&text[end..], b'e');
    let sign_length = token.len() - text.len();
    Ok(Float::Finite(Decimal {
        text: &token[..sign_length + end],
        is_zero,
    }))
}

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.as_bytes()
        .get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

/// Returns the length of an exponent such as `e-5`, or 0 when no digits follow the letter.
fn exponent_length(text: &str, letter: u8) -> usize {
    let bytes = text.as_bytes();
    if bytes.first().map(u8::to_ascii_lowercase) != Some(letter) {
        return 0;
    }
    let sign = usize::from(matches!(bytes.get(1), Some(b'+' | b'-')));
    match digit_count(&text[1 + sign..], 10) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

/// Returns the number in `(...)` after `nan`, or 0 when there is none.
fn nan_payload(text: &str) -> u64 {
    let inner = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let Some((payload, _)) = inner else { return 0 };
    let whole = match strip_hex_prefix(payload) {
        Some(hex) => u64::from_str_radix(hex, 16),
        None if payload.starts_with('0') => u64::from_str_radix(payload, 8),
        None => payload.parse(),
    };
    whole.unwrap_or(0)
}

fn parse_hex(negative: bool, text: &str) -> Option<HexFloat> {
    let mut significand = 0u64;
    let mut exponent = 0i64;
    let mut digits = 0;
    let mut in_fraction = false;
    let mut end = 0;
    for character in text.chars() {
        if character == '.' && !in_fraction {
            in_fraction = true;
            end += 1;
            continue;
        }
        let Some(digit) = character.to_digit(16) else {
            break;
        };
        digits += 1;
        end += 1;
        if significand >> 60 == 0 {
            significand = significand << 4 | u64::from(digit);
            exponent -= if in_fraction { 4 } else { 0 };
        } else {
            significand |= u64::from(digit != 0);
            exponent += if in_fraction { 0 } else { 4 };
        }
    }
    if digits == 0 {
        return None;
    }
    let tail = &text[end..];
    let written = &tail[..exponent_length(tail, b'p')];
    if let Some(power) = written.get(1..) {
        // A token is short, but its exponent may still exceed 64 bits; far outside any float's range either way.
        let limit = if power.starts_with('-') {
            -1_000_000
        } else {
            1_000_000
        };
        exponent += power
            .parse::<i64>()
            .unwrap_or(limit)
            .clamp(-1_000_000, 1_000_000);
    }
    Some(HexFloat {
        negative,
        significand,
        exponent,
    })
}

impl HexFloat {
    fn to_f32(self) -> f32 {
        let bits = self.round(23, 127);
        f32::from_bits(u32::try_from(bits).unwrap_or(0x7F80_0000) | u32::from(self.negative) << 31)
    }

    fn to_f64(self) -> f64 {
        f64::from_bits(self.round(52, 1023) | u64::from(self.negative) << 63)
    }

    /// Returns the bits, without the sign, of the nearest float with so many mantissa bits and this exponent bias.
    fn round(self, mantissa_bits: u32, bias: i64) -> u64 {
        if self.significand == 0 {
            return 0;
        }
        // The significand with its top bit at bit 63, worth 2^top.
        let shift_up = self.significand.leading_zeros();
        let significand = self.significand << shift_up;
        let top = self.exponent + 63 - i64::from(shift_up);
        let infinity = u64::try_from(2 * bias + 1).unwrap_or(0) << mantissa_bits;
        if top > bias {
            return infinity;
        }
        let field = top + bias;
        let shift = i64::from(63 - mantissa_bits) + (1 - field).max(0);
        if shift > 64 {
            return 0;
        }
        let wide = u128::from(significand);
        let kept = u64::try_from(wide >> shift).unwrap_or(0);
        let rest = wide & ((1 << shift) - 1);
        let half = 1u128 << (shift - 1);
        let up = rest > half || (rest == half && kept & 1 == 1);
        // With the hidden bit in `kept`, the exponent field starts one lower; a carry moves into it by itself.
        let base = u64::try_from(field.max(1) - 1).unwrap_or(0) << mantissa_bits;
        base + kept + u64::from(up)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn integers_are_read_in_three_bases() {
        assert_eq!(parse_i64("12"), Ok(12));
        assert_eq!(parse_i64("-12abc"), Ok(-12));
        assert_eq!(parse_i64("3.7"), Ok(3));
        assert_eq!(parse_i64("0x10"), Ok(16));
        assert_eq!(parse_i64("-0X7f"), Ok(-127));
        assert_eq!(parse_i64("010"), Ok(8));
        assert_eq!(parse_i64("09"), Ok(0));
        assert_eq!(parse_i64("0x"), Ok(0));
        assert_eq!(parse_i64("0b11"), Ok(0));
        assert_eq!(parse_i64("+5"), Ok(5));
    }

    #[test]
    fn integers_beyond_64_bits_are_out_of_range() {
        assert_eq!(parse_i64("9223372036854775807"), Ok(i64::MAX));
        assert_eq!(parse_i64("-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(
            parse_i64("9223372036854775808"),
            Err(NumberError::OutOfRange)
        );
        assert_eq!(
            parse_i64("-9223372036854775809"),
            Err(NumberError::OutOfRange)
        );
        assert_eq!(
            parse_u64("18446744073709551616"),
            Err(NumberError::OutOfRange)
        );
        assert_eq!(parse_u64("-1"), Ok(u64::MAX));
        assert_eq!(parse_u64("-18446744073709551615"), Ok(1));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for token in ["", "-", "abc", "--1", "+-1", "_1", "é"] {
            assert_eq!(parse_i64(token), Err(NumberError::NotANumber), "{token}");
            assert_eq!(parse_f32(token), Err(NumberError::NotANumber), "{token}");
        }
        assert_eq!(parse_f64("."), Err(NumberError::NotANumber));
        assert_eq!(parse_f64("-.e5"), Err(NumberError::NotANumber));
    }

    #[test]
    fn tokens_over_31_characters_are_refused() {
        let longest = "1.00000000000000000000000000001";
        assert_eq!(longest.len(), 31);
        assert_eq!(parse_f32(longest), Ok(1.0));
        assert_eq!(parse_f32(&format!("{longest}0")), Err(NumberError::TooLong));
        assert_eq!(parse_i64(&"0".repeat(32)), Err(NumberError::TooLong));
    }

    #[test]
    fn floats_are_read_as_far_as_they_go() {
        assert_eq!(parse_f32("1.5"), Ok(1.5));
        assert_eq!(parse_f32("12abc"), Ok(12.0));
        assert_eq!(parse_f32("1e"), Ok(1.0));
        assert_eq!(parse_f32("1e+"), Ok(1.0));
        assert_eq!(parse_f32("1e-2x"), Ok(0.01));
        assert_eq!(parse_f32(".5"), Ok(0.5));
        assert_eq!(parse_f32("5."), Ok(5.0));
        assert_eq!(parse_f32("1;2"), Ok(1.0));
        assert_eq!(parse_f32("-1_000"), Ok(-1.0));
    }

    #[test]
    fn overflow_is_infinity_and_underflow_an_error() {
        assert_eq!(parse_f32("1e39"), Ok(f32::INFINITY));
        assert_eq!(parse_f32("-1e39"), Ok(f32::NEG_INFINITY));
        assert_eq!(parse_f64("1e309"), Ok(f64::INFINITY));
        assert_eq!(parse_f32("1e-46"), Err(NumberError::Underflow));
        assert_eq!(parse_f32("1e-45").map(f32::to_bits), Ok(1));
        assert_eq!(parse_f64("1e-324"), Err(NumberError::Underflow));
        assert_eq!(parse_f64("0x1p-2000"), Err(NumberError::Underflow));
        assert_eq!(parse_f32("0e999"), Ok(0.0));
        assert_eq!(parse_f32("-0").map(f32::to_bits), Ok(0x8000_0000));
    }

    #[test]
    fn specials_are_read_in_any_case() {
        assert_eq!(parse_f32("INFINITY"), Ok(f32::INFINITY));
        assert_eq!(parse_f64("-Inf"), Ok(f64::NEG_INFINITY));
        let bits = |token| parse_f32(token).map(f32::to_bits);
        assert_eq!(bits("nan"), Ok(0x7FC0_0000));
        assert_eq!(bits("-NaN"), Ok(0xFFC0_0000));
        assert_eq!(bits("nan(0x123)"), Ok(0x7FC0_0123));
        assert_eq!(bits("-nan(5)"), Ok(0xFFC0_0005));
        assert_eq!(bits("nan(xyz)"), Ok(0x7FC0_0000));
        assert_eq!(bits("nan("), Ok(0x7FC0_0000));
        assert_eq!(
            parse_f64("nan(0x123)").map(f64::to_bits),
            Ok(0x7FF8_0000_0000_0123)
        );
    }

    #[test]
    fn hexadecimal_floats_round_to_nearest_even() {
        assert_eq!(parse_f32("0x1p3"), Ok(8.0));
        assert_eq!(parse_f32("0x1.8"), Ok(1.5));
        assert_eq!(parse_f32("-0xA.8p-1"), Ok(-5.25));
        assert_eq!(parse_f32("0x.8p1"), Ok(1.0));
        assert_eq!(parse_f32("0x1p"), Ok(1.0));
        assert_eq!(parse_f32("0x"), Ok(0.0));
        assert_eq!(parse_f32("0x1.000001p0"), Ok(1.0));
        assert_eq!(
            parse_f32("0x1.0000010000001p0").map(f32::to_bits),
            Ok(0x3F80_0001)
        );
        assert_eq!(parse_f32("0x1.000003p0").map(f32::to_bits), Ok(0x3F80_0002));
        assert_eq!(parse_f32("0x1.ffffffp127"), Ok(f32::INFINITY));
        assert_eq!(parse_f32("0x1p-149").map(f32::to_bits), Ok(1));
        assert_eq!(parse_f32("0x1.8p-150").map(f32::to_bits), Ok(1));
        assert_eq!(parse_f32("0x1p-150"), Err(NumberError::Underflow));
        assert_eq!(parse_f64("0x1p99999999999999999999"), Ok(f64::INFINITY));
        assert_eq!(
            parse_f64("0x12345678901234567890p0"),
            Ok(85_968_058_271_978_839_505_040.0)
        );
    }

    proptest! {
        #[test]
        fn any_token_gives_a_number_or_an_error(token in "\\PC{0,40}") {
            let _ = (parse_i64(&token), parse_u64(&token), parse_f32(&token), parse_f64(&token));
        }

        #[test]
        fn number_like_tokens_do_too(token in "[-+]?(0x)?[0-9a-fA-FnNiIpPeE.()+-]{0,24}") {
            let _ = (parse_i64(&token), parse_u64(&token), parse_f32(&token), parse_f64(&token));
        }

        #[test]
        fn written_integers_are_read_back(value in any::<i64>()) {
            prop_assert_eq!(parse_i64(&value.to_string()), Ok(value));
            prop_assert_eq!(parse_u64(&value.to_string()), Ok(value.cast_unsigned()));
        }

        #[test]
        fn written_floats_are_read_back(bits in any::<u32>()) {
            let value = f32::from_bits(bits);
            prop_assume!(!value.is_nan());
            prop_assert_eq!(parse_f32(&format!("{value:e}")).map(f32::to_bits), Ok(bits));
        }

        #[test]
        fn written_doubles_are_read_back(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            prop_assert_eq!(parse_f64(&format!("{value:e}")).map(f64::to_bits), Ok(bits));
        }

        #[test]
        #[expect(clippy::cast_possible_truncation, reason = "rounding is what is tested")]
        fn hexadecimal_significands_are_exact(significand in 1u32..1 << 24, exponent in -140i32..100) {
            let value = f64::from(significand) * 2f64.powi(exponent);
            let token = format!("0x{significand:x}p{exponent}");
            prop_assert_eq!(parse_f64(&token), Ok(value));
            let narrow = value as f32;
            if narrow != 0.0 {
                prop_assert_eq!(parse_f32(&token), Ok(narrow));
            }
        }
    }
}
