//! JSON on standard output.
#![forbid(unsafe_code)]

use serde::Serialize;

/// Returns a value as JSON on one line, with its line break.
pub(crate) fn line<T: Serialize>(value: &T) -> String {
    let text = serde_json::to_string(value)
        .expect("the types that are printed have texts for keys and cannot fail");
    text + "\n"
}
