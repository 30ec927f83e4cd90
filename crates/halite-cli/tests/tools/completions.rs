//! `halite completions`, and the help of all commands.

use crate::support::{fails, halite};

#[test]
fn shells_learn_the_commands_and_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let outcome = halite(&["completions", shell]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        assert!(outcome.stdout.contains("executable_plugin"), "{shell}");
        assert!(outcome.stdout.contains("inspect"), "{shell}");
    }
    fails(2, &["completions", "csh"], &["csh"]);
}

#[test]
fn the_help_of_each_command_has_an_example() {
    for command in [
        "run",
        "bench",
        "inspect",
        "check",
        "plugin",
        "exec",
        "compile",
        "completions",
    ] {
        let outcome = halite(&[command, "--help"]);
        assert_eq!(outcome.status, 0, "{command}");
        assert!(outcome.stdout.contains("Example"), "{command}");
        assert!(
            outcome.stdout.contains(&format!("\n  halite {command} ")),
            "{command}"
        );
    }
}
