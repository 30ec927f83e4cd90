//! Verification: the only way to a [`VerifiedModule`].
//!
//! A module is checked once, completely, when it is loaded: its description, every instruction of every function,
//! every operand. What the reference runtime leaves unchecked is checked too. See `docs/vm.md`, section "Verification".
//!
//! The work and memory are linear in the length of the file: function bodies may not overlap, so each byte is decoded
//! once, and the size of a call's lists is compared with the callee's before their entries are.

mod error;
mod function;
mod operands;
#[cfg(test)]
mod tests;

use core::ops::Range;

use vm::{Atom, CallingConvention, Item};

pub use error::{LoadError, VerifyError};

use crate::code::{Code, Instruction};
use crate::{Archive, Features, FunctionDescriptor, ModuleDef};

/// Alignment of function bodies in the bytecode.
const BODY_ALIGNMENT: usize = 8;

/// Globals a module may have beyond those its bytecode has room to name.
const SPARE_GLOBALS: u64 = 4096;

/// A module whose bytecode may be run.
///
/// Invariant, established by [`Self::load`], the only constructor, for the file it was given:
/// - every instruction, target, register, and ordinal exists, and registers are of the bank their place asks for;
/// - pairs start at even registers and their high word exists;
/// - calls and returns pass exactly the values of the calling convention, in registers that can hold them;
/// - imports and functions have well-formed calling conventions, those of functions without spans;
/// - every block ends with its only terminator, and the body of a function is nothing but blocks;
/// - value globals named by instructions lie in [`ModuleDef::global_bytes`], ranges of rodata in the file.
///
/// Not promised: types are known by name only, the values in registers are free, and a `fail` may be given status 0.
#[derive(Clone, Debug)]
pub struct VerifiedModule {
    def: ModuleDef,
    import_conventions: Vec<CallingConvention>,
    functions: Vec<VerifiedFunction>,
}

/// A function of a verified module.
#[derive(Clone, Debug)]
pub struct VerifiedFunction {
    convention: CallingConvention,
    features: Features,
    i32_register_count: u16,
    ref_register_count: u16,
    body: Range<usize>,
    blocks: Vec<Block>,
    code: Code,
}

/// A basic block: instructions of which only the last one is a terminator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    offset: u32,
    instructions: Range<usize>,
}

impl VerifiedModule {
    /// Reads and verifies the module in `file`.
    ///
    /// Offsets in the result refer to `file`, which the caller keeps.
    ///
    /// # Errors
    /// Fails when the file is not a module, is damaged, needs what this crate does not have, or does not verify.
    pub fn load(file: &[u8]) -> Result<Self, LoadError> {
        let archive = Archive::parse(file)?;
        let def = ModuleDef::parse(file, archive)?;
        Ok(Self::verify(def, file)?)
    }

    /// Verifies a description that was read from `file`.
    pub(crate) fn verify(def: ModuleDef, file: &[u8]) -> Result<Self, VerifyError> {
        check_requirements(&def)?;
        check_tables(&def)?;
        let bodies = function_bodies(&def)?;
        let import_conventions = import_conventions(&def)?;
        let conventions = function_conventions(&def)?;

        let module = function::ModuleView {
            def: &def,
            imports: &import_conventions,
            functions: &conventions,
        };
        let mut verified = Vec::with_capacity(def.functions.len());
        for (ordinal, (descriptor, body)) in (0u32..).zip(def.functions.iter().zip(bodies)) {
            let file_range = def.bytecode.start + body.start..def.bytecode.start + body.end;
            let function = function::verify(&module, ordinal, descriptor, file, file_range)
                .map_err(|error| VerifyError::Function {
                    function: def.function_label(ordinal),
                    error,
                })?;
            verified.push(function);
        }
        Ok(Self {
            def,
            import_conventions,
            functions: verified,
        })
    }

    /// Returns the description of the module.
    #[must_use]
    pub const fn def(&self) -> &ModuleDef {
        &self.def
    }

    /// Returns the description of the module, giving up the decoded functions.
    #[must_use]
    pub fn into_def(self) -> ModuleDef {
        self.def
    }

    /// Returns the calling conventions of the imports, by import ordinal.
    #[must_use]
    pub fn import_conventions(&self) -> &[CallingConvention] {
        &self.import_conventions
    }

    /// Returns the functions, by ordinal.
    #[must_use]
    pub fn functions(&self) -> &[VerifiedFunction] {
        &self.functions
    }
}

impl VerifiedFunction {
    /// Returns the calling convention. It has no spans.
    #[must_use]
    pub const fn convention(&self) -> &CallingConvention {
        &self.convention
    }

    /// Returns the features the function declares.
    #[must_use]
    pub const fn features(&self) -> Features {
        self.features
    }

    /// Returns the count of 32-bit registers, at most 0x7FFF.
    #[must_use]
    pub const fn i32_register_count(&self) -> u16 {
        self.i32_register_count
    }

    /// Returns the count of ref registers, at most 0x3FFF.
    #[must_use]
    pub const fn ref_register_count(&self) -> u16 {
        self.ref_register_count
    }

    /// Returns the range of the body in the file.
    #[must_use]
    pub fn body(&self) -> Range<usize> {
        self.body.clone()
    }

    /// Returns the blocks in the order of the body. There is at least one; the function starts with the first.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the index in [`Self::blocks`] of the block whose marker is at `offset`, as
    /// [`Operand::Block`](crate::Operand::Block) has it, or `None` if there is none.
    #[must_use]
    pub fn block_index(&self, offset: u32) -> Option<usize> {
        self.blocks
            .binary_search_by_key(&offset, Block::offset)
            .ok()
    }

    /// Returns the instructions of a block of this function.
    ///
    /// # Panics
    /// May panic if the block is of another function.
    pub fn instructions(
        &self,
        block: &Block,
    ) -> impl ExactSizeIterator<Item = Instruction<'_>> + Clone + use<'_> {
        block
            .instructions()
            .map(|index| self.code.instruction(index))
    }
}

impl Block {
    pub(crate) const fn new(offset: u32, instructions: Range<usize>) -> Self {
        Self {
            offset,
            instructions,
        }
    }

    /// Returns the offset of the marker in the function body.
    #[must_use]
    pub const fn offset(&self) -> u32 {
        self.offset
    }

    /// Returns the indices of the instructions in the code of the function.
    pub(crate) fn instructions(&self) -> Range<usize> {
        self.instructions.clone()
    }
}

impl ModuleDef {
    /// Returns how to name a function in a message: its exported name, or its ordinal.
    pub(crate) fn function_label(&self, ordinal: u32) -> String {
        match self.export_name(ordinal) {
            Some(name) => format!("`{}.{name}`", self.name),
            None => format!("`{}` @{ordinal}", self.name),
        }
    }
}

/// Checks that this crate can run the module at all.
///
/// The version comes first: a newer version may explain an unknown feature, not the other way round.
fn check_requirements(def: &ModuleDef) -> Result<(), VerifyError> {
    if def.bytecode_version.releases().is_none() {
        return Err(VerifyError::Version {
            module: def.name.clone(),
            found: def.bytecode_version,
        });
    }
    let missing = def.features.without(Features::SUPPORTED);
    if missing != Features::NONE {
        return Err(VerifyError::Features {
            what: format!("module `{}`", def.name),
            missing,
        });
    }
    for (ordinal, function) in (0u32..).zip(&def.functions) {
        let missing = function.features.without(Features::SUPPORTED);
        if missing != Features::NONE {
            return Err(VerifyError::Features {
                what: format!("function {}", def.function_label(ordinal)),
                missing,
            });
        }
    }
    Ok(())
}

/// Checks that the tables of the description agree with each other.
fn check_tables(def: &ModuleDef) -> Result<(), VerifyError> {
    let function_count = def.functions.len();
    if def.signatures.len() != function_count {
        return Err(VerifyError::SignatureCount {
            module: def.name.clone(),
            signatures: def.signatures.len(),
            functions: function_count,
        });
    }
    for export in &def.exports {
        if export.function as usize >= function_count {
            return Err(VerifyError::ExportOrdinal {
                module: def.name.clone(),
                export: export.name.clone(),
                ordinal: export.function,
                functions: function_count,
            });
        }
    }
    // Each global has at least a load or a store of 7 bytes, so more globals than bytes serve nothing but to make a
    // small file ask for much memory.
    let room = def.bytecode.len() as u64 + SPARE_GLOBALS;
    let globals = [
        ("bytes of value globals", def.global_bytes, room * 8),
        ("ref globals", def.global_refs, room),
    ];
    for (what, found, limit) in globals {
        if u64::from(found) > limit {
            return Err(VerifyError::GlobalCount {
                module: def.name.clone(),
                what,
                found,
                limit,
            });
        }
    }
    Ok(())
}

/// Returns the range of each function body in the bytecode.
fn function_bodies(def: &ModuleDef) -> Result<Vec<Range<usize>>, VerifyError> {
    let bodies = (0u32..)
        .zip(&def.functions)
        .map(|(ordinal, descriptor)| {
            function_body(descriptor, def.bytecode.len()).ok_or_else(|| VerifyError::Body {
                function: def.function_label(ordinal),
                offset: descriptor.bytecode_offset,
                length: descriptor.bytecode_length,
                available: def.bytecode.len(),
            })
        })
        .collect::<Result<Vec<_>, _>>()?;

    let mut order: Vec<usize> = (0..bodies.len()).collect();
    order.sort_unstable_by_key(|&index| bodies[index].start);
    for pair in order.array_windows() {
        let [before, after] = pair.map(|index| &bodies[index]);
        if before.end > after.start {
            let [first, second] =
                pair.map(|index| def.function_label(u32::try_from(index).unwrap_or(u32::MAX)));
            return Err(VerifyError::BodyOverlap { first, second });
        }
    }
    Ok(bodies)
}

/// Returns the range of a function body in bytecode of `available` bytes, if the descriptor is sound.
fn function_body(descriptor: &FunctionDescriptor, available: usize) -> Option<Range<usize>> {
    let start = usize::try_from(descriptor.bytecode_offset)
        .ok()
        .filter(|start| start.is_multiple_of(BODY_ALIGNMENT))?;
    let length = usize::try_from(descriptor.bytecode_length)
        .ok()
        .filter(|&length| length > 0)?;
    let end = start.checked_add(length).filter(|&end| end <= available)?;
    Some(start..end)
}

fn import_conventions(def: &ModuleDef) -> Result<Vec<CallingConvention>, VerifyError> {
    def.imports
        .iter()
        .map(|import| {
            CallingConvention::parse(&import.signature.calling_convention).map_err(|error| {
                VerifyError::Convention {
                    what: format!("import `{}` of module `{}`", import.full_name, def.name),
                    error,
                }
            })
        })
        .collect()
}

fn function_conventions(def: &ModuleDef) -> Result<Vec<CallingConvention>, VerifyError> {
    (0u32..)
        .zip(&def.signatures)
        .map(|(ordinal, signature)| {
            let convention =
                CallingConvention::parse(&signature.calling_convention).map_err(|error| {
                    VerifyError::Convention {
                        what: format!("function {}", def.function_label(ordinal)),
                        error,
                    }
                })?;
            if convention.has_spans() {
                return Err(VerifyError::FunctionSpans {
                    function: def.function_label(ordinal),
                    convention,
                });
            }
            Ok(convention)
        })
        .collect()
}

/// Returns how many registers of each bank the arguments of a function take: (32-bit, ref).
pub(crate) fn argument_registers(convention: &CallingConvention) -> (usize, usize) {
    let (mut i32_count, mut ref_count) = (0usize, 0usize);
    for item in convention.arguments() {
        match item {
            Item::Atom(Atom::I32 | Atom::F32) => i32_count += 1,
            Item::Atom(Atom::I64 | Atom::F64) => i32_count = i32_count.next_multiple_of(2) + 2,
            Item::Atom(Atom::Ref) => ref_count += 1,
            Item::Span(_) => unreachable!("a function with spans is refused before"),
        }
    }
    (i32_count, ref_count)
}
