//! Reading the fenced blocks of a document: which are commands to run, which are files to save first.

use anyhow::{Context, Result, bail};

/// What a block asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Save the text under this path.
    Save { path: String, text: String },
    /// Run the lines as a script that must succeed.
    Script(String),
    /// Run commands and compare what they print.
    Transcript(Vec<Step>),
}

/// One command of a transcript with the output it shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) command: String,
    pub(super) output: String,
}

/// A command that printed something else than its document shows.
#[derive(Debug)]
pub(super) struct Renewed {
    /// The line where its output begins.
    pub(super) line: usize,
    pub(super) expected: String,
    pub(super) found: String,
}

/// A block, where it begins and what it needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) line: usize,
    /// What must be installed, by the name after `needs=`.
    pub(super) needs: Option<String>,
    pub(super) action: Action,
}

/// Returns the blocks of a Markdown text that are to be saved or run, in order.
///
/// A block whose mark has `file=PATH` is saved; else `console` is a transcript and `sh` a script; any other is not run.
///
/// # Errors
///
/// When a block does not end, or output stands before the first command of a transcript.
pub(super) fn blocks(text: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(mark) = line.strip_prefix("```") else {
            continue;
        };
        let mut content = Vec::new();
        loop {
            match lines.next() {
                Some((_, "```")) => break,
                Some((number, line)) => content.push((number + 1, line)),
                None => bail!("line {}: the block has no end", index + 1),
            }
        }
        let mut words = mark.split_whitespace();
        let language = words.next().unwrap_or("");
        let attributes: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
        let attribute = |key| {
            let found = attributes.iter().find(|(name, _)| *name == key);
            found.map(|(_, value)| (*value).to_owned())
        };
        let joined = || -> String {
            content
                .iter()
                .map(|(_, line)| format!("{line}\n"))
                .collect()
        };
        let action = match (attribute("file"), language) {
            (Some(path), _) => Action::Save {
                path,
                text: joined(),
            },
            (None, "sh") => Action::Script(joined()),
            (None, "console") => Action::Transcript(steps(&content)?),
            _ => continue,
        };
        blocks.push(Block {
            line: index + 1,
            needs: attribute("needs"),
            action,
        });
    }
    Ok(blocks)
}

/// Returns the documentation at the head of a Rust source as Markdown; lines keep their numbers.
pub(super) fn head_of_source(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    lines
        .map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)))
        .collect()
}

/// Returns a document with the outputs that were found in place of those it shows. In a Rust source they are comments.
pub(super) fn with_outputs(text: &str, renewed: &[Renewed]) -> String {
    let is_source = text.starts_with("//!");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // From the end, so that the lines before keep their numbers.
    for output in renewed.iter().rev() {
        let found = output.found.lines().map(|line| match (is_source, line) {
            (true, "") => "//!".to_owned(),
            (true, line) => format!("//! {line}"),
            (false, line) => line.to_owned(),
        });
        let start = output.line - 1;
        lines.splice(start..start + output.expected.lines().count(), found);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Splits a transcript into its commands. A command ends with its line, or goes on after a `\` at the end.
fn steps(content: &[(usize, &str)]) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut continued = false;
    for (number, line) in content {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                line: *number,
                command: command.to_owned(),
                output: String::new(),
            });
            continued = command.ends_with('\\');
            continue;
        }
        let step = steps
            .last_mut()
            .with_context(|| format!("line {number}: output before a command"))?;
        let target = if continued {
            continued = line.ends_with('\\');
            step.command.push('\n');
            step.command.push_str(line);
            continue;
        } else {
            &mut step.output
        };
        target.push_str(line);
        target.push('\n');
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_commands_with_their_output() {
        let text = "```text\n$ rm x\n```\n```console\n$ a run \\\n    --module=a\nEXEC\nok\n$ b\n```\ntext\n";
        let blocks = blocks(text).unwrap();
        assert_eq!(blocks.len(), 1);
        let step = |line, command: &str, output: &str| Step {
            line,
            command: command.to_owned(),
            output: output.to_owned(),
        };
        let expected = vec![
            step(5, "a run \\\n    --module=a", "EXEC\nok\n"),
            step(9, "b", ""),
        ];
        assert_eq!(blocks[0].action, Action::Transcript(expected));
    }

    #[test]
    fn files_scripts_and_needs_are_read_from_the_mark() {
        let text = "```rust file=a/b.rs\nfn f() {}\n```\n```sh needs=iree\nx\n```\n```rust\n```\n";
        let blocks = blocks(text).unwrap();
        assert_eq!(blocks.len(), 2);
        assert_eq!(
            blocks[0].action,
            Action::Save {
                path: "a/b.rs".to_owned(),
                text: "fn f() {}\n".to_owned()
            }
        );
        assert_eq!(blocks[1].action, Action::Script("x\n".to_owned()));
        assert_eq!(
            (blocks[1].line, blocks[1].needs.as_deref()),
            (4, Some("iree"))
        );
    }

    #[test]
    fn output_without_a_command_and_a_block_without_an_end_are_refused() {
        assert!(blocks("```console\nhello\n```\n").is_err());
        assert!(blocks("```sh\nhello\n").is_err());
    }

    #[test]
    fn outputs_are_put_where_the_old_ones_stood() {
        let renewed = |line, expected: &str, found: &str| Renewed {
            line,
            expected: expected.to_owned(),
            found: found.to_owned(),
        };
        let text = "//! $ a\n//! x\n//! y\n//! $ b\nfn\n";
        let both = [renewed(2, "x\ny\n", "z\n"), renewed(5, "", "\nw\n")];
        assert_eq!(
            with_outputs(text, &both),
            "//! $ a\n//! z\n//! $ b\n//!\n//! w\nfn\n"
        );
        assert_eq!(
            with_outputs("$ a\nx\n", &[renewed(2, "x\n", "y\n")]),
            "$ a\ny\n"
        );
    }

    #[test]
    fn the_head_of_a_source_is_its_documentation() {
        let text = "//! A.\n//!\n//! ```console\n//! $ b\n//! ```\nfn f() {}\n//! no\n";
        assert_eq!(head_of_source(text), "A.\n\n```console\n$ b\n```\n");
    }
}
