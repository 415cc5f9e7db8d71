//! What `toolq servers --format json` prints.

use std::time::Duration;

use serde::Serialize;

use crate::commands::servers::changes::{ChangeKind, LockChange, find_changes};
use crate::commands::servers::report::{server_state, tool_names, tool_state};
use crate::session::SurveyReply;
use toolq_core::json::expect_json;
use toolq_core::tools_lock::ToolsLock;
use toolq_core::types::{Effect, ServerLock};
use toolq_engine::ServerAnnouncement;

#[derive(Serialize)]
struct ServersReport<'a> {
    servers: Vec<ServerReport<'a>>,
}

/// A server. What isn't known of one that can't be asked is left out.
#[derive(Serialize)]
struct ServerReport<'a> {
    server: &'a str,
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    era: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ready_ms: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    problems: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<ToolReport<'a>>>,
}

#[derive(Serialize)]
struct ToolReport<'a> {
    tool: &'a str,
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<PartChange<'a>>,
}

/// A part of a tool that isn't as it was locked.
#[derive(Serialize)]
struct PartChange<'a> {
    part: &'static str,
    was: &'a str,
    is: &'a str,
}

/// Renders all that is known of the servers and their tools.
pub(super) fn render_json(replies: &[SurveyReply], lock: &ToolsLock) -> String {
    let changes: Vec<Vec<LockChange<'_>>> = replies
        .iter()
        .map(
            |reply| match (&reply.result, lock.servers.get(&reply.server.name)) {
                (Ok((now, _)), Some(lock)) => find_changes(lock, now),
                _ => Vec::new(),
            },
        )
        .collect();
    let servers = replies.iter().zip(&changes).map(|(reply, changes)| {
        report_server(reply, lock.servers.get(&reply.server.name), changes)
    });
    let report = ServersReport {
        servers: servers.collect(),
    };
    expect_json(serde_json::to_string(&report))
}

fn report_server<'a>(
    reply: &'a SurveyReply,
    lock: Option<&'a ServerLock>,
    changes: &'a [LockChange<'a>],
) -> ServerReport<'a> {
    let answer: Option<(&ServerAnnouncement, Duration)> = reply
        .result
        .as_ref()
        .ok()
        .map(|(now, time)| (&**now, *time));
    let now = answer.map(|(now, _)| now);
    ServerReport {
        server: &reply.server.name,
        state: server_state(reply, lock).replace(' ', "_"),
        error: reply.result.as_ref().err().map(String::as_str),
        protocol: now.map(|now| &*now.protocol),
        era: now.map(ServerAnnouncement::era),
        ready_ms: answer.map(|(_, time)| time.as_millis()),
        name: now.and_then(|now| now.name.as_deref()),
        version: now.and_then(|now| now.version.as_deref()),
        problems: now.map(|now| &*now.problems).unwrap_or_default(),
        tools: now.map(|now| report_tools(lock, now, changes)),
    }
}

fn report_tools<'a>(
    lock: Option<&'a ServerLock>,
    now: &'a ServerAnnouncement,
    changes: &'a [LockChange<'a>],
) -> Vec<ToolReport<'a>> {
    let report = |tool: &'a String| {
        let tool_lock = lock.and_then(|lock| lock.tools.get(tool));
        let hint = match now.tools.get(tool) {
            Some(definition) => definition.hint(),
            None => tool_lock.and_then(|lock| lock.hint),
        };
        let change = changes.iter().find(|change| change.tool == tool);
        let parts = match change.map(|change| &change.kind) {
            Some(ChangeKind::Changed(parts)) => &**parts,
            _ => &[],
        };
        let parts = parts.iter().map(|(part, was, is)| PartChange {
            part: part.name(),
            was,
            is,
        });
        ToolReport {
            tool,
            state: tool_state(tool, lock, changes).replace(' ', "_"),
            effect: tool_lock.map(|lock| lock.effect.name()),
            hint: hint.map(Effect::name),
            changes: parts.collect(),
        }
    };
    tool_names(lock, now).into_iter().map(report).collect()
}
