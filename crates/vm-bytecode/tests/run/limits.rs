//! What stops a program that does not stop by itself: fuel, interrupts, the depth of its stack and of calls through
//! native functions.

use std::cell::Cell;

use vm::{Context, InvocationOptions, MAX_CALL_DEPTH, StatusCode, Tracer, Value};

use crate::host::Host;
use crate::setup::{Hosted, call, call_with, failure, integers, link, load, lookup};

fn fuel(fuel: u64) -> InvocationOptions<'static> {
    InvocationOptions {
        fuel: Some(fuel),
        tracer: None,
    }
}

#[test]
fn fuel_counts_instructions_as_they_are_written() {
    let context = link(&[load("control")]);
    let sum = |limit: i32, options| call_with(&context, "sum_to", &[Value::I32(limit)], options);
    // Four before the loop; compare, branch, two additions and a jump each time around; then compare, branch, return.
    for limit in [0, 1, 7] {
        let needed = 4 + 5 * u64::try_from(limit).unwrap() + 3;
        assert!(sum(limit, fuel(needed)).is_ok());
        failure(sum(limit, fuel(needed - 1)), StatusCode::DEADLINE_EXCEEDED);
    }
    failure(sum(0, fuel(0)), StatusCode::DEADLINE_EXCEEDED);
}

#[test]
fn a_loop_without_end_uses_up_its_fuel() {
    let context = link(&[load("control")]);
    // The counter goes from -1 all the way round.
    let looped = call_with(&context, "table_loop", &[Value::I32(-1)], fuel(10_000));
    failure(looped, StatusCode::DEADLINE_EXCEEDED);
}

#[test]
fn waiting_for_an_import_uses_up_fuel() {
    let hosted = Hosted::new("imports");
    let wait = |times| {
        let times = [Value::I32(times)];
        call_with(&hosted.context, "deferred", &times, fuel(100))
    };
    assert_eq!(integers(wait(50)), [50]);
    failure(wait(i32::MAX), StatusCode::DEADLINE_EXCEEDED);
}

#[test]
fn modules_share_the_fuel_of_an_invocation() {
    let context = link(&[load("library"), load("user")]);
    // `user.counts` is three calls and a return; `library.count` is five instructions.
    let counts = |fuel_left| call_with(&context, "counts", &[], fuel(fuel_left));
    assert_eq!(integers(counts(4 + 3 * 5)), [1, 2, 3]);
    let trap = counts(4 + 3 * 5 - 2).unwrap_err();
    assert_eq!(trap.code(), StatusCode::DEADLINE_EXCEEDED);
    let frames: Vec<&str> = trap.frames().iter().map(|frame| &*frame.module).collect();
    assert_eq!(frames, ["library", "user"]);
}

#[test]
fn fuel_is_given_anew_to_each_invocation() {
    let context = link(&[load("library")]);
    for expected in 1..4 {
        assert_eq!(
            integers(call_with(&context, "count", &[], fuel(5))),
            [expected]
        );
    }
}

#[test]
fn initializers_and_finalizers_have_fuel_of_their_own() {
    let host = Host::default();
    let build = |instructions| {
        let builder = Context::builder().lifecycle_fuel(instructions);
        builder
            .module(host.module())
            .module(load("lifecycle"))
            .build()
    };
    let trap = build(1).unwrap_err();
    assert_eq!(trap.code(), StatusCode::DEADLINE_EXCEEDED);
    host.take_notes();
    let needed = (2..100).find(|&fuel| build(fuel).is_ok()).unwrap();
    host.take_notes();
    // Enough for both: each has all of it.
    drop(build(needed).unwrap());
    let told = host.take_notes();
    let unlimited = Context::builder()
        .module(host.module())
        .module(load("lifecycle"));
    drop(unlimited.build().unwrap());
    assert_eq!(told, host.take_notes());
}

#[test]
fn an_interrupt_stops_every_kind_of_loop() {
    let loops: [(&str, &[Value]); 5] = [
        ("loops", &[]),
        ("loops_empty", &[]),
        ("loops_comparing", &[Value::I32(3), Value::I32(3)]),
        ("loops_on_a_table", &[Value::I32(0)]),
        ("recurses_forever", &[]),
    ];
    for (function, arguments) in loops {
        let hosted = Hosted::new("imports");
        // Fused and counted code have loops of their own.
        for options in [InvocationOptions::default(), fuel(u64::MAX)] {
            let stopped = call_with(&hosted.context, function, arguments, options);
            failure(stopped, StatusCode::CANCELLED);
            hosted.context.interrupt_handle().reset();
        }
    }
    let hosted = Hosted::new("imports");
    let copying = call(&hosted.context, "loops_on_a_table", &[Value::I32(1)]);
    failure(copying, StatusCode::CANCELLED);
}

#[test]
fn an_interrupt_stops_waiting_for_an_import() {
    let hosted = Hosted::new("imports");
    let waiting = call(&hosted.context, "deferred", &[Value::I32(-1)]);
    failure(waiting, StatusCode::CANCELLED);
}

#[test]
fn an_interrupt_from_another_thread_stops_the_next_call_and_can_be_taken_back() {
    let context = link(&[load("library")]);
    let handle = context.interrupt_handle();
    std::thread::scope(|scope| {
        scope.spawn(|| handle.interrupt());
    });
    failure(call(&context, "count", &[]), StatusCode::CANCELLED);
    handle.reset();
    assert_eq!(integers(call(&context, "count", &[])), [1]);
}

/// Interrupts from inside the program, as another thread would at that moment.
struct InterruptAt<'a> {
    left: Cell<u32>,
    handle: &'a vm::InterruptHandle,
}

impl Tracer for InterruptAt<'_> {
    fn instruction(&self, _module: &str, _ordinal: u32, _offset: u32) {
        self.left.set(self.left.get().saturating_sub(1));
        if self.left.get() == 0 {
            self.handle.interrupt();
        }
    }
}

#[test]
fn a_loop_stops_at_its_next_way_back() {
    let context = link(&[load("control")]);
    let handle = context.interrupt_handle();
    let tracer = InterruptAt {
        left: Cell::new(1000),
        handle: &handle,
    };
    let options = InvocationOptions {
        fuel: None,
        tracer: Some(&tracer),
    };
    let stopped = call_with(&context, "sum_to", &[Value::I32(i32::MAX)], options);
    failure(stopped, StatusCode::CANCELLED);
}

#[test]
fn recursion_inside_a_module_ends_at_the_limit_of_the_stack() {
    let hosted = Hosted::new("imports");
    let recurse = |depth| call(&hosted.context, "recurses", &[Value::I32(depth)]);
    // A frame of three registers counts 144 bytes of 2^20.
    assert_eq!(integers(recurse(7280)), [7280]);
    let message = failure(recurse(7281), StatusCode::RESOURCE_EXHAUSTED);
    assert!(message.contains("7281 frames"), "{message}");
    // The stack is whole afterwards.
    assert_eq!(integers(recurse(5)), [5]);
}

#[test]
fn calls_through_native_functions_nest_up_to_a_limit() {
    let hosted = Hosted::new("imports");
    let descend = |depth| call(&hosted.context, "descends", &[Value::I32(depth)]);
    // Each level is a call of the module and one of the host; the last level calls no more.
    let deepest = i32::try_from((MAX_CALL_DEPTH - 1) / 2).unwrap();
    assert_eq!(integers(descend(deepest)), [i64::from(deepest) * 1000]);
    failure(descend(deepest + 1), StatusCode::RESOURCE_EXHAUSTED);
    assert_eq!(integers(descend(3)), [3000]);
}

#[test]
fn limits_are_no_part_of_a_function() {
    let context = link(&[load("control")]);
    let function = lookup(&context, "sum_to");
    failure(
        context.invoke_with(&function, [Value::I32(100)], fuel(10)),
        StatusCode::DEADLINE_EXCEEDED,
    );
    assert_eq!(
        integers(context.invoke(&function, [Value::I32(100)])),
        [5050]
    );
}
