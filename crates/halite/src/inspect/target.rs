//! What the compiler was asked to compile for, where it left a note of it.
//!
//! Modules of the asynchronous model carry a message for the case that no device fits, and the message spells the
//! target out as the attribute that it was. Modules of the inline models carry nothing of the kind.
#![forbid(unsafe_code)]

#[cfg(feature = "serde")]
use serde::Serialize;

/// Start of the attribute in a message.
const ATTRIBUTE: &str = "#hal.executable.target<";

/// What the compiler was asked to compile executables for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct CompilationTarget {
    /// The compiler's backend, such as `llvm-cpu`.
    pub backend: String,
    /// The format of the executables, such as `embedded-elf-x86_64`.
    pub format: String,
    /// The processor, such as `generic` or `znver4`.
    pub cpu: Option<String>,
    /// The processor features that were switched on, without the `+`.
    pub cpu_features: Vec<String>,
}

/// Reads all targets that a text spells out.
pub(super) fn find(text: &str) -> Vec<CompilationTarget> {
    text.split(ATTRIBUTE).skip(1).filter_map(parse).collect()
}

/// Reads `"llvm-cpu", "embedded-elf-x86_64", {cpu = "generic", cpu_features = "+avx,-evex512", ..`.
fn parse(attribute: &str) -> Option<CompilationTarget> {
    let (head, options) = attribute.split_once('{').unwrap_or((attribute, ""));
    let mut quoted = head.split('"').skip(1).step_by(2);
    let (backend, format) = (quoted.next()?, quoted.next()?);
    let features = option(options, "cpu_features").unwrap_or_default();
    Some(CompilationTarget {
        backend: backend.to_owned(),
        format: format.to_owned(),
        cpu: option(options, "cpu")
            .filter(|cpu| !cpu.is_empty())
            .map(str::to_owned),
        cpu_features: features
            .split(',')
            .filter_map(|feature| feature.trim().strip_prefix('+'))
            .map(str::to_owned)
            .collect(),
    })
}

/// Returns the text of `name = "text"`.
fn option<'a>(options: &'a str, name: &str) -> Option<&'a str> {
    let rest = options.split_once(&format!("{name} = \""))?.1;
    Some(rest.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_from_the_message_that_spells_it_out() {
        let message = "HAL device `__device_0` not found or unavailable: #hal.device.target<\"local\", \
                       [#hal.executable.target<\"llvm-cpu\", \"embedded-elf-x86_64\", {cpu = \"haswell\", \
                       cpu_features = \"+avx,+avx2,-evex512\", data_layout = \"e-m:e\"}>]>";
        let targets = find(message);
        assert_eq!(targets.len(), 1);
        assert_eq!(targets[0].backend, "llvm-cpu");
        assert_eq!(targets[0].format, "embedded-elf-x86_64");
        assert_eq!(targets[0].cpu.as_deref(), Some("haswell"));
        assert_eq!(targets[0].cpu_features, ["avx", "avx2"]);
    }

    #[test]
    fn a_message_that_is_cut_short_gives_what_is_there() {
        let targets = find("#hal.executable.target<\"vmvx\", \"vmvx-bytecode-fb\"");
        assert_eq!(targets[0].cpu, None);
        assert_eq!(find("#hal.executable.target<\"vmvx"), []);
        assert_eq!(find("no target"), []);
    }
}
