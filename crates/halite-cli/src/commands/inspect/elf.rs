//! ELF images in words.
#![forbid(unsafe_code)]

use halite::inspect::{Elf, FatElf, Library, LibraryExport, NameList, PluginHeader};

use crate::page::{Page, count};

/// Most names of a list that are shown.
const MAX_NAMES: usize = 8;

/// Returns what an image is in a few words.
pub(super) fn title(elf: &Elf) -> String {
    let what = match (&elf.library, &elf.plugin) {
        (Some(_), _) => "executable library",
        (None, Some(_)) => "plugin",
        (None, None) => "ELF image",
    };
    format!("{what} for {}", elf.machine)
}

/// Writes what an image holds.
pub(super) fn write(page: &mut Page, indent: usize, elf: &Elf) {
    let kind = if elf.freestanding {
        "freestanding"
    } else {
        "needs others"
    };
    page.field(
        indent,
        "image",
        format_args!(
            "{}-bit {} {}, {kind}",
            elf.bits, elf.byte_order, elf.file_type
        ),
    );
    page.field(
        indent,
        "memory",
        format_args!(
            "{} bytes, {} of code",
            elf.memory_byte_length, elf.code_byte_length
        ),
    );
    if let Some(soname) = &elf.soname {
        page.field(indent, "soname", soname);
    }
    let relocations: Vec<String> = elf
        .relocations
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    if !relocations.is_empty() {
        page.field(indent, "relocations", relocations.join(", "));
    }
    write_names(page, indent, "libraries", &elf.needed_libraries);
    write_names(page, indent, "undefined", &elf.undefined_symbols);
    write_names(page, indent, "exported", &elf.exported_symbols);
    for problem in &elf.problems {
        page.field(indent, "not known", problem);
    }
    if let Some(library) = &elf.library {
        write_library(page, indent, library);
    }
    if let Some(plugin) = &elf.plugin {
        write_plugin(page, indent, plugin);
    }
}

/// Writes the images of a FatELF file.
pub(super) fn write_members(page: &mut Page, indent: usize, fat: &FatElf) {
    for (index, member) in fat.members.iter().enumerate() {
        page.line(
            indent,
            format_args!(
                "image {index}: {}, {} bytes",
                member.target, member.byte_length
            ),
        );
        if let Some(problem) = &member.problem {
            page.field(indent + 1, "not usable", problem);
        }
        if let Some(elf) = &member.elf {
            write(page, indent + 1, elf);
        }
    }
}

fn write_names(page: &mut Page, indent: usize, label: &str, list: &NameList) {
    if list.count == 0 {
        return;
    }
    let shown = list.names.iter().take(MAX_NAMES).map(String::as_str);
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if list.count > MAX_NAMES {
        text += &format!(", and {} more", list.count - MAX_NAMES);
    }
    page.field(indent, label, text);
}

fn write_library(page: &mut Page, indent: usize, library: &Library) {
    page.field(
        indent,
        "library",
        format_args!(
            "`{}`, ABI {}, sanitizer {}, {}",
            library.name,
            library.abi_version,
            library.sanitizer,
            count(library.constant_count, "constant")
        ),
    );
    for import in &library.imports {
        let optional = if import.optional { ", optional" } else { "" };
        page.field(indent, "import", format_args!("{}{optional}", import.name));
    }
    for export in &library.exports {
        page.field(indent, "export", describe_export(export));
    }
}

fn describe_export(export: &LibraryExport) -> String {
    let name = export.name.as_deref().unwrap_or("(no name)");
    let mut text = format!(
        "{}: {name}, {}, {}",
        export.ordinal,
        count(export.binding_count, "binding"),
        count(export.constant_count, "constant")
    );
    if export.workgroup_size.iter().any(|&size| size > 1) {
        let [x, y, z] = export.workgroup_size;
        text += &format!(", workgroup {x}x{y}x{z}");
    }
    if export.local_memory_byte_length != 0 {
        text += &format!(", {} bytes local", export.local_memory_byte_length);
    }
    if let Some(source) = &export.source {
        text += &format!(", from {source}");
    }
    text
}

fn write_plugin(page: &mut Page, indent: usize, plugin: &PluginHeader) {
    let features = match plugin.features.is_empty() {
        true => "none".to_owned(),
        false => plugin.features.join("|"),
    };
    page.field(
        indent,
        "plugin",
        format_args!(
            "`{}`, ABI {}, features {features}, sanitizer {}",
            plugin.name, plugin.abi_version, plugin.sanitizer
        ),
    );
    if !plugin.description.is_empty() {
        page.field(indent, "description", &plugin.description);
    }
}
