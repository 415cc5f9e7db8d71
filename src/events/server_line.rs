//! The JSON of an event that belongs to no turn: one of an MCP server, or of tools.yaml.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;

use redact::Mask;
use toolq_core::types::{CallEnding, ServerEnd, ServerIntroduction, ServerStart, ToolsChange};

/// tools.yaml was read again, in output order.
#[derive(Serialize)]
pub(crate) struct ToolsChangeLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: u64,
    path: Cow<'a, str>,
    added: Vec<Cow<'a, str>>,
    removed: Vec<Cow<'a, str>>,
    changed: Vec<Cow<'a, str>>,
}

impl<'a> ToolsChangeLine<'a> {
    pub(crate) fn new(change: &'a ToolsChange, timestamp: u64, mask: &Mask) -> Self {
        let masked = |names: &'a [String]| names.iter().map(|name| mask.apply(name)).collect();
        Self {
            kind: "tools_changed",
            timestamp,
            path: mask.apply(&change.path),
            added: masked(&change.added),
            removed: masked(&change.removed),
            changed: masked(&change.changed),
        }
    }
}

/// A server is ready, or has ended, in output order.
#[derive(Default, Serialize)]
pub(crate) struct ServerLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: u64,
    server: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ready_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
}

impl<'a> ServerLine<'a> {
    pub(crate) fn started(start: &'a ServerStart) -> Self {
        let introduction = start.introduction.as_ref();
        let text = |text: fn(&ServerIntroduction) -> Option<&String>| {
            Some(Cow::from(text(introduction?)?))
        };
        Self {
            kind: "server_started",
            server: Cow::from(&start.server),
            pid: start.pid,
            ready_ms: introduction.map(|_| to_millis(start.duration)),
            protocol: text(|introduction| Some(&introduction.protocol)),
            name: text(|introduction| introduction.name.as_ref()),
            version: text(|introduction| introduction.version.as_ref()),
            ..Self::default()
        }
    }

    pub(crate) fn ended(end: &'a ServerEnd) -> Self {
        let (exit, signal) = match end.ending {
            Some(CallEnding::ExitCode(code)) => (Some(code), None),
            Some(CallEnding::Signal(signal)) => (None, Some(signal)),
            _ => (None, None),
        };
        Self {
            kind: "server_ended",
            server: Cow::from(&end.server),
            cause: Some(end.cause.name()),
            error: end.detail.as_ref().map(Cow::from),
            exit,
            signal,
            duration_ms: Some(to_millis(end.duration)),
            calls: Some(end.calls),
            ..Self::default()
        }
    }

    /// Adds the time, and masks everything that comes from a server.
    pub(crate) fn finished(self, timestamp: u64, mask: &Mask) -> Self {
        let masked = |text: Cow<'a, str>| Cow::Owned(mask.apply(&text).into_owned());
        Self {
            timestamp,
            server: masked(self.server),
            protocol: self.protocol.map(masked),
            name: self.name.map(masked),
            version: self.version.map(masked),
            error: self.error.map(masked),
            ..self
        }
    }
}

fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
