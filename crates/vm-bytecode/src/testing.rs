//! What the tests of this crate share: fixtures and hand-made modules.

use std::path::Path;

use crate::encode::Body;
use crate::module_def::{
    Export, FunctionDescriptor, Import, ModuleDef, RodataPlacement, RodataSegment, Signature,
};
use crate::{Archive, BytecodeVersion, Features, VerifiedModule, VerifyError};

/// Names of the fixtures; see `tests/fixtures/README.md`.
pub(crate) const FIXTURES: [&str; 8] = [
    "loop-2.9.0",
    "mul-2.9.0-flat",
    "mul-3.10.0",
    "mul-3.13.0-stripped",
    "mul-3.13.0-async",
    "lists-3.13.0",
    "scalar-ops",
    "forms",
];

/// Returns the bytes of a fixture.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let path = folder.join(format!("{name}.vmfb"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Offset of the bytecode in the file of a [`TestModule`].
const BYTECODE_START: usize = 64;

/// A module without a flatbuffer: a description made by hand and a file that holds only the bodies.
///
/// It has 16 bytes of value globals, 2 ref globals, the types `i32` and `!vm.buffer`, and one rodata segment of 4 bytes.
#[derive(Clone, Debug)]
pub(crate) struct TestModule {
    pub(crate) def: ModuleDef,
    pub(crate) file: Vec<u8>,
}

impl TestModule {
    pub(crate) fn new() -> Self {
        let mut file = vec![0; BYTECODE_START];
        file[0] = 12;
        file[8..12].copy_from_slice(b"IREE");
        let def = ModuleDef {
            archive: Archive::parse(&file).unwrap(),
            name: "test".to_owned(),
            version: 0,
            features: Features::SUPPORTED,
            bytecode_version: BytecodeVersion {
                major: 17,
                minor: 0,
            },
            attributes: Vec::new(),
            types: vec!["i32".to_owned(), "!vm.buffer".to_owned()],
            dependencies: Vec::new(),
            imports: Vec::new(),
            exports: Vec::new(),
            signatures: Vec::new(),
            functions: Vec::new(),
            rodata: vec![RodataSegment {
                range: 0..4,
                placement: RodataPlacement::Embedded,
            }],
            global_bytes: 16,
            global_refs: 2,
            bytecode: BYTECODE_START..BYTECODE_START,
            has_debug_database: false,
        };
        Self { def, file }
    }

    /// Adds an import.
    pub(crate) fn import(mut self, full_name: &str, convention: &str) -> Self {
        let signature = Signature {
            calling_convention: convention.to_owned(),
            attributes: Vec::new(),
        };
        self.def.imports.push(Import {
            full_name: full_name.to_owned(),
            optional: false,
            signature,
        });
        self
    }

    /// Adds a function with counts of 32-bit and ref registers, and exports it as `f` and its ordinal.
    pub(crate) fn function(mut self, convention: &str, registers: (i16, i16), body: &Body) -> Self {
        let ordinal = u32::try_from(self.def.functions.len()).unwrap();
        self.file.resize(self.file.len().next_multiple_of(8), 0);
        self.def.functions.push(FunctionDescriptor {
            bytecode_offset: i32::try_from(self.file.len() - BYTECODE_START).unwrap(),
            bytecode_length: i32::try_from(body.bytes.len()).unwrap(),
            features: Features::SUPPORTED,
            block_count: body.block_count,
            i32_register_count: registers.0,
            ref_register_count: registers.1,
        });
        self.file.extend(&body.bytes);
        self.def.bytecode.end = self.file.len();
        self.def.signatures.push(Signature {
            calling_convention: convention.to_owned(),
            attributes: Vec::new(),
        });
        self.def.exports.push(Export {
            name: format!("f{ordinal}"),
            function: ordinal,
        });
        self
    }

    pub(crate) fn verify(&self) -> Result<VerifiedModule, VerifyError> {
        VerifiedModule::verify(self.def.clone(), &self.file)
    }
}
