//! What the numbers were measured on.

/// Returns one line: processor, cores, system, load.
pub(super) fn describe() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = model(&read("/proc/cpuinfo")).unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let kernel = read("/proc/sys/kernel/osrelease");
    let system = format!("{} {}", std::env::consts::OS, kernel.trim());
    let load = read("/proc/loadavg");
    let load = match load.split_whitespace().next() {
        Some(load) => format!(", load {load} at the start"),
        None => String::new(),
    };
    format!("machine: {model}, {cores} cores, {}{load}", system.trim())
}

/// Picks the processor's name and numbers out of the kernel's description.
fn model(cpuinfo: &str) -> Option<String> {
    let field = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim())
    };
    let name = field("model name")?;
    match (field("cpu family"), field("model\t")) {
        (Some(family), Some(model)) => Some(format!("{name} (family {family}, model {model})")),
        _ => Some(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_has_a_name() {
        let text = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n";
        assert_eq!(
            model(text).as_deref(),
            Some("AMD EPYC (family 25, model 1)")
        );
        assert_eq!(model("model name : x\n").as_deref(), Some("x"));
        assert_eq!(model(""), None);
    }
}
