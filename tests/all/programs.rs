//! Every row of the fixture manifest goes through the `halite` command, in this process.

use halite_cli::Streams;
use halite_tests::fixtures;

use crate::fixtures::rows;
use crate::manifest::{Row, Run};
use crate::plugins;

/// Runs `halite run` with a row's arguments.
fn run(row: &Row) -> Run {
    let mut arguments = vec!["halite".to_owned(), "run".to_owned()];
    arguments.push(format!(
        "--module={}",
        fixtures().join(&row.module).display()
    ));
    arguments.extend(row.arguments(&plugins::folder()));
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        stdin: &mut std::io::empty(),
        stdout: &mut stdout,
        stderr: &mut stderr,
        color: false,
    };
    let status = halite_cli::main_with(arguments.into_iter().map(Into::into), &mut streams);
    Run {
        status: Some(status.into()),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

#[test]
fn every_fixture_does_what_its_release_did() {
    let mut failures = Vec::new();
    for row in rows() {
        if row.needs_plugin() && !plugins::is_built("scale_add_c.so") {
            continue;
        }
        if let Err(why) = row.judge(&run(&row)) {
            failures.push(format!("{} {:?}: {why}", row.module, row.args));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
