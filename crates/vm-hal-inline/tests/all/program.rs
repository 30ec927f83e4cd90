//! A stand-in for a program: calls functions of a context that links the module.

use vm::{
    Access, ArgumentWriter, Buffer, Call, CallShape, Context, ImportTarget, InvocationOptions,
    NativeModule, Ref, Result, Results, Signal, StatusCode, Trap, Value,
};

pub(crate) struct Program(Context);

impl Program {
    pub(crate) fn new() -> Self {
        Self::with(vm_hal_inline::module(None))
    }

    pub(crate) fn with(module: std::sync::Arc<dyn vm::Module>) -> Self {
        let target = ImportTarget {
            instance: 0,
            ordinal: module.lookup("buffer_view.assert").unwrap(),
        };
        // What a bytecode program does at a place that calls the function again and again.
        let from_site = move |_: &(), call: &mut Call<'_, '_>| {
            let words = call.arguments.words();
            let all = vec![true; words.len()];
            let varying = CallShape::new(words, &all);
            assert!(call.invocation.call_site(target, varying)?.is_none());
            match call
                .invocation
                .call_site(target, CallShape::new(words, &[]))?
            {
                Some(mut site) => {
                    (0..2).try_for_each(|_| site.call(call.arguments, call.invocation))
                }
                None => call.invocation.call(target, call.arguments, call.results),
            }
        };
        let sites = NativeModule::builder("hal_inline", 0)
            .raw_function("buffer_view.assert_from_site", "0rriiCID_v", from_site)
            .build()
            .unwrap();
        let context = Context::builder().module(module).module(sites).build();
        Self(context.unwrap())
    }

    pub(crate) fn notify(&self, signal: Signal) {
        self.0.notify(signal).unwrap();
    }

    /// Calls a function; `spans` gives the lengths of its spans.
    pub(crate) fn call_spans(
        &self,
        function: &str,
        spans: &[usize],
        arguments: Vec<Value>,
    ) -> Result<Vec<Value>> {
        let function = self.0.lookup("hal_inline", function).unwrap();
        let mut block = ArgumentWriter::new();
        block
            .push_arguments(function.convention(), spans, arguments)
            .unwrap();
        let mut results = Results::new();
        self.0.call(
            &function,
            block.block(),
            &mut results,
            InvocationOptions::default(),
        )?;
        // Fails the test when the results are not those of the calling convention.
        Ok(results.take_values(function.convention()).unwrap())
    }

    pub(crate) fn call<const N: usize>(
        &self,
        function: &str,
        arguments: [Value; N],
    ) -> Result<Vec<Value>> {
        self.call_spans(function, &[], arguments.into())
    }

    /// Calls a function with one ref as its result.
    pub(crate) fn call_ref<const N: usize>(
        &self,
        function: &str,
        arguments: [Value; N],
    ) -> Result<Ref> {
        self.call(function, arguments).map(only_ref)
    }

    /// Allocates a buffer; returns it and its storage.
    pub(crate) fn allocate(&self, length: i64) -> (Ref, Ref) {
        let results = self
            .call("buffer.allocate", [Value::I32(64), Value::I64(length)])
            .unwrap();
        match &results[..] {
            [Value::Ref(buffer), Value::Ref(storage)] => (buffer.clone(), storage.clone()),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn only_ref(results: Vec<Value>) -> Ref {
    match &results[..] {
        [Value::Ref(reference)] => reference.clone(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn only_i64(results: &[Value]) -> i64 {
    match results {
        [Value::I64(value)] => *value,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn only_i32(results: &[Value]) -> i32 {
    match results {
        [Value::I32(value)] => *value,
        other => panic!("{other:?}"),
    }
}

/// Returns a constant of a program that holds `text`.
pub(crate) fn constant(text: &str) -> Value {
    let owner = std::sync::Arc::new(text.as_bytes().to_vec());
    let buffer = Buffer::constant(owner, 0..text.len(), Access::CONSTANT).unwrap();
    Value::Ref(buffer.into())
}

pub(crate) fn value(reference: &Ref) -> Value {
    Value::Ref(reference.clone())
}

#[track_caller]
pub(crate) fn check_failure<T: std::fmt::Debug>(
    result: Result<T>,
    code: StatusCode,
    message: &str,
) {
    let trap: Trap = result.unwrap_err();
    assert_eq!((trap.code(), trap.message()), (code, message));
}
