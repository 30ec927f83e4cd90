//! Where results go: text on standard output, arrays and raw bytes in files.
#![forbid(unsafe_code)]

use core::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use halite::text::{PrintError, write_value};
use halite::{Element, StatusCode, Tensor, Value, npy};

use crate::failure::Failure;

/// Writes the text of a value to standard output.
pub(crate) fn print(
    stdout: &mut dyn Write,
    value: &Value,
    max_elements: usize,
) -> Result<(), Failure> {
    let mut out = Text {
        stdout,
        error: None,
    };
    let printed = write_value(&mut out, value, max_elements);
    match (printed, out.error) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(error)) => Err(Failure::Stdout(error)),
        (Err(error), None) => Err(print_failure(&error)),
    }
}

/// Returns the failure of a value that has no text.
pub(crate) fn print_failure(error: &PrintError) -> Failure {
    Failure::of(error.status_code(), error)
}

/// Writes results as the items of `--output` say, one for each.
///
/// `-` is the text without the `result[i]: ` before it, an empty item ignores the result, `@file` makes a file and
/// `+file` appends to one: `.npy` an array, any other name the bytes of the elements.
pub(crate) fn write(
    stdout: &mut dyn Write,
    items: &[String],
    results: &[Value],
    max_elements: usize,
) -> Result<(), Failure> {
    if items.len() != results.len() {
        let what = format!(
            "{} outputs are specified, the function has {} results",
            items.len(),
            results.len()
        );
        return Err(Failure::work(StatusCode::OUT_OF_RANGE, what));
    }
    for (index, (item, result)) in items.iter().zip(results).enumerate() {
        let item = item.trim();
        match item {
            "" => {}
            "-" => print(stdout, result, max_elements)?,
            _ => write_file(index, item, result)?,
        }
    }
    Ok(())
}

fn write_file(index: usize, item: &str, result: &Value) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.create(true);
    let path = if let Some(path) = item.strip_prefix('@') {
        options.write(true).truncate(true);
        Path::new(path)
    } else if let Some(path) = item.strip_prefix('+') {
        options.append(true);
        Path::new(path)
    } else {
        let what =
            format!("--output {index} is `{item}`, expected `-`, `@file`, `+file` or nothing");
        return Err(Failure::work(StatusCode::UNIMPLEMENTED, what));
    };
    let tensor = as_tensor(index, result)?;
    let file = options
        .open(path)
        .map_err(|source| file_failure(path, source))?;
    let mut file = BufWriter::new(file);
    if path.extension().is_some_and(|extension| extension == "npy") {
        write_array(&mut file, path, &tensor)?;
    } else {
        file.write_all(&tensor.to_bytes())
            .map_err(|source| file_failure(path, source))?;
    }
    file.flush().map_err(|source| file_failure(path, source))
}

fn write_array(file: &mut BufWriter<File>, path: &Path, tensor: &Tensor) -> Result<(), Failure> {
    npy::write(file, tensor).map_err(|error| {
        let what = format!("cannot write the array `{}`", path.display());
        Failure::work(error.status_code(), what).caused_by(error)
    })
}

/// Returns what a file of a result holds: numbers are arrays without dimensions, memory is bytes.
fn as_tensor(index: usize, result: &Value) -> Result<Tensor, Failure> {
    match result {
        Value::Tensor(tensor) => Ok(tensor.clone()),
        Value::I32(value) => scalar(*value),
        Value::I64(value) => scalar(*value),
        Value::F32(value) => scalar(*value),
        Value::F64(value) => scalar(*value),
        Value::Storage(buffer) | Value::Buffer(buffer) => {
            let bytes = buffer.to_vec();
            Tensor::from_bytes(halite::ElementType::I8, &[bytes.len()], &bytes)
                .map_err(|error| Failure::of(error.status_code(), &error))
        }
        _ => {
            let what = format!(
                "result {index} is a {}, which no file holds",
                result.type_name()
            );
            Err(Failure::work(StatusCode::INVALID_ARGUMENT, what))
        }
    }
}

fn scalar<T: Element>(value: T) -> Result<Tensor, Failure> {
    Tensor::from_scalar(value).map_err(|error| Failure::of(error.status_code(), &error))
}

fn file_failure(path: &Path, source: io::Error) -> Failure {
    let code = match source.kind() {
        io::ErrorKind::NotFound => StatusCode::NOT_FOUND,
        io::ErrorKind::PermissionDenied => StatusCode::PERMISSION_DENIED,
        _ => StatusCode::UNKNOWN,
    };
    Failure::work(code, format!("cannot write `{}`", path.display())).caused_by(source)
}

/// Passes text on to standard output and keeps the error that text cannot carry.
struct Text<'a> {
    stdout: &'a mut dyn Write,
    error: Option<io::Error>,
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.stdout.write_all(text.as_bytes()).map_err(|error| {
            self.error = Some(error);
            fmt::Error
        })
    }
}
