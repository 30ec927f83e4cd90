//! Modules in words.
#![forbid(unsafe_code)]

use halite::inspect::{
    Dependency, Executable, ExecutableContent, Export, Import, Module, ModuleSummary,
};

use super::elf;
use crate::page::{Page, count};

/// Writes what a module needs, offers and carries.
pub(super) fn write(page: &mut Page, file: &str, size: usize, module: &Module) {
    page.line(
        0,
        format_args!("{file}: program `{}`, {size} bytes", module.name),
    );
    let releases = module.releases.map(|range| format!("IREE {range}"));
    page.field(
        1,
        "compiler",
        releases.as_deref().unwrap_or("no known release"),
    );
    page.field(1, "model", module.execution_model);
    page.field(1, "version", module.version);
    page.field(1, "bytecode", &module.bytecode_version);
    page.field(1, "container", module.container);
    page.field(1, "features", list_or(&module.features, "none"));
    page.field(
        1,
        "loads",
        module.problem.as_deref().map_or("yes", |_| "no"),
    );
    if let Some(problem) = &module.problem {
        page.field(1, "problem", problem);
    }
    page.field(
        1,
        "functions",
        format_args!(
            "{}, {} bytes",
            module.function_count, module.bytecode_byte_length
        ),
    );
    page.field(
        1,
        "state",
        format_args!(
            "{} and {}",
            count(module.global_byte_length, "byte"),
            count(module.global_ref_count, "ref")
        ),
    );
    page.field(
        1,
        "debug data",
        if module.debug_database { "yes" } else { "no" },
    );
    for (key, value) in &module.attributes {
        page.field(1, "attribute", format_args!("{key} = {value}"));
    }
    for target in &module.targets {
        let cpu = target.cpu.as_deref().unwrap_or("any processor");
        let features = list_or(&target.cpu_features, "no extra features");
        page.field(
            1,
            "compiled for",
            format_args!("{}, {cpu}, {features}", target.format),
        );
    }
    section(
        page,
        "needs",
        module.dependencies.iter().map(describe_dependency),
    );
    section(page, "imports", module.imports.iter().map(describe_import));
    page.line(0, format_args!("exports ({})", module.exports.len()));
    for export in &module.exports {
        write_export(page, 1, export);
    }
    let rodata = module.rodata.iter().enumerate().map(|(ordinal, segment)| {
        let text = segment
            .text
            .as_ref()
            .map_or(String::new(), |text| format!("  \"{text}\""));
        format!(
            "{ordinal}: {} bytes, {}{text}",
            segment.byte_length, segment.placement
        )
    });
    section(page, "rodata", rodata);
    page.line(
        0,
        format_args!("executables ({})", module.executables.len()),
    );
    for executable in &module.executables {
        write_executable(page, executable);
    }
}

fn section(page: &mut Page, title: &str, lines: impl ExactSizeIterator<Item = String>) {
    page.line(0, format_args!("{title} ({})", lines.len()));
    for line in lines {
        page.line(1, line);
    }
}

fn describe_dependency(dependency: &Dependency) -> String {
    let optional = if dependency.optional {
        ", optional"
    } else {
        ""
    };
    format!(
        "{} version {} or newer{optional}",
        dependency.name, dependency.minimum_version
    )
}

fn describe_import(import: &Import) -> String {
    let optional = if import.optional { ", optional" } else { "" };
    format!("{}  {}{optional}", import.name, import.calling_convention)
}

fn write_export(page: &mut Page, indent: usize, export: &Export) {
    page.line(
        indent,
        format_args!("{}  {}", export.name, export.calling_convention),
    );
    if let Some(declaration) = &export.declaration {
        page.line(indent + 1, declaration);
    }
    for (key, value) in &export.attributes {
        page.line(indent + 1, format_args!("{key} = {value}"));
    }
}

fn write_executable(page: &mut Page, executable: &Executable) {
    let what = match &executable.content {
        ExecutableContent::Elf(elf) => elf::title(elf),
        ExecutableContent::FatElf(_) => "FatELF file".to_owned(),
        ExecutableContent::Module(_) => "portable kernels".to_owned(),
        ExecutableContent::Other { what } => what.clone(),
        ExecutableContent::Damaged { .. } => "damaged".to_owned(),
        _ => "unknown".to_owned(),
    };
    let format = executable.format.as_deref().unwrap_or("no format named");
    page.line(
        1,
        format_args!(
            "rodata {}: {what}, {} bytes, {format}",
            executable.rodata, executable.byte_length
        ),
    );
    match &executable.content {
        ExecutableContent::Elf(elf) => elf::write(page, 2, elf),
        ExecutableContent::FatElf(fat) => elf::write_members(page, 2, fat),
        ExecutableContent::Module(kernels) => write_kernels(page, kernels),
        ExecutableContent::Damaged { problem } => page.field(2, "problem", problem),
        _ => {}
    }
}

fn write_kernels(page: &mut Page, kernels: &ModuleSummary) {
    page.field(2, "bytecode", &kernels.bytecode_version);
    page.field(2, "features", list_or(&kernels.features, "none"));
    if let Some(problem) = &kernels.problem {
        page.field(2, "problem", problem);
    }
    for import in &kernels.imports {
        page.field(2, "import", describe_import(import));
    }
    for export in &kernels.exports {
        page.field(
            2,
            "export",
            format_args!("{}  {}", export.name, export.calling_convention),
        );
        for (key, value) in &export.attributes {
            page.line(3, format_args!("{key} = {value}"));
        }
    }
}

fn list_or(list: &[String], none: &str) -> String {
    match list.is_empty() {
        true => none.to_owned(),
        false => list.join("|"),
    }
}
