//! The tables of `tests/ops`: every case is run in every way a program can be run, and every opcode is run by some case.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};

use vm::{Atom, Context, InvocationOptions, Ref, Result, StatusCode, Tracer, Value};
use vm_bytecode::{BytecodeModule, Opcode};

use crate::cases::{Case, Outcome, Table};
use crate::setup::{TableModules, call_prepared, call_with, lookup, path};

/// Names of all tables.
const TABLES: [&str; 12] = [
    "branches", "buffers", "calls", "control", "doubles", "floats", "globals", "imports",
    "integers", "lists", "refs", "switches",
];

/// Names of the tables that need more than their own module.
const LINKED: [&str; 1] = ["user"];

fn table(name: &str) -> Table {
    let path = path(&format!("{name}.cases"));
    let text = std::fs::read_to_string(&path).unwrap();
    Table::parse(&text).unwrap_or_else(|error| panic!("{name}.cases: {error}"))
}

/// Counts the instructions of an invocation.
#[derive(Default)]
struct Counter(Cell<u64>);

impl Tracer for Counter {
    fn instruction(&self, _module: &str, _ordinal: u32, _offset: u32) {
        self.0.set(self.0.get() + 1);
    }
}

/// Remembers which instructions ran.
#[derive(Default)]
struct Recorder(RefCell<HashSet<(String, u32, u32)>>);

impl Tracer for Recorder {
    fn instruction(&self, module: &str, ordinal: u32, offset: u32) {
        self.0
            .borrow_mut()
            .insert((module.to_owned(), ordinal, offset));
    }
}

/// Reads an argument as its place in the calling convention asks.
fn argument(atom: Atom, text: &str) -> Value {
    match (atom, text) {
        (Atom::I32, text) => Value::I32(text.parse().unwrap()),
        (Atom::I64, text) => Value::I64(text.parse().unwrap()),
        (Atom::F32, text) => Value::F32(text.parse().unwrap()),
        (Atom::F64, text) => Value::F64(text.parse().unwrap()),
        (Atom::Ref, "null") => Value::Ref(Ref::Null),
        (Atom::Ref, text) => panic!("{text} is no ref"),
    }
}

fn arguments(context: &Context, case: &Case) -> Vec<Value> {
    let function = lookup(context, &case.function);
    let items = function.convention().arguments().iter();
    let atoms = items.map(|item| match item {
        vm::Item::Atom(atom) => *atom,
        vm::Item::Span(_) => panic!("{} takes a span", case.function),
    });
    let values: Vec<Value> = atoms
        .zip(&case.arguments)
        .map(|(atom, text)| argument(atom, text))
        .collect();
    assert_eq!(values.len(), case.arguments.len(), "line {}", case.line);
    values
}

/// Returns whether a value is what a table says: bit by bit, but that one NaN is as good as another and that a number
/// with `~` is met within a few units in the last place.
fn holds(expected: &str, found: &Value) -> bool {
    let rounded = expected.strip_prefix('~');
    let number: f64 = rounded.unwrap_or(expected).parse().unwrap_or(0.0);
    let near = |value: f64, tolerance: f64| (value - number).abs() <= tolerance * number.abs();
    match found {
        Value::I32(value) => value.to_string() == expected,
        Value::I64(value) => value.to_string() == expected,
        Value::F32(value) if rounded.is_some() => near(f64::from(*value), 5e-7),
        Value::F64(value) if rounded.is_some() => near(*value, 1e-15),
        Value::F32(value) if expected == "nan" => value.is_nan(),
        Value::F64(value) if expected == "nan" => value.is_nan(),
        Value::F32(value) => expected
            .parse()
            .map(f32::to_bits)
            .is_ok_and(|bits| bits == value.to_bits()),
        Value::F64(value) => expected
            .parse()
            .map(f64::to_bits)
            .is_ok_and(|bits| bits == value.to_bits()),
        Value::Ref(reference) => expected == "null" && reference.is_null(),
    }
}

fn agrees(outcome: &Outcome, found: &Result<Vec<Value>>) -> bool {
    match (outcome, found) {
        (Outcome::Results(expected), Ok(found)) => {
            expected.len() == found.len()
                && expected
                    .iter()
                    .zip(found)
                    .all(|(expected, found)| holds(expected, found))
        }
        (Outcome::Error(code), Err(trap)) => trap.code().name() == Some(code),
        _ => false,
    }
}

/// Spells what a call gave, with all its bits and frames, so that two ways of running can be compared.
fn spelled(found: &Result<Vec<Value>>) -> String {
    match found {
        Ok(values) => values
            .iter()
            .map(|value| match value {
                Value::I32(value) => format!("{value} "),
                Value::I64(value) => format!("{value} "),
                Value::F32(value) => format!("{:#x} ", value.to_bits()),
                Value::F64(value) => format!("{:#x} ", value.to_bits()),
                Value::Ref(value) => format!("{} ", value.is_null()),
            })
            .collect(),
        Err(trap) => {
            let frames = trap.frames().iter().take(4).map(ToString::to_string);
            format!(
                "{trap} {:?} of {}",
                frames.collect::<Vec<_>>(),
                trap.frames().len()
            )
        }
    }
}

/// The most times that imports of one case answer `DEFERRED`.
const MAX_DEFERRALS: u64 = 16;

/// Runs the cases of a table fused, as prepared calls, counted and traced, and with one instruction less than they need.
fn check(name: &str) {
    let table = table(name);
    let modules = TableModules::load(name, &table);
    let mut wrong = Vec::new();
    for case in &table.cases {
        let run = |options: InvocationOptions<'_>| {
            let context = modules.context();
            let arguments = arguments(&context, case);
            call_with(&context, &case.function, &arguments, options)
        };
        let fused = run(InvocationOptions::default());
        if !agrees(&case.outcome, &fused) {
            let reference = if case.is_shared { "does" } else { "does not" };
            wrong.push(format!(
                "{name}.cases:{}: {}({}) gave {}; the reference {reference} give what the table says",
                case.line,
                case.function,
                case.arguments.join(", "),
                spelled(&fused)
            ));
            continue;
        }
        let prepared = {
            let context = modules.context();
            let arguments = arguments(&context, case);
            call_prepared(&context, &case.function, arguments)
        };
        let counter = Counter::default();
        let traced = run(InvocationOptions {
            fuel: None,
            tracer: Some(&counter),
        });
        let fuel = |fuel| InvocationOptions {
            fuel: Some(fuel),
            tracer: None,
        };
        // An import that answers `DEFERRED` counts again each time it is called, without being traced again.
        let traced_count = counter.0.get();
        let is_enough = |&needed: &u64| {
            let counted = run(fuel(needed));
            spelled(&counted) == spelled(&fused)
        };
        let needed = (traced_count..traced_count + MAX_DEFERRALS).find(is_enough);
        let place = format!("{name}.cases:{}", case.line);
        assert_eq!(spelled(&prepared), spelled(&fused), "{place}, prepared");
        assert_eq!(spelled(&traced), spelled(&fused), "{place}, traced");
        let needed = needed.unwrap_or_else(|| panic!("{place}, counted: not as fused"));
        let starved = run(fuel(needed - 1)).unwrap_err();
        assert_eq!(
            starved.code(),
            StatusCode::DEADLINE_EXCEEDED,
            "{place}, starved"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

macro_rules! check_tables {
    ($($test:ident $table:literal;)*) => {
        $(#[test] fn $test() { check($table); })*

        #[test]
        fn every_table_is_checked() {
            let checked: BTreeSet<&str> = [$($table),*].into();
            let found = std::fs::read_dir(path("")).unwrap().filter_map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                name.strip_suffix(".cases").map(str::to_owned)
            });
            let found: BTreeSet<String> = found.collect();
            assert!(found.iter().map(String::as_str).eq(checked));
        }
    };
}

check_tables! {
    branches_fused_with_comparisons_do_the_same "branches";
    buffer_operations_give_what_the_table_says "buffers";
    calls_inside_a_module_give_what_the_table_says "calls";
    control_flow_gives_what_the_table_says "control";
    f64_operations_give_what_the_table_says "doubles";
    f32_operations_give_what_the_table_says "floats";
    globals_give_what_the_table_says "globals";
    imports_of_native_functions_give_what_the_table_says "imports";
    integer_operations_give_what_the_table_says "integers";
    list_operations_give_what_the_table_says "lists";
    ref_operations_give_what_the_table_says "refs";
    ref_switches_give_what_the_table_says "switches";
    imports_of_another_module_give_what_the_table_says "user";
}

/// Returns the opcodes of a module's instructions by function and offset.
fn opcodes(module: &BytecodeModule) -> HashMap<(u32, u32), Opcode> {
    let functions = (0u32..).zip(module.verified().functions());
    let instructions = functions.flat_map(|(ordinal, function)| {
        let blocks = function.blocks().iter();
        blocks.flat_map(move |block| {
            let instructions = function.instructions(block);
            instructions.map(move |instruction| ((ordinal, instruction.offset()), instruction.op()))
        })
    });
    instructions.collect()
}

#[test]
fn every_opcode_is_run_by_some_case() {
    let mut executed: HashSet<Opcode> = HashSet::new();
    for name in TABLES.into_iter().chain(LINKED) {
        let table = table(name);
        let modules = TableModules::load(name, &table);
        let recorder = Recorder::default();
        for case in &table.cases {
            let context = modules.context();
            let options = InvocationOptions {
                fuel: Some(2000),
                tracer: Some(&recorder),
            };
            let arguments = arguments(&context, case);
            // Whether the outcome is right is for the other tests to say.
            let _ = call_with(&context, &case.function, &arguments, options);
        }
        let recorded = recorder.0.into_inner();
        for module in modules.bytecode() {
            let known = opcodes(module);
            let name = &module.def().name;
            let ran = recorded.iter().filter(|(module, _, _)| module == name);
            executed.extend(ran.map(|(_, ordinal, offset)| known[&(*ordinal, *offset)]));
        }
    }
    let missing: Vec<&str> = Opcode::all()
        .iter()
        .filter(|op| !executed.contains(op))
        .map(|op| op.mnemonic())
        .collect();
    assert!(missing.is_empty(), "no case runs {missing:?}");
}
