//! What a program can ask about the processor.
//!
//! The features that are known are those that IREE's compiler writes tests for (`docs/abi.md`, section "Processor
//! data"), by LLVM's names.

/// The only category of facts there is.
const CPU: &[u8] = b"hal.cpu";

/// Returns the fact `key` of `category`, or `None` when it is not known.
///
/// A feature of the processor is 1 when programs may use it here and 0 otherwise. The standard library detects once
/// and remembers.
pub(crate) fn query(category: &[u8], key: &[u8]) -> Option<i64> {
    if category != CPU {
        return None;
    }
    FEATURES
        .iter()
        .find(|(name, _)| name.as_bytes() == key)
        .map(|(_, detect)| i64::from(detect()))
}

type Feature = (&'static str, fn() -> bool);

/// A feature that the standard library cannot detect, or whose use needs the operating system's leave.
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64"
))]
const fn undetected(name: &'static str) -> Feature {
    (name, || false)
}

#[cfg(target_arch = "x86_64")]
const FEATURES: &[Feature] = &[
    ("sse3", || is_x86_feature_detected!("sse3")),
    ("ssse3", || is_x86_feature_detected!("ssse3")),
    ("sse4.1", || is_x86_feature_detected!("sse4.1")),
    ("sse4.2", || is_x86_feature_detected!("sse4.2")),
    ("sse4a", || is_x86_feature_detected!("sse4a")),
    ("avx", || is_x86_feature_detected!("avx")),
    ("fma", || is_x86_feature_detected!("fma")),
    undetected("fma4"),
    undetected("xop"),
    ("f16c", || is_x86_feature_detected!("f16c")),
    ("avx2", || is_x86_feature_detected!("avx2")),
    ("avx512f", || is_x86_feature_detected!("avx512f")),
    ("avx512cd", || is_x86_feature_detected!("avx512cd")),
    ("avx512vl", || is_x86_feature_detected!("avx512vl")),
    ("avx512dq", || is_x86_feature_detected!("avx512dq")),
    ("avx512bw", || is_x86_feature_detected!("avx512bw")),
    ("avx512ifma", || is_x86_feature_detected!("avx512ifma")),
    ("avx512vbmi", || is_x86_feature_detected!("avx512vbmi")),
    ("avx512vpopcntdq", || {
        is_x86_feature_detected!("avx512vpopcntdq")
    }),
    ("avx512vnni", || is_x86_feature_detected!("avx512vnni")),
    ("avx512vbmi2", || is_x86_feature_detected!("avx512vbmi2")),
    ("avx512bitalg", || is_x86_feature_detected!("avx512bitalg")),
    ("avx512bf16", || is_x86_feature_detected!("avx512bf16")),
    ("avx512fp16", || is_x86_feature_detected!("avx512fp16")),
    undetected("amx-tile"),
    undetected("amx-int8"),
    undetected("amx-bf16"),
];

#[cfg(target_arch = "aarch64")]
use std::arch::is_aarch64_feature_detected;

#[cfg(target_arch = "aarch64")]
const FEATURES: &[Feature] = &[
    ("fp-armv8", || is_aarch64_feature_detected!("fp")),
    ("lse", || is_aarch64_feature_detected!("lse")),
    undetected("lse128"),
    ("fullfp16", || is_aarch64_feature_detected!("fp16")),
    ("fp16fml", || is_aarch64_feature_detected!("fhm")),
    ("dotprod", || is_aarch64_feature_detected!("dotprod")),
    ("i8mm", || is_aarch64_feature_detected!("i8mm")),
    ("bf16", || is_aarch64_feature_detected!("bf16")),
    ("sve", || is_aarch64_feature_detected!("sve")),
    ("sve2", || is_aarch64_feature_detected!("sve2")),
    undetected("sve2p1"),
    ("sve2-bitperm", || {
        is_aarch64_feature_detected!("sve2-bitperm")
    }),
    ("f32mm", || is_aarch64_feature_detected!("f32mm")),
    ("f64mm", || is_aarch64_feature_detected!("f64mm")),
    undetected("sme"),
    undetected("sme2"),
    undetected("sme2p1"),
    undetected("sme-f16f16"),
    undetected("sme-f64f64"),
    undetected("sme-i16i64"),
];

#[cfg(target_arch = "riscv64")]
const FEATURES: &[Feature] = &[
    undetected("v"),
    undetected("zvfhmin"),
    undetected("zvfh"),
    undetected("zvfbfwma"),
    undetected("xsmtvdot"),
    undetected("zvl256b"),
    undetected("zvl1024b"),
    undetected("zvl4096b"),
];

#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64"
)))]
const FEATURES: &[Feature] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_answer_as_the_processor_does_and_other_keys_are_unknown() {
        for (name, detect) in FEATURES {
            assert_eq!(
                query(CPU, name.as_bytes()),
                Some(i64::from(detect())),
                "{name}"
            );
        }
        assert_eq!(query(CPU, b"dotprodx"), None);
        assert_eq!(query(CPU, b""), None);
        assert_eq!(query(b"hal.cpuu", b"avx2"), None);
        assert_eq!(query(b"hal.gpu", b"fma"), None);
    }
}
