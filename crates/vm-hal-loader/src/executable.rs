//! Loaded executables as programs hold them.

use core::fmt;
use std::sync::Arc;

use hal_local::{Executable, ExecutableHandle};
use vm::{Object, Ref, RefType};

/// The type of refs to a [`HalExecutable`].
pub static EXECUTABLE_TYPE: RefType = RefType::new("hal.executable");

/// A loaded executable that programs hold through a ref.
pub struct HalExecutable {
    handle: ExecutableHandle,
}

impl HalExecutable {
    /// Returns an executable for programs.
    #[must_use]
    pub fn new(executable: Arc<dyn Executable>) -> Self {
        Self {
            handle: ExecutableHandle::new(executable),
        }
    }

    /// Returns the executable itself.
    #[must_use]
    #[inline]
    pub fn executable(&self) -> &Arc<dyn Executable> {
        self.handle.executable()
    }

    /// Returns the executable as places that dispatch know it.
    #[inline]
    pub(crate) fn handle(&self) -> &ExecutableHandle {
        &self.handle
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
            .field("export_count", &self.executable().export_count())
            .finish_non_exhaustive()
    }
}
