//! The executables that a module carries.
#![forbid(unsafe_code)]

use core::ops::Range;
use std::collections::HashSet;

use hal_elf::Target;
#[cfg(feature = "serde")]
use serde::Serialize;
use vm_bytecode::{Archive, FileKind, ModuleDef, VerifiedModule};

use super::names::lossy;
use super::{Elf, FatElf, ModuleSummary, elf, error_line, fat_elf, module};

/// Longest name of a format, in bytes.
const MAX_FORMAT_LENGTH: usize = 64;
/// How the names of formats begin, up to the architecture.
const FORMAT_STEMS: [&str; 5] = [
    "embedded-elf-",
    "system-elf-",
    "system-dylib-",
    "system-dll-",
    "vmvx-bytecode-fb",
];
/// The format of portable executables.
const PORTABLE: &str = "vmvx-bytecode-fb";
/// Executables may share bytes of the file; this many times its length is looked at.
const MAX_SHARING: usize = 4;

/// An executable of a module.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Executable {
    /// Ordinal of the rodata segment that holds it.
    pub rodata: usize,
    /// Its length.
    pub byte_length: usize,
    /// The format that the module asks a loader for; `None` if the module names none that fits, or several.
    pub format: Option<String>,
    /// What it is.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub content: ExecutableContent,
}

/// What an executable of a module is.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ExecutableContent {
    /// An ELF image.
    Elf(Box<Elf>),
    /// ELF images for several machines.
    FatElf(FatElf),
    /// Portable kernels: a module of their own.
    Module(Box<ModuleSummary>),
    /// A file for another operating system.
    Other {
        /// What it looks like.
        what: String,
    },
    /// Something that cannot be read.
    Damaged {
        /// What is wrong with it.
        problem: String,
    },
}

impl Executable {
    /// Returns the ELF images in it.
    pub fn images(&self) -> impl Iterator<Item = &Elf> {
        let (single, members) = match &self.content {
            ExecutableContent::Elf(elf) => (Some(&**elf), &[][..]),
            ExecutableContent::FatElf(fat) => (None, &fat.members[..]),
            _ => (None, &[][..]),
        };
        single
            .into_iter()
            .chain(members.iter().filter_map(|member| member.elf.as_deref()))
    }
}

/// Describes the executables of a module.
pub(super) fn describe_all(file: &[u8], def: &ModuleDef) -> Vec<Executable> {
    let formats = Formats::of(file, def);
    let mut seen: HashSet<Range<usize>> = HashSet::new();
    let mut budget = file.len().saturating_mul(MAX_SHARING);
    let mut executables = Vec::new();
    for (rodata, segment) in def.rodata.iter().enumerate() {
        let bytes = file.get(segment.range.clone()).unwrap_or_default();
        let Some(kind) = Kind::guess(bytes, &formats) else {
            continue;
        };
        if !seen.insert(segment.range.clone()) {
            continue;
        }
        let content = match budget.checked_sub(bytes.len()) {
            Some(left) => {
                budget = left;
                kind.describe(bytes)
            }
            None => ExecutableContent::Damaged {
                problem: "too many executables share the same bytes".to_owned(),
            },
        };
        executables.push(Executable {
            rodata,
            byte_length: bytes.len(),
            format: formats.of_content(&content),
            content,
        });
    }
    executables
}

/// Returns the name of a format that a rodata segment holds.
pub(super) fn format_name(bytes: &[u8]) -> Option<String> {
    let is_format = bytes.len() <= MAX_FORMAT_LENGTH
        && FORMAT_STEMS
            .iter()
            .any(|stem| bytes.starts_with(stem.as_bytes()))
        && bytes.iter().all(u8::is_ascii_graphic);
    is_format.then(|| lossy(bytes))
}

/// What a rodata segment with an executable looks like.
enum Kind {
    Elf,
    FatElf,
    Module(Archive),
    Other(FileKind),
}

impl Kind {
    /// Recognizes an executable; constants of a program are not taken for one.
    fn guess(bytes: &[u8], formats: &Formats) -> Option<Self> {
        match FileKind::guess(bytes) {
            Some(FileKind::Elf) => Some(Self::Elf),
            Some(FileKind::FatElf) => Some(Self::FatElf),
            // Two or four bytes are no proof, and the module says whether it has such executables.
            Some(kind @ FileKind::Pe) if formats.has("system-dll-") => Some(Self::Other(kind)),
            Some(kind @ FileKind::MachO) if formats.has("system-dylib-") => Some(Self::Other(kind)),
            _ if formats.has(PORTABLE) => Archive::parse(bytes).ok().map(Self::Module),
            _ => None,
        }
    }

    fn describe(self, bytes: &[u8]) -> ExecutableContent {
        let described = match self {
            Self::Elf => elf::describe(bytes)
                .map(|elf| ExecutableContent::Elf(Box::new(elf)))
                .map_err(|error| error_line(&error)),
            Self::FatElf => fat_elf::describe(bytes)
                .map(ExecutableContent::FatElf)
                .map_err(|error| error_line(&error)),
            Self::Module(archive) => ModuleDef::parse(bytes, archive)
                .map(|def| {
                    let verified = VerifiedModule::load(bytes);
                    let problem = verified.err().map(|error| error_line(&error));
                    ExecutableContent::Module(Box::new(module::summarize(
                        &def,
                        bytes.len(),
                        problem,
                    )))
                })
                .map_err(|error| error_line(&error)),
            Self::Other(kind) => Ok(ExecutableContent::Other {
                what: kind.to_string(),
            }),
        };
        described.unwrap_or_else(|problem| ExecutableContent::Damaged { problem })
    }
}

/// The names of formats that a module holds, each once.
struct Formats(Vec<String>);

impl Formats {
    fn of(file: &[u8], def: &ModuleDef) -> Self {
        let segments = def
            .rodata
            .iter()
            .filter_map(|segment| file.get(segment.range.clone()));
        let mut names: Vec<String> = segments.filter_map(format_name).collect();
        names.sort();
        names.dedup();
        Self(names)
    }

    /// Returns whether any name begins like this.
    fn has(&self, stem: &str) -> bool {
        self.0.iter().any(|name| name.starts_with(stem))
    }

    /// Returns the one format that fits an executable.
    fn of_content(&self, content: &ExecutableContent) -> Option<String> {
        match content {
            ExecutableContent::Elf(elf) => self.only(|name| names_target(name, elf.target)),
            ExecutableContent::FatElf(_) => self.only(|name| name.contains("-elf-")),
            ExecutableContent::Module(_) => self.only(|name| name == PORTABLE),
            ExecutableContent::Other { .. } => self.only(|name| name.starts_with("system-d")),
            ExecutableContent::Damaged { .. } => None,
        }
    }

    fn only(&self, fits: impl Fn(&str) -> bool) -> Option<String> {
        let mut fitting = self.0.iter().filter(|name| fits(name));
        let first = fitting.next()?;
        fitting.next().is_none().then(|| first.clone())
    }
}

/// Returns whether a format is one of ELF images for a target.
fn names_target(format: &str, target: Target) -> bool {
    let arch = format
        .strip_prefix("embedded-elf-")
        .or_else(|| format.strip_prefix("system-elf-"));
    // Producers may append to the name.
    arch.zip(target.arch_name())
        .is_some_and(|(arch, name)| arch.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_formats_are_taken_for_one() {
        assert_eq!(
            format_name(b"embedded-elf-x86_64").as_deref(),
            Some("embedded-elf-x86_64")
        );
        assert_eq!(
            format_name(b"vmvx-bytecode-fb").as_deref(),
            Some("vmvx-bytecode-fb")
        );
        assert_eq!(format_name(b"embedded-elf-x86_64\0"), None);
        assert_eq!(format_name(b"embedded"), None);
    }

    #[test]
    fn a_format_that_is_not_the_only_one_is_not_given() {
        let formats =
            |names: &[&str]| Formats(names.iter().map(|name| (*name).to_owned()).collect());
        let other = ExecutableContent::Other {
            what: String::new(),
        };
        assert_eq!(
            formats(&["system-dll-x86_64"])
                .of_content(&other)
                .as_deref(),
            Some("system-dll-x86_64")
        );
        assert_eq!(
            formats(&["system-dll-x86_64", "system-dylib-arm_64"]).of_content(&other),
            None
        );
        assert_eq!(formats(&[]).of_content(&other), None);
    }
}
