//! Values: what functions take and return, and what lists of anything hold.

use crate::{Atom, Ref};

/// A value of a program.
#[derive(Clone, Debug)]
pub enum Value {
    /// A 32-bit integer; narrower integers are widened to it.
    I32(i32),
    /// A 64-bit integer.
    I64(i64),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// A ref, which may be null.
    Ref(Ref),
}

impl Value {
    /// Returns how a calling convention spells the value's type.
    #[must_use]
    pub fn atom(&self) -> Atom {
        match self {
            Self::I32(_) => Atom::I32,
            Self::I64(_) => Atom::I64,
            Self::F32(_) => Atom::F32,
            Self::F64(_) => Atom::F64,
            Self::Ref(_) => Atom::Ref,
        }
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::I32(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::I64(value)
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Self {
        Self::F32(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::F64(value)
    }
}

impl From<Ref> for Value {
    fn from(value: Ref) -> Self {
        Self::Ref(value)
    }
}
