//! Functions on `hal.buffer_view`.

use vm::{Ref, Result, StatusCode, Value};
use vm_hal_inline::{BUFFER_VIEW_TYPE, BufferView, ElementType, EncodingType, HAL_BUFFER_TYPE};

use crate::program::{Program, check_failure, constant, only_i32, only_i64, only_ref, value};

const DENSE: EncodingType = EncodingType::DENSE_ROW_MAJOR;

/// Element type, encoding and dimensions, as functions take them last.
struct Description<'a>(ElementType, EncodingType, &'a [i64]);

impl Description<'_> {
    fn values(&self) -> impl Iterator<Item = Value> {
        let types = [self.0.raw(), self.1.raw()].map(|raw| Value::I32(raw.cast_signed()));
        types
            .into_iter()
            .chain(self.2.iter().map(|dimension| Value::I64(*dimension)))
    }
}

fn create_in(
    program: &Program,
    buffer: &Ref,
    (offset, length): (i64, i64),
    description: &Description<'_>,
) -> Result<Ref> {
    let mut arguments = vec![value(buffer), Value::I64(offset), Value::I64(length)];
    arguments.extend(description.values());
    program
        .call_spans("buffer_view.create", &[description.2.len()], arguments)
        .map(only_ref)
}

/// Creates a view of a new buffer of 100 bytes.
fn create(program: &Program, description: &Description<'_>) -> Result<Ref> {
    create_in(program, &program.allocate(100).0, (0, 100), description)
}

fn assert_view(program: &Program, view: &Ref, expected: &Description<'_>) -> Result<()> {
    let mut arguments = vec![value(view), constant("input0")];
    arguments.extend(expected.values());
    check_by_block_and_from_site(program, expected.2.len(), arguments)
}

/// Calls `buffer_view.assert` by its block and from a place that was prepared for it, which must come to the same.
fn check_by_block_and_from_site(
    program: &Program,
    rank: usize,
    arguments: Vec<Value>,
) -> Result<()> {
    let names = ["buffer_view.assert", "buffer_view.assert_from_site"];
    let [by_block, from_site] =
        names.map(|name| program.call_spans(name, &[rank], arguments.clone()));
    let text = |result: &Result<Vec<Value>>| match result {
        Ok(results) => format!("{} results", results.len()),
        Err(trap) => format!("{:?}: {}", trap.code(), trap.message()),
    };
    assert_eq!(text(&by_block), text(&from_site));
    by_block.map(|results| assert!(results.is_empty()))
}

fn dimension(program: &Program, view: &Ref, index: i32) -> i64 {
    only_i64(
        &program
            .call("buffer_view.dim", [value(view), Value::I32(index)])
            .unwrap(),
    )
}

#[test]
fn a_view_tells_what_it_was_created_with() {
    let program = Program::new();
    for shape in [&[][..], &[5], &[2, 3], &[1, 1, 1, 1, 1, 1, 2, 3], &[0, 7]] {
        let view = create(&program, &Description(ElementType::F32, DENSE, shape)).unwrap();
        let ask = |function| only_i32(&program.call(function, [value(&view)]).unwrap());
        assert_eq!(ask("buffer_view.rank"), i32::try_from(shape.len()).unwrap());
        assert_eq!(ask("buffer_view.element_type"), 553_648_160);
        assert_eq!(ask("buffer_view.encoding_type"), 1);
        for (index, expected) in (0..).zip(shape) {
            assert_eq!(dimension(&program, &view, index), *expected);
        }
    }
}

#[test]
fn a_dimension_that_does_not_exist_is_zero() {
    let program = Program::new();
    let view = create(&program, &Description(ElementType::F32, DENSE, &[2, 3])).unwrap();
    for index in [2, 3, i32::MAX, -1, i32::MIN] {
        assert_eq!(dimension(&program, &view, index), 0);
    }
}

#[test]
fn a_view_of_a_whole_buffer_returns_that_buffer() {
    let program = Program::new();
    let (buffer, _) = program.allocate(24);
    let description = Description(ElementType::F32, DENSE, &[2, 3]);
    for length in [24, -1] {
        let view = create_in(&program, &buffer, (0, length), &description).unwrap();
        let found = program
            .call_ref("buffer_view.buffer", [value(&view)])
            .unwrap();
        assert!(found.same(&buffer));
    }
}

#[test]
fn a_view_of_a_part_returns_that_part() {
    let program = Program::new();
    let (buffer, storage) = program.allocate(24);
    let description = Description(ElementType::I8, DENSE, &[8]);
    let view = create_in(&program, &buffer, (16, 8), &description).unwrap();
    let found = program
        .call_ref("buffer_view.buffer", [value(&view)])
        .unwrap();
    let found = found.as_aliased(&HAL_BUFFER_TYPE).unwrap();
    storage.as_buffer().unwrap().store::<u8>(16, 5).unwrap();
    assert_eq!((found.length(), found.load::<u8>(0).unwrap()), (8, 5));
    check_failure(
        create_in(&program, &buffer, (17, 8), &description),
        StatusCode::OUT_OF_RANGE,
        "out-of-bounds access detected (offset=17, length=8, alignment=1, buffer length=24)",
    );
}

#[test]
fn a_view_keeps_its_buffer_alive() {
    let program = Program::new();
    let (buffer, storage) = program.allocate(100);
    storage.as_buffer().unwrap().store::<u32>(0, 77).unwrap();
    let description = Description(ElementType::I32, DENSE, &[1]);
    let view = create_in(&program, &buffer, (0, 100), &description).unwrap();
    drop((buffer, storage, program));
    let view: &BufferView = view.as_object(&BUFFER_VIEW_TYPE).unwrap();
    assert_eq!(view.buffer().load::<u32>(0).unwrap(), 77);
}

#[test]
fn a_view_larger_than_its_range_is_refused() {
    let program = Program::new();
    check_failure(
        create(&program, &Description(ElementType::F32, DENSE, &[26])),
        StatusCode::OUT_OF_RANGE,
        "buffer view byte length 104 exceeds backing buffer byte length 100",
    );
    let (buffer, _) = program.allocate(100);
    check_failure(
        create_in(
            &program,
            &buffer,
            (40, 8),
            &Description(ElementType::F64, DENSE, &[2]),
        ),
        StatusCode::OUT_OF_RANGE,
        "buffer view byte length 16 exceeds backing buffer byte length 8",
    );
    // What the encoding does not tell is not checked.
    assert!(
        create(
            &program,
            &Description(ElementType::F32, EncodingType::OPAQUE, &[26])
        )
        .is_ok()
    );
}

#[test]
fn packed_elements_fill_their_bytes() {
    let program = Program::new();
    assert!(create(&program, &Description(ElementType::I4, DENSE, &[2, 100])).is_ok());
    check_failure(
        create(&program, &Description(ElementType::I4, DENSE, &[3, 67])),
        StatusCode::OUT_OF_RANGE,
        "buffer view byte length 101 exceeds backing buffer byte length 100",
    );
}

#[test]
fn shapes_that_overflow_or_say_nothing_are_refused() {
    let program = Program::new();
    check_failure(
        create(
            &program,
            &Description(ElementType::I8, DENSE, &[1 << 32, 1 << 32]),
        ),
        StatusCode::OUT_OF_RANGE,
        "the byte length of a buffer view of shape `4294967296x4294967296` and type i8 overflows",
    );
    check_failure(
        create(&program, &Description(ElementType::F32, DENSE, &[-1])),
        StatusCode::OUT_OF_RANGE,
        "the byte length of a buffer view of shape `18446744073709551615` and type f32 overflows",
    );
    check_failure(
        create(
            &program,
            &Description(ElementType::from_raw(0), DENSE, &[4]),
        ),
        StatusCode::INVALID_ARGUMENT,
        "opaque element types cannot be indexed: the element type *0 (0x00000000) has no size",
    );
}

#[test]
fn more_than_128_dimensions_are_refused() {
    let program = Program::new();
    let most = [1; 128];
    let view = create(&program, &Description(ElementType::F32, DENSE, &most)).unwrap();
    assert!(
        assert_view(
            &program,
            &view,
            &Description(ElementType::F32, DENSE, &most)
        )
        .is_ok()
    );
    let message = "a buffer view of rank 129 exceeds the limit of 128 dimensions";
    let too_many = Description(ElementType::F32, DENSE, &[1; 129]);
    check_failure(
        create(&program, &too_many),
        StatusCode::OUT_OF_RANGE,
        message,
    );
    check_failure(
        assert_view(&program, &view, &too_many),
        StatusCode::OUT_OF_RANGE,
        message,
    );
}

#[track_caller]
fn check_assert(actual: &Description<'_>, expected: &Description<'_>, message: Option<&str>) {
    let program = Program::new();
    let view = create(&program, actual).unwrap();
    let result = assert_view(&program, &view, expected);
    match message {
        None => result.unwrap(),
        Some(message) => check_failure(result, StatusCode::INVALID_ARGUMENT, message),
    }
}

#[test]
fn a_view_as_expected_passes() {
    let f32 = |shape| Description(ElementType::F32, DENSE, shape);
    check_assert(&f32(&[]), &f32(&[]), None);
    check_assert(&f32(&[4]), &f32(&[4]), None);
    check_assert(&f32(&[0, 7]), &f32(&[0, 7]), None);
    check_assert(
        &f32(&[1, 1, 1, 1, 1, 1, 5, 5]),
        &f32(&[1, 1, 1, 1, 1, 1, 5, 5]),
        None,
    );
}

#[test]
fn an_encoding_that_differs_is_named() {
    check_assert(
        &Description(ElementType::F32, DENSE, &[4]),
        &Description(ElementType::F32, EncodingType::OPAQUE, &[4]),
        Some("input0 encoding mismatch; expected 00000000 but have 00000001"),
    );
    check_assert(
        &Description(ElementType::F32, EncodingType::OPAQUE, &[4]),
        &Description(ElementType::F32, DENSE, &[4]),
        None,
    );
}

#[test]
fn an_element_type_that_differs_is_named() {
    for (actual, expected, message) in [
        (
            ElementType::F64,
            ElementType::F32,
            "expected f32 (21000020) but have f64 (21000040)",
        ),
        (
            ElementType::I32,
            ElementType::F32,
            "expected f32 (21000020) but have i32 (10000020)",
        ),
        (
            ElementType::F32,
            ElementType::OPAQUE_8,
            "expected *8 (00000008) but have f32 (21000020)",
        ),
        (
            ElementType::F8E5M2,
            ElementType::F8E4M3FN,
            "expected f8E4M3FN (25000008) but have f8E5M2 (24000008)",
        ),
        (
            ElementType::F32,
            ElementType::from_raw(u32::MAX),
            "expected *255 (FFFFFFFF) but have f32 (21000020)",
        ),
    ] {
        check_assert(
            &Description(actual, DENSE, &[4]),
            &Description(expected, DENSE, &[4]),
            Some(&format!("input0 element type mismatch; {message}")),
        );
    }
}

#[test]
fn integers_of_one_width_and_opaque_elements_are_interchangeable() {
    for (actual, expected) in [
        (ElementType::SI32, ElementType::I32),
        (ElementType::I8, ElementType::BOOL_8),
        (ElementType::BOOL_8, ElementType::UI8),
        (ElementType::OPAQUE_32, ElementType::F32),
        (ElementType::OPAQUE_8, ElementType::F64),
    ] {
        check_assert(
            &Description(actual, DENSE, &[4]),
            &Description(expected, DENSE, &[4]),
            None,
        );
    }
}

#[test]
fn a_shape_that_differs_is_named() {
    for (actual, expected, message) in [
        (
            &[3, 1][..],
            &[3][..],
            "shape rank mismatch; expected 1 but have 2; expected shape `3`, actual shape `3x1`",
        ),
        (
            &[4],
            &[],
            "shape rank mismatch; expected 0 (scalar) but have 1; expected shape ``, actual shape `4`",
        ),
        (
            &[],
            &[4],
            "shape rank mismatch; expected 1 but have 0 (scalar); expected shape `4`, actual shape ``",
        ),
        (
            &[5],
            &[4],
            "shape dimension 0 mismatch; expected 4 but have 5; expected shape `4`, actual shape `5`",
        ),
        (
            &[2, 3, 4],
            &[2, 9, 8],
            "shape dimension 1 mismatch; expected 9 but have 3; expected shape `2x9x8`, \
             actual shape `2x3x4`",
        ),
        (
            &[5],
            &[-1],
            "shape dimension 0 mismatch; expected 18446744073709551615 but have 5; \
             expected shape `18446744073709551615`, actual shape `5`",
        ),
    ] {
        check_assert(
            &Description(ElementType::I8, DENSE, actual),
            &Description(ElementType::I8, DENSE, expected),
            Some(&format!("input0 {message}")),
        );
    }
}

#[test]
fn the_first_difference_is_the_one_named() {
    let actual = Description(ElementType::F64, DENSE, &[2]);
    check_assert(
        &actual,
        &Description(ElementType::F32, EncodingType::from_raw(7), &[3]),
        Some("input0 encoding mismatch; expected 00000007 but have 00000001"),
    );
    check_assert(
        &actual,
        &Description(ElementType::F32, DENSE, &[3]),
        Some("input0 element type mismatch; expected f32 (21000020) but have f64 (21000040)"),
    );
}

#[test]
fn null_and_refs_of_other_types_are_refused() {
    let program = Program::new();
    let invalid = StatusCode::INVALID_ARGUMENT;
    let description = Description(ElementType::F32, DENSE, &[4]);
    let (buffer, storage) = program.allocate(16);
    for (reference, message) in [
        (&Ref::Null, "ref is null; expected hal.buffer_view"),
        (
            &buffer,
            "ref type mismatch; expected hal.buffer_view but have hal.buffer",
        ),
    ] {
        for function in [
            "buffer_view.buffer",
            "buffer_view.element_type",
            "buffer_view.encoding_type",
            "buffer_view.rank",
        ] {
            check_failure(program.call(function, [value(reference)]), invalid, message);
        }
        let dim = program.call("buffer_view.dim", [value(reference), Value::I32(0)]);
        check_failure(dim, invalid, message);
        check_failure(
            assert_view(&program, reference, &description),
            invalid,
            message,
        );
    }
    check_failure(
        create_in(&program, &Ref::Null, (0, 16), &description),
        invalid,
        "ref is null; expected hal.buffer",
    );
    check_failure(
        create_in(&program, &storage, (0, 16), &description),
        invalid,
        "ref type mismatch; expected hal.buffer but have vm.buffer",
    );
    let view = create_in(&program, &buffer, (0, 16), &description).unwrap();
    let mut arguments = vec![value(&view), Value::Ref(Ref::Null)];
    arguments.extend(description.values());
    check_failure(
        check_by_block_and_from_site(&program, 1, arguments),
        invalid,
        "ref is null; expected vm.buffer",
    );
}
