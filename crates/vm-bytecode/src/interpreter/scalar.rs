//! Scalar operations whose meaning is not that of one Rust operator.
//!
//! Each follows the reference where it is defined; where the reference crashes or depends on the compiler that built
//! it, the result is the one `docs/vm.md`, section "Deviations", writes down.

use vm::{Result, Trap};

#[cold]
fn division_by_zero() -> Trap {
    Trap::invalid_argument("integer division by zero")
}

/// Defines the divisions of one width.
macro_rules! define_divisions {
    ($signed:ty, $unsigned:ty, $div_s:ident, $div_u:ident, $rem_s:ident, $rem_u:ident) => {
        /// Divides truncating; the smallest number by -1 wraps to itself.
        ///
        /// # Errors
        /// `INVALID_ARGUMENT` when the divisor is zero.
        #[inline]
        pub(super) fn $div_s(a: $signed, b: $signed) -> Result<$signed> {
            if b == 0 {
                Err(division_by_zero())
            } else {
                Ok(a.wrapping_div(b))
            }
        }

        /// Divides unsigned.
        ///
        /// # Errors
        /// `INVALID_ARGUMENT` when the divisor is zero.
        #[inline]
        pub(super) fn $div_u(a: $unsigned, b: $unsigned) -> Result<$unsigned> {
            a.checked_div(b).ok_or_else(division_by_zero)
        }

        /// Takes the remainder with the sign of the dividend; that of the smallest number and -1 is zero.
        ///
        /// # Errors
        /// `INVALID_ARGUMENT` when the divisor is zero.
        #[inline]
        pub(super) fn $rem_s(a: $signed, b: $signed) -> Result<$signed> {
            if b == 0 {
                Err(division_by_zero())
            } else {
                Ok(a.wrapping_rem(b))
            }
        }

        /// Takes the unsigned remainder.
        ///
        /// # Errors
        /// `INVALID_ARGUMENT` when the divisor is zero.
        #[inline]
        pub(super) fn $rem_u(a: $unsigned, b: $unsigned) -> Result<$unsigned> {
            a.checked_rem(b).ok_or_else(division_by_zero)
        }
    };
}

define_divisions!(i32, u32, div_i32_s, div_i32_u, rem_i32_s, rem_i32_u);
define_divisions!(i64, u64, div_i64_s, div_i64_u, rem_i64_s, rem_i64_u);

/// Returns `value` as an i64, or the smallest i64 when it is none: what x86-64's conversion gives.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(super) fn f64_to_i64(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// Rounds half away from zero to an i64 and keeps the low word.
#[expect(clippy::cast_possible_truncation, reason = "the low word is asked for")]
pub(super) fn f32_to_i32(value: f32) -> i32 {
    f32_to_i64(value) as i32
}

/// Rounds half away from zero to an i64.
pub(super) fn f32_to_i64(value: f32) -> i64 {
    f64_to_i64(value.round().into())
}

/// Rounds half away from zero to a u64 as x86-64's two-step conversion does: a negative number wraps, and what is too
/// large or not a number gives 2^63.
pub(super) fn f32_to_u64(value: f32) -> u64 {
    const HALF_RANGE: f32 = 9_223_372_036_854_775_808.0;
    let rounded = value.round();
    let low = f64_to_i64(rounded.into());
    let high = f64_to_i64((rounded - HALF_RANGE).into());
    (low | high & (low >> 63)).cast_unsigned()
}

/// Narrows to f32 first, then converts as [`f32_to_i32`].
#[expect(
    clippy::cast_possible_truncation,
    reason = "the narrowing is asked for"
)]
pub(super) fn f64_to_i32(value: f64) -> i32 {
    f32_to_i32(value as f32)
}

/// Defines logarithms that are a positive NaN for negative numbers, as in the reference. Those of the other instructions
/// are a negative one.
macro_rules! define_logarithms {
    ($($name:ident $float:ty, $function:path;)*) => {$(
        pub(super) fn $name(value: $float) -> $float {
            if value < 0.0 {
                return <$float>::NAN;
            }
            $function(value)
        }
    )*};
}

define_logarithms! {
    log10_f32 f32, libm::log10f;
    log_f64 f64, libm::log;
    log10_f64 f64, libm::log10;
    log2_f64 f64, libm::log2;
}

/// Defines the float operations of one width.
macro_rules! define_floats {
    ($float:ty, $min:ident, $max:ident, $round_even:ident, $rsqrt:ident, $fma:ident, $powi:ident) => {
        /// Returns the smaller number, or the first when they are equal or unordered.
        #[inline]
        pub(super) fn $min(a: $float, b: $float) -> $float {
            if b < a { b } else { a }
        }

        /// Returns the greater number, or the first when they are equal or unordered.
        #[inline]
        pub(super) fn $max(a: $float, b: $float) -> $float {
            if a < b { b } else { a }
        }

        /// Rounds to the nearest integer, ties to even. The zero that -0.5 rounds to is positive, as in the reference;
        /// other negative numbers round to a negative zero.
        pub(super) fn $round_even(value: $float) -> $float {
            if value == -0.5 {
                0.0
            } else {
                value.round_ties_even()
            }
        }

        /// Returns one over the square root, both rounded.
        pub(super) fn $rsqrt(value: $float) -> $float {
            1.0 / value.sqrt()
        }

        /// Multiplies and adds, both rounded.
        #[inline]
        pub(super) fn $fma(a: $float, b: $float, c: $float) -> $float {
            a * b + c
        }

        /// Raises to an integer power by squaring; one over the power when the exponent is negative.
        pub(super) fn $powi(base: $float, exponent: i32) -> $float {
            let mut result = 1.0;
            let mut factor = base;
            let mut rest = exponent.unsigned_abs();
            while rest != 0 {
                if rest & 1 != 0 {
                    result *= factor;
                }
                rest >>= 1;
                factor *= factor;
            }
            if exponent < 0 { 1.0 / result } else { result }
        }
    };
}

define_floats!(
    f32,
    min_f32,
    max_f32,
    round_even_f32,
    rsqrt_f32,
    fma_f32,
    powi_f32
);
define_floats!(
    f64,
    min_f64,
    max_f64,
    round_even_f64,
    rsqrt_f64,
    fma_f64,
    powi_f64
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vm::StatusCode;

    use super::*;

    #[test]
    fn d18_division_never_traps_the_process() {
        assert_eq!(div_i32_s(i32::MIN, -1).unwrap(), i32::MIN);
        assert_eq!(rem_i32_s(i32::MIN, -1).unwrap(), 0);
        assert_eq!(div_i64_s(i64::MIN, -1).unwrap(), i64::MIN);
        assert_eq!(rem_i64_s(i64::MIN, -1).unwrap(), 0);
        for error in [
            div_i32_s(1, 0).unwrap_err(),
            div_i32_u(1, 0).unwrap_err(),
            rem_i32_s(1, 0).unwrap_err(),
            rem_i32_u(1, 0).unwrap_err(),
            div_i64_s(1, 0).unwrap_err(),
            div_i64_u(1, 0).unwrap_err(),
            rem_i64_s(1, 0).unwrap_err(),
            rem_i64_u(1, 0).unwrap_err(),
        ] {
            assert_eq!(error.code(), StatusCode::INVALID_ARGUMENT);
        }
        assert_eq!(
            (div_i32_s(-7, 3).unwrap(), rem_i32_s(-7, 3).unwrap()),
            (-2, -1)
        );
    }

    #[test]
    fn d17_float_to_integer_is_defined_everywhere() {
        let to_i32 = [
            (2.5, 3),
            (-2.5, -3),
            (2.4, 2),
            (3e9, -1_294_967_296),
            (-3e9, 1_294_967_296),
            (f32::NAN, 0),
            (f32::INFINITY, 0),
            (4e9, -294_967_296),
            (5e9, 705_032_704),
        ];
        for (value, expected) in to_i32 {
            assert_eq!(f32_to_i32(value), expected, "{value}");
        }
        assert_eq!(f32_to_i64(1e19), i64::MIN);
        let to_u64 = [
            (1e19, 9_999_999_980_506_447_872),
            (-1.0, u64::MAX),
            (2e19, 1 << 63),
            (f32::NAN, 1 << 63),
            (1e10, 10_000_000_000),
        ];
        for (value, expected) in to_u64 {
            assert_eq!(f32_to_u64(value), expected, "{value}");
        }
        assert_eq!(f64_to_i32(16_777_217.0), 16_777_216);
        assert_eq!(f64_to_i32(4_294_967_295.0), 0);
    }

    #[test]
    fn minimum_and_maximum_prefer_the_first_operand() {
        assert!(min_f32(f32::NAN, 1.0).is_nan());
        assert_eq!(min_f32(1.0, f32::NAN), 1.0);
        assert!(min_f64(-0.0, 0.0).is_sign_negative());
        assert!(max_f64(0.0, -0.0).is_sign_positive());
    }

    #[test]
    fn rounding_to_even_keeps_the_sign_but_at_minus_one_half() {
        let rounded = [0.5f32, 2.5, 3.5, -2.5, -0.5, -0.2, -0.0].map(round_even_f32);
        let expected = [0.0f32, 2.0, 4.0, -2.0, 0.0, -0.0, -0.0];
        assert_eq!(rounded.map(f32::to_bits), expected.map(f32::to_bits));
    }

    #[test]
    fn some_logarithms_of_negative_numbers_are_a_positive_nan() {
        for value in [-1.0, -0.5, f32::NEG_INFINITY] {
            let wide = [log_f64, log10_f64, log2_f64].map(|logarithm| logarithm(value.into()));
            for result in [log10_f32(value).into(), wide[0], wide[1], wide[2]] {
                assert!(result.is_nan() && result.is_sign_positive(), "{value}");
            }
        }
        assert_eq!(log10_f64(1000.0), 3.0);
        assert_eq!(log2_f64(-0.0), f64::NEG_INFINITY);
    }

    #[test]
    fn multiply_and_add_round_twice() {
        assert_eq!(fma_f32(1.000_000_1, 1.000_000_1, -1.000_000_2), 0.0);
    }

    proptest! {
        #[test]
        fn powers_agree_with_repeated_multiplication(base in -4.0f64..4.0, exponent in 0i32..12) {
            let plain: f64 = (0..exponent).map(|_| base).product();
            prop_assert!((powi_f64(base, exponent) - plain).abs() <= 1e-9 * plain.abs());
        }

        #[test]
        fn casts_of_small_numbers_round_half_away(value in -1e6f32..1e6) {
            prop_assert_eq!(f64::from(f32_to_i32(value)), f64::from(value).round());
        }
    }
}
