//! The reference of the commands, which `examples/reference.rs` prints, has every command and flag.

use clap::{Command, CommandFactory, Parser};
use sumrate_cli::args::{self, Cli, CredentialAction, PathAction};

#[path = "../examples/reference.rs"]
#[allow(dead_code, reason = "`main` prints the page")]
mod page;

#[test]
fn every_command_and_flag_is_on_the_page() {
    fn check(command: &Command, page: &str) {
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            if let Some(long) = argument.get_long() {
                assert!(page.contains(&format!("--{long}")), "--{long}");
            }
        }
        for sub in command.get_subcommands() {
            assert!(page.contains(&format!(" {}`\n", sub.get_name())), "{}", sub.get_name());
            check(sub, page);
        }
    }
    check(&Cli::command(), &page::reference());
}

/// The number that a flag of a command line says, if the command line is right.
fn number(line: &str) -> Option<u64> {
    let parsed = Cli::try_parse_from(format!("sumrate {line}").split(' ')).ok()?;
    match parsed.command {
        args::Command::Cp(args) => args.limit,
        args::Command::Serve(args) => args.memory,
        args::Command::Bench(args) => args
            .bytes
            .or(args.protocol.window)
            .or(args.protocol.thesis_window)
            .or(args.protocol.stream_buffer),
        args::Command::Credential(args) => match args.action {
            CredentialAction::Add { rate, quota, .. } => rate.or(quota),
            _ => None,
        },
        args::Command::Path(args) => match args.action {
            PathAction::Set { settings, .. } => {
                settings.quota.or(settings.rate.map(|kilobits| u64::from(kilobits) * 1000))
            }
            PathAction::List => None,
        },
        args::Command::Up(args) => args.policy.first().and_then(|policy| {
            let kilobits = policy.change.rate_cap_kbps.map(u64::from);
            policy.change.quota_bytes.or(kilobits.map(|kilobits| kilobits * 1000))
        }),
        _ => None,
    }
}

/// The command lines of all flags that take a size or a rate, without the number.
const SIZES: [&str; 11] = [
    "bench @l --window",
    "bench @l --thesis-window",
    "bench @l --stream-buffer",
    "bench @l --bytes",
    "serve --listen 127.0.0.1:1 --memory",
    "credential add --advertise 192.0.2.1:1 --quota",
    "credential add --advertise 192.0.2.1:1 --rate",
    "cp a b: --limit",
    "path set a --quota",
    "path set a --rate",
    "up @l --policy a=quota",
];

#[test]
fn sizes_and_rates_have_one_notation() {
    for flag in SIZES.into_iter().chain(["up @l --policy a=rate"]) {
        let given = |value: &str| {
            let between = if flag.contains("--policy") { "=" } else { " " };
            number(&format!("{flag}{between}{value}"))
        };
        // To a kilobit, where that is the unit that is kept.
        let about = |value: Option<u64>| value.map(|value| (value + 500) / 1000);
        for (value, wanted) in [
            ("32M", 32_000_000_u64),
            ("32m", 32_000_000),
            ("1.5G", 1_500_000_000),
            ("32Mi", 32 << 20),
            ("1.5Gi", 3 << 29),
            ("20000K", 20_000_000),
            ("20000Ki", 20_000 << 10),
        ] {
            assert_eq!(about(given(value)), about(Some(wanted)), "{flag} {value}");
        }
        for bad in ["32MB", "32MiB", "32P", "M", "32i", "-32M"] {
            assert_eq!(given(bad), None, "{flag} {bad}");
        }
        for negative in ["-1", "-32M"] {
            let between = if flag.contains("--policy") { "=" } else { " " };
            let line = format!("sumrate {flag}{between}{negative}");
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err().to_string();
            assert!(error.contains(&format!("`{negative}` is not ")), "{line}: {error}");
        }
    }
}

#[test]
fn no_flag_of_a_size_is_left_out_of_the_test() {
    fn check(command: &Command) {
        for argument in command.get_arguments() {
            let names = argument.get_value_names().unwrap_or_default();
            let is_size = names.iter().any(|name| name.contains("BYTES") || name.contains("RATE"));
            if let (true, Some(long)) = (is_size, argument.get_long()) {
                let flag = format!("--{long}");
                let is_tested = SIZES.iter().any(|line| line.ends_with(&flag));
                assert!(is_tested, "{} {flag} is not in SIZES", command.get_name());
            }
        }
        command.get_subcommands().for_each(check);
    }
    check(&Cli::command());
}
