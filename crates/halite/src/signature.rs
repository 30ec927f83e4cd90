//! Signatures: what a function takes and returns, as its program declares it.
#![forbid(unsafe_code)]

use vm_hal_inline::NumericalType;

use crate::{ElementType, Tensor};

/// The arguments and results of a function, read from its declaration.
///
/// Compilers store the declaration as text, for example
/// `sync func @mul(%input0: tensor<4xf32>) -> (%output0: tensor<4xf32>)`. Tensors given to a function are compared with
/// it, where it says something of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// What the function takes, in order.
    pub inputs: Vec<Declared>,
    /// What it returns, in order.
    pub outputs: Vec<Declared>,
}

/// An argument or a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its name without the `%`; empty when it has none.
    pub name: String,
    /// Its type, for example `tensor<?x4xf32>` or `i32`.
    pub type_name: String,
}

impl Signature {
    /// Reads a declaration, or returns `None` when the text is not one.
    #[must_use]
    pub fn parse(declaration: &str) -> Option<Self> {
        let (_, rest) = declaration.split_once('@')?;
        let rest = &rest[rest.find('(')?..];
        let (inputs, rest) = split_parentheses(rest)?;
        let rest = rest.trim_start().strip_prefix("->")?.trim_start();
        let outputs = match split_parentheses(rest) {
            Some((outputs, _)) => outputs,
            None => rest,
        };
        Some(Self {
            inputs: parse_list(inputs),
            outputs: parse_list(outputs),
        })
    }
}

impl Declared {
    /// Returns an item of `--input=` that fits the type, with `...` for its data.
    #[must_use]
    pub fn example(&self) -> String {
        match self.type_name.as_str() {
            "f32" | "f64" => "1.5".into(),
            "index" => "1".into(),
            name if name.starts_with('i') => "1".into(),
            name => match name
                .strip_prefix("tensor<")
                .and_then(|rest| rest.strip_suffix('>'))
            {
                // An encoding may follow the type.
                Some(tensor) => {
                    format!("{}=...", tensor.split(',').next().unwrap_or(tensor).trim())
                }
                None => "...".into(),
            },
        }
    }
}

/// A declared tensor: what [`Declared::type_name`] says of element type and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeclaredTensor {
    element_type: ElementType,
    /// The dimensions; `None` is one of any size.
    shape: Vec<Option<usize>>,
}

impl DeclaredTensor {
    /// Reads `tensor<?x4xf32>`, or returns `None` when the text is not a tensor of a known element type.
    pub(crate) fn parse(type_name: &str) -> Option<Self> {
        let inner = type_name.strip_prefix("tensor<")?.strip_suffix('>')?;
        // An encoding may follow the type.
        let mut rest = inner.split(',').next().unwrap_or(inner).trim();
        let mut shape = Vec::new();
        while rest.starts_with(|first: char| first == '?' || first.is_ascii_digit()) {
            let (dimension, after) = rest.split_once('x')?;
            shape.push(match dimension {
                "?" => None,
                number => Some(number.parse().ok()?),
            });
            rest = after;
        }
        Some(Self {
            element_type: rest.parse().ok()?,
            shape,
        })
    }

    /// Returns whether a tensor fits. Integers of one width are the same here, whatever is said of their sign: the
    /// program has the last word on those.
    #[inline]
    pub(crate) fn accepts(&self, tensor: &Tensor) -> bool {
        self.has_shape(tensor.shape()) && self.has_elements(tensor.element_type())
    }

    #[inline]
    fn has_shape(&self, shape: &[usize]) -> bool {
        let mut sizes = self.shape.iter().zip(shape);
        self.shape.len() == shape.len()
            && sizes.all(|(declared, size)| declared.is_none_or(|declared| declared == *size))
    }

    #[inline]
    fn has_elements(&self, element_type: ElementType) -> bool {
        self.element_type == element_type || class(self.element_type) == class(element_type)
    }
}

/// Returns what distinguishes an element type beyond the sign of integers.
#[inline(never)]
fn class(element_type: ElementType) -> (NumericalType, usize) {
    let numerical_type = element_type.numerical_type();
    let bits = element_type.bit_count();
    match numerical_type.is_integer() || numerical_type == NumericalType::OPAQUE {
        true => (NumericalType::INTEGER, bits),
        false => (numerical_type, bits),
    }
}

/// Splits `(a, (b)) rest` into what the first parentheses hold and the rest.
fn split_parentheses(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('(')?;
    let mut depth = 1usize;
    for (offset, character) in inner.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&inner[..offset], &inner[offset + 1..]));
        }
    }
    None
}

/// Reads `%name: type, %name: type {attributes}`; commas in brackets do not separate.
fn parse_list(text: &str) -> Vec<Declared> {
    let mut items = Vec::new();
    let mut depth = 0usize;
    let mut start = 0;
    let bytes = text.as_bytes();
    for (offset, byte) in text.bytes().enumerate() {
        let is_arrow = byte == b'>' && offset > 0 && bytes[offset - 1] == b'-';
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' if !is_arrow => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                items.push(&text[start..offset]);
                start = offset + 1;
            }
            _ => {}
        }
    }
    items.push(&text[start..]);
    items.into_iter().filter_map(parse_declared).collect()
}

fn parse_declared(text: &str) -> Option<Declared> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let named = text.strip_prefix('%').and_then(|rest| rest.split_once(':'));
    let (name, type_name) = named.unwrap_or(("", text));
    let type_name = type_name.split(" {").next().unwrap_or(type_name);
    Some(Declared {
        name: name.trim().into(),
        type_name: type_name.trim().into(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn types(list: &[Declared]) -> Vec<&str> {
        list.iter()
            .map(|declared| declared.type_name.as_str())
            .collect()
    }

    #[test]
    fn a_declaration_names_inputs_and_outputs() {
        let signature = Signature::parse(
            "sync func @tup(%input0: tensor<3xf32>, %input1: i32, %input2: !util.list<?>) -> \
             (%output0: tensor<?x3xf32, #enc<a, b>>, %output1: !hal.buffer_view)",
        )
        .unwrap();
        assert_eq!(
            types(&signature.inputs),
            ["tensor<3xf32>", "i32", "!util.list<?>"]
        );
        assert_eq!(
            types(&signature.outputs),
            ["tensor<?x3xf32, #enc<a, b>>", "!hal.buffer_view"]
        );
        assert_eq!(signature.inputs[1].name, "input1");
    }

    #[test]
    fn no_inputs_and_no_outputs_are_empty_lists() {
        assert_eq!(
            Signature::parse("sync func @n() -> ()"),
            Some(Signature::default())
        );
        assert_eq!(Signature::parse("something else"), None);
        assert_eq!(Signature::parse("sync func @n("), None);
    }

    #[test]
    fn attributes_are_no_part_of_a_type() {
        let signature = Signature::parse(
            "sync func @f(%input0: tensor<4xf32> {iree.abi.output = 0 : index}) -> tensor<4xf32>",
        )
        .unwrap();
        assert_eq!(types(&signature.inputs), ["tensor<4xf32>"]);
        assert_eq!(types(&signature.outputs), ["tensor<4xf32>"]);
    }

    #[test]
    fn examples_fit_the_types() {
        let example = |type_name: &str| {
            Declared {
                name: String::new(),
                type_name: type_name.into(),
            }
            .example()
        };
        assert_eq!(example("tensor<?x4xf32>"), "?x4xf32=...");
        assert_eq!(example("tensor<f32, #enc>"), "f32=...");
        assert_eq!(example("i64"), "1");
        assert_eq!(example("f32"), "1.5");
        assert_eq!(example("!hal.buffer_view"), "...");
    }

    #[track_caller]
    fn fits(declared: &str, element_type: ElementType, shape: &[usize]) -> bool {
        let tensor = Tensor::zeros(element_type, shape).unwrap();
        DeclaredTensor::parse(declared).unwrap().accepts(&tensor)
    }

    #[test]
    fn a_declared_tensor_fits_its_shapes_and_elements() {
        assert!(fits("tensor<?x4xf32>", ElementType::F32, &[9, 4]));
        assert!(!fits("tensor<?x4xf32>", ElementType::F32, &[4, 9]));
        assert!(!fits("tensor<?x4xf32>", ElementType::F32, &[4]));
        assert!(!fits("tensor<?x4xf32>", ElementType::F64, &[9, 4]));
        assert!(!fits("tensor<4xf16>", ElementType::BF16, &[4]));
        assert!(fits("tensor<bf16, #enc>", ElementType::BF16, &[]));
        assert!(!fits("tensor<bf16>", ElementType::BF16, &[1]));
        assert!(fits("tensor<0xi8>", ElementType::I8, &[0]));
    }

    #[test]
    fn the_sign_of_integers_is_left_to_the_program() {
        for element_type in [ElementType::I8, ElementType::UI8, ElementType::BOOL_8] {
            assert!(fits("tensor<2xi8>", element_type, &[2]));
            assert!(fits("tensor<2xi1>", element_type, &[2]));
        }
        assert!(!fits("tensor<2xi8>", ElementType::I16, &[2]));
        assert!(!fits("tensor<2xi8>", ElementType::F8E5M2, &[2]));
    }

    #[test]
    fn what_is_no_tensor_of_a_known_type_declares_none() {
        for text in [
            "i32",
            "!hal.buffer_view",
            "tensor<4x!t>",
            "tensor<4",
            "tensor<99999999999999999999xf32>",
        ] {
            assert_eq!(DeclaredTensor::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_declares_a_tensor_or_nothing(text in "[\\PC]{0,20}|tensor<[0-9?xif, é>-]{0,20}>") {
            let _ = DeclaredTensor::parse(&text);
        }

        #[test]
        fn any_text_gives_a_signature_or_nothing(text in "[\\PC]{0,40}|(sync func )?@f[(<>){}%:, aé>-]{0,40}") {
            let _ = Signature::parse(&text);
        }
    }
}
