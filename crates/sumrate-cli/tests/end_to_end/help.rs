//! Help texts, as reviewed snapshots: `cargo insta review` accepts a change.

use clap::CommandFactory;
use sumrate_cli::args::Cli;

use crate::harness::run;

#[test]
fn help_of_every_command() {
    let directory = tempfile::tempdir().unwrap();
    for name in [
        "",
        "serve",
        "up",
        "run",
        "bench",
        "status",
        "top",
        "explain",
        "path",
        "path set",
        "credential",
        "credential add",
        "cc",
        "config",
        "reload",
    ] {
        let arguments: Vec<&str> = name.split_whitespace().chain(["--help"]).collect();
        let output = run(directory.path(), &arguments);
        assert_eq!(output.status.code(), Some(0));
        let text = String::from_utf8(output.stdout).unwrap();
        let snapshot = format!("help_{}", name.replace(' ', "_"));
        insta::assert_snapshot!(snapshot.trim_end_matches('_'), text);
    }
}

#[test]
fn every_command_has_an_example() {
    fn check(command: &clap::Command) {
        for sub in command.get_subcommands() {
            let after = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            let is_group = sub.get_subcommands().next().is_some();
            assert!(is_group || after.contains("Example"), "{} has no example", sub.get_name());
            check(sub);
        }
    }
    let command = Cli::command();
    command.clone().debug_assert();
    check(&command);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let directory = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_sumrate");
    let state = directory.path().join("state");
    let script = format!(
        "{program} credential add --advertise 192.0.2.1:1 --state {0} | true; echo ${{PIPESTATUS[0]}}",
        state.display()
    );
    let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
}
