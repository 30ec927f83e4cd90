//! The instruction set: opcodes, their operand kinds, and what is known of each without looking at a module.
//!
//! Everything here is derived from the one table in `isa/table.rs`; see there for the meaning of a row.

pub(crate) mod table;

use core::fmt;

use table::for_each_op;

use crate::Features;

/// Set of opcodes an opcode byte is looked up in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Page {
    /// One-byte opcodes.
    Core,
    /// Opcodes behind the prefix byte 0xE0; need [`Features::EXT_F32`].
    ExtF32,
    /// Opcodes behind the prefix byte 0xE1; need [`Features::EXT_F64`].
    ExtF64,
}

impl Page {
    /// Returns the byte that selects the page, or `None` for the core page.
    #[must_use]
    pub const fn prefix(self) -> Option<u8> {
        match self {
            Self::Core => None,
            Self::ExtF32 => Some(0xE0),
            Self::ExtF64 => Some(0xE1),
        }
    }

    /// Returns the page that `byte` selects, if it is a prefix byte.
    #[must_use]
    pub const fn from_prefix(byte: u8) -> Option<Self> {
        match byte {
            0xE0 => Some(Self::ExtF32),
            0xE1 => Some(Self::ExtF64),
            _ => None,
        }
    }

    /// Returns the features a function must declare to use the page.
    #[must_use]
    pub const fn required_features(self) -> Features {
        match self {
            Self::Core => Features::NONE,
            Self::ExtF32 => Features::EXT_F32,
            Self::ExtF64 => Features::EXT_F64,
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "core",
            Self::ExtF32 => "f32",
            Self::ExtF64 => "f64",
        })
    }
}

/// Byte that starts a basic block. It is not an instruction.
pub(crate) const BLOCK_MARKER: u8 = 0x79;

/// What an operand field holds and how it is encoded. All integers are little-endian and unaligned, except that lists
/// and remaps start at an even offset of the function body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandKind {
    /// `u16` register that holds an i32, read.
    I32,
    /// `u16` even register of a pair that holds an i64, read.
    I64,
    /// `u16` register that holds an f32, read.
    F32,
    /// `u16` even register of a pair that holds an f64, read.
    F64,
    /// `u16` ref register, read; a MOVE mark means nothing.
    Ref,
    /// `u16` ref register, read; MOVE is allowed.
    Move,
    /// `u16` register that receives an i32.
    ToI32,
    /// `u16` even register of a pair that receives an i64.
    ToI64,
    /// `u16` register that receives an f32.
    ToF32,
    /// `u16` even register of a pair that receives an f64.
    ToF64,
    /// `u16` ref register that receives a ref; MOVE is allowed.
    ToRef,
    /// 4-byte signed immediate.
    ImmI32,
    /// 8-byte signed immediate.
    ImmI64,
    /// 4-byte float immediate.
    ImmF32,
    /// 8-byte float immediate.
    ImmF64,
    /// `u32` byte offset of a 4-byte value global.
    Global4,
    /// `u32` byte offset of an 8-byte value global.
    Global8,
    /// `u32` ordinal of a global ref.
    GlobalRef,
    /// `u32` ordinal of a rodata segment.
    Rodata,
    /// `u32` function ordinal; bit 31 set for an import.
    Function,
    /// `u32` index in the type table.
    Type,
    /// `u32` offset of a block marker in the function body.
    Block,
    /// `u16` byte length and the bytes.
    Str,
    /// List of i32 registers, read.
    I32List,
    /// List of even registers of pairs that hold i64 values, read.
    I64List,
    /// List of f32 registers, read.
    F32List,
    /// List of even registers of pairs that hold f64 values, read.
    F64List,
    /// List of ref registers, read; MOVE is allowed.
    MoveList,
    /// List of ref registers to release; the MOVE bit means nothing.
    RefList,
    /// List of registers of any bank, one per value, read; MOVE is allowed on refs.
    AnyList,
    /// List of registers of any bank, one per value, written.
    ToAnyList,
    /// List of segment sizes of a variadic call.
    Segments,
    /// List of register pairs (source, target), copied in order.
    Remap,
    /// `u16` count and as many (block, remap) pairs.
    Cases,
}

/// What the table says of one opcode.
#[derive(Clone, Copy, Debug)]
struct OpInfo {
    page: Page,
    byte: u8,
    mnemonic: &'static str,
    operands: &'static [OperandKind],
    summary: &'static str,
}

macro_rules! define_opcodes {
    ($($page:ident $byte:literal $name:ident $mnemonic:literal [$($kind:ident)*] $summary:literal;)*) => {
        /// An operation of the virtual machine.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Opcode {
            $(#[doc = concat!("`", $mnemonic, "`: ", $summary)] $name,)*
        }

        /// The rows of the table, indexed by opcode.
        const OPS: &[OpInfo] = &[
            $(OpInfo {
                page: Page::$page,
                byte: $byte,
                mnemonic: $mnemonic,
                operands: &[$(OperandKind::$kind),*],
                summary: $summary,
            },)*
        ];

        /// All opcodes in table order.
        const ALL: &[Opcode] = &[$(Opcode::$name),*];
    };
}
for_each_op!(define_opcodes);

/// Opcodes of each page, indexed by the opcode byte.
static BY_BYTE: [[Option<Opcode>; 256]; 3] = {
    let mut pages = [[None; 256]; 3];
    let mut index = 0;
    while index < ALL.len() {
        let info = &OPS[index];
        let slot = &mut pages[info.page as usize][info.byte as usize];
        assert!(slot.is_none(), "two opcodes share a byte");
        *slot = Some(ALL[index]);
        index += 1;
    }
    assert!(
        pages[Page::Core as usize][BLOCK_MARKER as usize].is_none(),
        "the block marker is not an opcode"
    );
    pages
};

impl Opcode {
    /// Returns all opcodes in the order of the table.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        ALL
    }

    /// Returns the opcode that `byte` names on `page`.
    #[must_use]
    pub fn from_byte(page: Page, byte: u8) -> Option<Self> {
        BY_BYTE[page as usize][usize::from(byte)]
    }

    const fn info(self) -> &'static OpInfo {
        &OPS[self as usize]
    }

    /// Returns the page the opcode is on.
    #[must_use]
    pub const fn page(self) -> Page {
        self.info().page
    }

    /// Returns the opcode byte on its page.
    #[must_use]
    pub const fn byte(self) -> u8 {
        self.info().byte
    }

    /// Returns the name as IREE's assembler spells it, without the `vm.` prefix.
    #[must_use]
    pub const fn mnemonic(self) -> &'static str {
        self.info().mnemonic
    }

    /// Returns the kinds of the operands in encoding order.
    #[must_use]
    pub const fn operand_kinds(self) -> &'static [OperandKind] {
        self.info().operands
    }

    /// Returns one sentence on what the operation does.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.info().summary
    }

    /// Returns whether the operation ends its block.
    #[must_use]
    pub const fn is_terminator(self) -> bool {
        matches!(
            self,
            Self::Br
                | Self::CondBr
                | Self::BrTable
                | Self::Return
                | Self::Fail
                | Self::Yield
                | Self::CondBreak
                | Self::Break
                | Self::CallYieldable
                | Self::CallVariadicYieldable
        )
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mnemonic())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_opcode_is_found_by_its_byte() {
        for &op in Opcode::all() {
            assert_eq!(Opcode::from_byte(op.page(), op.byte()), Some(op));
        }
    }

    #[test]
    fn the_pages_have_the_documented_sizes() {
        let count = |page| Opcode::all().iter().filter(|op| op.page() == page).count();
        assert_eq!(
            (count(Page::Core), count(Page::ExtF32), count(Page::ExtF64)),
            (136, 63, 65)
        );
    }

    #[test]
    fn mnemonics_are_unique() {
        let names: HashSet<_> = Opcode::all().iter().map(|op| op.mnemonic()).collect();
        assert_eq!(names.len(), Opcode::all().len());
    }

    #[test]
    fn the_marker_and_the_prefixes_are_not_opcodes() {
        for byte in [BLOCK_MARKER, 0x89, 0xDF, 0xE0, 0xE1, 0xFF] {
            assert_eq!(Opcode::from_byte(Page::Core, byte), None, "{byte:#x}");
        }
    }

    #[test]
    fn every_summary_is_a_sentence() {
        for op in Opcode::all() {
            let summary = op.summary();
            assert!(
                summary.ends_with('.') && summary.len() > 4,
                "{op}: {summary}"
            );
        }
    }
}
