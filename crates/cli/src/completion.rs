//! Completion of topics and groups in shells: asks the cluster while the user types.

use std::{ffi::OsString, io::Write, time::Duration};

use clap::{Args, FromArgMatches};
use clap_complete::{CompletionCandidate, env::Shells};
use kohort::{Admin, admin::GroupFilter, text::printable};

use crate::{client::Connect, failure::Failure};

/// The variable by which the shell asks for completions.
const VARIABLE: &str = "COMPLETE";

/// How long the user waits for the names from the cluster.
const WAIT_MAX: Duration = Duration::from_millis(800);

/// The script that makes a shell ask this program for completions.
pub(crate) fn print_script(shell: clap_complete::Shell) -> Result<(), Failure> {
    let shells = Shells::builtins();
    let name = shell.to_string();
    let completer = shells
        .completer(&name)
        .ok_or_else(|| Failure::new(format!("there are no completions for {name}")))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, "kohort", "kohort", "kohort", &mut script)?;
    Ok(std::io::stdout().write_all(&script)?)
}

/// The topics of the cluster.
pub(crate) fn topics() -> Vec<CompletionCandidate> {
    candidates(async |admin| {
        let topics = admin.list_topics(false).await.ok()?;
        Some(topics.iter().map(|topic| topic.name.to_string()).collect())
    })
}

/// The groups of the cluster.
pub(crate) fn groups() -> Vec<CompletionCandidate> {
    candidates(async |admin| {
        let groups = admin.list_groups(&GroupFilter::default()).await.ok()?;
        let ids = groups.into_iter().map(|group| group.group_id.to_string());
        Some(ids.collect())
    })
}

/// Whatever goes wrong, there are no candidates: a shell has no place for messages.
fn candidates(names: impl AsyncFnOnce(Admin) -> Option<Vec<String>>) -> Vec<CompletionCandidate> {
    let listed = async {
        let admin = connection_options()?.admin().await.ok()?;
        names(admin).await
    };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return Vec::new();
    };
    let listed = runtime.block_on(async { tokio::time::timeout(WAIT_MAX, listed).await });
    let mut names = listed.ok().flatten().unwrap_or_default();
    names.retain(|name| printable(name) == name.as_str());
    names.sort_unstable();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// The connection options of the command line that is being completed.
fn connection_options() -> Option<Connect> {
    let command = Connect::augment_args(clap::Command::new("kohort"));
    let known = [
        "-b",
        "--bootstrap-server",
        "--command-config",
        "-X",
        "--property",
    ];
    let typed: Vec<OsString> = std::env::args_os().collect();
    let mut arguments = vec![OsString::from("kohort")];
    for pair in typed.windows(2) {
        if known.iter().any(|name| pair[0] == *name) {
            arguments.extend_from_slice(pair);
        }
    }
    let matches = command.try_get_matches_from(arguments).ok()?;
    Connect::from_arg_matches(&matches).ok()
}
