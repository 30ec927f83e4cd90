//! [`LoadPlan`]: a file that passed every check of loading, before any memory is touched.
//!
//! A plan can be carried out on a heap buffer, for any supported machine on any host, which is how
//! it is tested; [`Image`](crate::Image) carries it out on mapped memory.

use std::fmt;

use crate::dynamic::Dynamic;
use crate::error::{ElfError, UndefinedSymbols, display_name};
use crate::file::ElfFile;
use crate::header::FileType;
use crate::layout::{ImageLayout, PageRun};
use crate::machine::Machine;
use crate::relocate::{self, Engine};
use crate::segment::SegmentKind;
use crate::symbol::{Symbol, SymbolKind};

/// What it takes to turn one file into a running image, for one page size.
///
/// Invariant: the file is a shared object with a dynamic section and a symbol table, needs no symbol
/// from elsewhere and no thread-local storage, has only relocations that are supported, and its
/// pages are never writable and executable at once. The host is not part of a plan.
pub struct LoadPlan<'a> {
    file: &'a ElfFile<'a>,
    dynamic: &'a Dynamic<'a>,
    symbols: &'a [Symbol<'a>],
    layout: ImageLayout,
}

impl<'a> LoadPlan<'a> {
    /// Checks that `file` can be loaded where pages have `page_size` bytes.
    ///
    /// # Errors
    ///
    /// An [`ElfError`] that names what stands in the way. Undefined symbols are reported all
    /// together, before anything that could follow from them.
    ///
    /// # Panics
    ///
    /// Panics if `page_size` is not a power of two.
    pub fn new(file: &'a ElfFile<'a>, page_size: usize) -> Result<Self, ElfError> {
        let header = file.header();
        if header.file_type != FileType::SHARED_OBJECT {
            return Err(ElfError::FileType {
                found: header.file_type,
            });
        }
        let dynamic = file.dynamic().ok_or(ElfError::MissingDynamicSection)?;
        let symbols = dynamic
            .symbols
            .as_deref()
            .ok_or(ElfError::MissingTag { tag: "DT_SYMTAB" })?;
        refuse_undefined(file)?;
        refuse_thread_local(file)?;
        refuse_indirect(symbols)?;
        relocate::check(file.target(), &dynamic.relocations)?;
        let layout = ImageLayout::new(file.segments(), file.bytes().len(), page_size)?;
        Ok(Self {
            file,
            dynamic,
            symbols,
            layout,
        })
    }

    /// Returns the bytes of memory the image takes: whole pages.
    #[must_use]
    pub fn byte_length(&self) -> usize {
        self.layout.byte_length()
    }

    /// Returns the address, in the file's own numbering, of the first byte of the image.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.layout.start()
    }

    /// Returns the alignment in bytes that the file asks for: the address an image runs at must
    /// differ from [`start`](Self::start) by a multiple of it.
    #[must_use]
    pub fn alignment(&self) -> usize {
        self.layout.alignment()
    }

    /// Returns what protection every page of the image needs, in order and without gaps.
    #[must_use]
    pub fn page_runs(&self) -> &[PageRun] {
        self.layout.runs()
    }

    /// Copies the segments into `memory` and relocates them for an image whose first byte runs at
    /// `load_address`. `memory` must be zero before.
    ///
    /// # Errors
    ///
    /// An [`ElfError`] that names the relocation at fault; the contents of `memory` are then
    /// unspecified.
    ///
    /// # Panics
    ///
    /// Panics if `memory` is not [`byte_length`](Self::byte_length) bytes long.
    pub fn write_image(&self, memory: &mut [u8], load_address: u64) -> Result<(), ElfError> {
        assert_eq!(
            memory.len(),
            self.byte_length(),
            "the memory must be as long as the image"
        );
        for segment in self.layout.segments() {
            let bytes = segment.file_bytes(self.file.bytes());
            let range = self
                .layout
                .memory_range(segment.address, segment.file_size)
                .expect("a laid out segment is in the image");
            memory[range].copy_from_slice(bytes);
        }
        let mut engine = Engine::new(
            self.file.target(),
            &self.layout,
            self.symbols,
            memory,
            load_address,
        );
        engine.run(&self.dynamic.relocations)
    }

    /// Returns where the initializers of a written image are, in the order they must be called, as
    /// offsets from its start: `DT_INIT`, then the entries of `DT_INIT_ARRAY`. `memory` and
    /// `load_address` are those that [`write_image`](Self::write_image) was given.
    ///
    /// The entries are read after relocation, when they are absolute addresses. Entries of 0 and of
    /// all ones mean "none".
    ///
    /// # Errors
    ///
    /// [`ElfError::InitializerArray`] if the array is not in the image, [`ElfError::Initializer`] if
    /// an initializer is not in an executable segment.
    ///
    /// # Panics
    ///
    /// Panics if `memory` is not [`byte_length`](Self::byte_length) bytes long.
    pub fn initializers(&self, memory: &[u8], load_address: u64) -> Result<Vec<usize>, ElfError> {
        assert_eq!(
            memory.len(),
            self.byte_length(),
            "the memory must be as long as the image"
        );
        let mut offsets = Vec::new();
        if let Some(address) = self.dynamic.init.filter(|&address| address != 0) {
            offsets.push(self.code_offset("DT_INIT", address)?);
        }
        let Some(array) = self
            .dynamic
            .init_array
            .filter(|array| array.byte_length != 0)
        else {
            return Ok(offsets);
        };
        let class = self.file.target().class;
        let word_size = class.word_size();
        let words = self
            .layout
            .memory_range(array.address, array.byte_length)
            .filter(|range| range.len() % word_size == 0)
            .ok_or(ElfError::InitializerArray {
                address: array.address,
                byte_length: array.byte_length,
            })?;
        let bias = load_address.wrapping_sub(self.layout.start());
        for word in memory[words].chunks_exact(word_size) {
            let address = self.file.target().byte_order.read(word);
            if address == 0 || address == class.max_address() {
                continue;
            }
            let file_address = address.wrapping_sub(bias) & class.max_address();
            offsets.push(self.code_offset("DT_INIT_ARRAY", file_address)?);
        }
        Ok(offsets)
    }

    /// Returns the image offset of a function given by its address in the file's own numbering.
    fn code_offset(&self, tag: &'static str, address: u64) -> Result<usize, ElfError> {
        // The lowest bit of a 32-bit Arm function address selects the instruction set.
        let is_arm = self.file.target().machine == Machine::ARM_32;
        let code = if is_arm { address & !1 } else { address };
        usize::try_from(address.wrapping_sub(self.layout.start()))
            .ok()
            .filter(|_| self.layout.is_executable(code))
            .ok_or(ElfError::Initializer { tag, address })
    }

    /// Returns the string table, which holds the names of all symbols.
    pub(crate) fn strings(&self) -> &'a [u8] {
        self.dynamic.strings
    }

    /// The symbols that can be looked up, in table order, each with its image offset: exported ones
    /// with memory behind them, which a plain number or an end marker has not.
    pub(crate) fn lookup_entries(&self) -> impl Iterator<Item = (&'a Symbol<'a>, usize)> + '_ {
        self.symbols
            .iter()
            .skip(1)
            .filter(|symbol| symbol.is_exported() && !symbol.is_absolute())
            .filter_map(|symbol| Some((symbol, self.layout.memory_range(symbol.value, 1)?.start)))
    }
}

impl fmt::Debug for LoadPlan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadPlan")
            .field("target", &self.file.target())
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

fn refuse_undefined(file: &ElfFile<'_>) -> Result<(), ElfError> {
    if file.undefined_symbols().next().is_none() {
        return Ok(());
    }
    let names = file.undefined_symbols().map(|symbol| symbol.name);
    Err(ElfError::Undefined(UndefinedSymbols::new(names)))
}

fn refuse_thread_local(file: &ElfFile<'_>) -> Result<(), ElfError> {
    let template = |kind, size| kind == SegmentKind::TLS && size > 0;
    match file
        .segments()
        .iter()
        .find(|segment| template(segment.kind, segment.memory_size))
    {
        None => Ok(()),
        Some(segment) => Err(ElfError::ThreadLocalStorage {
            memory_size: segment.memory_size,
        }),
    }
}

fn refuse_indirect(symbols: &[Symbol<'_>]) -> Result<(), ElfError> {
    match symbols
        .iter()
        .find(|symbol| symbol.kind == SymbolKind::INDIRECT_FUNCTION)
    {
        None => Ok(()),
        Some(symbol) => Err(ElfError::IndirectFunction {
            name: display_name(symbol.name),
        }),
    }
}
