//! Comparison of results with what was expected of them.
//!
//! Tolerances and the texts of differences are `docs/vm.md`, section "Expected outputs"; results that are numbers,
//! which the reference never matches, are compared like elements.
#![forbid(unsafe_code)]

use core::fmt::{self, Write};

use crate::text::{self, DEFAULT_MAX_ELEMENTS, PrintError};
use crate::{ElementType, Tensor, Value};

/// How far floats may be apart: `|actual - expected| <= absolute + relative * |expected|`.
///
/// NaNs equal each other and infinities equal themselves. Integers, truth values, 8-bit floats and bytes are always
/// compared exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Whether floats must have the same bytes; the other fields then mean nothing.
    pub exact: bool,
    /// Absolute tolerance of f16.
    pub f16: f64,
    /// Absolute tolerance of bf16.
    pub bf16: f64,
    /// Absolute tolerance of f32.
    pub f32: f64,
    /// Absolute tolerance of f64.
    pub f64: f64,
    /// Relative tolerance of all of them.
    pub relative: f64,
}

impl Default for Tolerance {
    /// Returns the tolerance that the tools have unless told otherwise.
    fn default() -> Self {
        Self {
            exact: false,
            f16: 1e-3,
            bf16: 1e-2,
            f32: 1e-4,
            f64: 1e-4,
            relative: 1e-5,
        }
    }
}

impl Tolerance {
    /// Returns whether two floats are as close as this allows.
    fn allows(&self, absolute: f64, expected: f64, actual: f64) -> bool {
        if expected.is_nan() || actual.is_nan() {
            return expected.is_nan() && actual.is_nan();
        }
        if expected.is_infinite() || actual.is_infinite() {
            return expected == actual;
        }
        (actual - expected).abs() <= absolute + self.relative * expected.abs()
    }

    /// Returns the absolute tolerance of an element type, or `None` when it is compared exactly.
    fn absolute(&self, element_type: ElementType) -> Option<f64> {
        if self.exact {
            return None;
        }
        match element_type {
            ElementType::F16 => Some(self.f16),
            ElementType::BF16 => Some(self.bf16),
            ElementType::F32 => Some(self.f32),
            ElementType::F64 => Some(self.f64),
            _ => None,
        }
    }
}

/// How a result differs from what was expected. Its text ends without a line break.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Difference {
    /// They are of different types.
    Type {
        /// Name of the expected type.
        expected: &'static str,
        /// Name of the result's type.
        actual: &'static str,
    },
    /// They are different numbers, or different memory.
    Value {
        /// What was expected.
        expected: String,
        /// The result.
        actual: String,
    },
    /// They have another shape or element type.
    Metadata {
        /// What was expected.
        expected: Tensor,
        /// The result.
        actual: Tensor,
    },
    /// An element differs.
    Element {
        /// Index of the first that does, in row-major order.
        index: usize,
        /// What was expected.
        expected: Tensor,
        /// The result.
        actual: Tensor,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (expected, actual) = match self {
            Self::Type { expected, actual } => {
                return write!(
                    f,
                    "variant types mismatch; expected {expected} but got {actual}"
                );
            }
            Self::Value { expected, actual } => {
                return write!(
                    f,
                    "value ({actual}) does not match the expected ({expected})"
                );
            }
            Self::Metadata { expected, actual } => {
                f.write_str("metadata is ")?;
                text::write_metadata(f, actual)?;
                f.write_str("; expected that the view matches ")?;
                text::write_metadata(f, expected)?;
                (expected, actual)
            }
            Self::Element {
                index,
                expected,
                actual,
            } => {
                write!(f, "element at index {index} (")?;
                write_element(f, actual, *index)?;
                f.write_str(") does not match the expected (")?;
                write_element(f, expected, *index)?;
                f.write_char(')')?;
                (expected, actual)
            }
        };
        f.write_str("; expected that the view is equal to contents of a view of ")?;
        text::write_metadata(f, expected)?;
        write!(f, "\n  expected:\n{expected}\n  actual:\n{actual}")
    }
}

fn write_element(f: &mut fmt::Formatter<'_>, tensor: &Tensor, index: usize) -> fmt::Result {
    match text::write_element(f, tensor, index) {
        Ok(()) => Ok(()),
        Err(PrintError::Write(error)) => Err(error),
        // Comparison refuses tensors without a text.
        Err(_) => f.write_str("..."),
    }
}

/// Compares a result with what was expected; `None` says that they agree. A null expectation agrees with anything.
///
/// # Errors
/// Fails when a tensor has elements that share bytes, which have no text.
///
/// # Examples
/// ```
/// use halite::compare::{compare, Tolerance};
///
/// let expected = halite::text::parse_tensor("2xf32=1 2")?.into();
/// let actual = halite::text::parse_tensor("2xf32=1 2.5")?.into();
/// let difference = compare(&expected, &actual, &Tolerance::default())?.expect("2.5 is not 2");
/// assert!(difference.to_string().starts_with("element at index 1 (2.5) does not match the expected (2);"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compare(
    expected: &Value,
    actual: &Value,
    tolerance: &Tolerance,
) -> Result<Option<Difference>, PrintError> {
    let is_equal = match (expected, actual) {
        (Value::Null, _) => true,
        (Value::Tensor(expected), Value::Tensor(actual)) => {
            return compare_tensors(expected, actual, tolerance);
        }
        (Value::I32(expected), Value::I32(actual)) => expected == actual,
        (Value::I64(expected), Value::I64(actual)) => expected == actual,
        (Value::F32(expected), Value::F32(actual)) => match tolerance.exact {
            true => expected.to_bits() == actual.to_bits(),
            false => tolerance.allows(tolerance.f32, (*expected).into(), (*actual).into()),
        },
        (Value::F64(expected), Value::F64(actual)) => match tolerance.exact {
            true => expected.to_bits() == actual.to_bits(),
            false => tolerance.allows(tolerance.f64, *expected, *actual),
        },
        (Value::Storage(expected), Value::Storage(actual))
        | (Value::Buffer(expected), Value::Buffer(actual)) => expected.to_vec() == actual.to_vec(),
        _ => {
            let (expected, actual) = (expected.type_name(), actual.type_name());
            return Ok(Some(Difference::Type { expected, actual }));
        }
    };
    if is_equal {
        return Ok(None);
    }
    Ok(Some(Difference::Value {
        expected: one_line(expected)?,
        actual: one_line(actual)?,
    }))
}

fn one_line(value: &Value) -> Result<String, PrintError> {
    let mut out = String::new();
    text::write_value(&mut out, value, DEFAULT_MAX_ELEMENTS)?;
    Ok(out.trim_end().replace('\n', " "))
}

fn compare_tensors(
    expected: &Tensor,
    actual: &Tensor,
    tolerance: &Tolerance,
) -> Result<Option<Difference>, PrintError> {
    text::check_printable(expected)?;
    text::check_printable(actual)?;
    let element_type = expected.element_type();
    if element_type != actual.element_type() || expected.shape() != actual.shape() {
        let (expected, actual) = (expected.clone(), actual.clone());
        return Ok(Some(Difference::Metadata { expected, actual }));
    }
    let width = element_type.byte_count();
    let (expected_bytes, actual_bytes) = (expected.to_bytes(), actual.to_bytes());
    let absolute = tolerance.absolute(element_type);
    let mut pairs = expected_bytes
        .chunks_exact(width)
        .zip(actual_bytes.chunks_exact(width));
    let differing = pairs.position(|(expected, actual)| {
        if expected == actual {
            return false;
        }
        let floats = (to_f64(element_type, expected), to_f64(element_type, actual));
        match (absolute, floats) {
            (Some(absolute), (Some(expected), Some(actual))) => {
                !tolerance.allows(absolute, expected, actual)
            }
            _ => true,
        }
    });
    Ok(differing.map(|index| Difference::Element {
        index,
        expected: expected.clone(),
        actual: actual.clone(),
    }))
}

/// Returns the value of an element of a float type that has a tolerance.
fn to_f64(element_type: ElementType, bytes: &[u8]) -> Option<f64> {
    Some(match (element_type, bytes) {
        (ElementType::F16, &[a, b]) => half::f16::from_le_bytes([a, b]).to_f64(),
        (ElementType::BF16, &[a, b]) => half::bf16::from_le_bytes([a, b]).to_f64(),
        (ElementType::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).into(),
        (ElementType::F64, bytes) => f64::from_le_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_tensor;

    const EXACT: Tolerance = Tolerance {
        exact: true,
        f16: 0.0,
        bf16: 0.0,
        f32: 0.0,
        f64: 0.0,
        relative: 0.0,
    };

    fn value(text: &str) -> Value {
        parse_tensor(text).unwrap().into()
    }

    fn difference(expected: impl Into<Value>, actual: impl Into<Value>) -> Option<String> {
        let difference = compare(&expected.into(), &actual.into(), &Tolerance::default()).unwrap();
        difference.map(|difference| difference.to_string())
    }

    #[track_caller]
    fn check_agree(expected: &str, actual: &str) {
        assert_eq!(difference(value(expected), value(actual)), None);
    }

    #[track_caller]
    fn check_differ(expected: &str, actual: &str, index: usize) {
        let text = difference(value(expected), value(actual)).unwrap();
        assert!(
            text.starts_with(&format!("element at index {index} ")),
            "{text}"
        );
    }

    #[test]
    fn a_differing_element_is_reported_as_the_tools_report_it() {
        assert_eq!(
            difference(value("4xf32=1 2 3 5"), value("4xf32=1 2 3 4")).unwrap(),
            "element at index 3 (4) does not match the expected (5); expected that the view is equal to \
             contents of a view of 4xf32\n  expected:\n4xf32=1 2 3 5\n  actual:\n4xf32=1 2 3 4"
        );
        assert_eq!(
            difference(value("2x2xf32=1"), value("4xi32=1 2 3 4")).unwrap(),
            "metadata is 4xi32; expected that the view matches 2x2xf32; expected that the view is equal to \
             contents of a view of 2x2xf32\n  expected:\n2x2xf32=[1 1][1 1]\n  actual:\n4xi32=1 2 3 4"
        );
        let text = difference(value("2xi1=00"), value("2xi1=01")).unwrap();
        assert!(text.starts_with("element at index 0 (01) does not match the expected (00);"));
    }

    #[test]
    fn floats_agree_within_their_tolerance() {
        check_agree("2xf32=1.0001", "2xf32=1");
        check_differ("2xf32=1.0002", "2xf32=1", 0);
        check_agree("2xf16=1.001", "2xf16=1");
        check_differ("2xf16=1.003", "2xf16=1", 0);
        check_agree("2xbf16=1.008", "2xbf16=1");
        check_differ("2xbf16=1.02", "2xbf16=1", 0);
        check_agree("2xf64=1000009", "2xf64=1000000");
        check_differ("2xf64=1000011", "2xf64=1000000", 0);
        check_agree("2xf32=-0", "2xf32=0");
    }

    #[test]
    fn nans_agree_and_infinities_only_with_themselves() {
        check_agree("2xf32=-nan inf", "2xf32=nan inf");
        check_differ("2xf32=1 -inf", "2xf32=1 inf", 1);
        check_differ("2xf32=inf -inf", "2xf32=1e30 -inf", 0);
        check_differ("1xf32=nan", "1xf32=0", 0);
    }

    #[test]
    fn other_elements_are_compared_exactly() {
        check_differ("2xf8E5M2=-0", "2xf8E5M2=0", 0);
        check_differ("2xcf64=0000803F00000041", "2xcf64=0000803F00000040", 0);
        check_differ("2xi32=1 2", "2xi32=1 3", 1);
        check_agree("0xi32=", "0xi32=");
    }

    #[test]
    fn exact_comparison_sees_the_sign_of_zero() {
        let differs =
            |expected: Value, actual: Value| compare(&expected, &actual, &EXACT).unwrap().is_some();
        assert!(differs(value("1xf32=-0"), value("1xf32=0")));
        assert!(differs(value("1xf32=-nan"), value("1xf32=nan")));
        assert!(differs(0f32.into(), (-0f32).into()));
        assert!(!differs(1.5f64.into(), 1.5f64.into()));
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        assert_eq!(difference(1, 1), None);
        assert_eq!(difference(1f32, 1.00005f32), None);
        assert_eq!(
            difference(5i64, 2i64).unwrap(),
            "value (i64=2) does not match the expected (i64=5)"
        );
        assert_eq!(
            difference(5, 5i64).unwrap(),
            "variant types mismatch; expected i32 but got i64"
        );
        assert_eq!(
            difference(value("2xf32"), Value::Null).unwrap(),
            "variant types mismatch; expected hal.buffer_view but got empty"
        );
        assert_eq!(difference(Value::Null, 7), None);
    }

    #[test]
    fn elements_that_share_bytes_cannot_be_compared() {
        let packed = value("2xi4=12");
        assert!(compare(&packed, &packed, &EXACT).is_err());
    }
}
