//! Reading files that are named on the command line.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, Read};

use halite::StatusCode;

use crate::failure::Failure;

/// Returns the bytes of a file, or of standard input when the path is `-`.
pub(crate) fn read(path: &str, stdin: &mut dyn Read) -> Result<Vec<u8>, Failure> {
    if path == "-" {
        let mut bytes = Vec::new();
        stdin.read_to_end(&mut bytes).map_err(|source| {
            Failure::work(StatusCode::UNKNOWN, "cannot read standard input").caused_by(source)
        })?;
        return Ok(bytes);
    }
    fs::read(path).map_err(|source| read_failure(path, source))
}

/// Returns the failure of a file that cannot be read.
pub(crate) fn read_failure(path: &str, source: io::Error) -> Failure {
    let code = match source.kind() {
        io::ErrorKind::NotFound => StatusCode::NOT_FOUND,
        io::ErrorKind::PermissionDenied => StatusCode::PERMISSION_DENIED,
        _ => StatusCode::UNKNOWN,
    };
    Failure::work(code, format!("cannot read `{path}`")).caused_by(source)
}

/// Returns how messages name a file.
pub(crate) fn name(path: &str) -> &str {
    if path == "-" {
        "<standard input>"
    } else {
        path
    }
}
