//! Whether a module would load and run here: [`check()`].
#![forbid(unsafe_code)]

mod kernels;
mod processor;
#[cfg(test)]
mod tests;

use core::fmt;
use std::sync::Arc;

use hal_local::{InlineDispatcher, LoaderRegistry};
use hal_plugin::ImportProvider;
#[cfg(feature = "serde")]
use serde::Serialize;
use vm::{Module as VmModule, RefTypes};
use vm_bytecode::{Features, LoadError, ModuleDef, VerifiedModule, VerifyError};

use super::{Content, ExecutionModel, Import, Module, describe, error_line};
use crate::Error;

/// What stands between a module and running here.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Check {
    /// Every reason why it will not run; none if it will.
    pub problems: Vec<Problem>,
    /// What could not be found out, and what does not matter here.
    pub notes: Vec<String>,
}

/// A reason why a module will not run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Problem {
    /// What it is about.
    pub area: Area,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What a problem is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Area {
    /// The file is no module.
    File,
    /// The version of the bytecode.
    Version,
    /// Features of the runtime.
    Features,
    /// The bytecode does not verify.
    Verification,
    /// The execution model.
    Model,
    /// A module that is needed.
    Dependency,
    /// A function or type of another module.
    Import,
    /// An executable that cannot be used.
    Executable,
    /// The machine that kernels are for.
    Machine,
    /// Features of the processor that kernels use.
    Processor,
    /// A function that kernels need from a plugin.
    Plugin,
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Version => "version",
            Self::Features => "features",
            Self::Verification => "verification",
            Self::Model => "model",
            Self::Dependency => "dependency",
            Self::Import => "import",
            Self::Executable => "executable",
            Self::Machine => "machine",
            Self::Processor => "processor",
            Self::Plugin => "plugin",
        })
    }
}

impl Check {
    fn problem(&mut self, area: Area, what: impl Into<String>) {
        self.problem_with_hint(area, what, None);
    }

    fn problem_with_hint(&mut self, area: Area, what: impl Into<String>, hint: Option<String>) {
        let what = what.into();
        self.problems.push(Problem { area, what, hint });
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

/// Finds every reason why the module in `bytes` would not load and run on this machine, with functions for its kernels
/// from `provider`.
///
/// Nothing of the module is run. Its initializer could still fail for reasons of its own. What the provider does when
/// it is asked is up to the provider.
/// A file of another kind than a module, or a damaged one, is a problem too.
#[must_use]
pub fn check(bytes: &[u8], provider: Option<&dyn ImportProvider>) -> Check {
    let mut check = Check::default();
    let content = match describe(bytes) {
        Ok(description) => description.content,
        Err(error) => {
            check.problem(Area::File, error_line(&error));
            return check;
        }
    };
    match content {
        Content::Module(module) => {
            // Describing it has parsed both.
            let parsed =
                vm_bytecode::Archive::parse(bytes).map(|archive| ModuleDef::parse(bytes, archive));
            let Ok(Ok(def)) = parsed else {
                unreachable!("a file that was described as a module parses as one")
            };
            check_bytecode(&mut check, bytes, &def);
            check_model(&mut check, &module);
            let provided = Provided::new();
            check_dependencies(&mut check, &provided, &module);
            check_imports(&mut check, &provided, &module.imports, "module");
            check_types(&mut check, &provided, &module);
            kernels::check(&mut check, &provided, bytes, &def, &module, provider);
        }
        Content::Elf(_) => not_a_module(&mut check, "an ELF image"),
        Content::FatElf(_) => not_a_module(&mut check, "a FatELF file"),
        Content::Npy(_) => not_a_module(&mut check, "a NumPy array"),
        Content::Other { what } => not_a_module(&mut check, &what),
    }
    check
}

fn not_a_module(check: &mut Check, what: &str) {
    check.problem(Area::File, format!("the file is not a module but {what}"));
}

/// Checks version and features apart, since verification stops at the first fault it finds.
fn check_bytecode(check: &mut Check, bytes: &[u8], def: &ModuleDef) {
    let error = VerifiedModule::load(bytes).err();
    let missing = def.features.without(Features::SUPPORTED);
    if missing != Features::NONE {
        let what =
            format!("the module needs the features {missing}, which this runtime does not have");
        let hint = "compile it with an IREE release up to 3.13".to_owned();
        check.problem_with_hint(Area::Features, what, Some(hint));
    }
    match error {
        Some(LoadError::Verify(error @ VerifyError::Version { .. })) => {
            let hint = "compile it with an IREE release from 2.9 to 3.13".to_owned();
            check.problem_with_hint(Area::Version, error.to_string(), Some(hint));
            check.note("its bytecode was not verified, as its version is not known");
        }
        Some(LoadError::Verify(VerifyError::Features { .. })) if missing != Features::NONE => {
            check.note("its bytecode was not verified, as it needs features that are not there");
        }
        Some(error) => check.problem(Area::Verification, error_line(&error)),
        None => {}
    }
}

fn check_model(check: &mut Check, module: &Module) {
    if module.execution_model != ExecutionModel::Asynchronous {
        return;
    }
    let error = Error::AsynchronousModel {
        origin: module.name.clone(),
        needs: "hal".to_owned(),
    };
    check.problem_with_hint(Area::Model, error.to_string(), error.hint());
}

/// The modules that a session provides.
pub(super) struct Provided {
    modules: Vec<Arc<dyn VmModule>>,
}

impl Provided {
    fn new() -> Self {
        let loader =
            vm_hal_loader::module(LoaderRegistry::new(), Arc::new(InlineDispatcher::new()));
        Self {
            modules: vec![vm_hal_inline::module(None), loader, vm_vmvx::vmvx_module()],
        }
    }

    fn module(&self, name: &str) -> Option<&dyn VmModule> {
        self.modules
            .iter()
            .find(|module| module.name() == name)
            .map(|module| &**module)
    }
}

fn check_dependencies(check: &mut Check, provided: &Provided, module: &Module) {
    for dependency in module
        .dependencies
        .iter()
        .filter(|dependency| !dependency.optional)
    {
        let (name, needed) = (&dependency.name, dependency.minimum_version);
        match provided.module(name) {
            Some(found) if found.version() >= needed => {}
            Some(found) => {
                let what = format!(
                    "the module needs `{name}` version {needed}, this runtime has version {}",
                    found.version()
                );
                let hint =
                    "it was made by a newer compiler; use an IREE release up to 3.13".to_owned();
                check.problem_with_hint(Area::Dependency, what, Some(hint));
            }
            // The execution model says it already.
            None if name == "hal" => {}
            None => {
                let what = format!(
                    "the module needs the module `{name}`, which this runtime does not have"
                );
                let hint = format!(
                    "if `{name}` is a program too, give both to `run`, with `--module` for each"
                );
                check.problem_with_hint(Area::Dependency, what, Some(hint));
            }
        }
    }
}

/// Checks that each import is there with the calling convention that the importer wants.
pub(super) fn check_imports(
    check: &mut Check,
    provided: &Provided,
    imports: &[Import],
    importer: &str,
) {
    for import in imports {
        let Some((module_name, function)) = import.name.split_once('.') else {
            let what = format!(
                "the {importer} imports `{}`, which names no module",
                import.name
            );
            check.problem(Area::Import, what);
            continue;
        };
        let Some(module) = provided.module(module_name) else {
            // Missing modules are told of once, not for each function.
            continue;
        };
        let same_name = module
            .exports()
            .iter()
            .filter(|export| *export.name == *function);
        let found: Vec<&str> = same_name.map(|export| export.convention.text()).collect();
        let wanted = &import.calling_convention;
        if found.is_empty() {
            if !import.optional {
                let what = format!(
                    "the {importer} imports `{}`, which does not exist",
                    import.name
                );
                check.problem(Area::Import, what);
            }
        } else if !wanted.is_empty() && !found.contains(&wanted.as_str()) {
            let what = format!(
                "the {importer} imports `{}` with the calling convention `{wanted}`, it has `{}`",
                import.name,
                found.join("`, `")
            );
            let hint =
                "the module was made for another release; compile it with one from 2.9 to 3.13";
            check.problem_with_hint(Area::Import, what, Some(hint.to_owned()));
        }
    }
}

/// Checks that the types are known which instructions name. Those of missing modules cannot be.
fn check_types(check: &mut Check, provided: &Provided, module: &Module) {
    if module.execution_model == ExecutionModel::Asynchronous {
        return;
    }
    let mut known = RefTypes::builtin();
    for module in &provided.modules {
        known.extend(module.ref_types());
    }
    let is_known = |name: &str| match name.strip_prefix('!') {
        Some("vm.opaque") => true,
        Some(name) => name.starts_with("vm.list") || known.get(name).is_some(),
        None => ["i8", "i16", "i32", "i64", "f32", "f64"].contains(&name),
    };
    for name in module.types.iter().filter(|name| !is_known(name)) {
        check.problem(
            Area::Import,
            format!("the module uses the type `{name}`, which is not known"),
        );
    }
}
