//! The flatbuffer schema of a module: field slots, defaults, and the walk that makes a [`ModuleDef`].
//!
//! Checks the structure and that each name and range is there; see `docs/vm.md`, section "Flatbuffer schema". Fields
//! that neither compilers write nor runtimes read (`rwdata_segments`) are skipped.

#[cfg(test)]
mod tests;

use vm::StatusCode;

use crate::flatbuffer::{Field, FieldError, FlatBuffer, Problem, Table};
use crate::module_def::{
    Attribute, Dependency, Export, FunctionDescriptor, Import, ModuleDef, RodataPlacement,
    RodataSegment, Signature,
};
use crate::{Archive, BytecodeVersion, Features};

/// Slots of `BytecodeModuleDef`.
mod module {
    use crate::flatbuffer::Field;

    pub(super) const NAME: Field = Field(0, "name");
    pub(super) const VERSION: Field = Field(1, "version");
    pub(super) const REQUIREMENTS: Field = Field(2, "requirements");
    pub(super) const ATTRS: Field = Field(3, "attrs");
    pub(super) const TYPES: Field = Field(4, "types");
    pub(super) const DEPENDENCIES: Field = Field(5, "dependencies");
    pub(super) const IMPORTED_FUNCTIONS: Field = Field(6, "imported_functions");
    pub(super) const EXPORTED_FUNCTIONS: Field = Field(7, "exported_functions");
    pub(super) const FUNCTION_SIGNATURES: Field = Field(8, "function_signatures");
    pub(super) const RODATA_SEGMENTS: Field = Field(9, "rodata_segments");
    pub(super) const MODULE_STATE: Field = Field(11, "module_state");
    pub(super) const FUNCTION_DESCRIPTORS: Field = Field(12, "function_descriptors");
    pub(super) const BYTECODE_VERSION: Field = Field(13, "bytecode_version");
    pub(super) const BYTECODE_DATA: Field = Field(14, "bytecode_data");
}

/// Slot of the debug database in the root table, which is read on its own.
pub(crate) const DEBUG_DATABASE: Field = Field(15, "debug_database");

/// Bit of the flags of a dependency or import that lets a module load without it.
const FLAG_OPTIONAL: u32 = 0x2;
/// Flags of a dependency or import that has none: required.
const DEFAULT_FLAGS: u32 = 0x1;

/// Bytes of a `FunctionDescriptor`.
const DESCRIPTOR_LENGTH: usize = 20;

impl FieldError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self.problem {
            Problem::TooManyVisits => StatusCode::RESOURCE_EXHAUSTED,
            Problem::PastEnd { .. }
            | Problem::VtableDistance { .. }
            | Problem::VtableSize { .. }
            | Problem::OutsideTable { .. }
            | Problem::Missing
            | Problem::Unterminated
            | Problem::NotUtf8
            | Problem::Empty
            | Problem::LongName { .. }
            | Problem::Negative { .. }
            | Problem::UnknownKind { .. }
            | Problem::OutsideFile { .. } => StatusCode::INVALID_ARGUMENT,
        }
    }
}

impl ModuleDef {
    /// Reads the description of the module that `archive` found in `file`.
    ///
    /// The result says what the file says; it is not verified, so it also describes a module of another version.
    ///
    /// # Errors
    /// Fails when the flatbuffer is not sound, or lacks a name or a range it must have.
    ///
    /// # Panics
    /// May panic if `archive` is not of `file`.
    pub fn parse(file: &[u8], archive: Archive) -> Result<Self, FieldError> {
        let range = archive.flatbuffer();
        let buffer = FlatBuffer::new(&file[range.clone()], range.start);
        let root = buffer.root("BytecodeModuleDef")?;

        let name = root.name(module::NAME)?.to_owned();
        let types = root
            .tables(module::TYPES, "TypeDef")?
            .collect(|table| Ok(table.name(Field(0, "full_name"))?.to_owned()))?;
        let dependencies = root
            .tables(module::DEPENDENCIES, "ModuleDependencyDef")?
            .collect(dependency)?;
        let imports = root
            .tables(module::IMPORTED_FUNCTIONS, "ImportFunctionDef")?
            .collect(import)?;
        let exports = root
            .tables(module::EXPORTED_FUNCTIONS, "ExportFunctionDef")?
            .collect(export)?;
        let signatures = root
            .tables(module::FUNCTION_SIGNATURES, "FunctionSignatureDef")?
            .collect(signature)?;
        let rodata = root
            .tables(module::RODATA_SEGMENTS, "RodataSegmentDef")?
            .collect(|table| rodata_segment(table, file.len(), archive.rodata_base()))?;
        let (global_bytes, global_refs) =
            match root.table(module::MODULE_STATE, "ModuleStateDef")? {
                Some(state) => (
                    state.count(Field(0, "global_bytes_capacity"))?,
                    state.count(Field(1, "global_ref_count"))?,
                ),
                None => (0, 0),
            };
        let functions = root
            .vector::<DESCRIPTOR_LENGTH>(module::FUNCTION_DESCRIPTORS)?
            .elements()
            .iter()
            .map(function_descriptor)
            .collect();
        let bytecode = match root.bytes(module::BYTECODE_DATA)? {
            Some(data) => data.file_offset..data.file_offset + data.bytes.len(),
            None => range.start..range.start,
        };

        Ok(Self {
            name,
            version: root.u32(module::VERSION, 0)?,
            features: Features::from_bits(root.u32(module::REQUIREMENTS, 0)?),
            bytecode_version: BytecodeVersion::from_packed(root.u32(module::BYTECODE_VERSION, 0)?),
            attributes: attributes(&root, module::ATTRS)?,
            types,
            dependencies,
            imports,
            exports,
            signatures,
            functions,
            rodata,
            global_bytes,
            global_refs,
            bytecode,
            has_debug_database: root.table(DEBUG_DATABASE, "DebugDatabaseDef")?.is_some(),
            archive,
        })
    }
}

fn attributes(table: &Table<'_>, field: Field) -> Result<Vec<Attribute>, FieldError> {
    table.tables(field, "AttrDef")?.collect(|table| {
        Ok(Attribute {
            key: table.required_string(Field(0, "key"))?.to_owned(),
            value: table.required_string(Field(1, "value"))?.to_owned(),
        })
    })
}

fn signature(table: &Table<'_>) -> Result<Signature, FieldError> {
    Ok(Signature {
        calling_convention: table
            .string(Field(0, "calling_convention"))?
            .unwrap_or_default()
            .to_owned(),
        attributes: attributes(table, Field(1, "attrs"))?,
    })
}

fn dependency(table: &Table<'_>) -> Result<Dependency, FieldError> {
    Ok(Dependency {
        name: table.name(Field(0, "name"))?.to_owned(),
        minimum_version: table.u32(Field(1, "minimum_version"), 0)?,
        optional: table.u32(Field(2, "flags"), DEFAULT_FLAGS)? & FLAG_OPTIONAL != 0,
    })
}

fn import(table: &Table<'_>) -> Result<Import, FieldError> {
    let full_name = table.name(Field(0, "full_name"))?.to_owned();
    let signature = match table.table(Field(1, "signature"), "FunctionSignatureDef")? {
        Some(table) => signature(&table)?,
        None => Signature::default(),
    };
    Ok(Import {
        full_name,
        optional: table.u32(Field(2, "flags"), DEFAULT_FLAGS)? & FLAG_OPTIONAL != 0,
        signature,
    })
}

fn export(table: &Table<'_>) -> Result<Export, FieldError> {
    Ok(Export {
        name: table.name(Field(0, "local_name"))?.to_owned(),
        function: table.count(Field(1, "internal_ordinal"))?,
    })
}

fn rodata_segment(
    table: &Table<'_>,
    file_length: usize,
    rodata_base: usize,
) -> Result<RodataSegment, FieldError> {
    const KIND: Field = Field(0, "compression_type_type");
    const COMPRESSION: Field = Field(1, "compression_type");
    const EMBEDDED: Field = Field(2, "embedded_data");
    const OFFSET: Field = Field(3, "external_data_offset");
    const LENGTH: Field = Field(4, "external_data_length");

    let embedded = match table.u8(KIND, 0)? {
        0 => table.bytes(EMBEDDED)?,
        // The only kind of "compressed" data there is: data that is not.
        1 => {
            let data = table.table(COMPRESSION, "UncompressedDataDef")?;
            data.ok_or_else(|| table.error(COMPRESSION, Problem::Missing))?
                .bytes(Field(0, "data"))?
        }
        found => return Err(table.error(KIND, Problem::UnknownKind { found })),
    };
    if let Some(data) = embedded {
        let range = data.file_offset..data.file_offset + data.bytes.len();
        return Ok(RodataSegment {
            range,
            placement: RodataPlacement::Embedded,
        });
    }

    let (offset, length) = (table.u64(OFFSET, 0)?, table.u64(LENGTH, 0)?);
    if (offset, length) == (0, 0) {
        // The archive was found in the file, so its start is in it.
        return Ok(RodataSegment {
            range: 0..0,
            placement: RodataPlacement::External,
        });
    }
    let available = file_length.saturating_sub(rodata_base);
    let checked =
        |value: u64, limit: usize| usize::try_from(value).ok().filter(|&value| value <= limit);
    let range = checked(offset, available).and_then(|offset| {
        let length = checked(length, available - offset)?;
        Some(rodata_base + offset..rodata_base + offset + length)
    });
    match range {
        Some(range) => Ok(RodataSegment {
            range,
            placement: RodataPlacement::External,
        }),
        None => Err(table.error(
            OFFSET,
            Problem::OutsideFile {
                offset,
                length,
                available,
            },
        )),
    }
}

fn function_descriptor(bytes: &[u8; DESCRIPTOR_LENGTH]) -> FunctionDescriptor {
    let half = |at: usize| i16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    FunctionDescriptor {
        bytecode_offset: i32::from_le_bytes(word(0)),
        bytecode_length: i32::from_le_bytes(word(4)),
        features: Features::from_bits(u32::from_le_bytes(word(8))),
        block_count: half(14),
        i32_register_count: half(16),
        ref_register_count: half(18),
    }
}
