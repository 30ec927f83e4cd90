//! Plugin specifications: which file, which kind of code in it, which parameters; and the strings
//! that say so on a command line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hal_abi::StatusCode;

/// The prefix that says that a file holds a freestanding image.
const EMBEDDED_PREFIX: &str = "embedded:";

/// The extension that says the same.
const EMBEDDED_EXTENSION: &str = ".sos";

/// Which kind of code a plugin file holds, and so who loads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PluginFormat {
    /// A shared object for the system's loader.
    System,
    /// A freestanding ELF image or FatELF file.
    Embedded,
}

/// Names a plugin file and the parameters for its `load`.
///
/// As a string:
///
/// ```text
/// spec       = [ "embedded:" ] path [ "?" parameter { "&" parameter } ]
/// parameter  = key "=" value
/// ```
///
/// * The prefix `embedded:` is taken off and says that the file is a freestanding image. Without it
///   a path that ends in `.sos` is one too, and anything else is a system library.
/// * The path ends at the first `?`, each parameter at the next `&`, each key at the first `=`. A
///   value may hold further `?` and `=`, and may be empty. Keys may repeat; order is kept.
/// * Nothing is escaped: `%20` is three characters. A path with a `?` or a value with an `&` can
///   only be given with [`system`](Self::system), [`embedded`](Self::embedded) and
///   [`with_parameter`](Self::with_parameter).
///
/// # Examples
///
/// ```
/// use hal_plugin::{PluginFormat, PluginSpec};
///
/// let spec = PluginSpec::parse("embedded:lib/kernels.so?tile=8&mode=fast")?;
/// assert_eq!(spec.format(), PluginFormat::Embedded);
/// assert_eq!(spec.path().to_str(), Some("lib/kernels.so"));
/// assert!(spec.parameters().eq([("tile", "8"), ("mode", "fast")]));
/// # Ok::<(), hal_plugin::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PluginSpec {
    format: PluginFormat,
    path: PathBuf,
    parameters: Vec<(String, String)>,
}

impl PluginSpec {
    /// Names a system library: a path with a `/` in it, or a bare file name to search for.
    #[must_use]
    pub fn system(path: impl Into<PathBuf>) -> Self {
        Self {
            format: PluginFormat::System,
            path: path.into(),
            parameters: Vec::new(),
        }
    }

    /// Names a file with a freestanding image.
    #[must_use]
    pub fn embedded(path: impl Into<PathBuf>) -> Self {
        Self {
            format: PluginFormat::Embedded,
            path: path.into(),
            parameters: Vec::new(),
        }
    }

    /// Adds a parameter behind those already there.
    #[must_use]
    pub fn with_parameter(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((key.into(), value.into()));
        self
    }

    /// Parses a specification string.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if the path is empty or has a NUL in it, or if a parameter is not `key=value`
    /// with a key.
    pub fn parse(spec: &str) -> Result<Self, SpecError> {
        let (file, parameters) = match spec.split_once('?') {
            Some((file, parameters)) => (file, Some(parameters)),
            None => (spec, None),
        };
        let (path, format) = match file.strip_prefix(EMBEDDED_PREFIX) {
            Some(path) => (path, PluginFormat::Embedded),
            None if file.ends_with(EMBEDDED_EXTENSION) => (file, PluginFormat::Embedded),
            None => (file, PluginFormat::System),
        };
        if path.is_empty() {
            return Err(SpecError::EmptyPath {
                spec: spec.to_owned(),
            });
        }
        if path.contains('\0') {
            return Err(SpecError::NulInPath {
                spec: spec.to_owned(),
            });
        }
        let parameters = parameters.map_or(Ok(Vec::new()), |parameters| {
            let parameters = parameters.split('&').enumerate();
            parameters
                .map(|(index, parameter)| parse_parameter(index, parameter))
                .collect()
        })?;
        Ok(Self {
            format,
            path: path.into(),
            parameters,
        })
    }

    /// Returns which kind of code the file holds.
    #[must_use]
    pub fn format(&self) -> PluginFormat {
        self.format
    }

    /// Returns the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the parameters in order.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.parameters
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

fn parse_parameter(index: usize, parameter: &str) -> Result<(String, String), SpecError> {
    match parameter.split_once('=') {
        Some(("", _)) | None => Err(SpecError::InvalidParameter {
            index,
            parameter: parameter.to_owned(),
        }),
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
    }
}

impl FromStr for PluginSpec {
    type Err = SpecError;

    fn from_str(spec: &str) -> Result<Self, SpecError> {
        Self::parse(spec)
    }
}

/// Writes the specification string. It parses back to the same value if it can be said as a string.
impl fmt::Display for PluginSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.to_string_lossy();
        let needs_prefix = path.starts_with(EMBEDDED_PREFIX) || !path.ends_with(EMBEDDED_EXTENSION);
        if self.format == PluginFormat::Embedded && needs_prefix {
            f.write_str(EMBEDDED_PREFIX)?;
        }
        f.write_str(&path)?;
        for (index, (key, value)) in self.parameters.iter().enumerate() {
            let separator = if index == 0 { '?' } else { '&' };
            write!(f, "{separator}{key}={value}")?;
        }
        Ok(())
    }
}

/// Why a plugin specification string is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// There is no path.
    #[error("plugin specification {spec:?} has no path")]
    EmptyPath {
        /// The whole string.
        spec: String,
    },
    /// A path with a NUL, which the system would take for a shorter one.
    #[error("the path in plugin specification {spec:?} has a NUL in it")]
    NulInPath {
        /// The whole string.
        spec: String,
    },
    /// A parameter without a key or without a `=`.
    #[error("plugin parameter {index} is {parameter:?}, not `key=value`")]
    InvalidParameter {
        /// The index of the parameter.
        index: usize,
        /// The parameter.
        parameter: String,
    },
}

impl SpecError {
    /// Returns the status code to report.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::EmptyPath { .. } | Self::NulInPath { .. } | Self::InvalidParameter { .. } => {
                StatusCode::INVALID_ARGUMENT
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(spec: &str, format: PluginFormat, path: &str, parameters: &[(&str, &str)]) {
        let parsed = PluginSpec::parse(spec).unwrap();
        assert_eq!(parsed.format(), format);
        assert_eq!(parsed.path(), Path::new(path));
        assert!(parsed.parameters().eq(parameters.iter().copied()));
    }

    #[test]
    fn the_prefix_or_the_extension_chooses_the_format() {
        check("a.so", PluginFormat::System, "a.so", &[]);
        check("./x/a.sos", PluginFormat::Embedded, "./x/a.sos", &[]);
        check("embedded:a.so", PluginFormat::Embedded, "a.so", &[]);
        check("embedded:a.sos", PluginFormat::Embedded, "a.sos", &[]);
        check("Embedded:a.so", PluginFormat::System, "Embedded:a.so", &[]);
        check("a.sos.so", PluginFormat::System, "a.sos.so", &[]);
        check("a.SOS", PluginFormat::System, "a.SOS", &[]);
        check("a.sos?k=v", PluginFormat::Embedded, "a.sos", &[("k", "v")]);
        check(
            "a.so?k=x.sos",
            PluginFormat::System,
            "a.so",
            &[("k", "x.sos")],
        );
        check(
            "embedded:embedded:a",
            PluginFormat::Embedded,
            "embedded:a",
            &[],
        );
    }

    #[test]
    fn parameters_keep_their_order_and_their_characters() {
        let system = PluginFormat::System;
        check("a?k=", system, "a", &[("k", "")]);
        check("a?k=1&k=2", system, "a", &[("k", "1"), ("k", "2")]);
        check("a?k=b=c?d", system, "a", &[("k", "b=c?d")]);
        check("a?k=%20+,", system, "a", &[("k", "%20+,")]);
    }

    #[test]
    fn a_specification_without_a_path_is_refused() {
        for spec in ["", "embedded:", "?k=v", "embedded:?k=v"] {
            let error = PluginSpec::parse(spec).unwrap_err();
            let spec = spec.to_owned();
            assert_eq!(error, SpecError::EmptyPath { spec });
        }
    }

    #[test]
    fn a_path_with_a_nul_is_refused() {
        let error = PluginSpec::parse("good.so\0evil").unwrap_err();
        assert!(matches!(error, SpecError::NulInPath { .. }));
        assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);
    }

    #[test]
    fn a_parameter_that_is_not_a_pair_is_named() {
        for (spec, index, parameter) in [
            ("a?", 0, ""),
            ("a?k", 0, "k"),
            ("a?=v", 0, "=v"),
            ("a?k=v&", 1, ""),
            ("a?k=v&&l=w", 1, ""),
        ] {
            let parameter = parameter.to_owned();
            assert_eq!(
                PluginSpec::parse(spec),
                Err(SpecError::InvalidParameter { index, parameter })
            );
        }
    }

    /// Whether the image is embedded, the path, and the parameters.
    type Parts = (bool, String, Vec<(String, String)>);

    /// Parses one character at a time, with no library function in common with the parser.
    fn oracle(spec: &str) -> Option<Parts> {
        let mut fields = vec![String::new()];
        let mut separators = Vec::new();
        for c in spec.chars() {
            let in_path = separators.is_empty();
            let in_key = separators.last().is_some_and(|&last| last != '=');
            if (in_path && c == '?') || (!in_path && c == '&') || (in_key && c == '=') {
                separators.push(c);
                fields.push(String::new());
            } else {
                fields.last_mut().unwrap().push(c);
            }
        }
        let mut path = fields.remove(0);
        let prefix = "embedded:".len();
        let is_prefixed = path.len() >= prefix && path.as_bytes()[..prefix] == *b"embedded:";
        if is_prefixed {
            path.drain(..prefix);
        }
        let end = path.len().saturating_sub(4);
        let is_embedded = is_prefixed || path.as_bytes()[end..] == *b".sos";
        let mut parameters = Vec::new();
        let mut rest = separators.into_iter().zip(fields).peekable();
        while let Some((_, key)) = rest.next() {
            let (separator, value) = rest.next()?;
            if separator != '=' || key.is_empty() {
                return None;
            }
            parameters.push((key, value));
        }
        let is_valid = !path.is_empty() && path.bytes().all(|byte| byte != 0);
        is_valid.then_some((is_embedded, path, parameters))
    }

    proptest! {
        #[test]
        fn parsing_agrees_with_the_oracle(
            spec in "(embedded:)?[a.?&=\0é]{0,6}(\\.sos)?(\\?[a=&?]{0,8})?"
        ) {
            let parsed = PluginSpec::parse(&spec).ok().map(|spec| {
                let path = spec.path.to_str().unwrap().to_owned();
                (spec.format == PluginFormat::Embedded, path, spec.parameters)
            });
            prop_assert_eq!(parsed, oracle(&spec));
        }

        #[test]
        fn a_written_specification_parses_back(
            is_embedded: bool,
            path in "(embedded:)?[a-z./]{1,8}(\\.sos?)?",
            parameters in prop::collection::vec(("[a-z]{1,3}", "[a-z=?]{0,3}"), 0..4),
        ) {
            // These two cannot be said for a system library.
            let is_sayable = !path.starts_with("embedded:") && !path.ends_with(".sos");
            let mut spec = if is_embedded || !is_sayable {
                PluginSpec::embedded(path)
            } else {
                PluginSpec::system(path)
            };
            for (key, value) in parameters {
                spec = spec.with_parameter(key, value);
            }
            prop_assert_eq!(PluginSpec::parse(&spec.to_string()), Ok(spec));
        }

        #[test]
        fn any_string_is_parsed_or_refused(spec: String) {
            let _ = PluginSpec::parse(&spec);
        }
    }
}
