use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use uuid::Uuid;

use crate::FORMAT;
use crate::records::fields::result::ResultKind;
use crate::write::Session;
use redact::Mask;
use toolq_core::os::Process;
use toolq_core::types::MaskedText;

/// Of a `session`: who runs with what.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionFields<'a> {
    toolq: &'static str,
    format: FormatFields,
    tools: ToolsFields<'a>,
    /// None where it is not known before the run, as for a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_sha256: Option<&'a str>,
    cwd: MaskedText<'a>,
    /// Where commands run, and paths of inputs begin.
    root: MaskedText<'a>,
    jobs: usize,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid_started: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_id: Option<String>,
    /// The session that began the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    resumes: Option<Uuid>,
    /// How many sessions have worked on the task, this one included.
    epoch: u32,
    sync: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct FormatFields {
    major: u32,
    minor: u32,
}

#[derive(Serialize, JsonSchema)]
struct ToolsFields<'a> {
    path: MaskedText<'a>,
    sha256: &'a str,
}

impl<'a> SessionFields<'a> {
    /// `earlier` is the task that it resumes, and how many sessions have worked on it.
    pub(crate) fn of(session: &'a Session, earlier: Option<(Uuid, u32)>, mask: &'a Mask) -> Self {
        let (major, minor) = FORMAT;
        let process = Process::current();
        Self {
            toolq: env!("CARGO_PKG_VERSION"),
            format: FormatFields { major, minor },
            tools: ToolsFields {
                path: MaskedText(&session.tools_path, mask),
                sha256: &session.tools_sha256,
            },
            input_sha256: session.input_sha256.as_deref(),
            cwd: MaskedText(&session.cwd, mask),
            root: MaskedText(&session.root, mask),
            jobs: session.jobs.get(),
            pid: process.pid,
            pid_started: process.started,
            boot_id: process.boot_id,
            resumes: earlier.map(|(task, _)| task),
            epoch: earlier.map_or(0, |(_, epoch)| epoch) + 1,
            sync: session.sync.name(),
        }
    }
}

/// Of a `turn`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TurnFields {
    /// Its number, counted from 0; those of an agent are counted apart.
    pub turn: usize,
    /// The tool of the call that an agent works on in this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Of a `session_end`: what the session was told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndFields {
    /// `turn` records.
    pub turns: usize,
    /// `tool_call` records.
    pub calls: usize,
    /// `tool_result` records.
    pub results: usize,
    /// Those of them that are errors.
    pub errors: usize,
    /// `tool_skipped` records.
    pub skipped: usize,
    /// From its begin to its end.
    pub duration_ms: u64,
    /// How the program ended.
    pub exit_code: u8,
    /// `tool_in_doubt` records.
    #[serde(default)]
    pub in_doubt: usize,
    /// Calls whose answer was printed from the log.
    #[serde(default)]
    pub recalled: usize,
    /// Calls that were answered, those included whose answer the log had already.
    #[serde(default)]
    pub answered: usize,
}

impl EndFields {
    /// Counts a call's end.
    pub(crate) fn add(&mut self, kind: ResultKind, is_error: bool) {
        match kind {
            ResultKind::Skipped => self.skipped += 1,
            ResultKind::InDoubt => self.in_doubt += 1,
            ResultKind::Result => {
                self.results += 1;
                self.errors += usize::from(is_error);
            }
        }
    }
}
