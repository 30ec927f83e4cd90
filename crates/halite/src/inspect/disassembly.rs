//! The bytecode of a module as text.
#![forbid(unsafe_code)]

use vm::StatusCode;
use vm_bytecode::{Disassembler, LoadError, RodataText, VerifiedModule};

/// Why a module cannot be disassembled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DisassembleError {
    /// The file is no module, or one that does not verify: only what verifies has a text.
    #[error("only modules that can be loaded can be disassembled")]
    Load(#[from] LoadError),
    /// There is no such function.
    #[error("no function `{name}` exported by the module; it has {}", available.join(", "))]
    FunctionNotFound {
        /// The name asked for.
        name: String,
        /// The functions that it exports.
        available: Vec<String>,
    },
}

impl DisassembleError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::Load(source) => source.status_code(),
            Self::FunctionNotFound { .. } => StatusCode::NOT_FOUND,
        }
    }
}

/// Returns the text of a module, or of the function that it exports under a name. Of read-only data only the length is
/// written, and short texts.
///
/// # Errors
/// Fails when the file is no module that can be loaded, and when there is no such function.
pub fn disassemble(file: &[u8], function: Option<&str>) -> Result<String, DisassembleError> {
    let module = VerifiedModule::load(file)?;
    let disassembler = Disassembler::new(&module, file).rodata(RodataText::Summary);
    let Some(name) = function else {
        return Ok(disassembler.to_string());
    };
    let exports = &module.def().exports;
    let export = exports.iter().find(|export| export.name == name);
    let text = export.and_then(|export| disassembler.function(export.function));
    match text {
        Some(text) => Ok(text.to_string()),
        None => Err(DisassembleError::FunctionNotFound {
            name: name.to_owned(),
            available: exports.iter().map(|export| export.name.clone()).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::testing::repository_file;

    #[test]
    fn a_function_is_found_by_its_exported_name() {
        let file = repository_file("tests/fixtures/3.13.0/llvm-cpu/loop.vmfb");
        let text = disassemble(&file, Some("loop")).unwrap();
        assert!(text.starts_with("vm.func @loop("), "{text}");
        let all = disassemble(&file, None).unwrap();
        assert!(all.contains("vm.module @module") && all.contains(&text));
        let error = disassemble(&file, Some("lop")).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
        assert!(error.to_string().contains("loop"));
    }
}
