//! Refs: shared handles to buffers, lists and objects of native modules.
//!
//! A ref counts as one owner of what it names; copying retains, dropping releases, and null is a value.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use crate::{Buffer, List, Result, Trap};

/// A type that refs can have. Types are compared by address, so each is one `static`.
///
/// The name is what a module's type table spells after the `!`, for example `vm.buffer`.
#[derive(Debug)]
pub struct RefType {
    name: &'static str,
}

impl RefType {
    /// Returns a type with a name; bind it to a `static`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name }
    }

    /// Returns the name without the leading `!`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl PartialEq for RefType {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

impl Eq for RefType {}

/// The type of [`Ref::Buffer`].
pub static BUFFER_TYPE: RefType = RefType::new("vm.buffer");

/// The type of [`Ref::List`], whatever its elements.
pub static LIST_TYPE: RefType = RefType::new("vm.list");

/// A value of a native module that programs hold through refs.
pub trait Object: Any + Send + Sync + fmt::Debug {
    /// Returns the type of refs to the value; the same for all values of a Rust type.
    fn ref_type(&self) -> &'static RefType;
}

/// A shared handle, or null.
#[derive(Clone, Debug, Default)]
pub enum Ref {
    /// No object.
    #[default]
    Null,
    /// A `vm.buffer`.
    Buffer(Arc<Buffer>),
    /// A `vm.list`.
    List(Arc<List>),
    /// A buffer seen as another type, such as `hal.buffer`: the same memory without an object of its own.
    Aliased(&'static RefType, Arc<Buffer>),
    /// An object of a native module.
    Object(Arc<dyn Object>),
}

impl Ref {
    /// Returns a ref to an object.
    #[must_use]
    pub fn object<T: Object>(object: Arc<T>) -> Self {
        Self::Object(object)
    }

    /// Returns whether the ref is null.
    #[must_use]
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns the type of what the ref names, or `None` for null.
    #[must_use]
    #[inline]
    pub fn ref_type(&self) -> Option<&'static RefType> {
        match self {
            Self::Null => None,
            Self::Buffer(_) => Some(&BUFFER_TYPE),
            Self::List(_) => Some(&LIST_TYPE),
            Self::Aliased(ref_type, _) => Some(ref_type),
            Self::Object(object) => Some(object.ref_type()),
        }
    }

    /// Returns the `vm.buffer`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the ref is null or of another type.
    #[inline]
    pub fn as_buffer(&self) -> Result<&Arc<Buffer>> {
        match self {
            Self::Buffer(buffer) => Ok(buffer),
            _ => Err(self.mismatch(&BUFFER_TYPE)),
        }
    }

    /// Returns the buffer behind a ref of the type `ref_type` made with [`Ref::Aliased`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the ref is null or of another type.
    #[inline]
    pub fn as_aliased(&self, ref_type: &'static RefType) -> Result<&Arc<Buffer>> {
        match self {
            Self::Aliased(found, buffer) if *found == ref_type => Ok(buffer),
            _ => Err(self.mismatch(ref_type)),
        }
    }

    /// Returns the buffer as [`Ref::as_aliased`], with the ref's ownership of it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the ref is null or of another type.
    #[inline]
    pub fn into_aliased(self, ref_type: &'static RefType) -> Result<Arc<Buffer>> {
        match self {
            Self::Aliased(found, buffer) if found == ref_type => Ok(buffer),
            other => Err(other.mismatch(ref_type)),
        }
    }

    /// Returns the `vm.list`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the ref is null or of another type.
    #[inline]
    pub fn as_list(&self) -> Result<&Arc<List>> {
        match self {
            Self::List(list) => Ok(list),
            _ => Err(self.mismatch(&LIST_TYPE)),
        }
    }

    /// Returns the object of the Rust type `T`, whose refs have the type `ref_type`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the ref is null or of another type.
    #[inline]
    pub fn as_object<T: Object>(&self, ref_type: &'static RefType) -> Result<&T> {
        match self.object_of_type() {
            Some(object) => Ok(object),
            None => Err(self.mismatch(ref_type)),
        }
    }

    /// Returns the object if it is of the Rust type `T`.
    #[inline]
    pub fn object_of_type<T: Object>(&self) -> Option<&T> {
        let Self::Object(object) = self else {
            return None;
        };
        // The table of a `T`'s methods is nearly always one and the same, and an object with that table is a `T`: the
        // compiler then knows the answer of `downcast_ref`. Of several tables with the same content all but one lead to
        // the slow way, which asks the object.
        let as_that_type: *const dyn Object = Arc::as_ptr(object).cast::<T>();
        if core::ptr::eq(Arc::as_ptr(object), as_that_type) {
            return (&**object as &dyn Any).downcast_ref();
        }
        downcast(&**object)
    }

    /// Returns whether both name the same object as the same type; two nulls do.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Buffer(a), Self::Buffer(b)) => Arc::ptr_eq(a, b),
            (Self::List(a), Self::List(b)) => Arc::ptr_eq(a, b),
            (Self::Aliased(a_type, a), Self::Aliased(b_type, b)) => {
                a_type == b_type && Arc::ptr_eq(a, b)
            }
            (Self::Object(a), Self::Object(b)) => {
                core::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
            }
            _ => false,
        }
    }

    #[cold]
    fn mismatch(&self, expected: &'static RefType) -> Trap {
        match self.ref_type() {
            None => Trap::invalid_argument(format!("ref is null; expected {}", expected.name())),
            Some(found) => Trap::invalid_argument(format!(
                "ref type mismatch; expected {} but have {}",
                expected.name(),
                found.name()
            )),
        }
    }
}

/// Asks an object for its type.
#[cold]
fn downcast<T: Object>(object: &dyn Object) -> Option<&T> {
    (object as &dyn Any).downcast_ref()
}

impl From<Arc<Buffer>> for Ref {
    fn from(buffer: Arc<Buffer>) -> Self {
        Self::Buffer(buffer)
    }
}

impl From<Arc<List>> for Ref {
    fn from(list: Arc<List>) -> Self {
        Self::List(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StatusCode;

    static OTHER: RefType = RefType::new("test.other");
    static THING: RefType = RefType::new("test.thing");

    #[derive(Debug)]
    struct Thing(u32);

    impl Object for Thing {
        fn ref_type(&self) -> &'static RefType {
            &THING
        }
    }

    #[test]
    fn a_ref_takes_three_words() {
        assert_eq!(size_of::<Ref>(), 24);
    }

    #[test]
    fn null_and_a_wrong_type_are_told_apart() {
        let null = Ref::Null.as_buffer().unwrap_err();
        assert_eq!(null.code(), StatusCode::INVALID_ARGUMENT);
        assert!(null.message().starts_with("ref is null"));
        let thing = Ref::object(Arc::new(Thing(3)));
        assert_eq!(
            thing.as_buffer().unwrap_err().message(),
            "ref type mismatch; expected vm.buffer but have test.thing"
        );
        assert_eq!(thing.as_object::<Thing>(&THING).unwrap().0, 3);
    }

    #[test]
    fn one_buffer_under_two_types_is_not_the_same_ref() {
        let buffer = Buffer::allocate(4, 0).unwrap();
        let plain = Ref::from(Arc::clone(&buffer));
        let aliased = Ref::Aliased(&OTHER, Arc::clone(&buffer));
        assert!(!plain.same(&aliased));
        assert!(aliased.same(&aliased.clone()));
        assert!(plain.same(&Ref::from(buffer)));
        assert!(Ref::Null.same(&Ref::Null));
        assert!(aliased.as_buffer().is_err());
        assert!(aliased.as_aliased(&OTHER).is_ok());
        assert!(aliased.as_aliased(&THING).is_err());
    }
}
