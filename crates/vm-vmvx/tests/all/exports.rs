//! The exports of the `vmvx` module against plain oracles.

use std::sync::Arc;

use proptest::prelude::*;
use vm::{Access, Buffer, Context, Ref, Result, StatusCode, Value};
use vm_vmvx::vmvx_module;

/// Calls an export.
fn call(name: &str, arguments: Vec<Value>) -> Result<Vec<Value>> {
    let context = Context::builder().module(vmvx_module()).build().unwrap();
    let function = context.lookup("vmvx", name).unwrap();
    context.invoke(&function, arguments)
}

fn buffer(words: &[u32]) -> Arc<Buffer> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Buffer::copied_from(&bytes, Access::HOST).unwrap()
}

fn bytes_buffer(bytes: &[u8]) -> Arc<Buffer> {
    Buffer::copied_from(bytes, Access::HOST).unwrap()
}

fn words(buffer: &Buffer) -> Vec<u32> {
    let bytes = buffer.to_vec();
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|chunk| u32::from_le_bytes(*chunk))
        .collect()
}

fn reference(buffer: &Arc<Buffer>) -> Value {
    Value::Ref(Arc::clone(buffer).into())
}

/// Arguments of an operand: buffer, offset and strides.
fn operand(buffer: &Arc<Buffer>, position: [i64; 3]) -> Vec<Value> {
    let mut values = vec![reference(buffer)];
    values.extend(position.map(Value::I64));
    values
}

fn unary(name: &str, input: &[u32], sizes: [i64; 2]) -> Result<Vec<u32>> {
    let (source, target) = (buffer(input), buffer(&vec![9; input.len()]));
    let mut arguments = operand(&source, [0, sizes[1], 1]);
    arguments.extend(operand(&target, [0, sizes[1], 1]));
    arguments.extend(sizes.map(Value::I64));
    call(name, arguments)?;
    Ok(words(&target))
}

fn binary(name: &str, left: u32, right: u32) -> Result<u32> {
    let target = buffer(&[0]);
    let mut arguments = operand(&buffer(&[left]), [0, 1, 1]);
    arguments.extend(operand(&buffer(&[right]), [0, 1, 1]));
    arguments.extend(operand(&target, [0, 1, 1]));
    arguments.extend([1, 1].map(Value::I64));
    call(name, arguments)?;
    Ok(words(&target)[0])
}

#[test]
fn the_module_has_the_documented_exports() {
    let module = vmvx_module();
    let mut names: Vec<&str> = module
        .exports()
        .iter()
        .map(|export| &*export.name)
        .collect();
    names.sort_unstable();
    assert_eq!(names.len(), 32);
    assert_eq!(
        (names[0], names[14], names[31]),
        ("abs.2d.f32", "fill.2d.x32", "xor.2d.i32")
    );
    let mmt4d = module
        .exports()
        .iter()
        .find(|export| &*export.name == "mmt4d")
        .unwrap();
    assert_eq!(mmt4d.convention.text(), "0rIIrIIrIIIIIiiii_v");
}

#[test]
fn integer_functions_agree_with_their_operators() {
    type Oracle = fn(u32, u32) -> u32;
    let functions: [(&str, Oracle); 9] = [
        ("add.2d.i32", u32::wrapping_add),
        ("sub.2d.i32", u32::wrapping_sub),
        ("mul.2d.i32", u32::wrapping_mul),
        ("and.2d.i32", |a, b| a & b),
        ("or.2d.i32", |a, b| a | b),
        ("xor.2d.i32", |a, b| a ^ b),
        ("shl.2d.i32", |a, b| a << (b % 32)),
        ("shru.2d.i32", |a, b| a >> (b % 32)),
        ("shrs.2d.i32", |a, b| {
            (a.cast_signed() >> (b % 32)).cast_unsigned()
        }),
    ];
    let edges = [0, 1, 31, 32, 33, 0x7FFF_FFFF, 0x8000_0000, u32::MAX];
    for (name, oracle) in functions {
        for left in edges {
            for right in edges {
                assert_eq!(
                    binary(name, left, right).unwrap(),
                    oracle(left, right),
                    "{name} {left} {right}"
                );
            }
        }
    }
}

#[test]
fn d18_division_by_zero_is_an_error_and_the_smallest_number_wraps() {
    for name in ["divs.2d.i32", "divu.2d.i32"] {
        assert_eq!(
            binary(name, 7, 0).unwrap_err().code(),
            StatusCode::INVALID_ARGUMENT
        );
    }
    let minimum = i32::MIN.cast_unsigned();
    assert_eq!(binary("divs.2d.i32", minimum, u32::MAX).unwrap(), minimum);
    assert_eq!(
        binary("divs.2d.i32", (-7i32).cast_unsigned(), 2).unwrap(),
        (-3i32).cast_unsigned()
    );
    assert_eq!(
        binary("divu.2d.i32", (-7i32).cast_unsigned(), 2).unwrap(),
        2_147_483_644
    );
}

#[test]
fn float_functions_keep_signs_and_specials() {
    let f32s = |name: &str, input: &[f32]| -> Vec<f32> {
        let bits: Vec<u32> = input.iter().map(|value| value.to_bits()).collect();
        let sizes = [1, i64::try_from(input.len()).unwrap()];
        unary(name, &bits, sizes)
            .unwrap()
            .into_iter()
            .map(f32::from_bits)
            .collect()
    };
    assert!(f32s("ceil.2d.f32", &[-0.5])[0].is_sign_negative());
    assert_eq!(f32s("floor.2d.f32", &[-0.5, 2.5]), [-1.0, 2.0]);
    assert_eq!(f32s("abs.2d.f32", &[-0.0, -3.0]), [0.0, 3.0]);
    assert!(f32s("neg.2d.f32", &[f32::NAN])[0].is_sign_negative());
    assert_eq!(
        f32s("exp.2d.f32", &[89.0, -104.0, 0.0]),
        [f32::INFINITY, 0.0, 1.0]
    );
    assert_eq!(f32s("log.2d.f32", &[0.0, 1.0]), [f32::NEG_INFINITY, 0.0]);
    assert_eq!(f32s("rsqrt.2d.f32", &[4.0, 0.0]), [0.5, f32::INFINITY]);
    assert_eq!(
        unary("ctlz.2d.i32", &[0, 1, u32::MAX], [1, 3]).unwrap(),
        [32, 31, 0]
    );
}

#[test]
fn a_stride_of_zero_broadcasts() {
    let target = buffer(&[0; 4]);
    let mut arguments = operand(&buffer(&[1, 2, 3, 4]), [0, 4, 1]);
    arguments.extend(operand(&buffer(&[10]), [0, 0, 0]));
    arguments.extend(operand(&target, [0, 4, 1]));
    arguments.extend([1, 4].map(Value::I64));
    call("add.2d.i32", arguments).unwrap();
    assert_eq!(words(&target), [11, 12, 13, 14]);
}

#[test]
fn fill_sets_rows_with_a_stride() {
    let target = buffer(&[0; 8]);
    let arguments = |offset, stride, rows| {
        let mut arguments = vec![Value::I32(7), reference(&target)];
        arguments.extend([offset, stride, rows, 3].map(Value::I64));
        arguments
    };
    call("fill.2d.x32", arguments(1, 4, 2)).unwrap();
    assert_eq!(words(&target), [0, 7, 7, 7, 0, 7, 7, 7]);
    assert_eq!(
        call("fill.2d.x32", arguments(2, 4, 2)).unwrap_err().code(),
        StatusCode::OUT_OF_RANGE
    );
    call("fill.2d.x32", arguments(0, 4, 0)).unwrap();
}

#[test]
fn misuse_is_told_in_the_words_of_the_reference() {
    let source = buffer(&[0; 4]);
    let constant = Buffer::constant(Arc::new([0u8; 16]), 0..16, Access::CONSTANT).unwrap();
    let copy = |input: Value, position: [i64; 3], output: Value| {
        let mut arguments = vec![input];
        arguments.extend(position.map(Value::I64));
        arguments.push(output);
        arguments.extend([0, 1, 1, 2, 2].map(Value::I64));
        call("copy.2d.x32", arguments).unwrap_err()
    };
    let error = copy(reference(&source), [0, 1, 1], reference(&constant));
    assert_eq!(
        error.message(),
        "buffer is read-only and cannot be mapped for mutation"
    );
    assert!(
        copy(Value::Ref(Ref::Null), [0, 1, 1], reference(&source))
            .message()
            .starts_with("ref is null")
    );
    assert_eq!(
        copy(reference(&source), [0, -2, 1], reference(&source)).message(),
        "buffer overflow for in"
    );
    let error = copy(reference(&source), [1, 2, 1], reference(&source));
    assert_eq!(
        error.message(),
        "out-of-bounds access detected (offset=4, length=16, alignment=4, buffer length=16)"
    );
}

#[test]
fn tile_sizes_are_the_same_on_every_machine() {
    let query = |flags: i32| {
        call(
            "query_tile_sizes.2d",
            vec![Value::I64(37), Value::I64(53), Value::I32(flags)],
        )
    };
    let expected = [
        (0x101, 8, 1),
        (0x102, 4, 1),
        (0x103, 8, 4),
        (0x202, 4, 2),
        (0x301, 8, 4),
        (0x603, 8, 8),
    ];
    for (flags, first, second) in expected {
        assert!(
            matches!(query(flags).unwrap()[..], [Value::I64(a), Value::I64(b)] if (a, b) == (first, second))
        );
    }
    for flags in [0, 1, 0x100, 0x104, 0x700, -1] {
        assert_eq!(
            query(flags).unwrap_err().code(),
            StatusCode::INVALID_ARGUMENT
        );
    }
}

#[test]
fn types_that_are_not_handled_are_told_before_the_buffers_are_looked_at() {
    let null = || Value::Ref(Ref::Null);
    let mut arguments = Vec::new();
    for _ in 0..3 {
        arguments.extend([null(), Value::I64(0), Value::I64(0)]);
    }
    arguments.extend([0, 0, 0].map(Value::I64));
    arguments.extend([1, 1, 1, 0x203].map(Value::I32));
    assert_eq!(
        call("mmt4d", arguments).unwrap_err().message(),
        "unhandled flags"
    );
    let mut arguments = vec![null()];
    arguments.extend([0; 3].map(Value::I64));
    arguments.push(null());
    arguments.extend([0; 10].map(Value::I64));
    arguments.push(Value::I32(4));
    assert_eq!(
        call("pack", arguments).unwrap_err().message(),
        "unhandled flags"
    );
}

/// What `pack` puts at each place of the tiled side, by the formula of its specification.
#[derive(Debug)]
struct Packing {
    rows: usize,
    columns: usize,
    outer: [usize; 2],
    tile: [usize; 2],
    flags: i32,
}

impl Packing {
    fn source_of(&self, place: usize) -> Option<usize> {
        let [_, second] = self.outer;
        let [height, width] = self.tile;
        let (left, top) = (place % width, place / width % height);
        let (b, a) = (
            place / (width * height) % second,
            place / (width * height) / second,
        );
        let (a, b) = if self.flags & 0x200 != 0 {
            (b, a)
        } else {
            (a, b)
        };
        let (i, j) = if self.flags & 0x100 != 0 {
            (left, top)
        } else {
            (top, left)
        };
        let tile = if self.flags & 0x100 != 0 {
            [width, height]
        } else {
            [height, width]
        };
        let (row, column) = (a * tile[0] + i, b * tile[1] + j);
        (row < self.rows && column < self.columns).then_some(row * self.columns + column)
    }

    fn tiled_length(&self) -> usize {
        self.outer[0] * self.outer[1] * self.tile[0] * self.tile[1]
    }

    fn tiled_sizes(&self) -> Vec<Value> {
        let [outer, tile] = [self.outer, self.tile];
        outer
            .iter()
            .chain(&tile)
            .map(|&size| Value::I64(i64::try_from(size).unwrap()))
            .collect()
    }

    fn matrix_sizes(&self) -> Vec<Value> {
        [self.rows, self.columns]
            .iter()
            .map(|&size| Value::I64(i64::try_from(size).unwrap()))
            .collect()
    }

    fn matrix_operand(&self, buffer: &Arc<Buffer>) -> Vec<Value> {
        operand(buffer, [0, i64::try_from(self.columns).unwrap(), 1])
    }

    fn tiled_operand(&self, buffer: &Arc<Buffer>) -> Vec<Value> {
        let stride = self.outer[1] * self.tile[0] * self.tile[1];
        // The second stride is not used.
        operand(buffer, [0, i64::try_from(stride).unwrap(), 12345])
    }
}

prop_compose! {
    fn packing()(
        tile in prop::array::uniform2(1usize..5),
        outer in prop::array::uniform2(1usize..4),
        cut in prop::array::uniform2(0usize..4),
        flags in prop::sample::select(vec![0, 0x100, 0x200, 0x300]),
    ) -> Packing {
        let swap = |pair: [usize; 2], swapped: bool| if swapped { [pair[1], pair[0]] } else { pair };
        let (outers, tiles) = (swap(outer, flags & 0x200 != 0), swap(tile, flags & 0x100 != 0));
        let size = |index: usize| (outers[index] * tiles[index]).saturating_sub(cut[index]).max(1);
        Packing { rows: size(0), columns: size(1), outer, tile, flags }
    }
}

proptest! {
    #[test]
    fn pack_follows_its_formula_and_unpack_undoes_it(packing in packing(), padding in any::<u32>()) {
        let matrix: Vec<u32> = (0..u32::try_from(packing.rows * packing.columns).unwrap()).map(|i| i + 100).collect();
        let (source, tiled) = (buffer(&matrix), buffer(&vec![0; packing.tiled_length()]));
        let mut arguments = packing.matrix_operand(&source);
        arguments.extend(packing.tiled_operand(&tiled));
        arguments.extend(packing.matrix_sizes());
        arguments.extend(packing.tiled_sizes());
        arguments.extend([Value::I64(padding.into()), Value::I32(3 | packing.flags)]);
        call("pack", arguments).unwrap();
        let expected: Vec<u32> = (0..packing.tiled_length())
            .map(|place| packing.source_of(place).map_or(padding, |at| matrix[at]))
            .collect();
        prop_assert_eq!(words(&tiled), expected);

        let back = buffer(&vec![0; matrix.len()]);
        let mut arguments = packing.tiled_operand(&tiled);
        arguments.extend(packing.matrix_operand(&back));
        arguments.extend(packing.tiled_sizes());
        arguments.extend(packing.matrix_sizes());
        arguments.push(Value::I32(3 | packing.flags));
        call("unpack", arguments).unwrap();
        prop_assert_eq!(words(&back), matrix);
    }

    #[test]
    fn a_matrix_larger_than_its_tiles_is_refused(mut packing in packing(), extra in 1usize..9) {
        let swapped = packing.flags & 0x200 != 0;
        let tile = if packing.flags & 0x100 != 0 { packing.tile[1] } else { packing.tile[0] };
        packing.rows = packing.outer[usize::from(swapped)] * tile + extra;
        let (source, tiled) = (buffer(&vec![1; packing.rows * packing.columns]), buffer(&vec![0; packing.tiled_length()]));
        let mut arguments = packing.matrix_operand(&source);
        arguments.extend(packing.tiled_operand(&tiled));
        arguments.extend(packing.matrix_sizes());
        arguments.extend(packing.tiled_sizes());
        arguments.extend([Value::I64(0), Value::I32(3 | packing.flags)]);
        prop_assert_eq!(call("pack", arguments).unwrap_err().code(), StatusCode::INVALID_ARGUMENT);
        prop_assert!(words(&tiled).iter().all(|&word| word == 0));
    }

    #[test]
    fn mmt4d_agrees_with_a_plain_loop(
        sizes in prop::array::uniform6(1usize..6), accumulates in any::<bool>(), seed in any::<u32>(), floats in any::<bool>(),
    ) {
        let [m, n, k, m0, n0, k0] = sizes;
        let number = |index: usize| (u32::try_from(index).unwrap().wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13 & 0xFF) as u8;
        let left: Vec<u8> = (0..m * k * m0 * k0).map(number).collect();
        let right: Vec<u8> = (0..n * k * n0 * k0).map(|index| number(index + 999)).collect();
        let start: Vec<u8> = (0..m * n * m0 * n0).map(|index| number(index + 77)).collect();
        let float = |byte: u8| f32::from(byte.cast_signed()) / 7.0;
        let bits = |byte: u8| if floats { float(byte).to_bits() } else { u32::from(byte) };
        let output = buffer(&start.iter().map(|&byte| bits(byte)).collect::<Vec<_>>());
        let inputs = |values: &[u8]| match floats {
            true => buffer(&values.iter().map(|&byte| bits(byte)).collect::<Vec<_>>()),
            false => bytes_buffer(values),
        };
        let mut arguments = Vec::new();
        for (operand, stride) in [(&inputs(&left), k * m0 * k0), (&inputs(&right), k * n0 * k0), (&output, n * m0 * n0)] {
            arguments.extend([reference(operand), Value::I64(0), Value::I64(i64::try_from(stride).unwrap())]);
        }
        arguments.extend([m, n, k].map(|size| Value::I64(i64::try_from(size).unwrap())));
        arguments.extend([m0, n0, k0].map(|size| Value::I32(i32::try_from(size).unwrap())));
        arguments.push(Value::I32(if floats { 0x201 } else { 0x202 } | if accumulates { 0x100 } else { 0 }));
        call("mmt4d", arguments).unwrap();

        let mut expected = Vec::new();
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            for (i0, j0) in (0..m0).flat_map(|i0| (0..n0).map(move |j0| (i0, j0))) {
                let at = expected.len();
                let mut float_sum = if accumulates { float(start[at]) } else { 0.0 };
                let mut integer_sum = if accumulates { i32::from(start[at]) } else { 0 };
                for (step, q) in (0..k).flat_map(|step| (0..k0).map(move |q| (step, q))) {
                    let a = left[((i * k + step) * m0 + i0) * k0 + q];
                    let b = right[((j * k + step) * n0 + j0) * k0 + q];
                    float_sum += float(a) * float(b);
                    integer_sum += i32::from(a.cast_signed()) * i32::from(b.cast_signed());
                }
                expected.push(if floats { float_sum.to_bits() } else { integer_sum.cast_unsigned() });
            }
        }
        prop_assert_eq!(words(&output), expected);
    }

    #[test]
    fn any_numbers_give_a_result_or_an_error(numbers in prop::collection::vec(prop_oneof![-3i64..40, any::<i64>()], 14), flags in any::<i32>()) {
        let (source, target) = (buffer(&[1; 16]), buffer(&[2; 16]));
        let number = |index: usize| Value::I64(numbers[index]);
        let mut pack = vec![reference(&source), number(0), number(1), number(2), reference(&target)];
        pack.extend((3..13).map(number));
        pack.push(Value::I32(flags & 0x303));
        let _ = call("pack", pack);
        let mut product = Vec::new();
        for operand in 0..3 {
            let buffer = if operand == 2 { &target } else { &source };
            product.extend([reference(buffer), number(operand), number(operand + 3)]);
        }
        product.extend((6..9).map(number));
        product.extend((9..12).map(|index| Value::I32((numbers[index] & 0xFFFF_FFFF) as i32)));
        product.push(Value::I32(flags & 0x303));
        let _ = call("mmt4d", product);
        let mut copy = vec![reference(&source), number(0), number(1), number(2), reference(&target)];
        copy.extend((3..8).map(number));
        let _ = call("copy.2d.x16", copy);
    }
}

/// Arguments that ask for 2^32 - 1 rows, all in the same place: for `fill`, an elementwise function, `pack` and `mmt4d`.
fn repeated_rows() -> [(&'static str, Vec<Value>); 4] {
    let rows = i64::from(u32::MAX);
    let target = buffer(&[0; 4]);
    let place = || operand(&target, [0, 0, 1]);
    let numbers = |numbers: &[i64]| {
        let numbers = numbers.iter().copied().map(Value::I64);
        numbers.collect::<Vec<_>>()
    };
    let row_of_tiles = || [vec![reference(&target)], numbers(&[0, 0])].concat();
    let tiles = [Value::I32(1), Value::I32(1), Value::I32(1), Value::I32(1)];
    [
        (
            "fill.2d.x32",
            [
                vec![Value::I32(5), reference(&target)],
                numbers(&[0, 0, rows, 4]),
            ]
            .concat(),
        ),
        (
            "add.2d.i32",
            [place(), place(), place(), numbers(&[rows, 4])].concat(),
        ),
        (
            "pack",
            [
                place(),
                place(),
                numbers(&[1, 1, rows, 1, 1, 1, 0]),
                vec![Value::I32(3)],
            ]
            .concat(),
        ),
        (
            "mmt4d",
            [
                row_of_tiles(),
                row_of_tiles(),
                row_of_tiles(),
                numbers(&[rows, 1, 0]),
                tiles.into(),
            ]
            .concat(),
        ),
    ]
}

#[test]
fn rows_that_share_their_place_are_counted_and_can_be_interrupted() {
    for (name, arguments) in repeated_rows() {
        let context = Context::builder().module(vmvx_module()).build().unwrap();
        let function = context.lookup("vmvx", name).unwrap();
        let options = vm::InvocationOptions {
            fuel: Some(100),
            tracer: None,
        };
        let trap = context
            .invoke_with(&function, arguments.clone(), options)
            .unwrap_err();
        assert_eq!(trap.code(), StatusCode::DEADLINE_EXCEEDED, "{name}: {trap}");
        context.interrupt_handle().interrupt();
        let trap = context.invoke(&function, arguments).unwrap_err();
        assert_eq!(trap.code(), StatusCode::CANCELLED, "{name}: {trap}");
    }
}

#[test]
fn sizes_of_a_product_beside_a_zero_need_not_fit() {
    let target = buffer(&[0; 4]);
    let huge = i64::from(u32::MAX);
    let mut arguments = Vec::new();
    for _ in 0..3 {
        arguments.extend([reference(&target), Value::I64(0), Value::I64(0)]);
    }
    arguments.extend([huge, huge, 1].map(Value::I64));
    arguments.extend([2, 0, 0, 1].map(Value::I32));
    call("mmt4d", arguments).unwrap();
}
