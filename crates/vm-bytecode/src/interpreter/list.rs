//! List instructions.

use std::sync::Arc;

use vm::{ElementType, List, Ref, Result, Value};

use super::{Interpreter, MOVE_BIT, index};

impl Interpreter<'_> {
    /// Returns a new list whose element type is the one at `type_index` of the module's table.
    pub(super) fn new_list(&self, type_index: u32, capacity: u32) -> Result<Ref> {
        List::new(self.instance.element_type(type_index), capacity).map(Ref::from)
    }

    /// Returns the ref at `at` of a list, taken out when the `result` operand says so; null when it is of another type
    /// than the one at `type_index`.
    pub(super) fn list_ref(
        &self,
        refs: &[Ref],
        operand: u16,
        at: u32,
        type_index: u32,
        result: u16,
    ) -> Result<Ref> {
        let list = list(refs, operand)?;
        let value = if result & MOVE_BIT != 0 {
            list.take_ref(at)?
        } else {
            list.get_ref(at)?
        };
        match self.instance.element_type(type_index) {
            ElementType::Ref(expected) if value.ref_type() == Some(expected) => Ok(value),
            _ => Ok(Ref::Null),
        }
    }
}

/// Borrows the list a ref operand names.
#[inline]
pub(super) fn list(refs: &[Ref], operand: u16) -> Result<&Arc<List>> {
    refs[index(operand)].as_list()
}

/// Sets the element at `at` of a list.
pub(super) fn set_list(refs: &[Ref], operand: u16, at: u32, value: impl Into<Value>) -> Result<()> {
    list(refs, operand)?.set(at, value.into())
}
