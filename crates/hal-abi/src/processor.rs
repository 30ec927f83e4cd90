//! Processor data: the features of a CPU as kernels see them.
//!
//! The data is eight 64-bit words; only the first has a meaning, per architecture. A bit that is
//! clear means "unknown or absent", so all zeros is always legal. Bits are never reused. AVX-class
//! bits also promise that the operating system saves the matching registers.
//! Facts: `docs/abi.md`, section 9.

use crate::layout::by_u64_align;

/// The features of a processor. Word 0 holds the masks of this module, words 1 to 7 are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Processor {
    /// The words.
    pub data: [u64; 8],
}

crate::assert_layout!(Processor {
    size: (64, 64),
    align: (8, by_u64_align(4, 8)),
    fields: { data: (0, 0) },
});

/// Defines one mask per feature and a table of all of them.
macro_rules! features {
    ($($name:ident = $bit:literal, $text:literal;)+) => {
        $(
            #[doc = concat!("The mask of `", $text, "` in word 0.")]
            pub const $name: u64 = 1 << $bit;
        )+
        /// Every feature of this architecture: its name and its mask, in bit order.
        pub const FEATURES: &[(&str, u64)] = &[$(($text, $name)),+];
    };
}

/// The features of x86-64 processors.
pub mod x86_64 {
    features! {
        SSE3 = 0, "sse3";
        SSSE3 = 1, "ssse3";
        SSE4_1 = 2, "sse4.1";
        SSE4_2 = 3, "sse4.2";
        SSE4A = 4, "sse4a";
        AVX = 10, "avx";
        FMA = 11, "fma";
        FMA4 = 12, "fma4";
        XOP = 13, "xop";
        F16C = 14, "f16c";
        AVX2 = 15, "avx2";
        AVX512F = 20, "avx512f";
        AVX512CD = 21, "avx512cd";
        AVX512VL = 22, "avx512vl";
        AVX512DQ = 23, "avx512dq";
        AVX512BW = 24, "avx512bw";
        AVX512IFMA = 25, "avx512ifma";
        AVX512VBMI = 26, "avx512vbmi";
        AVX512VPOPCNTDQ = 27, "avx512vpopcntdq";
        AVX512VNNI = 28, "avx512vnni";
        AVX512VBMI2 = 29, "avx512vbmi2";
        AVX512BITALG = 30, "avx512bitalg";
        AVX512BF16 = 31, "avx512bf16";
        AVX512FP16 = 32, "avx512fp16";
        AMX_TILE = 50, "amx-tile";
        AMX_INT8 = 51, "amx-int8";
        AMX_BF16 = 52, "amx-bf16";
    }
}

/// The features of 64-bit Arm processors.
pub mod arm_64 {
    features! {
        FP_ARMV8 = 0, "fp-armv8";
        LSE = 1, "lse";
        LSE128 = 2, "lse128";
        FULLFP16 = 10, "fullfp16";
        FP16FML = 11, "fp16fml";
        DOTPROD = 12, "dotprod";
        I8MM = 13, "i8mm";
        BF16 = 14, "bf16";
        SVE = 20, "sve";
        SVE2 = 21, "sve2";
        SVE2P1 = 22, "sve2p1";
        SVE2_BITPERM = 23, "sve2-bitperm";
        F32MM = 24, "f32mm";
        F64MM = 25, "f64mm";
        SME = 30, "sme";
        SME2 = 31, "sme2";
        SME2P1 = 32, "sme2p1";
        SME_F16F16 = 33, "sme-f16f16";
        SME_F64F64 = 34, "sme-f64f64";
        SME_I16I64 = 35, "sme-i16i64";
    }
}

/// The features of 64-bit RISC-V processors.
pub mod riscv_64 {
    features! {
        V = 0, "v";
        ZVFHMIN = 1, "zvfhmin";
        ZVFH = 2, "zvfh";
        ZVFBFWMA = 3, "zvfbfwma";
        XSMTVDOT = 4, "xsmtvdot";
        ZVL256B = 5, "zvl256b";
        ZVL1024B = 6, "zvl1024b";
        ZVL4096B = 7, "zvl4096b";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_masks_of_each_architecture_are_single_ascending_bits() {
        for features in [x86_64::FEATURES, arm_64::FEATURES, riscv_64::FEATURES] {
            assert!(features.iter().all(|(_, mask)| mask.is_power_of_two()));
            assert!(features.windows(2).all(|pair| pair[0].1 < pair[1].1));
        }
    }

    #[test]
    fn the_x86_64_v3_level_has_the_mask_the_compiler_bakes_in() {
        use x86_64::{AVX, AVX2, F16C, FMA, SSE3, SSE4_1, SSE4_2, SSSE3};
        assert_eq!(
            SSE3 | SSSE3 | SSE4_1 | SSE4_2 | AVX | FMA | F16C | AVX2,
            0xCC0F
        );
    }
}
