//! The instruction table of `docs/vm.md`, which is written from the one the interpreter is made of.

use std::fmt::Write;
use std::path::Path;

use vm_bytecode::{Opcode, OperandKind, Page};

/// Set to any value to write the table anew.
const RENEW: &str = "HALITE_RENEW_DOCS";

/// Spells an operand as `docs/vm.md`, section "Instruction set", explains.
fn notation(kind: OperandKind) -> &'static str {
    match kind {
        OperandKind::I32 => "i",
        OperandKind::I64 => "I",
        OperandKind::F32 => "f",
        OperandKind::F64 => "F",
        OperandKind::Ref => "r",
        OperandKind::Move => "r*",
        OperandKind::ToI32 => "=i",
        OperandKind::ToI64 => "=I",
        OperandKind::ToF32 => "=f",
        OperandKind::ToF64 => "=F",
        OperandKind::ToRef => "=r*",
        OperandKind::ImmI32 => "#i",
        OperandKind::ImmI64 => "#I",
        OperandKind::ImmF32 => "#f",
        OperandKind::ImmF64 => "#F",
        OperandKind::Global4 => "@global4",
        OperandKind::Global8 => "@global8",
        OperandKind::GlobalRef => "@ref",
        OperandKind::Rodata => "@rodata",
        OperandKind::Function => "@function",
        OperandKind::Type => "@type",
        OperandKind::Block => "@block",
        OperandKind::Str => "text",
        OperandKind::I32List => "[i]",
        OperandKind::I64List => "[I]",
        OperandKind::F32List => "[f]",
        OperandKind::F64List => "[F]",
        OperandKind::MoveList => "[r*]",
        OperandKind::RefList => "[r]",
        OperandKind::AnyList => "[any]",
        OperandKind::ToAnyList => "=[any]",
        OperandKind::Segments => "[segment]",
        OperandKind::Remap => "{remap}",
        OperandKind::Cases => "{cases}",
    }
}

fn table() -> String {
    let mut text = String::new();
    for (page, title) in [
        (Page::Core, "Core"),
        (Page::ExtF32, "The f32 extension"),
        (Page::ExtF64, "The f64 extension"),
    ] {
        writeln!(text, "#### {title}\n").unwrap();
        writeln!(
            text,
            "| code | mnemonic | operands | does |\n|---|---|---|---|"
        )
        .unwrap();
        for op in Opcode::all().iter().filter(|op| op.page() == page) {
            let code = match page.prefix() {
                Some(prefix) => format!("{prefix:02X} {:02X}", op.byte()),
                None => format!("{:02X}", op.byte()),
            };
            let operands: Vec<&str> = op
                .operand_kinds()
                .iter()
                .map(|kind| notation(*kind))
                .collect();
            let operands = operands.join(" ");
            let summary = op.summary();
            writeln!(text, "| {code} | `{op}` | `{operands}` | {summary} |").unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_instruction_table_of_the_document_is_current() {
    const BEGIN: &str = "<!-- instructions: written by a test -->\n\n";
    const END: &str = "<!-- end of instructions -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vm.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    let table = table();
    if std::env::var_os(RENEW).is_some() {
        std::fs::write(&path, [before, BEGIN, &table, END, after].concat()).unwrap();
        return;
    }
    assert!(
        written == table,
        "docs/vm.md is not current: run this test with {RENEW}=1"
    );
}
