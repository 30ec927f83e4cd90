//! Loaded executables as programs hold them, and their memory of names that were looked up.

use core::fmt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hal_local::{Executable, LookupError};
use vm::{Buffer, Object, Ref, RefType};

/// The type of refs to a [`HalExecutable`].
pub static EXECUTABLE_TYPE: RefType = RefType::new("hal.executable");

/// How many names an executable remembers. A program has one constant for each place that dispatches.
const MAX_LOOKUPS: usize = 4096;

/// A loaded executable that programs hold through a ref.
///
/// Programs look a function up before every dispatch, by a constant of theirs that holds its name. The executable
/// remembers what it answered by the identity of that constant, so that the name is compared once and not each time.
pub struct HalExecutable {
    executable: Arc<dyn Executable>,
    lookups: Mutex<HashMap<usize, Lookup, AddressHasher>>,
}

/// An answer, filed under the address of the name's buffer.
struct Lookup {
    /// Keeps the address from being used again. Invariant: its bytes are constant.
    _name: Arc<Buffer>,
    ordinal: u32,
}

impl HalExecutable {
    /// Returns an executable for programs.
    #[must_use]
    pub fn new(executable: Arc<dyn Executable>) -> Self {
        Self {
            executable,
            lookups: Mutex::default(),
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
    pub fn lookup(&self, name: &Arc<Buffer>) -> Result<u32, LookupError> {
        let address = Arc::as_ptr(name).addr();
        // Each step leaves the map consistent, so one that a panic of the executable interrupted still is.
        let mut lookups = self.lookups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lookups.get(&address) {
            return Ok(known.ordinal);
        }
        // Other bytes may change under the same address.
        let Some(bytes) = name.as_constant() else {
            return self.executable.lookup(&name.to_vec());
        };
        let ordinal = self.executable.lookup(bytes)?;
        if lookups.len() >= MAX_LOOKUPS {
            lookups.clear();
        }
        lookups.insert(
            address,
            Lookup {
                _name: Arc::clone(name),
                ordinal,
            },
        );
        Ok(ordinal)
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

/// Hashes an address by multiplication: addresses are the allocator's, and the standard hasher's strength would be
/// paid for at every dispatch.
type AddressHasher = core::hash::BuildHasherDefault<MultiplyHasher>;

#[derive(Default)]
struct MultiplyHasher(u64);

impl core::hash::Hasher for MultiplyHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        // The product's high bits depend on all bits of the address, its low ones on few: the map uses both.
        let product = (self.0 ^ value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ (product >> 32);
    }
}
