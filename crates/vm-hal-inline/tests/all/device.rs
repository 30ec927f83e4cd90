//! `device.query.i64` and the module's identity.

use vm::{Access, Buffer, Ref, StatusCode, Value};

use crate::program::{Program, check_failure, constant};

fn query(category: Value, key: Value) -> (i32, i64) {
    let results = Program::new()
        .call("device.query.i64", [category, key])
        .unwrap();
    match results[..] {
        [Value::I32(known), Value::I64(value)] => (known, value),
        _ => panic!("{results:?}"),
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn features_of_the_processor_are_known() {
    let expected = i64::from(is_x86_feature_detected!("avx2"));
    assert_eq!(query(constant("hal.cpu"), constant("avx2")), (1, expected));
    let key = Buffer::copied_from(b"avx2", Access::GUEST).unwrap();
    assert_eq!(
        query(constant("hal.cpu"), Value::Ref(key.into())),
        (1, expected)
    );
    assert_eq!(query(constant("hal.cpu"), constant("amx-tile")), (1, 0));
}

#[test]
fn an_unknown_fact_is_no_error() {
    assert_eq!(query(constant("hal.cpu"), constant("warp-drive")), (0, 0));
    assert_eq!(query(constant("hal.gpu"), constant("avx2")), (0, 0));
    assert_eq!(query(constant(""), constant("")), (0, 0));
}

#[test]
fn null_is_refused() {
    let program = Program::new();
    let null = || Value::Ref(Ref::Null);
    for arguments in [[null(), constant("avx2")], [constant("hal.cpu"), null()]] {
        check_failure(
            program.call("device.query.i64", arguments),
            StatusCode::INVALID_ARGUMENT,
            "ref is null; expected vm.buffer",
        );
    }
}

#[test]
fn the_module_exports_what_compilers_import() {
    let module = vm_hal_inline::module(None);
    assert_eq!((module.name(), module.version()), ("hal_inline", 0));
    let mut exports: Vec<(&str, &str)> = module
        .exports()
        .iter()
        .map(|export| (&*export.name, export.convention.text()))
        .collect();
    exports.sort_unstable();
    assert_eq!(
        exports,
        [
            ("buffer.allocate", "0iI_rr"),
            ("buffer.allocate.initialized", "0irII_rr"),
            ("buffer.length", "0r_I"),
            ("buffer.storage", "0r_r"),
            ("buffer.subspan", "0rII_r"),
            ("buffer.wrap", "0rII_r"),
            ("buffer_view.assert", "0rriiCID_v"),
            ("buffer_view.buffer", "0r_r"),
            ("buffer_view.create", "0rIIiiCID_r"),
            ("buffer_view.dim", "0ri_I"),
            ("buffer_view.element_type", "0r_i"),
            ("buffer_view.encoding_type", "0r_i"),
            ("buffer_view.rank", "0r_i"),
            ("buffer_view.trace", "0rCrD_v"),
            ("device.query.i64", "0rr_iI"),
        ]
    );
    let types: Vec<&str> = module
        .ref_types()
        .iter()
        .map(|ref_type| ref_type.name())
        .collect();
    assert_eq!(types, ["hal.buffer", "hal.buffer_view"]);
}
