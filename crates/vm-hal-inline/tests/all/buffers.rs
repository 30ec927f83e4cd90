//! Functions on `hal.buffer`.

use std::sync::Arc;

use vm::{BUFFER_ALIGNMENT, Buffer, Ref, Signal, StatusCode, Value};
use vm_hal_inline::HAL_BUFFER_TYPE;

use crate::program::{Program, check_failure, constant, only_i64, value};

const NULL: Value = Value::Ref(Ref::Null);

fn length(program: &Program, buffer: &Ref) -> i64 {
    only_i64(&program.call("buffer.length", [value(buffer)]).unwrap())
}

#[test]
fn an_allocated_buffer_and_its_storage_are_the_same_memory() {
    let program = Program::new();
    let (buffer, storage) = program.allocate(100);
    assert_eq!(length(&program, &buffer), 100);
    let memory = buffer.as_aliased(&HAL_BUFFER_TYPE).unwrap();
    assert!(Arc::ptr_eq(memory, storage.as_buffer().unwrap()));
    assert!(memory.address().is_multiple_of(BUFFER_ALIGNMENT));
    assert!(memory.access().is_mutable());
    let again = program
        .call_ref("buffer.storage", [value(&buffer)])
        .unwrap();
    assert!(again.same(&storage));
}

#[test]
fn a_buffer_may_be_empty() {
    let program = Program::new();
    let (buffer, _) = program.allocate(0);
    assert_eq!(length(&program, &buffer), 0);
}

#[test]
fn an_allocation_takes_the_memory_of_one_that_is_gone() {
    let program = Program::new();
    let (buffer, storage) = program.allocate(4096);
    let address = storage.as_buffer().unwrap().address();
    drop((buffer, storage));
    let (_, storage) = program.allocate(4096);
    assert_eq!(storage.as_buffer().unwrap().address(), address);
}

#[test]
fn memory_that_no_buffer_uses_is_freed_on_a_signal() {
    for (signal, is_kept) in [
        (Signal::Resume, true),
        (Signal::Suspend, false),
        (Signal::LowMemory, false),
    ] {
        let program = Program::new();
        let (buffer, storage) = program.allocate(4096);
        storage.as_buffer().unwrap().store::<u8>(9, 1).unwrap();
        drop((buffer, storage));
        program.notify(signal);
        // Memory of the pool is handed out as it was left, new memory is zero.
        let (_, storage) = program.allocate(4096);
        let byte = storage.as_buffer().unwrap().load::<u8>(9).unwrap();
        assert_eq!(byte == 1, is_kept, "{signal:?}");
    }
}

#[test]
fn c8_an_allocation_that_cannot_be_had_is_an_error() {
    let program = Program::new();
    for length in [-1, i64::MIN, i64::MAX, 1 << 62] {
        check_failure(
            program.call("buffer.allocate", [Value::I32(64), Value::I64(length)]),
            StatusCode::RESOURCE_EXHAUSTED,
            &format!(
                "cannot allocate a buffer of {} bytes aligned to 64",
                length.cast_unsigned()
            ),
        );
    }
}

#[test]
fn an_alignment_is_a_power_of_two() {
    let program = Program::new();
    for alignment in [0, 1, 64, 4096] {
        assert!(
            program
                .call("buffer.allocate", [Value::I32(alignment), Value::I64(8)])
                .is_ok()
        );
    }
    for alignment in [3, -1, -64, i32::MIN] {
        check_failure(
            program.call("buffer.allocate", [Value::I32(alignment), Value::I64(8)]),
            StatusCode::INVALID_ARGUMENT,
            &format!(
                "buffer alignment {} is not a power of two",
                i64::from(alignment).cast_unsigned()
            ),
        );
    }
}

fn initialized(
    program: &Program,
    source: Value,
    offset: i64,
    length: i64,
) -> vm::Result<Vec<Value>> {
    let (offset, length) = (Value::I64(offset), Value::I64(length));
    program.call(
        "buffer.allocate.initialized",
        [Value::I32(64), source, offset, length],
    )
}

#[test]
fn an_initialized_buffer_holds_a_copy_of_its_source() {
    let program = Program::new();
    let results = initialized(&program, constant("abcdefgh"), 2, 4).unwrap();
    let [Value::Ref(buffer), Value::Ref(storage)] = &results[..] else {
        panic!("{results:?}");
    };
    assert_eq!(length(&program, buffer), 4);
    let storage = storage.as_buffer().unwrap();
    assert_eq!(storage.to_vec(), b"cdef");
    storage.store::<u8>(0, b'x').unwrap();
    assert_eq!(
        buffer.as_aliased(&HAL_BUFFER_TYPE).unwrap().to_vec(),
        b"xdef"
    );
}

#[test]
fn an_initialized_buffer_does_not_read_past_its_source() {
    let program = Program::new();
    for (offset, length) in [(4, 5), (9, 0), (0, -1), (-4, 8), (i64::MIN, i64::MIN)] {
        check_failure(
            initialized(&program, constant("abcdefgh"), offset, length),
            StatusCode::OUT_OF_RANGE,
            &format!(
                "out-of-bounds access detected (offset={}, length={}, alignment=1, buffer length=8)",
                offset.cast_unsigned(),
                length.cast_unsigned()
            ),
        );
    }
    check_failure(
        initialized(&program, NULL, 0, 0),
        StatusCode::INVALID_ARGUMENT,
        NULL_BUFFER,
    );
}

const NULL_BUFFER: &str = "ref is null; expected vm.buffer";
const NULL_HAL_BUFFER: &str = "ref is null; expected hal.buffer";

fn subspan(program: &Program, buffer: &Ref, offset: i64, length: i64) -> vm::Result<Ref> {
    program.call_ref(
        "buffer.subspan",
        [value(buffer), Value::I64(offset), Value::I64(length)],
    )
}

#[test]
fn a_subspan_is_a_part_of_the_same_memory() {
    let program = Program::new();
    let (buffer, storage) = program.allocate(100);
    let inner = subspan(&program, &buffer, 10, 50).unwrap();
    let inner = subspan(&program, &inner, 10, -1).unwrap();
    assert_eq!(length(&program, &inner), 40);
    let inner_storage = program.call_ref("buffer.storage", [value(&inner)]).unwrap();
    let inner_storage = inner_storage.as_buffer().unwrap();
    assert_eq!(inner_storage.length(), 40);
    storage.as_buffer().unwrap().store::<u8>(20, 7).unwrap();
    assert_eq!(inner_storage.load::<u8>(0).unwrap(), 7);
    // The end itself is a legal place for nothing.
    assert_eq!(
        length(&program, &subspan(&program, &buffer, 100, 0).unwrap()),
        0
    );
    assert_eq!(
        length(&program, &subspan(&program, &buffer, 100, -1).unwrap()),
        0
    );
}

#[test]
fn a_subspan_of_everything_is_the_buffer() {
    let program = Program::new();
    let (buffer, _) = program.allocate(100);
    assert!(subspan(&program, &buffer, 0, 100).unwrap().same(&buffer));
    assert!(subspan(&program, &buffer, 0, -1).unwrap().same(&buffer));
}

#[test]
fn a_subspan_does_not_leave_its_buffer() {
    let program = Program::new();
    let (buffer, _) = program.allocate(100);
    for (offset, length, reported_length) in [
        (50, 51, 51),
        (101, 0, 0),
        (101, -1, 0),
        (-1, 1, 1),
        (-1, -1, 0),
        (0, i64::MAX, i64::MAX),
        (0, -2, -2),
    ] {
        check_failure(
            subspan(&program, &buffer, offset, length),
            StatusCode::OUT_OF_RANGE,
            &format!(
                "out-of-bounds access detected (offset={}, length={}, alignment=1, buffer length=100)",
                offset.cast_unsigned(),
                reported_length.cast_unsigned()
            ),
        );
    }
}

#[test]
fn wrapping_is_refused_as_in_the_reference() {
    let program = Program::new();
    let source = Buffer::allocate(8, 0).unwrap();
    let arguments = [Value::Ref(source.into()), Value::I64(0), Value::I64(8)];
    check_failure(
        program.call("buffer.wrap", arguments),
        StatusCode::UNIMPLEMENTED,
        "vm->hal buffer wrapping not yet implemented",
    );
}

#[test]
fn null_and_refs_of_other_types_are_refused() {
    let program = Program::new();
    let (buffer, storage) = program.allocate(8);
    let zeros = [Value::I64(0), Value::I64(0)];
    let with_zeros = |first: Value| {
        let [offset, length] = zeros.clone();
        [first, offset, length]
    };
    let invalid = StatusCode::INVALID_ARGUMENT;
    let mismatch = "ref type mismatch; expected hal.buffer but have vm.buffer";
    check_failure(
        program.call("buffer.length", [NULL]),
        invalid,
        NULL_HAL_BUFFER,
    );
    check_failure(
        program.call("buffer.storage", [NULL]),
        invalid,
        NULL_HAL_BUFFER,
    );
    check_failure(
        program.call("buffer.subspan", with_zeros(NULL)),
        invalid,
        NULL_HAL_BUFFER,
    );
    check_failure(
        program.call("buffer.wrap", with_zeros(NULL)),
        invalid,
        NULL_BUFFER,
    );
    check_failure(
        program.call("buffer.length", [value(&storage)]),
        invalid,
        mismatch,
    );
    check_failure(
        program.call("buffer.storage", [value(&storage)]),
        invalid,
        mismatch,
    );
    check_failure(
        program.call("buffer.subspan", with_zeros(value(&storage))),
        invalid,
        mismatch,
    );
    check_failure(
        program.call("buffer.wrap", with_zeros(value(&buffer))),
        invalid,
        "ref type mismatch; expected vm.buffer but have hal.buffer",
    );
    check_failure(
        initialized(&program, value(&buffer), 0, 0),
        invalid,
        "ref type mismatch; expected vm.buffer but have hal.buffer",
    );
}
