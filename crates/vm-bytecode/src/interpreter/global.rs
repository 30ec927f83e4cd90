//! Global refs, and the types that refs are checked for. Globals of numbers are loaded and stored in the loop itself.

use vm::{ElementType, Ref, RefType, Result, Trap};

use super::Interpreter;
use super::stack::{MOVE_BIT, set_ref};

impl Interpreter<'_> {
    /// Checks that a ref is null or of the type at `type_index` of the module's table.
    #[inline]
    pub(super) fn check_type(&self, value: &Ref, type_index: u32) -> Result<()> {
        let Some(found) = value.ref_type() else {
            return Ok(());
        };
        match self.instance.element_type(type_index) {
            ElementType::Ref(expected) if expected == found => Ok(()),
            expected => Err(mismatch(expected, found)),
        }
    }

    /// Sets a ref register to a global, which the register's MOVE bit takes out of its place.
    pub(super) fn load_global_ref(
        &self,
        ordinal: u32,
        type_index: u32,
        result: u16,
        refs: &mut [Ref],
    ) -> Result<()> {
        let mut globals = self.instance.global_refs();
        let count = globals.len();
        let slot = globals
            .get_mut(ordinal as usize)
            .ok_or_else(|| no_global(ordinal, count))?;
        self.check_type(slot, type_index)?;
        let value = if result & MOVE_BIT != 0 {
            core::mem::take(slot)
        } else {
            slot.clone()
        };
        drop(globals);
        set_ref(refs, result, value);
        Ok(())
    }

    /// Sets a global to a ref of the type at `type_index`.
    pub(super) fn store_global_ref(&self, ordinal: u32, type_index: u32, value: Ref) -> Result<()> {
        self.check_type(&value, type_index)?;
        let mut globals = self.instance.global_refs();
        let count = globals.len();
        let slot = globals
            .get_mut(ordinal as usize)
            .ok_or_else(|| no_global(ordinal, count))?;
        let released = core::mem::replace(slot, value);
        // Released after the borrow: a destructor may run anything.
        drop(globals);
        drop(released);
        Ok(())
    }
}

fn type_name(element_type: ElementType) -> &'static str {
    match element_type {
        ElementType::I8 => "i8",
        ElementType::I16 => "i16",
        ElementType::I32 => "i32",
        ElementType::I64 => "i64",
        ElementType::F32 => "f32",
        ElementType::F64 => "f64",
        ElementType::Ref(ref_type) => ref_type.name(),
        ElementType::Variant => "vm.opaque",
    }
}

#[cold]
fn mismatch(expected: ElementType, found: &RefType) -> Trap {
    Trap::invalid_argument(format!(
        "source ref type mismatch; expected {} but have {}",
        type_name(expected),
        found.name()
    ))
}

#[cold]
fn no_global(ordinal: u32, count: usize) -> Trap {
    Trap::out_of_range(format!("global ref {ordinal} is out of range ({count})"))
}
