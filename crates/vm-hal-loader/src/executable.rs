//! Loaded executables as programs hold them, and their memory of names that were looked up.

use core::fmt;
use std::sync::{Arc, OnceLock};

use hal_local::{Executable, LookupError};
use vm::{Buffer, Object, Ref, RefType};

/// The type of refs to a [`HalExecutable`].
pub static EXECUTABLE_TYPE: RefType = RefType::new("hal.executable");

/// The most slots for answers that an executable has.
const MAX_SLOTS: usize = 8192;

/// How many slots an answer may be in, counted from where its address points.
const PROBES: usize = 8;

/// A loaded executable that programs hold through a ref.
///
/// Programs look a function up before every dispatch, by a constant of theirs that holds its name. The executable
/// remembers what it answered by the identity of that constant, so that the name is compared once and not each time.
pub struct HalExecutable {
    executable: Arc<dyn Executable>,
    /// Answers, each in one of the [`PROBES`] slots from where the address of the name's buffer points. A slot is
    /// written once, so that readers need no lock; an answer that finds its slots taken is not remembered.
    ///
    /// Invariant: a power of two of them, at least [`PROBES`].
    slots: Box<[OnceLock<Lookup>]>,
}

/// An answer, filed under the address of the name's buffer.
struct Lookup {
    /// Keeps the address from being used again. Invariant: its bytes are constant.
    name: Arc<Buffer>,
    ordinal: u32,
}

impl HalExecutable {
    /// Returns an executable for programs.
    #[must_use]
    pub fn new(executable: Arc<dyn Executable>) -> Self {
        // Twice as many slots as functions, as a program has about one constant for each.
        let slots = (executable.export_count().min(MAX_SLOTS / 2) * 2)
            .next_power_of_two()
            .max(PROBES);
        Self {
            executable,
            slots: (0..slots).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns the executable itself.
    #[must_use]
    #[inline]
    pub fn executable(&self) -> &Arc<dyn Executable> {
        &self.executable
    }

    /// Returns the ordinal of the function whose name is in `name`.
    ///
    /// # Errors
    /// Fails when there is no such function or the executable holds no names.
    #[inline]
    pub fn lookup(&self, name: &Arc<Buffer>) -> Result<u32, LookupError> {
        for slot in self.slots_of(name) {
            match slot.get() {
                Some(known) if Arc::ptr_eq(&known.name, name) => return Ok(known.ordinal),
                Some(_) => {}
                None => break,
            }
        }
        self.lookup_name(name)
    }

    /// Looks a name up that is not remembered, and remembers it.
    #[cold]
    fn lookup_name(&self, name: &Arc<Buffer>) -> Result<u32, LookupError> {
        // Bytes that are not constant may change under the same address.
        let Some(bytes) = name.as_constant() else {
            return self.executable.lookup(&name.to_vec());
        };
        let ordinal = self.executable.lookup(bytes)?;
        let mut answer = Lookup {
            name: Arc::clone(name),
            ordinal,
        };
        for slot in self.slots_of(name) {
            match slot.set(answer) {
                Ok(()) => break,
                Err(refused) => answer = refused,
            }
        }
        Ok(ordinal)
    }

    /// Returns the slots that the answer for `name` may be in.
    #[inline]
    fn slots_of(&self, name: &Arc<Buffer>) -> impl Iterator<Item = &OnceLock<Lookup>> {
        let mask = self.slots.len() - 1;
        // Allocations are multiples of 16 bytes; what the multiplication leaves in the middle depends on all bits.
        let address = Arc::as_ptr(name).addr() as u64 >> 4;
        let start = (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        (0..PROBES).filter_map(move |probe| self.slots.get(start.wrapping_add(probe) & mask))
    }
}

impl Object for HalExecutable {
    #[inline]
    fn ref_type(&self) -> &'static RefType {
        &EXECUTABLE_TYPE
    }
}

impl From<HalExecutable> for Ref {
    fn from(executable: HalExecutable) -> Self {
        Self::object(Arc::new(executable))
    }
}

impl fmt::Debug for HalExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HalExecutable")
            .field("export_count", &self.executable.export_count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use core::ops::Range;

    use hal_local::{Dispatch, DispatchError, ExportInfo, Worker};
    use vm::Access;

    use super::*;

    /// Its functions are called `0`, `1` and so on.
    struct Numbered(usize);

    impl Executable for Numbered {
        fn export_count(&self) -> usize {
            self.0
        }

        fn export(&self, _ordinal: u32) -> Option<&ExportInfo> {
            None
        }

        fn lookup(&self, name: &[u8]) -> Result<u32, LookupError> {
            let name = String::from_utf8_lossy(name);
            match name.parse() {
                Ok(ordinal) if (ordinal as usize) < self.0 => Ok(ordinal),
                _ => Err(LookupError::NotFound {
                    name: name.into(),
                    export_count: self.0,
                }),
            }
        }

        fn run(
            &self,
            _dispatch: &Dispatch<'_>,
            _tiles: Range<u64>,
            _worker: &mut Worker,
        ) -> Result<(), DispatchError> {
            Ok(())
        }
    }

    fn constant(text: &str) -> Arc<Buffer> {
        let bytes = text.as_bytes().to_vec();
        let range = 0..bytes.len();
        Buffer::constant(Arc::new(bytes), range, Access::CONSTANT).unwrap()
    }

    #[test]
    fn many_names_keep_their_answers_while_slots_run_out() {
        let executable = HalExecutable::new(Arc::new(Numbered(100)));
        let names: Vec<_> = (0..1000)
            .map(|index| constant(&(index % 100).to_string()))
            .collect();
        for _ in 0..3 {
            for (index, name) in (0u32..).zip(&names) {
                assert_eq!(executable.lookup(name), Ok(index % 100));
            }
        }
    }

    #[test]
    fn an_answer_is_given_without_asking_again() {
        let executable = HalExecutable::new(Arc::new(Numbered(1)));
        let name = constant("0");
        assert_eq!(executable.lookup(&name), Ok(0));
        let known = executable.slots.iter().filter_map(OnceLock::get);
        assert!(
            known
                .into_iter()
                .any(|known| Arc::ptr_eq(&known.name, &name))
        );
    }

    #[test]
    fn a_name_that_can_change_is_looked_up_each_time() {
        let executable = HalExecutable::new(Arc::new(Numbered(9)));
        let name = Buffer::copied_from(b"3", Access::GUEST).unwrap();
        assert_eq!(executable.lookup(&name), Ok(3));
        name.write(0, b"8").unwrap();
        assert_eq!(executable.lookup(&name), Ok(8));
        name.write(0, b"9").unwrap();
        assert!(executable.lookup(&name).is_err());
    }
}
