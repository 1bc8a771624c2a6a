//! `sumrate man` and `sumrate completions`: both are made of the flags themselves.

use std::io;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::generate;
use clap_mangen::Man;
use serde::{Deserialize, Serialize};

use super::{CommandError, SetupError};
use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::output;

/// Name and version of the JSON form.
pub const MAN_SCHEMA: &str = "sumrate.man.v1";

/// What `man --dir` wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManReport {
    /// [`MAN_SCHEMA`].
    pub schema: String,
    /// The files.
    pub files: Vec<String>,
}

/// Prints or writes manual pages.
///
/// # Errors
/// [`CommandError`]
pub fn man(args: &ManArgs) -> Result<(), CommandError> {
    let Some(directory) = &args.dir else {
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page)?;
        return print(&page);
    };
    let failed = |error| SetupError::File { flag: "--dir", path: directory.clone(), error };
    let files = write_pages(directory).map_err(failed)?;
    if args.json {
        output::json(&ManReport { schema: MAN_SCHEMA.to_owned(), files })?;
    }
    Ok(())
}

/// Writes a page for each command into a directory, and says which.
fn write_pages(directory: &Path) -> io::Result<Vec<String>> {
    clap_mangen::generate_to(Cli::command(), directory)?;
    let mut root = Cli::command();
    root.build();
    let mut files = Vec::new();
    let mut waiting = vec![&root];
    while let Some(command) = waiting.pop() {
        let name = command.get_display_name().unwrap_or(command.get_name());
        files.push(directory.join(format!("{name}.1")).display().to_string());
        waiting.extend(command.get_subcommands().filter(|sub| sub.get_name() != "help"));
    }
    files.sort();
    Ok(files)
}

/// Prints a shell's completions.
///
/// # Errors
/// [`CommandError`]
pub fn completions(args: &CompletionsArgs) -> Result<(), CommandError> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "sumrate", &mut script);
    print(&script)
}

fn print(text: &[u8]) -> Result<(), CommandError> {
    Ok(output::print_bytes(text).map(drop)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    #[test]
    fn every_command_has_a_page_with_every_flag() {
        let directory = tempfile::tempdir().unwrap();
        let files = write_pages(directory.path()).unwrap();
        fn check(directory: &Path, command: &Command, count: &mut usize) {
            *count += 1;
            let name = command.get_display_name().unwrap_or(command.get_name());
            let page = std::fs::read_to_string(directory.join(format!("{name}.1"))).unwrap();
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                if let Some(long) = arg.get_long() {
                    let written = format!("\\-\\-{}", long.replace('-', "\\-"));
                    assert!(page.contains(&written), "{name}.1 has no --{long}");
                }
            }
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                check(directory, sub, count);
            }
        }
        let mut root = Cli::command();
        root.build();
        let mut count = 0;
        check(directory.path(), &root, &mut count);
        assert_eq!(files.len(), count);
        assert!(directory.path().join("sumrate-credential-add.1").is_file(), "{files:?}");
    }
}
