//! `toolq __complete`: prints the candidates for the end of a command line. The scripts that `toolq generate completions`
//! prints call it.

mod names;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_complete::engine::{CompletionCandidate, complete};

use crate::args::{CompleteArguments, ProgramArguments};
use crate::commands::complete::names::NameSource;
use crate::context::CommandContext;
use crate::output::stdout;
use crate::output::{CommandError, Exit};

/// Returns the script that calls `toolq __complete`, or `None` if this shell isn't supported.
pub fn completion_script(shell: clap_complete::Shell) -> Option<&'static str> {
    match shell {
        clap_complete::Shell::Bash => Some(include_str!("toolq.bash")),
        clap_complete::Shell::Fish => Some(include_str!("toolq.fish")),
        clap_complete::Shell::Zsh => Some(include_str!("toolq.zsh")),
        _ => None,
    }
}

/// Prints `files` or `words`, and then a line per candidate: its text, a tab, and its help.
///
/// # Errors
/// Stdout can't be written.
pub fn print_candidates(
    arguments: &CompleteArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let words = arguments.words.clone();
    let Some(word) = words.last().cloned() else {
        return Ok(Exit::Ok);
    };
    let names = NameSource::new(&words, context);
    let mut command = add_names(ProgramArguments::command(), &names);
    let last = words.len() - 1;
    let current_dir = std::env::current_dir().ok();
    // A line that can't be completed has no candidates.
    let mut candidates =
        complete(&mut command, words, last, current_dir.as_deref()).unwrap_or_default();
    // The engine offers hidden commands where nothing else fits.
    candidates.retain(|candidate| candidate.get_value() != "__complete");
    if word.is_empty() && !candidates.iter().all(is_flag) {
        candidates.retain(|candidate| !is_flag(candidate));
    }
    let are_paths = !candidates.is_empty() && candidates.iter().all(|path| is_path(path, &word));
    let kind = if are_paths { "files" } else { "words" };
    let lines = candidates.iter().filter_map(format_candidate);
    let lines: Vec<String> = std::iter::once(kind.to_owned()).chain(lines).collect();
    stdout::write_line(&lines.join("\n"))?;
    Ok(Exit::Ok)
}

/// Adds the names that depend on tools.yaml and on the session logs.
fn add_names(command: Command, names: &NameSource) -> Command {
    let tools = || names.completer(NameSource::tools);
    let servers = || names.completer(NameSource::servers);
    command
        .mut_subcommand("call", |call| {
            call.mut_arg("name", |name| name.add(tools()))
        })
        .mut_subcommand("serve", |serve| {
            serve.mut_arg("only", |only| only.add(tools()))
        })
        .mut_subcommand("servers", |command| {
            command
                .mut_arg("names", |name| name.add(servers()))
                .mut_subcommand("lock", |lock| {
                    lock.mut_arg("names", |name| name.add(servers()))
                })
        })
        .mut_subcommand("log", |log| {
            log.mut_subcommand("show", |show| {
                show.mut_arg("tool", |tool| tool.add(tools()))
            })
            .mut_subcommands(|verb| add_sessions(verb, names))
        })
}

/// Adds the names of sessions to the arguments of a verb of `toolq log` that name logs.
fn add_sessions(verb: Command, names: &NameSource) -> Command {
    verb.mut_args(|argument| match argument.get_id().as_str() {
        "files" | "file" => argument.add(names.log_completer()),
        _ => argument,
    })
}

fn is_flag(candidate: &CompletionCandidate) -> bool {
    candidate.get_value().as_encoded_bytes().starts_with(b"-")
}

/// Returns whether a candidate for `word` is a file or directory, without anything else that is known about it.
fn is_path(candidate: &CompletionCandidate, word: &OsStr) -> bool {
    let value = candidate.get_value().to_string_lossy();
    let flag = word.to_string_lossy();
    let flag = flag.split_once('=').map(|(flag, _)| flag);
    let path = flag
        .and_then(|flag| value.strip_prefix(flag)?.strip_prefix('='))
        .unwrap_or(&value);
    let is_path = path.ends_with('/') || path.starts_with('~') || Path::new(path).is_file();
    candidate.get_help().is_none() && is_path
}

/// Formats a candidate as its line, or returns `None` if it can't be part of a line.
fn format_candidate(candidate: &CompletionCandidate) -> Option<String> {
    let value = candidate.get_value().to_str()?;
    let help = candidate.get_help().map(ToString::to_string);
    let help = help.as_deref().and_then(|help| help.lines().next());
    let is_printable = !value.contains(char::is_control);
    is_printable.then(|| format!("{value}\t{}", help.unwrap_or_default()))
}

/// A candidate with its help.
fn described(value: impl Into<OsString>, help: String) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(help.into()))
}
