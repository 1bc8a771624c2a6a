//! `sumrate config`.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::CommandError;
use crate::args::{ConfigAction, ConfigArgs};
use crate::config::{ConfigFile, HOSTS, Key, Table, check, default_path, tables};
use crate::output;

/// Name and version of the JSON form.
pub const CONFIG_SCHEMA: &str = "sumrate.config.v1";
/// Width of the comments of the example.
const WIDTH: usize = 78;

/// The answer; what does not concern the action is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigReport {
    /// [`CONFIG_SCHEMA`].
    pub schema: String,
    /// The file that was checked and found right, for `check`; null where there is none.
    pub file: Option<String>,
    /// The names of the table `hosts`, for `check`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// The text, for `example`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

/// Checks or explains.
///
/// # Errors
/// [`CommandError`]
pub fn config(args: &ConfigArgs) -> Result<(), CommandError> {
    let mut report = ConfigReport { schema: CONFIG_SCHEMA.to_owned(), ..ConfigReport::default() };
    let said = match &args.action {
        ConfigAction::Check { file } => match file.clone().or_else(default_path) {
            Some(path) => {
                let file = ConfigFile::read(&path)?;
                check(&file)?;
                report.file = Some(path.display().to_string());
                report.hosts = Some(file.hosts().map(str::to_owned).collect());
                format!("{} is valid", path.display())
            }
            None => "there is no configuration file, and none is needed".to_owned(),
        },
        ConfigAction::Example { command } => {
            let text = example(command)?;
            report.example = Some(text.clone());
            text.trim_end().to_owned()
        }
    };
    if args.json {
        output::pretty_json(&report)?
    } else {
        output::line(&said)?
    }
    Ok(())
}

/// The example for some tables, or for all.
fn example(wanted: &[String]) -> Result<String, CommandError> {
    let tables = tables();
    let known = |name: &String| name == HOSTS || tables.iter().any(|table| table.name == *name);
    if let Some(unknown) = wanted.iter().find(|name| !known(name)) {
        let names: Vec<&str> = tables.iter().map(|t| t.name.as_str()).chain([HOSTS]).collect();
        return Err(CommandError::UnknownTable { name: unknown.clone(), known: names.join(", ") });
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|table| table == name);
    let mut text = String::from(
        "# Configuration of sumrate: values of flags that the command line does not give.\n\
         # `sumrate config check` reports mistakes. A file with a join link or a password\n\
         # needs mode 0600; write @FILE to keep them elsewhere.\n",
    );
    if is_wanted(HOSTS) {
        text += "\n# Names for `sumrate cp FILE NAME:`\n[hosts]\n# home = \"@/etc/sumrate/home.link\"\n";
    }
    for table in tables.iter().filter(|table| is_wanted(&table.name)) {
        text += &section(table);
    }
    Ok(text)
}

fn section(table: &Table) -> String {
    let mut text = format!("\n[{}]\n", table.name);
    for key in table.keys() {
        for line in wrapped(&key.help(), WIDTH) {
            let _ = writeln!(text, "# {line}");
        }
        let _ = writeln!(text, "# {} = {}", key.name, value(&key));
    }
    text
}

/// An example of a key's value.
fn value(key: &Key) -> String {
    match (key.default(), key.value_name()) {
        _ if key.is_switch() => "false".to_owned(),
        (Some(default), _) if default.parse::<f64>().is_ok() => default,
        (Some(default), _) => format!("{default:?}"),
        (None, Some(name)) if key.is_list() => format!("[{name:?}]"),
        (None, Some(name)) => format!("{name:?}"),
        (None, None) => "0".to_owned(),
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].len() + word.len() >= width {
            lines.push(word.to_owned());
        } else {
            let line = &mut lines[last];
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_example_is_a_configuration() {
        let text = example(&[]).unwrap();
        let file = ConfigFile::parse(&text, Path::new("e"), 0o600).unwrap();
        check(&file).unwrap();
        // Uncommented, every key is one that exists; only values are placeholders.
        let keys: String = text
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|rest| rest.contains(" = ")).unwrap_or(line))
            .fold(String::new(), |all, line| all + line + "\n");
        let file = ConfigFile::parse(&keys, Path::new("e"), 0o600).unwrap();
        if let Err(error) = check(&file) {
            assert!(!error.to_string().contains("unknown"), "{error}");
        }
        assert!(text.contains("\n[up]\n") && text.contains("# max-connections = 4096\n"), "{text}");
        assert!(text.lines().all(|line| line.len() <= WIDTH + 24), "{text}");
    }

    #[test]
    fn one_table_or_a_wrong_one() {
        let text = example(&["serve".to_owned()]).unwrap();
        assert!(text.contains("[serve]") && !text.contains("[up]"));
        assert!(matches!(
            example(&["bench".to_owned()]),
            Err(CommandError::UnknownTable { name, .. }) if name == "bench"
        ));
    }
}
