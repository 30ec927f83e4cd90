//! Verified bytecode that runs, with a budget: whatever the program, it ends in results or an error, and its fast form,
//! and the one with loops of machine code, give what its counted form gives.
//!
//! ```text
//! input   0 template, 1 bytecode ..     the bytecode takes the place of the template's
//!         0xFF, 1 module ..             a whole file
//! ```

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use vm::{Atom, Context, InvocationOptions, Item, Module, Ref, Trap, Value};
use vm_bytecode::{BytecodeModule, VerifiedModule};

use super::modules::LARGEST_BLOCK;
use super::{Outcome, fixtures};
use crate::memory::with_largest_block;

#[expect(dead_code, reason = "its own tests use all of it")]
#[path = "../../../crates/vm-bytecode/tests/run/host.rs"]
mod host;

use self::host::Host;

/// Instructions that a function may run.
const FUEL: u64 = 1_000;

/// The first byte of an input that is a whole file.
const WHOLE_FILE: u8 = 0xFF;

/// The most bytes of a buffer that are compared.
const COMPARED_BYTES: usize = 256;

/// A module whose bytecode is replaced.
struct Template {
    file: Vec<u8>,
    bytecode: std::ops::Range<usize>,
}

/// The modules of the tests of instructions, in the order of their files.
fn templates() -> &'static [Template] {
    static TEMPLATES: OnceLock<Vec<Template>> = OnceLock::new();
    TEMPLATES.get_or_init(|| {
        let template = |file: Vec<u8>| {
            let bytecode = VerifiedModule::load(&file).unwrap().def().bytecode.clone();
            Template { file, bytecode }
        };
        let files = fixtures("crates/vm-bytecode/tests/ops", ".vmfb");
        files.into_iter().map(template).collect()
    })
}

pub(super) fn run(input: &[u8]) -> Outcome {
    let Some((&first, rest)) = input.split_first() else {
        return Outcome::Refused;
    };
    let file = if first == WHOLE_FILE {
        rest.to_vec()
    } else {
        let template = &templates()[usize::from(first) % templates().len()];
        let mut file = template.file.clone();
        let length = rest.len().min(template.bytecode.len());
        file[template.bytecode.clone()][..length].copy_from_slice(&rest[..length]);
        file
    };
    let Ok(module) = BytecodeModule::load(Arc::new(file)) else {
        return Outcome::Refused;
    };
    with_largest_block(LARGEST_BLOCK, || {
        let same = || Arc::clone(&module) as _;
        // What ends within a budget ends without one, and in the same way.
        if let Some(counted) = outcomes(&module, same(), Some(FUEL)) {
            let fast = outcomes(&module, same(), None);
            assert_eq!(Some(&counted), fast.as_ref(), "the fast form disagrees");
            for hot_after in [1, 3] {
                let compiled = outcomes(&module, module.compiling_after(hot_after), None);
                assert_eq!(Some(&counted), compiled.as_ref(), "machine code disagrees");
            }
        }
    });
    Outcome::Ran
}

/// Calls every function of a module in a new context, in which it has this form, and returns what came of it as text;
/// `None` when a budget ended one of them.
fn outcomes(
    module: &Arc<BytecodeModule>,
    form: Arc<dyn Module>,
    fuel: Option<u64>,
) -> Option<String> {
    let host = Host::default();
    let mut builder = Context::builder()
        .module(host.module())
        .module(vm_hal_inline::module(None))
        .module(vm_vmvx::vmvx_module());
    for library in libraries() {
        builder = builder.module(Arc::clone(library) as _);
    }
    builder = builder.module(form);
    if let Some(fuel) = fuel {
        builder = builder.lifecycle_fuel(fuel);
    }
    let mut text = String::new();
    match builder.build() {
        Ok(context) => {
            host.interrupt_through(context.interrupt_handle());
            call_all(&context, module, fuel, &mut text)?;
        }
        Err(trap) => note_trap(&mut text, &trap)?,
    }
    assert_eq!(host.tokens_alive(), 0, "refs are still held");
    let _ = write!(text, "{:?}", host.take_notes());
    Some(text)
}

/// Returns the modules that others of the same folder import from.
fn libraries() -> &'static [Arc<BytecodeModule>] {
    static LIBRARIES: OnceLock<Vec<Arc<BytecodeModule>>> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let files = fixtures("crates/vm-bytecode/tests/ops", "library.vmfb");
        let load = |file| BytecodeModule::load(Arc::new(file)).unwrap();
        files.into_iter().map(load).collect()
    })
}

fn call_all(
    context: &Context,
    module: &Arc<BytecodeModule>,
    fuel: Option<u64>,
    text: &mut String,
) -> Option<()> {
    for export in module.exports() {
        let Ok(function) = context.lookup(module.name(), &export.name) else {
            continue;
        };
        let buffer = vm::Buffer::copied_from(&[7; 64], vm::Access::HOST).unwrap();
        let arguments = function.convention().arguments().iter();
        let arguments = arguments.map(|item| match item {
            Item::Atom(Atom::I32) => Value::I32(2),
            Item::Atom(Atom::I64) => Value::I64(3),
            Item::Atom(Atom::F32) => Value::F32(-1.5),
            Item::Atom(Atom::F64) => Value::F64(2.5),
            Item::Atom(Atom::Ref) => Value::Ref(Arc::clone(&buffer).into()),
            Item::Span(_) => Value::Ref(Ref::Null),
        });
        let options = InvocationOptions { fuel, tracer: None };
        match context.invoke_with(&function, arguments, options) {
            Ok(results) => results.iter().for_each(|value| note_value(text, value)),
            Err(trap) => note_trap(text, &trap)?,
        }
        context.interrupt_handle().reset();
        let _ = writeln!(text, "{:?}", buffer.to_vec());
    }
    Some(())
}

/// Notes an error; `None` when it is the end of the budget.
fn note_trap(text: &mut String, trap: &Trap) -> Option<()> {
    assert_ne!(trap.code(), vm::StatusCode::OK);
    if trap.code() == vm::StatusCode::DEADLINE_EXCEEDED {
        return None;
    }
    let _ = writeln!(text, "{:?} {}", trap.code(), trap.message());
    Some(())
}

fn note_value(text: &mut String, value: &Value) {
    let _ = match value {
        Value::I32(value) => writeln!(text, "{value}"),
        Value::I64(value) => writeln!(text, "{value}"),
        Value::F32(value) => writeln!(text, "{:#x}", value.to_bits()),
        Value::F64(value) => writeln!(text, "{:#x}", value.to_bits()),
        Value::Ref(reference) => match reference.as_buffer() {
            Ok(buffer) => {
                let mut bytes = vec![0; buffer.length().min(COMPARED_BYTES)];
                let read = buffer.read(0, &mut bytes);
                writeln!(text, "{read:?} {bytes:?}")
            }
            Err(_) => writeln!(text, "{:?}", reference.ref_type()),
        },
    };
}

/// The bytecode of each template, and whole files.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let bytecode = (0u8..).zip(templates()).map(|(index, template)| {
        let bytecode = &template.file[template.bytecode.clone()];
        [&[index], bytecode].concat()
    });
    let files = ["crates/vm-vmvx/tests", "tests/fixtures/3.13.0/vmvx-inline"];
    let files = files
        .into_iter()
        .flat_map(|folder| fixtures(folder, ".vmfb"));
    let files = files.map(|file| [&[WHOLE_FILE], &file[..]].concat());
    bytecode.chain(files).collect()
}
