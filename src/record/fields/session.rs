use serde::Serialize;

use crate::model::{Mask, MaskedText};
use crate::record::{FORMAT, Session};

use super::ResultKind;

/// Of a `session`: who runs with what.
#[derive(Serialize)]
pub(in crate::record) struct SessionFields<'a> {
    toolq: &'static str,
    format: FormatFields,
    tools: ToolsFields<'a>,
    /// None where it is not known before the run, as for a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_sha256: Option<&'a str>,
    cwd: MaskedText<'a>,
    jobs: usize,
    pid: u32,
}

#[derive(Serialize)]
struct FormatFields {
    major: u32,
    minor: u32,
}

#[derive(Serialize)]
struct ToolsFields<'a> {
    path: MaskedText<'a>,
    sha256: &'a str,
}

impl<'a> SessionFields<'a> {
    pub(in crate::record) fn of(session: &'a Session, mask: &'a Mask) -> Self {
        let (major, minor) = FORMAT;
        Self {
            toolq: env!("CARGO_PKG_VERSION"),
            format: FormatFields { major, minor },
            tools: ToolsFields {
                path: MaskedText(&session.tools_path, mask),
                sha256: &session.tools_sha256,
            },
            input_sha256: session.input_sha256.as_deref(),
            cwd: MaskedText(&session.cwd, mask),
            jobs: session.jobs.get(),
            pid: std::process::id(),
        }
    }
}

/// Of a `turn`.
#[derive(Serialize)]
pub(in crate::record) struct TurnFields<'a> {
    pub(in crate::record) turn: usize,
    /// The tool of the call that an agent works on in this turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::record) agent: Option<MaskedText<'a>>,
}

/// Of a `session_end`: what the session was told.
#[derive(Clone, Copy, Default, Serialize)]
pub(in crate::record) struct EndFields {
    pub(in crate::record) turns: usize,
    pub(in crate::record) calls: usize,
    /// `tool_result` records.
    pub(in crate::record) results: usize,
    /// Those of them that are errors.
    pub(in crate::record) errors: usize,
    /// `tool_skipped` records.
    pub(in crate::record) skipped: usize,
    pub(in crate::record) duration_ms: u64,
    pub(in crate::record) exit_code: u8,
    /// `tool_in_doubt` records.
    pub(in crate::record) in_doubt: usize,
}

impl EndFields {
    /// Counts a call's end.
    pub(in crate::record) fn add(&mut self, kind: ResultKind, is_error: bool) {
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
