//! The `readme` task: runs the commands of README.md and compares what they print.
//!
//! A fenced block marked `console` is a transcript: a line `$ command` is run in the workspace root, without a shell, and
//! the lines up to the next command are its standard output, to the byte. Blocks with another mark are not run.

use anyhow::{Context, Result, bail};

use crate::iree::TIME_LIMIT;
use crate::process;
use crate::workspace::Workspace;

/// One command of a transcript with the output it shows.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    line: usize,
    words: Vec<String>,
    output: String,
}

/// Runs every transcript of README.md.
///
/// # Errors
///
/// When a command fails or prints something else than the file shows.
pub(crate) fn readme(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if let Some(argument) = arguments.first() {
        bail!("unexpected argument `{argument}`");
    }
    let text = std::fs::read_to_string(workspace.root().join("README.md"))?;
    let steps = transcripts(&text)?;
    if steps.is_empty() {
        bail!("README.md shows no command");
    }
    // Building is what takes long; the time limit is for running.
    process::run(
        workspace
            .cargo("build")
            .args(["--release", "--package", "halite-cli"]),
    )?;
    for step in &steps {
        run(workspace, step)?;
    }
    Ok(())
}

/// Runs one command and compares.
fn run(workspace: &Workspace, step: &Step) -> Result<()> {
    eprintln!("$ {}", step.words.join(" "));
    let Some((program, arguments)) = step.words.split_first() else {
        bail!("README.md:{}: no command after `$`", step.line);
    };
    let mut command = match program.as_str() {
        "cargo" => workspace.cargo(arguments.first().map_or("", String::as_str)),
        other => bail!("README.md:{}: `{other}` is not cargo", step.line),
    };
    let run = process::capture(command.args(&arguments[1..]), TIME_LIMIT)?;
    if run.status != Some(0) || run.stdout != step.output {
        bail!(
            "README.md:{}: expected {:?}, found {:?} and status {:?}; stderr:\n{}",
            step.line,
            step.output,
            run.stdout,
            run.status,
            run.stderr
        );
    }
    Ok(())
}

/// Returns the commands of all `console` blocks.
fn transcripts(text: &str) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    let mut continued = false;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.starts_with("```") {
            inside = !inside && line == "```console";
            continued = false;
            continue;
        }
        if !inside {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                line: number,
                words: Vec::new(),
                output: String::new(),
            });
            continued = add_words(&mut steps, command);
        } else if continued {
            continued = add_words(&mut steps, line);
        } else {
            let step = steps
                .last_mut()
                .with_context(|| format!("README.md:{number}: output before a command"))?;
            step.output.push_str(line);
            step.output.push('\n');
        }
    }
    Ok(steps)
}

/// Adds a line's words to the last command; tells whether the command goes on in the next line.
fn add_words(steps: &mut [Step], line: &str) -> bool {
    let (line, continued) = match line.strip_suffix('\\') {
        Some(line) => (line, true),
        None => (line, false),
    };
    if let Some(step) = steps.last_mut() {
        step.words
            .extend(line.split_whitespace().map(str::to_owned));
    }
    continued
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_commands_with_their_output() {
        let text = "```sh\n$ rm x\n```\n```console\n$ cargo run \\\n    --module=a\nEXEC\nok\n$ cargo b\n```\ntext\n";
        let steps = transcripts(text).unwrap();
        let word = |step: &Step| step.words.join(" ");
        assert_eq!(steps.len(), 2);
        assert_eq!(
            (steps[0].line, word(&steps[0])),
            (5, "cargo run --module=a".to_owned())
        );
        assert_eq!(steps[0].output, "EXEC\nok\n");
        assert_eq!(
            (word(&steps[1]), steps[1].output.as_str()),
            ("cargo b".to_owned(), "")
        );
    }

    #[test]
    fn output_without_a_command_is_refused() {
        assert!(transcripts("```console\nhello\n```\n").is_err());
    }
}
