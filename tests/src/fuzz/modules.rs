//! Bytecode modules: the container, the verifier, and whole programs without native code.

use core::fmt;
use std::sync::Arc;
use std::time::Duration;

use halite::{InvocationOptions, Program, Session, Value};
use vm_bytecode::{Archive, DebugDatabase, Disassembler, Offsets, VerifiedModule};
use vm_vmvx::VmvxLoader;

use super::{Outcome, fixtures};
use crate::memory::with_largest_block;

/// The largest block that a program gets: what it does with larger ones takes time and shows nothing more.
pub(super) const LARGEST_BLOCK: usize = 1 << 20;

/// Longer than the text of any result: lists are written up to a number of elements, 16 of each tensor among them.
const LONGEST_TEXT: usize = 1 << 28;

/// The container alone.
pub(super) fn archive(input: &[u8]) -> Outcome {
    match Archive::parse(input) {
        Ok(archive) => {
            assert!(archive.flatbuffer().end <= input.len());
            // Where segments would begin; each is checked on its own.
            let _ = archive.rodata_base();
            Outcome::Taken
        }
        Err(error) => {
            assert_ne!(error.status_code(), vm::StatusCode::OK);
            assert!(!error.to_string().is_empty());
            Outcome::Refused
        }
    }
}

/// Everything that is done with a module before it runs.
pub(super) fn verify(input: &[u8]) -> Outcome {
    let module = match VerifiedModule::load(input) {
        Ok(module) => module,
        Err(error) => {
            assert_ne!(error.status_code(), vm::StatusCode::OK);
            assert!(!error.to_string().is_empty());
            return Outcome::Refused;
        }
    };
    assert!(module.def().byte_length() <= input.len());
    for segment in &module.def().rodata {
        assert!(segment.range.end <= input.len());
    }
    let text = Disassembler::new(&module, input)
        .offsets(Offsets::Shown)
        .to_string();
    assert!(text.contains("vm.module @"));
    let debug = DebugDatabase::new(module.def(), input);
    for (ordinal, _) in (0u32..).zip(module.functions()) {
        debug.and_then(|debug| debug.location(ordinal, 8));
    }
    Outcome::Taken
}

/// The program of a whole file, linked with all modules and called, with portable kernels and no native code.
pub(super) fn session(input: &[u8]) -> Outcome {
    // Time is bounded from outside where no budget reaches; nothing depends on it.
    let input = input.to_vec();
    with_largest_block(LARGEST_BLOCK, || {
        let Ok(program) = Program::from_bytes(input) else {
            return Outcome::Refused;
        };
        let interrupt = vm::InterruptHandle::default();
        let _deadline = Deadline::new(interrupt.clone());
        let loader = VmvxLoader::new()
            .fuel_per_workgroup(200)
            .interrupt_handle(interrupt.clone());
        let session = Session::builder()
            .program(program)
            .loader(Arc::new(loader))
            .interrupt_handle(interrupt)
            .lifecycle_fuel(1_000)
            .build();
        let Ok(session) = session else {
            return Outcome::Taken;
        };
        let names: Vec<String> = session
            .program()
            .function_names()
            .map(String::from)
            .collect();
        for name in names {
            let Ok(function) = session.function(&name) else {
                continue;
            };
            let arguments: Vec<Value> = function
                .parameters()
                .iter()
                .map(|parameter| argument(parameter.atom, parameter.declared_type))
                .collect();
            let options = InvocationOptions {
                fuel: Some(1_000),
                tracer: None,
            };
            if let Ok(results) = function.invoke_with(&arguments, options) {
                for result in results {
                    let _ = halite::text::write_value(&mut Discarded(0), &result, 16);
                }
            }
        }
        Outcome::Ran
    })
}

/// Takes text and keeps its length only: a list in a list is written wherever it is, so that the text of a few small lists
/// may be longer than any block that a program gets.
struct Discarded(usize);

impl fmt::Write for Discarded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        assert!(self.0 <= LONGEST_TEXT, "a result takes endless text");
        Ok(())
    }
}

/// Interrupts what has not ended after a second, unless it is dropped before.
struct Deadline {
    done: Option<std::sync::mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Deadline {
    fn new(handle: vm::InterruptHandle) -> Self {
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            if wait.recv_timeout(Duration::from_secs(1)).is_err() {
                handle.interrupt();
            }
        });
        Self {
            done: Some(done),
            thread: Some(thread),
        }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.done = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns an argument of a declared type, as far as it says one.
fn argument(atom: vm::Atom, declared_type: Option<&str>) -> Value {
    match atom {
        vm::Atom::I32 => Value::I32(2),
        vm::Atom::I64 => Value::I64(3),
        vm::Atom::F32 => Value::F32(-1.5),
        vm::Atom::F64 => Value::F64(2.5),
        vm::Atom::Ref => {
            let tensor = declared_type
                .and_then(|name| name.strip_prefix("tensor<"))
                .and_then(|rest| rest.strip_suffix('>'))
                .map(|tensor| format!("{}=1", tensor.replace('?', "4")));
            let tensor = tensor.and_then(|text| halite::text::parse_tensor(&text).ok());
            tensor.map_or(Value::Null, Value::Tensor)
        }
    }
}

/// Every module of the repository that is small.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut modules = fixtures("crates/vm-bytecode/tests", ".vmfb");
    modules.extend(fixtures("tests/fixtures", ".vmfb"));
    modules.extend(fixtures("crates/vm-vmvx/tests", ".vmfb"));
    modules
}

/// The programs that run without native code.
pub(super) fn session_seeds() -> Vec<Vec<u8>> {
    let mut modules = fixtures("tests/fixtures", ".vmfb");
    modules.retain(|module| !module.windows(4).any(|window| window == b"\x7fELF"));
    modules
}
