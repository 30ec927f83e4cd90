//! What the processor of this host can do, in the words that kernels read.
//!
//! Facts: `docs/abi.md`, section 9. A bit that is clear means "unknown or absent". Features that the
//! standard library cannot detect are left clear; among them are AMX, which a process must also ask
//! the operating system for before it may be used, and SVE 2.1 and SME.

use hal_abi::Processor;

/// Returns the features of the processor this runs on.
///
/// Reading them may trap into a hypervisor, so callers keep the result.
pub(crate) fn detect() -> Processor {
    let mut processor = Processor::default();
    processor.data[0] = features();
    processor
}

/// Combines the masks of the features that `$detected!` finds.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! collect {
    ($detected:path; $($feature:tt => $mask:path,)+) => {{
        use $detected as detected;
        let mut features = 0;
        $(
            if detected!($feature) {
                features |= $mask;
            }
        )+
        features
    }};
}

#[cfg(target_arch = "x86_64")]
fn features() -> u64 {
    use hal_abi::processor::x86_64;
    collect!(std::arch::is_x86_feature_detected;
        "sse3" => x86_64::SSE3,
        "ssse3" => x86_64::SSSE3,
        "sse4.1" => x86_64::SSE4_1,
        "sse4.2" => x86_64::SSE4_2,
        "sse4a" => x86_64::SSE4A,
        "avx" => x86_64::AVX,
        "fma" => x86_64::FMA,
        "f16c" => x86_64::F16C,
        "avx2" => x86_64::AVX2,
        "avx512f" => x86_64::AVX512F,
        "avx512cd" => x86_64::AVX512CD,
        "avx512vl" => x86_64::AVX512VL,
        "avx512dq" => x86_64::AVX512DQ,
        "avx512bw" => x86_64::AVX512BW,
        "avx512ifma" => x86_64::AVX512IFMA,
        "avx512vbmi" => x86_64::AVX512VBMI,
        "avx512vpopcntdq" => x86_64::AVX512VPOPCNTDQ,
        "avx512vnni" => x86_64::AVX512VNNI,
        "avx512vbmi2" => x86_64::AVX512VBMI2,
        "avx512bitalg" => x86_64::AVX512BITALG,
        "avx512bf16" => x86_64::AVX512BF16,
        "avx512fp16" => x86_64::AVX512FP16,
    )
}

#[cfg(target_arch = "aarch64")]
fn features() -> u64 {
    use hal_abi::processor::arm_64;
    collect!(std::arch::is_aarch64_feature_detected;
        "fp" => arm_64::FP_ARMV8,
        "lse" => arm_64::LSE,
        "fp16" => arm_64::FULLFP16,
        "fhm" => arm_64::FP16FML,
        "dotprod" => arm_64::DOTPROD,
        "i8mm" => arm_64::I8MM,
        "bf16" => arm_64::BF16,
        "sve" => arm_64::SVE,
        "sve2" => arm_64::SVE2,
        "sve2-bitperm" => arm_64::SVE2_BITPERM,
        "f32mm" => arm_64::F32MM,
        "f64mm" => arm_64::F64MM,
    )
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> u64 {
    0
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use hal_abi::processor::x86_64::{AVX, AVX2, FMA, SSE3, SSSE3};

    use super::*;

    #[test]
    fn only_the_first_word_is_used_and_features_build_on_each_other() {
        let processor = detect();
        assert_eq!(processor.data[1..], [0; 7]);
        let features = processor.data[0];
        let has = |mask| features & mask != 0;
        assert!(!has(SSSE3) || has(SSE3));
        assert!(!(has(AVX2) || has(FMA)) || has(AVX));
    }
}
