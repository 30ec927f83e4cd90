//! Programs with changed bytes: what still loads runs to a result or an error.
//!
//! The fixtures here allocate nothing large: a changed number must not make the test take the machine's memory.

use std::sync::Arc;

use vm::{Atom, Context, InvocationOptions, Item, Module, Ref, StatusCode, Value};
use vm_bytecode::BytecodeModule;

use crate::host::Host;
use crate::setup::{fixture, load};

/// Instructions that a function may run.
const FUEL: u64 = 2_000;

/// How many files loaded and how many functions ended well.
#[derive(Default, Debug)]
struct Tally {
    loaded: u32,
    succeeded: u32,
    failed: u32,
}

/// Loads a file and, if that works, calls every function it exports.
fn exercise(file: Vec<u8>, host: &Arc<dyn Module>, tally: &mut Tally) {
    let Ok(module) = BytecodeModule::load(Arc::new(file)) else {
        return;
    };
    tally.loaded += 1;
    let name = module.name().to_owned();
    let exports = module.exports().to_vec();
    let context = Context::builder()
        .module(Arc::clone(host))
        .module(module)
        .build();
    let Ok(context) = context else {
        return;
    };
    for export in exports {
        let Ok(function) = context.lookup(&name, &export.name) else {
            continue;
        };
        let arguments = function.convention().arguments().iter();
        let arguments = arguments.map(|item| match item {
            Item::Atom(Atom::I32) => Value::I32(2),
            Item::Atom(Atom::I64) => Value::I64(3),
            Item::Atom(Atom::F32) => Value::F32(-1.5),
            Item::Atom(Atom::F64) => Value::F64(2.5),
            Item::Atom(Atom::Ref) | Item::Span(_) => Value::Ref(Ref::Null),
        });
        let options = InvocationOptions {
            fuel: Some(FUEL),
            tracer: None,
        };
        match context.invoke_with(&function, arguments, options) {
            Ok(_) => tally.succeeded += 1,
            Err(trap) => {
                assert_ne!(trap.code(), StatusCode::OK);
                tally.failed += 1;
            }
        }
    }
}

/// Exercises a fixture with each byte of `range` changed in each way.
fn change_bytes(name: &str, range: std::ops::Range<usize>, changes: &[u8]) {
    let file = fixture(name);
    let host = Host::default().module();
    let mut tally = Tally::default();
    for offset in range.clone() {
        for change in changes {
            let mut changed = file.clone();
            changed[offset] ^= change;
            exercise(changed, &host, &mut tally);
        }
    }
    let files = u32::try_from(range.len() * changes.len()).unwrap();
    assert!(
        tally.loaded > 0 && tally.loaded < files,
        "{name}: {tally:?} of {files} files"
    );
    assert!(
        tally.succeeded > 0 && tally.failed > 0,
        "{name}: {tally:?} of {files} files"
    );
}

#[test]
fn any_changed_byte_of_a_file_ends_in_a_result_or_an_error() {
    for name in ["library", "switches", "lifecycle"] {
        change_bytes(name, 0..fixture(name).len(), &[0x01, 0x80]);
    }
}

#[test]
fn any_changed_byte_of_a_program_ends_in_a_result_or_an_error() {
    for name in ["control", "calls"] {
        let range = load(name).def().bytecode.clone();
        change_bytes(name, range, &[0x02]);
    }
}

#[test]
fn no_cut_file_runs() {
    for name in ["library", "lifecycle"] {
        let file = fixture(name);
        let needed = load(name).def().byte_length();
        for length in 0..needed {
            let cut = BytecodeModule::load(Arc::new(file[..length].to_vec()));
            assert!(cut.is_err(), "{name} loads with {length} of {needed} bytes");
        }
    }
}
