//! Tests of linking and calling, with native modules.

use std::sync::Mutex;

use super::*;
use crate::{Atom, Buffer, Dependency, NativeModule, NativeModuleError, Ref};

fn dependency(name: &str, minimum_version: u32, optional: bool) -> Dependency {
    Dependency {
        name: name.into(),
        minimum_version,
        optional,
    }
}

fn math() -> Arc<dyn Module> {
    NativeModule::builder("math", 3)
        .function("add", |_: &(), a: i32, b: i32| Ok((a.wrapping_add(b),)))
        .function("mixed", |_: &(), a: i32, b: i64, c: f32, d: f64| {
            Ok((d, c, b, a))
        })
        .function("length", |_: &(), buffer: Arc<Buffer>| {
            Ok((i64::try_from(buffer.length()).unwrap_or(i64::MAX),))
        })
        .function("nothing", |_: &()| Ok(()))
        .build()
        .unwrap()
}

fn context() -> Context {
    Context::builder().module(math()).build().unwrap()
}

#[test]
fn conventions_follow_from_rust_types() {
    let module = math();
    let conventions: Vec<&str> = module
        .exports()
        .iter()
        .map(|export| export.convention.text())
        .collect();
    assert_eq!(conventions, ["0ii_i", "0iIfF_FfIi", "0r_I", "0v_v"]);
}

#[test]
fn values_reach_a_function_and_come_back() {
    let context = context();
    let mixed = context.lookup("math", "mixed").unwrap();
    let results = context
        .invoke(
            &mixed,
            [
                Value::I32(-1),
                Value::I64(i64::MIN),
                Value::F32(0.5),
                Value::F64(-2.0),
            ],
        )
        .unwrap();
    assert!(matches!(
        results[..],
        [Value::F64(d), Value::F32(c), Value::I64(i64::MIN), Value::I32(-1)] if d == -2.0 && c == 0.5
    ));
}

#[test]
fn a_native_module_is_told_of_signals() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let module = NativeModule::builder_with_state("listener", 0, || 7)
        .on_signal(move |state: &i32, signal| log.lock().unwrap().push((*state, signal)))
        .build()
        .unwrap();
    let context = Context::builder()
        .module(math())
        .module(module)
        .build()
        .unwrap();
    context.notify(Signal::Suspend).unwrap();
    context.notify(Signal::LowMemory).unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        [(7, Signal::Suspend), (7, Signal::LowMemory)]
    );
}

#[test]
fn a_prepared_block_can_pass_spans() {
    let sum = NativeModule::builder("math", 0)
        .raw_function("sum", "0iCiD_i", |_: &(), call| {
            let mut arguments = call.arguments.reader();
            let mut sum = arguments.i32()?;
            for _ in 0..arguments.span(&[Atom::I32])? {
                sum += arguments.i32()?;
            }
            call.results.push_i32(sum);
            Ok(())
        })
        .build()
        .unwrap();
    let context = Context::builder().module(sum).build().unwrap();
    let function = context.lookup("math", "sum").unwrap();
    let (mut block, mut results) = (ArgumentWriter::new(), Results::new());
    block
        .push_arguments(function.convention(), &[2], [1, 20, 300].map(Value::I32))
        .unwrap();
    let options = InvocationOptions::default();
    context
        .call(&function, block.block(), &mut results, options)
        .unwrap();
    assert_eq!(results.words(), [321]);
    let empty = ArgumentWriter::new();
    assert!(
        context
            .call(&function, empty.block(), &mut results, options)
            .is_err()
    );
}

#[test]
fn wrong_arguments_are_named() {
    let context = context();
    let add = context.lookup("math", "add").unwrap();
    for arguments in [
        vec![],
        vec![Value::I32(1)],
        vec![Value::I32(1); 3],
        vec![Value::I32(1), Value::I64(1)],
    ] {
        let error = context.invoke(&add, arguments).unwrap_err();
        assert_eq!(error.code(), StatusCode::INVALID_ARGUMENT);
    }
    let length = context.lookup("math", "length").unwrap();
    let error = context
        .invoke(&length, [Value::Ref(Ref::Null)])
        .unwrap_err();
    assert!(error.message().contains("ref is null"), "{error}");
    assert_eq!(
        context.lookup("math", "sub").unwrap_err().code(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        context.lookup("maths", "add").unwrap_err().code(),
        StatusCode::NOT_FOUND
    );
}

#[test]
fn c12_a_dependency_that_is_missing_or_too_old_is_named_with_both_versions() {
    let user = |dependency: Dependency| {
        let module = NativeModule::builder("user", 0)
            .dependency(dependency)
            .build()
            .unwrap();
        Context::builder().module(math()).module(module).build()
    };
    let error = user(dependency("math", 4, false)).unwrap_err();
    assert!(
        error
            .message()
            .contains("have 3 but module 'user' requires 4"),
        "{error}"
    );
    assert_eq!(
        user(dependency("other", 0, false)).unwrap_err().code(),
        StatusCode::NOT_FOUND
    );
    assert!(user(dependency("math", 3, false)).is_ok());
    assert!(user(dependency("math", 4, true)).is_ok());
    assert!(user(dependency("other", 0, true)).is_ok());
}

/// A module that imports functions and calls the first of them.
#[derive(Debug)]
struct Importer {
    imports: Vec<Import>,
    exports: Vec<Export>,
    log: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug)]
struct ImporterInstance {
    imports: Vec<Option<ImportTarget>>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Importer {
    fn new(imports: &[(&str, Option<&str>, bool)]) -> Arc<Self> {
        let parse = |text: &str| Arc::new(CallingConvention::parse(text).unwrap());
        let imports = imports.iter().map(|&(name, convention, optional)| Import {
            full_name: name.into(),
            convention: convention.map(parse),
            optional,
        });
        let export = Export {
            name: "call".into(),
            convention: parse("0ii_i"),
            attributes: Arc::new([]),
        };
        Arc::new(Self {
            imports: imports.collect(),
            exports: vec![export],
            log: Arc::default(),
        })
    }
}

impl Module for Importer {
    fn name(&self) -> &str {
        "importer"
    }

    fn version(&self) -> u32 {
        0
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
            log: Arc::clone(&self.log),
        }))
    }
}

impl Instance for ImporterInstance {
    fn initialize(&self, _: &Invocation<'_>) -> Result<()> {
        self.log.lock().unwrap().push("init".into());
        Ok(())
    }

    fn deinitialize(&self, _: &Invocation<'_>) -> Result<()> {
        self.log.lock().unwrap().push("deinit".into());
        Err(Trap::invalid_argument("ignored"))
    }

    fn notify(&self, signal: Signal, _: &Invocation<'_>) -> Result<()> {
        self.log
            .lock()
            .unwrap()
            .push(format!("signal {}", signal.value()));
        Ok(())
    }

    fn call(&self, _: u32, call: &mut Call<'_, '_>) -> Result<()> {
        match self.imports[0] {
            Some(target) => call.invocation.call(target, call.arguments, call.results),
            None => Err(Trap::new(StatusCode::NOT_FOUND, "import is not bound")),
        }
    }
}

fn link(imports: &[(&str, Option<&str>, bool)]) -> Result<Context> {
    Context::builder()
        .module(math())
        .module(Importer::new(imports))
        .build()
}

#[test]
fn an_import_is_bound_and_called() {
    let context = link(&[("math.add", Some("0ii_i"), false)]).unwrap();
    let call = context.lookup("importer", "call").unwrap();
    let results = context
        .invoke(&call, [Value::I32(2), Value::I32(3)])
        .unwrap();
    assert!(matches!(results[..], [Value::I32(5)]));
}

#[test]
fn c11_a_signature_mismatch_tells_both_conventions() {
    let error = link(&[("math.add", Some("0iI_i"), false)]).unwrap_err();
    assert_eq!(error.code(), StatusCode::INTERNAL);
    assert!(
        error.message().contains("expected 0iI_i but got 0ii_i"),
        "{error}"
    );
}

#[test]
fn a_missing_import_is_an_error_unless_it_is_optional() {
    let error = link(&[("math.sub", None, false)]).unwrap_err();
    assert_eq!(error.code(), StatusCode::NOT_FOUND);
    assert!(error.message().contains("`math.sub`"), "{error}");
    assert!(link(&[("math.sub", None, true)]).is_ok());
    assert!(link(&[("nowhere", None, true)]).is_ok());
}

#[test]
fn the_newest_module_of_a_name_is_bound() {
    let newer = NativeModule::builder("math", 4)
        .function("add", |_: &(), _: i32, _: i32| Ok((9,)))
        .build()
        .unwrap();
    let importer = Importer::new(&[("math.add", None, false)]);
    let context = Context::builder()
        .module(math())
        .module(newer)
        .module(importer)
        .build()
        .unwrap();
    let call = context.lookup("importer", "call").unwrap();
    assert!(matches!(
        context
            .invoke(&call, [Value::I32(2), Value::I32(3)])
            .unwrap()[..],
        [Value::I32(9)]
    ));
}

#[test]
fn functions_of_one_name_are_told_apart_by_their_conventions() {
    let module = NativeModule::builder("two", 1)
        .function("f", |_: &(), _: i32| Ok((32,)))
        .function("f", |_: &(), _: i64| Ok((64,)))
        .build()
        .unwrap();
    for (convention, expected) in [("0i_i", 0), ("0I_i", 1)] {
        let importer = Importer::new(&[("two.f", Some(convention), false)]);
        let modules: [Arc<dyn Module>; 1] = [Arc::clone(&module) as _];
        let target = bind(&*importer, &importer.imports[0], &modules)
            .unwrap()
            .unwrap();
        assert_eq!(target.ordinal, expected);
    }
}

#[test]
fn a_function_registered_twice_is_refused() {
    let error = NativeModule::builder("twice", 0)
        .function("f", |_: &(), _: i32| Ok(()))
        .function("f", |_: &(), _: i32| Ok(()))
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("twice.f"), "{error}");
    let error = NativeModule::builder("bad", 0)
        .raw_function("f", "0x", |_, _| Ok(()))
        .build()
        .unwrap_err();
    assert!(matches!(error, NativeModuleError::Convention { .. }));
}

#[test]
fn modules_are_told_of_signals_and_finalized() {
    let importer = Importer::new(&[("math.add", None, false)]);
    let log = Arc::clone(&importer.log);
    let context = Context::builder()
        .module(math())
        .module(importer)
        .build()
        .unwrap();
    context.notify(Signal::LowMemory).unwrap();
    drop(context);
    assert_eq!(*log.lock().unwrap(), ["init", "signal 2", "deinit"]);
}

#[test]
fn a_context_moves_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let context = context();
    is_send(&context);
    let add = context.lookup("math", "add").unwrap();
    let results = std::thread::spawn(move || {
        context
            .invoke(&add, [Value::I32(1), Value::I32(1)])
            .unwrap()
    });
    assert!(matches!(results.join().unwrap()[..], [Value::I32(2)]));
}

#[test]
fn a_result_that_does_not_fit_its_convention_is_an_internal_error() {
    let module = NativeModule::builder("wrong", 0)
        .raw_function("f", "0v_i", |_, _| Ok(()))
        .build()
        .unwrap();
    let context = Context::builder().module(module).build().unwrap();
    let function = context.lookup("wrong", "f").unwrap();
    assert_eq!(function.convention().results(), [Atom::I32]);
    assert_eq!(
        context.invoke(&function, []).unwrap_err().code(),
        StatusCode::INTERNAL
    );
}

#[test]
fn state_belongs_to_one_context() {
    let module = NativeModule::builder_with_state("count", 0, || Cell::new(0))
        .function("next", |state: &Cell<i32>| {
            state.set(state.get() + 1);
            Ok((state.get(),))
        })
        .build()
        .unwrap();
    for _ in 0..2 {
        let context = Context::builder()
            .module(Arc::clone(&module) as _)
            .build()
            .unwrap();
        let next = context.lookup("count", "next").unwrap();
        context.invoke(&next, []).unwrap();
        assert!(matches!(
            context.invoke(&next, []).unwrap()[..],
            [Value::I32(2)]
        ));
    }
}

#[test]
fn one_handle_stops_the_contexts_it_was_given_to() {
    let handle = InterruptHandle::default();
    let contexts = [(); 2].map(|()| {
        Context::builder()
            .interrupt_handle(handle.clone())
            .build()
            .unwrap()
    });
    handle.interrupt();
    for context in &contexts {
        let invocation = context.invocation(InvocationOptions::default());
        assert_eq!(
            invocation.check_interrupt().unwrap_err().code(),
            StatusCode::CANCELLED
        );
    }
    handle.reset();
    assert!(
        contexts[1]
            .invocation(InvocationOptions::default())
            .check_interrupt()
            .is_ok()
    );
}
