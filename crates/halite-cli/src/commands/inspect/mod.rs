//! `halite inspect`: says what files are and hold, without running any of it.
#![forbid(unsafe_code)]

mod elf;
mod module;

use clap::Args;
use halite::inspect::{self, Content, Description};
use serde::Serialize;

use crate::failure::{Failure, go_on};
use crate::page::Page;
use crate::{Streams, files};

/// Arguments of `halite inspect`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  halite inspect mul.vmfb
  halite inspect --json mul.vmfb plugin.so
  halite inspect --disassemble=mul mul.vmfb

Nothing of the files is run. The fields of --json are described in docs/inspect.md.")]
pub(crate) struct InspectArgs {
    /// File to describe, `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    file: Vec<String>,

    /// Print an object for each file, on a line of its own
    #[arg(long, conflicts_with = "disassemble")]
    json: bool,

    /// Print the bytecode of a program, or of one function of it, instead of a description
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        value_name = "FUNCTION"
    )]
    disassemble: Option<String>,
}

/// What `--json` prints for a file.
#[derive(Serialize)]
struct Named<'a> {
    file: &'a str,
    #[serde(flatten)]
    description: &'a Description,
}

/// Runs the command.
pub(crate) fn run(arguments: &InspectArgs, streams: &mut Streams<'_>) -> Result<(), Failure> {
    let mut is_first = true;
    let mut all_described = true;
    for path in &arguments.file {
        let Some(text) = go_on(text_of(arguments, path, streams), streams)? else {
            all_described = false;
            continue;
        };
        let separator = if is_first || arguments.json { "" } else { "\n" };
        is_first = false;
        write!(streams.stdout, "{separator}{text}").map_err(Failure::Stdout)?;
    }
    match all_described {
        true => Ok(()),
        false => Err(Failure::Reported),
    }
}

fn text_of(
    arguments: &InspectArgs,
    path: &str,
    streams: &mut Streams<'_>,
) -> Result<String, Failure> {
    let bytes = files::read(path, streams.stdin)?;
    match &arguments.disassemble {
        Some(function) => disassembly(path, &bytes, function),
        None => description(path, &bytes, arguments.json),
    }
}

fn disassembly(path: &str, bytes: &[u8], function: &str) -> Result<String, Failure> {
    let function = Some(function).filter(|name| !name.is_empty());
    inspect::disassemble(bytes, function).map_err(|error| {
        let what = format!("cannot disassemble `{}`", files::name(path));
        Failure::work(error.status_code(), what).caused_by(error)
    })
}

fn description(path: &str, bytes: &[u8], as_json: bool) -> Result<String, Failure> {
    let file = files::name(path);
    let description = inspect::describe(bytes).map_err(|error| {
        let what = format!("cannot describe `{file}`");
        Failure::work(error.status_code(), what).caused_by(error)
    })?;
    if as_json {
        let named = Named {
            file,
            description: &description,
        };
        return Ok(crate::json::line(&named));
    }
    let mut page = Page::default();
    write_description(&mut page, file, &description);
    Ok(page.text().to_owned())
}

fn write_description(page: &mut Page, file: &str, description: &Description) {
    let size = description.byte_length;
    match &description.content {
        Content::Module(module) => module::write(page, file, size, module),
        Content::Elf(elf) => {
            page.line(0, format_args!("{file}: {}, {size} bytes", elf::title(elf)));
            elf::write(page, 1, elf);
        }
        Content::FatElf(fat) => {
            page.line(0, format_args!("{file}: FatELF file, {size} bytes"));
            elf::write_members(page, 1, fat);
        }
        Content::Npy(array) => {
            page.line(0, format_args!("{file}: NumPy array, {size} bytes"));
            page.field(1, "version", &array.version);
            page.field(1, "shape", format_args!("{:?}", array.shape));
            page.field(1, "dtype", &array.dtype);
            let element_type = array.element_type.as_deref();
            page.field(
                1,
                "element type",
                element_type.unwrap_or("none that tensors have"),
            );
            let order = if array.fortran_order { "fortran" } else { "C" };
            page.field(1, "order", order);
            page.field(1, "data", format_args!("{} bytes", array.data_byte_length));
        }
        Content::Other { what } => page.line(0, format_args!("{file}: {what}, {size} bytes")),
        _ => page.line(0, format_args!("{file}: {size} bytes")),
    }
}
