//! Places that dispatch again and again: what they repeat, what they leave to a checked dispatch, and that both do the same.

use std::sync::Arc;

use hal_local::{
    Binding, Denormals, Dispatch, DispatchError, DispatchRequest, DispatchSite, Dispatcher,
    Executable, ExecutableHandle, InlineDispatcher, PoolDispatcher,
};
use proptest::prelude::*;

use crate::support::{Memory, dispatch, dispatch_error, given, request, test_kernels};

const ONE: [u32; 3] = [1; 3];

fn inline() -> Arc<dyn Dispatcher> {
    Arc::new(InlineDispatcher::new())
}

fn kernels() -> ExecutableHandle {
    ExecutableHandle::new(test_kernels())
}

/// Dispatches as a program does: repeats if it can. Tells whether it could.
fn run(
    site: &mut DispatchSite,
    request: DispatchRequest<'_>,
    bindings: &[Binding<'_>],
) -> (bool, Result<(), DispatchError>) {
    match site.repeat(request, bindings.iter().copied().map(Some)) {
        Some(outcome) => (true, outcome),
        None => {
            let outcome = site.dispatch(request, given(bindings));
            (false, outcome.map_err(dispatch_error))
        }
    }
}

#[test]
fn a_repeated_dispatch_has_its_own_constants_and_bindings() {
    let pool = || PoolDispatcher::new(3.try_into().unwrap()).unwrap();
    let dispatchers: [Arc<dyn Dispatcher>; 2] = [inline(), Arc::new(pool())];
    for dispatcher in dispatchers {
        let (kernels, mut site) = (kernels(), DispatchSite::new(dispatcher.clone()));
        for turn in 0..3 {
            let constants = [10 + turn, 20 + turn];
            let memory = Memory::zeroed(23 * 4 + 64 * turn as usize);
            let request = request(&kernels, "record", ONE, &constants);
            let (repeated, outcome) = run(&mut site, request, &[memory.binding()]);
            outcome.unwrap();
            assert_eq!(repeated, turn > 0);

            let plain = Memory::zeroed(23 * 4 + 64 * turn as usize);
            let executable = &**kernels.executable();
            let bindings = [plain.binding()];
            dispatch(
                &*dispatcher,
                executable,
                "record",
                ONE,
                &constants,
                &bindings,
            )
            .unwrap();
            assert_eq!(memory.to_u32(), plain.to_u32());
        }
    }
}

#[test]
fn what_is_not_like_the_last_dispatch_is_not_repeated() {
    /// Says that there are so many bindings, and gives those that it has.
    struct Liar<'a>(usize, std::vec::IntoIter<Binding<'a>>);

    impl<'a> Iterator for Liar<'a> {
        type Item = Option<Binding<'a>>;

        fn next(&mut self) -> Option<Self::Item> {
            self.1.next().map(Some)
        }

        fn size_hint(&self) -> (usize, Option<usize>) {
            (self.0, Some(self.0))
        }
    }

    impl ExactSizeIterator for Liar<'_> {}

    let (kernels, others) = (kernels(), kernels());
    let clone = kernels.clone();
    let memory = Memory::zeroed(64 * 4);
    let bindings = [memory.binding()];
    let mut site = DispatchSite::new(inline());
    let count = request(&kernels, "count", ONE, &[]);
    let repeat = |site: &mut DispatchSite, request, bindings: &[Binding<'_>]| {
        site.repeat(request, bindings.iter().copied().map(Some))
            .is_some()
    };
    assert!(
        !repeat(&mut site, count, &bindings),
        "nothing was dispatched"
    );
    site.dispatch(count, given(&bindings)).unwrap();
    assert!(repeat(&mut site, count, &bindings));
    assert!(repeat(
        &mut site,
        request(&clone, "count", ONE, &[]),
        &bindings
    ));
    assert_eq!(memory.to_u32()[0], 3);

    for other in [
        request(&others, "count", ONE, &[]),
        request(&kernels, "multiply", ONE, &[]),
        request(&kernels, "count", [2, 1, 1], &[]),
        request(&kernels, "count", [1, 0, 1], &[]),
        request(&kernels, "count", ONE, &[1]),
        DispatchRequest {
            function: u64::MAX,
            ..count
        },
    ] {
        assert!(!repeat(&mut site, other, &bindings), "{other:?}");
    }
    let misaligned = Binding::shared(&memory.bytes()[4..], None);
    assert!(!repeat(&mut site, count, &[]));
    assert!(!repeat(&mut site, count, &[memory.binding(); 2]));
    assert!(!repeat(&mut site, count, &[misaligned]));
    assert!(site.repeat(count, [None].into_iter()).is_none());
    for (said, given) in [(1, 0), (2, 1), (0, 1)] {
        let bindings = vec![memory.binding(); given].into_iter();
        assert!(site.repeat(count, Liar(said, bindings)).is_none());
    }
    assert_eq!(memory.to_u32()[0], 3, "none of these ran");
    assert!(
        repeat(&mut site, count, &bindings),
        "the last dispatch is still known"
    );
}

#[test]
fn several_bindings_reach_a_kernel_in_order() {
    let kernels = kernels();
    let mut site = DispatchSite::new(inline());
    let multiply = request(&kernels, "multiply", ONE, &[]);
    for turn in 0..4u8 {
        let value = f32::from(turn);
        let (input, output) = (Memory::of_f32(&[value]), Memory::zeroed(4));
        let bindings = [input.binding(), output.binding()];
        // Fails at the second binding; what the first one left is not used.
        let half = [Some(output.binding()), None].into_iter();
        assert!(site.repeat(multiply, half).is_none());
        let (repeated, outcome) = run(&mut site, multiply, &bindings);
        outcome.unwrap();
        assert_eq!(repeated, turn > 0);
        let plain = Memory::zeroed(4);
        let bindings = [input.binding(), plain.binding()];
        let executable = &**kernels.executable();
        dispatch(&*inline(), executable, "multiply", ONE, &[], &bindings).unwrap();
        assert_eq!(output.to_f32(), plain.to_f32());
        assert_eq!(input.to_f32(), [value]);
        assert!(turn == 0 || output.to_f32() != [0.0]);
    }
    let nothing = request(&kernels, "nothing", ONE, &[]);
    let empty = Binding::shared(&[], None);
    for repeated in [false, true] {
        let outcome = run(&mut site, nothing, &[empty; 3]);
        assert!(outcome.0 == repeated && outcome.1.is_ok());
    }
}

#[test]
fn a_place_goes_over_to_another_function() {
    let kernels = kernels();
    let memory = Memory::zeroed(23 * 4);
    let bindings = [memory.binding()];
    let mut site = DispatchSite::new(inline());
    let count = request(&kernels, "count", ONE, &[]);
    let record = request(&kernels, "record", ONE, &[1, 2]);
    for (request, expected) in [
        (count, false),
        (count, true),
        (record, false),
        (record, true),
        (count, false),
    ] {
        let (repeated, outcome) = run(&mut site, request, &bindings);
        outcome.unwrap();
        assert_eq!(repeated, expected);
    }
}

#[test]
fn kernels_that_need_more_than_a_call_are_never_repeated() {
    /// Does not say who runs a workgroup.
    struct Watching(InlineDispatcher);

    impl Dispatcher for Watching {
        fn dispatch(
            &self,
            executable: &dyn Executable,
            dispatch: &Dispatch<'_>,
        ) -> Result<(), DispatchError> {
            self.0.dispatch(executable, dispatch)
        }
    }

    let watching: Arc<dyn Dispatcher> = Arc::new(Watching(InlineDispatcher::new()));
    let mut cases = vec![(watching, "count"), (inline(), "scratch")];
    if let Some(flush) = Denormals::flush() {
        cases.push((Arc::new(InlineDispatcher::with_denormals(flush)), "count"));
    }
    for (dispatcher, function) in cases {
        let (kernels, memory) = (kernels(), Memory::zeroed(64));
        let mut site = DispatchSite::new(dispatcher);
        for _ in 0..2 {
            let request = request(&kernels, function, ONE, &[]);
            let (repeated, outcome) = run(&mut site, request, &[memory.binding()]);
            outcome.unwrap();
            assert!(!repeated, "{function}");
        }
    }
}

#[test]
fn a_kernel_that_fails_fails_alike() {
    let (kernels, memory) = (kernels(), Memory::zeroed(4));
    let bindings = [memory.binding()];
    let mut site = DispatchSite::new(inline());
    let outcomes = [[0, 1, 0, 7], [0, 0, 0, 7], [0, 0, 0, 0]].map(|constants| {
        let request = request(&kernels, "fail_at", ONE, &constants);
        let (repeated, outcome) = run(&mut site, request, &bindings);
        let executable = &**kernels.executable();
        let plain = dispatch(
            &*inline(),
            executable,
            "fail_at",
            ONE,
            &constants,
            &bindings,
        );
        let [outcome, plain] = [outcome, plain].map(|outcome| outcome.map_err(|e| e.to_string()));
        assert_eq!(outcome, plain);
        (repeated, outcome.is_ok())
    });
    assert_eq!(outcomes, [(false, true), (true, false), (true, true)]);
}

#[test]
fn a_binding_that_cannot_be_had_is_named() {
    let (kernels, memory) = (kernels(), Memory::zeroed(4));
    let request = request(&kernels, "count", ONE, &[]);
    let bindings = [Ok(memory.binding()), Err("no"), Err("neither")];
    let outcome = DispatchSite::new(inline()).dispatch(request, bindings.into_iter());
    assert!(matches!(
        outcome,
        Err(hal_local::DispatchRequestError::Binding {
            index: 1,
            error: "no"
        })
    ));
    assert_eq!(memory.to_u32(), [0]);
}

#[test]
fn a_place_keeps_no_executable_loaded() {
    let mut site = DispatchSite::new(inline());
    let memory = Memory::zeroed(4);
    for turn in 1..20 {
        let kernels = kernels();
        let weak = Arc::downgrade(kernels.executable());
        let request = request(&kernels, "count", ONE, &[]);
        // The next executable may be where this one was, and is another all the same.
        let (repeated, outcome) = run(&mut site, request, &[memory.binding()]);
        outcome.unwrap();
        assert!(!repeated);
        drop(kernels);
        assert_eq!(weak.strong_count(), 0);
        assert_eq!(memory.to_u32(), [turn]);
    }
}

#[test]
fn a_place_may_move_to_another_thread() {
    let (kernels, memory) = (kernels(), Memory::zeroed(4));
    let mut site = DispatchSite::new(inline());
    let count = request(&kernels, "count", ONE, &[]);
    run(&mut site, count, &[memory.binding()]).1.unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut site = site;
            let (repeated, outcome) = run(&mut site, count, &[memory.binding()]);
            outcome.unwrap();
            assert!(repeated);
        });
    });
    assert_eq!(memory.to_u32(), [2]);
}

/// A dispatch that is mostly right: which function, count, constants, number and place of bindings, and executable.
#[derive(Clone, Debug)]
struct Step {
    function: &'static str,
    count: [u32; 3],
    constants: Vec<u32>,
    binding_count: usize,
    offset: usize,
    handle: usize,
}

impl Step {
    fn bind<'a>(&self, memory: &'a Memory) -> Vec<Binding<'a>> {
        let binding = Binding::shared(&memory.bytes()[self.offset..], None);
        vec![binding; self.binding_count]
    }
}

fn step() -> impl Strategy<Value = Step> {
    let function = prop::sample::select(vec![("count", 0), ("fail_at", 4), ("record", 2)]);
    let count = prop_oneof![8 => Just(ONE), 1 => Just([2, 1, 1]), 1 => Just([1, 0, 1])];
    let surplus = prop_oneof![9 => Just(0), 1 => 1usize..3];
    let binding_count = prop_oneof![9 => Just(1), 1 => 0usize..3];
    // The last is no multiple of what kernels want.
    let offset = prop_oneof![9 => prop::sample::select(vec![0, 128]), 1 => Just(4)];
    let handle = prop_oneof![9 => Just(0usize), 1 => Just(1)];
    let constants = prop::collection::vec(0u32..2, 8);
    let step = (
        function,
        count,
        constants,
        surplus,
        binding_count,
        offset,
        handle,
    );
    step.prop_map(
        |((function, wanted), count, mut constants, surplus, binding_count, offset, handle)| {
            constants.truncate(wanted + surplus);
            Step {
                function,
                count,
                constants,
                binding_count,
                offset,
                handle,
            }
        },
    )
}

/// Dispatches of one place do what dispatches without one do, whatever came before.
#[test]
fn dispatches_of_a_place_are_those_without_one() {
    let repeats = std::cell::Cell::new(0);
    let steps = prop::collection::vec(step(), 1..40);
    let check = |steps: Vec<Step>| {
        let handles = [kernels(), kernels()];
        let mut site = DispatchSite::new(inline());
        let (ours, plain) = (Memory::zeroed(1024), Memory::zeroed(1024));
        for step in steps {
            let handle = &handles[step.handle];
            let request = request(handle, step.function, step.count, &step.constants);
            let (repeated, outcome) = run(&mut site, request, &step.bind(&ours));
            repeats.set(repeats.get() + u32::from(repeated));
            let (executable, dispatcher) = (&**handle.executable(), inline());
            let (function, constants) = (step.function, &step.constants);
            let bindings = step.bind(&plain);
            let expected = dispatch(
                &*dispatcher,
                executable,
                function,
                step.count,
                constants,
                &bindings,
            );
            // Addresses differ.
            let text =
                |error: DispatchError| error.to_string().split(" is at ").next().map(str::to_owned);
            prop_assert_eq!(outcome.map_err(text), expected.map_err(text));
            prop_assert_eq!(ours.to_u32(), plain.to_u32());
        }
        Ok(())
    };
    let mut runner = proptest::test_runner::TestRunner::default();
    runner.run(&steps, check).unwrap();
    assert!(repeats.get() > 500, "{} were repeated", repeats.get());
}
