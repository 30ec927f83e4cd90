//! Argument blocks: the arguments of a call as one run of words.
//!
//! The layout is that of native modules since IREE 3.10 (`docs/vm.md`, section "Argument blocks"): a cursor walks the
//! calling convention; 32-bit values take one word, 64-bit values two words aligned to two, refs four words aligned to
//! two; a span is a count word, then, if the count is not zero, its tuples aligned to two words when they hold a
//! 64-bit value or a ref. Nothing is derived from a struct of the same members, whose tail padding differs.
//!
//! A ref is not stored in its slot: the slot's first word is an index into the refs of the block, or into its constants
//! with [`CONSTANT_REF`], or [`NULL_REF`], and the other three are zero. A call can so borrow the refs of its caller, and
//! the constants of its caller's module, without counting them.

use std::sync::Arc;

use crate::{
    Atom, Buffer, CallingConvention, Item, List, Ref, RefType, Result, StatusCode, Trap, Value,
};

/// Index in the slot of a null ref.
pub const NULL_REF: u32 = u32::MAX;

/// Flag of an index that counts in the constants of a block instead of its refs.
pub const CONSTANT_REF: u32 = 1 << 31;

/// Returns the alignment in words that the tuples of a span take.
#[must_use]
pub fn span_word_alignment(atoms: &[Atom]) -> usize {
    atoms
        .iter()
        .map(|atom| atom.word_alignment())
        .max()
        .unwrap_or(1)
}

/// Returns the first multiple of `alignment` (1 or 2) at or after `offset`.
#[must_use]
pub const fn align_words(offset: usize, alignment: usize) -> usize {
    offset.next_multiple_of(alignment)
}

/// The arguments of a call, borrowed from the caller.
///
/// Built by a caller that follows the callee's calling convention; a reader still checks every step, so that a wrong
/// block is an error and never a wrong access.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentBlock<'a> {
    words: &'a [u32],
    refs: &'a [Ref],
    constants: &'a [Ref],
}

impl<'a> ArgumentBlock<'a> {
    /// Returns the block of these words and refs.
    #[must_use]
    pub fn new(words: &'a [u32], refs: &'a [Ref]) -> Self {
        Self::with_constants(words, refs, &[])
    }

    /// Returns the block of these words and refs, whose slots may also index `constants`, with [`CONSTANT_REF`].
    #[must_use]
    #[inline]
    pub fn with_constants(words: &'a [u32], refs: &'a [Ref], constants: &'a [Ref]) -> Self {
        Self {
            words,
            refs,
            constants,
        }
    }

    /// Returns the words.
    #[must_use]
    pub fn words(&self) -> &'a [u32] {
        self.words
    }

    /// Returns the refs that slots index without a flag.
    #[must_use]
    pub fn refs(&self) -> &'a [Ref] {
        self.refs
    }

    /// Returns a reader at the first argument.
    #[must_use]
    pub fn reader(&self) -> ArgumentReader<'a> {
        ArgumentReader {
            block: *self,
            cursor: 0,
        }
    }

    /// Returns the ref whose slot starts at word `offset`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the slot lies outside the block or its index outside the refs.
    #[inline]
    pub fn reference(&self, offset: usize) -> Result<&'a Ref> {
        match self.words.get(offset) {
            Some(&index) => self.resolve(index),
            None => Err(too_short(offset, self.words.len())),
        }
    }

    /// Returns the ref that a slot with this index names.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the index lies outside the refs and the constants and is not [`NULL_REF`].
    #[inline]
    pub fn resolve(&self, index: u32) -> Result<&'a Ref> {
        match self.get(index) {
            Some(reference) => Ok(reference),
            None if index == NULL_REF => Ok(&Ref::Null),
            None => Err(bad_index(index, self.refs.len(), self.constants.len())),
        }
    }

    /// Returns the ref or the constant that a slot with this index names; `None` for [`NULL_REF`] and an index that lies
    /// outside both.
    #[inline]
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&'a Ref> {
        match self.refs.get(index as usize) {
            Some(reference) => Some(reference),
            None => self.constant(index),
        }
    }

    /// Returns the constant that a slot with this index names. Apart, so that the more likely way is the straight one.
    #[cold]
    fn constant(&self, index: u32) -> Option<&'a Ref> {
        self.constants.get((index ^ CONSTANT_REF) as usize)
    }
}

/// Reads an argument block value by value, in the order of the calling convention.
#[derive(Clone, Debug)]
pub struct ArgumentReader<'a> {
    block: ArgumentBlock<'a>,
    cursor: usize,
}

impl<'a> ArgumentReader<'a> {
    /// Reads a 32-bit integer.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the block ends before it.
    #[inline]
    pub fn i32(&mut self) -> Result<i32> {
        self.word().map(u32::cast_signed)
    }

    /// Reads a 64-bit integer.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the block ends before it.
    #[inline]
    pub fn i64(&mut self) -> Result<i64> {
        let start = align_words(self.cursor, 2);
        match self.block.words.get(start..start + 2) {
            Some(&[low, high]) => {
                self.cursor = start + 2;
                Ok((u64::from(low) | u64::from(high) << 32).cast_signed())
            }
            _ => Err(too_short(start, self.block.words.len())),
        }
    }

    /// Reads a 32-bit float.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the block ends before it.
    #[inline]
    pub fn f32(&mut self) -> Result<f32> {
        self.word().map(f32::from_bits)
    }

    /// Reads a 64-bit float.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the block ends before it.
    #[inline]
    pub fn f64(&mut self) -> Result<f64> {
        self.i64().map(|bits| f64::from_bits(bits.cast_unsigned()))
    }

    /// Reads a ref, which the caller still owns.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the block ends before it or its index is not one of the block's refs.
    #[inline]
    pub fn reference(&mut self) -> Result<&'a Ref> {
        let start = align_words(self.cursor, 2);
        self.cursor = start + 4;
        if self.cursor > self.block.words.len() {
            return Err(too_short(start, self.block.words.len()));
        }
        self.block.reference(start)
    }

    /// Reads a ref to a `vm.buffer`.
    ///
    /// # Errors
    /// As [`ArgumentReader::reference`] and [`Ref::as_buffer`].
    #[inline]
    pub fn buffer(&mut self) -> Result<&'a Arc<Buffer>> {
        self.reference()?.as_buffer()
    }

    /// Reads a ref to a `vm.list`.
    ///
    /// # Errors
    /// As [`ArgumentReader::reference`] and [`Ref::as_list`].
    pub fn list(&mut self) -> Result<&'a Arc<List>> {
        self.reference()?.as_list()
    }

    /// Reads a ref to a buffer aliased as `ref_type`.
    ///
    /// # Errors
    /// As [`ArgumentReader::reference`] and [`Ref::as_aliased`].
    #[inline]
    pub fn aliased(&mut self, ref_type: &'static RefType) -> Result<&'a Arc<Buffer>> {
        self.reference()?.as_aliased(ref_type)
    }

    /// Reads the count of a span and moves to its first tuple. `atoms` are the members of a tuple.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the block ends before it or the tuples would not fit the rest of the block.
    #[inline]
    pub fn span(&mut self, atoms: &[Atom]) -> Result<usize> {
        let count = self.word()? as usize;
        let alignment = span_word_alignment(atoms);
        // Empty spans at the end are padded by the writer too; never beyond the block.
        self.cursor = align_words(self.cursor, if count == 0 { 1 } else { alignment });
        let left = self.block.words.len().saturating_sub(self.cursor);
        // Each member takes at least a word, so a count that passes is bounded by the block.
        if count > left / atoms.len().max(1) {
            return Err(span_too_long(count, left));
        }
        Ok(count)
    }

    /// Reads `count` 32-bit values as they lie in the block.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the block ends before them.
    #[inline]
    pub fn words(&mut self, count: usize) -> Result<&'a [u32]> {
        let words = self.block.words;
        match words.get(self.cursor..).and_then(|rest| rest.get(..count)) {
            Some(values) => {
                self.cursor += count;
                Ok(values)
            }
            None => Err(too_short(self.cursor, words.len())),
        }
    }

    /// Returns the offset of the next word to read.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.cursor
    }

    /// Checks that all values were read; padding of less than two words may follow.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when more than padding is left.
    pub fn finish(&self) -> Result<()> {
        if self.block.words.len() <= align_words(self.cursor, 2) {
            return Ok(());
        }
        Err(Trap::invalid_argument(format!(
            "argument/result signature mismatch; {} words were passed, {} were read",
            self.block.words.len(),
            self.cursor
        )))
    }

    #[inline]
    fn word(&mut self) -> Result<u32> {
        match self.block.words.get(self.cursor) {
            Some(&word) => {
                self.cursor += 1;
                Ok(word)
            }
            None => Err(too_short(self.cursor, self.block.words.len())),
        }
    }
}

/// Words and refs of an argument block under construction; reused from call to call.
#[derive(Debug, Default)]
pub struct ArgumentWriter {
    words: Vec<u32>,
    refs: Vec<Ref>,
}

impl ArgumentWriter {
    /// Returns an empty block.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the block and releases its refs; its memory is kept.
    pub fn clear(&mut self) {
        self.words.clear();
        self.refs.clear();
    }

    /// Appends a 32-bit value.
    pub fn push_word(&mut self, word: u32) {
        self.words.push(word);
    }

    /// Appends a 64-bit value, aligned to two words.
    pub fn push_pair(&mut self, value: u64) {
        self.align(2);
        self.words.extend(halves(value));
    }

    /// Appends a ref, aligned to two words.
    ///
    /// # Panics
    /// Panics when the block holds 2^32 - 1 refs.
    pub fn push_ref(&mut self, reference: Ref) {
        self.align(2);
        let index = if reference.is_null() {
            NULL_REF
        } else {
            self.refs.push(reference);
            u32::try_from(self.refs.len() - 1).expect("a block holds fewer than 2^32 refs")
        };
        self.words.extend([index, 0, 0, 0]);
    }

    /// Appends the count of a span of tuples of `atoms` and aligns to its first tuple.
    pub fn push_span(&mut self, count: u32, atoms: &[Atom]) {
        self.words.push(count);
        self.align(if count == 0 {
            1
        } else {
            span_word_alignment(atoms)
        });
    }

    /// Appends a value.
    pub fn push(&mut self, value: Value) {
        match value {
            Value::I32(value) => self.push_word(value.cast_unsigned()),
            Value::I64(value) => self.push_pair(value.cast_unsigned()),
            Value::F32(value) => self.push_word(value.to_bits()),
            Value::F64(value) => self.push_pair(value.to_bits()),
            Value::Ref(reference) => self.push_ref(reference),
        }
    }

    /// Appends `values` as the arguments of `convention`. `span_lengths` gives the number of tuples of each span in
    /// order.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when number or types of the values do not fit the convention. The block is then unusable
    /// until cleared.
    pub fn push_arguments(
        &mut self,
        convention: &CallingConvention,
        span_lengths: &[usize],
        values: impl IntoIterator<Item = Value>,
    ) -> Result<()> {
        let mut values = values.into_iter();
        let mut span_lengths = span_lengths.iter();
        let mut position = 0;
        let mut next = |writer: &mut Self, atom: Atom| {
            let value = values.next().ok_or_else(|| {
                Trap::invalid_argument(format!("argument {position} of `{convention}` is missing"))
            })?;
            if value.atom() != atom {
                return Err(Trap::invalid_argument(format!(
                    "argument {position} of `{convention}` must be `{}` but is `{}`",
                    atom.letter(),
                    value.atom().letter()
                )));
            }
            position += 1;
            writer.push(value);
            Ok(())
        };
        for item in convention.arguments() {
            match item {
                Item::Atom(atom) => next(self, *atom)?,
                Item::Span(atoms) => {
                    let count = span_lengths.next().copied().unwrap_or(0);
                    let words = u32::try_from(count).map_err(|_| {
                        Trap::invalid_argument(format!(
                            "a span of {count} tuples is longer than its count can say"
                        ))
                    })?;
                    self.push_span(words, atoms);
                    for _ in 0..count {
                        atoms.iter().try_for_each(|atom| next(self, *atom))?;
                    }
                }
            }
        }
        if values.next().is_some() {
            return Err(Trap::invalid_argument(format!(
                "`{convention}` takes only {position} values"
            )));
        }
        Ok(())
    }

    /// Returns the block.
    #[must_use]
    pub fn block(&self) -> ArgumentBlock<'_> {
        ArgumentBlock::new(&self.words, &self.refs)
    }

    fn align(&mut self, alignment: usize) {
        self.words
            .resize(align_words(self.words.len(), alignment), 0);
    }
}

/// Results of a call: the words of its numbers in order (low word first, no padding) and its refs in order.
///
/// Reused from call to call. The caller checks that they fit the calling convention.
#[derive(Debug, Default)]
pub struct Results {
    words: Vec<u32>,
    /// Those from `ref_count` on are null, but for what was left by who had them from [`Results::take_refs`].
    refs: Vec<Ref>,
    ref_count: usize,
}

impl Results {
    /// Returns no results.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all results and releases their refs; the memory is kept.
    #[inline]
    pub fn clear(&mut self) {
        self.words.clear();
        for reference in &mut self.refs[..self.ref_count] {
            // Most were taken already.
            if !reference.is_null() {
                *reference = Ref::Null;
            }
        }
        self.ref_count = 0;
    }

    /// Appends a 32-bit integer.
    #[inline]
    pub fn push_i32(&mut self, value: i32) {
        self.words.push(value.cast_unsigned());
    }

    /// Appends a 64-bit integer.
    #[inline]
    pub fn push_i64(&mut self, value: i64) {
        self.words.extend(halves(value.cast_unsigned()));
    }

    /// Appends a 32-bit float.
    pub fn push_f32(&mut self, value: f32) {
        self.push_i32(value.to_bits().cast_signed());
    }

    /// Appends a 64-bit float.
    pub fn push_f64(&mut self, value: f64) {
        self.push_i64(value.to_bits().cast_signed());
    }

    /// Appends a ref, which the caller of the function then owns.
    #[inline(always)]
    #[expect(
        clippy::mem_forget,
        reason = "null owns nothing; its drop would be a call"
    )]
    pub fn push_ref(&mut self, reference: impl Into<Ref>) {
        let reference = reference.into();
        match self.refs.get_mut(self.ref_count) {
            Some(slot) if slot.is_null() => core::mem::forget(core::mem::replace(slot, reference)),
            Some(slot) => *slot = reference,
            None => self.refs.push(reference),
        }
        self.ref_count += 1;
    }

    /// Appends a value.
    pub fn push(&mut self, value: Value) {
        match value {
            Value::I32(value) => self.push_i32(value),
            Value::I64(value) => self.push_i64(value),
            Value::F32(value) => self.push_f32(value),
            Value::F64(value) => self.push_f64(value),
            Value::Ref(reference) => self.push_ref(reference),
        }
    }

    /// Returns the words of the numbers.
    #[must_use]
    #[inline]
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Returns the refs.
    #[must_use]
    #[inline]
    pub fn refs(&self) -> &[Ref] {
        &self.refs[..self.ref_count]
    }

    /// Returns whether there are neither words nor refs.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.ref_count == 0
    }

    /// Removes the words; refs stay.
    #[inline]
    pub fn clear_words(&mut self) {
        self.words.clear();
    }

    /// Returns whether there are so many words and so many refs.
    #[must_use]
    #[inline]
    pub fn are(&self, word_count: usize, ref_count: usize) -> bool {
        self.words.len() == word_count && self.ref_count == ref_count
    }

    /// Takes the ref at `index` and leaves null; null when there is none.
    #[inline]
    pub fn take_ref(&mut self, index: usize) -> Ref {
        self.refs
            .get_mut(index)
            .map(core::mem::take)
            .unwrap_or_default()
    }

    /// Removes the refs, which the caller takes out of their places, in order; the words stay. What is left in a place is
    /// released later.
    #[inline]
    pub fn take_refs(&mut self) -> &mut [Ref] {
        let count = core::mem::take(&mut self.ref_count);
        &mut self.refs[..count]
    }

    /// Takes the results as values of `convention`.
    ///
    /// # Errors
    /// `INTERNAL` when they do not fit the convention: the callee is wrong.
    pub fn take_values(&mut self, convention: &CallingConvention) -> Result<Vec<Value>> {
        let (mut at, mut refs) = (0, self.refs[..self.ref_count].iter_mut());
        let mut values = Vec::with_capacity(convention.results().len());
        for atom in convention.results() {
            if *atom == Atom::Ref {
                let reference = refs.next().ok_or_else(|| result_mismatch(convention))?;
                values.push(Value::Ref(core::mem::take(reference)));
                continue;
            }
            let words = self.words.get(at..at + atom.word_count());
            values.push(match (atom, words) {
                (Atom::I32, Some(&[word])) => Value::I32(word.cast_signed()),
                (Atom::F32, Some(&[word])) => Value::F32(f32::from_bits(word)),
                (Atom::I64, Some(&[low, high])) => Value::I64(pair(low, high).cast_signed()),
                (Atom::F64, Some(&[low, high])) => Value::F64(f64::from_bits(pair(low, high))),
                _ => return Err(result_mismatch(convention)),
            });
            at += atom.word_count();
        }
        if at != self.words.len() || refs.next().is_some() {
            return Err(result_mismatch(convention));
        }
        self.clear();
        Ok(values)
    }
}

/// Returns the two words of a 64-bit value, the low one first.
pub(crate) fn halves(value: u64) -> [u32; 2] {
    [(value & 0xFFFF_FFFF) as u32, (value >> 32) as u32]
}

pub(crate) fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[cold]
fn too_short(offset: usize, length: usize) -> Trap {
    Trap::invalid_argument(format!(
        "argument/result signature mismatch; the block ends at word {length}, before the value at word {offset}"
    ))
}

#[cold]
fn span_too_long(count: usize, left: usize) -> Trap {
    Trap::invalid_argument(format!(
        "argument/result signature mismatch; a span of {count} tuples does not fit the {left} words left of the block"
    ))
}

#[cold]
fn bad_index(index: u32, ref_count: usize, constant_count: usize) -> Trap {
    let (kind, count) = match index & CONSTANT_REF {
        0 => ("ref", ref_count),
        _ => ("constant", constant_count),
    };
    let index = index & !CONSTANT_REF;
    Trap::invalid_argument(format!("argument block names {kind} {index} of {count}"))
}

#[cold]
pub(crate) fn result_mismatch(convention: &CallingConvention) -> Trap {
    Trap::new(
        StatusCode::INTERNAL,
        format!("the results of the function do not fit its calling convention `{convention}`"),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Packs by the rule as the specification words it, byte by byte: the oracle of the word-based writer.
    fn oracle(convention: &CallingConvention, span_lengths: &[usize], values: &[Value]) -> Vec<u8> {
        fn pad(bytes: &mut Vec<u8>, alignment: usize) {
            while !bytes.len().is_multiple_of(alignment) {
                bytes.push(0);
            }
        }
        let mut bytes = Vec::new();
        let mut next_ref = 0u32;
        let mut values = values.iter();
        let mut put = |bytes: &mut Vec<u8>| match values.next().unwrap() {
            Value::I32(value) => bytes.extend(value.to_ne_bytes()),
            Value::F32(value) => bytes.extend(value.to_ne_bytes()),
            Value::I64(value) => {
                pad(bytes, 8);
                bytes.extend(value.to_ne_bytes());
            }
            Value::F64(value) => {
                pad(bytes, 8);
                bytes.extend(value.to_ne_bytes());
            }
            Value::Ref(reference) => {
                pad(bytes, 8);
                let index = if reference.is_null() {
                    u32::MAX
                } else {
                    next_ref
                };
                next_ref += u32::from(!reference.is_null());
                bytes.extend(index.to_ne_bytes());
                bytes.extend([0; 12]);
            }
        };
        let mut span_lengths = span_lengths.iter();
        for item in convention.arguments() {
            match item {
                Item::Atom(_) => put(&mut bytes),
                Item::Span(atoms) => {
                    let count = *span_lengths.next().unwrap();
                    bytes.extend(u32::try_from(count).unwrap().to_ne_bytes());
                    if count > 0 && atoms.iter().any(|atom| atom.word_count() > 1) {
                        pad(&mut bytes, 8);
                    }
                    (0..count * atoms.len()).for_each(|_| put(&mut bytes));
                }
            }
        }
        bytes
    }

    fn value(atom: Atom, seed: u64) -> Value {
        match atom {
            Atom::I32 => Value::I32(((seed & 0xFFFF_FFFF) as u32).cast_signed()),
            Atom::I64 => Value::I64(seed.cast_signed()),
            Atom::F32 => Value::F32(((seed & 0xFFFF) as u16).into()),
            Atom::F64 => Value::F64(((seed & 0xFFFF_FFFF) as u32).into()),
            Atom::Ref if seed.is_multiple_of(4) => Value::Ref(Ref::Null),
            Atom::Ref => Value::Ref(Buffer::allocate(seed % 100, 0).unwrap().into()),
        }
    }

    fn case() -> impl Strategy<Value = (CallingConvention, Vec<usize>, Vec<Value>)> {
        let text = "0([iIfFr]{0,3}(C[iIfFr]{1,3}D)?){0,3}_[iIfFr]{0,4}";
        (
            text,
            prop::collection::vec(0usize..5, 3),
            prop::collection::vec(any::<u64>(), 64),
        )
            .prop_map(|(text, lengths, seeds)| {
                let convention = CallingConvention::parse(&text).unwrap();
                let mut seeds = seeds.into_iter().cycle();
                let mut lengths_left = lengths.iter();
                let mut values = Vec::new();
                for item in convention.arguments() {
                    match item {
                        Item::Atom(atom) => values.push(value(*atom, seeds.next().unwrap())),
                        Item::Span(atoms) => {
                            for _ in 0..*lengths_left.next().unwrap() {
                                values.extend(
                                    atoms.iter().map(|atom| value(*atom, seeds.next().unwrap())),
                                );
                            }
                        }
                    }
                }
                (convention, lengths, values)
            })
    }

    fn read(
        convention: &CallingConvention,
        block: ArgumentBlock<'_>,
    ) -> Result<(Vec<usize>, Vec<Value>)> {
        let mut reader = block.reader();
        let (mut lengths, mut values) = (Vec::new(), Vec::new());
        let one = |reader: &mut ArgumentReader<'_>, atom: Atom| {
            Ok(match atom {
                Atom::I32 => Value::I32(reader.i32()?),
                Atom::I64 => Value::I64(reader.i64()?),
                Atom::F32 => Value::F32(reader.f32()?),
                Atom::F64 => Value::F64(reader.f64()?),
                Atom::Ref => Value::Ref(reader.reference()?.clone()),
            })
        };
        for item in convention.arguments() {
            match item {
                Item::Atom(atom) => values.push(one(&mut reader, *atom)?),
                Item::Span(atoms) => {
                    let count = reader.span(atoms)?;
                    lengths.push(count);
                    for _ in 0..count {
                        for atom in atoms {
                            values.push(one(&mut reader, *atom)?);
                        }
                    }
                }
            }
        }
        reader.finish()?;
        Ok((lengths, values))
    }

    fn same(a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::I32(a), Value::I32(b)) => a == b,
            (Value::I64(a), Value::I64(b)) => a == b,
            (Value::F32(a), Value::F32(b)) => a.to_bits() == b.to_bits(),
            (Value::F64(a), Value::F64(b)) => a.to_bits() == b.to_bits(),
            (Value::Ref(a), Value::Ref(b)) => a.same(b),
            _ => false,
        }
    }

    #[test]
    fn c1_the_dispatch_block_has_no_tail_padding_after_its_fixed_part() {
        let convention = CallingConvention::parse("0rIiiiCiDCrIID_v").unwrap();
        let buffer = Ref::from(Buffer::allocate(64, 0).unwrap());
        let mut values = vec![Value::Ref(buffer.clone()), Value::I64(7)];
        values.extend([1, 2, 3].map(Value::I32));
        let mut writer = ArgumentWriter::new();
        let mut bindings = values.clone();
        bindings.extend([Value::Ref(buffer.clone()), Value::I64(0), Value::I64(64)]);
        writer
            .push_arguments(&convention, &[0, 1], bindings)
            .unwrap();
        // Counts at bytes 36 and 40, the binding at 48 (docs/vm.md, section "Argument blocks").
        assert_eq!(
            (writer.block().words()[9], writer.block().words()[10]),
            (0, 1)
        );
        assert_eq!(writer.block().words().len() * 4, 48 + 32);

        let mut constants = values;
        constants.extend([10, 11].map(Value::I32));
        constants.extend([Value::Ref(buffer), Value::I64(0), Value::I64(64)]);
        writer.clear();
        writer
            .push_arguments(&convention, &[2, 1], constants)
            .unwrap();
        assert_eq!(
            (writer.block().words()[9], writer.block().words()[12]),
            (2, 1)
        );
        assert_eq!(writer.block().words().len() * 4, 56 + 32);
    }

    #[test]
    fn c3_a_64_bit_value_or_ref_after_an_odd_number_of_words_is_aligned() {
        // Checks the words of a block; a ref is the number of its place among the refs, and three words of nothing.
        let check = |text: &str, lengths: &[usize], values: &[Value], words: &[u32]| {
            let convention = CallingConvention::parse(text).unwrap();
            let mut writer = ArgumentWriter::new();
            writer
                .push_arguments(&convention, lengths, values.to_vec())
                .unwrap();
            assert_eq!(writer.block().words(), words, "{text} {lengths:?}");
        };
        let (one, long) = (Value::I32(1), Value::I64(6 << 32 | 5));
        let reference = Value::Ref(Buffer::allocate(1, 0).unwrap().into());
        check("0iI_v", &[], &[one.clone(), long.clone()], &[1, 0, 5, 6]);
        let arguments = [one.clone(), one.clone(), long.clone()];
        check("0iiI_v", &[], &arguments, &[1, 1, 5, 6]);
        let arguments = [one.clone(), reference.clone()];
        check("0ir_v", &[], &arguments, &[1, 0, 0, 0, 0, 0]);
        check("0iCrD_v", &[1], &arguments, &[1, 1, 0, 0, 0, 0]);
        let arguments = [one.clone(), one.clone(), reference];
        check("0iiCrD_v", &[1], &arguments, &[1, 1, 1, 0, 0, 0, 0, 0]);
        // The count of a span of nothing is followed by no padding but that of the block.
        check("0iCrD_v", &[0], &arguments[..1], &[1, 0]);
        let arguments = [one.clone(), long.clone()];
        check("0CiDCID_v", &[1, 1], &arguments, &[1, 1, 1, 0, 5, 6]);
        let arguments = [one.clone(), one, long.clone()];
        check("0CiDCID_v", &[2, 1], &arguments, &[2, 1, 1, 1, 5, 6]);
        check("0CiDCID_v", &[0, 1], &[long], &[0, 1, 5, 6]);
        check("0CiDCID_v", &[0, 0], &[], &[0, 0]);
    }

    #[test]
    fn a_block_that_ends_early_is_a_signature_mismatch() {
        let words = [0; 3];
        let block = ArgumentBlock::new(&words, &[]);
        let mut reader = block.reader();
        assert!(
            reader
                .reference()
                .unwrap_err()
                .message()
                .starts_with("argument/result signature mismatch")
        );
        assert!(block.reader().finish().is_err());
    }

    #[test]
    fn l6_a_span_longer_than_the_block_is_refused_before_it_is_read() {
        for count in [0x3FFF_FFFF, u32::MAX, 0x8000_0000, 3] {
            let words = [count, 1, 2];
            let mut reader = ArgumentBlock::new(&words, &[]).reader();
            assert!(reader.span(&[Atom::I32]).is_err(), "{count}");
        }
    }

    proptest! {
        #[test]
        fn what_was_packed_is_read_back_and_lies_where_the_oracle_says((convention, lengths, values) in case()) {
            let mut writer = ArgumentWriter::new();
            writer.push_arguments(&convention, &lengths, values.clone()).unwrap();
            let bytes: Vec<u8> = writer.block().words().iter().flat_map(|word| word.to_ne_bytes()).collect();
            prop_assert_eq!(bytes, oracle(&convention, &lengths, &values));
            let (read_lengths, read_values) = read(&convention, writer.block()).unwrap();
            prop_assert_eq!(&lengths[..read_lengths.len()], read_lengths);
            prop_assert_eq!(values.len(), read_values.len());
            prop_assert!(values.iter().zip(&read_values).all(|(a, b)| same(a, b)));
        }

        #[test]
        fn any_words_give_values_or_an_error(
            (convention, _, _) in case(),
            words in prop::collection::vec(prop_oneof![0u32..6, any::<u32>()], 0..40),
        ) {
            let refs = [Ref::Null, Ref::Null];
            let _ = read(&convention, ArgumentBlock::new(&words, &refs));
        }

        #[test]
        fn results_are_taken_as_they_were_pushed((convention, _, _) in case(), seeds in prop::collection::vec(any::<u64>(), 4)) {
            let values: Vec<Value> =
                convention.results().iter().zip(&seeds).map(|(atom, seed)| value(*atom, *seed)).collect();
            let mut results = Results::new();
            values.iter().cloned().for_each(|value| results.push(value));
            let taken = results.take_values(&convention).unwrap();
            prop_assert!(values.iter().zip(&taken).all(|(a, b)| same(a, b)));
            results.push_i32(1);
            if convention.results().is_empty() {
                prop_assert!(results.take_values(&convention).is_err());
            }
        }
    }
}
