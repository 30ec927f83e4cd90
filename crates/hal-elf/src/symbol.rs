//! Dynamic symbols and the string table that names them.
//!
//! Reading a table checks every name, so a [`Symbol`] always has one. Facts: the ELF specification,
//! "Symbol Table" and "String Table".

use core::ffi::CStr;

use object::elf;
use object::endian::Endianness;
use object::read::elf::Sym;

use crate::error::{ElfError, StringFault};

/// The longest name that is accepted, in bytes.
///
/// Many symbols may share one string, so this is what keeps the time to read a table in proportion
/// to its size.
pub const MAX_NAME_LENGTH: usize = 0xFFFF;

/// One entry of the dynamic symbol table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symbol<'a> {
    /// The name without its terminator; any bytes but 0.
    pub name: &'a [u8],
    /// `st_name`: where the name starts in the string table.
    pub(crate) name_start: usize,
    /// `st_value`: for a defined symbol usually its address in the file's own numbering.
    pub value: u64,
    /// `st_size` in bytes, 0 when unknown.
    pub size: u64,
    /// `st_shndx`: the section that defines the symbol, or a reserved number.
    pub section: u16,
    /// The binding half of `st_info`.
    pub binding: SymbolBinding,
    /// The type half of `st_info`.
    pub kind: SymbolKind,
}

/// The binding of a symbol: who sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct SymbolBinding(pub u8);

impl SymbolBinding {
    /// Visible inside the file only: `STB_LOCAL`.
    pub const LOCAL: Self = Self(0);
    /// Visible everywhere: `STB_GLOBAL`.
    pub const GLOBAL: Self = Self(1);
    /// Visible everywhere, giving way to a global one: `STB_WEAK`.
    pub const WEAK: Self = Self(2);
}

/// The type of a symbol: what its value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct SymbolKind(pub u8);

impl SymbolKind {
    /// Data: `STT_OBJECT`.
    pub const OBJECT: Self = Self(1);
    /// Code: `STT_FUNC`.
    pub const FUNCTION: Self = Self(2);
    /// An offset in thread-local storage: `STT_TLS`.
    pub const THREAD_LOCAL: Self = Self(6);
    /// A function that chooses a function at load time: `STT_GNU_IFUNC`.
    pub const INDIRECT_FUNCTION: Self = Self(10);
}

impl Symbol<'_> {
    /// Returns whether another file must supply the symbol.
    #[must_use]
    pub const fn is_undefined(&self) -> bool {
        self.section == elf::SHN_UNDEF.0
    }

    /// Returns whether the value is a plain number that does not move with the image.
    #[must_use]
    pub const fn is_absolute(&self) -> bool {
        self.section == elf::SHN_ABS.0
    }

    /// Returns whether the file defines the symbol and offers it to others.
    #[must_use]
    pub fn is_exported(&self) -> bool {
        !self.is_undefined() && matches!(self.binding, SymbolBinding::GLOBAL | SymbolBinding::WEAK)
    }
}

/// Reads a whole symbol table.
pub(crate) fn read<'a, S>(
    table: &[S],
    endian: Endianness,
    strings: &'a [u8],
) -> Result<Vec<Symbol<'a>>, ElfError>
where
    S: Sym<Endian = Endianness>,
{
    let read_one = |(index, raw): (usize, &S)| {
        let offset = u64::from(raw.st_name(endian));
        let name = string(strings, offset).map_err(|fault| ElfError::String {
            user: "symbol",
            index,
            offset,
            fault,
        })?;
        Ok(Symbol {
            name,
            name_start: raw.st_name(endian) as usize,
            value: raw.st_value(endian).into(),
            size: raw.st_size(endian).into(),
            section: raw.st_shndx(endian).0,
            binding: SymbolBinding(raw.st_bind().0),
            kind: SymbolKind(raw.st_type().0),
        })
    };
    table.iter().enumerate().map(read_one).collect()
}

/// The string at an offset of a string table. Offset 0 is the empty name, whatever the table holds.
pub(crate) fn string(strings: &[u8], offset: u64) -> Result<&[u8], StringFault> {
    if offset == 0 {
        return Ok(&[]);
    }
    let rest = usize::try_from(offset)
        .ok()
        .and_then(|offset| strings.get(offset..))
        .filter(|rest| !rest.is_empty())
        .ok_or(StringFault::OutsideTable {
            table_length: strings.len(),
        })?;
    let window = &rest[..rest.len().min(MAX_NAME_LENGTH + 1)];
    match CStr::from_bytes_until_nul(window) {
        Ok(name) => Ok(name.to_bytes()),
        Err(_) if window.len() == rest.len() => Err(StringFault::NoTerminator),
        Err(_) => Err(StringFault::TooLong {
            limit: MAX_NAME_LENGTH,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_ends_at_its_terminator() {
        assert_eq!(string(b"\0one\0two\0", 1), Ok(&b"one"[..]));
        assert_eq!(string(b"\0one\0two\0", 6), Ok(&b"wo"[..]));
        assert_eq!(string(b"", 0), Ok(&b""[..]));
    }

    #[test]
    fn a_string_past_the_table_is_refused() {
        let fault = Err(StringFault::OutsideTable { table_length: 5 });
        assert_eq!(string(b"\0one\0", 5), fault);
        assert_eq!(string(b"\0one\0", u64::MAX), fault);
    }

    #[test]
    fn a_string_without_terminator_is_refused() {
        assert_eq!(string(b"\0one", 1), Err(StringFault::NoTerminator));
    }

    #[test]
    fn a_string_longer_than_the_limit_is_refused() {
        let mut table = vec![b'a'; MAX_NAME_LENGTH + 3];
        table.push(0);
        assert_eq!(
            string(&table, 1),
            Err(StringFault::TooLong {
                limit: MAX_NAME_LENGTH
            })
        );
        assert_eq!(string(&table, 3).map(<[u8]>::len), Ok(MAX_NAME_LENGTH));
    }
}
