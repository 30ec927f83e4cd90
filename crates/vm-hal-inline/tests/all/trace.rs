//! `buffer_view.trace` and its sink.

use std::sync::{Arc, Mutex};

use vm::{Access, Buffer, Ref, StatusCode, Value};
use vm_hal_inline::{BufferView, ElementType, EncodingType};

use crate::program::{Program, check_failure, constant};

fn view(shape: &[usize]) -> Value {
    let buffer = Buffer::copied_from(&[0; 64], Access::HOST).unwrap();
    let view = BufferView::new(
        buffer,
        ElementType::I8,
        EncodingType::DENSE_ROW_MAJOR,
        shape,
    );
    Value::Ref(view.unwrap().into())
}

#[test]
fn traced_views_reach_the_sink_with_their_key() {
    type Seen = Vec<(String, Vec<Vec<usize>>)>;
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let sink = {
        let seen = Arc::clone(&seen);
        move |key: &str, views: &[&BufferView]| {
            let shapes = views.iter().map(|view| view.shape().to_vec()).collect();
            seen.lock().unwrap().push((key.to_owned(), shapes));
        }
    };
    let program = Program::with(vm_hal_inline::module(Some(Arc::new(sink))));
    program
        .call_spans(
            "buffer_view.trace",
            &[2],
            vec![constant("both"), view(&[2, 3]), view(&[])],
        )
        .unwrap();
    program
        .call_spans("buffer_view.trace", &[0], vec![constant("none")])
        .unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            ("both".to_owned(), vec![vec![2, 3], vec![]]),
            ("none".to_owned(), vec![])
        ]
    );
}

#[test]
fn a_trace_without_a_sink_is_dropped_but_checked() {
    let program = Program::new();
    let trace = |arguments: Vec<Value>| {
        program.call_spans("buffer_view.trace", &[arguments.len() - 1], arguments)
    };
    assert!(trace(vec![constant("key"), view(&[1])]).unwrap().is_empty());
    check_failure(
        trace(vec![constant("key"), Value::Ref(Ref::Null)]),
        StatusCode::INVALID_ARGUMENT,
        "ref is null; expected hal.buffer_view",
    );
    check_failure(
        trace(vec![Value::Ref(Ref::Null)]),
        StatusCode::INVALID_ARGUMENT,
        "ref is null; expected vm.buffer",
    );
}
