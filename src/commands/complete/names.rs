//! The names that completions offer: of tools, servers, and session logs. What can't be read isn't offered.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};

use crate::commands::complete::described;
use crate::commands::log::session_id::session_id;
use crate::context::CommandContext;
use toolq_core::tools_file::parse_locked_tools_file;
use toolq_core::tools_lock::{LockUse, ToolsLock};
use toolq_core::types::ToolsConfig;

/// Number of sessions in the default directory that are offered, the latest first.
const MAX_SESSIONS: usize = 5;

/// Where the names are read from, once they are needed.
#[derive(Clone)]
pub(super) struct NameSource {
    tools_path: PathBuf,
    /// The directory of session logs.
    sessions: Option<PathBuf>,
}

impl NameSource {
    /// Creates a source for a command line. `words` may be incomplete, but may name another tools.yaml.
    pub(super) fn new(words: &[OsString], context: &CommandContext) -> Self {
        let complete_words = &words[..words.len().saturating_sub(1)];
        let named = find_tools_flag(complete_words);
        Self {
            tools_path: named.unwrap_or_else(|| context.tools_path.clone()),
            sessions: toolq_log::sessions_dir(&context.environment).ok(),
        }
    }

    /// Returns a completer that offers what `list` returns.
    pub(super) fn completer(
        &self,
        list: fn(&Self) -> Vec<CompletionCandidate>,
    ) -> ArgValueCompleter {
        let source = self.clone();
        ArgValueCompleter::new(move |word: &OsStr| starting_with(list(&source), word))
    }

    /// Returns a completer that offers files and the latest sessions: their paths or, once it has begun, an id.
    pub(super) fn log_completer(&self) -> ArgValueCompleter {
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
    pub(super) fn tools(&self) -> Vec<CompletionCandidate> {
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
    pub(super) fn servers(&self) -> Vec<CompletionCandidate> {
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
