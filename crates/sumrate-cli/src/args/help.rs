//! `--help` shows everyday flags, `--help-all` every flag.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command, CommandFactory};

use super::{Cli, RESEARCH};

/// The flag that shows every flag.
const ALL: &str = "--help-all";
/// Flags of every command, which only the help of `sumrate` itself describes.
const GLOBAL: [&str; 2] = ["verbose", "log_format"];

/// A command line in the words of clap, and whether its help shows every flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HelpWords {
    /// The command line.
    pub(crate) arguments: Vec<OsString>,
    /// The command line has `--help-all`.
    pub(crate) is_all: bool,
}

/// Replaces `--help-all` and `help COMMAND`, so that all help has one form. The arguments of a command that
/// `sumrate run` starts stay as they are.
pub(crate) fn help_words(mut arguments: Vec<OsString>) -> HelpWords {
    let is_flag = |argument: &OsString| argument.to_string_lossy().starts_with('-');
    let command = (1..arguments.len()).find(|index| !is_flag(&arguments[*index]));
    let is_run = command.is_some_and(|index| arguments[index] == "run");
    let is_help = command.is_some_and(|index| arguments[index] == "help");
    let own = match command {
        Some(index) if is_run => index + 2,
        _ => arguments.iter().position(|argument| argument == "--").unwrap_or(usize::MAX),
    };
    let own = own.min(arguments.len());
    let all = arguments[..own].iter().position(|argument| argument == ALL);
    if let Some(index) = all {
        arguments[index] = "--help".into();
    }
    if let (true, Some(index)) = (is_help, command) {
        // `help COMMAND` is `COMMAND --help`.
        arguments.remove(index);
        arguments.retain(|argument| argument != "--help" && argument != "-h");
        arguments.push("--help".into());
    }
    HelpWords { arguments, is_all: all.is_some() }
}

/// The declaration of the command line; without `is_all`, its help leaves out flags for research, and
/// repeats no flag of all commands.
pub(crate) fn declaration(is_all: bool) -> Command {
    let mut root = Cli::command();
    if is_all {
        return root;
    }
    leave_out_research(&mut root);
    shorten(&mut root);
    root.build();
    root.get_subcommands_mut().for_each(leave_out_global);
    root
}

fn leave_out_research(command: &mut Command) {
    let hidden = ids(command, |arg| arg.get_help_heading() == Some(RESEARCH));
    hide(command, &hidden);
    if !hidden.is_empty() {
        let help = "Show every flag, also those for research and tuning";
        let all = Arg::new("help-all").long("help-all").action(ArgAction::SetTrue).help(help);
        let all = all.help_heading(None);
        *command = std::mem::take(command).arg(all);
    }
    command.get_subcommands_mut().for_each(leave_out_research);
}

/// Has `--help` print a line or two for each flag, as `-h` does.
fn shorten(command: &mut Command) {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort);
    let help = help.help("Print help").help_heading(None);
    *command = std::mem::take(command).disable_help_flag(true).arg(help);
    command.get_subcommands_mut().for_each(shorten);
}

fn leave_out_global(command: &mut Command) {
    let hidden = ids(command, |arg| GLOBAL.contains(&arg.get_id().as_str()));
    hide(command, &hidden);
    command.get_subcommands_mut().for_each(leave_out_global);
}

fn ids(command: &Command, is_wanted: impl Fn(&Arg) -> bool) -> Vec<clap::Id> {
    command.get_arguments().filter(|arg| is_wanted(arg)).map(|arg| arg.get_id().clone()).collect()
}

fn hide(command: &mut Command, ids: &[clap::Id]) {
    for id in ids {
        *command = std::mem::take(command).mut_arg(id, |arg| arg.hide(true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> (String, bool) {
        let arguments = line.split(' ').map(OsString::from).collect();
        let HelpWords { arguments, is_all } = help_words(arguments);
        let arguments: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
        (arguments.join(" "), is_all)
    }

    #[test]
    fn every_way_to_ask_for_help_is_understood() {
        for (line, wanted, is_all) in [
            ("sumrate up --help-all", "sumrate up --help", true),
            ("sumrate --help-all", "sumrate --help", true),
            ("sumrate help up --help-all", "sumrate up --help", true),
            ("sumrate help --help-all", "sumrate --help", true),
            ("sumrate help --help", "sumrate --help", false),
            ("sumrate help up -h", "sumrate up --help", false),
            ("sumrate help path set", "sumrate path set --help", false),
            ("sumrate up --help", "sumrate up --help", false),
            ("sumrate run --help-all", "sumrate run --help", true),
            ("sumrate run ls --help-all", "sumrate run ls --help-all", false),
            ("sumrate run -- ls --help-all", "sumrate run -- ls --help-all", false),
        ] {
            assert_eq!(words(line), (wanted.to_owned(), is_all), "{line}");
        }
    }

    fn help(command: &str, is_all: bool) -> String {
        let mut root = declaration(is_all);
        root.build();
        let command = root.find_subcommand_mut(command).unwrap();
        match is_all {
            true => command.render_long_help().to_string(),
            false => command.render_help().to_string(),
        }
    }

    #[test]
    fn everyday_help_leaves_out_what_the_long_one_has() {
        for command in ["up", "serve", "bench", "cp"] {
            let (everyday, all) = (help(command, false), help(command, true));
            assert!(all.contains("--scheduler") && all.contains("--window-mode"), "{command}");
            assert!(
                !everyday.contains("--scheduler") && !everyday.contains("thesis"),
                "{everyday}"
            );
            assert!(everyday.contains("--help-all"), "{everyday}");
            assert!(
                !everyday.contains("--log-format") && all.contains("--log-format"),
                "{command}"
            );
            assert!(everyday.lines().count() < 100, "{command}: {}", everyday.lines().count());
        }
        assert!(!help("status", false).contains("--help-all"), "nothing is left out there");
    }
}
