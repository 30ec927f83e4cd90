//! The compile-time layout check that stands beside every struct of this crate.
//!
//! Numbers are written twice, as `(64-bit, 32-bit)`. The 32-bit targets agree with each other
//! except where a `u64` is aligned to 4 bytes (i386) instead of 8; [`by_u64_align`] picks there.

/// Checks size, alignment and the offset of every field of a `repr(C)` struct at compile time.
///
/// Each number is a pair: the value on 64-bit targets, then on 32-bit targets. The type is also
/// destructured by name, so that a field added without an offset fails to build.
///
/// # Examples
///
/// ```
/// #[repr(C)]
/// pub struct Extent {
///     pub base: *const u8,
///     pub length: u32,
/// }
///
/// hal_abi::assert_layout!(Extent {
///     size: (16, 8),
///     align: (8, 4),
///     fields: { base: (0, 0), length: (8, 4) },
/// });
/// ```
#[macro_export]
macro_rules! assert_layout {
    ($type:ident {
        size: ($size64:expr, $size32:expr),
        align: ($align64:expr, $align32:expr),
        fields: { $($field:ident: ($offset64:expr, $offset32:expr)),+ $(,)? } $(,)?
    }) => {
        const _: () = {
            const IS_64_BIT: bool = size_of::<usize>() == 8;
            const fn pick(on_64_bit: usize, on_32_bit: usize) -> usize {
                if IS_64_BIT { on_64_bit } else { on_32_bit }
            }
            assert!(
                size_of::<$type>() == pick($size64, $size32),
                concat!("size of ", stringify!($type)),
            );
            assert!(
                align_of::<$type>() == pick($align64, $align32),
                concat!("alignment of ", stringify!($type)),
            );
            $(assert!(
                ::core::mem::offset_of!($type, $field) == pick($offset64, $offset32),
                concat!("offset of ", stringify!($type), "::", stringify!($field)),
            );)+
            let _every_field_is_listed = |value: &$type| {
                let $type { $($field: _),+ } = value;
            };
        };
    };
}

/// Returns `aligned_to_4` on targets that align `u64` to 4 bytes, else `aligned_to_8`.
pub(crate) const fn by_u64_align(aligned_to_4: usize, aligned_to_8: usize) -> usize {
    if align_of::<u64>() == 4 {
        aligned_to_4
    } else {
        aligned_to_8
    }
}
