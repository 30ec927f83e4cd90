//! Lists: growable sequences of values or refs that refs share.
//!
//! Holds storage, conversion and type rules (`docs/vm.md`, section "Lists").

use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Ref, RefType, Result, StatusCode, Trap, Value};

/// The most elements a list may have: far beyond what programs use, and few enough that a hostile program cannot take
/// the machine's memory with one instruction.
pub const MAX_LIST_LENGTH: u32 = 1 << 26;

/// Type of the elements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// 8-bit integers.
    I8,
    /// 16-bit integers.
    I16,
    /// 32-bit integers.
    I32,
    /// 64-bit integers.
    I64,
    /// 32-bit floats.
    F32,
    /// 64-bit floats.
    F64,
    /// Refs of one type, or null.
    Ref(&'static RefType),
    /// Anything, each element with its own type.
    Variant,
}

/// An element of a list, as [`List::get`] returns it.
#[derive(Clone, Debug)]
pub enum Element {
    /// A variant that was never set.
    Empty,
    /// An 8-bit integer.
    I8(i8),
    /// A 16-bit integer.
    I16(i16),
    /// Any other value.
    Value(Value),
}

/// A growable sequence that refs share; threads may share it, each operation is atomic.
///
/// A list that holds itself is never freed: refs are counted, cycles are not found.
pub struct List {
    element_type: ElementType,
    items: Mutex<Items>,
}

enum Items {
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Refs(Vec<Ref>),
    Variants(Vec<Option<Value>>),
}

/// A number on its way between the types of an element and of an instruction.
///
/// Integers convert to integers and floats to floats; across the two the result is zero, as in the reference.
#[derive(Clone, Copy)]
enum Number {
    Integer(i64),
    Float(f64),
}

/// Runs `$body` with `$items` bound to whichever vector the list holds.
macro_rules! with_items {
    ($items:expr, $vector:ident => $body:expr) => {
        match $items {
            Items::I8($vector) => $body,
            Items::I16($vector) => $body,
            Items::I32($vector) => $body,
            Items::I64($vector) => $body,
            Items::F32($vector) => $body,
            Items::F64($vector) => $body,
            Items::Refs($vector) => $body,
            Items::Variants($vector) => $body,
        }
    };
}

impl List {
    /// Returns an empty list with room for `capacity` elements.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when the capacity is over [`MAX_LIST_LENGTH`] or the memory cannot be had.
    pub fn new(element_type: ElementType, capacity: u32) -> Result<Arc<Self>> {
        let items = match element_type {
            ElementType::I8 => Items::I8(Vec::new()),
            ElementType::I16 => Items::I16(Vec::new()),
            ElementType::I32 => Items::I32(Vec::new()),
            ElementType::I64 => Items::I64(Vec::new()),
            ElementType::F32 => Items::F32(Vec::new()),
            ElementType::F64 => Items::F64(Vec::new()),
            ElementType::Ref(_) => Items::Refs(Vec::new()),
            ElementType::Variant => Items::Variants(Vec::new()),
        };
        let list = Self {
            element_type,
            items: Mutex::new(items),
        };
        list.reserve(capacity)?;
        Ok(Arc::new(list))
    }

    /// Returns a list of `buffers`, as bytecode kernels take their bindings.
    ///
    /// # Errors
    /// As [`List::new`].
    pub fn of_refs(ref_type: &'static RefType, refs: Vec<Ref>) -> Result<Arc<Self>> {
        checked_length(refs.len() as u64)?;
        if let Some(other) = refs
            .iter()
            .find(|item| !item.is_null() && item.ref_type() != Some(ref_type))
        {
            return Err(element_mismatch(ref_type, other));
        }
        Ok(Arc::new(Self {
            element_type: ElementType::Ref(ref_type),
            items: Mutex::new(Items::Refs(refs)),
        }))
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        with_items!(&*self.items(), items => items.len())
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Grows the capacity to at least `capacity` elements; never shrinks it.
    ///
    /// # Errors
    /// As [`List::new`].
    pub fn reserve(&self, capacity: u32) -> Result<()> {
        let capacity = checked_length(u64::from(capacity))?;
        with_items!(&mut *self.items(), items => reserve_total(items, capacity))
    }

    /// Sets the number of elements. New ones are zero, null or empty; refs beyond the end are released.
    ///
    /// # Errors
    /// As [`List::new`].
    pub fn resize(&self, length: u32) -> Result<()> {
        let length = checked_length(u64::from(length))?;
        let released = match &mut *self.items() {
            Items::I8(items) => resize_plain(items, length)?,
            Items::I16(items) => resize_plain(items, length)?,
            Items::I32(items) => resize_plain(items, length)?,
            Items::I64(items) => resize_plain(items, length)?,
            Items::F32(items) => resize_plain(items, length)?,
            Items::F64(items) => resize_plain(items, length)?,
            Items::Refs(items) => {
                let released = items.split_off(length.min(items.len()));
                reserve_total(items, length)?;
                items.resize(length, Ref::Null);
                released
            }
            Items::Variants(items) => {
                let released = items.split_off(length.min(items.len()));
                reserve_total(items, length)?;
                items.resize(length, None);
                released
                    .into_iter()
                    .flatten()
                    .filter_map(into_ref)
                    .collect()
            }
        };
        // Dropped here, after the lock: releasing a ref may run any destructor.
        drop(released);
        Ok(())
    }

    /// Appends `value`, converted as by [`List::set`].
    ///
    /// # Errors
    /// As [`List::set`] and [`List::resize`]; on failure the list is unchanged.
    pub fn push(&self, value: Value) -> Result<()> {
        let length = u32::try_from(self.len()).unwrap_or(u32::MAX);
        self.resize(length.saturating_add(1))?;
        self.set(length, value).inspect_err(|_| {
            // Shrinking cannot fail.
            let _ = self.resize(length);
        })
    }

    /// Returns the element at `index`.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when there is no such element.
    pub fn get(&self, index: u32) -> Result<Element> {
        let items = self.items();
        let at = checked_index(&items, index)?;
        Ok(match &*items {
            Items::I8(items) => Element::I8(items[at]),
            Items::I16(items) => Element::I16(items[at]),
            Items::I32(items) => Element::Value(Value::I32(items[at])),
            Items::I64(items) => Element::Value(Value::I64(items[at])),
            Items::F32(items) => Element::Value(Value::F32(items[at])),
            Items::F64(items) => Element::Value(Value::F64(items[at])),
            Items::Refs(items) => Element::Value(Value::Ref(items[at].clone())),
            Items::Variants(items) => items[at].clone().map_or(Element::Empty, Element::Value),
        })
    }

    /// Sets the element at `index`. Numbers are converted to the element type; a list of variants keeps the value as
    /// it is.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when there is no such element, `FAILED_PRECONDITION` when a list of numbers is given a ref or a
    /// list of refs a number, `INVALID_ARGUMENT` when a ref is of another type than the elements.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "numbers are truncated to the element type"
    )]
    pub fn set(&self, index: u32, value: Value) -> Result<()> {
        let mut items = self.items();
        let at = checked_index(&items, index)?;
        // Dropped after the lock: releasing a ref may run any destructor.
        let released;
        match (&mut *items, value) {
            (Items::Variants(items), value) => {
                released = items[at].replace(value).and_then(into_ref)
            }
            (Items::Refs(items), Value::Ref(value)) => {
                if let ElementType::Ref(expected) = self.element_type
                    && value.ref_type().is_some_and(|found| found != expected)
                {
                    return Err(element_mismatch(expected, &value));
                }
                released = Some(core::mem::replace(&mut items[at], value));
            }
            (Items::Refs(_), _) => {
                return Err(precondition(
                    "the elements of the list are refs, not numbers",
                ));
            }
            (_, Value::Ref(_)) => {
                return Err(precondition(
                    "the elements of the list are numbers, not refs",
                ));
            }
            (numbers, value) => {
                released = None;
                // A ref was told apart above.
                let number = Number::of(&value).unwrap_or(Number::Integer(0));
                match numbers {
                    Items::I8(items) => items[at] = number.integer() as i8,
                    Items::I16(items) => items[at] = number.integer() as i16,
                    Items::I32(items) => items[at] = number.integer() as i32,
                    Items::I64(items) => items[at] = number.integer(),
                    Items::F32(items) => items[at] = number.float() as f32,
                    Items::F64(items) => items[at] = number.float(),
                    Items::Refs(_) | Items::Variants(_) => {}
                }
            }
        }
        drop(items);
        drop(released);
        Ok(())
    }

    /// Returns the element at `index` as an integer: truncated or sign-extended by the caller, zero for a float.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when there is no such element, `FAILED_PRECONDITION` when it is not a number.
    pub fn get_integer(&self, index: u32) -> Result<i64> {
        Ok(self.number(index)?.integer())
    }

    /// Returns the element at `index` as a float: zero for an integer.
    ///
    /// # Errors
    /// As [`List::get_integer`].
    pub fn get_float(&self, index: u32) -> Result<f64> {
        Ok(self.number(index)?.float())
    }

    /// Returns the ref at `index`.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when there is no such element, `FAILED_PRECONDITION` when it is a number.
    pub fn get_ref(&self, index: u32) -> Result<Ref> {
        self.with_ref(index, |item| item.clone())
    }

    /// Returns the ref at `index` and leaves null in its place.
    ///
    /// # Errors
    /// As [`List::get_ref`].
    pub fn take_ref(&self, index: u32) -> Result<Ref> {
        self.with_ref(index, core::mem::take)
    }

    fn with_ref(&self, index: u32, use_ref: impl FnOnce(&mut Ref) -> Ref) -> Result<Ref> {
        let mut items = self.items();
        let at = checked_index(&items, index)?;
        match &mut *items {
            Items::Refs(items) => Ok(use_ref(&mut items[at])),
            Items::Variants(items) => match &mut items[at] {
                Some(Value::Ref(item)) => Ok(use_ref(item)),
                None => Ok(Ref::Null),
                Some(_) => Err(precondition(
                    "the element of the list is a number, not a ref",
                )),
            },
            _ => Err(precondition(
                "the elements of the list are numbers, not refs",
            )),
        }
    }

    fn number(&self, index: u32) -> Result<Number> {
        let items = self.items();
        let at = checked_index(&items, index)?;
        match &*items {
            Items::I8(items) => Ok(Number::Integer(items[at].into())),
            Items::I16(items) => Ok(Number::Integer(items[at].into())),
            Items::I32(items) => Ok(Number::Integer(items[at].into())),
            Items::I64(items) => Ok(Number::Integer(items[at])),
            Items::F32(items) => Ok(Number::Float(items[at].into())),
            Items::F64(items) => Ok(Number::Float(items[at])),
            Items::Refs(_) => Err(precondition(
                "the elements of the list are refs, not numbers",
            )),
            Items::Variants(items) => items[at]
                .as_ref()
                .and_then(Number::of)
                .ok_or_else(|| precondition("the element of the list is not a number")),
        }
    }

    fn items(&self) -> MutexGuard<'_, Items> {
        // No code that can panic runs under the lock, so a poisoned list is still consistent.
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Number {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::I32(value) => Some(Self::Integer((*value).into())),
            Value::I64(value) => Some(Self::Integer(*value)),
            Value::F32(value) => Some(Self::Float((*value).into())),
            Value::F64(value) => Some(Self::Float(*value)),
            Value::Ref(_) => None,
        }
    }

    fn integer(self) -> i64 {
        match self {
            Self::Integer(value) => value,
            Self::Float(_) => 0,
        }
    }

    fn float(self) -> f64 {
        match self {
            Self::Integer(_) => 0.0,
            Self::Float(value) => value,
        }
    }
}

impl Drop for List {
    /// Releases the elements. Lists inside lists are taken apart in a loop: recursion as deep as a program nested its
    /// lists would overflow the thread's stack.
    fn drop(&mut self) {
        let mut pending = take_lists(self);
        while let Some(list) = pending.pop() {
            if let Some(mut list) = Arc::into_inner(list) {
                pending.append(&mut take_lists(&mut list));
            }
        }
    }
}

/// Removes the lists among the elements of `list` and returns them; other elements stay.
fn take_lists(list: &mut List) -> Vec<Arc<List>> {
    let take = |item: &mut Ref| match core::mem::take(item) {
        Ref::List(list) => Some(list),
        other => {
            *item = other;
            None
        }
    };
    match list.items.get_mut().unwrap_or_else(PoisonError::into_inner) {
        Items::Refs(items) => items.iter_mut().filter_map(take).collect(),
        Items::Variants(items) => items
            .iter_mut()
            .filter_map(|item| match item {
                Some(Value::Ref(item)) => take(item),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Elements are left out: a list may hold itself.
        f.debug_struct("List")
            .field("element_type", &self.element_type)
            .field("len", &self.len())
            .finish()
    }
}

fn into_ref(value: Value) -> Option<Ref> {
    match value {
        Value::Ref(item) => Some(item),
        _ => None,
    }
}

fn resize_plain<T: Default + Clone>(items: &mut Vec<T>, length: usize) -> Result<Vec<Ref>> {
    reserve_total(items, length)?;
    items.resize(length, T::default());
    Ok(Vec::new())
}

fn reserve_total<T>(items: &mut Vec<T>, capacity: usize) -> Result<()> {
    let additional = capacity.saturating_sub(items.len());
    items.try_reserve(additional).map_err(|_| {
        Trap::new(
            StatusCode::RESOURCE_EXHAUSTED,
            format!("cannot allocate a list of {capacity} elements"),
        )
    })
}

fn checked_length(length: u64) -> Result<usize> {
    if length > u64::from(MAX_LIST_LENGTH) {
        return Err(Trap::new(
            StatusCode::RESOURCE_EXHAUSTED,
            format!("a list of {length} elements is longer than the limit of {MAX_LIST_LENGTH}"),
        ));
    }
    Ok(usize::try_from(length).unwrap_or(usize::MAX))
}

fn checked_index(items: &Items, index: u32) -> Result<usize> {
    let length = with_items!(items, items => items.len());
    match usize::try_from(index) {
        Ok(at) if at < length => Ok(at),
        _ => Err(Trap::out_of_range(format!(
            "index {index} out of bounds ({length})"
        ))),
    }
}

#[cold]
fn element_mismatch(expected: &'static RefType, found: &Ref) -> Trap {
    let found = found.ref_type().map_or("null", RefType::name);
    Trap::invalid_argument(format!(
        "list element type mismatch; expected {} but have {found}",
        expected.name()
    ))
}

#[cold]
fn precondition(message: &str) -> Trap {
    Trap::new(StatusCode::FAILED_PRECONDITION, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BUFFER_TYPE, Buffer, LIST_TYPE};

    #[test]
    fn numbers_are_converted_to_the_element_type() {
        let list = List::new(ElementType::I8, 0).unwrap();
        list.push(Value::I32(300)).unwrap();
        list.push(Value::I64(200)).unwrap();
        list.push(Value::F32(1.5)).unwrap();
        let integers: Vec<i64> = (0..3)
            .map(|index| list.get_integer(index).unwrap())
            .collect();
        assert_eq!(integers, [44, -56, 0]);
        assert_eq!(list.get_float(0).unwrap(), 0.0);
    }

    #[test]
    fn a_bad_index_is_out_of_range() {
        let list = List::new(ElementType::I32, 4).unwrap();
        assert_eq!(list.get(0).unwrap_err().code(), StatusCode::OUT_OF_RANGE);
        assert_eq!(
            list.set(u32::MAX, Value::I32(0)).unwrap_err().message(),
            "index 4294967295 out of bounds (0)"
        );
    }

    #[test]
    fn refs_of_another_type_are_refused() {
        let list = List::new(ElementType::Ref(&BUFFER_TYPE), 0).unwrap();
        list.resize(1).unwrap();
        let other = Value::Ref(Ref::from(List::new(ElementType::I8, 0).unwrap()));
        assert_eq!(
            list.set(0, other).unwrap_err().code(),
            StatusCode::INVALID_ARGUMENT
        );
        assert_eq!(
            list.set(0, Value::I32(1)).unwrap_err().code(),
            StatusCode::FAILED_PRECONDITION
        );
        list.set(0, Value::Ref(Buffer::allocate(1, 0).unwrap().into()))
            .unwrap();
        assert_eq!(
            list.get_integer(0).unwrap_err().code(),
            StatusCode::FAILED_PRECONDITION
        );
        assert!(!list.take_ref(0).unwrap().is_null());
        assert!(list.get_ref(0).unwrap().is_null());
    }

    #[test]
    fn a_list_of_anything_keeps_each_type() {
        let list = List::new(ElementType::Variant, 0).unwrap();
        list.push(Value::F64(2.5)).unwrap();
        list.resize(2).unwrap();
        assert!(matches!(
            list.get(0).unwrap(),
            Element::Value(Value::F64(_))
        ));
        assert!(matches!(list.get(1).unwrap(), Element::Empty));
        assert_eq!(
            list.get_integer(1).unwrap_err().code(),
            StatusCode::FAILED_PRECONDITION
        );
        assert!(list.get_ref(1).unwrap().is_null());
        assert_eq!(
            list.get_ref(0).unwrap_err().code(),
            StatusCode::FAILED_PRECONDITION
        );
    }

    #[test]
    fn shrinking_releases_refs() {
        let buffer = Buffer::allocate(1, 0).unwrap();
        let list = List::new(ElementType::Variant, 0).unwrap();
        list.push(Value::Ref(Arc::clone(&buffer).into())).unwrap();
        list.resize(0).unwrap();
        assert_eq!(Arc::strong_count(&buffer), 1);
    }

    #[test]
    fn a_length_over_the_limit_exhausts_the_resource() {
        assert_eq!(
            List::new(ElementType::Variant, u32::MAX)
                .unwrap_err()
                .code(),
            StatusCode::RESOURCE_EXHAUSTED
        );
        let list = List::new(ElementType::I8, 0).unwrap();
        assert_eq!(
            list.resize(MAX_LIST_LENGTH + 1).unwrap_err().code(),
            StatusCode::RESOURCE_EXHAUSTED
        );
    }

    #[test]
    fn deeply_nested_lists_are_released_without_recursion() {
        let mut list = List::new(ElementType::Variant, 0).unwrap();
        for _ in 0..200_000 {
            let outer = List::new(ElementType::Ref(&LIST_TYPE), 1).unwrap();
            outer.push(Value::Ref(list.into())).unwrap();
            list = outer;
        }
        drop(list);
    }
}
