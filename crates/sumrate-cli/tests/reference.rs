//! `docs/reference/cli.md` says what the commands say: it is written from their declaration.
//!
//! `UPDATE_DOCS=1 cargo test -p sumrate-cli --test reference` writes it again.

use std::fmt::Write;
use std::path::Path;

use clap::{Arg, ArgAction, Command, CommandFactory, Parser};
use sumrate_cli::args::{self, Cli, CredentialAction, PathAction};

const HEAD: &str = "\
# Command line: `sumrate`

<!-- Written by `make reference` from the commands' own declaration; a test keeps it in step. -->

Every command has `--help`. `-v` (`--verbose`) says more on stderr, `-vv` still more; `SUMRATE_LOG`
sets it finer.
The JSON that `--json` prints is described in [JSON of the commands](json.md).

## Numbers with a suffix

Paths are counted as networks and their bills are, files and memory as programs count them. A flag
that is not named here takes no suffix; `Ki`, `MB` and the like are refused everywhere.

| flags | what | suffixes | fraction |
|---|---|---|---|
| `--window`, `--thesis-window`, `--stream-buffer`, `bench --bytes`, `credential add --quota` | bytes | `K`, `M`, `G`, `T` or small letters: powers of 1024 | no |
| `cp --limit`, `credential add --rate` | bytes a second | the same | no |
| `path set --quota`, `up --policy NAME=quota=10G` | bytes | `k` or `K`, `M`, `G`, `T`: powers of 1000 | `1.5G` |
| `path set --rate`, `up --policy NAME=rate=20M`, `bench --policy` likewise | bits a second | `k` or `K`, `M`, `G`: powers of 1000 | `1.5M` |
";

/// Text as a cell of a table or a paragraph: no line ends, nothing that is taken for markup.
fn plain(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    joined.replace('|', "\\|").replace('<', "&lt;").replace('[', "\\[")
}

fn name(argument: &Arg) -> String {
    let values: Vec<String> = argument
        .get_value_names()
        .filter(|_| argument.get_action().takes_values())
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect();
    let long = argument.get_long().map(|long| format!("--{long}"));
    let short = argument.get_short().map(|short| format!("-{short}"));
    let flags: Vec<String> = short.into_iter().chain(long).collect();
    let shown = if flags.is_empty() { values.join(" ") } else { flags.join(", ") };
    if flags.is_empty() || values.is_empty() {
        shown
    } else {
        format!("{shown} {}", values.join(" "))
    }
}

fn meaning(argument: &Arg) -> String {
    let mut text = argument.get_help().map(|help| plain(&help.to_string())).unwrap_or_default();
    let shown = argument.get_possible_values();
    if argument.get_action().takes_values() && !shown.is_empty() {
        let values: Vec<String> =
            shown.iter().map(|value| format!("`{}`", value.get_name())).collect();
        let _ = write!(text, "; one of {}", values.join(", "));
    }
    let defaults = argument.get_default_values();
    if argument.get_action().takes_values() && !defaults.is_empty() {
        let values: Vec<_> = defaults.iter().map(|value| value.to_string_lossy()).collect();
        let _ = write!(text, " (default `{}`)", values.join(" "));
    }
    if matches!(argument.get_action(), ArgAction::Append) {
        text.push_str("; repeatable");
    }
    text
}

/// In a cell of a table: Markdown would show the backslash that keeps a bar from ending the cell.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('|', "&#124;")
}

fn describe(command: &mut Command, path: &str, out: &mut String) {
    let _ = write!(out, "\n## `{path}`\n");
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        let _ = write!(out, "\n{}.\n", plain(&about.to_string()).trim_end_matches('.'));
    }
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    let _ = write!(out, "\n`{usage}`\n");
    let shown = |argument: &&Arg| {
        !argument.is_hide_set()
            && !matches!(argument.get_id().as_str(), "help" | "version" | "verbose")
    };
    let arguments: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    if !arguments.is_empty() {
        out.push_str("\n| argument | meaning |\n|---|---|\n");
        for argument in arguments {
            let _ = writeln!(
                out,
                "| <code>{}</code> | {} |",
                escaped(&name(argument)),
                meaning(argument)
            );
        }
    }
    if let Some(after) = command.get_after_help() {
        let _ = write!(out, "\n```text\n{}\n```\n", after.to_string().trim());
    }
    for sub in command.get_subcommands_mut() {
        if sub.get_name() != "help" && !sub.is_hide_set() {
            let path = format!("{path} {}", sub.get_name());
            describe(sub, &path, out);
        }
    }
}

fn reference() -> String {
    let mut command = Cli::command();
    command.build();
    let mut out = HEAD.to_owned();
    describe(&mut command, "sumrate", &mut out);
    out
}

#[test]
fn the_page_of_the_commands_is_in_step() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let wanted = reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&page, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(found == wanted, "{} is out of step: run `make reference`", page.display());
}

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
    check(&Cli::command(), &reference());
}

/// The number that a flag of a command line says, if the command line is right.
fn number(line: &str) -> Option<u64> {
    let parsed = Cli::try_parse_from(format!("sumrate {line}").split(' ')).ok()?;
    match parsed.command {
        args::Command::Cp(args) => args.limit,
        args::Command::Bench(args) => {
            args.bytes.or(args.protocol.window).or(args.protocol.thesis_window)
        }
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

#[test]
fn suffixes_mean_what_the_page_says() {
    let add = "credential add --advertise 192.0.2.1:1";
    let bytes = [
        ("bench @l --window".to_owned(), true),
        ("bench @l --thesis-window".to_owned(), true),
        ("bench @l --bytes".to_owned(), true),
        (format!("{add} --quota"), true),
        (format!("{add} --rate"), true),
        ("cp a b: --limit".to_owned(), true),
        ("path set a --quota".to_owned(), false),
        ("path set a --rate".to_owned(), false),
        ("up @l --policy a=quota".to_owned(), false),
        ("up @l --policy a=rate".to_owned(), false),
    ];
    for (flag, is_binary) in bytes {
        let given = |value: &str| {
            let between = if flag.contains("--policy") { "=" } else { " " };
            number(&format!("{flag}{between}{value}"))
        };
        let base: u64 = if is_binary { 1024 } else { 1000 };
        let suffixes = ["K", "M", "G", "T"];
        for (power, suffix) in (1..).zip(suffixes) {
            let is_known = suffix != "T" || !flag.ends_with("rate") || is_binary;
            let wanted = is_known.then(|| 3 * base.pow(power));
            assert_eq!(given(&format!("3{suffix}")), wanted, "{flag} 3{suffix}");
        }
        assert_eq!(given("3k"), Some(3 * base), "{flag} 3k");
        assert_eq!(given("3m").is_some(), is_binary, "{flag} 3m");
        assert_eq!(given("1.5M"), (!is_binary).then_some(1_500_000), "{flag} 1.5M");
        for bad in ["3Ki", "3KiB", "3MB", "3P", "K"] {
            assert_eq!(given(bad), None, "{flag} {bad}");
        }
    }
}
