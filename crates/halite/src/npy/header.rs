//! The header of an array.
#![forbid(unsafe_code)]

use std::io::Read;

use super::{MAGIC, MAX_HEADER_LENGTH, NpyError, dtype, read_bytes};
use crate::ElementType;

/// What the header of an array says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the format, major and minor.
    pub version: (u8, u8),
    /// The dtype as spelled, for example `<f4`; a structured dtype is given as the list that it is.
    pub descr: String,
    /// Whether the first index varies fastest.
    pub fortran_order: bool,
    /// The dimensions.
    pub shape: Vec<usize>,
}

impl Header {
    /// Reads the header that `reader` stands at and leaves it at the first element.
    ///
    /// # Errors
    /// Fails when there is no header, it is truncated, longer than [`MAX_HEADER_LENGTH`] or malformed.
    pub fn read(reader: &mut dyn Read) -> Result<Self, NpyError> {
        let mut start = Vec::new();
        let found = reader.take(8).read_to_end(&mut start)? as u64;
        if !start.starts_with(MAGIC) {
            start.truncate(MAGIC.len());
            return Err(NpyError::Magic { found: start });
        }
        let &[_, _, _, _, _, _, major, minor] = &start[..] else {
            return Err(NpyError::Truncated {
                part: "version",
                expected: 8,
                found,
            });
        };
        let length = match (major, minor) {
            (1, 0) => {
                let bytes = read_bytes(reader, 2, "header length")?;
                u64::from(bytes[0]) | u64::from(bytes[1]) << 8
            }
            (2 | 3, 0) => {
                let bytes = read_bytes(reader, 4, "header length")?;
                bytes
                    .iter()
                    .rev()
                    .fold(0, |length, byte| length << 8 | u64::from(*byte))
            }
            _ => return Err(NpyError::Version { major, minor }),
        };
        let length = usize::try_from(length)
            .ok()
            .filter(|&length| length <= MAX_HEADER_LENGTH)
            .ok_or(NpyError::HeaderLength { length })?;
        let text = read_bytes(reader, length, "header")?;
        Parser {
            text: &text,
            offset: 0,
        }
        .header((major, minor))
    }

    /// Returns the element type of the dtype.
    ///
    /// # Errors
    /// Fails when tensors have no such elements.
    pub fn element_type(&self) -> Result<ElementType, NpyError> {
        dtype::element_type(&self.descr).ok_or_else(|| NpyError::Dtype {
            descr: self.descr.clone(),
        })
    }
}

/// Returns magic, version, length and header as NumPy writes them.
pub(super) fn encode(descr: &str, shape: &[usize]) -> Vec<u8> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (");
    for (index, dimension) in shape.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        text += &format!("{separator}{dimension}");
    }
    text += if shape.len() == 1 { ",), }" } else { "), }" };
    // NumPy leaves room for the first dimension to grow to 21 digits in place.
    if let Some(dimension) = shape.first() {
        text += &" ".repeat(21usize.saturating_sub(dimension.to_string().len()));
    }
    let prefix = MAGIC.len() + 4;
    let total = (prefix + text.len() + 1).next_multiple_of(64);
    text += &" ".repeat(total - prefix - text.len() - 1);
    text.push('\n');

    let mut bytes = MAGIC.to_vec();
    // A tensor has at most 128 dimensions of at most 20 digits, so the length is far below the limit of version 1.
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    bytes.extend([1, 0]);
    bytes.extend(length.to_le_bytes());
    bytes.extend(text.bytes());
    bytes
}

/// Reads the dictionary: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }` and whitespace.
struct Parser<'a> {
    text: &'a [u8],
    offset: usize,
}

impl<'a> Parser<'a> {
    fn header(mut self, version: (u8, u8)) -> Result<Header, NpyError> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{', "`{`")?;
        while !self.accept(b'}') {
            let key_offset = self.offset;
            let key = self.string()?;
            self.expect(b':', "`:`")?;
            match key {
                b"descr" => set_once(&mut descr, self.descr()?, "descr")?,
                b"fortran_order" => set_once(&mut fortran_order, self.boolean()?, "fortran_order")?,
                b"shape" => set_once(&mut shape, self.shape()?, "shape")?,
                _ => {
                    let expected = "one of the keys 'descr', 'fortran_order' and 'shape'";
                    return Err(NpyError::Header {
                        offset: key_offset,
                        expected,
                    });
                }
            }
            if !self.accept(b',') {
                self.expect(b'}', "`,` or `}`")?;
                break;
            }
        }
        self.skip_whitespace();
        if self.offset < self.text.len() {
            return Err(self.error("nothing after the dictionary"));
        }
        Ok(Header {
            version,
            descr: descr.ok_or(NpyError::Key { key: "descr" })?,
            fortran_order: fortran_order.ok_or(NpyError::Key {
                key: "fortran_order",
            })?,
            shape: shape.ok_or(NpyError::Key { key: "shape" })?,
        })
    }

    /// Reads a dtype: a string, or the list of fields of a structured one, which is kept as text.
    fn descr(&mut self) -> Result<String, NpyError> {
        self.skip_whitespace();
        let bytes = match self.text.get(self.offset) {
            Some(b'[') => self.bracketed()?,
            _ => self.string()?,
        };
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Skips a list with whatever it holds: brackets in strings do not count.
    fn bracketed(&mut self) -> Result<&'a [u8], NpyError> {
        let start = self.offset;
        let mut depth = 0usize;
        while let Some(&byte) = self.text.get(self.offset) {
            match byte {
                b'\'' | b'"' => {
                    self.string()?;
                    continue;
                }
                b'[' | b'(' => depth += 1,
                b']' | b')' => depth -= 1,
                _ => {}
            }
            self.offset += 1;
            if depth == 0 {
                return Ok(&self.text[start..self.offset]);
            }
        }
        Err(self.error("`]`"))
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        self.skip_whitespace();
        for (word, value) in [(b"True".as_slice(), true), (b"False", false)] {
            if self.text[self.offset..].starts_with(word) {
                self.offset += word.len();
                return Ok(value);
            }
        }
        Err(self.error("True or False"))
    }

    /// Reads a tuple of numbers; one without a comma, `(184)`, is a number in Python and no tuple.
    fn shape(&mut self) -> Result<Vec<usize>, NpyError> {
        self.expect(b'(', "`(`")?;
        let mut shape = Vec::new();
        while !self.accept(b')') {
            shape.push(self.number()?);
            if self.accept(b',') {
                continue;
            }
            if shape.len() < 2 {
                return Err(self.error("`,` after the only dimension"));
            }
            self.expect(b')', "`,` or `)`")?;
            break;
        }
        Ok(shape)
    }

    fn number(&mut self) -> Result<usize, NpyError> {
        self.skip_whitespace();
        let start = self.offset;
        let mut value = 0usize;
        while let Some(digit) = self
            .text
            .get(self.offset)
            .filter(|byte| byte.is_ascii_digit())
        {
            value = value
                .checked_mul(10)
                .and_then(|value| value.checked_add(usize::from(digit - b'0')))
                .ok_or_else(|| self.error("a dimension that fits the address space"))?;
            self.offset += 1;
        }
        if self.offset == start {
            return Err(self.error("a dimension"));
        }
        Ok(value)
    }

    /// Reads a string in either kind of quotes. No string of a header needs escapes, so they are refused.
    fn string(&mut self) -> Result<&'a [u8], NpyError> {
        self.skip_whitespace();
        let Some(&quote @ (b'\'' | b'"')) = self.text.get(self.offset) else {
            return Err(self.error("a string"));
        };
        let rest = &self.text[self.offset + 1..];
        let end = rest.iter().position(|&byte| byte == quote || byte == b'\\');
        match end {
            Some(end) if rest[end] == quote => {
                self.offset += end + 2;
                Ok(&rest[..end])
            }
            _ => Err(self.error("a string without escapes")),
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.skip_whitespace();
        let accepted = self.text.get(self.offset) == Some(&byte);
        self.offset += usize::from(accepted);
        accepted
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), NpyError> {
        if self.accept(byte) {
            return Ok(());
        }
        Err(self.error(expected))
    }

    fn skip_whitespace(&mut self) {
        while self
            .text
            .get(self.offset)
            .is_some_and(u8::is_ascii_whitespace)
        {
            self.offset += 1;
        }
    }

    fn error(&self, expected: &'static str) -> NpyError {
        NpyError::Header {
            offset: self.offset,
            expected,
        }
    }
}

fn set_once<T>(place: &mut Option<T>, value: T, key: &'static str) -> Result<(), NpyError> {
    if place.replace(value).is_some() {
        return Err(NpyError::Key { key });
    }
    Ok(())
}
