//! Tests of the disassembler against text that IREE's assembler reads.

use super::*;
use crate::code::AnyReg;
use crate::encode::Arg::{I, List, R, Word};
use crate::encode::Body;
use crate::testing::{FIXTURES, TestModule, fixture};
use crate::{Opcode, VerifiedModule};

#[test]
fn every_form_is_written_as_the_assembler_reads_it() {
    let file = fixture("forms");
    let module = VerifiedModule::load(&file).unwrap();
    let text = Disassembler::new(&module, &file).to_string();
    let expected = include_str!("../../tests/fixtures/forms.vmasm");
    for (number, (line, expected)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, expected, "line {}", number + 1);
    }
    assert_eq!(text.lines().count(), expected.lines().count());
}

#[test]
fn every_line_of_every_fixture_is_one_instruction_label_or_directive() {
    for name in FIXTURES {
        let file = fixture(name);
        let module = VerifiedModule::load(&file).unwrap();
        let text = Disassembler::new(&module, &file)
            .rodata(RodataText::Summary)
            .to_string();
        let instruction_count: usize = module
            .functions()
            .iter()
            .flat_map(|function| {
                function
                    .blocks()
                    .iter()
                    .map(|block| function.instructions(block).len())
            })
            .sum();
        let instructions = text.lines().filter(|line| line.starts_with("  "));
        assert_eq!(instructions.count(), instruction_count, "{name}");
    }
}

#[test]
fn one_function_can_be_written_with_offsets() {
    let file = fixture("lists-3.13.0");
    let module = VerifiedModule::load(&file).unwrap();
    let disassembler = Disassembler::new(&module, &file).offsets(Offsets::Shown);
    let text = disassembler.function(1).unwrap().to_string();
    assert!(
        text.starts_with(
            "// features UNWIND\nvm.func @getlist(%r0: !vm.ref<?>) -> (i32) {\n[00000000]^bb0:\n[00000001]  "
        ),
        "{text}"
    );
    assert!(disassembler.function(99).is_none());
}

#[test]
fn a_switch_of_refs_has_a_form_of_its_own() {
    let mut body = Body::default();
    body.block();
    body.op(
        Opcode::SwitchRef,
        &[I(0), Word(1), R(0), List(&[R(1), R(2)]), R(3)],
    )
    .op(Opcode::Return, &[List(&[])]);
    let module = TestModule::new().function("0v_v", (1, 4), &body);
    let text = Disassembler::new(&module.verify().unwrap(), &module.file)
        .function(0)
        .unwrap()
        .to_string();
    assert!(
        text.contains("  %r3 = vm.switch.ref %i0[%r1, %r2] else %r0 : !vm.buffer\n"),
        "{text}"
    );
}

#[test]
fn functions_without_a_name_of_their_own_get_one_that_is_free() {
    let mut body = Body::default();
    body.block();
    body.op(Opcode::Return, &[List(&[])]);
    let mut module =
        TestModule::new()
            .function("0v_v", (0, 0), &body)
            .function("0v_v", (0, 0), &body);
    module.def.exports[0].name = "fn1".to_owned();
    module.def.exports[1].name = "fn1".to_owned();
    let verified = module.verify().unwrap();
    assert_eq!(
        Disassembler::new(&verified, &module.file).function_names(),
        ["fn1", "fn1_"]
    );
}

#[test]
fn strings_stay_in_their_line() {
    assert_eq!(
        printable_bytes(b"a\n\"b\" \\ \xFF c\xC3\xA9"),
        "a\\n\\\"b\\\" \\ \\xff c\u{e9}"
    );
}

#[test]
fn only_short_text_is_previewed() {
    assert_eq!(rodata_preview(b"input0"), "6 bytes `input0`");
    assert_eq!(rodata_preview(b"\x7FELF"), "4 bytes");
    assert_eq!(rodata_preview(&[b'x'; 100]), "100 bytes");
}

#[test]
fn registers_print_their_bank_and_move() {
    let text: Vec<_> = [3, 0x8003, 0xC003]
        .map(|bits| AnyReg(bits).to_string())
        .into();
    assert_eq!(text, ["%i3", "%r3", "%R3"]);
}
