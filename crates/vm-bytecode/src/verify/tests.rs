//! Tests of the verifier: spoiled bodies of fixtures, and small bodies made by hand.

use vm::StatusCode;

use super::*;
use crate::code::AnyReg;
use crate::encode::Arg::{I, Import, List, Moved, R, Remap, Segments, Text, Word};
use crate::encode::{Arg, Body, FieldKind, encode_function};
use crate::fault::{Fault, FunctionError};
use crate::testing::{TestModule, fixture};
use crate::{BytecodeVersion, Opcode, OperandKind};

/// Returns the body of one block.
fn body(write: impl FnOnce(&mut Body)) -> Body {
    let mut body = Body::default();
    body.block();
    write(&mut body);
    body
}

/// Returns a body that only returns the listed registers.
fn returning(values: &[Arg<'_>]) -> Body {
    body(|body| {
        body.op(Opcode::Return, &[List(values)]);
    })
}

#[track_caller]
fn accept(module: &TestModule) {
    if let Err(error) = module.verify() {
        panic!("{}", chain(&error));
    }
}

/// Returns the error of the only function that does not verify.
#[track_caller]
fn function_error(module: &TestModule) -> FunctionError {
    match module.verify() {
        Err(VerifyError::Function { error, .. }) => error,
        Err(error) => panic!("{}", chain(&error)),
        Ok(_) => panic!("the module verifies"),
    }
}

#[track_caller]
fn fault(module: &TestModule) -> Fault {
    function_error(module).fault
}

fn chain(error: &dyn core::error::Error) -> String {
    let causes = core::iter::successors(Some(error), |error| error.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// Calls `spoil` with each field of each function of a fixture and the counts of its registers (32-bit, ref). It returns
/// the values that must not verify in the field's place.
#[track_caller]
fn every_field(name: &str, spoil: impl Fn(FieldKind, Opcode, u32, (u16, u16)) -> Vec<u32>) {
    let mut file = fixture(name);
    let module = VerifiedModule::load(&file).unwrap();
    let mut spoiled_count = 0;
    for (ordinal, function) in module.functions().iter().enumerate() {
        for field in encode_function(function).fields {
            let offset = function.body().start + field.offset;
            let width = if matches!(field.kind, FieldKind::Index(_)) {
                4
            } else {
                2
            };
            let mut original = [0; 4];
            original[..width].copy_from_slice(&file[offset..offset + width]);
            let counts = (function.i32_register_count(), function.ref_register_count());
            for value in spoil(field.kind, field.op, u32::from_le_bytes(original), counts) {
                file[offset..offset + width].copy_from_slice(&value.to_le_bytes()[..width]);
                let verified = VerifiedModule::load(&file).is_ok();
                assert!(
                    !verified,
                    "{name}, function {ordinal}, {field:?}: {value:#x} verifies"
                );
                spoiled_count += 1;
            }
            file[offset..offset + width].copy_from_slice(&original[..width]);
        }
    }
    assert!(spoiled_count > 0, "{name} has no such field");
}

#[test]
fn every_register_beyond_its_bank_is_refused() {
    for name in ["forms", "mul-3.13.0-async", "mul-2.9.0-flat"] {
        every_field(
            name,
            |kind, _, original, (i32_count, ref_count)| match kind {
                FieldKind::Register(_) | FieldKind::RemapTarget if original & 0x8000 == 0 => {
                    vec![i32_count.into(), 0x7FFF]
                }
                FieldKind::Register(_) | FieldKind::RemapTarget => {
                    let move_bit = original & 0x4000;
                    vec![0x8000 | move_bit | u32::from(ref_count), 0xBFFF | move_bit]
                }
                FieldKind::Segment | FieldKind::Index(_) => vec![],
            },
        );
    }
}

#[test]
fn every_register_of_the_wrong_bank_is_refused() {
    every_field("forms", |kind, op, original, _| match kind {
        // These take values of either bank.
        FieldKind::Register(OperandKind::AnyList)
            if matches!(op, Opcode::Trace | Opcode::Print) =>
        {
            vec![]
        }
        FieldKind::Register(_) | FieldKind::RemapTarget => vec![(original ^ 0x8000) & 0xBFFF],
        FieldKind::Segment | FieldKind::Index(_) => vec![],
    });
}

#[test]
fn every_pair_at_an_odd_register_is_refused() {
    every_field("forms", |kind, _, original, _| match kind {
        FieldKind::Register(
            OperandKind::I64
            | OperandKind::F64
            | OperandKind::ToI64
            | OperandKind::ToF64
            | OperandKind::I64List
            | OperandKind::F64List,
        ) => vec![original + 1],
        _ => vec![],
    });
}

#[test]
fn a_move_of_what_is_written_is_refused() {
    every_field("forms", |kind, _, original, _| match kind {
        FieldKind::Register(OperandKind::ToAnyList) | FieldKind::RemapTarget
            if original & 0x8000 != 0 =>
        {
            vec![original | 0x4000]
        }
        _ => vec![],
    });
}

#[test]
fn every_index_beyond_its_table_is_refused() {
    for name in ["forms", "mul-3.13.0-async"] {
        every_field(name, |kind, _, original, _| match kind {
            FieldKind::Index(OperandKind::Function) => {
                vec![1000, 0x7FFF_FFFF, 0x8000_03E8, u32::MAX]
            }
            FieldKind::Index(OperandKind::Block) => vec![original + 1, 0x00FF_FFFF, u32::MAX],
            FieldKind::Index(_) => vec![1000, 0x7FFF_FFFF, u32::MAX - 3, u32::MAX],
            FieldKind::Register(_) | FieldKind::RemapTarget | FieldKind::Segment => vec![],
        });
    }
}

#[test]
fn every_changed_segment_size_is_refused() {
    every_field("forms", |kind, _, original, _| match kind {
        FieldKind::Segment => vec![(original + 1) & 0xFFFF, original ^ 0x8000],
        _ => vec![],
    });
}

/// Checks which offsets a global of 4 or 8 bytes may have in a module with `capacity` bytes of value globals.
#[track_caller]
fn check_global(
    op: Opcode,
    registers: &[Arg<'_>],
    capacity: u32,
    accepted: &[u32],
    refused: &[u32],
) {
    for (offset, is_accepted) in accepted
        .iter()
        .map(|&o| (o, true))
        .chain(refused.iter().map(|&o| (o, false)))
    {
        let code = body(|body| {
            body.op(op, &[&[Word(offset)], registers].concat())
                .op(Opcode::Return, &[List(&[])]);
        });
        let mut module = TestModule::new().function("0v_v", (2, 0), &code);
        module.def.global_bytes = capacity;
        if is_accepted {
            accept(&module);
        } else {
            let fault = fault(&module);
            assert!(
                matches!(fault, Fault::GlobalOutOfRange { .. }),
                "{op} at {offset:#x}: {fault}"
            );
        }
    }
}

#[test]
fn a_global_whose_end_wraps_is_refused() {
    let refused = [13, 16, 0xFFFF_FFFC, 0xFFFF_FFFF];
    for op in [
        Opcode::GlobalLoadI32,
        Opcode::GlobalStoreI32,
        Opcode::GlobalLoadF32,
        Opcode::GlobalStoreF32,
    ] {
        check_global(op, &[I(0)], 16, &[0, 12], &refused);
        check_global(op, &[I(0)], 0, &[], &[0, 0xFFFF_FFFC]);
    }
}

#[test]
fn a_64_bit_global_needs_eight_bytes() {
    for op in [
        Opcode::GlobalLoadI64,
        Opcode::GlobalStoreI64,
        Opcode::GlobalLoadF64,
        Opcode::GlobalStoreF64,
    ] {
        check_global(op, &[I(0)], 16, &[0, 8], &[9, 12, 0xFFFF_FFF8, 0xFFFF_FFFF]);
        check_global(op, &[I(0)], 4, &[], &[0]);
    }
}

#[test]
fn one_value_may_be_returned_many_times() {
    let results = "r".repeat(22);
    accept(&TestModule::new().function(&format!("0r_{results}"), (0, 1), &returning(&[R(0); 22])));
}

#[test]
fn returned_values_must_match_the_convention() {
    let check = |convention: &str, values: &[Arg<'_>]| {
        fault(&TestModule::new().function(convention, (4, 2), &returning(values)))
    };
    assert!(matches!(
        check("0v_ii", &[I(0)]),
        Fault::ValueCount {
            expected: 2,
            found: 1,
            ..
        }
    ));
    assert!(matches!(
        check("0v_i", &[I(0), I(1)]),
        Fault::ValueCount {
            expected: 1,
            found: 2,
            ..
        }
    ));
    assert!(matches!(check("0v_i", &[R(0)]), Fault::ValueType { .. }));
    assert!(matches!(check("0v_r", &[I(0)]), Fault::ValueType { .. }));
    assert_eq!(check("0v_I", &[I(1)]), Fault::OddPair { ordinal: 1 });
    assert!(matches!(
        check("0v_F", &[I(4)]),
        Fault::RegisterOutOfRange { .. }
    ));
}

#[test]
fn the_high_word_of_a_pair_must_exist() {
    let module = |count| TestModule::new().function("0v_I", (count, 0), &returning(&[I(2)]));
    accept(&module(4));
    assert_eq!(
        fault(&module(3)),
        Fault::PairOutOfRange {
            ordinal: 2,
            count: 3
        }
    );
}

/// Returns a module whose function 1 calls with the given operands; function 0 is `0iIr_F`, import 0 `0iCrID_r`.
fn calling(op: Opcode, args: &[Arg<'_>]) -> TestModule {
    let code = body(|body| {
        body.op(op, args).op(Opcode::Return, &[List(&[])]);
    });
    TestModule::new()
        .import("host.spans", "0iCrID_r")
        .function("0iIr_F", (4, 1), &returning(&[I(0)]))
        .function("0v_v", (8, 4), &code)
}

#[test]
fn a_call_must_match_the_convention_of_its_callee() {
    let call = |arguments: &[Arg<'_>], results: &[Arg<'_>]| {
        calling(Opcode::Call, &[Word(0), List(arguments), List(results)])
    };
    accept(&call(&[I(1), I(2), Moved(0)], &[I(6)]));
    assert!(matches!(
        fault(&call(&[I(1), I(2)], &[I(6)])),
        Fault::ValueCount {
            expected: 3,
            found: 2,
            ..
        }
    ));
    assert!(matches!(
        fault(&call(&[I(1), I(2), R(0), R(0)], &[I(6)])),
        Fault::ValueCount { found: 4, .. }
    ));
    assert!(matches!(
        fault(&call(&[I(1), I(3), R(0)], &[I(6)])),
        Fault::OddPair { ordinal: 3 }
    ));
    assert!(matches!(
        fault(&call(&[I(1), R(2), R(0)], &[I(6)])),
        Fault::ValueType { .. }
    ));
    assert!(matches!(
        fault(&call(&[I(1), I(2), R(0)], &[])),
        Fault::ValueCount {
            expected: 1,
            found: 0,
            ..
        }
    ));
    assert!(matches!(
        fault(&call(&[I(1), I(2), R(0)], &[I(7)])),
        Fault::OddPair { ordinal: 7 }
    ));
}

#[test]
fn a_call_of_an_import_with_spans_must_be_variadic() {
    for arguments in [&[I(0)][..], &[I(0), R(0)], &[I(0), R(0), I(2)], &[]] {
        let module = calling(Opcode::Call, &[Import(0), List(arguments), List(&[R(0)])]);
        assert!(matches!(fault(&module), Fault::NeedsSegments { .. }));
    }
}

#[test]
fn a_variadic_call_must_match_its_segments() {
    let call = |segments: &[u16], arguments: &[Arg<'_>]| {
        calling(
            Opcode::CallVariadic,
            &[
                Import(0),
                Segments(segments),
                List(arguments),
                List(&[R(0)]),
            ],
        )
    };
    accept(&call(&[0xFFFF, 0], &[I(0)]));
    accept(&call(&[0xFFFF, 2], &[I(0), R(0), I(2), Moved(1), I(4)]));
    assert!(matches!(
        fault(&call(&[0xFFFF], &[I(0)])),
        Fault::SegmentCount {
            expected: 2,
            found: 1,
            ..
        }
    ));
    assert!(matches!(
        fault(&call(&[0xFFFF, 0, 0], &[I(0)])),
        Fault::SegmentCount { found: 3, .. }
    ));
    assert_eq!(
        fault(&call(&[1, 0], &[I(0)])),
        Fault::SegmentSize { found: 1 }
    );
    assert!(matches!(
        fault(&call(&[0xFFFF, 1], &[I(0)])),
        Fault::ValueCount {
            expected: 3,
            found: 1,
            ..
        }
    ));
    assert!(matches!(
        fault(&call(&[0xFFFF, 0xFFFF], &[I(0)])),
        Fault::ValueCount {
            expected: 131_071,
            ..
        }
    ));
    assert!(matches!(
        fault(&call(&[0xFFFF, 0], &[I(0), R(0), I(2)])),
        Fault::ValueCount { expected: 1, .. }
    ));
    assert!(matches!(
        fault(&call(&[0xFFFF, 1], &[I(0), I(2), R(0)])),
        Fault::ValueType { .. }
    ));
}

#[test]
fn only_imports_take_variadic_calls_and_can_be_unresolved() {
    let variadic = calling(
        Opcode::CallVariadic,
        &[Word(0), Segments(&[]), List(&[]), List(&[])],
    );
    let resolved = calling(Opcode::ImportResolved, &[Word(0), I(0)]);
    for module in [variadic, resolved] {
        let error = function_error(&module);
        assert_eq!(error.fault, Fault::ExpectedImport { ordinal: 0 });
        assert_eq!(error.status_code(), StatusCode::FAILED_PRECONDITION);
    }
}

#[test]
fn an_error_says_where_it_is() {
    let module = calling(
        Opcode::Call,
        &[Word(0), List(&[I(1), R(2), R(0)]), List(&[I(6)])],
    );
    let text = chain(&module.verify().unwrap_err());
    assert_eq!(
        text,
        "function `test.f1` does not verify: offset 0x1, call, operand 1, entry 1: expected a register for `I`, found %r2"
    );
}

#[test]
fn a_function_needs_registers_for_its_arguments() {
    let module =
        |convention, registers| TestModule::new().function(convention, registers, &returning(&[]));
    accept(&module("0iIrf_v", (5, 1)));
    assert!(matches!(
        fault(&module("0iIrf_v", (4, 1))),
        Fault::RegisterCount {
            bank: "32-bit",
            arguments: 5,
            ..
        }
    ));
    assert!(matches!(
        fault(&module("0iIrf_v", (5, 0))),
        Fault::RegisterCount {
            bank: "ref",
            arguments: 1,
            ..
        }
    ));
    assert!(matches!(
        fault(&module("0v_v", (-1, 0))),
        Fault::RegisterCount { declared: -1, .. }
    ));
    assert!(matches!(
        fault(&module("0v_v", (0, 0x4000))),
        Fault::RegisterCount { most: 0x3FFF, .. }
    ));
    accept(&module("0v_v", (0x7FFF, 0x3FFF)));
}

#[test]
fn blocks_start_with_a_marker_and_end_with_a_terminator() {
    let check = |bytes: &[u8], block_count| {
        let code = Body {
            bytes: bytes.to_vec(),
            fields: Vec::new(),
            block_count,
        };
        fault(&TestModule::new().function("0v_v", (1, 0), &code))
    };
    const RETURN: [u8; 4] = [0x79, 0x5A, 0, 0];
    assert_eq!(check(&[0x5A, 0, 0, 0], 1), Fault::NoMarker { found: 0x5A });
    assert_eq!(check(&[0x79], 1), Fault::OpenBlock { block: 0 });
    assert_eq!(check(&[0x79, 0x0C, 0, 0], 1), Fault::OpenBlock { block: 0 });
    assert_eq!(check(&[0x79, 0x79], 1), Fault::MarkerInBlock);
    assert_eq!(
        check(&[&RETURN[..], &[0]].concat(), 1),
        Fault::NoMarker { found: 0 }
    );
    assert_eq!(
        check(&[RETURN, RETURN].concat(), 1),
        Fault::BlockCount {
            declared: 1,
            found: 2
        }
    );
    assert_eq!(
        check(&RETURN, 2),
        Fault::BlockCount {
            declared: 2,
            found: 1
        }
    );
    assert_eq!(
        check(&RETURN, -1),
        Fault::BlockCount {
            declared: -1,
            found: 1
        }
    );
    assert_eq!(
        check(&[0x79, 0x5A, 0], 1),
        Fault::EndOfBody { needed: 2, left: 1 }
    );
    assert_eq!(
        check(&[0x79, 0x5A, 0xFF, 0xFF], 1),
        Fault::EndOfBody {
            needed: 0x1_FFFE,
            left: 0
        }
    );
}

#[test]
fn a_branch_must_hit_a_marker() {
    let module = |target| {
        let code = body(|body| {
            body.op(Opcode::ConstI32, &[Word(0x0079_7979), I(0)])
                .op(Opcode::Br, &[Word(target), Remap(&[])]);
        });
        TestModule::new().function("0v_v", (1, 0), &code)
    };
    accept(&module(0));
    // The second target is a byte like a marker inside an instruction.
    for target in [1, 2, 100, u32::MAX] {
        assert_eq!(fault(&module(target)), Fault::BlockTarget { target });
    }
}

#[test]
fn a_remap_stays_in_one_bank() {
    let module = |source, target| {
        let code = body(|body| {
            body.op(Opcode::Br, &[Word(0), Remap(&[(source, target)])]);
        });
        TestModule::new().function("0v_v", (2, 2), &code)
    };
    accept(&module(I(0), I(1)));
    accept(&module(Moved(0), R(1)));
    assert!(matches!(
        fault(&module(I(0), R(1))),
        Fault::RemapBanks { .. }
    ));
    assert!(matches!(
        fault(&module(R(0), I(1))),
        Fault::RemapBanks { .. }
    ));
    assert!(matches!(
        fault(&module(R(0), Moved(1))),
        Fault::MoveNotAllowed { .. }
    ));
    let register = AnyReg(2);
    assert_eq!(
        fault(&module(I(2), I(0))),
        Fault::RegisterOutOfRange { register, count: 2 }
    );
}

#[test]
fn unassigned_opcodes_are_refused() {
    for bytes in [
        &[0x89][..],
        &[0xDF],
        &[0xFF],
        &[0xE0, 0x3F],
        &[0xE1, 0x41],
        &[0xE1, 0xFF],
    ] {
        let code = Body {
            bytes: [&[0x79], bytes].concat(),
            fields: Vec::new(),
            block_count: 1,
        };
        let fault = fault(&TestModule::new().function("0v_v", (1, 0), &code));
        assert!(
            matches!(fault, Fault::UnknownOpcode { .. }),
            "{bytes:?}: {fault}"
        );
    }
}

#[test]
fn float_instructions_need_their_feature() {
    for (op, feature) in [
        (Opcode::ConstF32Zero, Features::EXT_F32),
        (Opcode::ConstF64Zero, Features::EXT_F64),
    ] {
        let code = body(|body| {
            body.op(op, &[I(0)]).op(Opcode::Return, &[List(&[])]);
        });
        let mut module = TestModule::new().function("0v_v", (2, 0), &code);
        module.def.functions[0].features = feature;
        accept(&module);
        module.def.functions[0].features = Features::SUPPORTED.without(feature);
        assert!(
            matches!(fault(&module), Fault::MissingFeature { needed, .. } if needed == feature)
        );
    }
}

#[test]
fn a_string_that_leaves_the_body_is_refused() {
    let mut code = body(|body| {
        body.op(Opcode::Fail, &[I(0), Text("oh no")]);
    });
    accept(&TestModule::new().function("0v_v", (1, 0), &code));
    code.bytes.pop();
    assert_eq!(
        fault(&TestModule::new().function("0v_v", (1, 0), &code)),
        Fault::EndOfBody { needed: 5, left: 4 }
    );
}

#[test]
fn padding_that_is_not_zero_is_refused() {
    let mut code = body(|body| {
        body.op(Opcode::Call, &[Word(0), List(&[]), List(&[])])
            .op(Opcode::Br, &[Word(0), Remap(&[])]);
    });
    accept(&TestModule::new().function("0v_v", (0, 0), &code));
    let remap = code.bytes.len() - 3;
    assert_eq!(code.bytes[remap], 0);
    code.bytes[remap] = 1;
    assert_eq!(
        fault(&TestModule::new().function("0v_v", (0, 0), &code)),
        Fault::Padding { found: 1 }
    );
}

/// Checks which descriptors of a body of 4 bytes in 8 bytes of bytecode are refused.
#[test]
fn a_body_outside_the_bytecode_is_refused() {
    let module = TestModule::new()
        .function("0v_v", (0, 0), &returning(&[]))
        .function("0v_v", (0, 0), &returning(&[]));
    accept(&module);
    // The bytecode has 12 bytes: two bodies of 4 and 4 bytes between them.
    let cases = [
        (0, 0),
        (-8, 4),
        (16, 4),
        (8, 5),
        (8, i32::MAX),
        (8, -4),
        (i32::MAX - 7, 4),
        (4, 4),
        (1, 4),
        (12, 4),
    ];
    for (offset, length) in cases {
        let mut module = module.clone();
        module.def.functions[1].bytecode_offset = offset;
        module.def.functions[1].bytecode_length = length;
        let error = module.verify().unwrap_err();
        assert!(
            matches!(error, VerifyError::Body { .. }),
            "{offset}, {length}: {error}"
        );
    }
}

#[test]
fn bodies_that_overlap_are_refused() {
    let mut module = TestModule::new()
        .function("0v_v", (0, 0), &returning(&[]))
        .function("0v_v", (0, 0), &returning(&[]));
    module.def.functions[1].bytecode_offset = 0;
    let error = module.verify().unwrap_err();
    assert!(matches!(error, VerifyError::BodyOverlap { .. }), "{error}");
}

#[test]
fn an_unknown_bytecode_version_is_named_with_the_known_ones() {
    let mut module = TestModule::new().function("0v_v", (0, 0), &returning(&[]));
    for (packed, text) in [
        (
            0,
            "0.0, known are 15.0 (IREE 2.9 to 3.9), 16.0 (IREE 3.10), 17.0 (IREE 3.11 to 3.13): the module was made by a compiler before IREE 2.9",
        ),
        (0x000F_0001, "15.1, known are"),
        (0x0011_0001, "the module was made by a newer compiler"),
        (0x0012_0000, "18.0"),
        (u32::MAX, "65535.65535"),
    ] {
        module.def.bytecode_version = BytecodeVersion::from_packed(packed);
        let error = module.verify().unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);
    }
    for packed in [0x000F_0000, 0x0010_0000, 0x0011_0000] {
        module.def.bytecode_version = BytecodeVersion::from_packed(packed);
        accept(&module);
    }
}

#[test]
fn unknown_features_are_refused() {
    let mut module = TestModule::new().function("0v_v", (0, 0), &returning(&[]));
    module.def.features = Features::from_bits(0x19);
    let error = module.verify().unwrap_err();
    assert_eq!(
        error.to_string(),
        "module `test` needs the features 0x10, which are not available"
    );
    module.def.features = Features::NONE;
    module.def.functions[0].features = Features::from_bits(0x100);
    let error = module.verify().unwrap_err();
    assert_eq!(
        error.to_string(),
        "function `test.f0` needs the features 0x100, which are not available"
    );
}

#[test]
fn the_tables_must_agree() {
    let module = TestModule::new().function("0v_v", (0, 0), &returning(&[]));
    let mut spoiled = module.clone();
    spoiled.def.signatures.clear();
    assert!(matches!(
        spoiled.verify(),
        Err(VerifyError::SignatureCount { .. })
    ));
    let mut spoiled = module;
    spoiled.def.exports[0].function = 1;
    assert!(matches!(
        spoiled.verify(),
        Err(VerifyError::ExportOrdinal {
            ordinal: 1,
            functions: 1,
            ..
        })
    ));
}

#[test]
fn conventions_are_checked_before_any_call() {
    let module = TestModule::new().function("0v_v", (0, 0), &returning(&[]));
    let error = module.clone().import("a.b", "1i_i").verify().unwrap_err();
    assert_eq!(error.status_code(), StatusCode::UNIMPLEMENTED);
    assert!(
        chain(&error).contains("import `a.b` of module `test`"),
        "{error}"
    );
    let spans = module.function("0CiD_v", (0, 0), &returning(&[])).verify();
    assert!(matches!(spans, Err(VerifyError::FunctionSpans { .. })));
}

#[test]
fn globals_beyond_any_use_are_refused() {
    let module = TestModule::new().function("0v_v", (0, 0), &returning(&[]));
    for (global_bytes, global_refs) in [(0x7FFF_FFFF, 0), (0, 0x7FFF_FFFF)] {
        let mut module = module.clone();
        (module.def.global_bytes, module.def.global_refs) = (global_bytes, global_refs);
        assert_eq!(
            module.verify().unwrap_err().status_code(),
            StatusCode::RESOURCE_EXHAUSTED
        );
    }
}
