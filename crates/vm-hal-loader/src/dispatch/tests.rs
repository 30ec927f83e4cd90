//! Tests of the parser against the writer of the VM, a plain reader and hostile blocks.

use proptest::prelude::*;
use vm::{ArgumentWriter, Atom, Buffer, CallingConvention, Ref, Value};

use super::*;

const BOTH: [DispatchAbi; 2] = [DispatchAbi::Ordinal, DispatchAbi::FunctionId];

/// Arguments as a caller means them.
#[derive(Clone, Debug, PartialEq)]
struct Meant {
    function: i64,
    workgroup_count: [i32; 3],
    constants: Vec<i32>,
    bindings: Vec<(i64, i64)>,
}

/// Packs with the VM's own writer. Ref 0 is the executable, ref `1 + i` the buffer of binding `i`.
fn pack(meant: &Meant, abi: DispatchAbi) -> ArgumentWriter {
    let buffer = || Value::Ref(Buffer::allocate(1, 0).unwrap().into());
    let function = match abi {
        DispatchAbi::Ordinal => Value::I32(i32::try_from(meant.function).unwrap()),
        DispatchAbi::FunctionId => Value::I64(meant.function),
    };
    let mut values = vec![buffer(), function];
    values.extend(meant.workgroup_count.map(Value::I32));
    values.extend(meant.constants.iter().copied().map(Value::I32));
    for (offset, length) in &meant.bindings {
        values.extend([buffer(), Value::I64(*offset), Value::I64(*length)]);
    }
    let convention = CallingConvention::parse(abi.convention()).unwrap();
    let mut writer = ArgumentWriter::new();
    let spans = [meant.constants.len(), meant.bindings.len()];
    writer.push_arguments(&convention, &spans, values).unwrap();
    writer
}

fn meaning(arguments: &DispatchArguments<'_>) -> Meant {
    assert_eq!(arguments.executable, 0);
    for (index, binding) in (1..).zip(arguments.bindings()) {
        assert_eq!(binding.buffer, index);
    }
    Meant {
        function: arguments.function.cast_signed(),
        workgroup_count: arguments.workgroup_count.map(u32::cast_signed),
        constants: arguments
            .constants
            .iter()
            .map(|word| word.cast_signed())
            .collect(),
        bindings: arguments
            .bindings()
            .map(|binding| (binding.offset.cast_signed(), binding.length.cast_signed()))
            .collect(),
    }
}

fn meant(constant_count: i32, binding_count: i32) -> Meant {
    Meant {
        function: 3,
        workgroup_count: [5, 6, 7],
        constants: (0..constant_count).map(|index| 100 + index).collect(),
        bindings: (0..binding_count)
            .map(|index| (64 * i64::from(index), 1000))
            .collect(),
    }
}

/// The words of a block without bindings whose binding count is `binding_count`.
fn head(abi: DispatchAbi, constants: &[u32], binding_count: u32) -> Vec<u32> {
    let mut words = vec![0; if abi == DispatchAbi::Ordinal { 8 } else { 9 }];
    words.push(u32::try_from(constants.len()).unwrap());
    words.extend(constants);
    words.push(binding_count);
    words
}

#[test]
fn c1_any_number_of_constants_and_bindings_is_read_where_the_writer_put_it() {
    for abi in BOTH {
        for constant_count in 0..10 {
            for binding_count in 0..10 {
                let meant = meant(constant_count, binding_count);
                let packed = pack(&meant, abi);
                let arguments = parse_dispatch(packed.block().words(), abi).unwrap();
                assert_eq!(meaning(&arguments), meant);
            }
        }
    }
}

#[test]
fn c5_the_layout_is_that_of_the_specification_on_every_machine() {
    let constants = [11, 12];
    let binding = [9, 0, 0, 0, 64, 0, 128, 0];
    let ordinal = [&[8, 0, 0, 0, 3, 5, 6, 7, 2][..], &constants, &[1], &binding].concat();
    let id = [
        &[8, 0, 0, 0, 3, 0, 5, 6, 7, 2][..],
        &constants,
        &[1, 0],
        &binding,
    ]
    .concat();
    for (abi, words) in BOTH.into_iter().zip([ordinal, id]) {
        let arguments = parse_dispatch(&words, abi).unwrap();
        assert_eq!(arguments.executable, 8);
        assert_eq!(arguments.function, 3);
        assert_eq!(arguments.workgroup_count, [5, 6, 7]);
        assert_eq!(arguments.constants, constants);
        let bindings: Vec<_> = arguments.bindings().collect();
        assert_eq!(
            bindings,
            [BindingArgument {
                buffer: 9,
                offset: 64,
                length: 128
            }]
        );
    }
}

#[test]
fn c7_empty_and_long_segments_are_read() {
    for abi in BOTH {
        for (constant_count, binding_count) in [(0, 0), (65535, 0), (0, 32), (1, 33), (64, 64)] {
            let meant = meant(constant_count, binding_count);
            let packed = pack(&meant, abi);
            let arguments = parse_dispatch(packed.block().words(), abi).unwrap();
            assert_eq!(meaning(&arguments), meant);
        }
    }
}

#[test]
fn c7_more_than_64_bindings_are_refused() {
    for abi in BOTH {
        for count in [65, 66, 1000] {
            let packed = pack(&meant(1, count), abi);
            assert_eq!(
                parse_dispatch(packed.block().words(), abi),
                Err(DispatchArgumentsError::TooManyBindings {
                    count: usize::try_from(count).unwrap()
                })
            );
        }
    }
}

#[test]
fn c8_offsets_lengths_and_ids_keep_all_their_bits() {
    let extremes = [-1, i64::MIN, i64::MAX, 1 << 32];
    for abi in BOTH {
        let mut meant = meant(1, 0);
        meant.bindings = extremes
            .iter()
            .flat_map(|a| extremes.map(|b| (*a, b)))
            .collect();
        let packed = pack(&meant, abi);
        let arguments = parse_dispatch(packed.block().words(), abi).unwrap();
        assert_eq!(meaning(&arguments), meant);
    }
    for function in extremes {
        let meant = Meant {
            function,
            ..meant(0, 0)
        };
        let packed = pack(&meant, DispatchAbi::FunctionId);
        let arguments = parse_dispatch(packed.block().words(), DispatchAbi::FunctionId).unwrap();
        assert_eq!(arguments.function, function.cast_unsigned());
    }
    let meant = Meant {
        function: -1,
        ..meant(0, 0)
    };
    let packed = pack(&meant, DispatchAbi::Ordinal);
    let arguments = parse_dispatch(packed.block().words(), DispatchAbi::Ordinal).unwrap();
    assert_eq!(arguments.function, u64::MAX);
}

#[test]
fn l6_a_block_that_ends_early_is_refused_at_every_length() {
    for abi in BOTH {
        let packed = pack(&meant(3, 2), abi);
        let words = packed.block().words();
        for length in 0..words.len() {
            assert!(
                matches!(
                    parse_dispatch(&words[..length], abi),
                    Err(DispatchArgumentsError::TooShort { needed, word_count, .. })
                        if word_count == length && needed > length as u64
                ),
                "{length}"
            );
        }
    }
}

#[test]
fn l6_counts_beyond_the_block_are_refused_before_they_are_used() {
    for count in [0x3FFF_FFFF, 0x4000_0000, 0x7FFF_FFFF, 0x8000_0000, u32::MAX] {
        for abi in BOTH {
            let mut words = head(abi, &[], 0);
            let constant_count_at = words.len() - 2;
            words[constant_count_at] = count;
            let needed = constant_count_at as u64 + 1 + u64::from(count) + 1;
            assert_eq!(
                parse_dispatch(&words, abi),
                Err(DispatchArgumentsError::TooShort {
                    convention: abi.convention(),
                    needed,
                    word_count: words.len()
                })
            );
            let words = head(abi, &[1, 2], count);
            let error = parse_dispatch(&words, abi).unwrap_err();
            assert!(
                matches!(error, DispatchArgumentsError::TooShort { .. }),
                "{error}"
            );
        }
    }
}

#[test]
fn a_block_that_goes_on_after_its_arguments_is_refused() {
    for abi in BOTH {
        for (constant_count, binding_count) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let packed = pack(&meant(constant_count, binding_count), abi);
            let mut words = packed.block().words().to_vec();
            // The padding after an empty span at an odd word is part of the block.
            let padding = usize::from(binding_count == 0 && words.len() % 2 == 1);
            words.extend(std::iter::repeat_n(0, padding));
            assert!(parse_dispatch(&words, abi).is_ok());
            for more in 1..20 {
                words.push(0);
                let error = parse_dispatch(&words, abi).unwrap_err();
                assert!(
                    matches!(error, DispatchArgumentsError::TooLong { .. }),
                    "{more}: {error}"
                );
            }
        }
    }
}

#[test]
fn c11_a_block_of_the_other_version_is_refused_or_means_something_else() {
    let meant = meant(0, 3);
    let packed = pack(&meant, DispatchAbi::Ordinal);
    assert!(parse_dispatch(packed.block().words(), DispatchAbi::FunctionId).is_err());
    let packed = pack(&meant, DispatchAbi::FunctionId);
    assert!(parse_dispatch(packed.block().words(), DispatchAbi::Ordinal).is_err());
}

#[test]
fn errors_name_the_convention_and_the_words() {
    let error = parse_dispatch(&[0; 3], DispatchAbi::FunctionId).unwrap_err();
    assert_eq!(
        error.to_string(),
        "argument/result signature mismatch; `0rIiiiCiDCrIID_v` needs at least 10 words here, \
         the block has 3"
    );
    let error = DispatchArgumentsError::TooManyBindings { count: 65 };
    assert_eq!(
        error.to_string(),
        "too many bindings: 65 were passed, the limit is 64"
    );
}

/// Reads value by value, as the calling convention says.
fn oracle(words: &[u32], abi: DispatchAbi) -> vm::Result<Meant> {
    // Any index is a ref to something.
    let block = vm::ArgumentBlock::new(words, &[]);
    let mut reader = block.reader();
    let skip_ref = |reader: &mut vm::ArgumentReader<'_>| {
        let slot = [reader.i64()?, reader.i64()?];
        Ok::<_, vm::Trap>(slot)
    };
    skip_ref(&mut reader)?;
    let function = match abi {
        DispatchAbi::Ordinal => i64::from(reader.i32()?),
        DispatchAbi::FunctionId => reader.i64()?,
    };
    let workgroup_count = [reader.i32()?, reader.i32()?, reader.i32()?];
    let count = reader.span(&[Atom::I32])?;
    let constants = (0..count)
        .map(|_| reader.i32())
        .collect::<vm::Result<_>>()?;
    let count = reader.span(&[Atom::Ref, Atom::I64, Atom::I64])?;
    let mut bindings = Vec::new();
    for _ in 0..count {
        skip_ref(&mut reader)?;
        bindings.push((reader.i64()?, reader.i64()?));
    }
    reader.finish()?;
    Ok(Meant {
        function,
        workgroup_count,
        constants,
        bindings,
    })
}

fn any_abi() -> impl Strategy<Value = DispatchAbi> {
    prop::sample::select(&BOTH[..])
}

proptest! {
    #[test]
    fn any_words_give_arguments_or_an_error_as_the_oracle_says(
        abi in any_abi(),
        fixed in prop::collection::vec(any::<u32>(), 10),
        constants in prop::collection::vec(any::<u32>(), 0..6),
        binding_count in prop_oneof![0u32..4, any::<u32>()],
        wrong_count in prop::option::weighted(0.2, any::<u32>()),
        rest in prop::collection::vec(any::<u32>(), 0..34),
    ) {
        let mut words = head(abi, &constants, binding_count);
        let fixed_words = words.len() - constants.len() - 2;
        words[..fixed_words].copy_from_slice(&fixed[..fixed_words]);
        if let Some(count) = wrong_count {
            words[fixed_words] = count;
        }
        words.extend(rest);
        for length in [words.len(), words.len() / 2] {
            let words = &words[..length];
            match (parse_dispatch(words, abi), oracle(words, abi)) {
                (Ok(arguments), Ok(expected)) => {
                    prop_assert_eq!(arguments.function.cast_signed(), expected.function);
                    let bindings: Vec<_> = arguments
                        .bindings()
                        .map(|binding| (binding.offset.cast_signed(), binding.length.cast_signed()))
                        .collect();
                    prop_assert_eq!(bindings, expected.bindings);
                    prop_assert_eq!(arguments.constants.len(), expected.constants.len());
                }
                (Err(_), Err(_)) => {}
                (found, expected) => prop_assert!(false, "{:?} but {:?}", found, expected),
            }
        }
    }

    #[test]
    fn what_was_packed_is_parsed_back(
        abi in any_abi(),
        function in any::<i32>(),
        workgroup_count in any::<[i32; 3]>(),
        constants in prop::collection::vec(any::<i32>(), 0..70),
        bindings in prop::collection::vec(any::<(i64, i64)>(), 0..=MAX_BINDINGS),
    ) {
        let meant = Meant { function: function.into(), workgroup_count, constants, bindings };
        let packed = pack(&meant, abi);
        let arguments = parse_dispatch(packed.block().words(), abi).unwrap();
        prop_assert_eq!(meaning(&arguments), meant);
    }
}

#[test]
fn a_null_ref_keeps_its_index() {
    let convention = CallingConvention::parse(DispatchAbi::FunctionId.convention()).unwrap();
    let mut writer = ArgumentWriter::new();
    let mut values = vec![Value::Ref(Ref::Null), Value::I64(0)];
    values.extend([1, 1, 1].map(Value::I32));
    writer.push_arguments(&convention, &[0, 0], values).unwrap();
    let block = writer.block();
    let arguments = parse_dispatch(block.words(), DispatchAbi::FunctionId).unwrap();
    assert!(block.resolve(arguments.executable).unwrap().is_null());
}
