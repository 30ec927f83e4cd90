//! Whether the executables of a module can be used here.
#![forbid(unsafe_code)]

use std::ffi::CString;

use hal_abi::SanitizerKind;
use hal_elf::{ElfFile, LoadPlan, Target, is_fat_elf};
use hal_plugin::{ImportProvider, resolve_imports};
use vm_bytecode::ModuleDef;

use super::{Area, Check, Provided, check_imports, processor};
use crate::diagnose::target_name;
use crate::inspect::{
    Elf, Executable, ExecutableContent, ExecutionModel, Library, Module, error_line,
};

/// The page size that images are checked for.
const PAGE_SIZE: usize = 4096;

/// Checks the executables of the module `module`, which `def` and `file` hold.
pub(super) fn check(
    check: &mut Check,
    provided: &Provided,
    file: &[u8],
    def: &ModuleDef,
    module: &Module,
    provider: Option<&dyn ImportProvider>,
) {
    if module.execution_model == ExecutionModel::InlineDynamic && module.executables.is_empty() {
        check.note("no executables were found in its data, so its kernels were not checked");
    }
    check_machine(check, module);
    for executable in &module.executables {
        let label = format!("executable in rodata {}", executable.rodata);
        match &executable.content {
            ExecutableContent::Elf(_) | ExecutableContent::FatElf(_) => {
                let Some(elf) = host_image(executable) else {
                    continue;
                };
                let bytes = def.rodata.get(executable.rodata);
                let bytes = bytes
                    .and_then(|segment| file.get(segment.range.clone()))
                    .unwrap_or_default();
                check_image(check, &label, executable, bytes);
                check_library(check, &label, elf, provider);
            }
            ExecutableContent::Module(kernels) => {
                if let Some(problem) = &kernels.problem {
                    check.problem(Area::Verification, format!("the {label}: {problem}"));
                }
                check_imports(check, provided, &kernels.imports, &label);
            }
            ExecutableContent::Other { what } => {
                check.note(format!(
                    "the {label} is {what}, which is not for this system"
                ));
            }
            ExecutableContent::Damaged { problem } => {
                check.problem(
                    Area::Executable,
                    format!("the {label} is damaged: {problem}"),
                );
            }
        }
    }
    check_processor(check, module);
}

/// Returns the image for this machine.
fn host_image(executable: &Executable) -> Option<&Elf> {
    executable.images().find(|elf| elf.target == Target::HOST)
}

/// Checks that there are kernels for this machine. A module may carry others beside them.
fn check_machine(check: &mut Check, module: &Module) {
    let is_usable = |executable: &Executable| match &executable.content {
        ExecutableContent::Module(_) => true,
        ExecutableContent::Elf(_) | ExecutableContent::FatElf(_) => {
            host_image(executable).is_some()
        }
        // Damage is a problem of its own.
        ExecutableContent::Damaged { .. } => true,
        ExecutableContent::Other { .. } => false,
    };
    if module.executables.is_empty() || module.executables.iter().any(is_usable) {
        return;
    }
    let mut machines: Vec<String> = Vec::new();
    for executable in &module.executables {
        let names = executable.images().map(|elf| target_name(elf.target));
        let other = match &executable.content {
            ExecutableContent::Other { what } => Some(what.clone()),
            _ => None,
        };
        for name in names.chain(other) {
            if !machines.contains(&name) {
                machines.push(name);
            }
        }
    }
    let host = target_name(Target::HOST);
    let what = format!(
        "the kernels are for {}, this machine is {host}",
        machines.join(", ")
    );
    check.problem_with_hint(
        Area::Machine,
        what,
        Some(format!("compile the program for {host}")),
    );
}

/// Checks that the image for this machine can be mapped, as far as that shows without doing it.
fn check_image(check: &mut Check, label: &str, executable: &Executable, bytes: &[u8]) {
    // The system's own loader takes care of system libraries, and may find what they need.
    if executable
        .format
        .as_ref()
        .is_some_and(|format| format.starts_with("system-"))
    {
        return;
    }
    let selected = match is_fat_elf(bytes) {
        true => hal_elf::FatElf::parse(bytes)
            .and_then(|fat| fat.select(Target::HOST))
            .map_err(|error| error_line(&error)),
        false => Ok(bytes),
    };
    let planned = selected.and_then(|bytes| {
        let file = ElfFile::parse(bytes).map_err(|error| error_line(&error))?;
        LoadPlan::new(&file, PAGE_SIZE)
            .map(drop)
            .map_err(|error| error_line(&error))
    });
    if let Err(problem) = planned {
        check.problem(
            Area::Executable,
            format!("the {label} cannot be loaded: {problem}"),
        );
    }
}

fn check_library(check: &mut Check, label: &str, elf: &Elf, provider: Option<&dyn ImportProvider>) {
    let Some(library) = &elf.library else {
        match elf.problems.is_empty() {
            true => check.problem(
                Area::Executable,
                format!("the {label} is no executable library: it has no query function"),
            ),
            false => check.note(format!(
                "the imports of the {label} are not known: {}",
                elf.problems.join("; ")
            )),
        }
        return;
    };
    if Some(library.sanitizer.as_str()) != SanitizerKind::NONE.name() {
        let what = format!(
            "the {label} is built with the {} sanitizer, which this process does not have",
            library.sanitizer
        );
        check.problem(Area::Executable, what);
    }
    check_kernel_imports(check, label, library, provider);
}

/// Resolves what the kernels import the way a loader does.
fn check_kernel_imports(
    check: &mut Check,
    label: &str,
    library: &Library,
    provider: Option<&dyn ImportProvider>,
) {
    let symbols: Result<Vec<CString>, _> = library
        .imports
        .iter()
        .map(|import| {
            let mark = if import.optional { "?" } else { "" };
            CString::new(format!("{mark}{}", import.name))
        })
        .collect();
    let Ok(symbols) = symbols else {
        unreachable!("names were read up to their NUL")
    };
    let names: Vec<_> = symbols.iter().map(CString::as_c_str).collect();
    if let Err(error) = resolve_imports(provider, &names) {
        let what = format!("the {label}: {}", error_line(&error));
        let hint = "name the plugins that have them with --executable_plugin=PATH".to_owned();
        check.problem_with_hint(Area::Plugin, what, Some(hint));
    }
}

/// Compares what the compiler was told of the processor, where it left a note of it.
fn check_processor(check: &mut Check, module: &Module) {
    let has_native = module
        .executables
        .iter()
        .any(|executable| host_image(executable).is_some());
    if !has_native {
        return;
    }
    let host = target_name(Target::HOST);
    let for_host = |format: &str| {
        let arch = format
            .strip_prefix("embedded-elf-")
            .or_else(|| format.strip_prefix("system-elf-"));
        arch == Some(host.as_str())
    };
    let targets: Vec<_> = module
        .targets
        .iter()
        .filter(|target| for_host(&target.format))
        .collect();
    if targets.is_empty() {
        check.note("the module does not say which features of the processor its kernels use");
    }
    for target in targets {
        let missing: Vec<&str> = target
            .cpu_features
            .iter()
            .map(String::as_str)
            .filter(|feature| processor::host_has(feature) == Some(false))
            .collect();
        if !missing.is_empty() {
            let what = format!(
                "the kernels were compiled for a processor with {}, which this one does not have",
                missing.join(", ")
            );
            let hint = "compile it with --iree-llvmcpu-target-cpu=generic".to_owned();
            check.problem_with_hint(Area::Processor, what, Some(hint));
        }
    }
}
