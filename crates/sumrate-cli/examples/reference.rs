//! Prints the reference of the `sumrate` commands as Markdown, from their declaration.
//!
//! `make docs` runs it for the page `reference/cli.md` of the documentation site.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command, CommandFactory};
use sumrate_cli::args::Cli;

const HEAD: &str = "\
# Command line: `sumrate`

Written from the program when this site was built. Every command has `--help`; `--help-all` also shows
flags for research and tuning, all of which are here. `-v` (`--verbose`) writes more log lines on stderr,
`-vv` still more; `SUMRATE_LOG` sets the level by module. `--log-format auto|text|json|journald` is the
format of the log. The JSON that `--json` prints is described in [JSON of the commands](json.md).

## Sizes and rates

`K`, `M`, `G` and `T` mean powers of 1000, `Ki`, `Mi`, `Gi` and `Ti` powers of 1024, in every flag and
every key of the configuration. Small letters and fractions (`1.5G`) are accepted, `MB` and the like are
not.

| unit | flags |
|---|---|
| bytes | `serve --memory`, `--window`, `--thesis-window`, `--stream-buffer`, `bench --bytes`, `credential add --quota`, `path set --quota`, `--policy NAME=quota=10G` |
| bytes a second | `cp --limit`, `credential add --rate` |
| bits a second | `path set --rate`, `--policy NAME=rate=20M` |
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
            && !matches!(argument.get_id().as_str(), "help" | "version" | "verbose" | "log_format")
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

pub(crate) fn reference() -> String {
    let mut command = Cli::command();
    command.build();
    let mut out = HEAD.to_owned();
    describe(&mut command, "sumrate", &mut out);
    out
}

fn main() {
    print!("{}", reference());
}
