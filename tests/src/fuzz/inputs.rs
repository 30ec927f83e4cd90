//! What a user gives a program: text and arrays. What was read is written and read again.

use super::Outcome;
use hal_plugin::PluginSpec;
use halite::text::{Inputs, Parameter, parse_tensor, write_tensor};
use halite::{Tensor, npy};
use vm::Atom;

use crate::memory::with_largest_block;

/// The largest block that text gets: a short text may say a large tensor, `4000x4000xf32=1`.
const LARGEST_BLOCK: usize = 1 << 20;

/// Items of `--input=`, one on each line, and plugin specifications. Items that name files are left out: they would
/// read whatever file the input names.
pub(super) fn input_text(input: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(input) else {
        return Outcome::Refused;
    };
    let items: Vec<&str> = text.lines().collect();
    let mut outcome = Outcome::Refused;
    for item in &items {
        let parsed = with_largest_block(LARGEST_BLOCK, || parse_tensor(item));
        if let Ok(tensor) = parsed {
            outcome = Outcome::Taken;
            check_printed(&tensor);
        }
    }
    with_largest_block(LARGEST_BLOCK, || {
        for item in &items {
            if let Ok(spec) = PluginSpec::parse(item) {
                let _ = spec.parameters().count();
            }
        }
        if items.iter().any(|item| names_file(item)) {
            return outcome;
        }
        let parameters: Vec<Parameter<'_>> = [
            (Atom::I32, Some("i1")),
            (Atom::I32, Some("i8")),
            (Atom::I32, None),
            (Atom::I64, Some("index")),
            (Atom::F32, Some("f32")),
            (Atom::F64, None),
            (Atom::Ref, Some("tensor<4xf32>")),
            (Atom::Ref, None),
        ]
        .map(|(atom, declared_type)| Parameter {
            atom,
            declared_type,
        })
        .into();
        for first in 0..parameters.len() {
            let parsed = Inputs::new().parse(&items, &parameters[first..]);
            if let Err(error) = parsed {
                assert_ne!(error.status_code(), vm::StatusCode::OK);
                let _ = error.hint();
            }
        }
        outcome
    })
}

/// Tells whether an item may name a file.
fn names_file(item: &str) -> bool {
    item.contains(['@', '+', '*'])
}

/// Prints a tensor and reads it again: the same, as far as text can say it.
fn check_printed(tensor: &Tensor) {
    let mut text = String::new();
    if tensor.element_count() > 256 || write_tensor(&mut text, tensor, 256).is_err() {
        return;
    }
    let Ok(again) = parse_tensor(&text) else {
        // Text has no spelling for some types of elements that are read.
        return;
    };
    assert_eq!(again.element_type(), tensor.element_type(), "{text}");
    assert_eq!(again.shape(), tensor.shape(), "{text}");
    let mut third = String::new();
    write_tensor(&mut third, &again, 256).unwrap();
    let mut fourth = String::new();
    if let Ok(last) = parse_tensor(&third) {
        write_tensor(&mut fourth, &last, 256).unwrap();
        assert_eq!(third, fourth);
    }
}

/// All arrays of a stream, written and read again.
pub(super) fn npy(input: &[u8]) -> Outcome {
    let mut stream = input;
    let mut outcome = Outcome::Refused;
    while !stream.is_empty() {
        let before = stream.len();
        let tensor = match npy::read(&mut stream) {
            Ok(tensor) => tensor,
            Err(error) => {
                assert_ne!(error.status_code(), vm::StatusCode::OK);
                return outcome;
            }
        };
        outcome = Outcome::Taken;
        assert!(stream.len() < before, "nothing was read");
        let mut bytes = Vec::new();
        if npy::write(&mut bytes, &tensor).is_ok() {
            let again = npy::read(&mut &bytes[..]).unwrap();
            assert_eq!(again.element_type(), tensor.element_type());
            assert_eq!(again.shape(), tensor.shape());
            assert_eq!(again.to_bytes(), tensor.to_bytes());
        }
    }
    outcome
}

pub(super) fn npy_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "4xf32=1 2 3 4",
        "2x2xi8=1 2 3 4",
        "f64=1",
        "0xi32",
        "2xi1=1 0",
        "3xui16=1 2 3",
        "1xf16=5",
        "2xcomplex<f32>=1 2",
    ];
    let tensors: Vec<Tensor> = texts
        .iter()
        .filter_map(|text| parse_tensor(text).ok())
        .collect();
    let write = |tensor: &Tensor| {
        let mut bytes = Vec::new();
        npy::write(&mut bytes, tensor).unwrap();
        bytes
    };
    let mut seeds: Vec<Vec<u8>> = tensors.iter().map(write).collect();
    seeds.push(seeds.concat());
    seeds
}

pub(super) fn input_text_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "4xf32=1 2 3 4",
        "2x2xi32=[1 2][3 4]",
        "2x2xf64=1,2,3,4",
        "f32=1.5e3\n-inf\nnan\n0x7f",
        "1\n-128\n2048\n4\n1.5\n2.5\n4xf32=1\n&2x2xi8",
        "(null)\n(ignored)",
        "4xbf16=1\n4xf8E4M3FN=0.5\n4xui8=0xFF",
        "2xi1=true false",
        "4294967296x4294967296xi8",
        "0x18446744073709551615xf32",
        "4xi0\n4xf7\n4x*8\n0xf32=1",
        "./kernels.so?tile=8&x=y",
        "embedded:plugin.so",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}
