//! `toolq __complete`: prints the candidates for the end of a command line. The scripts that `toolq generate completions`
//! prints call it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _, complete,
};

use crate::commands::log::log_files::session_id;
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, stdout};
use toolq_core::tools_file::parse_locked_tools_file;
use toolq_core::tools_lock::{LockUse, ToolsLock};
use toolq_core::types::ToolsConfig;

#[derive(Debug, Args)]
pub struct CompleteArguments {
    /// The words of the command line, the last of which is to be completed
    #[arg(last = true, value_name = "WORD")]
    pub words: Vec<OsString>,
}

/// Returns the script that calls `toolq __complete`, or `None` if this shell isn't supported.
pub fn completion_script(shell: clap_complete::Shell) -> Option<&'static str> {
    match shell {
        clap_complete::Shell::Bash => Some(include_str!("toolq.bash")),
        clap_complete::Shell::Fish => Some(include_str!("toolq.fish")),
        clap_complete::Shell::Zsh => Some(include_str!("toolq.zsh")),
        _ => None,
    }
}

/// Completes the last word of a command line of `program`. Prints `files` or `words`, and then a line per candidate: its text, a tab, and its help.
///
/// # Errors
/// Stdout can't be written.
pub fn print_candidates(
    arguments: &CompleteArguments,
    mut program: Command,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let words = arguments.words.clone();
    let Some(word) = words.last().cloned() else {
        return Ok(Exit::Ok);
    };
    let names = NameSource::new(&words, context);
    program.build();
    let mut command = add_names(program, &names);
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

// The names that completions offer: of tools, servers, and session logs. What can't be read isn't offered.

/// Number of sessions in the default directory that are offered, the latest first.
const MAX_SESSIONS: usize = 5;

/// Where the names are read from, once they are needed.
#[derive(Clone)]
struct NameSource {
    tools_path: PathBuf,
    /// The directory of session logs.
    sessions: Option<PathBuf>,
}

impl NameSource {
    /// Creates a source for a command line. `words` may be incomplete, but may name another tools.yaml.
    pub(crate) fn new(words: &[OsString], context: &CommandContext) -> Self {
        let complete_words = &words[..words.len().saturating_sub(1)];
        let named = find_tools_flag(complete_words);
        Self {
            tools_path: named.unwrap_or_else(|| context.tools_path.clone()),
            sessions: toolq_log::sessions_dir(&context.environment).ok(),
        }
    }

    /// Returns a completer that offers what `list` returns.
    fn completer(&self, list: fn(&Self) -> Vec<CompletionCandidate>) -> ArgValueCompleter {
        let source = self.clone();
        ArgValueCompleter::new(move |word: &OsStr| starting_with(list(&source), word))
    }

    /// Returns a completer that offers files and the latest sessions: their paths or, once it has begun, an id.
    fn log_completer(&self) -> ArgValueCompleter {
        let source = self.clone();
        ArgValueCompleter::new(move |word: &OsStr| {
            let mut candidates = starting_with(source.sessions(), word);
            if !word.is_empty() {
                candidates.extend(starting_with(source.session_ids(), word));
            }
            candidates.extend(PathCompleter::file().complete(word));
            candidates
        })
    }

    /// Returns the tools.
    pub(crate) fn tools(&self) -> Vec<CompletionCandidate> {
        let tools = self.read_config().map(|config| config.tools);
        let tools = tools.unwrap_or_default();
        tools
            .iter()
            .map(|tool| {
                let help = tool.description.lines().next().unwrap_or_default();
                described(&tool.name, help.to_owned())
            })
            .collect()
    }

    /// Returns the servers.
    fn servers(&self) -> Vec<CompletionCandidate> {
        let config = self.read_config();
        let servers = config.map(|config| config.servers).unwrap_or_default();
        servers
            .iter()
            .map(|server| described(&server.name, "a server in tools.yaml".to_owned()))
            .collect()
    }

    fn read_config(&self) -> Option<ToolsConfig> {
        let text = std::fs::read_to_string(&self.tools_path).unwrap_or_default();
        let dir = self.tools_path.parent().unwrap_or(Path::new(""));
        let current_dir = std::env::current_dir().unwrap_or_default();
        let lock = ToolsLock::read(&self.tools_path).ok().flatten();
        let dir = current_dir.join(dir);
        parse_locked_tools_file(&text, &dir, &current_dir, LockUse::from(&lock)).tools
    }

    /// Returns the latest sessions.
    fn sessions(&self) -> Vec<CompletionCandidate> {
        let mut logs = self.list_sessions();
        logs.truncate(MAX_SESSIONS);
        let help = "a session in the default directory";
        logs.into_iter()
            .map(|log| described(log, help.to_owned()))
            .collect()
    }

    /// Returns the ids of all sessions.
    fn session_ids(&self) -> Vec<CompletionCandidate> {
        let logs = self.list_sessions();
        logs.iter()
            .map(|log| {
                let name = log.file_name().unwrap_or_default().to_string_lossy();
                described(session_id(log), name.into_owned())
            })
            .collect()
    }

    /// Returns the logs in the default directory, the latest first.
    fn list_sessions(&self) -> Vec<PathBuf> {
        let entries = self.sessions.as_deref().map(std::fs::read_dir);
        let entries = entries.into_iter().flatten().flatten().flatten();
        let mut logs: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .collect();
        // Their names begin with the time.
        logs.sort_unstable_by(|one, other| other.cmp(one));
        logs
    }
}

/// Returns the tools.yaml that an incomplete command line names, which clap can't parse yet.
fn find_tools_flag(words: &[OsString]) -> Option<PathBuf> {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let mut values = words
        .iter()
        .enumerate()
        .filter_map(|(at, word)| match *word {
            "-c" | "--tools" => words.get(at + 1).copied(),
            _ => word
                .strip_prefix("--tools=")
                .or_else(|| word.strip_prefix("-c")),
        });
    values.next_back().map(PathBuf::from)
}

fn starting_with(
    mut candidates: Vec<CompletionCandidate>,
    word: &OsStr,
) -> Vec<CompletionCandidate> {
    let word = word.as_encoded_bytes();
    candidates.retain(|candidate| candidate.get_value().as_encoded_bytes().starts_with(word));
    candidates
}
