//! What `--help` promises for every command.

use std::process::Command;

const COMMANDS: [&[&str]; 14] = [
    &["serve"],
    &["topics", "create"],
    &["topics", "list"],
    &["topics", "describe"],
    &["topics", "delete"],
    &["produce"],
    &["consume"],
    &["groups", "list"],
    &["groups", "describe"],
    &["groups", "explain"],
    &["groups", "history"],
    &["groups", "rewind"],
    &["groups", "delete"],
    &["completions"],
];

fn help(command: &[&str], flag: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kohort"))
        .args(command)
        .arg(flag)
        .output()
        .expect("the program runs");
    String::from_utf8(output.stdout).expect("help is text")
}

#[test]
fn short_help_fits_into_80_columns() {
    for command in COMMANDS
        .into_iter()
        .chain([&[][..], &["demo"], &["topics"]])
    {
        for line in help(command, "-h").lines() {
            assert!(line.chars().count() <= 80, "{command:?}: {line}");
        }
    }
}

#[test]
fn every_command_shows_an_example_that_names_it() {
    for command in COMMANDS {
        let help = help(command, "--help");
        let (_, examples) = help.split_once("Example").expect("an example");
        let name = format!("kohort {}", command.join(" "));
        assert!(examples.contains(&name), "{command:?}");
    }
}

#[test]
fn connection_options_come_last() {
    for command in COMMANDS {
        let help = help(command, "-h");
        let Some((before, connection)) = help.split_once("\nConnection:\n") else {
            continue;
        };
        assert!(before.contains("--help"), "{command:?}");
        let options: Vec<_> = connection
            .lines()
            .filter_map(|line| line.split("--").nth(1)?.split(' ').next())
            .take(3)
            .collect();
        let expected = ["bootstrap-server", "command-config", "timeout"];
        assert_eq!(options, expected, "{command:?}");
    }
}

#[test]
fn the_version_is_printed_however_it_is_asked_for() {
    let expected = concat!("kohort ", env!("CARGO_PKG_VERSION"), "\n");
    for flag in ["-v", "-V", "--version", "version"] {
        assert_eq!(help(&[], flag), expected, "{flag}");
    }
}
