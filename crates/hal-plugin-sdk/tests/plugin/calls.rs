//! Calls of functions: parameter blocks, views, state, failures.

use std::cell::Cell;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use hal_plugin_sdk::{
    Call, ConstPtr, LoadContext, Memref, MutPtr, Plain, Plugin, RowShape, StatusCode,
    parameter_block, static_plugin,
};

use crate::host::{Heap, Loaded};

struct Math {
    call_count: AtomicU32,
}

impl Plugin for Math {
    const NAME: &'static CStr = c"math";

    fn load(_: &LoadContext<'_>) -> Result<Self, StatusCode> {
        Ok(Self {
            call_count: AtomicU32::new(0),
        })
    }
}

parameter_block! {
    /// Two results, then the arguments.
    struct DivideBlock {
        results: Quotient,
        dividend: i32,
        divisor: i32,
    }
}

parameter_block! {
    struct Quotient {
        quotient: i8,
        remainder: i64,
    }
}

fn divide(_: &Math, call: &mut Call<'_, DivideBlock>) -> Result<(), StatusCode> {
    let DivideBlock {
        dividend, divisor, ..
    } = *call.params();
    let quotient = dividend
        .checked_div(divisor)
        .ok_or(StatusCode::OUT_OF_RANGE)?;
    call.params_mut().results = Quotient {
        quotient: i8::try_from(quotient).map_err(|_| StatusCode::DATA_LOSS)?,
        remainder: i64::from(dividend % divisor),
    };
    Ok(())
}

fn count(math: &Math, _: &mut Call<'_, ()>) -> Result<(), StatusCode> {
    if math.call_count.fetch_add(1, Ordering::Relaxed) == 2 {
        return Err(StatusCode::ABORTED);
    }
    Ok(())
}

fn fail_with_ok(_: &Math, _: &mut Call<'_, ()>) -> Result<(), StatusCode> {
    Err(StatusCode::OK)
}

fn panicking(_: &Math, _: &mut Call<'_, ()>) -> Result<(), StatusCode> {
    panic!("on purpose");
}

fn panicking_twice(_: &Math, _: &mut Call<'_, ()>) -> Result<(), StatusCode> {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("the payload panics as well");
        }
    }
    std::panic::panic_any(Bomb);
}

parameter_block! {
    /// Copies `len` words, the source and the destination each at an offset.
    struct CopyBlock {
        from: ConstPtr<u32>,
        from_offset: usize,
        to: MutPtr<u32>,
        to_offset: usize,
        len: usize,
    }
}

fn copy(_: &Math, call: &mut Call<'_, CopyBlock>) -> Result<(), StatusCode> {
    let block = *call.params();
    let from = call.slice(block.from, block.from_offset, block.len)?;
    let to = call.slice_mut(block.to, block.to_offset, block.len)?;
    to.copy_from_slice(from);
    Ok(())
}

parameter_block! {
    /// Adds the words at `from` to those at `to`, which may be the same.
    struct AddBlock {
        from: MutPtr<u32>,
        to: MutPtr<u32>,
        len: usize,
    }
}

fn add(_: &Math, call: &mut Call<'_, AddBlock>) -> Result<(), StatusCode> {
    let block = *call.params();
    let from = call.cells(block.from, 0, block.len)?;
    let to = call.cells(block.to, 0, block.len)?;
    for (to, from) in to.iter().zip(from) {
        to.set(to.get() + from.get());
    }
    Ok(())
}

parameter_block! {
    /// Negates a matrix of rank 2 whose columns are neighbors.
    struct NegateBlock {
        from: Memref<i32, 2>,
        to: Memref<i32, 2>,
    }
}

fn row_shape(memref: &Memref<i32, 2>) -> RowShape {
    RowShape {
        row_count: memref.sizes[0],
        row_length: memref.sizes[1],
        row_stride: memref.strides[0],
    }
}

fn negate(_: &Math, call: &mut Call<'_, NegateBlock>) -> Result<(), StatusCode> {
    let NegateBlock { from, to } = *call.params();
    let from_rows = call.rows(from.aligned.as_const(), from.offset, row_shape(&from))?;
    let to_rows = call.rows_mut(to.aligned, to.offset, row_shape(&to))?;
    for (to, from) in to_rows.into_rows().zip(from_rows.iter()) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = -from);
    }
    Ok(())
}

static_plugin! {
    fn math for Math {
        // Promise: the tests pass these blocks, and memory as their fields say.
        unsafe "divide" => divide,
        unsafe "count" => count,
        unsafe "fail_with_ok" => fail_with_ok,
        unsafe "panicking" => panicking,
        unsafe "panicking_twice" => panicking_twice,
        unsafe "copy" => copy,
        unsafe "add" => add,
        unsafe "negate" => negate,
    }
}

/// What a kernel puts into a block: the bits of a pointer.
fn pointer<T, P: Plain>(pointer: *const T) -> P {
    assert_eq!(size_of::<P>(), size_of_val(&pointer));
    // SAFETY: pointers of blocks are plain data of a pointer's size.
    unsafe { ptr::from_ref(&pointer).cast::<P>().read() }
}

#[test]
fn several_results_are_written_before_the_arguments() {
    let heap = Heap::default();
    let loaded = Loaded::new(math, &heap, &[]);
    let mut block = DivideBlock {
        results: Quotient {
            quotient: 0,
            remainder: 0,
        },
        dividend: 17,
        divisor: 5,
    };
    assert_eq!(loaded.call("divide", &mut block), 0);
    assert_eq!((block.results.quotient, block.results.remainder), (3, 2));
}

#[test]
fn an_error_is_the_number_of_its_code() {
    let heap = Heap::default();
    let loaded = Loaded::new(math, &heap, &[]);
    let mut block = DivideBlock {
        results: Quotient {
            quotient: 0,
            remainder: 0,
        },
        dividend: 17,
        divisor: 0,
    };
    assert_eq!(loaded.call("divide", &mut block), 11);
}

#[test]
fn an_error_that_claims_to_be_ok_is_not_a_success() {
    let heap = Heap::default();
    let loaded = Loaded::new(math, &heap, &[]);
    assert_eq!(loaded.call("fail_with_ok", &mut ()), 2);
}

#[test]
fn state_belongs_to_the_instance() {
    let heap = Heap::default();
    let first = Loaded::new(math, &heap, &[]);
    let second = Loaded::new(math, &heap, &[]);
    assert_eq!(
        [(); 4].map(|()| first.call("count", &mut ())),
        [0, 0, 10, 0]
    );
    assert_eq!([(); 3].map(|()| second.call("count", &mut ())), [0, 0, 10]);
}

#[test]
fn a_block_without_fields_is_never_read() {
    let heap = Heap::default();
    let loaded = Loaded::new(math, &heap, &[]);
    assert_eq!(loaded.call_raw("count", ptr::null_mut()), 0);
    assert_eq!(loaded.call_raw("count", ptr::without_provenance_mut(3)), 0);
}

#[test]
fn a_null_or_misaligned_block_is_invalid() {
    let heap = Heap::default();
    let loaded = Loaded::new(math, &heap, &[]);
    assert_eq!(loaded.call_raw("divide", ptr::null_mut()), 3);
    assert_eq!(
        loaded.call_raw("divide", ptr::without_provenance_mut(0x1001)),
        3
    );
}

#[test]
fn a_panic_is_internal_and_stays_inside() {
    let heap = Heap::default();
    let loaded = Loaded::new(math, &heap, &[]);
    assert_eq!(loaded.call("panicking", &mut ()), 13);
    assert_eq!(loaded.call("panicking_twice", &mut ()), 13);
    assert_eq!(loaded.call("count", &mut ()), 0, "the instance still works");
}

fn copy_block(from: *const u32, from_offset: usize, to: *const u32, len: usize) -> CopyBlock {
    CopyBlock {
        from: pointer(from),
        from_offset,
        to: pointer(to),
        to_offset: 0,
        len,
    }
}

#[test]
fn slices_start_at_their_offset() {
    let heap = Heap::default();
    let loaded = Loaded::new(math, &heap, &[]);
    let from = [1, 2, 3, 4];
    let mut to = [0; 2];
    let mut block = copy_block(from.as_ptr(), 2, to.as_mut_ptr(), 2);
    assert_eq!(loaded.call("copy", &mut block), 0);
    assert_eq!(to, [3, 4]);
}

#[test]
fn an_empty_slice_may_have_any_pointer() {
    let heap = Heap::default();
    let loaded = Loaded::new(math, &heap, &[]);
    let mut block = copy_block(ptr::null(), usize::MAX, ptr::without_provenance(1), 0);
    assert_eq!(loaded.call("copy", &mut block), 0);
}

#[test]
fn a_slice_that_cannot_exist_is_refused() {
    let heap = Heap::default();
    let loaded = Loaded::new(math, &heap, &[]);
    let from = [1_u32, 2, 3, 4];
    let start = from.as_ptr();
    let mut to = [0; 2];
    let to = to.as_mut_ptr();
    for (mut block, code) in [
        (copy_block(ptr::null(), 0, to, 1), 3),
        (
            copy_block(start.cast::<u8>().wrapping_add(1).cast(), 0, to, 1),
            3,
        ),
        (copy_block(start, usize::MAX, to, 1), 11),
        (copy_block(start, usize::MAX / 4, to, 1), 11),
        (copy_block(start, 0, to, usize::MAX / 8 + 1), 11),
        (copy_block(start, 0, start.wrapping_add(1), 2), 9),
    ] {
        assert_eq!(loaded.call("copy", &mut block), code, "{block:?}");
    }
}

#[test]
fn a_slice_over_the_block_itself_is_refused() {
    let heap = Heap::default();
    let loaded = Loaded::new(math, &heap, &[]);
    let mut to = [0; 2];
    let mut block = copy_block(ptr::null(), 0, to.as_mut_ptr(), 2);
    block.from = pointer(&raw const block.len);
    assert_eq!(loaded.call("copy", &mut block), 9);
}

#[test]
fn cells_may_be_the_same_memory() {
    let heap = Heap::default();
    let loaded = Loaded::new(math, &heap, &[]);
    let values = [1, 2, 3].map(Cell::new);
    let start = values.as_ptr();
    let mut block = AddBlock {
        from: pointer(start),
        to: pointer(start),
        len: 3,
    };
    assert_eq!(loaded.call("add", &mut block), 0);
    assert_eq!(values.map(Cell::into_inner), [2, 4, 6]);
}

fn matrix(start: *const i32, sizes: [usize; 2], row_stride: usize) -> Memref<i32, 2> {
    Memref {
        base: pointer(start),
        aligned: pointer(start),
        offset: 1,
        sizes,
        strides: [row_stride, 1],
    }
}

#[test]
fn rows_leave_the_gaps_between_them_alone() {
    let heap = Heap::default();
    let loaded = Loaded::new(math, &heap, &[]);
    let from = [9, 1, 2, 3, 4];
    let mut to = [9; 8];
    let mut block = NegateBlock {
        from: matrix(from.as_ptr(), [2, 2], 2),
        to: matrix(to.as_mut_ptr(), [2, 2], 4),
    };
    assert_eq!(loaded.call("negate", &mut block), 0);
    assert_eq!(to, [9, -1, -2, 9, 9, -3, -4, 9]);
}

#[test]
fn rows_that_cannot_exist_are_refused() {
    let heap = Heap::default();
    let loaded = Loaded::new(math, &heap, &[]);
    let from = [0; 8];
    let mut to = [0; 8];
    let (from, to) = (from.as_ptr(), to.as_mut_ptr());
    for (from, to, code) in [
        (matrix(from, [2, 2], 0), matrix(to, [2, 2], 2), 0),
        (matrix(from, [2, 2], 2), matrix(to, [2, 2], 1), 3),
        (
            matrix(from, [3, 2], usize::MAX / 2),
            matrix(to, [2, 2], 2),
            11,
        ),
        (
            matrix(from, [2, 2], usize::MAX / 4),
            matrix(to, [2, 2], 2),
            11,
        ),
        (matrix(ptr::null(), [2, 2], 2), matrix(to, [2, 2], 2), 3),
        (
            matrix(ptr::null(), [0, 2], 2),
            matrix(ptr::null(), [2, 0], 2),
            0,
        ),
        (matrix(to, [2, 2], 2), matrix(to, [2, 2], 2), 9),
    ] {
        let mut block = NegateBlock { from, to };
        assert_eq!(loaded.call("negate", &mut block), code, "{block:?}");
    }
}
