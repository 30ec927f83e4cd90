//! Running other programs: print, run, capture with a time limit, find on `PATH`.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::manifest::Run;

/// Prints a command, runs it with this program's own streams and waits for it.
///
/// # Errors
///
/// When it cannot be started or does not exit with 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", shown(command));
    let status = command
        .status()
        .with_context(|| format!("starting {}", command.get_program().display()))?;
    if !status.success() {
        bail!("`{}` failed with {status}", shown(command));
    }
    Ok(())
}

/// Runs a command without input, captures what it prints and kills it at the time limit.
///
/// # Errors
///
/// When it cannot be started or its output cannot be read. Its failure is no error: it is in the returned [`Run`].
pub(crate) fn capture(command: &mut Command, limit: Duration) -> Result<Run> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}", command.get_program().display()))?;
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let stdout = scope.spawn(move || read_all(stdout.as_mut()));
        let stderr = scope.spawn(move || read_all(stderr.as_mut()));
        let status = wait(&mut child, limit)?;
        let joined = "the reader threads do not panic";
        Ok(Run {
            status,
            stdout: stdout.join().expect(joined)?,
            stderr: stderr.join().expect(joined)?,
        })
    })
}

/// Waits for a child; `None` when a signal, its own or ours at the time limit, ended it.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<Option<i32>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Reads a stream to its end.
fn read_all(stream: Option<&mut impl Read>) -> Result<String> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Finds an executable file of that name in the folders of `PATH`.
pub(crate) fn find_on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
}

/// Tells whether a path is a file that may be run.
pub(crate) fn is_executable(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        path.metadata()
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    }
    #[cfg(not(unix))]
    path.is_file()
}

/// Shows a command as it would be typed, with the variables it sets.
fn shown(command: &Command) -> String {
    let mut words: Vec<String> = Vec::new();
    for (name, value) in command.get_envs() {
        // The build folder is the same for every command; naming it each time would only be noise.
        if name == OsStr::new("CARGO_TARGET_DIR") {
            continue;
        }
        let value = value.unwrap_or_default().to_string_lossy();
        words.push(format!("{}={}", name.to_string_lossy(), quoted(&value)));
    }
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    words.push(program.to_string_lossy().into_owned());
    words.extend(
        command
            .get_args()
            .map(|word| quoted(&word.to_string_lossy())),
    );
    words.join(" ")
}

/// Quotes a word that a shell would split.
fn quoted(word: &str) -> String {
    if word.is_empty() || word.contains([' ', '"', '\'', '$', '*', ';', '&', '|']) {
        format!("'{word}'")
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_command_has_its_variables_and_quotes() {
        let mut command = Command::new("/usr/bin/cargo");
        command
            .args(["doc", "--x=a b"])
            .env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(
            shown(&command),
            "RUSTDOCFLAGS='-D warnings' cargo doc '--x=a b'"
        );
    }

    #[cfg(unix)]
    #[test]
    fn capture_keeps_the_streams_and_the_status() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let run = capture(&mut command, Duration::from_secs(30)).unwrap();
        assert_eq!(run.status, Some(3));
        assert_eq!(
            (run.stdout.as_str(), run.stderr.as_str()),
            ("out\n", "err\n")
        );
    }

    #[cfg(unix)]
    #[test]
    fn capture_ends_a_program_at_the_limit() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec sleep 60"]);
        let run = capture(&mut command, Duration::from_millis(20)).unwrap();
        assert_eq!(run.status, None);
    }
}
