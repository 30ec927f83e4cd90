//! The two runtimes as commands: building or finding them, running them, reading what they measured.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::bench::programs::Program;
use crate::workspace::Workspace;
use crate::{iree, process};

/// The tools of both sides.
pub(super) struct Tools {
    halite: PathBuf,
    benchmark_module: PathBuf,
    run_module: PathBuf,
    /// The reference's release.
    pub(super) release: String,
    seconds: f64,
}

/// Who runs a program, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Halite on one thread.
    Ours,
    /// Halite on two threads.
    OursOnTwo,
    /// The reference, inline, on one thread.
    Reference,
    /// The reference's `local-task` device with two workers.
    LocalTask,
}

/// What a whole process took.
pub(super) struct Cost {
    /// From its start to its end, in nanoseconds.
    pub(super) wall: f64,
    /// The most memory it had at once, in bytes; `None` where there is no tool to tell.
    pub(super) peak: Option<f64>,
}

impl Tools {
    /// Builds our command and finds the reference's; `None`, with the reason printed, when it is not installed.
    ///
    /// The commands that a Python package installs only start the real ones, which costs more than many programs
    /// here; `probe` is run once to learn where those are.
    pub(super) fn find(
        workspace: &Workspace,
        probe: &Program,
        seconds: f64,
    ) -> Result<Option<Self>> {
        let Some(command) = iree::find("iree-benchmark-module") else {
            let missing = iree::missing(&["iree-benchmark-module"]);
            println!("bench: comparison skipped: {missing}");
            return Ok(None);
        };
        process::run(
            workspace
                .cargo("build")
                .args(["--release", "--package", "halite-cli"]),
        )?;
        let mut tools = Self {
            halite: install(&workspace.target().join("release/halite"))?,
            benchmark_module: command,
            run_module: PathBuf::new(),
            release: String::new(),
            seconds: 0.001,
        };
        let report = tools.report(Side::Reference, probe)?;
        let path = report["context"]["executable"].as_str();
        tools.benchmark_module = path.context("no `executable` in the context")?.into();
        tools.run_module = tools.benchmark_module.with_file_name("iree-run-module");
        tools.release = release(workspace)?;
        tools.seconds = seconds;
        Ok(Some(tools))
    }

    /// Returns the mean wall time of a call in nanoseconds, over as many calls as fit the time of a measurement.
    pub(super) fn time(&self, side: Side, program: &Program) -> Result<f64> {
        let report = self.report(side, program)?;
        let time = match side {
            Side::Ours | Side::OursOnTwo => report["mean_ns"].as_f64(),
            Side::Reference | Side::LocalTask => reference_time(&report),
        };
        time.with_context(|| format!("no time in the report on {}: {report}", program.name))
    }

    /// Runs a benchmark and returns what it reports.
    fn report(&self, side: Side, program: &Program) -> Result<Value> {
        let seconds = self.seconds;
        let mut command = match side {
            Side::Ours | Side::OursOnTwo => {
                let mut command = Command::new(&self.halite);
                command.args(["bench", "--format=json"]);
                command.arg(format!("--benchmark_min_time={seconds}"));
                command
            }
            Side::Reference | Side::LocalTask => {
                let mut command = Command::new(&self.benchmark_module);
                command.arg("--benchmark_format=json");
                command.arg(format!("--benchmark_min_time={seconds}s"));
                command
            }
        };
        let device_module = || {
            let module = program.device_module.as_deref();
            module.with_context(|| format!("no {}.async.vmfb", program.name))
        };
        let module = match side {
            Side::Ours | Side::Reference => &program.module,
            Side::OursOnTwo => {
                command.arg("--threads=2");
                &program.module
            }
            Side::LocalTask => {
                command.args(["--device=local-task", "--task_topology_group_count=2"]);
                device_module()?
            }
        };
        command.current_dir(&program.folder).args(&program.args);
        command.arg(format!("--module={}", module.display()));
        let run = process::capture(&mut command, iree::TIME_LIMIT)?;
        if run.status != Some(0) {
            let status = run.status;
            bail!(
                "{side:?} on {}: status {status:?}: {}",
                program.name,
                run.stderr
            );
        }
        serde_json::from_str(&run.stdout)
            .with_context(|| format!("{side:?} on {} printed {:?}", program.name, run.stdout))
    }

    /// Runs a program once in a process of its own; `side` is [`Side::Ours`] or [`Side::Reference`].
    ///
    /// Memory is measured in another run, as GNU time has to start the program for it.
    pub(super) fn whole_process(&self, side: Side, program: &Program) -> Result<Cost> {
        let start = Instant::now();
        let status = self.run_command(side, program, &[])?.status()?;
        let wall = start.elapsed();
        if !status.success() {
            bail!("{side:?} on {}: {status}", program.name);
        }
        Ok(Cost {
            wall: nanoseconds(wall),
            peak: self.peak(side, program)?,
        })
    }

    /// Runs a program once and returns the most memory it had.
    ///
    /// Not by asking the system about a child of this process: a child begins with the memory of its parent, and the
    /// system counts that. GNU time is smaller than what it measures here.
    fn peak(&self, side: Side, program: &Program) -> Result<Option<f64>> {
        let Some(time) = process::find_on_path("time") else {
            return Ok(None);
        };
        let words = [&time.to_string_lossy(), "-f", "%M"];
        let mut command = self.run_command(side, program, &words)?;
        let run = process::capture(&mut command, iree::TIME_LIMIT)?;
        let kilobytes = run.stderr.lines().last().and_then(|line| line.parse().ok());
        let kilobytes: f64 = kilobytes.with_context(|| format!("time printed {:?}", run.stderr))?;
        Ok(Some(kilobytes * 1024.0))
    }

    /// Returns the command that runs a program once, with words before it.
    fn run_command(&self, side: Side, program: &Program, before: &[&str]) -> Result<Command> {
        let mut words: Vec<PathBuf> = before.iter().map(PathBuf::from).collect();
        match side {
            Side::Ours => words.extend([self.halite.clone(), "run".into()]),
            Side::Reference => words.push(self.run_module.clone()),
            Side::OursOnTwo | Side::LocalTask => bail!("{side:?} is not measured as a process"),
        }
        let mut words = words.into_iter();
        let mut command = Command::new(words.next().context("a command has a name")?);
        command.args(words).args(&program.args);
        command.arg(format!("--module={}", program.module.display()));
        command.current_dir(&program.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }
}

/// Returns a copy of a program, as one that was installed: written front to back. A system keeps a file that a linker has
/// just written in smaller pieces, and pages it in more slowly.
fn install(built: &Path) -> Result<PathBuf> {
    let installed = built.with_file_name("halite-installed");
    let read = || -> std::io::Result<()> {
        std::fs::write(&installed, std::fs::read(built)?)?;
        let permissions = std::fs::metadata(built)?.permissions();
        std::fs::set_permissions(&installed, permissions)
    };
    read().with_context(|| format!("{} to {}", built.display(), installed.display()))?;
    Ok(installed)
}

/// Returns the time of a call in a report of `iree-benchmark-module`.
fn reference_time(report: &Value) -> Option<f64> {
    let benchmark = report["benchmarks"].as_array()?.first()?;
    let unit = match benchmark["time_unit"].as_str()? {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(benchmark["real_time"].as_f64()? * unit)
}

/// Returns the release of the installed reference: its runtime tools do not tell, its compiler does.
fn release(workspace: &Workspace) -> Result<String> {
    match iree::find("iree-compile") {
        Some(compiler) => iree::compiler_release(workspace, &compiler),
        None => Ok("of an unknown release".to_owned()),
    }
}

/// Returns a duration in nanoseconds.
fn nanoseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_reference_reports_in_several_units() {
        let report = |unit: &str| json!({"benchmarks": [{"real_time": 1.5, "time_unit": unit}]});
        assert_eq!(reference_time(&report("ns")), Some(1.5));
        assert_eq!(reference_time(&report("ms")), Some(1.5e6));
        assert_eq!(reference_time(&report("fortnights")), None);
        assert_eq!(reference_time(&json!({"benchmarks": []})), None);
    }
}
