//! Metadata of the records that say where tools come from: `describe_*` of tools that describe themselves, `list_*` of servers
//! that tools.lock doesn't have, and `server_*` of every server.

use std::borrow::Cow;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::records::call_end::ProcessExit;
use crate::records::record::recorded_text;
use redact::Mask;
use toolq_core::text::to_millis;
use toolq_core::types::{DescribeResult, Outcome, ServerEnd, ServerStart, Status, UnlockedServer};

/// Metadata of a `server_start`: a server is ready for calls, or has ended before it was.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServerStartRecord<'a> {
    /// The key in tools.yaml.
    #[serde(borrow)]
    pub server: Cow<'a, str>,
    /// How often it had been started before in this run.
    #[serde(default)]
    pub earlier_starts: u32,
    /// The process id of its program. Missing for a server over HTTP.
    pub pid: Option<i32>,
    /// How long it took from its start until it was ready. Missing if it never was.
    pub ready_ms: Option<u64>,
    /// The revision of the protocol that it is spoken to in.
    #[serde(borrow)]
    pub protocol: Option<Cow<'a, str>>,
    /// The era of that revision: `legacy` or `modern`.
    #[serde(borrow)]
    pub era: Option<Cow<'a, str>>,
    /// The name that it gives itself.
    #[serde(borrow)]
    pub name: Option<Cow<'a, str>>,
    /// The version that it gives itself.
    #[serde(borrow)]
    pub version: Option<Cow<'a, str>>,
    /// The digest of what it announced, as in a `list_end`, if it was asked for its tools.
    #[serde(borrow)]
    pub tools_sha256: Option<Cow<'a, str>>,
}

/// Metadata of a `server_end`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServerEndRecord<'a> {
    /// The key in tools.yaml.
    #[serde(borrow)]
    pub server: Cow<'a, str>,
    /// Who ended it: `run_ended`, `idle`, `exited` or `given_up`.
    #[serde(borrow)]
    pub cause: Cow<'a, str>,
    /// Why, unless the run needed it no more.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    /// What its program ended with.
    #[serde(flatten)]
    pub exit: ProcessExit,
    /// How long it ran.
    pub duration_ms: u64,
    /// How many calls it got.
    pub calls: u64,
    /// How many answers came that nobody waited for, or not any more.
    #[serde(default)]
    pub unexpected_answers: u64,
    /// How many lines on its stdout weren't messages.
    #[serde(default)]
    pub noise_lines: u64,
    /// How much it wrote to stderr, in bytes.
    #[serde(default)]
    pub stderr_bytes: u64,
    /// The file with the first MiB of that.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub stderr_saved: Option<Cow<'a, str>>,
}

impl<'a> ServerStartRecord<'a> {
    /// Masks everything that comes from the server.
    pub fn new(start: &'a ServerStart, mask: &Mask) -> Self {
        let introduction = start.introduction.as_ref();
        let recorded = |text: &'a String| recorded_text(text, mask);
        Self {
            server: recorded(&start.server),
            earlier_starts: start.earlier_starts,
            pid: start.pid,
            ready_ms: introduction.map(|_| to_millis(start.duration)),
            protocol: introduction.map(|introduction| recorded(&introduction.protocol)),
            era: introduction.map(|introduction| {
                let era = if introduction.is_modern {
                    "modern"
                } else {
                    "legacy"
                };
                Cow::Borrowed(era)
            }),
            name: introduction.and_then(|introduction| introduction.name.as_ref().map(recorded)),
            version: introduction
                .and_then(|introduction| introduction.version.as_ref().map(recorded)),
            tools_sha256: introduction
                .and_then(|introduction| introduction.tools_digest.as_ref())
                .map(Cow::from),
        }
    }
}

impl<'a> ServerEndRecord<'a> {
    /// Masks everything that comes from the server.
    pub fn new(end: &'a ServerEnd, mask: &Mask) -> Self {
        let saved = end
            .stderr_path
            .as_deref()
            .map(|path| path.to_string_lossy());
        Self {
            server: recorded_text(&end.server, mask),
            cause: Cow::Borrowed(end.cause.name()),
            error: end
                .detail
                .as_ref()
                .map(|detail| recorded_text(detail, mask)),
            exit: ProcessExit::from_ending(end.ending),
            duration_ms: to_millis(end.duration),
            calls: end.calls,
            unexpected_answers: end.unexpected_answers,
            noise_lines: end.noise_lines,
            stderr_bytes: end.stderr_bytes,
            stderr_saved: saved.map(|path| mask.apply(&path).into_owned().into()),
        }
    }
}

// Metadata of a `describe_start` and a `describe_end`.

/// Metadata of a `describe_start`; a `describe_end` also has how the program ended.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DescribeRecord<'a> {
    /// The tool that describes itself.
    #[serde(borrow)]
    pub tool_name: Cow<'a, str>,
    /// How the program ended, in one word.
    pub status: Option<Status>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// How many attempts were started.
    pub attempts: Option<u32>,
    /// What the program ended with.
    #[serde(flatten)]
    pub exit: ProcessExit,
    /// Why the output can't be used. If set, none of the tool's calls run.
    #[serde(borrow)]
    pub error: Option<Cow<'a, str>>,
}

impl<'a> DescribeRecord<'a> {
    pub(crate) fn new(tool: &'a str, mask: &Mask) -> Self {
        Self {
            tool_name: recorded_text(tool, mask),
            status: None,
            duration_ms: None,
            attempts: None,
            exit: ProcessExit::default(),
            error: None,
        }
    }

    pub(crate) fn with_result(
        self,
        result: Option<&'a DescribeResult>,
        outcome: &Outcome,
        duration: Duration,
        attempts: u32,
        mask: &Mask,
    ) -> Self {
        Self {
            status: Some(outcome.status()),
            duration_ms: Some(to_millis(duration)),
            attempts: Some(attempts),
            exit: ProcessExit::from_outcome(outcome),
            error: match result {
                Some(DescribeResult::Err(why)) => Some(recorded_text(why, mask)),
                Some(DescribeResult::Ok(_)) | None => None,
            },
            ..self
        }
    }
}

/// Metadata of a `list_start`: a server that tools.lock doesn't have is asked for its tools. A `list_end` also has the answer.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListRecord<'a> {
    /// The key in tools.yaml.
    #[serde(borrow)]
    pub server: Cow<'a, str>,
    /// How long it took, with the server's start.
    pub duration_ms: Option<u64>,
    /// How many tools of the server can be called from then on.
    pub tools: Option<usize>,
    /// The digest of what the server announced.
    #[serde(borrow)]
    pub sha256: Option<Cow<'a, str>>,
    /// Why none of its tools can be called.
    #[serde(borrow)]
    pub error: Option<Cow<'a, str>>,
}

impl<'a> ListRecord<'a> {
    pub(crate) fn start(server: &'a UnlockedServer, mask: &Mask) -> Self {
        Self {
            server: recorded_text(&server.server.name, mask),
            duration_ms: None,
            tools: None,
            sha256: None,
            error: None,
        }
    }

    pub(crate) fn end(server: &'a UnlockedServer, duration: Duration, mask: &Mask) -> Self {
        let listing = server.listing();
        let answer = listing.and_then(Result::ok);
        Self {
            duration_ms: Some(to_millis(duration)),
            tools: answer.map(|listing| listing.tools.len()),
            sha256: answer.map(|listing| Cow::Owned(listing.lock.digest())),
            error: listing
                .and_then(Result::err)
                .map(|why| recorded_text(why, mask)),
            ..Self::start(server, mask)
        }
    }
}
