//! A stand-in for a program: a module that imports functions of `hal_loader` by their calling conventions, as a
//! compiler spells them, and passes calls on.

use std::sync::Arc;

use hal_local::{InlineDispatcher, LoaderRegistry};
use vm::{
    Access, ArgumentWriter, Buffer, Call, CallShape, CallingConvention, Context, Dependency,
    Export, Import, ImportTarget, Instance, InvocationOptions, Linkage, Module, Ref, Result,
    Results, StatusCode, Value,
};

use crate::kernels::KernelsLoader;

/// The functions that programs of each version of the module import.
pub(crate) const IMPORTS_0: &[(&str, &str)] = &[
    ("executable.query_support", "0r_i"),
    ("executable.load", "0rrr_r"),
    ("executable.dispatch", "0riiiiCiDCrIID_v"),
];
pub(crate) const IMPORTS_1: &[(&str, &str)] = &[
    ("executable.query_support", "0r_i"),
    ("executable.load", "0rrr_r"),
    ("executable.lookup.function", "0rr_I"),
    ("executable.dispatch", "0rIiiiCiDCrIID_v"),
];

#[derive(Debug)]
struct Importer {
    dependencies: Vec<Dependency>,
    exports: Vec<Export>,
    imports: Vec<Import>,
    from_site: bool,
}

#[derive(Debug)]
struct ImporterInstance {
    imports: Vec<Option<ImportTarget>>,
    /// Whether dispatches are made from a place that was prepared for them.
    from_site: bool,
}

impl Module for Importer {
    fn name(&self) -> &str {
        "program"
    }

    fn version(&self) -> u32 {
        0
    }

    fn dependencies(&self) -> &[Dependency] {
        &self.dependencies
    }

    fn exports(&self) -> &[Export] {
        &self.exports
    }

    fn imports(&self) -> &[Import] {
        &self.imports
    }

    fn instantiate(self: Arc<Self>, linkage: Linkage<'_>) -> Result<Box<dyn Instance>> {
        Ok(Box::new(ImporterInstance {
            imports: linkage.imports,
            from_site: self.from_site,
        }))
    }
}

impl Instance for ImporterInstance {
    fn call(&self, ordinal: u32, call: &mut Call<'_, '_>) -> Result<()> {
        let target = self.imports[ordinal as usize].unwrap();
        let shape = CallShape::new(call.arguments.words(), &[]);
        if self.from_site
            && let Some(mut site) = call.invocation.call_site(target, shape)?
        {
            return site.call(call.arguments, call.invocation);
        }
        call.invocation.call(target, call.arguments, call.results)
    }
}

/// Links a program that needs the module in `minimum_version` and imports `functions`.
pub(crate) fn link(
    loaders: LoaderRegistry,
    minimum_version: u32,
    functions: &[(&str, &str)],
) -> Result<Context> {
    link_dispatching(loaders, minimum_version, functions, false)
}

/// Links as [`link`] a program that dispatches from places that were prepared, or not.
fn link_dispatching(
    loaders: LoaderRegistry,
    minimum_version: u32,
    functions: &[(&str, &str)],
    from_site: bool,
) -> Result<Context> {
    let convention = |text| Arc::new(CallingConvention::parse(text).unwrap());
    let exports = functions.iter().map(|(name, text)| Export {
        name: (*name).into(),
        convention: convention(text),
        attributes: Arc::new([]),
    });
    let imports = functions.iter().map(|(name, text)| Import {
        full_name: format!("hal_loader.{name}").into(),
        convention: Some(convention(text)),
        optional: false,
    });
    let dependency = Dependency {
        name: "hal_loader".into(),
        minimum_version,
        optional: false,
    };
    let importer = Importer {
        dependencies: vec![dependency],
        exports: exports.collect(),
        imports: imports.collect(),
        from_site,
    };
    Context::builder()
        .module(vm_hal_loader::module(
            loaders,
            Arc::new(InlineDispatcher::new()),
        ))
        .module(Arc::new(importer))
        .build()
}

/// A program that was compiled for one version of the module.
pub(crate) struct Program {
    pub(crate) loader: Arc<KernelsLoader>,
    context: Context,
    version: u32,
}

/// The programs of both versions, that dispatch from anywhere and from a place of their own.
pub(crate) fn both() -> [Program; 4] {
    [(0, false), (1, false), (0, true), (1, true)]
        .map(|(version, from_site)| Program::new(version, from_site))
}

impl Program {
    pub(crate) fn new(version: u32, from_site: bool) -> Self {
        let loader = Arc::new(KernelsLoader::default());
        let loaders = LoaderRegistry::new().with(loader.clone());
        let functions = if version == 0 { IMPORTS_0 } else { IMPORTS_1 };
        let context = link_dispatching(loaders, version, functions, from_site).unwrap();
        Self {
            loader,
            context,
            version,
        }
    }

    /// Calls an imported function; `spans` gives the lengths of its spans.
    pub(crate) fn call(
        &self,
        function: &str,
        spans: &[usize],
        arguments: Vec<Value>,
    ) -> Result<Vec<Value>> {
        let function = self.context.lookup("program", function).unwrap();
        let mut block = ArgumentWriter::new();
        block
            .push_arguments(function.convention(), spans, arguments)
            .unwrap();
        let mut results = Results::new();
        self.context.call(
            &function,
            block.block(),
            &mut results,
            InvocationOptions::default(),
        )?;
        // Fails the test when the results are not those of the calling convention.
        Ok(results.take_values(function.convention()).unwrap())
    }

    pub(crate) fn load(&self, format: Value, data: Value, constants: Value) -> Result<Ref> {
        let results = self.call("executable.load", &[], vec![format, data, constants])?;
        match &results[..] {
            [Value::Ref(executable)] => Ok(executable.clone()),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn load_kernels(&self) -> Ref {
        self.load(constant("kernels"), constant("data"), NULL)
            .unwrap()
    }

    pub(crate) fn dispatch(&self, executable: &Ref, request: &Request) -> Result<()> {
        let function = if self.version == 0 {
            Value::I32(i32::try_from(request.function).unwrap())
        } else {
            Value::I64(request.function)
        };
        let mut arguments = vec![Value::Ref(executable.clone()), function];
        arguments.extend(request.workgroup_count.map(Value::I32));
        arguments.extend(request.constants.iter().copied().map(Value::I32));
        for (buffer, offset, length) in &request.bindings {
            arguments.extend([
                Value::Ref(buffer.clone()),
                Value::I64(*offset),
                Value::I64(*length),
            ]);
        }
        let spans = [request.constants.len(), request.bindings.len()];
        self.call("executable.dispatch", &spans, arguments)
            .map(|results| assert!(results.is_empty()))
    }
}

/// A dispatch as a program asks for it.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) function: i64,
    pub(crate) workgroup_count: [i32; 3],
    pub(crate) constants: Vec<i32>,
    pub(crate) bindings: Vec<(Ref, i64, i64)>,
}

impl Default for Request {
    /// Returns a dispatch of one workgroup of the function that takes anything.
    fn default() -> Self {
        Self {
            function: 0,
            workgroup_count: [1; 3],
            constants: vec![],
            bindings: vec![],
        }
    }
}

pub(crate) const NULL: Value = Value::Ref(Ref::Null);

/// Returns a constant of a program that holds `text`.
pub(crate) fn constant(text: &str) -> Value {
    Value::Ref(constant_buffer(text.as_bytes()).into())
}

pub(crate) fn constant_buffer(bytes: &[u8]) -> Arc<Buffer> {
    let owner = Arc::new(bytes.to_vec());
    Buffer::constant(owner, 0..bytes.len(), Access::CONSTANT).unwrap()
}

#[track_caller]
pub(crate) fn check_failure<T: std::fmt::Debug>(
    result: Result<T>,
    code: StatusCode,
    message: &str,
) {
    let trap = result.unwrap_err();
    assert_eq!((trap.code(), trap.message()), (code, message));
}
