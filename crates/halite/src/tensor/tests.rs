//! Tests of tensors: what goes in, what comes out, who shares memory.

use half::{bf16, f16};

use super::*;
use crate::F8E4M3FN;

#[test]
fn values_go_in_and_come_out() {
    let tensor = Tensor::from_slice(&[2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    assert_eq!(tensor.element_type(), ElementType::F32);
    assert_eq!(tensor.element_count(), 6);
    assert_eq!(tensor.byte_length(), 24);
    assert_eq!(tensor.to_vec::<f32>().unwrap()[5], 6.0);
    let error = tensor.to_vec::<i32>().unwrap_err();
    assert_eq!(error.to_string(), "the tensor's elements are f32, not i32");
}

#[test]
fn rank_zero_differs_from_one_element() {
    let scalar = Tensor::from_scalar(5i64).unwrap();
    let vector = Tensor::from_slice(&[1], &[5i64]).unwrap();
    assert!(scalar.shape().is_empty());
    assert_eq!(vector.shape(), [1]);
    assert_eq!(scalar.to_bytes(), vector.to_bytes());
}

#[test]
fn data_of_another_length_is_refused() {
    let error = Tensor::from_slice(&[2, 2], &[1i32, 2, 3]).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
    assert_eq!(
        error.to_string(),
        "a tensor of [2, 2] i32 elements takes 16 bytes, not 12"
    );
}

#[test]
fn a_shape_beyond_the_address_space_is_refused_before_memory_is_taken() {
    for shape in [
        &[1 << 32, 1 << 32][..],
        &[274_177, 67_280_421_310_721],
        &[usize::MAX],
    ] {
        let error = Tensor::zeros(ElementType::F32, shape).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::RESOURCE_EXHAUSTED);
    }
    let error = Tensor::zeros(ElementType::I8, &[1 << 62]).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::RESOURCE_EXHAUSTED);
}

#[test]
fn too_many_dimensions_are_refused() {
    let error = Tensor::zeros(ElementType::I8, &[1; MAX_RANK + 1]).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
    assert!(Tensor::zeros(ElementType::I8, &[1; MAX_RANK]).is_ok());
}

#[test]
fn clones_share_memory() {
    let tensor = Tensor::from_slice(&[2], &[1i32, 2]).unwrap();
    let other = tensor.clone();
    tensor.write_slice(&[7, 8]).unwrap();
    assert_eq!(other.to_vec::<i32>().unwrap(), [7, 8]);
    assert!(tensor.as_slice::<i32>().unwrap().is_none());
    assert!(tensor.write_slice(&[7]).is_err());
    assert!(tensor.write_slice(&[7.0f32, 8.0]).is_err());
}

#[test]
fn read_only_memory_is_borrowed() {
    let owner: Arc<dyn BytesOwner> = Arc::new(vec![1u8, 2, 3]);
    let buffer = Buffer::constant(owner, 0..3, Access::HOST_CONSTANT).unwrap();
    let tensor = Tensor::from_buffer(ElementType::UI8, &[3], buffer).unwrap();
    assert_eq!(tensor.as_slice::<u8>().unwrap(), Some(&[1, 2, 3][..]));
    let error = tensor.write_slice(&[0u8; 3]).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::PERMISSION_DENIED);
}

#[test]
fn a_tensor_is_a_ref_and_back() {
    let tensor = Tensor::from_slice(&[2], &[1i32, 2]).unwrap();
    let view = tensor.to_ref();
    let view = view
        .as_object::<BufferView>(&vm_hal_inline::BUFFER_VIEW_TYPE)
        .unwrap();
    let again = Tensor::from_view(Arc::new(view.clone())).unwrap();
    assert!(Arc::ptr_eq(again.buffer(), tensor.buffer()));
}

#[test]
fn a_view_whose_elements_are_not_in_its_buffer_is_no_tensor() {
    let buffer = Buffer::allocate(4, 0).unwrap();
    let view = BufferView::new(buffer, ElementType::F32, EncodingType::OPAQUE, &[2]).unwrap();
    assert!(Tensor::from_view(Arc::new(view)).is_none());
}

#[test]
fn truth_values_read_as_bytes() {
    let tensor = Tensor::from_bytes(ElementType::BOOL_8, &[2], &[1, 0]).unwrap();
    assert_eq!(tensor.to_vec::<u8>().unwrap(), [1, 0]);
    assert!(tensor.to_vec::<i8>().is_err());
}

#[test]
fn truth_values_go_in_and_come_out() {
    let tensor = Tensor::from_bools(&[3], &[true, false, true]).unwrap();
    assert_eq!(tensor.element_type(), ElementType::BOOL_8);
    assert_eq!(tensor.to_bools().unwrap(), [true, false, true]);
    let numbers = Tensor::from_slice(&[2], &[0u8, 200]).unwrap();
    assert_eq!(numbers.to_bools().unwrap(), [false, true]);
    assert!(Tensor::from_scalar(1i16).unwrap().to_bools().is_err());
}

#[test]
fn every_kind_of_number_goes_in_and_comes_out() {
    fn check<T: Element + PartialEq + fmt::Debug>(values: [T; 2], element_type: ElementType) {
        let tensor = Tensor::from_slice(&[2], &values).unwrap();
        assert_eq!(tensor.element_type(), element_type);
        assert_eq!(tensor.to_vec::<T>().unwrap(), values);
    }
    check([f16::ONE, f16::MAX], ElementType::F16);
    check([bf16::ONE, bf16::MIN], ElementType::BF16);
    check([[1f32, -1.0], [0.0, 2.0]], ElementType::COMPLEX_64);
    check([[1f64, -1.0], [0.0, 2.0]], ElementType::COMPLEX_128);
    let small = [F8E4M3FN::from_f32(1.5), F8E4M3FN::from_f32(-448.0)];
    check(small, ElementType::F8E4M3FN);
}

/// Four numbers, whose address is a multiple of 64, or 4 bytes past one.
#[repr(align(64))]
struct Numbers<const AT: usize>([u32; 16]);

impl<const AT: usize> AsRef<[u32]> for Numbers<AT> {
    fn as_ref(&self) -> &[u32] {
        &self.0[AT..][..4]
    }
}

#[test]
fn aligned_elements_of_an_owner_are_not_copied() {
    let owner = Arc::new(Numbers::<0>([7; 16]));
    let shared = SharedNumbers(Arc::clone(&owner));
    let tensor = Tensor::from_owner(&[4], shared).unwrap();
    assert_eq!(tensor.buffer().address(), owner.0.as_ptr().addr());
    assert_eq!(tensor.to_vec::<u32>().unwrap(), [7; 4]);
    assert!(tensor.write_slice(&[0u32; 4]).is_err());
    drop(tensor);
    assert_eq!(Arc::strong_count(&owner), 1);
}

struct SharedNumbers(Arc<Numbers<0>>);

impl AsRef<[u32]> for SharedNumbers {
    fn as_ref(&self) -> &[u32] {
        (*self.0).as_ref()
    }
}

#[test]
fn misaligned_elements_of_an_owner_are_copied() {
    static NUMBERS: Numbers<1> = Numbers([9; 16]);
    let tensor = Tensor::from_owner(&[2, 2], &NUMBERS).unwrap();
    assert!(tensor.buffer().address().is_multiple_of(BUFFER_ALIGNMENT));
    assert_eq!(tensor.to_vec::<u32>().unwrap(), [9; 4]);
    let error = Tensor::from_owner(&[5], &NUMBERS).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
    let error = Tensor::from_owner(&[5], Numbers::<0>([0; 16])).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
}

#[test]
fn a_tensor_is_exclusive_until_it_is_shared() {
    let tensor = Tensor::from_slice(&[2], &[1i32, 2]).unwrap();
    let address = tensor.buffer().address();
    let clone = tensor.clone();
    let tensor = tensor.into_exclusive().unwrap_err();
    drop(clone);
    let buffer = Arc::clone(tensor.buffer());
    let tensor = tensor.into_exclusive().unwrap_err();
    drop(buffer);
    let mut own = tensor.into_exclusive().unwrap();
    assert_eq!(
        (own.shape(), own.element_type()),
        (&[2][..], ElementType::I32)
    );
    own.as_mut_slice::<i32>().unwrap()[0] = 5;
    assert!(own.as_mut_slice::<f32>().is_err());
    let tensor = Tensor::from(own);
    assert_eq!(tensor.to_vec::<i32>().unwrap(), [5, 2]);
    assert_eq!(tensor.buffer().address(), address);
}

#[test]
fn read_only_memory_is_never_exclusive() {
    static NUMBERS: Numbers<0> = Numbers([1; 16]);
    let tensor = Tensor::from_owner(&[4], &NUMBERS).unwrap();
    assert!(tensor.into_exclusive().is_err());
}

#[test]
fn narrow_elements_are_packed() {
    let tensor = Tensor::from_bytes(ElementType::I4, &[3], &[0x21, 0x03]).unwrap();
    assert_eq!(tensor.byte_length(), 2);
}

#[test]
fn tensors_move_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Tensor>();
}
