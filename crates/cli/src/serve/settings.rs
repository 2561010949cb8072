//! The settings of a broker: from a file, the environment and the command line.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use kohort_broker::{Broker, Builder};
use toml::Value;

use super::Serve;
use crate::failure::Failure;

const DEFAULT_LISTEN: &str = "127.0.0.1:9092";

/// What has been set, the stronger later.
#[derive(Debug, Default)]
struct Gathered {
    settings: Vec<(String, String)>,
    data_dir: Option<PathBuf>,
}

/// A broker with all its settings.
pub(super) fn gather(serve: &Serve) -> Result<Builder, Failure> {
    let mut gathered = Gathered::default();
    gathered.set("listeners", DEFAULT_LISTEN);
    if let Some(path) = &serve.config {
        gathered.read_file(path)?;
    }
    gathered.read_environment(std::env::vars(), &crate::environment_flags());
    for setting in &serve.set {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| Failure::new(format!("--set takes NAME=VALUE, not \"{setting}\"")))?;
        gathered.set(name.trim(), value.trim());
    }
    if let Some(listen) = &serve.listen {
        gathered.set("listeners", listen);
    }
    if let Some(advertise) = &serve.advertise {
        gathered.set("advertised.listeners", advertise);
    }
    let has_log_dirs = gathered.settings.iter().any(|(name, _)| name == "log.dirs");
    let data_dir = serve.data_dir.clone().or(gathered.data_dir);
    let mut builder = Broker::builder();
    for (name, value) in gathered.settings {
        builder = builder.set(name, value);
    }
    Ok(match data_dir {
        Some(folder) => builder.data_dir(folder),
        None if serve.in_memory || has_log_dirs => builder,
        None => builder.data_dir(default_data_dir()),
    })
}

fn default_data_dir() -> PathBuf {
    let absolute = |name| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map_or_else(|| PathBuf::from("kohort-data"), |data| data.join("kohort"))
}

impl Gathered {
    fn set(&mut self, name: &str, value: &str) {
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    fn read_file(&mut self, path: &Path) -> Result<(), Failure> {
        let failed = |what: String| Failure::new(format!("{}: {what}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            failed(error.to_string().trim_end().replace('\n', " "))
        })?;
        for (name, value) in &table {
            self.flatten(name, value).map_err(failed)?;
        }
        Ok(())
    }

    /// `num.partitions = 3` is a table in a table for TOML, and one name for Kafka.
    fn flatten(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let text = match value {
            Value::Table(table) => {
                for (key, value) in table {
                    self.flatten(&format!("{name}.{key}"), value)?;
                }
                return Ok(());
            }
            Value::Array(values) => {
                let words = values.iter().map(|value| plain(name, value));
                words.collect::<Result<Vec<_>, _>>()?.join(",")
            }
            value => plain(name, value)?,
        };
        match name {
            "listen" => self.set("listeners", &text),
            "advertise" => self.set("advertised.listeners", &text),
            "data-dir" => self.data_dir = Some(text.into()),
            _ => self.set(name, &text),
        }
        Ok(())
    }

    /// Takes the variables that are settings: those that no flag of any command has for itself.
    fn read_environment(
        &mut self,
        variables: impl Iterator<Item = (String, String)>,
        flags: &HashSet<String>,
    ) {
        let mut settings: Vec<_> = variables
            .filter_map(|(variable, value)| {
                let name = variable.strip_prefix("KOHORT_")?;
                let is_setting = !flags.contains(&variable);
                is_setting.then(|| (name.to_lowercase().replace('_', "."), value))
            })
            .collect();
        settings.sort();
        self.settings.extend(settings);
    }
}

fn plain(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        _ => Err(format!("{name} cannot be {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_file_are_kafkas_however_they_are_nested() {
        let folder = std::env::temp_dir().join(format!("kohort-settings-{}", std::process::id()));
        std::fs::write(
            &folder,
            "num.partitions = 3\nlisten = \"127.0.0.1:0\"\n[log]\nretention.ms = 5\ncleanup.policy = [\"compact\", \"delete\"]\n",
        )
        .unwrap();
        let mut gathered = Gathered::default();
        gathered.read_file(&folder).unwrap();
        std::fs::remove_file(&folder).unwrap();
        gathered.settings.sort();
        let settings: Vec<_> = gathered
            .settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            settings,
            [
                ("listeners", "127.0.0.1:0"),
                ("log.cleanup.policy", "compact,delete"),
                ("log.retention.ms", "5"),
                ("num.partitions", "3"),
            ]
        );
    }

    #[test]
    fn a_variable_of_the_environment_is_a_setting_unless_it_is_a_flag() {
        let mut gathered = Gathered::default();
        let variables = [
            ("KOHORT_NUM_PARTITIONS", "4"),
            ("KOHORT_LISTEN", "x:1"),
            ("KOHORT_LOG", "debug"),
            ("KOHORT_BOOTSTRAP_SERVER", "x:1"),
            ("HOME", "/"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        gathered.read_environment(variables.into_iter(), &crate::environment_flags());
        assert_eq!(
            gathered.settings,
            [("num.partitions".to_owned(), "4".to_owned())]
        );
    }
}
