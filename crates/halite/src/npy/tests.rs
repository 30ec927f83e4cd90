//! Tests of reading and writing arrays.

use proptest::prelude::*;

use super::*;

/// Version 1.0 with this header, padded like NumPy's, and data.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let padded = format!("{header:<117}\n");
    bytes.extend([1, 0]);
    bytes.extend(u16::try_from(padded.len()).unwrap().to_le_bytes());
    bytes.extend(padded.bytes());
    bytes.extend(data);
    bytes
}

fn header(descr: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}")
}

fn read_all(bytes: &[u8]) -> Result<Tensor, NpyError> {
    read(&mut &bytes[..])
}

#[track_caller]
fn check(header: &str, data: &[u8], printed: &str) {
    assert_eq!(read_all(&file(header, data)).unwrap().to_string(), printed);
}

#[track_caller]
fn check_error(bytes: &[u8], code: StatusCode, message: &str) {
    let error = read_all(bytes).unwrap_err();
    assert_eq!(error.status_code(), code, "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn arrays_of_every_supported_dtype_are_read() {
    for (descr, printed) in [
        ("'|b1'", "2xi1=01 02"),
        ("'|i1'", "2xsi8=1 2"),
        ("'|u1'", "2xui8=1 2"),
        ("'<i2'", "2xsi16=513 1027"),
        ("'<u4'", "2xui32=67305985 134678021"),
        ("'<f2'", "2xf16=3.05772E-05 6.1214E-05"),
        ("'<V2'", "2x*16=0102 0304"),
        ("\"|V3\"", "2x*24=010203 040506"),
        ("'<c8'", "2xcf64=0102030405060708 090A0B0C0D0E0F10"),
        (
            "'<c16'",
            "2xcf128=0102030405060708090A0B0C0D0E0F10 1112131415161718191A1B1C1D1E1F20",
        ),
        (
            "'<f16'",
            "2xf128=0102030405060708090A0B0C0D0E0F10 1112131415161718191A1B1C1D1E1F20",
        ),
    ] {
        let data: Vec<u8> = (1..=32).collect();
        check(&header(descr, "(2,)"), &data, printed);
    }
    check(&header("'<f4'", "()"), &1f32.to_le_bytes(), "f32=1");
    check(&header("'<i8'", "(0, 3)"), &[], "0x3xsi64=");
    check(
        &header("'<i4'", "(1, 2,)"),
        &[1, 0, 0, 0, 2, 0, 0, 0],
        "1x2xsi32=[1 2]",
    );
}

#[test]
fn e4_unsupported_dtypes_are_named_with_those_that_are() {
    for descr in [
        "'>f4'", "'<U3'", "'|S3'", "'|O'", "'<M8[s]'", "'<c32'", "'=f4'", "'<i3'", "'|f4'", "'f4'",
        "''", "'|V32'", "'<f04'",
    ] {
        let name = descr.trim_matches('\'');
        check_error(
            &file(&header(descr, "(3,)"), &[0; 99]),
            StatusCode::UNIMPLEMENTED,
            name,
        );
        check_error(
            &file(&header(descr, "(3,)"), &[0; 99]),
            StatusCode::UNIMPLEMENTED,
            "<f4",
        );
    }
    let structured = "[('a[', '<f4'), ('b', [('c', '|u1', (2, 2))])]";
    check_error(
        &file(&header(structured, "(3,)"), &[]),
        StatusCode::UNIMPLEMENTED,
        structured,
    );
}

#[test]
fn fortran_order_is_unimplemented_where_it_matters() {
    let fortran =
        |shape: &str| format!("{{'descr': '|u1', 'fortran_order': True, 'shape': {shape}}}");
    check_error(
        &file(&fortran("(2, 2)"), &[0; 4]),
        StatusCode::UNIMPLEMENTED,
        "fortran",
    );
    check(&fortran("(2,)"), &[1, 2], "2xui8=1 2");
}

#[test]
fn e13_a_header_of_gigabytes_is_refused_before_memory_is_taken() {
    let bytes = [&MAGIC[..], &[2, 0], &0xFFFF_FFF0u32.to_le_bytes()].concat();
    check_error(&bytes, StatusCode::RESOURCE_EXHAUSTED, "4294967280");
}

#[test]
fn e14_a_header_longer_than_the_file_is_an_error() {
    let mut bytes = file(&header("'<f4'", "()"), &[]);
    bytes.truncate(77);
    bytes[8..10].copy_from_slice(&9999u16.to_le_bytes());
    check_error(&bytes, StatusCode::OUT_OF_RANGE, "only 67 are left");
    bytes[8..10].copy_from_slice(&0xFFFFu16.to_le_bytes());
    check_error(&bytes, StatusCode::RESOURCE_EXHAUSTED, "65535");
}

#[test]
fn e16_malformed_headers_are_refused() {
    let shape = |shape: &str| file(&header("'|u1'", shape), &[0; 200]);
    check_error(
        &shape("(184)"),
        StatusCode::INVALID_ARGUMENT,
        "`,` after the only dimension",
    );
    check_error(
        &shape("(np.int64(1),)"),
        StatusCode::INVALID_ARGUMENT,
        "a dimension",
    );
    check_error(&shape("(-1,)"), StatusCode::INVALID_ARGUMENT, "a dimension");
    check_error(
        &shape("(99999999999999999999,)"),
        StatusCode::INVALID_ARGUMENT,
        "address space",
    );
    check_error(&shape("[1, 2]"), StatusCode::INVALID_ARGUMENT, "`(`");
    for header in [
        "",
        "{",
        "{}",
        "{'descr'}",
        "{'descr': '<f4'",
        "x",
        "{'descr': '<f4', 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}",
        "{'descr': [[], 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': ''}",
        "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [')']",
        "{'descr': ]",
    ] {
        check_error(
            &file(header, &[0; 9]),
            StatusCode::INVALID_ARGUMENT,
            "npy header",
        );
    }
    check_error(
        b"\x93NUMPX\x01\x00",
        StatusCode::INVALID_ARGUMENT,
        "not an npy array",
    );
    check_error(b"", StatusCode::INVALID_ARGUMENT, "not an npy array");
    check_error(b"\x93NUMPY\x01", StatusCode::OUT_OF_RANGE, "version");
    check_error(b"\x93NUMPY\x04\x00aaaaa", StatusCode::UNIMPLEMENTED, "4.0");
    check_error(
        b"\x93NUMPY\x01\x00a",
        StatusCode::OUT_OF_RANGE,
        "header length",
    );
}

#[test]
fn data_shorter_than_the_shape_is_an_error_and_takes_no_memory() {
    check_error(
        &file(&header("'<f4'", "(4,)"), &[0; 15]),
        StatusCode::OUT_OF_RANGE,
        "takes 16 bytes, but only 15",
    );
    check_error(
        &file(&header("'|u1'", "(1000000000000,)"), &[0; 15]),
        StatusCode::OUT_OF_RANGE,
        "only 15",
    );
    let wrapping = header("'<f4'", "(4294967296, 4294967296)");
    check_error(
        &file(&wrapping, &[0; 15]),
        StatusCode::RESOURCE_EXHAUSTED,
        "tensor",
    );
}

#[test]
fn versions_two_and_three_are_read() {
    for version in [2, 3] {
        let text = header("'|u1'", "(1,)");
        let length = u32::try_from(text.len()).unwrap().to_le_bytes();
        let bytes = [&MAGIC[..], &[version, 0], &length, text.as_bytes(), &[7]].concat();
        assert_eq!(read_all(&bytes).unwrap().to_string(), "1xui8=7");
    }
}

#[test]
fn e11_the_header_is_numpys_byte_for_byte() {
    // Written by NumPy 2.4.6.
    let expected = "\u{1}\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }                                                            \n";
    let mut bytes = Vec::new();
    write(&mut bytes, &Tensor::from_slice(&[2], &[0f32; 2]).unwrap()).unwrap();
    assert_eq!(&bytes[..6], MAGIC);
    assert_eq!(&bytes[6..128], expected.as_bytes());
    assert_eq!(bytes.len(), 136);
    // A long shape moves the data by the room for growth, before it would move by itself.
    let shape = [1; 15];
    let mut bytes = Vec::new();
    write(
        &mut bytes,
        &Tensor::zeros(ElementType::UI8, &shape).unwrap(),
    )
    .unwrap();
    assert_eq!(bytes.len(), 192 + 1);
}

#[test]
fn elements_without_a_dtype_are_not_written() {
    for name in ["bf16", "f8E5M2", "i4", "i7", "f33", "cf32"] {
        let tensor = Tensor::zeros(name.parse().unwrap(), &[8]).unwrap();
        let error = write(&mut Vec::new(), &tensor).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::UNIMPLEMENTED);
        assert!(error.to_string().contains(name));
    }
}

#[test]
fn arrays_follow_each_other_in_a_stream() {
    let mut bytes = Vec::new();
    for value in 0..3i32 {
        write(&mut bytes, &Tensor::from_slice(&[1], &[value]).unwrap()).unwrap();
    }
    let mut reader = &bytes[..];
    for value in 0..3i32 {
        assert_eq!(read(&mut reader).unwrap().to_vec::<i32>().unwrap(), [value]);
    }
    assert!(reader.is_empty());
}

proptest! {
    #[test]
    fn any_bytes_give_an_array_or_an_error(version in 0u8..4, header in "[\\PC]{0,80}|\\{('(descr|shape|fortran_order)': ('<f4'|\\([0-9]*,?\\)|True|False|\\[.{0,5}\\]),? ?){0,4}\\}", data in prop::collection::vec(any::<u8>(), 0..32)) {
        let length = u32::try_from(header.len()).unwrap().to_le_bytes();
        let length = if version == 1 { &length[..2] } else { &length[..] };
        let bytes = [&MAGIC[..], &[version, 0], length, header.as_bytes(), &data].concat();
        let _ = read_all(&bytes);
        let _ = read_all(&data);
    }

    #[test]
    fn what_was_written_is_read_back(
        shape in prop::collection::vec(0usize..5, 0..5),
        name in prop::sample::select(&["i1", "si8", "ui8", "si32", "ui64", "f16", "f32", "f64", "cf64", "*16"][..]),
    ) {
        let element_type: ElementType = name.parse().unwrap();
        let length = element_type.dense_byte_length(&shape).unwrap();
        let bytes: Vec<u8> = (0u8..251).cycle().take(length).collect();
        let tensor = Tensor::from_bytes(element_type, &shape, &bytes).unwrap();
        let mut file = Vec::new();
        write(&mut file, &tensor).unwrap();
        prop_assert_eq!((file.len() - length) % 64, 0);
        let again = read_all(&file).unwrap();
        prop_assert_eq!(again.shape(), tensor.shape());
        prop_assert_eq!(again.element_type(), element_type);
        prop_assert_eq!(again.to_bytes(), bytes);
    }
}
