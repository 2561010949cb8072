//! The settings of a broker: from a file, the environment and the command line.

use std::{
    collections::HashSet,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use kohort_broker::{Broker, Builder};
use toml::Value;

use super::Serve;
use crate::failure::Failure;

const DEFAULT_LISTEN: &str = "127.0.0.1:9092";

/// A broker to be, and where its settings come from.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) builder: Builder,
    settings: Vec<Setting>,
}

#[derive(Debug)]
struct Setting {
    name: String,
    value: String,
    /// Where somebody may have written it without knowing; `None`: on the command line.
    origin: Option<String>,
}

/// A broker with all its settings.
pub(super) fn gather(serve: &Serve) -> Result<Gathered, Failure> {
    let mut sources = Sources::default();
    sources.set("listeners", DEFAULT_LISTEN);
    if let Some(path) = &serve.config {
        sources.read_file(path)?;
    }
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    sources.read_environment(variables, &crate::environment_flags());
    let flags = Flags::of(serve);
    sources.set_flags(flags.of_variables());
    for setting in &serve.set {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| Failure::new(format!("--set takes NAME=VALUE, not \"{setting}\"")))?;
        sources.set(name.trim(), value.trim());
    }
    let flags = flags.of_command_line();
    if serve.in_memory && flags.data_dir.is_some() {
        return Err(Failure::new("--in-memory and --data-dir: say one of them"));
    }
    sources.set_flags(flags);
    if serve.in_memory {
        sources.set_place(Some(Place::Memory));
    }
    let has_log_dirs = sources.settings.iter().any(|it| it.name == "log.dirs");
    let mut builder = Broker::builder();
    for setting in &sources.settings {
        builder = builder.set(&setting.name, &setting.value);
    }
    let builder = match sources.place {
        Some(Place::Memory) => builder,
        Some(Place::Folder(folder)) => builder.data_dir(folder),
        None if has_log_dirs => builder,
        None => builder.data_dir(default_data_dir()),
    };
    Ok(Gathered {
        builder,
        settings: sources.settings,
    })
}

/// The flags that may also be variables: those are weaker than anything on the command line.
#[derive(Debug, Clone)]
struct Flags<'a> {
    listen: Option<String>,
    advertise: Option<String>,
    data_dir: Option<&'a Path>,
}

impl<'a> Flags<'a> {
    fn of(serve: &'a Serve) -> Flags<'a> {
        let joined = |addresses: &[String]| {
            let joined = addresses.join(",");
            (!addresses.is_empty()).then_some(joined)
        };
        Flags {
            listen: joined(&serve.listen),
            advertise: joined(&serve.advertise),
            data_dir: serve.data_dir.as_deref(),
        }
    }

    fn of_variables(&self) -> Flags<'a> {
        self.clone().filter(true)
    }

    fn of_command_line(self) -> Flags<'a> {
        self.filter(false)
    }

    fn filter(self, is_variable: bool) -> Flags<'a> {
        let is_wanted =
            |name, value: &OsStr| (std::env::var_os(name).as_deref() == Some(value)) == is_variable;
        Flags {
            listen: self
                .listen
                .filter(|it| is_wanted("KOHORT_LISTEN", it.as_ref())),
            advertise: self
                .advertise
                .filter(|it| is_wanted("KOHORT_ADVERTISE", it.as_ref())),
            data_dir: self
                .data_dir
                .filter(|it| is_wanted("KOHORT_DATA_DIR", it.as_os_str())),
        }
    }
}

impl Gathered {
    /// Where the setting comes from that an error names.
    pub(super) fn origin(&self, error: &str) -> Option<&str> {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let words: Vec<&str> = error
            .split(|c| !is_of_name(c))
            .map(|word| word.trim_matches('.'))
            .collect();
        let mut settings = self.settings.iter().rev();
        let named = settings.find(|setting| words.contains(&setting.name.as_str()))?;
        named.origin.as_deref()
    }
}

pub(crate) fn default_data_dir() -> PathBuf {
    let absolute = |name| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map_or_else(|| PathBuf::from("kohort-data"), |data| data.join("kohort"))
}

/// Where the data is to be.
#[derive(Debug, PartialEq)]
enum Place {
    Memory,
    Folder(PathBuf),
}

/// What has been set so far, the stronger later.
#[derive(Debug, Default)]
struct Sources {
    settings: Vec<Setting>,
    /// Unless `log.dirs` is set.
    place: Option<Place>,
}

impl Sources {
    fn set(&mut self, name: &str, value: &str) {
        self.set_from(name, value, None);
    }

    fn set_from(&mut self, name: &str, value: &str, origin: Option<String>) {
        // Kafka's name for the folder of the data.
        if name == "log.dirs" {
            self.set_place(None);
        }
        self.settings.push(Setting {
            name: name.to_owned(),
            value: value.to_owned(),
            origin,
        });
    }

    fn set_flags(&mut self, flags: Flags<'_>) {
        if let Some(listen) = &flags.listen {
            self.set("listeners", listen);
        }
        if let Some(advertise) = &flags.advertise {
            self.set("advertised.listeners", advertise);
        }
        if let Some(folder) = flags.data_dir {
            self.set_place(Some(Place::Folder(folder.to_owned())));
        }
    }

    /// Says where the data is to be, whatever was said before.
    fn set_place(&mut self, place: Option<Place>) {
        self.settings.retain(|setting| setting.name != "log.dirs");
        self.place = place;
    }

    fn read_file(&mut self, path: &Path) -> Result<(), Failure> {
        let failed = |what: String| Failure::new(format!("{}: {what}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            failed(error.to_string().trim_end().replace('\n', " "))
        })?;
        for (name, value) in &table {
            self.flatten(name, value, path).map_err(failed)?;
        }
        Ok(())
    }

    /// `num.partitions = 3` is a table in a table for TOML, and one name for Kafka.
    fn flatten(&mut self, name: &str, value: &Value, path: &Path) -> Result<(), String> {
        let text = match value {
            Value::Table(table) => {
                for (key, value) in table {
                    self.flatten(&format!("{name}.{key}"), value, path)?;
                }
                return Ok(());
            }
            Value::Array(values) => {
                let words = values.iter().map(|value| plain(name, value));
                words.collect::<Result<Vec<_>, _>>()?.join(",")
            }
            value => plain(name, value)?,
        };
        let origin = Some(path.display().to_string());
        match name {
            "listen" => self.set_from("listeners", &text, origin),
            "advertise" => self.set_from("advertised.listeners", &text, origin),
            "data-dir" => self.set_place(Some(Place::Folder(text.into()))),
            _ => self.set_from(name, &text, origin),
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
                let name = name.to_lowercase().replace('_', ".");
                is_setting.then_some((name, value, variable))
            })
            .collect();
        settings.sort();
        for (name, value, variable) in settings {
            self.set_from(&name, &value, Some(format!("the variable {variable}")));
        }
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
        let mut sources = Sources::default();
        sources.read_file(&folder).unwrap();
        std::fs::remove_file(&folder).unwrap();
        let mut settings = settings(&sources);
        settings.sort_unstable();
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
        let mut sources = Sources::default();
        let variables = [
            ("KOHORT_NUM_PARTITIONS", "4"),
            ("KOHORT_LISTEN", "x:1"),
            ("KOHORT_LOG", "debug"),
            ("KOHORT_BOOTSTRAP_SERVER", "x:1"),
            ("HOME", "/"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        sources.read_environment(variables.into_iter(), &crate::environment_flags());
        assert_eq!(settings(&sources), [("num.partitions", "4")]);
    }

    #[test]
    fn the_folder_of_the_data_has_two_names_of_which_the_last_counts() {
        let folder = |name: &str| Some(Place::Folder(name.into()));
        let mut sources = Sources::default();
        sources.set_place(folder("a"));
        sources.set("log.dirs", "b");
        assert_eq!(
            (&sources.place, settings(&sources)),
            (&None, vec![("log.dirs", "b")])
        );
        sources.set_place(folder("c"));
        assert_eq!((&sources.place, settings(&sources)), (&folder("c"), vec![]));
    }

    #[test]
    fn an_error_says_where_its_setting_comes_from() {
        let mut sources = Sources::default();
        let variable = ("KOHORT_SERVICE_HOST".to_owned(), "10.0.0.1".to_owned());
        sources.read_environment([variable].into_iter(), &HashSet::new());
        sources.set("num.partitions", "x");
        let gathered = Gathered {
            builder: Broker::builder(),
            settings: sources.settings,
        };
        let origin = |error| gathered.origin(error);
        assert_eq!(
            origin("there is no setting service.host (of a broker)"),
            Some("the variable KOHORT_SERVICE_HOST")
        );
        assert_eq!(
            origin("num.partitions cannot be \"x\": it must be a whole number"),
            None
        );
    }

    fn settings(sources: &Sources) -> Vec<(&str, &str)> {
        let settings = sources.settings.iter();
        settings
            .map(|setting| (setting.name.as_str(), setting.value.as_str()))
            .collect()
    }
}
