//! Calls of imports that take a shorter way: what a pure import gave is remembered, a function from a ref to a ref gets its
//! argument without a block, and a function may prepare something for each place that calls it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};

use vm::{
    ArgumentBlock, Atom, Buffer, Call, CallShape, CallSite, Context, ImportTarget, Invocation,
    InvocationOptions, Module, NativeModule, Object, Ref, Result, Results, StatusCode, Trap, Value,
};

use crate::host::TOKEN_TYPE;
use crate::setup::{call, call_with, failure, integers, link, load, reference};

/// An object with a number.
#[derive(Debug)]
struct Numbered(u32);

impl Object for Numbered {
    fn ref_type(&self) -> &'static vm::RefType {
        &TOKEN_TYPE
    }
}

/// The calls of [`number`].
type Calls = Arc<AtomicU32>;

/// Returns 100 times the number of the object and the length of the name.
fn number(calls: &Calls, call: &mut Call<'_, '_>) -> Result<()> {
    calls.fetch_add(1, Ordering::Relaxed);
    let mut arguments = call.arguments.reader();
    let object: &Numbered = arguments.reference()?.as_object(&TOKEN_TYPE)?;
    let length = arguments.buffer()?.length();
    if object.0 == 0 {
        return Err(Trap::new(StatusCode::NOT_FOUND, "object 0 has no number"));
    }
    call.results
        .push_i64(i64::from(object.0) * 100 + i64::try_from(length).unwrap());
    Ok(())
}

fn pass(_: &Calls, argument: Ref) -> Result<Ref> {
    match argument {
        Ref::Null => Err(Trap::invalid_argument("null cannot pass")),
        argument => Ok(argument),
    }
}

/// Links the program to its imports.
fn linked() -> (Calls, Context) {
    let calls = Calls::default();
    let state = Arc::clone(&calls);
    let store: Arc<dyn Module> =
        NativeModule::builder_with_state("store", 0, move || Arc::clone(&state))
            .ref_type(&TOKEN_TYPE)
            .pure_function("pure", "0rr_I", number)
            .raw_function("impure", "0rr_I", number)
            .ref_function("pass", pass)
            .function("pass_by_block", |_: &Calls, value: Ref| Ok((value,)))
            .function("two", |_: &Calls, value: Ref| {
                Ok((Buffer::allocate(2, 0)?, value))
            })
            .ref_function("defer", |_, _| {
                Err(Trap::new(StatusCode::DEFERRED, "not yet"))
            })
            .raw_function("note", "0rICiD_v", |_, _| Ok(()))
            .raw_function("count", "0CiD_v", |_, _| Ok(()))
            .build()
            .unwrap();
    (calls, link(&[store, load("asking")]))
}

fn object(number: u32) -> Value {
    Value::Ref(Ref::object(Arc::new(Numbered(number))))
}

#[test]
fn a_pure_import_is_asked_once_for_an_object() {
    let (calls, context) = linked();
    let (first, second) = (object(1), object(2));
    for _ in 0..3 {
        let number = call(&context, "pure", std::slice::from_ref(&first));
        assert_eq!(integers(number), [103]);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    // Another object, another place, and the first object again.
    let number = call(&context, "pure", std::slice::from_ref(&second));
    assert_eq!(integers(number), [203]);
    let number = call(&context, "pure_elsewhere", std::slice::from_ref(&second));
    assert_eq!(integers(number), [202]);
    assert_eq!(integers(call(&context, "pure", &[first])), [103]);
    assert_eq!(calls.load(Ordering::Relaxed), 4);
}

#[test]
fn contexts_do_not_share_what_they_remember() {
    let ((first_calls, first), (second_calls, second)) = (linked(), linked());
    let object = [object(1)];
    for context in [&first, &second] {
        assert_eq!(integers(call(context, "pure", &object)), [103]);
    }
    let counts = [first_calls, second_calls].map(|calls| calls.load(Ordering::Relaxed));
    assert_eq!(counts, [1, 1]);
}

#[test]
fn an_object_at_the_address_of_one_that_is_gone_is_another() {
    let (calls, context) = linked();
    // Each object is gone before the next is made, which an allocator likes to put in its place.
    for number in 1..100 {
        let given = call(&context, "pure", &[object(number)]);
        assert_eq!(integers(given), [i64::from(number) * 100 + 3]);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 99);
}

#[test]
fn what_is_remembered_keeps_no_object_alive() {
    let (_, context) = linked();
    let object = Arc::new(Numbered(7));
    let weak: Weak<Numbered> = Arc::downgrade(&object);
    let argument = Value::Ref(Ref::object(object));
    assert_eq!(integers(call(&context, "pure", &[argument])), [703]);
    assert!(weak.upgrade().is_none());
}

#[test]
fn an_import_that_is_not_pure_is_asked_every_time() {
    let (calls, context) = linked();
    let object = [object(1)];
    for _ in 0..3 {
        assert_eq!(integers(call(&context, "impure", &object)), [103]);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn a_pure_import_is_asked_every_time_when_more_than_an_object_varies() {
    let (calls, context) = linked();
    let object = object(1);
    for length in [5, 6, 6] {
        let name = Value::Ref(Buffer::allocate(length, 0).unwrap().into());
        let number = call(&context, "pure_of_two", &[object.clone(), name]);
        assert_eq!(integers(number), [100 + i64::try_from(length).unwrap()]);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn a_failure_of_a_pure_import_is_not_remembered() {
    let (calls, context) = linked();
    let object = [object(0)];
    for _ in 0..2 {
        let message = failure(call(&context, "pure", &object), StatusCode::NOT_FOUND);
        assert_eq!(message, "object 0 has no number");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    let null = [Value::Ref(Ref::Null)];
    failure(call(&context, "pure", &null), StatusCode::INVALID_ARGUMENT);
}

#[test]
fn a_ref_passes_moved_kept_and_by_block() {
    let (_, context) = linked();
    let buffer = Buffer::allocate(8, 0).unwrap();
    let value = Ref::from(Arc::clone(&buffer));
    let argument = [Value::Ref(value.clone())];
    for function in ["pass_moved", "pass_by_block"] {
        let passed = reference(call(&context, function, &argument));
        assert!(passed.same(&value), "{function}");
    }
    match &call(&context, "pass_kept", &argument).unwrap()[..] {
        [Value::Ref(kept), Value::Ref(passed)] => {
            assert!(kept.same(&value) && passed.same(&value));
        }
        other => panic!("{other:?}"),
    }
    let constant = reference(call(&context, "pass_constant", &[]));
    assert_eq!(constant.as_buffer().unwrap().to_vec(), b"abc");
    drop((argument, value));
    assert_eq!(Arc::strong_count(&buffer), 1);
}

#[test]
fn results_go_to_their_registers_in_order_whatever_those_held() {
    let (_, context) = linked();
    let buffer = Buffer::allocate(8, 0).unwrap();
    let value = Ref::from(Arc::clone(&buffer));
    let argument = [Value::Ref(value.clone())];
    let last = reference(call(&context, "two_in_one", &argument));
    assert!(last.same(&value));
    match &call(&context, "two_over_others", &argument).unwrap()[..] {
        [Value::Ref(new), Value::Ref(passed)] => {
            assert_eq!(new.as_buffer().unwrap().length(), 2);
            assert!(passed.same(&value));
        }
        other => panic!("{other:?}"),
    }
    drop((argument, value, last));
    assert_eq!(Arc::strong_count(&buffer), 1);
}

#[test]
fn counted_instructions_ask_and_pass_the_same() {
    let (calls, context) = linked();
    let options = || InvocationOptions {
        fuel: Some(10),
        tracer: None,
    };
    let object = [object(1)];
    for _ in 0..2 {
        let number = call_with(&context, "pure", &object, options());
        assert_eq!(integers(number), [103]);
    }
    assert_eq!(integers(call(&context, "pure", &object)), [103]);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let value = Ref::from(Buffer::allocate(8, 0).unwrap());
    let argument = [Value::Ref(value.clone())];
    for function in ["pass_moved", "pass_by_block", "two_in_one"] {
        let passed = reference(call_with(&context, function, &argument, options()));
        assert!(passed.same(&value), "{function}");
    }
}

#[test]
fn what_a_function_from_a_ref_to_a_ref_fails_with_is_told() {
    let (_, context) = linked();
    let null = [Value::Ref(Ref::Null)];
    let passed = call(&context, "pass_moved", &null);
    assert_eq!(
        failure(passed, StatusCode::INVALID_ARGUMENT),
        "null cannot pass"
    );
    let deferred = failure(call(&context, "defer", &null), StatusCode::INTERNAL);
    assert!(deferred.ends_with("yielded: not yet"), "{deferred}");
}

/// What was noted: in which way, of which length of a buffer, number and span.
type Notes = Arc<Mutex<Vec<(&'static str, usize, i64, Vec<u32>)>>>;

/// A number that is refused, and one that is noted once more from within.
const REFUSED: i64 = -1;
const NESTED: i64 = 100;

fn note(
    notes: &Notes,
    way: &'static str,
    arguments: &ArgumentBlock<'_>,
    invocation: &Invocation<'_>,
) -> Result<()> {
    let mut reader = arguments.reader();
    let buffer = reader.buffer()?;
    let number = reader.i64()?;
    let count = reader.span(&[Atom::I32])?;
    let span = reader.words(count)?.to_vec();
    reader.finish()?;
    if number == REFUSED {
        return Err(Trap::invalid_argument("the number is refused"));
    }
    let entry = (way, buffer.length(), number, span);
    notes.lock().unwrap().push(entry);
    if number == NESTED {
        let again = ArgumentBlock::new(&[0, 0, 0, 0, 5, 0, 6], arguments.refs());
        let ordinal = load("asking").lookup("note").unwrap();
        let target = ImportTarget {
            instance: 1,
            ordinal,
        };
        invocation.call(target, again, &mut Results::new())?;
    }
    Ok(())
}

#[derive(Debug)]
struct NoteSite(Notes);

impl CallSite for NoteSite {
    fn call(&mut self, arguments: ArgumentBlock<'_>, invocation: &Invocation<'_>) -> Result<()> {
        note(&self.0, "site", &arguments, invocation)
    }
}

/// The shapes that sites were made for: the length of a block, and which words vary.
type Shapes = Arc<Mutex<Vec<(usize, Vec<usize>)>>>;

/// Links the program to imports that note.
fn noting(prepares: bool) -> (Notes, Shapes, Context) {
    noting_in(prepares, load("asking"))
}

/// Links `program`, a form of the program.
fn noting_in(prepares: bool, program: Arc<dyn Module>) -> (Notes, Shapes, Context) {
    let (notes, shapes) = (Notes::default(), Shapes::default());
    let (state, seen) = (Arc::clone(&notes), Arc::clone(&shapes));
    let site = move |notes: &Notes, shape: CallShape<'_>| {
        let length = shape.words().len();
        let varying = (0..length + 2).filter(|at| shape.varies(*at)).collect();
        seen.lock().unwrap().push((length, varying));
        prepares.then(|| Box::new(NoteSite(Arc::clone(notes))) as Box<dyn CallSite>)
    };
    let by_block = |notes: &Notes, call: &mut Call<'_, '_>| {
        note(notes, "block", &call.arguments, call.invocation)
    };
    let unused = |_: &Notes, _: &mut Call<'_, '_>| Ok(());
    let store: Arc<dyn Module> =
        NativeModule::builder_with_state("store", 0, move || Arc::clone(&state))
            .ref_type(&TOKEN_TYPE)
            .function_with_sites("note", "0rICiD_v", by_block, site)
            .raw_function("count", "0CiD_v", |notes: &Notes, call| {
                let mut reader = call.arguments.reader();
                let count = reader.span(&[Atom::I32])?;
                let span = reader.words(count)?.to_vec();
                notes.lock().unwrap().push(("block", 0, 0, span));
                Ok(())
            })
            .raw_function("pure", "0rr_I", unused)
            .raw_function("impure", "0rr_I", unused)
            .raw_function("pass", "0r_r", unused)
            .raw_function("pass_by_block", "0r_r", unused)
            .raw_function("defer", "0r_r", unused)
            .raw_function("two", "0r_rr", unused)
            .build()
            .unwrap();
    (notes, shapes, link(&[store, program]))
}

fn noted(number: i64, last: i32) -> (Arc<Buffer>, [Value; 3]) {
    let buffer = Buffer::allocate(9, 0).unwrap();
    let argument = Value::Ref(Arc::clone(&buffer).into());
    (buffer, [argument, Value::I64(number), Value::I32(last)])
}

#[test]
fn what_varies_reaches_a_prepared_place_each_time() {
    for (prepares, way) in [(true, "site"), (false, "block")] {
        let (notes, shapes, context) = noting(prepares);
        for turn in 0..3 {
            let (buffer, arguments) = noted(i64::from(turn) << 32 | 1, turn);
            call(&context, "note", &arguments).unwrap();
            drop(arguments);
            assert_eq!(Arc::strong_count(&buffer), 1, "the ref was moved");
        }
        let expected = [0, 1, 2].map(|turn| (way, 9, i64::from(turn) << 32 | 1, vec![7, turn]));
        assert_eq!(*notes.lock().unwrap(), expected);
        // A ref of four words, the number, a count and two words, of which one is a constant.
        assert_eq!(*shapes.lock().unwrap(), [(9, vec![4, 5, 8])]);
    }
}

#[test]
fn each_place_is_prepared_on_its_own() {
    let (notes, shapes, context) = noting(true);
    let (buffer, arguments) = noted(3, 4);
    for _ in 0..2 {
        call(&context, "note_twice", &arguments).unwrap();
    }
    drop(arguments);
    assert_eq!(Arc::strong_count(&buffer), 1);
    let both = [("site", 9, 3, vec![4]), ("site", 9, 3, vec![])];
    assert_eq!(*notes.lock().unwrap(), [both.clone(), both].concat());
    assert_eq!(
        *shapes.lock().unwrap(),
        [(8, vec![4, 5, 7]), (7, vec![4, 5])]
    );
}

#[test]
fn a_prepared_place_fails_and_goes_on() {
    let (notes, _, context) = noting(true);
    for number in [REFUSED, 1, REFUSED, 2] {
        let (buffer, arguments) = noted(number, 0);
        let outcome = call(&context, "note", &arguments);
        drop(arguments);
        assert_eq!(Arc::strong_count(&buffer), 1);
        if number == REFUSED {
            let message = failure(outcome, StatusCode::INVALID_ARGUMENT);
            assert_eq!(message, "the number is refused");
        } else {
            outcome.unwrap();
        }
    }
    let numbers: Vec<_> = notes.lock().unwrap().iter().map(|note| note.2).collect();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn a_prepared_place_may_be_entered_again() {
    let (notes, _, context) = noting(true);
    for _ in 0..2 {
        let (_, arguments) = noted(NESTED, 1);
        call(&context, "note", &arguments).unwrap();
    }
    let both = [("site", 9, NESTED, vec![7, 1]), ("site", 9, 5, vec![7, 6])];
    assert_eq!(*notes.lock().unwrap(), [both.clone(), both].concat());
}

#[test]
fn counted_instructions_use_prepared_places_too() {
    let (notes, shapes, context) = noting(true);
    let (_, arguments) = noted(1, 2);
    let options = InvocationOptions {
        fuel: Some(10),
        tracer: None,
    };
    call_with(&context, "note", &arguments, options).unwrap();
    call(&context, "note", &arguments).unwrap();
    call_with(&context, "note", &arguments, options).unwrap();
    let one = ("site", 9, 1, vec![7, 2]);
    assert_eq!(*notes.lock().unwrap(), [one.clone(), one.clone(), one]);
    assert_eq!(shapes.lock().unwrap().len(), 1);
}

#[test]
fn an_import_that_prepares_nothing_is_called_by_its_block() {
    let (notes, _, context) = noting(true);
    for number in [4, 5] {
        call(&context, "count", &[Value::I32(number)]).unwrap();
    }
    let expected = [4, 5].map(|number| ("block", 0, 0, vec![number; 3]));
    assert_eq!(*notes.lock().unwrap(), expected);
}

#[test]
fn constants_and_repeated_registers_reach_a_prepared_place() {
    let (notes, shapes, context) = noting(true);
    for number in [3, 4] {
        let arguments = [Value::I64(number), Value::I32(8)];
        call(&context, "note_constant", &arguments).unwrap();
    }
    let expected = [3, 4].map(|number| ("site", 3, number, vec![8, 8]));
    assert_eq!(*notes.lock().unwrap(), expected);
    assert_eq!(*shapes.lock().unwrap(), [(9, vec![4, 5, 7, 8])]);
}

#[test]
fn an_import_that_is_not_there_fails_at_its_place_each_time() {
    let (_, _, context) = noting(true);
    for _ in 0..2 {
        let outcome = call(&context, "note_nowhere", &[Value::I32(1)]);
        let message = failure(outcome, StatusCode::NOT_FOUND);
        assert!(message.contains("store.nowhere"), "{message}");
    }
}

fn check_sums(program: Arc<dyn Module>) {
    let (notes, _, context) = noting_in(true, program);
    for turns in [1, 7, 300] {
        let buffer = Value::Ref(Buffer::allocate(9, 0).unwrap().into());
        call(&context, "note_sum", &[buffer, Value::I32(turns)]).unwrap();
        let last = notes.lock().unwrap().pop().unwrap();
        let sum = i64::from(turns) << 32 | i64::from(turns);
        assert_eq!(last, ("site", 9, sum, vec![turns.cast_unsigned(); 2]));
    }
}

#[test]
fn what_a_loop_computed_reaches_a_prepared_place() {
    check_sums(load("asking"));
    // Machine code keeps what is passed after the loop.
    #[cfg(feature = "jit")]
    check_sums(load("asking").compiling_after(1));
}
