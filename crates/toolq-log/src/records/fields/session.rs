//! Metadata of a session, its turns and its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use uuid::Uuid;

use crate::FORMAT_VERSION;
use crate::records::fields::result::ResultKind;
use crate::records::session_header::SessionHeader;
use redact::Mask;
use toolq_core::os::ProcessIdentity;
use toolq_core::types::MaskedText;

/// Metadata of a `session`: the process, and what it runs with.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionFields<'a> {
    toolq: &'static str,
    format: FormatFields,
    tools: ToolsFields<'a>,
    /// Missing if the input isn't known before the run, as with a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_sha256: Option<&'a str>,
    cwd: MaskedText<'a>,
    /// The directory in which commands run, and the base of relative paths in inputs.
    root: MaskedText<'a>,
    jobs: usize,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid_started: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_id: Option<String>,
    /// The session that began the task, if this session resumes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    resumes: Option<Uuid>,
    /// How many sessions have worked on the task, including this one.
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
    /// `resumed` is the task that the session resumes, and how many sessions have worked on it so far.
    pub(crate) fn new(
        header: &'a SessionHeader,
        resumed: Option<(Uuid, u32)>,
        mask: &'a Mask,
    ) -> Self {
        let (major, minor) = FORMAT_VERSION;
        let process = ProcessIdentity::current();
        Self {
            toolq: env!("CARGO_PKG_VERSION"),
            format: FormatFields { major, minor },
            tools: ToolsFields {
                path: MaskedText(&header.tools_path, mask),
                sha256: &header.tools_sha256,
            },
            input_sha256: header.input_sha256.as_deref(),
            cwd: MaskedText(&header.cwd, mask),
            root: MaskedText(&header.root, mask),
            jobs: header.jobs.get(),
            pid: process.pid,
            pid_started: process.start_ticks,
            boot_id: process.boot_id,
            resumes: resumed.map(|(task, _)| task),
            epoch: resumed.map_or(0, |(_, epoch)| epoch) + 1,
            sync: header.sync.name(),
        }
    }
}

/// Metadata of a `turn`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TurnFields {
    /// Number of the turn, counted from 0. The turns of an agent are counted separately.
    pub turn: usize,
    /// The tool of the call that an agent works on in this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Metadata of a `session_end`: what the session recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndFields {
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
    /// Number of calls whose result was restored from the log.
    #[serde(default)]
    pub recalled: usize,
    /// Number of calls that were answered, including those whose result was already in the log.
    #[serde(default)]
    pub answered: usize,
}

impl EndFields {
    /// Counts the end of a call.
    pub(crate) fn count_call_end(&mut self, kind: ResultKind, is_error: bool) {
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
