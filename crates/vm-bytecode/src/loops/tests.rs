//! Loops compute and fail the same with machine code and without.

use core::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use vm::{Access, Buffer, Context, InvocationOptions, Module, Ref, StatusCode, Value};

use super::translate::translate;
use crate::encode::{Arg, Body};
use crate::testing::TestModule;
use crate::{BytecodeModule, Opcode, OperandKind};

use Arg::{I, List, R, Remap, Word};

/// Whether loops are compiled on this host.
const HAS_CODE: bool = cfg!(all(unix, target_arch = "x86_64"));

/// A block that is or will be written.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Label(usize);

/// Writes a body again and again until it is known where its blocks are: twice.
fn assemble(write: impl Fn(&mut Assembler)) -> Body {
    let mut known = Vec::new();
    loop {
        let mut assembler = Assembler {
            body: Body::default(),
            blocks: Vec::new(),
            known,
        };
        write(&mut assembler);
        if assembler.known == assembler.blocks {
            return assembler.body;
        }
        known = assembler.blocks;
    }
}

struct Assembler {
    body: Body,
    /// Where the blocks are, by label, and where they were the last time.
    blocks: Vec<u32>,
    known: Vec<u32>,
}

impl Assembler {
    /// Returns a new label.
    fn label(&mut self) -> Label {
        self.blocks.push(0);
        Label(self.blocks.len() - 1)
    }

    /// Starts the block of a label.
    fn block(&mut self, label: Label) {
        self.blocks[label.0] = self.body.block();
    }

    /// Starts the first block.
    fn start(&mut self) {
        let label = self.label();
        self.block(label);
    }

    fn op(&mut self, op: Opcode, args: &[Arg<'_>]) {
        self.body.op(op, args);
    }

    fn target(&self, block: Label) -> Arg<'static> {
        Word(self.known.get(block.0).copied().unwrap_or(0))
    }

    fn br(&mut self, block: Label, copies: &[(Arg<'_>, Arg<'_>)]) {
        let target = self.target(block);
        self.op(Opcode::Br, &[target, Remap(copies)]);
    }

    fn cond_br(&mut self, condition: u16, then: Label, otherwise: Label) {
        let (then, otherwise) = (self.target(then), self.target(otherwise));
        let args = [I(condition), then, Remap(&[]), otherwise, Remap(&[])];
        self.op(Opcode::CondBr, &args);
    }

    /// Sets a register to a constant.
    fn constant(&mut self, register: u16, value: i32) {
        let args = [Word(value.cast_unsigned()), I(register)];
        self.op(Opcode::ConstI32, &args);
    }

    /// Writes a loop: `counter` from 0 to below `limit`, with `one` in a register and a scratch register. Its turn ends
    /// with `copies`.
    fn counted(
        &mut self,
        [counter, limit, one, scratch]: [u16; 4],
        copies: &[(Arg<'_>, Arg<'_>)],
        turn: impl FnOnce(&mut Self),
    ) {
        let [head, body, end] = [self.label(), self.label(), self.label()];
        self.constant(counter, 0);
        self.br(head, &[]);
        self.block(head);
        let args = [I(counter), I(limit), I(scratch)];
        self.op(Opcode::CmpLtI32S, &args);
        self.cond_br(scratch, body, end);
        self.block(body);
        turn(self);
        self.op(Opcode::AddI32, &[I(counter), I(one), I(counter)]);
        self.br(head, copies);
        self.block(end);
    }
}

/// How a call ended: its results, or the error with its frames.
type Outcome = Result<Vec<i32>, String>;

fn module(convention: &str, registers: (i16, i16), body: &Body) -> Arc<BytecodeModule> {
    let module = TestModule::new().function(convention, registers, body);
    let verified = module.verify().unwrap();
    BytecodeModule::of(Arc::new(module.file), verified)
}

fn context(module: Arc<dyn Module>) -> Context {
    Context::builder().module(module).build().unwrap()
}

fn call(context: &Context, arguments: &[Value], options: InvocationOptions<'_>) -> Outcome {
    let function = context.lookup("test", "f0").unwrap();
    let results = context.invoke_with(&function, arguments.iter().cloned(), options);
    let word = |value: &Value| match value {
        Value::I32(value) => *value,
        other => panic!("{other:?} is no i32"),
    };
    match results {
        Ok(values) => Ok(values.iter().map(word).collect()),
        Err(trap) => Err(format!("{trap:?}")),
    }
}

/// Calls `f0` in the interpreter and with machine code from the first turn, checks that the outcome and the bytes of the
/// buffers are the same, and returns the outcome.
#[track_caller]
fn check(
    module: &Arc<BytecodeModule>,
    words: &[i32],
    buffers: impl Fn() -> Vec<Arc<Buffer>>,
) -> Outcome {
    let run = |module: Arc<dyn Module>| {
        let buffers = buffers();
        let words = words.iter().map(|word| Value::I32(*word));
        let refs = buffers
            .iter()
            .map(|buffer| Value::Ref(buffer.clone().into()));
        let arguments: Vec<Value> = words.chain(refs).collect();
        let outcome = call(&context(module), &arguments, InvocationOptions::default());
        let bytes: Vec<Vec<u8>> = buffers.iter().map(|buffer| buffer.to_vec()).collect();
        (outcome, bytes)
    };
    let interpreted = run(Arc::<BytecodeModule>::clone(module));
    let compiled = run(module.compiling_after(1));
    assert_eq!(compiled, interpreted);
    compiled.0
}

/// Returns whether each loop of `f0` was compiled; `None` for one that did not turn.
fn compiled(module: &BytecodeModule) -> Vec<Option<bool>> {
    let loops = module.function(0).loops.iter();
    loops
        .map(|each| each.code.get().map(Option::is_some))
        .collect()
}

fn buffer(length: u64) -> Arc<Buffer> {
    Buffer::allocate(length, 0).unwrap()
}

/// Stores the counter, from 0 to below argument 0, in as many elements of a buffer, and returns it.
fn storing() -> Arc<BytecodeModule> {
    let body = assemble(|to| {
        to.start();
        to.constant(2, 1);
        to.counted([1, 0, 2, 3], &[], |to| {
            to.op(Opcode::ExtI32I64U, &[I(1), I(4)]);
            to.op(Opcode::BufferStoreI32, &[R(0), I(4), I(1)]);
        });
        to.op(Opcode::Return, &[List(&[I(1)])]);
    });
    module("0ir_i", (6, 1), &body)
}

#[test]
fn a_loop_is_compiled_when_it_is_hot() {
    let module = storing();
    let context = context(module.compiling_after(5));
    let run = |turns| {
        let arguments = [Value::I32(turns), Value::Ref(buffer(400).into())];
        call(&context, &arguments, InvocationOptions::default())
    };
    assert_eq!(run(5), Ok(vec![5]));
    assert_eq!(compiled(&module), [None]);
    assert_eq!(run(100), Ok(vec![100]));
    assert_eq!(compiled(&module), [Some(HAS_CODE)]);
}

#[test]
fn an_access_outside_a_buffer_fails_in_the_middle_of_a_loop_as_in_the_interpreter() {
    let module = storing();
    let error = check(&module, &[100], || vec![buffer(42)]).unwrap_err();
    assert!(error.contains("offset=40, length=4"), "{error}");
    assert_eq!(check(&module, &[10], || vec![buffer(42)]), Ok(vec![10]));
}

#[test]
fn a_store_to_a_read_only_buffer_fails_as_in_the_interpreter() {
    let read_only = || Buffer::copied_from(&[0; 64], Access::HOST_CONSTANT).unwrap();
    let error = check(&storing(), &[100], || vec![read_only()]).unwrap_err();
    assert!(error.contains("read-only"), "{error}");
}

#[test]
fn a_null_buffer_in_a_compiled_loop_fails_as_in_the_interpreter() {
    let module = storing();
    check(&module, &[10], || vec![buffer(64)]).unwrap();
    for module in [
        module.compiling_after(1),
        Arc::<BytecodeModule>::clone(&module),
    ] {
        let arguments = [Value::I32(3), Value::Ref(Ref::Null)];
        let error = call(&context(module), &arguments, InvocationOptions::default()).unwrap_err();
        assert!(error.contains("null"), "{error}");
    }
}

#[test]
fn division_by_zero_fails_in_the_middle_of_a_loop_as_in_the_interpreter() {
    for op in [
        Opcode::DivI32S,
        Opcode::DivI32U,
        Opcode::RemI32S,
        Opcode::RemI32U,
    ] {
        // Divides by argument 1, less one at each turn, and stores the quotient before.
        let body = assemble(|to| {
            to.start();
            to.constant(3, 1);
            to.counted([2, 0, 3, 4], &[], |to| {
                to.op(op, &[I(0), I(1), I(5)]);
                to.op(Opcode::ExtI32I64U, &[I(2), I(6)]);
                to.op(Opcode::BufferStoreI32, &[R(0), I(6), I(5)]);
                to.op(Opcode::SubI32, &[I(1), I(3), I(1)]);
            });
            to.op(Opcode::Return, &[List(&[I(5)])]);
        });
        let module = module("0iir_i", (8, 1), &body);
        let error = check(&module, &[50, 10], || vec![buffer(400)]).unwrap_err();
        assert!(error.contains("division by zero"), "{error}");
        assert_eq!(compiled(&module), [Some(HAS_CODE)]);
        check(&module, &[50, 100], || vec![buffer(400)]).unwrap();
        // The divisor passes 1, 0 is not reached, then -1.
        check(&module, &[i32::MIN, i32::MIN], || vec![buffer(4)]).unwrap();
    }
}

#[test]
fn the_smallest_number_divided_by_minus_one_wraps_in_compiled_loops() {
    let body = assemble(|to| {
        to.start();
        to.constant(3, 1);
        to.counted([4, 2, 3, 5], &[], |to| {
            to.op(Opcode::DivI32S, &[I(0), I(1), I(6)]);
            to.op(Opcode::RemI32S, &[I(0), I(1), I(7)]);
        });
        to.op(Opcode::Return, &[List(&[I(6), I(7)])]);
    });
    let module = module("0iii_ii", (8, 0), &body);
    assert_eq!(
        check(&module, &[i32::MIN, -1, 9], Vec::new),
        Ok(vec![i32::MIN, 0])
    );
    assert_eq!(check(&module, &[-7, 3, 9], Vec::new), Ok(vec![-2, -1]));
}

#[test]
fn a_register_may_be_a_word_and_half_of_a_pair_in_one_loop() {
    // Adds 1 to the pair 4:5 and rotates its halves by way of words.
    let body = assemble(|to| {
        to.start();
        to.constant(2, 1);
        to.counted([3, 0, 2, 8], &[], |to| {
            to.op(Opcode::ExtI32I64U, &[I(2), I(6)]);
            to.op(Opcode::AddI64, &[I(4), I(6), I(4)]);
            to.op(Opcode::XorI32, &[I(4), I(5), I(9)]);
            to.op(Opcode::XorI32, &[I(4), I(9), I(4)]);
            to.op(Opcode::XorI32, &[I(5), I(9), I(5)]);
            to.op(Opcode::AddI32, &[I(5), I(1), I(5)]);
        });
        to.op(Opcode::Return, &[List(&[I(4), I(5)])]);
    });
    let module = module("0ii_ii", (10, 0), &body);
    for turns in 0..7 {
        check(&module, &[turns, -1], Vec::new).unwrap();
    }
    assert_eq!(compiled(&module), [Some(HAS_CODE)]);
}

#[test]
fn loops_in_loops_are_compiled_each_by_itself() {
    // Sums i * j.
    let body = assemble(|to| {
        to.start();
        to.constant(1, 1);
        to.constant(2, 0);
        to.counted([3, 0, 1, 4], &[], |to| {
            to.counted([5, 0, 1, 4], &[], |to| {
                to.op(Opcode::FmaI32, &[I(3), I(5), I(2), I(2)]);
            });
        });
        to.op(Opcode::Return, &[List(&[I(2)])]);
    });
    let module = module("0i_i", (6, 0), &body);
    assert_eq!(check(&module, &[20], Vec::new), Ok(vec![190 * 190]));
    assert_eq!(compiled(&module), [Some(HAS_CODE), Some(HAS_CODE)]);
}

#[test]
fn a_loop_with_what_cannot_be_compiled_is_interpreted() {
    let body = assemble(|to| {
        to.start();
        to.constant(1, 1);
        to.counted([2, 0, 1, 3], &[], |to| {
            to.op(Opcode::GlobalStoreI32, &[Word(0), I(2)]);
        });
        to.op(Opcode::Return, &[List(&[I(2)])]);
    });
    let module = module("0i_i", (4, 0), &body);
    assert_eq!(check(&module, &[20], Vec::new), Ok(vec![20]));
    assert_eq!(compiled(&module), [Some(false)]);
}

#[test]
fn fuel_is_counted_without_machine_code() {
    let module = storing();
    let context = context(module.compiling_after(1));
    let options = InvocationOptions {
        fuel: Some(100),
        ..InvocationOptions::default()
    };
    let arguments = [Value::I32(1000), Value::Ref(buffer(4000).into())];
    let error = call(&context, &arguments, options).unwrap_err();
    assert!(error.contains("budget"), "{error}");
    assert_eq!(compiled(&module), [None]);
}

#[test]
fn a_compiled_loop_that_does_not_end_can_be_interrupted() {
    // Adds one to the first element for ever.
    let body = assemble(|to| {
        to.start();
        to.constant(0, 1);
        to.op(Opcode::ConstI64Zero, &[I(2)]);
        let head = to.label();
        to.br(head, &[]);
        to.block(head);
        to.op(Opcode::BufferLoadI32, &[R(0), I(2), I(1)]);
        to.op(Opcode::AddI32, &[I(1), I(0), I(1)]);
        to.op(Opcode::BufferStoreI32, &[R(0), I(2), I(1)]);
        to.br(head, &[]);
    });
    let module = module("0r_", (4, 1), &body);
    let context = context(module.compiling_after(1));
    let (shared, handle) = (buffer(4), context.interrupt_handle());
    let watched = Arc::clone(&shared);
    let watcher = std::thread::spawn(move || {
        let second_byte = &watched.as_shared().unwrap()[1];
        while second_byte.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        handle.interrupt();
    });
    let function = context.lookup("test", "f0").unwrap();
    let trap = context
        .invoke(&function, [Value::Ref(shared.into())])
        .unwrap_err();
    watcher.join().unwrap();
    assert_eq!(trap.code(), StatusCode::CANCELLED);
    assert_eq!(compiled(&module), [Some(HAS_CODE)]);
}

/// Returns whether all operands of an operation are registers of values, 32-bit immediates and buffers.
fn is_scalar(op: Opcode) -> bool {
    let kinds = op.operand_kinds().iter();
    let is_access = op.mnemonic().starts_with("buffer.load")
        || op.mnemonic().starts_with("buffer.store")
        || op == Opcode::BufferLength;
    let mut kinds = kinds.filter(|kind| **kind != OperandKind::Ref || !is_access);
    !op.mnemonic().starts_with("global")
        && !op.is_terminator()
        && kinds.all(|kind| {
            use OperandKind as Kind;
            matches!(
                kind,
                Kind::I32
                    | Kind::I64
                    | Kind::F32
                    | Kind::F64
                    | Kind::ToI32
                    | Kind::ToI64
                    | Kind::ToF32
                    | Kind::ToF64
                    | Kind::ImmI32
                    | Kind::ImmF32
            )
        })
}

/// Returns whether a loop with the operation can be translated.
fn is_translated(op: Opcode) -> bool {
    let operation = Random {
        op,
        registers: [0; 6],
        immediate: 0,
        is_wild: false,
    };
    let body = program(1, &[Piece::Straight(vec![operation])], &[]);
    let module = module(PROGRAM_CONVENTION, (REGISTERS, 2), &body);
    let function = module.function(0);
    translate(function, function.loops[0].head as usize).is_some()
}

/// The operations of random programs.
static TRANSLATED: LazyLock<Vec<Opcode>> = LazyLock::new(|| {
    let scalar = Opcode::all().iter().copied().filter(|op| is_scalar(*op));
    scalar.filter(|op| is_translated(*op)).collect()
});

#[test]
fn all_arithmetic_but_elementary_functions_is_compiled() {
    let scalar = Opcode::all().iter().filter(|op| is_scalar(**op));
    let left = scalar.filter(|op| !TRANSLATED.contains(op));
    let left: Vec<&str> = left.map(|op| op.mnemonic()).collect();
    let expected = "rem.f32 atan.f32 atan2.f32 cos.f32 sin.f32 exp.f32 exp2.f32 expm1.f32 log.f32 log10.f32 log1p.f32 log2.f32 \
                    pow.f32 tanh.f32 erf.f32 cast.f32.ui64 fpowi.f32 \
                    rem.f64 atan.f64 atan2.f64 cos.f64 sin.f64 exp.f64 exp2.f64 expm1.f64 log.f64 log10.f64 log1p.f64 log2.f64 \
                    pow.f64 tanh.f64 erf.f64 fpowi.f64";
    assert_eq!(left.join(" "), expected);
}

#[test]
fn every_operation_gives_the_same_on_edge_operands() {
    let bytes: Vec<u8> = (0..64u8).map(|byte| byte.wrapping_mul(37) ^ 0x80).collect();
    let buffer = || Value::Ref(Buffer::copied_from(&bytes, Access::HOST).unwrap().into());
    for &op in TRANSLATED.iter() {
        let operation = Random {
            op,
            registers: [0, 2, 4, 6, 8, 10],
            immediate: 0x8000_0001,
            is_wild: false,
        };
        let body = program(2, &[Piece::Straight(vec![operation])], &[]);
        let module = module(PROGRAM_CONVENTION, (REGISTERS, 2), &body);
        let interpreted = context(Arc::<BytecodeModule>::clone(&module));
        let compiled = context(module.compiling_after(1));
        let refs = [buffer(), buffer()];
        for (left, right) in EDGES
            .iter()
            .flat_map(|left| EDGES.iter().map(move |right| (left, right)))
        {
            let mut arguments = Vec::new();
            for value in [left, right, left, right, left, right] {
                let (low, high) = ((value & 0xFFFF_FFFF) as u32, (value >> 32) as u32);
                arguments.extend([low, high].map(|word| Value::I32(word.cast_signed())));
            }
            arguments.extend(refs.iter().cloned());
            let run = |context| call(context, &arguments, InvocationOptions::default());
            assert_eq!(
                run(&compiled),
                run(&interpreted),
                "{op} on {left:#x}, {right:#x}"
            );
        }
    }
}

/// Values at whose halves and wholes, as integers and floats, operations turn.
const EDGES: [u64; 26] = [
    0,
    1,
    2,
    31,
    u64::MAX,
    u64::MAX - 6,
    1 << 31,
    1 << 63,
    i64::MAX as u64,
    0x7FFF_FFFF,
    0x80,
    0x8000,
    0.5f64.to_bits(),
    (-0.5f64).to_bits(),
    2.5f64.to_bits(),
    (-2.5f64).to_bits(),
    3e9f64.to_bits(),
    9_223_372_036_854_775_808f64.to_bits(),
    f64::INFINITY.to_bits(),
    f64::NAN.to_bits(),
    0.5f32.to_bits() as u64,
    (-0.5f32).to_bits() as u64,
    (-2.5f32).to_bits() as u64,
    9_223_372_036_854_775_808f32.to_bits() as u64,
    f32::NEG_INFINITY.to_bits() as u64,
    f32::NAN.to_bits() as u64,
];

/// An operation with its operands: registers and an immediate, of which it takes what it needs.
#[derive(Clone, Debug)]
struct Random {
    op: Opcode,
    registers: [u16; 6],
    immediate: u32,
    /// Whether an index may be past the end of the buffers.
    is_wild: bool,
}

/// A part of the body of a loop.
#[derive(Clone, Debug)]
enum Piece {
    Straight(Vec<Random>),
    If(u16, Vec<Random>),
    Loop(i32, Vec<Random>),
}

/// Registers that random operations use.
const DATA: u16 = 12;
const PROGRAM_CONVENTION: &str = "0iiiiiiiiiiiirr_iiiiiiiiiiii";
const COUNTER: u16 = 12;
const LIMIT: u16 = 13;
const ONE: u16 = 14;
const SCRATCH: u16 = 15;
const INDEX: u16 = 16;
const MASK: u16 = 18;
const WIDE_MASK: u16 = 20;
const NAN: u16 = 22;
const INNER_COUNTER: u16 = 24;
const INNER_LIMIT: u16 = 25;
const WIDE_NAN: u16 = 26;
const REGISTERS: i16 = 28;

fn random() -> impl Strategy<Value = Random> {
    let registers = proptest::array::uniform6(0..DATA);
    let is_wild = prop::sample::select(vec![false, false, false, false, false, false, false, true]);
    (
        prop::sample::select(TRANSLATED.as_slice()),
        registers,
        any::<u32>(),
        is_wild,
    )
        .prop_map(|(op, registers, immediate, is_wild)| Random {
            op,
            registers,
            immediate,
            is_wild,
        })
}

/// Words: any, small ones, and the halves of floats at which conversions and roundings turn.
fn word() -> impl Strategy<Value = i32> {
    let floats = [
        0.5f32,
        1.5,
        2.5,
        0.3,
        3e9,
        8_388_609.5,
        9.223_372e18,
        f32::INFINITY,
        f32::NAN,
        0.0,
    ];
    let doubles = [
        0.5f64,
        2.5,
        3e9,
        9.223_372_036_854_776e18,
        f64::INFINITY,
        f64::NAN,
    ];
    let words = floats
        .iter()
        .flat_map(|float| [float.to_bits(), (-float).to_bits()]);
    let halves = doubles.iter().map(|double| (double.to_bits() >> 32) as u32);
    let special: Vec<i32> = words.chain(halves).map(u32::cast_signed).collect();
    prop_oneof![any::<i32>(), -4..4, prop::sample::select(special)]
}

fn piece() -> impl Strategy<Value = Piece> {
    let operations = || prop::collection::vec(random(), 1..8);
    prop_oneof![
        operations().prop_map(Piece::Straight),
        (0..DATA, operations()).prop_map(|(condition, then)| Piece::If(condition, then)),
        (0..4, operations()).prop_map(|(turns, body)| Piece::Loop(turns, body)),
    ]
}

impl Random {
    /// Writes the operation. Indices are masked so that most accesses are inside; results that are no numbers are replaced
    /// by one that is none, because their bits are not defined.
    fn write(&self, to: &mut Assembler) {
        use OperandKind as Kind;
        let is_access = self.op.operand_kinds().first() == Some(&Kind::Ref);
        if is_access && self.op != Opcode::BufferLength {
            let mask = if self.is_wild { WIDE_MASK } else { MASK };
            to.op(
                Opcode::AndI64,
                &[I(self.registers[1] & !1), I(mask), I(INDEX)],
            );
        }
        let mut registers = self.registers.iter();
        let mut args = Vec::new();
        for kind in self.op.operand_kinds() {
            let register = match kind {
                Kind::ImmI32 | Kind::ImmF32 => None,
                _ => registers.next().copied(),
            };
            args.push(match (kind, register) {
                (Kind::Ref, Some(register)) => R(register % 2),
                (Kind::I64, Some(_)) if is_access && args.len() == 1 => I(INDEX),
                (Kind::I64 | Kind::F64 | Kind::ToI64 | Kind::ToF64, Some(register)) => {
                    I(register & !1)
                }
                (_, Some(register)) => I(register),
                (_, None) => Word(self.immediate),
            });
        }
        to.op(self.op, &args);
        let result = *args.last().unwrap();
        match self.op.operand_kinds().last() {
            Some(Kind::ToF32) => {
                to.op(Opcode::CmpNanF32, &[result, I(SCRATCH)]);
                to.op(Opcode::SelectI32, &[I(SCRATCH), I(NAN), result, result]);
            }
            Some(Kind::ToF64) => {
                to.op(Opcode::CmpNanF64, &[result, I(SCRATCH)]);
                to.op(
                    Opcode::SelectI64,
                    &[I(SCRATCH), I(WIDE_NAN), result, result],
                );
            }
            _ => {}
        }
    }
}

/// Returns a function that sets up constants, turns a loop of these pieces and returns all registers of data.
fn program(turns: i32, pieces: &[Piece], copies: &[(u16, u16)]) -> Body {
    let copies: Vec<(Arg<'_>, Arg<'_>)> =
        copies.iter().map(|(from, to)| (I(*from), I(*to))).collect();
    assemble(|to| {
        to.start();
        to.constant(LIMIT, turns);
        to.constant(ONE, 1);
        to.constant(SCRATCH, 7);
        to.op(Opcode::ExtI32I64U, &[I(SCRATCH), I(MASK)]);
        to.constant(SCRATCH, 63);
        to.op(Opcode::ExtI32I64U, &[I(SCRATCH), I(WIDE_MASK)]);
        to.constant(NAN, 0x7FC0_0000);
        to.constant(WIDE_NAN, 0);
        to.constant(WIDE_NAN + 1, 0x7FF8_0000);
        to.counted([COUNTER, LIMIT, ONE, SCRATCH], &copies, |to| {
            for piece in pieces {
                match piece {
                    Piece::Straight(operations) => operations.iter().for_each(|op| op.write(to)),
                    Piece::If(condition, operations) => {
                        let [then, after] = [to.label(), to.label()];
                        to.cond_br(*condition, then, after);
                        to.block(then);
                        operations.iter().for_each(|op| op.write(to));
                        to.br(after, &[]);
                        to.block(after);
                    }
                    Piece::Loop(turns, operations) => {
                        to.constant(INNER_LIMIT, *turns);
                        to.counted([INNER_COUNTER, INNER_LIMIT, ONE, SCRATCH], &[], |to| {
                            operations.iter().for_each(|op| op.write(to));
                        });
                    }
                }
            }
        });
        let data: Vec<Arg<'_>> = (0..DATA).map(I).collect();
        to.op(Opcode::Return, &[List(&data)]);
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 60 } else { 5000 }))]

    #[test]
    fn random_loops_give_the_same_with_machine_code(
        words in proptest::array::uniform12(word()),
        turns in 2..12,
        pieces in prop::collection::vec(piece(), 1..4),
        copies in prop::collection::vec((0..DATA, 0..DATA), 0..3),
        lengths in (60u64..300, 60u64..70),
        is_one_buffer in any::<bool>(),
    ) {
        let module = module(
            PROGRAM_CONVENTION,
            (REGISTERS, 2),
            &program(turns, &pieces, &copies),
        );
        let _ = check(&module, &words, || {
            let first = buffer(lengths.0);
            let second = if is_one_buffer { first.clone() } else { buffer(lengths.1) };
            vec![first, second]
        });
        prop_assert!(compiled(&module).iter().all(|is_compiled| *is_compiled != Some(!HAS_CODE)));
    }
}
