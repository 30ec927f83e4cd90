//! Guesses what a file is from its first bytes, for the error when it is not a module.
//!
//! Only a guess for people; nothing decides on it.

use core::fmt;

/// What a file looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// No bytes at all.
    Empty,
    /// ELF image: an executable, a shared library or an object.
    Elf,
    /// Several ELF images in one file.
    FatElf,
    /// Windows image.
    Pe,
    /// macOS image.
    MachO,
    /// MLIR in its binary encoding.
    MlirBytecode,
    /// Text, most likely MLIR.
    MlirText,
    /// ONNX model.
    Onnx,
    /// NumPy array.
    Npy,
    /// gzip stream.
    Gzip,
    /// ZIP archive.
    Zip,
    /// Another text.
    Text,
}

/// Bytes at the start of a file that tell its kind.
const MAGICS: [(&[u8], FileKind); 11] = [
    (b"\x7FELF", FileKind::Elf),
    (b"\xFA\x70\x0E\x1F", FileKind::FatElf),
    (b"MZ", FileKind::Pe),
    (b"\xCF\xFA\xED\xFE", FileKind::MachO),
    (b"\xCA\xFE\xBA\xBE", FileKind::MachO),
    (b"ML\xEFR", FileKind::MlirBytecode),
    (b"\x93NUMPY", FileKind::Npy),
    (b"\x1F\x8B", FileKind::Gzip),
    (b"PK\x03\x04", FileKind::Zip),
    (b"PK\x05\x06", FileKind::Zip),
    // Field 1 (the version) as a small number, then field 2 (the producer's name): the start of every exported model.
    (b"\x08", FileKind::Onnx),
];

/// Words that start a line of MLIR text.
const MLIR_WORDS: [&str; 7] = [
    "module",
    "func.func",
    "util.func",
    "builtin.module",
    "#",
    "vm.module",
    "hal.",
];

impl FileKind {
    /// Guesses the kind of a file, or returns `None` if nothing is recognized.
    #[must_use]
    pub fn guess(file: &[u8]) -> Option<Self> {
        if file.is_empty() {
            return Some(Self::Empty);
        }
        let magic = MAGICS
            .iter()
            .find(|(magic, _)| file.starts_with(magic))
            .map(|&(_, kind)| kind);
        match magic {
            Some(Self::Onnx) => (file.get(2) == Some(&0x12)).then_some(Self::Onnx),
            Some(kind) => Some(kind),
            None => Self::guess_text(file),
        }
    }

    fn guess_text(file: &[u8]) -> Option<Self> {
        let start = &file[..file.len().min(4096)];
        let is_text = |&byte: &u8| byte >= 0x20 || matches!(byte, b'\n' | b'\r' | b'\t');
        if !start.iter().all(is_text) {
            return None;
        }
        // The cut may fall inside a character.
        let text = match str::from_utf8(start) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => {
                str::from_utf8(&start[..error.valid_up_to()]).ok()?
            }
            Err(_) => return None,
        };
        let mut lines = text
            .lines()
            .map(str::trim_start)
            .filter(|line| !line.is_empty() && !line.starts_with("//"));
        let is_mlir = lines
            .next()
            .is_some_and(|line| MLIR_WORDS.iter().any(|word| line.starts_with(word)));
        Some(if is_mlir { Self::MlirText } else { Self::Text })
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "an empty file",
            Self::Elf => "an ELF image",
            Self::FatElf => "a FatELF image",
            Self::Pe => "a Windows image",
            Self::MachO => "a macOS image",
            Self::MlirBytecode => "MLIR bytecode, which must be compiled first",
            Self::MlirText => "MLIR text, which must be compiled first",
            Self::Onnx => "an ONNX model, which must be imported and compiled first",
            Self::Npy => "a NumPy array",
            Self::Gzip => "a gzip stream",
            Self::Zip => "a ZIP archive of something else",
            Self::Text => "a text file",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_mistakes_are_recognized() {
        let cases: [(&[u8], Option<FileKind>); 12] = [
            (b"", Some(FileKind::Empty)),
            (b"\x7FELF\x02\x01\x01", Some(FileKind::Elf)),
            (b"\xFA\x70\x0E\x1F\x01", Some(FileKind::FatElf)),
            (b"\x93NUMPY\x01\x00", Some(FileKind::Npy)),
            (b"ML\xEFR\x06", Some(FileKind::MlirBytecode)),
            (b"PK\x03\x04rest", Some(FileKind::Zip)),
            (b"\x08\x07\x12\x07pytorch", Some(FileKind::Onnx)),
            (b"\x08\x07\x13\x07", None),
            (b"// comment\n\nfunc.func @f() {", Some(FileKind::MlirText)),
            (b"module @m {", Some(FileKind::MlirText)),
            ("caf\u{e9}".as_bytes(), Some(FileKind::Text)),
            (b"\x00\x01\x02", None),
        ];
        for (file, expected) in cases {
            assert_eq!(FileKind::guess(file), expected, "{file:?}");
        }
    }
}
