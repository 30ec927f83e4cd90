//! The description of a module: what its flatbuffer says, owned, with ranges of the file for the large parts.
//!
//! Data only, read by [`crate::schema`]. Its structure is sound; whether its numbers agree with each other and the
//! bytecode is the matter of [`crate::verify`], so that a module which cannot run can still be described.

use core::ops::Range;

use crate::{Archive, BytecodeVersion, Features};

/// What a module file says of itself.
///
/// Names are not unique and need not make sense. Ranges lie in the file the description was read from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModuleDef {
    /// Where the parts of the module lie in its file.
    pub archive: Archive,
    /// Name of the module; not empty.
    pub name: String,
    /// Version of the module, for dependents to check.
    pub version: u32,
    /// Features the runtime must have.
    pub features: Features,
    /// Version of the bytecode format.
    pub bytecode_version: BytecodeVersion,
    /// Reflection attributes of the module.
    pub attributes: Vec<Attribute>,
    /// Full names of the types instructions refer to by index, such as `i32` and `!vm.buffer`; none is empty.
    pub types: Vec<String>,
    /// Modules this one needs.
    pub dependencies: Vec<Dependency>,
    /// Functions this module imports, by import ordinal.
    pub imports: Vec<Import>,
    /// Functions this module exports, by export ordinal.
    pub exports: Vec<Export>,
    /// Signatures of the functions of this module, by function ordinal.
    pub signatures: Vec<Signature>,
    /// Functions of this module as described, by function ordinal.
    pub functions: Vec<FunctionDescriptor>,
    /// Read-only data segments.
    pub rodata: Vec<RodataSegment>,
    /// Bytes of the value globals.
    pub global_bytes: u32,
    /// Count of the ref globals.
    pub global_refs: u32,
    /// Range of the file with all function bodies.
    pub bytecode: Range<usize>,
    /// Whether there are names and source locations of functions; see [`crate::DebugDatabase`].
    pub has_debug_database: bool,
}

/// A reflection attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attribute {
    /// Name, such as `iree.abi.declaration`.
    pub key: String,
    /// Value as text.
    pub value: String,
}

/// A module that this one needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dependency {
    /// Name of the module; not empty.
    pub name: String,
    /// Least version that will do.
    pub minimum_version: u32,
    /// Whether this module loads without it.
    pub optional: bool,
}

/// A function this module imports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Import {
    /// Name of the module, a dot, and the name of the function; not empty, the dot may be missing.
    pub full_name: String,
    /// Whether this module loads without it.
    pub optional: bool,
    /// How it is called.
    pub signature: Signature,
}

/// A function this module exports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Export {
    /// Name; not empty.
    pub name: String,
    /// Ordinal of the function. [`crate::VerifiedModule`] has checked that it exists.
    pub function: u32,
}

/// How a function is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signature {
    /// Calling-convention string; empty for a function without arguments and results.
    pub calling_convention: String,
    /// Reflection attributes.
    pub attributes: Vec<Attribute>,
}

/// Descriptor of a function, as the file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionDescriptor {
    /// Byte offset of the body in the bytecode.
    pub bytecode_offset: i32,
    /// Byte length of the body.
    pub bytecode_length: i32,
    /// Features the function uses.
    pub features: Features,
    /// Count of basic blocks.
    pub block_count: i16,
    /// Count of 32-bit registers.
    pub i32_register_count: i16,
    /// Count of ref registers.
    pub ref_register_count: i16,
}

/// A segment of read-only data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RodataSegment {
    /// Range of the file. Reading the description has checked that the file has it.
    pub range: Range<usize>,
    /// Whether the segment lies in the flatbuffer or after it.
    pub placement: RodataPlacement,
}

/// Where a rodata segment lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RodataPlacement {
    /// In the flatbuffer.
    Embedded,
    /// After the flatbuffer, where it keeps the alignment its writer chose, relative to the start of the file.
    External,
}

impl ModuleDef {
    /// Returns the name of an export of the function, the first if there are several.
    #[must_use]
    pub fn export_name(&self, function: u32) -> Option<&str> {
        self.exports
            .iter()
            .find(|export| export.function == function)
            .map(|export| export.name.as_str())
    }

    /// Returns the byte length of the module in its file, without what may follow, such as a ZIP directory.
    #[must_use]
    pub fn byte_length(&self) -> usize {
        let external = self
            .rodata
            .iter()
            .filter(|segment| segment.placement == RodataPlacement::External);
        external
            .map(|segment| segment.range.end)
            .fold(self.archive.flatbuffer().end, usize::max)
    }
}

impl Signature {
    /// Returns the value of the attribute `key`.
    #[must_use]
    pub fn attribute(&self, key: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|attribute| attribute.key == key)
            .map(|attribute| attribute.value.as_str())
    }
}
