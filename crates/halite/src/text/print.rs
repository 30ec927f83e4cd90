//! Printing: values and tensors as `iree-run-module` writes them, byte for byte.
#![forbid(unsafe_code)]

use core::fmt::{self, Write};

use vm::{Element, List, StatusCode};

use super::element::{LONGEST_ELEMENT, Spelling};
use super::format::{Case, General};
use crate::{ElementType, Tensor, Value};

/// Most elements of a tensor that the tools print unless told otherwise.
pub const DEFAULT_MAX_ELEMENTS: usize = 1024;

/// Most slices that a tensor without elements prints: its shape alone could ask for any number.
const MAX_EMPTY_SLICES: usize = 1 << 20;

/// Most lists inside lists, and most elements of all lists, that one value prints: lists may hold themselves.
const MAX_LIST_DEPTH: usize = 64;
const MAX_LIST_ELEMENTS: usize = 1 << 20;

/// Why a value cannot be printed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrintError {
    /// The writer failed.
    #[error("the text cannot be written")]
    Write(#[from] fmt::Error),
    /// Elements share bytes, which the text format has no spelling for.
    #[error("elements of type {element_type} share bytes and have no text form")]
    Packed {
        /// The type of the elements.
        element_type: ElementType,
    },
    /// Lists are nested too deeply or hold themselves.
    #[error(
        "lists are nested over {MAX_LIST_DEPTH} levels deep or have over {MAX_LIST_ELEMENTS} elements"
    )]
    List,
}

impl PrintError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::Write(_) => StatusCode::UNKNOWN,
            Self::Packed { .. } => StatusCode::OUT_OF_RANGE,
            Self::List => StatusCode::RESOURCE_EXHAUSTED,
        }
    }
}

/// Writes a value with the line breaks that the tools put after it, for example `i32=5` or `hal.buffer_view`, a line
/// break and the tensor. At most `max_elements` elements of each tensor are written.
///
/// # Errors
/// Fails when `out` does, when a tensor's elements share bytes, or when lists hold themselves.
pub fn write_value(
    out: &mut dyn Write,
    value: &Value,
    max_elements: usize,
) -> Result<(), PrintError> {
    let mut budget = MAX_LIST_ELEMENTS;
    write_nested(out, value, max_elements, 0, &mut budget)
}

fn write_nested(
    out: &mut dyn Write,
    value: &Value,
    max_elements: usize,
    depth: usize,
    budget: &mut usize,
) -> Result<(), PrintError> {
    match value {
        Value::I32(value) => writeln!(out, "i32={value}")?,
        Value::I64(value) => writeln!(out, "i64={value}")?,
        Value::F32(value) => writeln!(out, "f32={}", General((*value).into(), Case::Lower))?,
        Value::F64(value) => writeln!(out, "f64={}", General(*value, Case::Lower))?,
        Value::Null => writeln!(out, "(null)")?,
        Value::Tensor(tensor) => {
            check_printable(tensor)?;
            writeln!(out, "hal.buffer_view")?;
            write_tensor(out, tensor, max_elements)?;
            writeln!(out)?;
        }
        Value::Storage(_) | Value::Buffer(_) | Value::Opaque(_) => {
            writeln!(out, "{}\n(no printer)", value.type_name())?;
        }
        Value::List(list) => {
            writeln!(out, "vm.list")?;
            write_list(out, list, max_elements, depth, budget)?;
            writeln!(out)?;
        }
    }
    Ok(())
}

fn write_list(
    out: &mut dyn Write,
    list: &List,
    max_elements: usize,
    depth: usize,
    budget: &mut usize,
) -> Result<(), PrintError> {
    if depth >= MAX_LIST_DEPTH {
        return Err(PrintError::List);
    }
    let mut index = 0;
    // The list may change while it is printed; the first index that is gone ends it.
    while let Ok(element) = list.get(index) {
        *budget = budget.checked_sub(1).ok_or(PrintError::List)?;
        write!(out, "child_list[{index}]: ")?;
        match element {
            Element::Empty => writeln!(out, "(null)")?,
            Element::I8(value) => writeln!(out, "i8={value}")?,
            Element::I16(value) => writeln!(out, "i16={value}")?,
            Element::Value(value) => {
                write_nested(out, &Value::from_vm(value), max_elements, depth + 1, budget)?;
            }
        }
        index += 1;
    }
    Ok(())
}

/// Checks that the elements of a tensor have a text form.
pub(crate) fn check_printable(tensor: &Tensor) -> Result<(), PrintError> {
    let element_type = tensor.element_type();
    match tensor
        .element_count()
        .checked_mul(element_type.byte_count())
    {
        Some(byte_length) if byte_length <= tensor.byte_length() => Ok(()),
        _ => Err(PrintError::Packed { element_type }),
    }
}

/// Writes a tensor as `SHAPExTYPE=ELEMENTS`, without a line break, and at most `max_elements` of its elements.
///
/// # Errors
/// Fails when `out` does or when the elements share bytes.
pub fn write_tensor(
    out: &mut dyn Write,
    tensor: &Tensor,
    max_elements: usize,
) -> Result<(), PrintError> {
    check_printable(tensor)?;
    write_metadata(out, tensor)?;
    out.write_char('=')?;
    let mut printer = Printer {
        out,
        tensor,
        spelling: Spelling::of(tensor.element_type()),
        position: 0,
        elements_left: max_elements,
        slices_left: if tensor.element_count() == 0 {
            MAX_EMPTY_SLICES
        } else {
            usize::MAX
        },
    };
    Ok(printer.slice(tensor.shape())?)
}

/// Writes the shape and the type, `2x3xf32`.
pub(crate) fn write_metadata(out: &mut dyn Write, tensor: &Tensor) -> fmt::Result {
    for dimension in tensor.shape() {
        write!(out, "{dimension}x")?;
    }
    write!(out, "{}", tensor.element_type())
}

/// Writes the element of a tensor at `index`, counted in row-major order.
///
/// # Errors
/// Fails when `out` does or when the elements share bytes.
///
/// # Panics
/// Panics when the tensor has no such element.
pub fn write_element(out: &mut dyn Write, tensor: &Tensor, index: usize) -> Result<(), PrintError> {
    check_printable(tensor)?;
    assert!(
        index < tensor.element_count(),
        "element {index} of {tensor:?}"
    );
    Ok(write_unchecked(
        out,
        tensor,
        Spelling::of(tensor.element_type()),
        index,
    )?)
}

/// Writes an element of a printable tensor.
fn write_unchecked(
    out: &mut dyn Write,
    tensor: &Tensor,
    spelling: Spelling,
    index: usize,
) -> fmt::Result {
    let mut bytes = [0; LONGEST_ELEMENT];
    let bytes = &mut bytes[..tensor.element_type().byte_count()];
    tensor.read_bytes(index * bytes.len(), bytes);
    spelling.write(out, bytes)
}

struct Printer<'a> {
    out: &'a mut dyn Write,
    tensor: &'a Tensor,
    spelling: Spelling,
    /// Index of the next element.
    position: usize,
    /// Elements that may still be printed.
    elements_left: usize,
    /// Slices that may still be printed.
    slices_left: usize,
}

impl Printer<'_> {
    /// Writes a slice of this shape; the recursion is as deep as a tensor has dimensions.
    fn slice(&mut self, shape: &[usize]) -> fmt::Result {
        let (count, rest) = match shape {
            [] => (1, [].as_slice()),
            [count] => (*count, [].as_slice()),
            [count, rest @ ..] => (*count, rest),
        };
        if rest.is_empty() {
            return self.row(count);
        }
        for _ in 0..count {
            if self.slices_left == 0 {
                return self.out.write_str("...");
            }
            self.slices_left -= 1;
            self.out.write_char('[')?;
            self.slice(rest)?;
            self.out.write_char(']')?;
        }
        Ok(())
    }

    fn row(&mut self, count: usize) -> fmt::Result {
        let printed = count.min(self.elements_left);
        for index in 0..printed {
            if index > 0 {
                self.out.write_char(' ')?;
            }
            write_unchecked(self.out, self.tensor, self.spelling, self.position + index)?;
        }
        if printed < count {
            self.out.write_str("...")?;
        }
        self.position += count;
        self.elements_left -= printed;
        Ok(())
    }
}

impl fmt::Display for Tensor {
    /// Writes the tensor as the tools do, up to [`DEFAULT_MAX_ELEMENTS`] elements; elements that share bytes are left
    /// out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match write_tensor(f, self, DEFAULT_MAX_ELEMENTS) {
            Ok(()) => Ok(()),
            Err(PrintError::Write(error)) => Err(error),
            Err(PrintError::Packed { .. } | PrintError::List) => {
                write_metadata(f, self)?;
                f.write_str("=...")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vm::{Buffer, ElementType as ListElements, Ref, Value as VmValue};

    use super::*;
    use crate::text::parse_tensor;

    #[track_caller]
    fn check_limit(text: &str, max_elements: usize, printed: &str) {
        let mut out = String::new();
        write_tensor(&mut out, &parse_tensor(text).unwrap(), max_elements).unwrap();
        assert_eq!(out, printed);
    }

    #[track_caller]
    fn check(value: impl Into<Value>, printed: &str) {
        let mut out = String::new();
        write_value(&mut out, &value.into(), DEFAULT_MAX_ELEMENTS).unwrap();
        assert_eq!(out, printed);
    }

    #[test]
    fn outer_dimensions_are_bracketed() {
        check_limit("2x3xi32=1 2 3 4 5 6", 99, "2x3xi32=[1 2 3][4 5 6]");
        check_limit(
            "2x2x2xi32=1 2 3 4 5 6 7 8",
            8,
            "2x2x2xi32=[[1 2][3 4]][[5 6][7 8]]",
        );
        check_limit("1x1x1xi32=7", 99, "1x1x1xi32=[[7]]");
        check_limit("f32=96", 99, "f32=96");
        check_limit("2x0xi32", 99, "2x0xi32=[][]");
        check_limit("2x0x3xi32", 99, "2x0x3xi32=[][]");
        check_limit("2x3x0xi32", 99, "2x3x0xi32=[[][][]][[][][]]");
        check_limit("0x3xi32", 99, "0x3xi32=");
    }

    #[test]
    fn elements_past_the_limit_become_dots() {
        let cube = "2x2x2xi32=1 2 3 4 5 6 7 8";
        check_limit(cube, 5, "2x2x2xi32=[[1 2][3 4]][[5...][...]]");
        check_limit(cube, 1, "2x2x2xi32=[[1...][...]][[...][...]]");
        check_limit(cube, 0, "2x2x2xi32=[[...][...]][[...][...]]");
        check_limit("5xi32=1 2 3 4 5", 3, "5xi32=1 2 3...");
        check_limit("5xi32=1 2 3 4 5", 0, "5xi32=...");
        check_limit("i32=1", 0, "i32=...");
    }

    #[test]
    fn values_print_as_the_tools_print_them() {
        check(5, "i32=5\n");
        check(-6i64, "i64=-6\n");
        check(1e10f32, "f32=1e+10\n");
        check(0.1f32 + 0.2f32, "f32=0.3\n");
        check(f64::NEG_INFINITY, "f64=-inf\n");
        check(-f64::NAN, "f64=-nan\n");
        check(Value::Null, "(null)\n");
        check(
            parse_tensor("2xf32=1 2").unwrap(),
            "hal.buffer_view\n2xf32=1 2\n",
        );
        let buffer = Buffer::allocate(4, 0).unwrap();
        check(
            Value::Storage(Arc::clone(&buffer)),
            "hal.buffer\n(no printer)\n",
        );
        check(Value::Buffer(buffer), "vm.buffer\n(no printer)\n");
    }

    #[test]
    fn lists_print_their_children_and_an_empty_line() {
        let bytes = List::new(ListElements::I8, 2).unwrap();
        bytes.resize(2).unwrap();
        bytes.set(0, VmValue::I32(300)).unwrap();
        let list = List::new(ListElements::Variant, 0).unwrap();
        list.push(VmValue::Ref(Ref::List(bytes))).unwrap();
        list.push(VmValue::F32(1.5)).unwrap();
        list.push(VmValue::Ref(parse_tensor("2xf32=1 2").unwrap().to_ref()))
            .unwrap();
        list.push(VmValue::Ref(Ref::Buffer(Buffer::allocate(1, 0).unwrap())))
            .unwrap();
        list.resize(5).unwrap();
        check(
            list,
            "vm.list\nchild_list[0]: vm.list\nchild_list[0]: i8=44\nchild_list[1]: i8=0\n\n\
             child_list[1]: f32=1.5\nchild_list[2]: hal.buffer_view\n2xf32=1 2\n\
             child_list[3]: vm.buffer\n(no printer)\nchild_list[4]: (null)\n\n",
        );
    }

    #[test]
    fn a_list_that_holds_itself_is_an_error() {
        let list = List::new(ListElements::Variant, 0).unwrap();
        list.push(VmValue::Ref(Ref::List(Arc::clone(&list))))
            .unwrap();
        list.push(VmValue::Ref(Ref::List(Arc::clone(&list))))
            .unwrap();
        let mut out = String::new();
        let error = write_value(&mut out, &Value::List(Arc::clone(&list)), 1).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::RESOURCE_EXHAUSTED);
        list.resize(0).unwrap();
    }

    #[test]
    fn elements_that_share_bytes_have_no_text() {
        let tensor = parse_tensor("4xi4=12 34").unwrap();
        let error = write_value(&mut String::new(), &tensor.clone().into(), 9).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
        assert_eq!(tensor.to_string(), "4xi4=...");
        check_limit("i4=01", 9, "i4=01");
        check_limit("4xi7=01", 9, "4xi7=01 01 01 01");
    }
}
