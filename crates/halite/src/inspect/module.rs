//! Modules: what a compiled program needs, offers and carries.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::BTreeMap;

#[cfg(feature = "serde")]
use serde::Serialize;
use vm_bytecode::{
    Archive, Attribute, Container, Features, FieldError, ModuleDef, RodataPlacement, Signature,
    VerifiedModule,
};

use super::executable;
use super::target::{self, CompilationTarget};
use super::{Executable, ReleaseRange, error_line, release};

/// Longest rodata segment whose text is shown, in bytes.
const MAX_TEXT_LENGTH: usize = 64;
/// Longest rodata segment that is searched for compilation targets, in bytes.
const MAX_MESSAGE_LENGTH: usize = 16 << 10;
/// Exports may share the text of a signature; in all, this many times the length of the file is repeated.
const MAX_SHARING: usize = 4;
/// Name of the attribute with a function's declaration (`docs/vm.md`, section "Reflection attributes").
const DECLARATION: &str = "iree.abi.declaration";

/// Reflection attributes: texts by their names.
pub type Attributes = BTreeMap<String, String>;

/// A compiled program.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Module {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// The compiler releases that may have written it; `None` if no known release writes such modules.
    pub releases: Option<ReleaseRange>,
    /// How it expects to be run.
    pub execution_model: ExecutionModel,
    /// Version of the bytecode, such as `17.0`.
    pub bytecode_version: String,
    /// `flat`, or `polyglot` for a file that is a ZIP archive as well.
    pub container: &'static str,
    /// The features it needs of a runtime; unknown bits as one number.
    pub features: Vec<String>,
    /// What keeps it from being loaded: the first fault that verification found.
    pub problem: Option<String>,
    /// Its reflection attributes.
    pub attributes: Attributes,
    /// The modules that it needs.
    pub dependencies: Vec<Dependency>,
    /// The functions that it imports from them, by ordinal.
    pub imports: Vec<Import>,
    /// The functions that it exports, by ordinal.
    pub exports: Vec<Export>,
    /// How many functions it has, exported or not.
    pub function_count: usize,
    /// Length of the bytecode of all functions.
    pub bytecode_byte_length: usize,
    /// Bytes of its globals that are numbers.
    pub global_byte_length: u32,
    /// How many globals are refs.
    pub global_ref_count: u32,
    /// Whether names and source locations of its functions were kept.
    pub debug_database: bool,
    /// The types that its instructions name.
    pub types: Vec<String>,
    /// Its read-only data, by ordinal.
    pub rodata: Vec<Rodata>,
    /// Its executables.
    pub executables: Vec<Executable>,
    /// What its executables were compiled for, where it says so. Only modules of the asynchronous model do.
    pub targets: Vec<CompilationTarget>,
}

/// How a module expects to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum ExecutionModel {
    /// Kernels are executables, run by the caller (`hal_loader`).
    InlineDynamic,
    /// Kernels are functions of the module (`hal_inline` alone).
    InlineStatic,
    /// Kernels are queued on devices (`hal`), which this runtime does not do.
    Asynchronous,
    /// There are no kernels and no tensors.
    Plain,
}

/// A module that a module needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// The least version that will do.
    pub minimum_version: u32,
    /// Whether the module loads without it.
    pub optional: bool,
}

/// A function that a module imports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Import {
    /// The name of the module, a dot, and that of the function.
    pub name: String,
    /// The calling convention.
    pub calling_convention: String,
    /// Whether the module loads without it.
    pub optional: bool,
}

/// A function that a module exports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Export {
    /// Its name.
    pub name: String,
    /// The ordinal of the function.
    pub function: u32,
    /// The calling convention; empty without arguments and results.
    pub calling_convention: String,
    /// The declaration in the program's source, if the compiler kept it.
    pub declaration: Option<String>,
    /// All other reflection attributes.
    pub attributes: Attributes,
}

/// A segment of read-only data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Rodata {
    /// Its length.
    pub byte_length: usize,
    /// Where it starts in the file.
    pub offset: usize,
    /// `embedded` in the flatbuffer, or `external`, after it.
    pub placement: &'static str,
    /// What it says, if it is short and plain text.
    pub text: Option<String>,
}

/// A module inside an executable: portable kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct ModuleSummary {
    /// Its name.
    pub name: String,
    /// Version of the bytecode.
    pub bytecode_version: String,
    /// The features it needs of a runtime.
    pub features: Vec<String>,
    /// What keeps it from being loaded.
    pub problem: Option<String>,
    /// The functions that it imports.
    pub imports: Vec<Import>,
    /// The functions that it exports, kernels among them.
    pub exports: Vec<Export>,
}

impl fmt::Display for ExecutionModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InlineDynamic => "inline-dynamic",
            Self::InlineStatic => "inline-static",
            Self::Asynchronous => "asynchronous",
            Self::Plain => "plain",
        })
    }
}

impl ExecutionModel {
    fn of(def: &ModuleDef) -> Self {
        let needs = |name: &str| {
            def.dependencies
                .iter()
                .any(|dependency| dependency.name == name)
                || def.imports.iter().any(|import| {
                    import
                        .full_name
                        .split_once('.')
                        .is_some_and(|(module, _)| module == name)
                })
        };
        if needs("hal") {
            Self::Asynchronous
        } else if needs("hal_loader") {
            Self::InlineDynamic
        } else if needs("hal_inline") {
            Self::InlineStatic
        } else {
            Self::Plain
        }
    }
}

/// Describes the module that `archive` found in `file`.
pub(super) fn describe(file: &[u8], archive: Archive) -> Result<Module, FieldError> {
    let def = ModuleDef::parse(file, archive)?;
    let executables = executable::describe_all(file, &def);
    let libraries = executables.iter().flat_map(Executable::images);
    let versions: Vec<&str> = libraries
        .filter_map(|elf| elf.library.as_ref())
        .map(|library| library.abi_version.as_str())
        .collect();
    Ok(Module {
        releases: release::of_module(&def, &versions),
        execution_model: ExecutionModel::of(&def),
        bytecode_version: def.bytecode_version.to_string(),
        container: match def.archive.container() {
            Container::Flat => "flat",
            Container::Polyglot => "polyglot",
        },
        features: feature_names(def.features),
        problem: VerifiedModule::load(file)
            .err()
            .map(|error| error_line(&error)),
        attributes: attributes(&def.attributes),
        dependencies: def
            .dependencies
            .iter()
            .map(|dependency| Dependency {
                name: dependency.name.clone(),
                minimum_version: dependency.minimum_version,
                optional: dependency.optional,
            })
            .collect(),
        imports: imports(&def),
        exports: exports(&def, file.len()),
        function_count: def.functions.len(),
        bytecode_byte_length: def.bytecode.len(),
        global_byte_length: def.global_bytes,
        global_ref_count: def.global_refs,
        debug_database: def.has_debug_database,
        rodata: rodata(file, &def),
        targets: targets(file, &def),
        executables,
        name: def.name,
        version: def.version,
        types: def.types,
    })
}

/// Describes the module that fills an executable of `byte_length` bytes.
pub(super) fn summarize(
    def: &ModuleDef,
    byte_length: usize,
    problem: Option<String>,
) -> ModuleSummary {
    ModuleSummary {
        name: def.name.clone(),
        bytecode_version: def.bytecode_version.to_string(),
        features: feature_names(def.features),
        problem,
        imports: imports(def),
        exports: exports(def, byte_length),
    }
}

fn imports(def: &ModuleDef) -> Vec<Import> {
    let imports = def.imports.iter().map(|import| Import {
        name: import.full_name.clone(),
        calling_convention: import.signature.calling_convention.clone(),
        optional: import.optional,
    });
    imports.collect()
}

/// Describes the exports of a module that takes `byte_length` bytes.
fn exports(def: &ModuleDef, byte_length: usize) -> Vec<Export> {
    let none = Signature::default();
    // Exports may share a function: what one says is repeated only as long as it stays small beside the file.
    let mut budget = byte_length.saturating_mul(MAX_SHARING);
    let exports = def.exports.iter().map(|export| {
        // A module that does not verify may name functions that it does not have.
        let index = usize::try_from(export.function).unwrap_or(usize::MAX);
        let signature = def.signatures.get(index).filter(|signature| {
            let left = budget.checked_sub(text_length(signature));
            budget = left.unwrap_or(budget);
            left.is_some()
        });
        let signature = signature.unwrap_or(&none);
        let mut attributes = attributes(&signature.attributes);
        Export {
            name: export.name.clone(),
            function: export.function,
            calling_convention: signature.calling_convention.clone(),
            declaration: attributes.remove(DECLARATION),
            attributes,
        }
    });
    exports.collect()
}

fn text_length(signature: &Signature) -> usize {
    let attributes = signature.attributes.iter();
    let lengths = attributes.map(|attribute| attribute.key.len() + attribute.value.len());
    lengths.fold(signature.calling_convention.len(), usize::saturating_add)
}

fn attributes(attributes: &[Attribute]) -> Attributes {
    let pairs = attributes
        .iter()
        .map(|attribute| (attribute.key.clone(), attribute.value.clone()));
    pairs.collect()
}

fn rodata(file: &[u8], def: &ModuleDef) -> Vec<Rodata> {
    let segments = def.rodata.iter().map(|segment| Rodata {
        byte_length: segment.range.len(),
        offset: segment.range.start,
        placement: match segment.placement {
            RodataPlacement::Embedded => "embedded",
            RodataPlacement::External => "external",
        },
        text: file.get(segment.range.clone()).and_then(short_text),
    });
    segments.collect()
}

/// Returns the text of a segment that is short and nothing but printable ASCII.
fn short_text(bytes: &[u8]) -> Option<String> {
    let is_text = !bytes.is_empty()
        && bytes.len() <= MAX_TEXT_LENGTH
        && bytes.iter().all(|byte| matches!(byte, 0x20..0x7F));
    is_text.then(|| String::from_utf8_lossy(bytes).into_owned())
}

fn targets(file: &[u8], def: &ModuleDef) -> Vec<CompilationTarget> {
    let segments = def
        .rodata
        .iter()
        .filter_map(|segment| file.get(segment.range.clone()));
    let messages = segments
        .filter(|bytes| bytes.len() <= MAX_MESSAGE_LENGTH)
        .filter_map(|bytes| str::from_utf8(bytes).ok());
    let mut targets = Vec::new();
    for target in messages.flat_map(target::find) {
        if targets.len() < MAX_TARGETS && !targets.contains(&target) {
            targets.push(target);
        }
    }
    targets
}

/// Most compilation targets that are told apart.
const MAX_TARGETS: usize = 64;

/// Returns the names of feature bits, the unknown ones as one number.
fn feature_names(features: Features) -> Vec<String> {
    if features == Features::NONE {
        return Vec::new();
    }
    features.to_string().split('|').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::testing::{fixture_module, module, repository_file, with_bytecode_version};
    use crate::inspect::{ExecutableContent, ReleaseRange};

    fn releases(path: &str) -> String {
        let module = fixture_module(path);
        module
            .releases
            .map_or("none".to_owned(), |range: ReleaseRange| range.to_string())
    }

    #[test]
    fn the_era_of_a_module_is_told_by_what_it_holds() {
        assert_eq!(releases("2.9.0/llvm-cpu/mul.vmfb"), "2.9 to 3.7");
        // Portable kernels have no library version.
        assert_eq!(releases("2.9.0/vmvx/mul.vmfb"), "2.9 to 3.9");
        assert_eq!(releases("3.9.0/llvm-cpu-edited/mul.vmfb"), "3.8 to 3.9");
        assert_eq!(releases("3.10.0/llvm-cpu-edited/mul.vmfb"), "3.10");
        assert_eq!(releases("3.11.0/llvm-cpu-edited/mul.vmfb"), "3.11");
        assert_eq!(releases("3.13.0/llvm-cpu/mul.vmfb"), "3.12 to 3.13");
        assert_eq!(releases("3.13.0/vmvx-inline/mul.vmfb"), "3.11 to 3.13");
    }

    #[test]
    fn a_module_is_described_with_its_functions_and_needs() {
        let module = fixture_module("3.13.0/llvm-cpu/mul.vmfb");
        assert_eq!(module.execution_model, ExecutionModel::InlineDynamic);
        assert_eq!(
            (module.bytecode_version.as_str(), module.container),
            ("17.0", "polyglot")
        );
        assert_eq!(module.features, ["UNWIND"]);
        assert_eq!(module.problem, None);
        let names: Vec<_> = module
            .dependencies
            .iter()
            .map(|needed| needed.name.as_str())
            .collect();
        assert_eq!(names, ["hal_loader", "hal_inline"]);
        let mul = module
            .exports
            .iter()
            .find(|export| export.name == "mul")
            .unwrap();
        assert_eq!(
            mul.declaration.as_deref(),
            Some(
                "sync func @mul(%input0: tensor<4xf32>, %input1: tensor<4xf32>) -> (%output0: tensor<4xf32>)"
            )
        );
        assert!(!mul.attributes.contains_key(DECLARATION));
    }

    #[test]
    fn the_imports_of_kernels_are_shown_before_anything_is_run() {
        let module = fixture_module("3.13.0/llvm-cpu/plugin.vmfb");
        let ExecutableContent::Elf(elf) = &module.executables[0].content else {
            panic!("not an ELF image")
        };
        let library = elf.library.as_ref().unwrap();
        assert_eq!(library.imports[0].name, "lab_scale_add");
        assert!(!library.imports[0].optional);
    }

    #[test]
    fn each_kind_of_executable_is_described_with_its_format() {
        let formats: Vec<_> = ["llvm-cpu", "llvm-cpu-system", "llvm-cpu-aarch64", "vmvx"]
            .map(|config| fixture_module(&format!("3.13.0/{config}/mul.vmfb")).executables)
            .map(|executables| executables[0].format.clone().unwrap())
            .to_vec();
        assert_eq!(
            formats,
            [
                "embedded-elf-x86_64",
                "system-elf-x86_64",
                "embedded-elf-arm_64",
                "vmvx-bytecode-fb"
            ]
        );
        let vmvx = fixture_module("3.13.0/vmvx/mul.vmfb");
        let ExecutableContent::Module(kernels) = &vmvx.executables[0].content else {
            panic!("not a module")
        };
        assert!(
            kernels
                .exports
                .iter()
                .any(|export| export.name.starts_with("mul_dispatch_0"))
        );
        assert_eq!(
            fixture_module("3.13.0/vmvx-inline/mul.vmfb")
                .executables
                .len(),
            0
        );
    }

    #[test]
    fn a_module_that_does_not_verify_is_described_with_its_fault() {
        let file = with_bytecode_version("3.13.0/llvm-cpu/mul.vmfb", 0x0012_0000);
        let module = module(&file);
        assert_eq!(module.bytecode_version, "18.0");
        assert_eq!(module.releases, None);
        assert!(module.problem.unwrap().contains("bytecode version 18.0"));
        assert_eq!(
            module.exports.len(),
            fixture_module("3.13.0/llvm-cpu/mul.vmfb").exports.len()
        );
    }

    #[test]
    fn a_module_cut_anywhere_is_described_or_refused() {
        let file = repository_file("tests/fixtures/3.13.0/llvm-cpu/plugin.vmfb");
        for length in (0..file.len()).step_by(97) {
            let _ = crate::inspect::describe(&file[..length]);
        }
    }
}
