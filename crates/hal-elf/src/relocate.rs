//! The relocation engine: adjusts the bytes of an image for the address it will run at.
//!
//! The engine is pure: it works on a byte slice and a number, for every supported machine on any
//! host, so a heap buffer serves as well as mapped memory. It holds no pointer and runs no code.
//! Semantics: each machine's ABI document; the set of types: `docs/abi.md`, section 10.4.

use core::ops::Range;

use object::elf::{self, RelocationType};

use crate::error::ElfError;
use crate::layout::ImageLayout;
use crate::machine::{ByteOrder, Class, Machine, Target};
use crate::relocation::{Relocation, RelocationKind, Relocations};
use crate::symbol::Symbol;

/// Checks, without touching memory, that every relocation is one that [`Engine`] can apply.
pub(crate) fn check(target: Target, relocations: &Relocations) -> Result<(), ElfError> {
    let rules = Rules::of(target)?;
    relocations
        .entries
        .iter()
        .try_for_each(|entry| rules.action(entry).map(drop))
}

/// One image being relocated.
#[derive(Debug)]
pub(crate) struct Engine<'a> {
    target: Target,
    layout: &'a ImageLayout,
    symbols: &'a [Symbol<'a>],
    /// The bytes of the image, the first one at `layout.start()`.
    memory: &'a mut [u8],
    /// What is added to an address of the file to get one of the running image.
    bias: u64,
}

impl<'a> Engine<'a> {
    /// Prepares to relocate `memory`, the image that `layout` describes, for an image whose first
    /// byte runs at `load_address`.
    ///
    /// # Panics
    ///
    /// Panics if `memory` is not as long as the image.
    pub(crate) fn new(
        target: Target,
        layout: &'a ImageLayout,
        symbols: &'a [Symbol<'a>],
        memory: &'a mut [u8],
        load_address: u64,
    ) -> Self {
        assert_eq!(
            memory.len(),
            layout.byte_length(),
            "the memory must be as long as the image"
        );
        Self {
            target,
            layout,
            symbols,
            memory,
            bias: load_address.wrapping_sub(layout.start()),
        }
    }

    /// Applies every relocation.
    pub(crate) fn run(&mut self, relocations: &Relocations) -> Result<(), ElfError> {
        let rules = Rules::of(self.target)?;
        for place in relocations.packed_places() {
            self.apply_packed(place)?;
        }
        for entry in &relocations.entries {
            if let Some(rule) = rules.action(entry)? {
                self.apply(rule, entry)?;
            }
        }
        Ok(())
    }

    /// Adds the bias to the word at `offset`, which is all that a packed relocation means.
    fn apply_packed(&mut self, offset: u64) -> Result<(), ElfError> {
        let range = self
            .layout
            .memory_range(offset, self.target.class.word_size() as u64)
            .ok_or(ElfError::PackedRelocationOutsideImage { offset })?;
        let value = self.read_signed(range.clone()).wrapping_add(self.bias);
        self.write(range, value);
        Ok(())
    }

    fn apply(&mut self, rule: Rule, entry: &Relocation) -> Result<(), ElfError> {
        let kind = RelocationKind {
            machine: self.target.machine,
            number: entry.number,
        };
        let width = rule.field.width(self.target.class);
        let range = self.layout.memory_range(entry.offset, width as u64).ok_or(
            ElfError::RelocationOutsideImage {
                kind,
                offset: entry.offset,
                width,
            },
        )?;
        let addend = match entry.addend {
            Some(addend) => addend.cast_unsigned(),
            None => self.read_signed(range.clone()),
        };
        let value = match rule.value {
            Value::BaseAddend => self.bias.wrapping_add(addend),
            Value::Symbol => self.symbol_address(kind, entry)?,
            Value::SymbolAddend => self.symbol_address(kind, entry)?.wrapping_add(addend),
            Value::SymbolAddendPlace => self
                .symbol_address(kind, entry)?
                .wrapping_add(addend)
                .wrapping_sub(self.bias.wrapping_add(entry.offset)),
        };
        if !rule.field.fits(value, self.target.class) {
            return Err(ElfError::RelocationOverflow {
                kind,
                offset: entry.offset,
                value,
            });
        }
        self.write(range, value);
        Ok(())
    }

    /// The `S` of the ABI documents: 0 without a symbol.
    fn symbol_address(&self, kind: RelocationKind, entry: &Relocation) -> Result<u64, ElfError> {
        if entry.symbol == 0 {
            return Ok(0);
        }
        let symbol = usize::try_from(entry.symbol)
            .ok()
            .and_then(|index| self.symbols.get(index))
            .ok_or(ElfError::RelocationSymbol {
                kind,
                offset: entry.offset,
                symbol: entry.symbol,
                symbol_count: self.symbols.len(),
            })?;
        if symbol.is_absolute() {
            return Ok(symbol.value);
        }
        // One past the end is a fair address: linkers define symbols there.
        if symbol.value < self.layout.start() || symbol.value > self.layout.end() {
            return Err(ElfError::symbol_outside_image(symbol));
        }
        Ok(self.bias.wrapping_add(symbol.value))
    }

    /// Reads the 4 or 8 bytes of `range`, sign-extended.
    fn read_signed(&self, range: Range<usize>) -> u64 {
        let bytes = &self.memory[range];
        let value = self.target.byte_order.read(bytes);
        let unused_bits = 64 - 8 * bytes.len();
        ((value << unused_bits).cast_signed() >> unused_bits).cast_unsigned()
    }

    /// Stores the low bytes of `value` in the 4 or 8 bytes of `range`.
    fn write(&mut self, range: Range<usize>, value: u64) {
        let bytes = &mut self.memory[range];
        match self.target.byte_order {
            ByteOrder::Little => bytes.copy_from_slice(&value.to_le_bytes()[..bytes.len()]),
            ByteOrder::Big => bytes.copy_from_slice(&value.to_be_bytes()[8 - bytes.len()..]),
        }
    }
}

/// What a relocation computes, in the letters of the ABI documents: `S` symbol address, `A` addend,
/// `B` load bias, `P` address of the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// `S`
    Symbol,
    /// `S + A`
    SymbolAddend,
    /// `S + A - P`
    SymbolAddendPlace,
    /// `B + A`
    BaseAddend,
}

/// What a relocation stores, and which values fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// A word of the class. Every value fits, since addresses wrap around.
    Word,
    /// 32 bits that the code will zero-extend.
    Unsigned32,
    /// 32 bits that the code will sign-extend.
    Signed32,
    /// 32 bits that the code may extend either way.
    Either32,
}

impl Field {
    const fn width(self, class: Class) -> usize {
        match self {
            Self::Word => class.word_size(),
            Self::Unsigned32 | Self::Signed32 | Self::Either32 => 4,
        }
    }

    /// Returns whether a value, computed with 64 bits, survives being stored.
    fn fits(self, value: u64, class: Class) -> bool {
        if class == Class::Elf32 {
            return true;
        }
        let unsigned = u32::try_from(value).is_ok();
        let signed = i32::try_from(value.cast_signed()).is_ok();
        match self {
            Self::Word => true,
            Self::Unsigned32 => unsigned,
            Self::Signed32 => signed,
            Self::Either32 => unsigned || signed,
        }
    }
}

/// How one relocation type is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    value: Value,
    field: Field,
}

/// What is known of one type: nothing to do, a rule, or (outer `None`) an unsupported type.
type Known = Option<Option<Rule>>;

/// The relocation types of one machine.
#[derive(Clone, Copy, Debug)]
struct Rules {
    target: Target,
    table: fn(RelocationType) -> Known,
    /// Whether addends are in the entries (RELA) or at the places (REL).
    has_addends: bool,
}

impl Rules {
    fn of(target: Target) -> Result<Self, ElfError> {
        let rules = |table, has_addends| {
            Ok(Self {
                target,
                table,
                has_addends,
            })
        };
        match (target.machine, target.class) {
            (Machine::X86_64, Class::Elf64) => rules(x86_64, true),
            (Machine::X86_32, Class::Elf32) => rules(x86_32, false),
            (Machine::ARM_64, Class::Elf64) => rules(arm_64, true),
            (Machine::ARM_32, Class::Elf32) => rules(arm_32, false),
            (Machine::RISCV, Class::Elf64) => rules(riscv_64, true),
            (Machine::RISCV, Class::Elf32) => rules(riscv_32, true),
            _ => Err(ElfError::UnsupportedMachine { target }),
        }
    }

    /// Returns the rule for an entry, `None` when there is nothing to do.
    fn action(&self, entry: &Relocation) -> Result<Option<Rule>, ElfError> {
        if entry.addend.is_some() != self.has_addends {
            let format = |has_addends| if has_addends { "RELA" } else { "REL" };
            return Err(ElfError::RelocationFormat {
                target: self.target,
                expected: format(self.has_addends),
                found: format(!self.has_addends),
            });
        }
        (self.table)(RelocationType(entry.number)).ok_or(ElfError::UnsupportedRelocation {
            kind: RelocationKind {
                machine: self.target.machine,
                number: entry.number,
            },
            offset: entry.offset,
        })
    }
}

const NOTHING: Known = Some(None);

const fn rule(value: Value, field: Field) -> Known {
    Some(Some(Rule { value, field }))
}

const fn x86_64(kind: RelocationType) -> Known {
    match kind {
        elf::R_X86_64_NONE => NOTHING,
        elf::R_X86_64_64 => rule(Value::SymbolAddend, Field::Word),
        elf::R_X86_64_PC32 => rule(Value::SymbolAddendPlace, Field::Signed32),
        elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => rule(Value::Symbol, Field::Word),
        elf::R_X86_64_RELATIVE => rule(Value::BaseAddend, Field::Word),
        elf::R_X86_64_32 => rule(Value::SymbolAddend, Field::Unsigned32),
        elf::R_X86_64_32S => rule(Value::SymbolAddend, Field::Signed32),
        elf::R_X86_64_PC64 => rule(Value::SymbolAddendPlace, Field::Word),
        _ => None,
    }
}

const fn x86_32(kind: RelocationType) -> Known {
    match kind {
        elf::R_386_NONE => NOTHING,
        elf::R_386_32 => rule(Value::SymbolAddend, Field::Word),
        elf::R_386_PC32 => rule(Value::SymbolAddendPlace, Field::Word),
        elf::R_386_GLOB_DAT | elf::R_386_JMP_SLOT => rule(Value::Symbol, Field::Word),
        elf::R_386_RELATIVE => rule(Value::BaseAddend, Field::Word),
        _ => None,
    }
}

const fn arm_64(kind: RelocationType) -> Known {
    match kind {
        elf::R_AARCH64_NONE => NOTHING,
        elf::R_AARCH64_ABS64 | elf::R_AARCH64_GLOB_DAT | elf::R_AARCH64_JUMP_SLOT => {
            rule(Value::SymbolAddend, Field::Word)
        }
        elf::R_AARCH64_RELATIVE => rule(Value::BaseAddend, Field::Word),
        _ => None,
    }
}

const fn arm_32(kind: RelocationType) -> Known {
    match kind {
        elf::R_ARM_NONE => NOTHING,
        elf::R_ARM_ABS32 => rule(Value::SymbolAddend, Field::Word),
        elf::R_ARM_REL32 => rule(Value::SymbolAddendPlace, Field::Word),
        elf::R_ARM_GLOB_DAT | elf::R_ARM_JUMP_SLOT => rule(Value::Symbol, Field::Word),
        elf::R_ARM_RELATIVE => rule(Value::BaseAddend, Field::Word),
        _ => None,
    }
}

const fn riscv_64(kind: RelocationType) -> Known {
    match kind {
        elf::R_RISCV_NONE => NOTHING,
        elf::R_RISCV_32 => rule(Value::SymbolAddend, Field::Either32),
        elf::R_RISCV_64 => rule(Value::SymbolAddend, Field::Word),
        elf::R_RISCV_RELATIVE => rule(Value::BaseAddend, Field::Word),
        elf::R_RISCV_JUMP_SLOT => rule(Value::Symbol, Field::Word),
        _ => None,
    }
}

const fn riscv_32(kind: RelocationType) -> Known {
    match kind {
        elf::R_RISCV_NONE => NOTHING,
        elf::R_RISCV_32 => rule(Value::SymbolAddend, Field::Word),
        elf::R_RISCV_RELATIVE => rule(Value::BaseAddend, Field::Word),
        elf::R_RISCV_JUMP_SLOT => rule(Value::Symbol, Field::Word),
        _ => None,
    }
}
