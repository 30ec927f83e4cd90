//! Loading fixtures and calling their functions.

use std::path::PathBuf;
use std::sync::Arc;

use vm::{
    Context, Function, ImportTarget, InvocationOptions, Module, PreparedCall, Ref, Result,
    StatusCode, Value,
};
use vm_bytecode::BytecodeModule;

use crate::cases::Table;
use crate::host::Host;

/// Returns the path of a file of `tests/ops`.
pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/ops")
        .join(name)
}

/// Returns the bytes of a fixture.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = path(&format!("{name}.vmfb"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Loads a fixture.
pub(crate) fn load(name: &str) -> Arc<BytecodeModule> {
    BytecodeModule::load(Arc::new(fixture(name))).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Links modules in this order.
pub(crate) fn link(modules: &[Arc<dyn Module>]) -> Context {
    let builder = Context::builder();
    let builder = modules
        .iter()
        .fold(builder, |builder, module| builder.module(module.clone()));
    builder.build().unwrap()
}

/// A fixture that calls native functions, linked to them.
pub(crate) struct Hosted {
    pub(crate) host: Host,
    pub(crate) context: Context,
}

impl Hosted {
    /// Links the fixture `name` to a new host.
    pub(crate) fn new(name: &str) -> Self {
        let host = Host::default();
        let module = load(name);
        let callback = |function: &str| {
            let ordinal = module.lookup(function)?;
            Some(ImportTarget {
                instance: 1,
                ordinal,
            })
        };
        host.set_callbacks(
            ["descends", "recurses"]
                .into_iter()
                .filter_map(callback)
                .collect(),
        );
        let context = link(&[host.module(), module.clone()]);
        host.interrupt_through(context.interrupt_handle());
        Self { host, context }
    }
}

/// The modules of a table, loaded once and linked anew for each case.
pub(crate) struct TableModules {
    host: Host,
    modules: Vec<Arc<dyn Module>>,
    bytecode: Vec<Arc<BytecodeModule>>,
}

impl TableModules {
    /// Loads what the table of the fixture `name` needs.
    pub(crate) fn load(name: &str, table: &Table) -> Self {
        let mut loaded = Self {
            host: Host::default(),
            modules: Vec::new(),
            bytecode: Vec::new(),
        };
        for module in table.with.iter().map(String::as_str).chain([name]) {
            if module == Table::HOST {
                loaded.modules.push(loaded.host.module());
            } else {
                let module = load(module);
                loaded.bytecode.push(Arc::clone(&module));
                loaded.modules.push(module);
            }
        }
        loaded
    }

    /// Returns the bytecode modules.
    pub(crate) fn bytecode(&self) -> &[Arc<BytecodeModule>] {
        &self.bytecode
    }

    /// Links the modules.
    pub(crate) fn context(&self) -> Context {
        let context = link(&self.modules);
        let callback = |function: &str| {
            let ordinal = self.modules.last()?.lookup(function)?;
            Some(ImportTarget {
                instance: self.modules.len() - 1,
                ordinal,
            })
        };
        self.host.set_callbacks(
            ["descends", "recurses"]
                .into_iter()
                .filter_map(callback)
                .collect(),
        );
        context
    }
}

/// Calls a function of the newest module.
pub(crate) fn call(context: &Context, function: &str, arguments: &[Value]) -> Result<Vec<Value>> {
    call_with(context, function, arguments, InvocationOptions::default())
}

/// Calls as [`call`], with options.
pub(crate) fn call_with(
    context: &Context,
    function: &str,
    arguments: &[Value],
    options: InvocationOptions<'_>,
) -> Result<Vec<Value>> {
    let function = lookup(context, function);
    context.invoke_with(&function, arguments.iter().cloned(), options)
}

/// Calls as [`call`], with a call that was prepared for the function.
pub(crate) fn call_prepared(
    context: &Context,
    function: &str,
    arguments: Vec<Value>,
) -> Result<Vec<Value>> {
    let function = lookup(context, function);
    let mut call = PreparedCall::new(&function);
    for (index, argument) in arguments.into_iter().enumerate() {
        call.set(index, argument)?;
    }
    let results = context.call_prepared(&function, &mut call, InvocationOptions::default())?;
    Ok(results.collect())
}

/// Returns a function of the newest module.
pub(crate) fn lookup(context: &Context, function: &str) -> Function {
    let module = context.modules().last().unwrap();
    context.lookup(module.name(), function).unwrap()
}

/// Returns the results of a call as integers.
#[track_caller]
pub(crate) fn integers(results: Result<Vec<Value>>) -> Vec<i64> {
    let integer = |value: &Value| match value {
        Value::I32(value) => i64::from(*value),
        Value::I64(value) => *value,
        _ => panic!("{value:?} is no integer"),
    };
    results.unwrap().iter().map(integer).collect()
}

/// Returns the single ref that a call results in.
#[track_caller]
pub(crate) fn reference(results: Result<Vec<Value>>) -> Ref {
    match &results.unwrap()[..] {
        [Value::Ref(reference)] => reference.clone(),
        other => panic!("{other:?} is no ref"),
    }
}

/// Checks that a call failed with a code and returns the message.
#[track_caller]
pub(crate) fn failure(results: Result<Vec<Value>>, code: StatusCode) -> String {
    let trap = results.unwrap_err();
    assert_eq!(trap.code(), code, "{trap}");
    trap.message().to_owned()
}
