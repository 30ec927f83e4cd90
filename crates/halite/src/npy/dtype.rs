//! Element types and NumPy's names of them.
#![forbid(unsafe_code)]

use crate::{ElementType, NumericalType};

/// Returns the element type of a dtype such as `<f4`, or `None` when there is none.
pub(super) fn element_type(descr: &str) -> Option<ElementType> {
    let mut characters = descr.chars();
    let order = characters.next()?;
    let kind = characters.next()?;
    let digits = characters.as_str();
    if digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size: u32 = digits.parse().ok()?;
    let known = match kind {
        'b' => size == 1,
        'i' | 'u' => matches!(size, 1 | 2 | 4 | 8),
        'f' => matches!(size, 2 | 4 | 8 | 16),
        'c' => matches!(size, 8 | 16),
        // A bit count is at most 255.
        'V' => (1..32).contains(&size),
        _ => false,
    };
    // Single bytes and raw bytes have no order; NumPy writes either for the latter.
    let ordered = match order {
        '<' => true,
        '|' => size == 1 || kind == 'V',
        _ => false,
    };
    if !known || !ordered {
        return None;
    }
    let class = match kind {
        'b' => NumericalType::BOOLEAN,
        'i' => NumericalType::SIGNED_INTEGER,
        'u' => NumericalType::UNSIGNED_INTEGER,
        'f' => NumericalType::FLOAT,
        'c' => NumericalType::COMPLEX,
        _ => NumericalType::OPAQUE,
    };
    Some(ElementType::from_raw(
        (u32::from(class.value()) << 24) | (size * 8),
    ))
}

/// Returns the dtype of an element type, or `None` when there is none.
pub(super) fn descr(element_type: ElementType) -> Option<String> {
    let size = element_type.byte_count();
    let kind = match element_type.numerical_type() {
        NumericalType::BOOLEAN => 'b',
        NumericalType::INTEGER | NumericalType::SIGNED_INTEGER => 'i',
        NumericalType::UNSIGNED_INTEGER => 'u',
        NumericalType::FLOAT => 'f',
        NumericalType::COMPLEX => 'c',
        NumericalType::OPAQUE => 'V',
        _ => return None,
    };
    let order = if size == 1 || kind == 'V' { '|' } else { '<' };
    let descr = format!("{order}{kind}{size}");
    // Only what is read back is written: no odd widths, no elements that share bytes.
    let whole = element_type.bit_count().is_multiple_of(8);
    (whole && self::element_type(&descr).is_some()).then_some(descr)
}
