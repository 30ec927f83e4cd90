//! Argument blocks and the calling conventions that lay them out.

use super::Outcome;
use vm::{ArgumentBlock, ArgumentWriter, Atom, CallingConvention, Item, Ref, Value};
use vm_hal_loader::{BindingArgument, DispatchAbi, MAX_BINDINGS, parse_dispatch};

/// The words of an input; what is left over is dropped.
fn words(input: &[u8]) -> Vec<u32> {
    let (words, _) = input.as_chunks();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// The block of a dispatch, in both versions, read by its own parser and by the general one.
pub(super) fn dispatch_arguments(input: &[u8]) -> Outcome {
    let words = words(input);
    let mut outcome = Outcome::Refused;
    for abi in [DispatchAbi::Ordinal, DispatchAbi::FunctionId] {
        let general = read_dispatch(&words, abi);
        match parse_dispatch(&words, abi) {
            Ok(arguments) => {
                outcome = Outcome::Taken;
                let bindings: Vec<BindingArgument> = arguments.bindings().collect();
                assert!(bindings.len() <= MAX_BINDINGS);
                let own = (
                    arguments.executable,
                    arguments.function,
                    arguments.workgroup_count,
                    arguments.constants.to_vec(),
                    bindings,
                );
                // The parser takes a padded end that the general reader does not know.
                if let Some(general) = general {
                    assert_eq!(own, general);
                }
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                if let Some((.., bindings)) = general {
                    assert!(bindings.len() > MAX_BINDINGS, "{error}");
                }
            }
        }
    }
    outcome
}

type Dispatch = (u32, u64, [u32; 3], Vec<u32>, Vec<BindingArgument>);

/// Reads a block by its calling convention alone.
fn read_dispatch(words: &[u32], abi: DispatchAbi) -> Option<Dispatch> {
    let block = ArgumentBlock::new(words, &[]);
    let mut reader = block.reader();
    let word = |at: usize| words.get(at).copied();
    let executable = word(0)?;
    reader.words(4).ok()?;
    let function = match abi {
        DispatchAbi::Ordinal => i64::from(reader.i32().ok()?),
        DispatchAbi::FunctionId => reader.i64().ok()?,
    };
    let mut count = [0; 3];
    for dimension in &mut count {
        *dimension = reader.i32().ok()?.cast_unsigned();
    }
    let constants = reader.span(&[Atom::I32]).ok()?;
    let constants = reader.words(constants).ok()?.to_vec();
    let bindings = reader.span(&[Atom::Ref, Atom::I64, Atom::I64]).ok()?;
    let mut read = Vec::new();
    for _ in 0..bindings {
        let buffer = word(reader.offset())?;
        reader.words(4).ok()?;
        read.push(BindingArgument {
            buffer,
            offset: reader.i64().ok()?.cast_unsigned(),
            length: reader.i64().ok()?.cast_unsigned(),
        });
    }
    reader.finish().ok()?;
    Some((executable, function.cast_unsigned(), count, constants, read))
}

/// A block of any words, read by any calling convention, and written again.
///
/// ```text
/// input   convention .. 0x0A words ..
/// ```
pub(super) fn argument_block(input: &[u8]) -> Outcome {
    let end = input.iter().position(|&byte| byte == b'\n');
    let (text, rest) = input.split_at(end.unwrap_or(input.len()));
    let convention = std::str::from_utf8(text).ok();
    let Some(convention) = convention.and_then(|text| CallingConvention::parse(text).ok()) else {
        return Outcome::Refused;
    };
    let words = words(rest.get(1..).unwrap_or_default());
    let refs = [Ref::Null, Ref::Null];
    let Some((lengths, values)) = read(&convention, ArgumentBlock::new(&words, &refs)) else {
        return Outcome::Refused;
    };
    let mut writer = ArgumentWriter::new();
    writer
        .push_arguments(&convention, &lengths, values.clone())
        .unwrap();
    let (again, written) = read(&convention, writer.block()).unwrap();
    assert_eq!(again, lengths);
    assert_eq!(written.len(), values.len());
    assert!(written.iter().zip(&values).all(|(a, b)| same(a, b)));
    // As long as what was read, but for the padding of an empty end.
    assert!(writer.block().words().len().abs_diff(words.len()) <= 1);
    Outcome::Taken
}

fn read(
    convention: &CallingConvention,
    block: ArgumentBlock<'_>,
) -> Option<(Vec<usize>, Vec<Value>)> {
    let mut reader = block.reader();
    let mut values = Vec::new();
    let mut lengths = Vec::new();
    let mut next = |reader: &mut vm::ArgumentReader<'_>, atom: Atom| {
        values.push(match atom {
            Atom::I32 => Value::I32(reader.i32().ok()?),
            Atom::I64 => Value::I64(reader.i64().ok()?),
            Atom::F32 => Value::F32(reader.f32().ok()?),
            Atom::F64 => Value::F64(reader.f64().ok()?),
            Atom::Ref => Value::Ref(reader.reference().ok()?.clone()),
        });
        Some(())
    };
    for item in convention.arguments() {
        match item {
            Item::Atom(atom) => next(&mut reader, *atom)?,
            Item::Span(atoms) => {
                let count = reader.span(atoms).ok()?;
                lengths.push(count);
                for _ in 0..count {
                    atoms.iter().try_for_each(|atom| next(&mut reader, *atom))?;
                }
            }
        }
    }
    reader.finish().ok()?;
    Some((lengths, values))
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::I32(a), Value::I32(b)) => a == b,
        (Value::I64(a), Value::I64(b)) => a == b,
        (Value::F32(a), Value::F32(b)) => a.to_bits() == b.to_bits(),
        (Value::F64(a), Value::F64(b)) => a.to_bits() == b.to_bits(),
        (Value::Ref(a), Value::Ref(b)) => a.same(b),
        _ => false,
    }
}

/// The strings that a module carries: calling conventions and declarations.
pub(super) fn convention(input: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(input) else {
        return Outcome::Refused;
    };
    let parsed = CallingConvention::parse(text);
    match &parsed {
        Ok(convention) => {
            assert_eq!(convention.text(), text);
            let letters = convention.arguments().iter().map(|item| match item {
                Item::Atom(_) => 1,
                Item::Span(atoms) => {
                    assert!(!atoms.is_empty());
                    atoms.len() + 2
                }
            });
            let letters: usize = letters.sum();
            assert!(letters + convention.results().len() <= text.len());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Some(signature) = halite::Signature::parse(text) {
        for declared in signature.inputs.iter().chain(&signature.outputs) {
            let _ = declared.example();
        }
    }
    match parsed {
        Ok(_) => Outcome::Taken,
        Err(_) => Outcome::Refused,
    }
}

pub(super) fn dispatch_seeds() -> Vec<Vec<u8>> {
    let binding = |buffer| [buffer, 0, 0, 0, 16, 0, 64, 0];
    let block = |fixed: &[u32], constants: &[u32], bindings: u32| {
        let mut words = fixed.to_vec();
        words.push(u32::try_from(constants.len()).unwrap());
        words.extend(constants);
        words.push(bindings);
        if bindings > 0 && words.len() % 2 == 1 {
            words.push(0);
        }
        words.extend((1..=bindings).flat_map(binding));
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    };
    let ordinal = [0, 0, 0, 0, 1, 2, 3, 4];
    let id = [0, 0, 0, 0, 1, 0, 2, 3, 4];
    let mut seeds = Vec::new();
    for fixed in [&ordinal[..], &id] {
        for (constants, bindings) in [(0, 0), (1, 1), (2, 3), (3, 33), (0, 65)] {
            seeds.push(block(fixed, &vec![7; constants], bindings));
        }
    }
    seeds
}

pub(super) fn block_seeds() -> Vec<Vec<u8>> {
    let dispatch = dispatch_seeds()
        .into_iter()
        .enumerate()
        .map(|(index, block)| {
            let abi = if index < 5 {
                DispatchAbi::Ordinal
            } else {
                DispatchAbi::FunctionId
            };
            [abi.convention().as_bytes(), b"\n", &block].concat()
        });
    let others = ["0v_v", "0iI_r", "0iiI_F", "0iCrD_v", "0CiDCfFD_", ""];
    let others = others.map(|text| [text.as_bytes(), b"\n", &[1; 64]].concat());
    dispatch.chain(others).collect()
}

pub(super) fn convention_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "0rIiiiCiDCrIID_v",
        "0riiiiCiDCrIID_v",
        "0v_v",
        "0CiDCrIID_iIfFr",
        "",
        "sync func @mul(%input0: tensor<4xf32>, %input1: tensor<?x4xbf16, #e>) -> (%output0: tensor<4xf32>)",
        "async func @f() -> i32",
        "func @g(%a: i1 {x = (1)}) -> (f32, f64)",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}
