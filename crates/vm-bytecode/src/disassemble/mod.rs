//! Disassembly: a verified module as text.
//!
//! The text is what IREE's `iree-as-module` reads, and gives the same function bodies there. What that assembler has no
//! syntax for is still written, in the nearest form: `switch.ref`; quotes, line breaks and bytes that are not UTF-8
//! in strings; names with characters beyond letters, digits, `_`, `$` and `.`. What it has no directive for is
//! written as a comment: versions, features, dependencies.
//!
//! This file writes the module and the frame of its functions; [`instruction`] writes what is in them.

mod instruction;
#[cfg(test)]
mod tests;

use core::fmt::{self, Write as _};
use std::collections::HashSet;

use vm::{Atom, Item};

use instruction::Scope;

use crate::code::{I32Reg, I64Reg};
use crate::{Features, VerifiedFunction, VerifiedModule};

/// Bytes of rodata that are shown beside their use, if they are text.
const PREVIEW_LENGTH: usize = 48;

/// Writes a verified module as text, by its [`Display`](fmt::Display).
#[derive(Clone, Copy, Debug)]
pub struct Disassembler<'a> {
    module: &'a VerifiedModule,
    file: &'a [u8],
    offsets: Offsets,
    rodata: RodataText,
}

/// Writes one function of a verified module as text, by its [`Display`](fmt::Display).
#[derive(Clone, Copy, Debug)]
pub struct FunctionDisassembler<'a> {
    disassembler: Disassembler<'a>,
    ordinal: usize,
}

/// Whether lines start with the byte offset of their instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offsets {
    /// They do not.
    #[default]
    Hidden,
    /// They do, in hexadecimal and in brackets, which the assembler skips.
    Shown,
}

/// How rodata segments are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RodataText {
    /// All bytes, so that the text can be assembled.
    #[default]
    Full,
    /// Only the length, as a comment.
    Summary,
}

impl<'a> Disassembler<'a> {
    /// Makes a disassembler of `module`, which was loaded from `file`.
    #[must_use]
    pub fn new(module: &'a VerifiedModule, file: &'a [u8]) -> Self {
        Self {
            module,
            file,
            offsets: Offsets::default(),
            rodata: RodataText::default(),
        }
    }

    /// Sets whether offsets are written.
    #[must_use]
    pub fn offsets(self, offsets: Offsets) -> Self {
        Self { offsets, ..self }
    }

    /// Sets how rodata is written.
    #[must_use]
    pub fn rodata(self, rodata: RodataText) -> Self {
        Self { rodata, ..self }
    }

    /// Returns the text of one function, or `None` if there is no function of that ordinal.
    #[must_use]
    pub fn function(&self, ordinal: u32) -> Option<FunctionDisassembler<'a>> {
        let ordinal = usize::try_from(ordinal).ok()?;
        (ordinal < self.module.functions().len()).then_some(FunctionDisassembler {
            disassembler: *self,
            ordinal,
        })
    }

    fn write_head(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let def = self.module.def();
        writeln!(
            out,
            "// bytecode version {}, features {}",
            def.bytecode_version, def.features
        )?;
        writeln!(
            out,
            "vm.module @{} version {}",
            printable(&def.name),
            def.version
        )?;
        for dependency in &def.dependencies {
            let optional = if dependency.optional {
                "optionally "
            } else {
                ""
            };
            let (name, version) = (printable(&dependency.name), dependency.minimum_version);
            writeln!(
                out,
                "// {optional}depends on {name}, version {version} or later"
            )?;
        }
        for name in &def.types {
            writeln!(out, "vm.type {}", printable(name))?;
        }
        for import in &def.imports {
            let optional = if import.optional { "optional " } else { "" };
            let (name, convention) = (
                printable(&import.full_name),
                &import.signature.calling_convention,
            );
            writeln!(out, "vm.import {optional}@{name} cconv \"{convention}\"")?;
        }
        for (ordinal, segment) in def.rodata.iter().enumerate() {
            let bytes = &self.file[segment.range.clone()];
            match self.rodata {
                RodataText::Full => {
                    write!(out, "vm.rodata[{ordinal}] = ")?;
                    for byte in bytes {
                        write!(out, "{byte:02X}")?;
                    }
                    out.write_char('\n')?;
                }
                RodataText::Summary => {
                    writeln!(out, "// vm.rodata[{ordinal}]: {}", rodata_preview(bytes))?
                }
            }
        }
        Ok(())
    }

    fn write_function(
        &self,
        out: &mut dyn fmt::Write,
        names: &[String],
        ordinal: usize,
    ) -> fmt::Result {
        let function = &self.module.functions()[ordinal];
        if function.features() != Features::NONE {
            writeln!(out, "// features {}", function.features())?;
        }
        write!(out, "vm.func @{}(", printable(&names[ordinal]))?;
        write_arguments(out, function)?;
        out.write_str(") -> (")?;
        let results: Vec<_> = function
            .convention()
            .results()
            .iter()
            .map(|&atom| type_name(atom))
            .collect();
        writeln!(out, "{}) {{", results.join(", "))?;
        let scope = Scope {
            module: self.module,
            file: self.file,
            names,
            function,
        };
        for (index, block) in function.blocks().iter().enumerate() {
            self.write_offset(out, block.offset())?;
            writeln!(out, "^bb{index}:")?;
            for instruction in function.instructions(block) {
                self.write_offset(out, instruction.offset())?;
                out.write_str("  ")?;
                scope.write(instruction, out)?;
                out.write_char('\n')?;
            }
        }
        out.write_str("}\n")?;
        Ok(())
    }

    fn write_offset(&self, out: &mut dyn fmt::Write, offset: u32) -> fmt::Result {
        match self.offsets {
            Offsets::Hidden => Ok(()),
            Offsets::Shown => write!(out, "[{offset:08X}]"),
        }
    }

    /// Returns a name for each function that no other function has: that of an export, or one made of the ordinal.
    fn function_names(&self) -> Vec<String> {
        let def = self.module.def();
        let mut names = vec![None; def.functions.len()];
        let mut taken: HashSet<&str> = HashSet::new();
        for export in &def.exports {
            let name = &mut names[export.function as usize];
            if name.is_none() && taken.insert(&export.name) {
                *name = Some(export.name.clone());
            }
        }
        let free = |ordinal: usize| {
            // A name longer than all others is free.
            let suffixes = (0..).map(|length| format!("fn{ordinal}{}", "_".repeat(length)));
            suffixes
                .into_iter()
                .find(|name| !taken.contains(name.as_str()))
                .expect("the exports are finite")
        };
        names
            .into_iter()
            .enumerate()
            .map(|(ordinal, name)| name.unwrap_or_else(|| free(ordinal)))
            .collect()
    }
}

impl fmt::Display for Disassembler<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        let names = self.function_names();
        for export in &self.module.def().exports {
            let function = &names[export.function as usize];
            if *function == export.name {
                writeln!(f, "vm.export @{}", printable(function))?;
            } else {
                writeln!(
                    f,
                    "vm.export @{} = @{}",
                    printable(&export.name),
                    printable(function)
                )?;
            }
        }
        for ordinal in 0..names.len() {
            f.write_char('\n')?;
            self.write_function(f, &names, ordinal)?;
        }
        Ok(())
    }
}

impl fmt::Display for FunctionDisassembler<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disassembler = &self.disassembler;
        disassembler.write_function(f, &disassembler.function_names(), self.ordinal)
    }
}

/// Writes the arguments of a function in the registers it finds them in.
fn write_arguments(out: &mut dyn fmt::Write, function: &VerifiedFunction) -> fmt::Result {
    let (mut i32_ordinal, mut ref_ordinal) = (0u16, 0u16);
    let mut separator = "";
    for item in function.convention().arguments() {
        let Item::Atom(atom) = *item else {
            unreachable!("a verified function has no spans")
        };
        out.write_str(separator)?;
        separator = ", ";
        match atom {
            Atom::I32 | Atom::F32 => {
                write!(out, "{}", I32Reg(i32_ordinal))?;
                i32_ordinal += 1;
            }
            Atom::I64 | Atom::F64 => {
                i32_ordinal = i32_ordinal.next_multiple_of(2);
                write!(out, "{}", I64Reg(i32_ordinal))?;
                i32_ordinal += 2;
            }
            Atom::Ref => {
                write!(out, "%r{ref_ordinal}")?;
                ref_ordinal += 1;
            }
        }
        write!(out, ": {}", type_name(atom))?;
    }
    Ok(())
}

const fn type_name(atom: Atom) -> &'static str {
    match atom {
        Atom::I32 => "i32",
        Atom::I64 => "i64",
        Atom::F32 => "f32",
        Atom::F64 => "f64",
        Atom::Ref => "!vm.ref<?>",
    }
}

/// Returns the text with control characters and quotes escaped, so that it stays in its line and its string.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || character == '"' {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// Returns the bytes as text; those that are no part of UTF-8 are escaped.
fn printable_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(&printable(chunk.valid()));
        for byte in chunk.invalid() {
            out.extend(["\\x".to_owned(), format!("{byte:02x}")]);
        }
    }
    out
}

/// Describes a rodata segment in a few words.
fn rodata_preview(bytes: &[u8]) -> String {
    let is_text = !bytes.is_empty()
        && bytes.len() <= PREVIEW_LENGTH
        && bytes.iter().all(|byte| matches!(byte, 0x20..0x7F));
    if is_text {
        format!("{} bytes `{}`", bytes.len(), printable_bytes(bytes))
    } else {
        format!("{} bytes", bytes.len())
    }
}
