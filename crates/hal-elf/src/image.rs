//! [`Image`]: a file that has become running code.
//!
//! Loading has one order: check everything, map, copy, relocate, protect, run the initializers. No
//! foreign instruction runs before the last step, and no page is writable and executable at any
//! time. Facts: `docs/abi.md`, sections 10.2 and 10.6.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use crate::error::ElfError;
use crate::fatelf::{FatElf, is_fat_elf};
use crate::file::ElfFile;
use crate::machine::Target;
use crate::plan::LoadPlan;
use crate::sys::{self, Mapping, WritableMapping};

/// The code and data of a freestanding ELF file, mapped into this process and ready to run.
///
/// The image is independent of the bytes it was loaded from. Dropping it unmaps the memory; the
/// file's finalizers are never run. An image may be shared between threads: it only hands out
/// addresses, and what may be done with them is the contract of the code behind them.
#[derive(Debug)]
pub struct Image {
    mapping: Mapping,
    symbols: SymbolIndex,
}

impl Image {
    /// Loads a plain ELF file, or the member of a FatELF file that is for the host, and runs its
    /// initializers: `DT_INIT`, then `DT_INIT_ARRAY`, each as a C function without arguments.
    ///
    /// Nothing is supplied to the file: no libraries, no symbols, no thread-local storage. Its
    /// `DT_NEEDED` names are ignored, since a file that needs no symbol needs no library.
    ///
    /// # Errors
    ///
    /// An [`ElfError`] that says what is wrong with the file, or with the host. Everything is
    /// unmapped again, and no code has run.
    ///
    /// # Safety
    ///
    /// The initializers of the file must be sound to call in this process, on this thread. Its
    /// structure need not be trusted: it is checked.
    ///
    /// The image must outlive every use of an address inside it, such as those that
    /// [`symbol`](Self::symbol) returns: calls of its functions, also on other threads, and
    /// accesses to its data.
    pub unsafe fn load(bytes: &[u8]) -> Result<Self, ElfError> {
        let member = if is_fat_elf(bytes) {
            FatElf::parse(bytes)?.select(Target::HOST)?
        } else {
            bytes
        };
        let file = ElfFile::parse(member)?;
        if file.target() != Target::HOST {
            return Err(ElfError::Target {
                expected: Target::HOST,
                found: file.target(),
            });
        }
        let plan = LoadPlan::new(&file, sys::page_size())?;
        let mut memory = WritableMapping::new(plan.byte_length(), plan.alignment(), plan.start())?;
        let address = memory.address();
        plan.write_image(memory.bytes_mut(), address)?;
        let initializers = plan.initializers(memory.bytes_mut(), address)?;
        let symbols = SymbolIndex::new(&plan);
        let image = Self {
            mapping: memory.protect(plan.page_runs())?,
            symbols,
        };
        for offset in initializers {
            let address = image.mapping.at(offset);
            // SAFETY: the plan checked that the address is in an executable segment, which is mapped
            // and protected now, and the caller vouches that what is there is a sound initializer: a
            // C function that takes and returns nothing.
            let initializer: unsafe extern "C" fn() = unsafe { std::mem::transmute(address) };
            // SAFETY: as above; this is the one time that it is called.
            unsafe { initializer() }
        }
        Ok(image)
    }

    /// Returns the address of an exported symbol, or `None` when the file exports no memory under
    /// that name. Of several symbols with one name the last in the file's table counts.
    ///
    /// The address is inside the image, and valid as long as the image is. What is there, and how
    /// to call it, is the file's contract with its user.
    #[must_use]
    pub fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        let offset = self.symbols.find(name.to_bytes())?;
        Some(self.mapping.at(offset))
    }

    /// Returns the address of the first byte of the image. Useful to tell a debugger where the file
    /// is; the file's own address 0 may be elsewhere.
    #[must_use]
    pub fn base(&self) -> NonNull<c_void> {
        self.mapping.at(0)
    }

    /// Returns the bytes of memory the image takes: whole pages.
    #[must_use]
    pub fn byte_length(&self) -> usize {
        self.mapping.byte_length()
    }
}

/// The exported symbols of an image, sorted by name.
///
/// The names are copied once as a block, since the mapped string table belongs to the image's code.
#[derive(Debug)]
struct SymbolIndex {
    strings: Box<[u8]>,
    /// Sorted by name; no name occurs twice.
    entries: Box<[SymbolEntry]>,
}

/// One exported symbol: where its name is in the strings, and where it is in the image.
#[derive(Clone, Copy, Debug)]
struct SymbolEntry {
    name_start: usize,
    name_length: usize,
    offset: usize,
}

impl SymbolIndex {
    fn new(plan: &LoadPlan<'_>) -> Self {
        let strings: Box<[u8]> = plan.strings().into();
        let mut entries: Vec<SymbolEntry> = plan
            .lookup_entries()
            .map(|(symbol, offset)| SymbolEntry {
                name_start: symbol.name_start,
                name_length: symbol.name.len(),
                offset,
            })
            .collect();
        entries.reverse();
        entries.sort_by(|a, b| name_of(&strings, a).cmp(name_of(&strings, b)));
        // The sort is stable, so of equal names the one that came last in the table is first.
        entries.dedup_by(|later, first| name_of(&strings, later) == name_of(&strings, first));
        Self {
            strings,
            entries: entries.into_boxed_slice(),
        }
    }

    fn find(&self, name: &[u8]) -> Option<usize> {
        let found = self
            .entries
            .binary_search_by(|entry| name_of(&self.strings, entry).cmp(name));
        found.ok().map(|index| self.entries[index].offset)
    }
}

fn name_of<'s>(strings: &'s [u8], entry: &SymbolEntry) -> &'s [u8] {
    &strings[entry.name_start..entry.name_start + entry.name_length]
}
