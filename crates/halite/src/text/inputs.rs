//! Items of `--input=` and `--expected_output=`: values in text, and the files that they name.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::path::{Path, PathBuf};

use vm::{Atom, StatusCode};

use super::number::{NumberError, parse_f32, parse_f64, parse_i64};
use super::tensor::{Metadata, TensorTextError, parse_tensor};
use crate::npy::{self, NpyError};
use crate::tensor::checked_byte_length;
use crate::{Tensor, TensorError, Value};

/// Reads items into values and keeps the files that they name open, so that a later item can continue one.
///
/// The forms of an item (`docs/vm.md`, section "Parsing input items"):
///
/// | item | value |
/// |---|---|
/// | `5`, `1.5` | a number, where the function takes one |
/// | `2x2xf32=1 2 3 4` | a tensor |
/// | `2x2xf32=@file` | a tensor of the raw bytes at the start of a file; `=+file` goes on where the last item stopped |
/// | `@file.npy` | the first array of a file; `+file.npy` is the next one, `*file.npy` all that are left |
/// | `&2x2xf32` | the memory of a tensor without its shape, which the function writes to |
/// | `(null)`, `(ignored)` | zero or null |
#[derive(Debug, Default)]
pub struct Inputs {
    files: BTreeMap<PathBuf, BufReader<File>>,
}

/// What a function takes in the place of an item.
#[derive(Clone, Copy, Debug)]
pub struct Parameter<'a> {
    /// Its place in the calling convention.
    pub atom: Atom,
    /// Its declared type, for example `i1` or `tensor<4xf32>`, when the program says.
    pub declared_type: Option<&'a str>,
}

/// Which item could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read item {index}, `{item}`")]
pub struct InputError {
    /// Position of the item.
    pub index: usize,
    /// The item, cut short when it is long.
    pub item: String,
    /// What is wrong with it.
    #[source]
    pub source: ItemError,
}

/// What is wrong with an item.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ItemError {
    /// There is no text.
    #[error("no value is given")]
    Empty,
    /// The function takes fewer values.
    #[error("the function takes only {parameter_count} values")]
    TooMany {
        /// Values that it takes.
        parameter_count: usize,
    },
    /// A file stands where the function takes a number.
    #[error("the function takes a number (`{}`) here, not a tensor", atom.letter())]
    NotARef {
        /// What the function takes.
        atom: Atom,
    },
    /// The text is no number of the type that the function takes.
    #[error("not a value of type {type_name}")]
    Number {
        /// The type.
        type_name: &'static str,
        /// What is wrong with the text.
        #[source]
        source: NumberError,
    },
    /// The number does not fit the declared type.
    #[error("{value} is out of range for the declared type {declared_type}")]
    Range {
        /// The number.
        value: i64,
        /// The declared type.
        declared_type: String,
    },
    /// The text is no tensor.
    #[error("not a tensor")]
    Tensor(#[source] TensorTextError),
    /// A file without a shape is not an array.
    #[error("`{}` has no shape: only .npy files do without one", path.display())]
    NoShape {
        /// The file.
        path: PathBuf,
    },
    /// A file with raw bytes is an array.
    #[error("`{}` is a numpy array, not raw bytes", path.display())]
    RawNpy {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be opened or read.
    #[error("cannot read `{}`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file holds no array, or none that can be a tensor.
    #[error("cannot read an array from `{}`", path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: NpyError,
    },
}

impl InputError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match &self.source {
            ItemError::Empty
            | ItemError::TooMany { .. }
            | ItemError::NotARef { .. }
            | ItemError::Number { .. }
            | ItemError::RawNpy { .. } => StatusCode::INVALID_ARGUMENT,
            ItemError::Range { .. } => StatusCode::OUT_OF_RANGE,
            ItemError::NoShape { .. } => StatusCode::UNIMPLEMENTED,
            ItemError::Tensor(source) => source.status_code(),
            ItemError::Npy { source, .. } => source.status_code(),
            ItemError::File { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => StatusCode::NOT_FOUND,
                io::ErrorKind::PermissionDenied => StatusCode::PERMISSION_DENIED,
                _ => StatusCode::UNKNOWN,
            },
        }
    }

    /// Returns what to do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match &self.source {
            ItemError::RawNpy { path } => Some(format!(
                "use `@{}` to take shape and type from the file",
                path.display()
            )),
            ItemError::NoShape { path } => Some(format!(
                "give the shape and type, as in `4x2xf32=@{}`",
                path.display()
            )),
            _ => None,
        }
    }
}

/// Where reading of a file starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Start,
    Current,
}

impl Inputs {
    /// Returns a reader with no open files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads items for these parameters. There may be fewer values than parameters.
    ///
    /// # Errors
    /// Fails at the first item that cannot be read or that no parameter is left for.
    pub fn parse<S: AsRef<str>>(
        &mut self,
        items: &[S],
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Value>, InputError> {
        self.parse_all(items, parameters, zero)
    }

    /// Reads items that results are compared with: as [`Inputs::parse`], but `(ignored)` and `(null)` are null also
    /// where the function returns a number.
    ///
    /// # Errors
    /// As [`Inputs::parse`].
    pub fn parse_expected<S: AsRef<str>>(
        &mut self,
        items: &[S],
        results: &[Parameter<'_>],
    ) -> Result<Vec<Value>, InputError> {
        self.parse_all(items, results, |_| Value::Null)
    }

    fn parse_all<S: AsRef<str>>(
        &mut self,
        items: &[S],
        parameters: &[Parameter<'_>],
        placeholder: fn(Atom) -> Value,
    ) -> Result<Vec<Value>, InputError> {
        let mut values = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let item = item.as_ref().trim();
            let left = parameters.get(values.len()..).unwrap_or_default();
            let parsed = match left.first() {
                Some(parameter) if matches!(item, "(null)" | "(ignored)") => {
                    values.push(placeholder(parameter.atom));
                    Ok(())
                }
                _ => self.parse_item(item, left, &mut values),
            };
            parsed.map_err(|source| {
                let source = match source {
                    ItemError::TooMany { .. } => ItemError::TooMany {
                        parameter_count: parameters.len(),
                    },
                    other => other,
                };
                InputError {
                    index,
                    item: shortened(item),
                    source,
                }
            })?;
        }
        Ok(values)
    }

    /// Reads one item, which may hold many values, for the parameters that are left.
    fn parse_item(
        &mut self,
        item: &str,
        left: &[Parameter<'_>],
        values: &mut Vec<Value>,
    ) -> Result<(), ItemError> {
        if item.is_empty() {
            return Err(ItemError::Empty);
        }
        let too_many = || ItemError::TooMany {
            parameter_count: left.len(),
        };
        let parameter = left.first().ok_or_else(too_many)?;
        let Some(marker) = item
            .chars()
            .next()
            .filter(|first| matches!(first, '@' | '+' | '*' | '&'))
        else {
            values.push(match parameter.atom {
                Atom::Ref => Value::Tensor(self.tensor(item)?),
                _ => parse_number(item, *parameter)?,
            });
            return Ok(());
        };
        // A number may begin with a plus.
        if marker == '+' && parameter.atom != Atom::Ref {
            values.push(parse_number(item, *parameter)?);
            return Ok(());
        }
        check_ref(parameter)?;
        let rest = &item[1..];
        match marker {
            '&' => values.push(Value::Storage(self.tensor(rest)?.buffer().clone())),
            '*' => {
                let mut left = left.iter();
                while self.has_array(Path::new(rest))? {
                    check_ref(left.next().ok_or_else(too_many)?)?;
                    values.push(Value::Tensor(
                        self.array(Path::new(rest), Position::Current)?,
                    ));
                }
            }
            '@' => values.push(Value::Tensor(self.array(Path::new(rest), Position::Start)?)),
            _ => values.push(Value::Tensor(
                self.array(Path::new(rest), Position::Current)?,
            )),
        }
        Ok(())
    }

    /// Reads `SHAPExTYPE=DATA`, where the data may be in a file.
    fn tensor(&mut self, text: &str) -> Result<Tensor, ItemError> {
        let Some((metadata, data)) = text.split_once('=') else {
            return parse_tensor(text).map_err(ItemError::Tensor);
        };
        let (path, position) = match (data.strip_prefix('@'), data.strip_prefix('+')) {
            (Some(path), _) => (Path::new(path), Position::Start),
            (_, Some(path)) => (Path::new(path), Position::Current),
            _ => return parse_tensor(text).map_err(ItemError::Tensor),
        };
        let Metadata {
            element_type,
            shape,
        } = Metadata::parse(metadata).map_err(ItemError::Tensor)?;
        let of_tensor = |source: TensorError| ItemError::Tensor(source.into());
        let byte_length = checked_byte_length(element_type, &shape).map_err(of_tensor)?;
        let file = self.open(path, position)?;
        let start = file.fill_buf().map_err(|source| file_error(path, source))?;
        if start.starts_with(npy::MAGIC) {
            return Err(ItemError::RawNpy { path: path.into() });
        }
        let bytes =
            npy::read_bytes(file, byte_length, "data").map_err(|source| npy_error(path, source))?;
        Tensor::from_bytes(element_type, &shape, &bytes).map_err(of_tensor)
    }

    fn array(&mut self, path: &Path, position: Position) -> Result<Tensor, ItemError> {
        check_extension(path)?;
        let file = self.open(path, position)?;
        npy::read(file).map_err(|source| npy_error(path, source))
    }

    /// Returns whether a file has bytes left.
    fn has_array(&mut self, path: &Path) -> Result<bool, ItemError> {
        check_extension(path)?;
        let file = self.open(path, Position::Current)?;
        let left = file.fill_buf().map_err(|source| file_error(path, source))?;
        Ok(!left.is_empty())
    }

    fn open(&mut self, path: &Path, position: Position) -> Result<&mut BufReader<File>, ItemError> {
        let of_file = |source| file_error(path, source);
        let file = match self.files.entry(path.into()) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let file = File::open(path).map_err(of_file)?;
                return Ok(entry.insert(BufReader::new(file)));
            }
        };
        if position == Position::Start {
            file.rewind().map_err(of_file)?;
        }
        Ok(file)
    }
}

fn zero(atom: Atom) -> Value {
    match atom {
        Atom::I32 => Value::I32(0),
        Atom::I64 => Value::I64(0),
        Atom::F32 => Value::F32(0.0),
        Atom::F64 => Value::F64(0.0),
        Atom::Ref => Value::Null,
    }
}

fn check_ref(parameter: &Parameter<'_>) -> Result<(), ItemError> {
    match parameter.atom {
        Atom::Ref => Ok(()),
        atom => Err(ItemError::NotARef { atom }),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "32-bit integers wrap, as the tools read them"
)]
fn parse_number(text: &str, parameter: Parameter<'_>) -> Result<Value, ItemError> {
    let of_type = |type_name| move |source| ItemError::Number { type_name, source };
    Ok(match parameter.atom {
        Atom::I32 => {
            let value = parse_i64(text).map_err(of_type("i32"))?;
            check_declared_range(value, parameter.declared_type)?;
            Value::I32(value as i32)
        }
        Atom::I64 => Value::I64(parse_i64(text).map_err(of_type("i64"))?),
        Atom::F32 => Value::F32(parse_f32(text).map_err(of_type("f32"))?),
        Atom::F64 => Value::F64(parse_f64(text).map_err(of_type("f64"))?),
        Atom::Ref => return Err(ItemError::NotARef { atom: Atom::Ref }),
    })
}

/// Checks a number against the narrow type that its 32-bit argument is declared with.
fn check_declared_range(value: i64, declared_type: Option<&str>) -> Result<(), ItemError> {
    let Some(declared_type) = declared_type else {
        return Ok(());
    };
    let range = match declared_type {
        "i1" => 0..=1,
        "i8" => i8::MIN.into()..=u8::MAX.into(),
        "i16" => i16::MIN.into()..=u16::MAX.into(),
        _ => return Ok(()),
    };
    if range.contains(&value) {
        return Ok(());
    }
    Err(ItemError::Range {
        value,
        declared_type: declared_type.into(),
    })
}

fn check_extension(path: &Path) -> Result<(), ItemError> {
    if path.extension().is_some_and(|extension| extension == "npy") {
        return Ok(());
    }
    Err(ItemError::NoShape { path: path.into() })
}

fn file_error(path: &Path, source: io::Error) -> ItemError {
    ItemError::File {
        path: path.into(),
        source,
    }
}

fn npy_error(path: &Path, source: NpyError) -> ItemError {
    match source {
        NpyError::Io(source) => file_error(path, source),
        source => ItemError::Npy {
            path: path.into(),
            source,
        },
    }
}

/// Returns the beginning of an item, for messages.
fn shortened(item: &str) -> String {
    const LONGEST: usize = 80;
    match item.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &item[..end]),
        None => item.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    const REF: Parameter<'_> = Parameter {
        atom: Atom::Ref,
        declared_type: None,
    };

    fn number(atom: Atom) -> Parameter<'static> {
        Parameter {
            atom,
            declared_type: None,
        }
    }

    fn parse_one(item: &str, parameter: Parameter<'_>) -> Result<Value, InputError> {
        Ok(Inputs::new().parse(&[item], &[parameter])?.remove(0))
    }

    #[track_caller]
    fn check_error(item: &str, parameter: Parameter<'_>, code: StatusCode, message: &str) {
        let error = parse_one(item, parameter).unwrap_err();
        assert_eq!(error.status_code(), code, "{item}: {:?}", error.source);
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            text += &format!("; {next}");
            cause = next.source();
        }
        assert!(text.contains(message), "{text}");
    }

    fn texts(values: &[Value]) -> Vec<String> {
        values
            .iter()
            .map(|value| value.as_tensor().unwrap().to_string())
            .collect()
    }

    /// A directory with `three.npy` (three arrays) and `bytes.bin` (0 to 15); returns a closure that names files in it.
    fn files() -> (TempDir, impl Fn(&str, &str) -> String) {
        let directory = TempDir::new().unwrap();
        let mut arrays = Vec::new();
        for value in 0..3u8 {
            let tensor = Tensor::from_slice(&[2], &[f32::from(value); 2]).unwrap();
            npy::write(&mut arrays, &tensor).unwrap();
        }
        fs::write(directory.path().join("three.npy"), arrays).unwrap();
        fs::write(
            directory.path().join("bytes.bin"),
            (0..16).collect::<Vec<u8>>(),
        )
        .unwrap();
        let path = directory.path().to_owned();
        (directory, move |before: &str, name: &str| {
            format!("{before}{}", path.join(name).display())
        })
    }

    #[test]
    fn numbers_are_read_where_the_function_takes_them() {
        assert!(matches!(
            parse_one("0x10", number(Atom::I32)),
            Ok(Value::I32(16))
        ));
        assert!(matches!(
            parse_one("4294967295", number(Atom::I32)),
            Ok(Value::I32(-1))
        ));
        assert!(matches!(
            parse_one("+7", number(Atom::I64)),
            Ok(Value::I64(7))
        ));
        assert!(matches!(
            parse_one("2abc", number(Atom::F32)),
            Ok(Value::F32(2.0))
        ));
        assert!(matches!(
            parse_one(" inf ", number(Atom::F64)),
            Ok(Value::F64(f64::INFINITY))
        ));
        assert!(matches!(
            parse_one("(null)", number(Atom::F64)),
            Ok(Value::F64(0.0))
        ));
        assert!(matches!(parse_one("(ignored)", REF), Ok(Value::Null)));
        let bad = StatusCode::INVALID_ARGUMENT;
        check_error("i32=1", number(Atom::I32), bad, "not a value of type i32");
        check_error(
            "9223372036854775808",
            number(Atom::I64),
            bad,
            "out of range",
        );
        check_error("1e-46", number(Atom::F32), bad, "too small");
        check_error(
            "@x.npy",
            number(Atom::I32),
            bad,
            "the function takes a number (`i`) here",
        );
    }

    #[test]
    fn e5_a_number_is_checked_against_its_declared_type() {
        let declared = |declared_type| Parameter {
            atom: Atom::I32,
            declared_type: Some(declared_type),
        };
        let code = StatusCode::OUT_OF_RANGE;
        check_error(
            "2048",
            declared("i1"),
            code,
            "2048 is out of range for the declared type i1",
        );
        check_error("256", declared("i8"), code, "declared type i8");
        check_error("-32769", declared("i16"), code, "declared type i16");
        assert!(parse_one("1", declared("i1")).is_ok());
        assert!(parse_one("255", declared("i8")).is_ok());
        assert!(parse_one("2048", declared("i32")).is_ok());
    }

    #[test]
    fn arrays_are_taken_from_the_start_or_onwards() {
        let (_directory, name) = files();
        let refs = [REF; 3];
        let mut inputs = Inputs::new();
        let items = [name("@", "three.npy"), name("+", "three.npy")];
        let values = inputs.parse(&items, &refs).unwrap();
        assert_eq!(texts(&values), ["2xf32=0 0", "2xf32=1 1"]);
        let values = inputs.parse(&[name("*", "three.npy")], &refs).unwrap();
        assert_eq!(texts(&values), ["2xf32=2 2"]);
        let values = inputs.parse(&[name("@", "three.npy")], &refs).unwrap();
        assert_eq!(texts(&values), ["2xf32=0 0"]);
        let values = Inputs::new()
            .parse(&[name("*", "three.npy")], &refs)
            .unwrap();
        assert_eq!(values.len(), 3);
        let error = Inputs::new()
            .parse(&[name("*", "three.npy")], &refs[..2])
            .unwrap_err();
        assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);
        let past = [name("*", "three.npy"), name("+", "three.npy")];
        let error = Inputs::new().parse(&past, &[REF; 4]).unwrap_err();
        assert_eq!(error.index, 1);
    }

    #[test]
    fn raw_bytes_are_taken_from_the_start_or_onwards() {
        let (_directory, name) = files();
        let items = [
            name("4xi8=+", "bytes.bin"),
            name("2xi8=+", "bytes.bin"),
            name("1xi8=@", "bytes.bin"),
        ];
        let values = Inputs::new().parse(&items, &[REF; 3]).unwrap();
        assert_eq!(texts(&values), ["4xi8=0 1 2 3", "2xi8=4 5", "1xi8=0"]);
        let long = name("5xi32=@", "bytes.bin");
        check_error(
            &long,
            REF,
            StatusCode::OUT_OF_RANGE,
            "takes 20 bytes, but only 16",
        );
        let huge = name("1000000000000xi8=@", "bytes.bin");
        check_error(&huge, REF, StatusCode::OUT_OF_RANGE, "only 16");
    }

    #[test]
    fn e2_an_array_is_not_read_as_raw_bytes() {
        let (_directory, name) = files();
        let item = name("4xf32=@", "three.npy");
        check_error(
            &item,
            REF,
            StatusCode::INVALID_ARGUMENT,
            "is a numpy array, not raw bytes",
        );
        let hint = parse_one(&item, REF).unwrap_err().hint().unwrap();
        assert!(hint.contains(&name("@", "three.npy")), "{hint}");
    }

    #[test]
    fn e3_a_missing_file_is_named() {
        let (_directory, name) = files();
        for before in ["@", "*", "+", "4xf32=@", "4xf32=+", "&4xf32=@"] {
            check_error(
                &name(before, "nope.npy"),
                REF,
                StatusCode::NOT_FOUND,
                "nope.npy",
            );
        }
        check_error(
            &name("@", "bytes.bin"),
            REF,
            StatusCode::UNIMPLEMENTED,
            "only .npy files",
        );
    }

    #[test]
    fn storage_is_memory_without_a_shape() {
        let value = parse_one("&2x2xf32=1 2 3 4", REF).unwrap();
        assert!(matches!(value, Value::Storage(buffer) if buffer.length() == 16));
    }

    #[test]
    fn items_that_are_empty_or_too_many_are_refused() {
        let bad = StatusCode::INVALID_ARGUMENT;
        check_error("", REF, bad, "no value is given");
        check_error("  ", REF, bad, "no value is given");
        let error = Inputs::new().parse(&["1xi8", "2xi8"], &[REF]).unwrap_err();
        assert_eq!((error.index, error.status_code()), (1, bad));
        assert_eq!(error.source.to_string(), "the function takes only 1 values");
        check_error("1", REF, bad, "such as `4x2xf32=...`");
    }

    #[test]
    fn long_items_are_cut_in_messages() {
        let error = parse_one(&"é".repeat(300), REF).unwrap_err();
        assert_eq!(error.item.chars().count(), 83);
    }
}
