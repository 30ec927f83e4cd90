//! Executables of Rust functions and a loader of them.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use hal_local::{
    Decline, Dispatch, DispatchError, Executable, ExecutableData, ExecutableLoader,
    ExecutableParams, ExportAttributes, ExportInfo, LoadError, LookupError, Worker,
};
use vm::Buffer;

/// What a dispatch looked like to the executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) ordinal: u32,
    pub(crate) workgroup_count: [u32; 3],
    pub(crate) tiles: Range<u64>,
    pub(crate) constants: Vec<u32>,
    pub(crate) bindings: Vec<SeenBinding>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenBinding {
    pub(crate) address: usize,
    pub(crate) length: usize,
    pub(crate) is_writable: bool,
    /// Address of the buffer that the binding names as its owner.
    pub(crate) owner: usize,
}

/// Functions that note their dispatches and add 1 to each byte they may write. The last one fails.
pub(crate) struct Kernels {
    pub(crate) data: ExecutableData,
    pub(crate) constants: Vec<u32>,
    pub(crate) seen: Mutex<Vec<Seen>>,
    exports: Box<[ExportInfo]>,
}

impl Kernels {
    fn new(data: ExecutableData, constants: &[u32]) -> Self {
        let export = |ordinal, name: Option<&str>, attributes| {
            ExportInfo::new(ordinal, name.map(|name| name.as_bytes().into()), attributes)
        };
        let named = !data.starts_with(b"nameless");
        let strict = ExportAttributes {
            constant_count: Some(2),
            binding_count: Some(3),
            binding_alignment: 64,
            ..ExportAttributes::default()
        };
        let any = ExportAttributes::default();
        let exports = [("any", any), ("strict", strict), ("failing", any)];
        let exports = (0..).zip(exports).map(|(ordinal, (name, attributes))| {
            export(ordinal, named.then_some(name), attributes)
        });
        Self {
            constants: constants.to_vec(),
            seen: Mutex::default(),
            exports: exports.collect(),
            data,
        }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Executable for Kernels {
    fn exports(&self) -> &[ExportInfo] {
        &self.exports
    }

    fn lookup(&self, name: &[u8]) -> Result<u32, LookupError> {
        let text = String::from_utf8_lossy(name).into_owned();
        if self.exports.iter().all(|export| export.name().is_none()) {
            return Err(LookupError::NoNames { name: text });
        }
        let found = self
            .exports
            .iter()
            .find(|export| export.name() == Some(name));
        found.map(ExportInfo::ordinal).ok_or(LookupError::NotFound {
            name: text,
            export_count: self.exports.len(),
        })
    }

    fn run(
        &self,
        dispatch: &Dispatch<'_>,
        tiles: Range<u64>,
        _worker: &mut Worker,
    ) -> Result<(), DispatchError> {
        let bindings = dispatch.bindings().map(|binding| {
            let owner = binding
                .owner()
                .and_then(|owner| owner.downcast_ref::<Arc<Buffer>>());
            SeenBinding {
                address: binding.as_ptr().addr(),
                length: binding.byte_length(),
                is_writable: binding.is_writable(),
                owner: owner.map_or(0, |buffer| Arc::as_ptr(buffer).addr()),
            }
        });
        self.seen.lock().unwrap().push(Seen {
            ordinal: dispatch.ordinal(),
            workgroup_count: dispatch.grid().count(),
            tiles,
            constants: dispatch.constants().to_vec(),
            bindings: bindings.collect(),
        });
        if dispatch.ordinal() == 2 {
            let cause = std::io::Error::other("the kernel is out of tea");
            let code = code_of_the_first_constant(dispatch);
            return Err(DispatchError::executable(dispatch.export(), code, cause));
        }
        for byte in dispatch
            .bindings()
            .filter_map(|binding| binding.as_shared())
            .flatten()
        {
            byte.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The code a failing function fails with.
fn code_of_the_first_constant(dispatch: &Dispatch<'_>) -> hal_local::StatusCode {
    hal_local::StatusCode(dispatch.constants()[0])
}

/// Loads [`Kernels`] from data of the format `kernels`, unless the data say otherwise.
#[derive(Default)]
pub(crate) struct KernelsLoader {
    pub(crate) loaded: Mutex<Vec<Arc<Kernels>>>,
}

impl KernelsLoader {
    pub(crate) fn last(&self) -> Arc<Kernels> {
        self.loaded.lock().unwrap().last().unwrap().clone()
    }
}

impl ExecutableLoader for KernelsLoader {
    fn name(&self) -> &str {
        "kernels"
    }

    fn supports_format(&self, format: &str) -> bool {
        format == "kernels"
    }

    fn infer_format(&self, _data: &[u8]) -> Option<String> {
        None
    }

    fn try_load(&self, params: &ExecutableParams<'_>) -> Result<Arc<dyn Executable>, LoadError> {
        match &*params.data {
            b"declined" => Err(LoadError::Declined {
                code: Decline::Cancelled,
                reason: "not tonight".into(),
            }),
            [code, rest @ ..] if rest == b" broken" => Err(LoadError::Loader {
                loader: "kernels".into(),
                code: hal_local::StatusCode((*code).into()),
                source: "the kernels are broken".into(),
            }),
            _ => {
                let kernels = Arc::new(Kernels::new(params.data.clone(), params.constants));
                self.loaded.lock().unwrap().push(kernels.clone());
                Ok(kernels)
            }
        }
    }
}
