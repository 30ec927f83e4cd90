//! `cargo xtask bench`: single operations. Instructions are counted under valgrind, time is measured with criterion.
//!
//! The number of instructions of an operation is the difference between two runs of different lengths, divided by the
//! difference of the lengths: the start of the process is in neither. An operation that a loop of bytecode repeats is
//! counted without the loop.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::bench::report::{self, Table};
use crate::bench::{Options, document, machine, read_json};
use crate::workspace::Workspace;
use crate::{iree, process};

/// An operation to measure.
struct Operation {
    /// The scenario of `crates/halite/benches/micro` that repeats it.
    scenario: &'static str,
    what: &'static str,
    /// Whether a loop of bytecode repeats it.
    in_loop: bool,
    bar: Bar,
    /// What the reference needs, where it was measured.
    reference: &'static str,
}

/// What an operation may cost.
#[derive(Clone, Copy)]
enum Bar {
    None,
    Instructions(f64),
    Nanoseconds(f64),
    /// The instructions of another scenario: what grew between the two costs nothing.
    AsMuchAs(&'static str),
}

/// What an operation was measured to cost.
#[derive(Clone, Copy, Default)]
struct Cost {
    instructions: Option<f64>,
    nanoseconds: Option<f64>,
}

/// The empty loop.
const LOOP: &str = "loop";
/// The lengths of the two runs.
const RUNS: (u64, u64) = (200, 10_200);
/// How much a count may differ from another that it shall be equal to: addresses and hash seeds differ between runs.
const SAME: f64 = 1.02;

const fn operation(
    scenario: &'static str,
    what: &'static str,
    in_loop: bool,
    bar: Bar,
    reference: &'static str,
) -> Operation {
    Operation {
        scenario,
        what,
        in_loop,
        bar,
        reference,
    }
}

/// The operations, in the order of the table. The numbers of the reference are those of release 3.13.0, measured once on
/// a machine of the same kind.
#[rustfmt::skip]
const OPERATIONS: &[Operation] = &[
    operation("load", "load and release an embedded executable, not the first", false, Bar::Nanoseconds(25_550.0), "73 us"),
    operation("inline_c0_b0", "dispatch without the VM: no bindings", false, Bar::None, ""),
    operation("inline_c0_b3", "dispatch without the VM: 3 bindings", false, Bar::None, ""),
    operation("inline_c0_b16", "dispatch without the VM: 16 bindings", false, Bar::None, ""),
    operation("inline_c16_b3", "dispatch without the VM: 3 bindings, 16 constants", false, Bar::None, ""),
    operation("inline_c0_b3_w1000", "dispatch without the VM: 3 bindings, 1000 workgroups", false, Bar::None, ""),
    operation(LOOP, "an iteration of an empty counted loop, interpreted", false, Bar::None, "61 instructions"),
    operation("loop_compiled_1000", "1000 iterations of an empty counted loop, compiled", false, Bar::Instructions(25_000.0), "61000 instructions"),
    operation("call_internal", "call a function of the same module", true, Bar::None, "25 to 34 ns"),
    operation("call_import", "call a native function", true, Bar::None, "36 to 40 ns"),
    operation("allocate", "`buffer.allocate`, 256 bytes, and release", true, Bar::None, "1930 instructions, 176 to 196 ns"),
    operation("lookup", "`lookup.function`, 5 functions", true, Bar::Instructions(100.0), "798 instructions, 66 ns"),
    operation("lookup_of_1024", "`lookup.function`, 1024 functions", true, Bar::Instructions(100.0), "5800 ns"),
    operation("dispatch_c0_b0", "dispatch: no bindings", true, Bar::None, ""),
    operation("dispatch_c0_b3", "dispatch: 3 bindings", true, Bar::Instructions(350.0), "1732 instructions, 116 ns"),
    operation("dispatch_c0_b16", "dispatch: 16 bindings", true, Bar::None, ""),
    operation("dispatch_c16_b3", "dispatch: 3 bindings, 16 constants", true, Bar::None, ""),
    operation("dispatch_c0_b3_w1000", "dispatch: 3 bindings, 1000 workgroups", true, Bar::None, "3.2 us"),
    operation("dispatch_import", "dispatch: a kernel that calls an import", true, Bar::None, ""),
    operation("invoke_empty", "call an empty function from the application", false, Bar::None, "133 ns"),
    operation("invoke_mul4", "call `mul4` from the application", false, Bar::None, "1.1 us"),
    operation("invoke_chain32", "call `chain32` from the application", false, Bar::None, "5.3 us"),
    operation("crowded_call_import", "call a native function, crowded", true, Bar::AsMuchAs("call_import"), ""),
    operation("crowded_lookup", "`lookup.function`, crowded", true, Bar::AsMuchAs("lookup"), ""),
    operation("crowded_dispatch", "dispatch: 3 bindings, crowded", true, Bar::AsMuchAs("dispatch_c0_b3"), ""),
    operation("crowded_dispatch_import", "dispatch: a kernel that calls an import, crowded", true, Bar::AsMuchAs("dispatch_import"), ""),
    operation("crowded_invoke_empty", "call an empty function, crowded", false, Bar::AsMuchAs("invoke_empty"), ""),
    operation(RESOLVE, "resolve 16 imports, 8 providers", false, Bar::None, ""),
];

/// The operation that an example of `hal-plugin` measures, and the arguments before its number of repetitions.
const RESOLVE: &str = "resolve";
const RESOLVE_ARGUMENTS: [&str; 3] = ["reused", "8", "16"];

/// Measures all selected operations and prints a table.
///
/// # Errors
///
/// When the benchmarks cannot be built or fail, or something cannot be written.
pub(super) fn measure(workspace: &Workspace, options: &Options) -> Result<()> {
    let programs = Programs::build(workspace)?;
    let valgrind = process::find_on_path("valgrind");
    if valgrind.is_none() {
        println!("bench: instructions are not counted: valgrind is not on PATH");
    }
    let is_wanted = |operation: &&Operation| options.selects(operation.scenario);
    let mut costs = BTreeMap::new();
    for operation in OPERATIONS.iter().filter(is_wanted) {
        eprintln!("{}", operation.scenario);
        let mut cost = Cost::default();
        if let Some(valgrind) = &valgrind {
            cost.instructions = Some(programs.instructions(valgrind, operation.scenario)?);
        }
        cost.nanoseconds = Some(programs.nanoseconds(workspace, operation.scenario)?);
        costs.insert(operation.scenario, cost);
    }
    if let Some(&empty) = costs.get(LOOP) {
        for operation in OPERATIONS.iter().filter(|operation| operation.in_loop) {
            if let Some(cost) = costs.get_mut(operation.scenario) {
                *cost = cost.without(empty);
            }
        }
    } else if OPERATIONS
        .iter()
        .filter(is_wanted)
        .any(|operation| operation.in_loop)
    {
        println!("bench: what is repeated by a loop is shown with it: `{LOOP}` is not selected");
    }

    let text = table(&costs).to_string();
    println!("\n{text}");
    options.record(&record(&costs))?;
    if options.write {
        let document = document(workspace);
        let text = format!(
            "`cargo xtask bench --write`; {}.\n\n{text}",
            machine::describe()
        );
        report::renew(&document, "micro", &text)?;
        println!("wrote {}", document.display());
    }
    Ok(())
}

/// The programs that repeat operations.
struct Programs {
    micro: PathBuf,
    resolve: PathBuf,
}

impl Programs {
    /// Builds them.
    fn build(workspace: &Workspace) -> Result<Self> {
        Ok(Self {
            micro: built(
                workspace,
                &["--package", "halite", "--bench", "micro"],
                "micro",
            )?,
            resolve: built(
                workspace,
                &["--package", "hal-plugin", "--example", "resolve_cost"],
                "resolve_cost",
            )?,
        })
    }

    /// Returns the words that repeat an operation `calls` times.
    fn command(&self, scenario: &str, calls: u64) -> Vec<String> {
        let (program, arguments): (_, &[&str]) = match scenario {
            RESOLVE => (&self.resolve, &RESOLVE_ARGUMENTS),
            _ => (&self.micro, &["--count", scenario]),
        };
        let program = program.display().to_string();
        let arguments = arguments.iter().map(ToString::to_string);
        let words = [program].into_iter().chain(arguments);
        words.chain([calls.to_string()]).collect()
    }

    /// Counts the instructions of an operation.
    fn instructions(&self, valgrind: &Path, scenario: &str) -> Result<f64> {
        let count = |calls| -> Result<f64> {
            let mut command = Command::new(valgrind);
            command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
            command.args(self.command(scenario, calls));
            let run = process::capture(&mut command, iree::TIME_LIMIT)?;
            if run.status != Some(0) {
                bail!(
                    "{scenario} under valgrind: {:?}: {}",
                    run.status,
                    run.stderr
                );
            }
            collected(&run.stderr).with_context(|| format!("no count in {:?}", run.stderr))
        };
        let (short, long) = RUNS;
        Ok((count(long)? - count(short)?) / (long - short) as f64)
    }

    /// Measures the time of an operation.
    fn nanoseconds(&self, workspace: &Workspace, scenario: &str) -> Result<f64> {
        if scenario == RESOLVE {
            let words = self.command(scenario, 1_000_000);
            let run =
                process::capture(Command::new(&words[0]).args(&words[1..]), iree::TIME_LIMIT)?;
            return time_per_resolution(&run.stdout)
                .with_context(|| format!("no time in {:?}", run.stdout));
        }
        let home = workspace.target().join("criterion");
        let mut command = Command::new(&self.micro);
        command
            .env("CRITERION_HOME", &home)
            .args(["--bench", "--exact", scenario]);
        command.args(["--warm-up-time", "0.3", "--measurement-time", "1"]);
        let run = process::capture(&mut command, iree::TIME_LIMIT)?;
        if run.status != Some(0) {
            bail!(
                "{scenario} under criterion: {:?}: {}",
                run.status,
                run.stderr
            );
        }
        let estimates = read_json(&home.join(scenario).join("new/estimates.json"))?;
        let median = estimates["median"]["point_estimate"].as_f64();
        median.with_context(|| format!("no median in {estimates}"))
    }
}

impl Cost {
    /// Returns the cost without that of something that is in it.
    fn without(self, part: Self) -> Self {
        let less = |whole: Option<f64>, part: Option<f64>| Some((whole? - part?).max(0.0));
        Self {
            instructions: less(self.instructions, part.instructions),
            nanoseconds: less(self.nanoseconds, part.nanoseconds),
        }
    }
}

/// Builds a target of the workspace and returns its program.
fn built(workspace: &Workspace, target: &[&str], name: &str) -> Result<PathBuf> {
    eprintln!("$ cargo build --release {}", target.join(" "));
    let mut command = workspace.cargo("build");
    command.args(["--release", "--message-format=json-render-diagnostics"]);
    let output = command.args(target).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("cargo build failed with {}", output.status);
    }
    executable(&String::from_utf8_lossy(&output.stdout), name)
        .with_context(|| format!("cargo built no program `{name}`"))
}

/// Finds the program of a target in cargo's messages.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let program = message["executable"].as_str()?;
        (message["target"]["name"] == name).then(|| program.into())
    })
}

/// Returns the number of instructions that callgrind says it saw.
fn collected(stderr: &str) -> Option<f64> {
    let (_, rest) = stderr.split_once("Collected : ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns the nanoseconds that `resolve_cost` says.
fn time_per_resolution(stdout: &str) -> Option<f64> {
    let (before, _) = stdout.split_once(" ns per resolution")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Tells what the bar of an operation is and whether it is met, `None` where one of both is not known.
fn judge(operation: &Operation, costs: &BTreeMap<&str, Cost>) -> Option<(String, bool)> {
    let cost = costs.get(operation.scenario)?;
    match operation.bar {
        Bar::None => None,
        Bar::Instructions(bar) => {
            Some((format!("{bar:.0} instructions"), cost.instructions? <= bar))
        }
        Bar::Nanoseconds(bar) => Some((report::time(bar), cost.nanoseconds? <= bar)),
        Bar::AsMuchAs(other) => {
            let bar = costs.get(other)?.instructions?;
            let text = format!("{bar:.0} instructions, as alone");
            Some((text, cost.instructions? <= bar * SAME))
        }
    }
}

/// Returns the table of what was measured.
fn table(costs: &BTreeMap<&str, Cost>) -> Table {
    let mut table = Table::new(&["operation", "instructions", "time", "bar", "", "reference"]);
    for operation in OPERATIONS {
        let Some(cost) = costs.get(operation.scenario) else {
            continue;
        };
        let (bar, is_met) = judge(operation, costs).unwrap_or((String::new(), true));
        table.row([
            operation.what.to_owned(),
            cost.instructions
                .map_or_else(String::new, |count| format!("{count:.0}")),
            cost.nanoseconds.map_or_else(String::new, report::time),
            bar,
            if is_met {
                String::new()
            } else {
                "missed".to_owned()
            },
            operation.reference.to_owned(),
        ]);
    }
    table
}

/// Returns what was measured.
fn record(costs: &BTreeMap<&str, Cost>) -> Value {
    let operations = costs.iter().map(|(scenario, cost)| {
        json!({
            "scenario": scenario,
            "instructions": cost.instructions,
            "ns": cost.nanoseconds,
        })
    });
    json!({ "machine": machine::describe(), "operations": operations.collect::<Value>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: Cost = Cost {
        instructions: Some(20.0),
        nanoseconds: Some(5.0),
    };

    #[test]
    fn callgrinds_count_is_read() {
        let text = "==1== Events    : Ir\n==1== Collected : 3939993\n==1==\n";
        assert_eq!(collected(text), Some(3_939_993.0));
        assert_eq!(collected(""), None);
    }

    #[test]
    fn the_time_of_a_resolution_is_read() {
        let text = "reused: 8 providers, 16 names: 312.5 ns per resolution\n";
        assert_eq!(time_per_resolution(text), Some(312.5));
    }

    #[test]
    fn the_program_of_a_target_is_found() {
        let messages = "{\"reason\":\"x\"}\nnoise\n\
            {\"target\":{\"name\":\"a\"},\"executable\":null}\n\
            {\"target\":{\"name\":\"b\"},\"executable\":\"/x/b-1\"}\n";
        assert_eq!(executable(messages, "b"), Some("/x/b-1".into()));
        assert_eq!(executable(messages, "a"), None);
    }

    #[test]
    fn the_loop_is_taken_off() {
        let cost = Cost {
            instructions: Some(120.0),
            nanoseconds: None,
        };
        let left = cost.without(EMPTY);
        assert_eq!((left.instructions, left.nanoseconds), (Some(100.0), None));
    }

    #[test]
    fn a_row_that_costs_more_in_a_crowd_is_a_miss() {
        let crowded = OPERATIONS
            .iter()
            .find(|row| row.scenario == "crowded_lookup");
        let with = |instructions| {
            let cost = Cost {
                instructions: Some(instructions),
                nanoseconds: None,
            };
            let costs = BTreeMap::from([("lookup", EMPTY), ("crowded_lookup", cost)]);
            judge(crowded.unwrap(), &costs).unwrap().1
        };
        assert!(with(20.2));
        assert!(!with(21.0));
    }

    #[test]
    fn a_bar_of_another_row_names_one_that_is_there() {
        for operation in OPERATIONS {
            if let Bar::AsMuchAs(other) = operation.bar {
                assert!(OPERATIONS.iter().any(|row| row.scenario == other));
            }
        }
    }
}
