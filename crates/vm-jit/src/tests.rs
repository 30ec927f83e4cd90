//! What may be compiled and run, and what compiled code leaves alone.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::*;

static FLAG: AtomicBool = AtomicBool::new(false);

/// Returns a loop of one block: `operations`, then exit 0 with the code 1. The variables are a pair at offset 0 and a word
/// and a pair at 8 and 12, all loaded and stored; exit 1 stores nothing and has the code 2.
pub(crate) fn straight(operations: Vec<Operation>) -> Loop {
    let places = [0, 8, 12].into_iter().zip(0..);
    let places: Vec<Transfer> = places
        .map(|(offset, variable)| Transfer {
            variable: Variable(variable),
            offset,
        })
        .collect();
    Loop {
        variables: vec![Width::Pair, Width::Word, Width::Pair],
        loads: places.clone(),
        blocks: vec![Block {
            operations,
            terminator: Terminator::Exit(ExitIndex(0)),
        }],
        exits: vec![
            Exit {
                stores: places,
                code: 1,
            },
            Exit {
                stores: Vec::new(),
                code: 2,
            },
        ],
        buffer_count: 1,
    }
}

/// Returns the registers of [`straight`].
fn registers(pair: u64) -> [u8; 20] {
    let mut registers = [0x55; 20];
    registers[..8].copy_from_slice(&pair.to_le_bytes());
    registers
}

fn load(element: Element) -> Operation {
    let to = match element.value_type().width() {
        Width::Word => Variable(1),
        Width::Pair => Variable(2),
    };
    Operation::Load {
        element,
        to,
        buffer: BufferIndex(0),
        index: Variable(0),
        exit: ExitIndex(1),
    }
}

fn store(element: Element) -> Operation {
    let value = match element.value_type().width() {
        Width::Word => Variable(1),
        Width::Pair => Variable(2),
    };
    Operation::Store {
        element,
        buffer: BufferIndex(0),
        index: Variable(0),
        value,
        exit: ExitIndex(1),
    }
}

/// Compiles where that can be done.
pub(crate) fn compile(body: &Loop) -> Option<CompiledLoop> {
    match CompiledLoop::compile(body) {
        Ok(code) => Some(code),
        Err(CompileError::Host(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

const ELEMENTS: [Element; 8] = [
    Element::Byte,
    Element::SignedByte,
    Element::Half,
    Element::SignedHalf,
    Element::Whole(Type::I32),
    Element::Whole(Type::F32),
    Element::Whole(Type::I64),
    Element::Whole(Type::F64),
];

#[test]
fn what_is_malformed_is_refused() {
    let word = Variable(1);
    let copy = |to, from| straight(vec![Operation::Copy { to, from }]);
    let mut jump = straight(Vec::new());
    jump.blocks[0].terminator = Terminator::Jump(BlockIndex(1));
    let mut exit = straight(Vec::new());
    exit.blocks[0].terminator = Terminator::Exit(ExitIndex(2));
    let mut place = straight(Vec::new());
    place.loads[0].offset = MAX_REGISTER_BYTES;
    let mut buffers = straight(Vec::new());
    buffers.buffer_count = 17;
    let mut buffer = straight(vec![load(Element::Byte)]);
    buffer.buffer_count = 0;
    let float_bits = Operation::Binary {
        operation: Binary::And,
        on: Type::F32,
        to: word,
        left: word,
        right: word,
    };
    let malformed = [
        Loop::default(),
        copy(word, Variable(0)),
        copy(word, Variable(3)),
        jump,
        exit,
        place,
        buffers,
        buffer,
        straight(vec![float_bits]),
    ];
    for body in malformed {
        let outcome = CompiledLoop::compile(&body);
        assert!(
            matches!(outcome, Err(CompileError::Malformed(_))),
            "{body:?}"
        );
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused_and_left_alone() {
    let Some(code) = compile(&straight(vec![store(Element::Byte)])) else {
        return;
    };
    let bytes = [const { AtomicU8::new(0) }; 4];
    let (writable, read_only) = (Span::writable(&bytes), Span::read_only(&bytes));
    let mut words = registers(0);
    assert_eq!(code.run(&mut words[..19], &[writable], &FLAG), None);
    assert_eq!(code.run(&mut words, &[], &FLAG), None);
    assert_eq!(code.run(&mut words, &[writable, writable], &FLAG), None);
    assert_eq!(code.run(&mut words, &[read_only], &FLAG), None);
    assert_eq!(
        code.run(&mut words, &[Span::constant(&[0; 4])], &FLAG),
        None
    );
    assert_eq!(words, registers(0));
    assert_eq!(bytes[0].load(Ordering::Relaxed), 0);
    assert_eq!(code.run(&mut words, &[writable], &FLAG), Some(1));
    assert_eq!(bytes[0].load(Ordering::Relaxed), 0x55);
}

#[test]
fn an_element_is_accessed_only_when_all_its_bytes_are_in_the_buffer() {
    for element in ELEMENTS {
        let size = 1u64 << element.size_exponent();
        let [Some(loading), Some(storing)] =
            [load(element), store(element)].map(|operation| compile(&straight(vec![operation])))
        else {
            return;
        };
        for length in 0..20 {
            // The bytes around the buffer must stay what they are.
            let bytes: Vec<AtomicU8> = (0..40).map(AtomicU8::new).collect();
            let span = Span::writable(&bytes[10..10 + length]);
            let count = length as u64 / size;
            let wrapping = [
                u64::MAX,
                u64::MAX / size,
                (u64::MAX / size).wrapping_add(1),
                1 << 63,
            ];
            for index in (0..24).chain(wrapping) {
                let expected = if index < count { 1 } else { 2 };
                let case = format!("{element:?}, {length} bytes, index {index}");
                let mut words = registers(index);
                assert_eq!(
                    loading.run(&mut words, &[span], &FLAG),
                    Some(expected),
                    "{case}"
                );
                assert_eq!(
                    storing.run(&mut words, &[span], &FLAG),
                    Some(expected),
                    "{case}"
                );
            }
            let outside = (0..10).chain(10 + length..40);
            for at in outside {
                let byte = usize::from(bytes[at].load(Ordering::Relaxed));
                assert_eq!(byte, at, "{element:?}, {length} bytes");
            }
        }
    }
}

#[test]
fn loads_extend_and_stores_cut() {
    let bytes: Vec<AtomicU8> = [0xF1, 0xF2, 3, 4, 5, 6, 7, 0xF8].map(AtomicU8::new).into();
    let expected = [
        (Element::Byte, 0xF1),
        (Element::SignedByte, 0xFFFF_FFF1),
        (Element::Half, 0xF2F1),
        (Element::SignedHalf, 0xFFFF_F2F1),
        (Element::Whole(Type::F32), 0x0403_F2F1),
        (Element::Whole(Type::F64), 0xF807_0605_0403_F2F1u64),
    ];
    for (element, expected) in expected {
        let Some(code) = compile(&straight(vec![load(element), store(element)])) else {
            return;
        };
        let mut words = registers(0);
        assert_eq!(
            code.run(&mut words, &[Span::writable(&bytes)], &FLAG),
            Some(1)
        );
        let found = match element.value_type().width() {
            Width::Word => u32::from_le_bytes(*words[8..].first_chunk().unwrap()).into(),
            Width::Pair => u64::from_le_bytes(*words[12..].first_chunk().unwrap()),
        };
        assert_eq!(found, expected, "{element:?}");
    }
    assert_eq!(bytes[0].load(Ordering::Relaxed), 0xF1);
    assert_eq!(bytes[7].load(Ordering::Relaxed), 0xF8);
}

#[test]
fn an_endless_loop_ends_when_the_flag_is_set() {
    let mut body = straight(vec![Operation::Poll { exit: ExitIndex(1) }]);
    body.blocks[0].terminator = Terminator::Jump(BlockIndex(0));
    let Some(code) = compile(&body) else {
        return;
    };
    let span = Span::constant(&[]);
    assert_eq!(
        code.run(&mut registers(0), &[span], &AtomicBool::new(true)),
        Some(2)
    );
}

#[test]
fn code_can_be_shared_by_threads() {
    fn is_shareable<T: Send + Sync>() {}
    is_shareable::<CompiledLoop>();
}
