//! A checked reader of flatbuffers without generated code.
//!
//! Every offset, vtable, length and terminator is checked where it is followed, reads need no alignment, and the bytes
//! visited in total are limited, so that tables which share offsets cannot make a small file cost much. It knows
//! nothing of a schema; [`crate::schema`] does.
//!
//! Written here because the `flatbuffers` crate reads tables without generated code only through `unsafe` functions,
//! and its verifier wants offsets aligned to the start of its slice, while a module is aligned to the size prefix four
//! bytes before it.
//!
//! ```text
//! buffer  u32 offset of the root table | 4-byte identifier | ...
//! table   i32 distance back to its vtable | fields
//! vtable  u16 its size | u16 size of the table | u16 per slot: offset of the field in the table, 0 if absent
//! vector  u32 count | elements       string  u32 length | bytes | 0
//! ```
//! An offset to a table, vector or string is a u32 added to the position of the field that holds it. Source: the
//! flatbuffers internals documentation.

use core::cell::Cell;

/// How many times over the bytes of the buffer may be visited. A module written by a compiler shares vtables and
/// a few strings and stays below 2.
const MAX_VISITS: usize = 16;

/// Longest name of a module, type or function. Names are written again wherever they are used, so that without a
/// limit the text about a small file could become large.
const MAX_NAME_LENGTH: usize = 4096;

/// What is wrong with a field, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{table}.{field} at file offset {offset:#x}: {problem}")]
#[non_exhaustive]
pub struct FieldError {
    /// Name of the table in the schema.
    pub table: &'static str,
    /// Name of the field in the schema; empty for the table itself.
    pub field: &'static str,
    /// Offset in the file.
    pub offset: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What can be wrong with a part of a flatbuffer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The part reaches past the end of the buffer.
    #[error("{needed} bytes are needed, {left} are left in the flatbuffer")]
    PastEnd {
        /// Bytes the part takes.
        needed: usize,
        /// Bytes between its position and the end.
        left: usize,
    },
    /// The distance to the vtable leads out of the buffer.
    #[error("the vtable distance {distance} leads out of the flatbuffer")]
    VtableDistance {
        /// The distance.
        distance: i32,
    },
    /// The size of a vtable is not possible.
    #[error("the vtable size {size} is odd or below 4")]
    VtableSize {
        /// The size.
        size: u16,
    },
    /// The field lies outside its table.
    #[error("the field at {position} with {width} bytes lies outside the table of {size} bytes")]
    OutsideTable {
        /// Offset in the table.
        position: u16,
        /// Bytes of the field.
        width: usize,
        /// Bytes of the table.
        size: u16,
    },
    /// A required field is absent.
    #[error("the required field is absent")]
    Missing,
    /// A string has no terminator.
    #[error("the string has no terminating zero")]
    Unterminated,
    /// A string is not UTF-8.
    #[error("the string is not UTF-8")]
    NotUtf8,
    /// A name is empty.
    #[error("the name is empty")]
    Empty,
    /// A name is longer than any name should be.
    #[error("the name has {length} bytes, the limit is {MAX_NAME_LENGTH}")]
    LongName {
        /// Bytes of the name.
        length: usize,
    },
    /// A number is negative that counts something.
    #[error("expected a number that is not negative, found {found}")]
    Negative {
        /// The number.
        found: i64,
    },
    /// A union holds a kind that is not known.
    #[error("kind {found} of data is not known")]
    UnknownKind {
        /// Tag of the union.
        found: u8,
    },
    /// A range outside the flatbuffer reaches past the end of the file.
    #[error(
        "{length} bytes at {offset:#x} after the flatbuffer reach past the {available} bytes there are"
    )]
    OutsideFile {
        /// Offset from the start of the data after the flatbuffer.
        offset: u64,
        /// Byte length.
        length: u64,
        /// Bytes after the flatbuffer.
        available: usize,
    },
    /// Shared offsets make the buffer much larger than it is.
    #[error(
        "tables and strings that share their bytes add up to more than {MAX_VISITS} times the flatbuffer"
    )]
    TooManyVisits,
}

/// A flatbuffer in a file.
#[derive(Debug)]
pub(crate) struct FlatBuffer<'a> {
    bytes: &'a [u8],
    /// Offset of the flatbuffer in its file, for messages.
    base: usize,
    /// Bytes that may still be visited.
    budget: Cell<usize>,
}

/// A table of a flatbuffer whose vtable and extent are checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'a> {
    buffer: &'a FlatBuffer<'a>,
    name: &'static str,
    position: usize,
    /// Bytes of the table.
    size: u16,
    /// Field offsets, two bytes per slot.
    slots: &'a [u8],
}

/// A part of the buffer, with its offset in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) file_offset: usize,
}

/// A vector of fixed-size elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector<'a, const WIDTH: usize> {
    elements: &'a [[u8; WIDTH]],
}

/// A vector of tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables<'a> {
    buffer: &'a FlatBuffer<'a>,
    name: &'static str,
    place: Place,
    first: usize,
    count: usize,
}

impl<'a, const WIDTH: usize> Vector<'a, WIDTH> {
    /// Returns the elements in order.
    pub(crate) fn elements(&self) -> &'a [[u8; WIDTH]] {
        self.elements
    }
}

impl<'a> FlatBuffer<'a> {
    /// Makes a reader of `bytes`, which lie at `base` in their file.
    pub(crate) fn new(bytes: &'a [u8], base: usize) -> Self {
        Self {
            bytes,
            base,
            budget: Cell::new(bytes.len().saturating_mul(MAX_VISITS)),
        }
    }

    /// Follows the root offset.
    pub(crate) fn root(&'a self, name: &'static str) -> Result<Table<'a>, FieldError> {
        let place = Place {
            table: name,
            field: "",
        };
        let position = self.target(0, place)?;
        self.table(position, name)
    }

    /// Reads the table at `position`.
    fn table(&'a self, position: usize, name: &'static str) -> Result<Table<'a>, FieldError> {
        let place = Place {
            table: name,
            field: "",
        };
        let distance = i32::from_le_bytes(self.array(position, place)?);
        let problem = Problem::VtableDistance { distance };
        let vtable = i64::try_from(position)
            .ok()
            .and_then(|position| position.checked_sub(i64::from(distance)))
            .and_then(|vtable| usize::try_from(vtable).ok())
            .ok_or_else(|| self.error(place, position, problem))?;
        let vtable_size = u16::from_le_bytes(self.array(vtable, place)?);
        if vtable_size < 4 || !vtable_size.is_multiple_of(2) {
            return Err(self.error(place, vtable, Problem::VtableSize { size: vtable_size }));
        }
        let slots = &self.span(vtable, usize::from(vtable_size), place)?[4..];
        let size = u16::from_le_bytes(self.array(vtable + 2, place)?);
        self.span(position, usize::from(size), place)?;
        Ok(Table {
            buffer: self,
            name,
            position,
            size,
            slots,
        })
    }

    /// Follows the offset at `position`.
    fn target(&self, position: usize, place: Place) -> Result<usize, FieldError> {
        let offset = u32::from_le_bytes(self.array(position, place)?);
        usize::try_from(offset)
            .ok()
            .and_then(|offset| position.checked_add(offset))
            .ok_or_else(|| {
                self.error(
                    place,
                    position,
                    Problem::PastEnd {
                        needed: usize::MAX,
                        left: self.bytes.len() - position,
                    },
                )
            })
    }

    /// Reads a vector of `width`-byte elements at `position`.
    fn vector(&self, position: usize, width: usize, place: Place) -> Result<Bytes<'a>, FieldError> {
        let count = u32::from_le_bytes(self.array(position, place)?);
        let start = position + 4;
        let length = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(width))
            .unwrap_or(usize::MAX);
        Ok(Bytes {
            bytes: self.span(start, length, place)?,
            file_offset: self.base + start,
        })
    }

    /// Reads a string at `position`.
    fn string(&self, position: usize, place: Place) -> Result<&'a str, FieldError> {
        let text = self.vector(position, 1, place)?;
        let end = position + 4 + text.bytes.len();
        if self.bytes.get(end) != Some(&0) {
            return Err(self.error(place, end, Problem::Unterminated));
        }
        str::from_utf8(text.bytes).map_err(|_| self.error(place, position, Problem::NotUtf8))
    }

    fn array<const N: usize>(&self, position: usize, place: Place) -> Result<[u8; N], FieldError> {
        let bytes = self.span(position, N, place)?;
        Ok(*bytes.first_chunk().expect("the span has the asked length"))
    }

    /// Returns the bytes of a part and charges them.
    fn span(&self, position: usize, length: usize, place: Place) -> Result<&'a [u8], FieldError> {
        let bytes = position
            .checked_add(length)
            .and_then(|end| self.bytes.get(position..end))
            .ok_or_else(|| {
                let left = self.bytes.len().saturating_sub(position);
                self.error(
                    place,
                    position,
                    Problem::PastEnd {
                        needed: length,
                        left,
                    },
                )
            })?;
        let left = self.budget.get().checked_sub(length);
        self.budget
            .set(left.ok_or_else(|| self.error(place, position, Problem::TooManyVisits))?);
        Ok(bytes)
    }

    #[cold]
    fn error(&self, place: Place, position: usize, problem: Problem) -> FieldError {
        FieldError {
            table: place.table,
            field: place.field,
            offset: self.base.saturating_add(position),
            problem,
        }
    }
}

/// Names of the schema for an error.
#[derive(Clone, Copy, Debug)]
struct Place {
    table: &'static str,
    field: &'static str,
}

/// A field of a schema: its slot and name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field(pub(crate) u16, pub(crate) &'static str);

impl<'a> Table<'a> {
    fn place(&self, field: Field) -> Place {
        Place {
            table: self.name,
            field: field.1,
        }
    }

    /// Makes an error about a field of the table.
    #[cold]
    pub(crate) fn error(&self, field: Field, problem: Problem) -> FieldError {
        self.buffer.error(self.place(field), self.position, problem)
    }

    /// Returns the position of a field of `width` bytes, or `None` if it is absent.
    fn position(&self, field: Field, width: usize) -> Result<Option<usize>, FieldError> {
        let slot = usize::from(field.0) * 2;
        let Some(&[low, high]) = self.slots.get(slot..slot + 2) else {
            return Ok(None);
        };
        let offset = u16::from_le_bytes([low, high]);
        if offset == 0 {
            return Ok(None);
        }
        // The first four bytes of a table are the distance to its vtable.
        if offset < 4 || usize::from(offset) + width > usize::from(self.size) {
            let problem = Problem::OutsideTable {
                position: offset,
                width,
                size: self.size,
            };
            return Err(self.error(field, problem));
        }
        Ok(Some(self.position + usize::from(offset)))
    }

    /// Returns the file offset of a field, for tests that spoil it.
    #[cfg(test)]
    pub(crate) fn file_offset(&self, field: Field) -> usize {
        let position = self
            .position(field, 1)
            .expect("the table is sound")
            .expect("the field is present");
        self.buffer.base + position
    }

    fn scalar<const N: usize>(&self, field: Field) -> Result<Option<[u8; N]>, FieldError> {
        let Some(position) = self.position(field, N)? else {
            return Ok(None);
        };
        self.buffer.array(position, self.place(field)).map(Some)
    }

    /// Reads a `u8` field.
    pub(crate) fn u8(&self, field: Field, default: u8) -> Result<u8, FieldError> {
        Ok(self.scalar(field)?.map_or(default, u8::from_le_bytes))
    }

    /// Reads a `u32` field.
    pub(crate) fn u32(&self, field: Field, default: u32) -> Result<u32, FieldError> {
        Ok(self.scalar(field)?.map_or(default, u32::from_le_bytes))
    }

    /// Reads an `i32` field.
    pub(crate) fn i32(&self, field: Field, default: i32) -> Result<i32, FieldError> {
        Ok(self.scalar(field)?.map_or(default, i32::from_le_bytes))
    }

    /// Reads an `i32` field that must not be negative; 0 if absent.
    pub(crate) fn count(&self, field: Field) -> Result<u32, FieldError> {
        let value = self.i32(field, 0)?;
        u32::try_from(value).map_err(|_| {
            self.error(
                field,
                Problem::Negative {
                    found: value.into(),
                },
            )
        })
    }

    /// Reads a `u64` field.
    pub(crate) fn u64(&self, field: Field, default: u64) -> Result<u64, FieldError> {
        Ok(self.scalar(field)?.map_or(default, u64::from_le_bytes))
    }

    fn target(&self, field: Field) -> Result<Option<usize>, FieldError> {
        let Some(position) = self.position(field, 4)? else {
            return Ok(None);
        };
        self.buffer.target(position, self.place(field)).map(Some)
    }

    /// Reads a string field.
    pub(crate) fn string(&self, field: Field) -> Result<Option<&'a str>, FieldError> {
        let Some(position) = self.target(field)? else {
            return Ok(None);
        };
        self.buffer.string(position, self.place(field)).map(Some)
    }

    /// Reads a string field that must be there.
    pub(crate) fn required_string(&self, field: Field) -> Result<&'a str, FieldError> {
        self.string(field)?
            .ok_or_else(|| self.error(field, Problem::Missing))
    }

    /// Reads a string field that must be there and be neither empty nor very long.
    pub(crate) fn name(&self, field: Field) -> Result<&'a str, FieldError> {
        let name = self.required_string(field)?;
        match name.len() {
            0 => Err(self.error(field, Problem::Empty)),
            1..=MAX_NAME_LENGTH => Ok(name),
            length => Err(self.error(field, Problem::LongName { length })),
        }
    }

    /// Reads a table field.
    pub(crate) fn table(
        &self,
        field: Field,
        name: &'static str,
    ) -> Result<Option<Table<'a>>, FieldError> {
        let Some(position) = self.target(field)? else {
            return Ok(None);
        };
        self.buffer.table(position, name).map(Some)
    }

    /// Reads a vector of bytes.
    pub(crate) fn bytes(&self, field: Field) -> Result<Option<Bytes<'a>>, FieldError> {
        let Some(position) = self.target(field)? else {
            return Ok(None);
        };
        self.buffer.vector(position, 1, self.place(field)).map(Some)
    }

    /// Reads a vector of structs or scalars of `WIDTH` bytes; empty if absent.
    pub(crate) fn vector<const WIDTH: usize>(
        &self,
        field: Field,
    ) -> Result<Vector<'a, WIDTH>, FieldError> {
        let Some(position) = self.target(field)? else {
            return Ok(Vector { elements: &[] });
        };
        let (elements, _) = self
            .buffer
            .vector(position, WIDTH, self.place(field))?
            .bytes
            .as_chunks();
        Ok(Vector { elements })
    }

    /// Reads a vector of tables; empty if absent. The tables are read when they are asked for.
    pub(crate) fn tables(
        &self,
        field: Field,
        name: &'static str,
    ) -> Result<Tables<'a>, FieldError> {
        let place = self.place(field);
        let (first, count) = match self.target(field)? {
            None => (0, 0),
            Some(position) => (
                position + 4,
                self.buffer.vector(position, 4, place)?.bytes.len() / 4,
            ),
        };
        Ok(Tables {
            buffer: self.buffer,
            name,
            place,
            first,
            count,
        })
    }
}

impl<'a> Tables<'a> {
    /// Returns the count of tables.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Reads the table at `index`, or returns `None` past the end.
    pub(crate) fn get(&self, index: usize) -> Result<Option<Table<'a>>, FieldError> {
        if index >= self.count {
            return Ok(None);
        }
        let position = self.buffer.target(self.first + index * 4, self.place)?;
        self.buffer.table(position, self.name).map(Some)
    }

    /// Reads all tables and makes something of each.
    pub(crate) fn collect<T>(
        &self,
        make: impl Fn(&Table<'a>) -> Result<T, FieldError>,
    ) -> Result<Vec<T>, FieldError> {
        (0..self.count)
            .filter_map(|index| self.get(index).transpose())
            .map(|table| make(&table?))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: Field = Field(0, "value");
    const TEXT: Field = Field(1, "text");

    /// A root table with a `u32` in slot 0 and a string in slot 1.
    fn sample() -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(16u32.to_le_bytes()); // 0: root table at 16
        bytes.extend(b"TEST");
        bytes.extend([8, 0, 12, 0, 4, 0, 8, 0]); // 8: vtable of 8 bytes, table of 12, slots at 4 and 8
        bytes.extend(8i32.to_le_bytes()); // 16: vtable 8 bytes before
        bytes.extend(7u32.to_le_bytes()); // 20: value
        bytes.extend(4u32.to_le_bytes()); // 24: string at 28
        bytes.extend(2u32.to_le_bytes()); // 28: two bytes
        bytes.extend(b"hi\0");
        bytes
    }

    fn read(bytes: &[u8]) -> Result<(u32, String), FieldError> {
        let buffer = FlatBuffer::new(bytes, 100);
        let root = buffer.root("Root")?;
        Ok((root.u32(VALUE, 0)?, root.required_string(TEXT)?.to_owned()))
    }

    #[test]
    fn a_table_is_read() {
        assert_eq!(read(&sample()), Ok((7, "hi".to_owned())));
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = sample();
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn the_error_names_the_field_and_the_file_offset() {
        let mut bytes = sample();
        bytes[28] = 200;
        let error = read(&bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Root.text at file offset 0x84: 200 bytes are needed, 3 are left in the flatbuffer"
        );
    }

    #[test]
    fn a_string_without_a_terminator_is_an_error() {
        let mut bytes = sample();
        bytes[34] = b'x';
        assert_eq!(read(&bytes).unwrap_err().problem, Problem::Unterminated);
    }

    #[test]
    fn a_field_outside_its_table_is_an_error() {
        for offset in [1, 3, 9, 200] {
            let mut bytes = sample();
            bytes[12] = offset;
            let problem = read(&bytes).unwrap_err().problem;
            assert!(
                matches!(problem, Problem::OutsideTable { .. }),
                "{offset}: {problem}"
            );
        }
    }

    #[test]
    fn an_absent_slot_takes_the_default() {
        let mut bytes = sample();
        bytes[8] = 4; // The vtable ends before its first slot.
        let buffer = FlatBuffer::new(&bytes, 0);
        let root = buffer.root("Root").unwrap();
        assert_eq!(root.u32(VALUE, 42), Ok(42));
        assert_eq!(
            root.required_string(TEXT).unwrap_err().problem,
            Problem::Missing
        );
    }

    #[test]
    fn visiting_the_same_bytes_again_and_again_is_an_error() {
        let bytes = sample();
        let buffer = FlatBuffer::new(&bytes, 0);
        let root = buffer.root("Root").unwrap();
        let problem = (0..1000)
            .find_map(|_| root.string(TEXT).err())
            .map(|error| error.problem);
        assert_eq!(problem, Some(Problem::TooManyVisits));
    }
}
