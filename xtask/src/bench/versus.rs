//! `cargo xtask bench --vs-iree`: whole programs here and in an installed IREE, in turn.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::bench::programs::{Program, selected};
use crate::bench::report::{self, Table};
use crate::bench::statistics::Comparison;
use crate::bench::tools::{Side, Tools};
use crate::bench::{Options, document, machine, plot};
use crate::workspace::Workspace;

/// What a bar may be missed by, as two runs of one program differ by as much.
const NOISE: f64 = 1.03;
/// The bar of two threads, against the reference's pool and against one thread.
const TWO_THREADS_BAR: f64 = 0.6;
/// The program whose whole process is measured, and the bars of its time and memory.
const PROCESS: (&str, f64, f64) = ("mul4", 0.8, 1.0);
/// How many processes are started in a round: starting takes little time and varies much.
const PROCESSES_PER_ROUND: usize = 5;

/// One line of the table.
pub(super) struct Line {
    pub(super) group: Group,
    pub(super) name: String,
    /// The most that the ratio may be.
    pub(super) bar: f64,
    /// What was measured in each round: ours and theirs.
    rounds: Vec<(f64, f64)>,
    unit: Unit,
}

/// What is compared with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    OneThread,
    LocalTask,
    OwnThread,
    Process,
}

/// What the numbers count.
#[derive(Clone, Copy)]
enum Unit {
    Nanoseconds,
    Bytes,
}

/// Measures all selected programs on both sides and prints, records and draws what came out.
///
/// # Errors
///
/// When a tool that is there fails, or something cannot be written.
pub(super) fn compare(workspace: &Workspace, options: &Options) -> Result<()> {
    let programs = selected(workspace, options)?;
    let probe = programs.first().context("nothing is selected")?;
    let Some(tools) = Tools::find(workspace, probe, options.seconds)? else {
        return Ok(());
    };
    let mut lines = Vec::new();
    for round in 0..options.rounds {
        eprintln!("round {} of {}", round + 1, options.rounds);
        for program in &programs {
            measure(&tools, program, round, &mut lines)?;
        }
    }
    // Stable: within a group the programs stay in their order.
    lines.sort_by_key(|line| line.group);
    for program in programs.iter().filter(|program| program.local_task) {
        if program.device_module.is_none() {
            let name = &program.name;
            println!("bench: {name} on local-task skipped: no {name}.async.vmfb");
        }
    }

    let text = table(&lines).to_string();
    println!("\nreference: IREE {}\n\n{text}", tools.release);
    options.record(&record(&lines, &tools.release, options))?;
    if options.write {
        write(workspace, options, &tools.release, &text, &lines)?;
    }
    Ok(())
}

/// Measures one program once on each side. The sides take turns in going first.
fn measure(tools: &Tools, program: &Program, round: usize, lines: &mut Vec<Line>) -> Result<()> {
    let both = |sides: [Side; 2]| -> Result<(f64, f64)> {
        if round.is_multiple_of(2) {
            let ours = tools.time(sides[0], program)?;
            return Ok((ours, tools.time(sides[1], program)?));
        }
        let theirs = tools.time(sides[1], program)?;
        Ok((tools.time(sides[0], program)?, theirs))
    };
    let name = &program.name;
    let times = both([Side::Ours, Side::Reference])?;
    add(lines, Group::OneThread, name, program.bar, times);
    if program.local_task && program.device_module.is_some() {
        let times = both([Side::OursOnTwo, Side::LocalTask])?;
        add(lines, Group::LocalTask, name, TWO_THREADS_BAR, times);
    }
    if program.two_threads {
        let times = both([Side::OursOnTwo, Side::Ours])?;
        add(lines, Group::OwnThread, name, TWO_THREADS_BAR, times);
    }
    let (measured, wall_bar, memory_bar) = PROCESS;
    if name != measured {
        return Ok(());
    }
    for _ in 0..PROCESSES_PER_ROUND {
        let ours = tools.whole_process(Side::Ours, program)?;
        let theirs = tools.whole_process(Side::Reference, program)?;
        let time = format!("run {name}: time");
        add(
            lines,
            Group::Process,
            &time,
            wall_bar,
            (ours.wall, theirs.wall),
        );
        if let (Some(ours), Some(theirs)) = (ours.peak, theirs.peak) {
            let memory = format!("run {name}: memory");
            add(lines, Group::Process, &memory, memory_bar, (ours, theirs));
        }
    }
    Ok(())
}

/// Adds what was measured to its line, which it makes the first time.
fn add(lines: &mut Vec<Line>, group: Group, name: &str, bar: f64, round: (f64, f64)) {
    let is_it = |line: &&mut Line| line.group == group && line.name == name;
    if let Some(line) = lines.iter_mut().find(is_it) {
        line.rounds.push(round);
        return;
    }
    let unit = if name.ends_with("memory") {
        Unit::Bytes
    } else {
        Unit::Nanoseconds
    };
    lines.push(Line {
        group,
        name: name.to_owned(),
        bar,
        rounds: vec![round],
        unit,
    });
}

impl Line {
    /// Returns what came out. A line has at least one round.
    pub(super) fn comparison(&self) -> Comparison {
        Comparison::of(&self.rounds).expect("a line is made with its first round")
    }

    /// Tells whether the ratio is at or below its bar.
    pub(super) fn meets_its_bar(&self) -> bool {
        self.comparison().ratio <= self.bar * NOISE
    }
}

impl Group {
    /// Returns what is compared, for people.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::OneThread => "one thread",
            Self::LocalTask => "two threads, against local-task with two workers",
            Self::OwnThread => "two threads, against our own one thread",
            Self::Process => "whole process",
        }
    }
}

impl Unit {
    /// Shows a number with three digits and the unit that suits it.
    fn show(self, value: f64) -> String {
        match self {
            Self::Nanoseconds => report::time(value),
            Self::Bytes => format!("{:.2} MB", value / 1e6),
        }
    }
}

/// Returns the table of all lines.
fn table(lines: &[Line]) -> Table {
    let mut table = Table::new(&[
        "program",
        "compared",
        "ours",
        "reference",
        "ratio",
        "least to greatest",
        "bar",
        "",
    ]);
    for line in lines {
        let found = line.comparison();
        let verdict = if line.meets_its_bar() { "" } else { "missed" };
        table.row([
            line.name.clone(),
            line.group.title().to_owned(),
            line.unit.show(found.ours),
            line.unit.show(found.theirs),
            format!("{:.3}", found.ratio),
            format!("{:.3} to {:.3}", found.least, found.greatest),
            format!("{:.2}", line.bar),
            verdict.to_owned(),
        ]);
    }
    table
}

/// Returns everything that was measured.
fn record(lines: &[Line], release: &str, options: &Options) -> Value {
    let lines = lines.iter().map(|line| {
        let found = line.comparison();
        json!({
            "group": line.group.title(),
            "name": line.name,
            "unit": match line.unit { Unit::Nanoseconds => "ns", Unit::Bytes => "bytes" },
            "ours": found.ours,
            "reference": found.theirs,
            "ratio": found.ratio,
            "bar": line.bar,
            "rounds": line.rounds.iter().map(|round| json!([round.0, round.1])).collect::<Value>(),
        })
    });
    json!({
        "machine": machine::describe(),
        "reference": release,
        "seconds": options.seconds,
        "lines": lines.collect::<Value>(),
    })
}

/// Renews the table of the document and the plot beside it.
fn write(
    workspace: &Workspace,
    options: &Options,
    release: &str,
    table: &str,
    lines: &[Line],
) -> Result<()> {
    let document = document(workspace);
    let mut command = format!("cargo xtask bench --vs-iree --rounds={}", options.rounds);
    if options.models.is_some() {
        command.push_str(" --models=FOLDER");
    }
    let text = format!(
        "`{command} --write`; {}; reference IREE {release}.\n\n{table}",
        machine::describe(),
    );
    report::renew(&document, "vs-iree", &text)?;
    let plot = document.with_extension("svg");
    std::fs::write(&plot, plot::draw(lines)).with_context(|| plot.display().to_string())?;
    let shown = |path: &Path| path.display().to_string();
    println!("wrote {} and {}", shown(&document), shown(&plot));
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a line whose sides took this long in every round.
    pub(in crate::bench) fn line(group: Group, name: &str, bar: f64, times: (f64, f64)) -> Line {
        let mut lines = Vec::new();
        add(&mut lines, group, name, bar, times);
        add(&mut lines, group, name, bar, times);
        lines.remove(0)
    }

    #[test]
    fn a_line_collects_its_rounds() {
        let line = line(Group::OneThread, "mul4", 0.5, (100.0, 200.0));
        assert_eq!(line.rounds.len(), 2);
        assert!(line.meets_its_bar());
        let text = table(&[line]).to_string();
        let row = text.lines().last().unwrap();
        for cell in ["mul4", "one thread", "100 ns", "200 ns", "0.500", "0.50"] {
            assert!(row.contains(cell), "{row}");
        }
        assert!(!row.contains("missed"));
    }

    #[test]
    fn noise_is_no_miss() {
        let line = |ours| line(Group::OneThread, "matmul64", 1.0, (ours, 100.0));
        assert!(line(102.0).meets_its_bar());
        assert!(!line(104.0).meets_its_bar());
        assert!(table(&[line(104.0)]).to_string().contains("missed"));
    }

    #[test]
    fn one_program_has_a_line_in_each_group() {
        let mut lines = Vec::new();
        for group in [Group::OneThread, Group::OwnThread] {
            add(&mut lines, group, "matmul512", 1.0, (1.0, 1.0));
        }
        assert_eq!(lines.len(), 2);
    }
}
