//! Metadata of a session, its turns and its end.

use std::num::NonZeroUsize;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FORMAT_VERSION;
use crate::records::record::{FormatVersion, RecordKind, recorded_text};
use redact::Mask;
use toolq_core::os::ProcessIdentity;
use toolq_core::types::{CallRef, ToolsChange, ToolsConfig, TurnOrigin};

/// Metadata of a `session`: the process, and what it runs with.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionRecord {
    /// Version of toolq.
    pub toolq: String,
    /// Format version of the records.
    pub format: FormatVersion,
    /// The tools file.
    pub tools: ToolsFileRef,
    /// The id of the plan that the session applies, if it does.
    pub plan: Option<String>,
    /// The current directory.
    pub cwd: String,
    /// The directory in which commands run, and the base of relative paths in inputs.
    #[serde(default)]
    #[serialize_always]
    pub root: Option<String>,
    /// How many calls may run at the same time.
    pub jobs: usize,
    /// The process.
    pub pid: u32,
    /// When that process started, in clock ticks since boot.
    pub pid_started: Option<u64>,
    /// The boot ID of the system at that time.
    pub boot_id: Option<String>,
}

/// The tools file of a session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolsFileRef {
    /// Its path, as given.
    pub path: String,
    /// Its digest.
    pub sha256: String,
}

impl SessionRecord {
    /// The record of a session of this process in the current directory, without a plan.
    pub fn new(tools_path: &Path, tools: &ToolsConfig, jobs: NonZeroUsize) -> Self {
        let (major, minor) = FORMAT_VERSION;
        let process = ProcessIdentity::current();
        // Without a current directory, commands with a relative path can't run; the session itself can.
        let current_dir = std::env::current_dir().unwrap_or_default();
        Self {
            toolq: env!("CARGO_PKG_VERSION").into(),
            format: FormatVersion { major, minor },
            tools: ToolsFileRef {
                path: tools_path.display().to_string(),
                sha256: tools.digest.clone(),
            },
            plan: None,
            cwd: current_dir.display().to_string(),
            root: Some(tools.root.display().to_string()),
            jobs: jobs.get(),
            pid: process.pid,
            pid_started: process.start_ticks,
            boot_id: process.boot_id,
        }
    }

    /// Masks the secrets in its paths.
    pub(crate) fn mask(&mut self, mask: &Mask) {
        let paths = [&mut self.tools.path, &mut self.cwd];
        for path in paths.into_iter().chain(&mut self.root) {
            *path = mask.apply(path).into_owned();
        }
    }

    /// Returns the process that ran the session.
    pub fn process(&self) -> ProcessIdentity {
        ProcessIdentity {
            pid: self.pid,
            start_ticks: self.pid_started,
            boot_id: self.boot_id.clone(),
        }
    }
}

/// Metadata of a `tools_change`: calls that are requested after it are checked and run with the definitions of this file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolsChangeRecord {
    /// The tools file as it is now.
    pub tools: ToolsFileRef,
}

impl ToolsChangeRecord {
    pub(crate) fn new(change: &ToolsChange, mask: &Mask) -> Self {
        Self {
            tools: ToolsFileRef {
                path: mask.apply(&change.path).into_owned(),
                sha256: change.tools.digest.clone(),
            },
        }
    }
}

/// Metadata of a `turn`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TurnRecord {
    /// Number of the turn, counted from 0. The turns of an agent are counted separately.
    pub turn: usize,
    /// The tool of the call that an agent works on in this turn.
    pub agent: Option<String>,
    /// The path of the input that the turn comes from, as it was given, or `-` for stdin.
    pub input: Option<String>,
    /// The id of the message or response that requested the calls.
    pub message_id: Option<String>,
    /// The model that wrote it.
    pub model: Option<String>,
}

impl TurnRecord {
    pub(crate) fn new(
        turn: usize,
        agent: Option<&CallRef>,
        origin: &TurnOrigin,
        mask: &Mask,
    ) -> Self {
        let recorded = |text: &str| recorded_text(text, mask).into_owned();
        Self {
            turn,
            agent: agent.map(|call| recorded(&call.tool_name)),
            input: origin.input.as_deref().map(recorded),
            message_id: origin.message_id.as_deref().map(recorded),
            model: origin.model.as_deref().map(recorded),
        }
    }
}

/// Metadata of a `session_end`: what the session recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEndRecord {
    /// Number of `turn` records.
    pub turns: usize,
    /// Number of `tool_call` records.
    pub calls: usize,
    /// Number of `tool_result` records.
    pub results: usize,
    /// Number of `tool_result` records that are errors.
    pub errors: usize,
    /// Number of `tool_skipped` records.
    pub skipped: usize,
    /// Duration of the session.
    pub duration_ms: u64,
    /// Exit code of the program.
    pub exit_code: u8,
    /// Number of `tool_in_doubt` records.
    #[serde(default)]
    pub in_doubt: usize,
    /// Number of calls that were answered from the memory.
    #[serde(default)]
    pub recalled: usize,
    /// Number of calls that were answered.
    #[serde(default)]
    pub answered: usize,
    /// Number of those that agents made.
    #[serde(default)]
    pub agent_calls: usize,
}

impl SessionEndRecord {
    /// Counts the end of a call, a record of this type.
    pub(crate) fn count_call_end(&mut self, kind: &RecordKind, is_error: bool) {
        match kind {
            RecordKind::ToolSkipped => self.skipped += 1,
            RecordKind::ToolInDoubt => self.in_doubt += 1,
            _ => {
                self.results += 1;
                self.errors += usize::from(is_error);
            }
        }
    }
}

// Metadata of a `recovered`.

/// Metadata of a `recovered`: what was set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveredRecord {
    /// Number of bytes that were removed from the end of the log.
    pub dropped_bytes: u64,
    /// SHA-256 of these bytes, in hexadecimal.
    pub sha256: String,
    /// Name of the file next to the log that holds them.
    pub file: String,
}

impl RecoveredRecord {
    /// Describes to the user what was done to the log at `path`.
    pub fn message(&self, path: &Path) -> String {
        let bytes = match self.dropped_bytes {
            1 => "1 byte".to_owned(),
            bytes => format!("{bytes} bytes"),
        };
        let file = path.with_file_name(&self.file);
        format!(
            "the end of the session log {} was torn; moved {bytes} of an incomplete record to {}",
            path.display(),
            file.display()
        )
    }
}
