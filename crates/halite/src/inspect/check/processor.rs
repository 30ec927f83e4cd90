//! What the processor of this host can do, by the names that compilation targets use.
#![forbid(unsafe_code)]

/// Asks for one feature of a list; the standard library wants its name as a literal.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! detect_one {
    ($wanted:expr, $detected:path; $($feature:tt)+) => {{
        use $detected as detected;
        match $wanted {
            $($feature => Some(detected!($feature)),)+
            _ => None,
        }
    }};
}

/// Returns whether the processor of this host has a feature, or `None` if that cannot be found out.
#[cfg(target_arch = "x86_64")]
pub(super) fn host_has(feature: &str) -> Option<bool> {
    detect_one!(feature, std::arch::is_x86_feature_detected;
        "sse3" "ssse3" "sse4.1" "sse4.2" "sse4a" "popcnt" "bmi2" "lzcnt" "avx" "fma" "f16c" "avx2"
        "avx512f" "avx512cd" "avx512vl" "avx512dq" "avx512bw" "avx512ifma" "avx512vbmi"
        "avx512vpopcntdq" "avx512vnni" "avx512vbmi2" "avx512bitalg" "avx512bf16" "avx512fp16")
}

/// Returns whether the processor of this host has a feature, or `None` if that cannot be found out.
#[cfg(target_arch = "aarch64")]
pub(super) fn host_has(feature: &str) -> Option<bool> {
    detect_one!(feature, std::arch::is_aarch64_feature_detected;
        "lse" "dotprod" "i8mm" "bf16" "sve" "sve2" "f32mm" "f64mm")
}

/// Returns `None`: features cannot be found out on this architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn host_has(_feature: &str) -> Option<bool> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_without_a_known_name_cannot_be_found_out() {
        assert_eq!(host_has("no-such-feature"), None);
    }
}
