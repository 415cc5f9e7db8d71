//! What `toolq servers` prints: a row per server, then what is wrong.

use std::collections::BTreeSet;

use crate::log_view::table::{left_aligned, render_rows, row_name};
use crate::session::SurveyReply;
use toolq_core::text::{escape, format_duration, truncate};
use toolq_core::tools_lock::ToolsLock;
use toolq_core::types::{DefinitionPart, Effect, ServerLock, ToolDefinition, ToolDrift};
use toolq_engine::ServerAnnouncement;

/// Renders the report, with a row per tool if `lists_tools`.
pub(super) fn render_report(
    replies: &[SurveyReply],
    lock: &ToolsLock,
    lists_tools: bool,
    color: bool,
) -> String {
    let mut sections = vec![render_servers(replies, lock, color)];
    let mut details = Vec::new();
    for reply in replies {
        let name = &reply.server.name;
        let server_lock = lock.servers.get(name);
        match &reply.result {
            Err(why) => details.push(render_detail(name, why)),
            Ok((now, _)) => {
                let problems = now.problems.iter();
                details.extend(problems.map(|problem| render_detail(name, problem)));
                let changes = server_lock
                    .map(|lock| find_changes(lock, now))
                    .unwrap_or_default();
                details.extend(render_changes(name, &changes));
                if lists_tools {
                    sections.push(render_tools(server_lock, now, &changes, color));
                }
            }
        }
    }
    if !details.is_empty() {
        sections.push(details.join("\n"));
    }
    sections.join("\n\n")
}

/// Renders what is wrong with a server. The lines of what it wrote stay lines, below the first.
fn render_detail(name: &str, what: &str) -> String {
    let lines = what.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<_> = lines.map(|line| escape(line.trim_end())).collect();
    format!("{name}: {}", lines.join("\n  "))
}

fn render_servers(replies: &[SurveyReply], lock: &ToolsLock, color: bool) -> String {
    let column = |title, cell: &dyn Fn(&SurveyReply) -> String| {
        left_aligned(title, replies.iter().map(cell).collect())
    };
    let of_answer = |reply: &SurveyReply, text: &dyn Fn(&ServerAnnouncement) -> String| {
        let answer = reply.result.as_ref().ok();
        answer.map_or_else(|| "-".to_owned(), |(now, _)| text(now))
    };
    let columns = [
        column("server", &|reply| row_name(Some(&reply.server.name))),
        column("state", &|reply| {
            server_state(reply, lock.servers.get(&reply.server.name)).to_owned()
        }),
        column("protocol", &|reply| {
            of_answer(reply, &|now| format!("{} ({})", now.protocol, now.era()))
        }),
        column("ready", &|reply| {
            let answer = reply.result.as_ref().ok();
            answer.map_or_else(|| "-".to_owned(), |(_, time)| format_duration(*time))
        }),
        column("tools", &|reply| {
            of_answer(reply, &|now| now.tools.len().to_string())
        }),
        column("program", &|reply| of_answer(reply, &describe_program)),
    ];
    render_rows(&columns, color)
}

/// Returns the state of a server relative to its lock, in one or two words.
pub(super) fn server_state(reply: &SurveyReply, lock: Option<&ServerLock>) -> &'static str {
    match (&reply.result, lock) {
        (Err(_), _) => "failed",
        (Ok(_), None) => "not locked",
        (Ok((now, _)), Some(lock)) if find_changes(lock, now).is_empty() => "locked",
        (Ok(_), Some(_)) => "changed",
    }
}

fn describe_program(now: &ServerAnnouncement) -> String {
    let parts = [&now.name, &now.version].map(|part| part.as_deref().unwrap_or_default());
    escape(parts.join(" ").trim()).into_owned()
}

/// Renders a row per tool: what the lock says that it does, and what the server says.
fn render_tools(
    lock: Option<&ServerLock>,
    now: &ServerAnnouncement,
    changes: &[LockChange<'_>],
    color: bool,
) -> String {
    let names = tool_names(lock, now);
    let column = |title, cell: &dyn Fn(&str) -> String| {
        left_aligned(title, names.iter().map(|name| cell(name)).collect())
    };
    let find_lock = |name: &str| lock.and_then(|lock| lock.tools.get(name));
    let columns = [
        column("tool", &|name| row_name(Some(name))),
        column("state", &|name| tool_state(name, lock, changes).to_owned()),
        column("effect", &|name| {
            find_lock(name)
                .map_or("-", |lock| lock.effect.name())
                .to_owned()
        }),
        column("hint", &|name| {
            let hint = tool_hint(name, lock, now);
            hint.map_or("-", Effect::name).to_owned()
        }),
    ];
    render_rows(&columns, color)
}

/// Returns the tools that a server has or had when it was locked.
pub(super) fn tool_names<'a>(
    lock: Option<&'a ServerLock>,
    now: &'a ServerAnnouncement,
) -> BTreeSet<&'a String> {
    let locked = lock.into_iter().flat_map(|lock| lock.tools.keys());
    locked.chain(now.tools.keys()).collect()
}

/// Returns the effect that the server claims for a tool, or claimed for one that is gone.
pub(super) fn tool_hint(
    name: &str,
    lock: Option<&ServerLock>,
    now: &ServerAnnouncement,
) -> Option<Effect> {
    match now.tools.get(name) {
        Some(definition) => definition.hint(),
        None => lock?.tools.get(name)?.hint,
    }
}

/// Returns the state of a tool relative to the lock of its server, in one or two words.
pub(super) fn tool_state(
    name: &str,
    lock: Option<&ServerLock>,
    changes: &[LockChange<'_>],
) -> &'static str {
    let change = changes.iter().find(|change| change.tool == name);
    match change.map(|change| &change.kind) {
        Some(ChangeKind::New) => "new",
        Some(ChangeKind::Gone) => "gone",
        Some(ChangeKind::Changed(_)) => "changed",
        None if lock.is_some() => "locked",
        None => "not locked",
    }
}

// What differs between what a server announces and what was locked.

/// How much of a part of a definition is shown.
const MAX_PART_CHARS: usize = 300;

/// A tool that isn't as it was locked.
pub(super) struct LockChange<'a> {
    pub(super) tool: &'a str,
    pub(super) kind: ChangeKind,
}

/// How a tool differs.
pub(super) enum ChangeKind {
    New,
    Gone,
    /// These parts differ, each with what they were and are.
    Changed(Vec<(DefinitionPart, String, String)>),
}

/// Returns every difference.
pub(super) fn find_changes<'a>(
    lock: &'a ServerLock,
    now: &'a ServerAnnouncement,
) -> Vec<LockChange<'a>> {
    let mut changes = Vec::new();
    for (tool, tool_lock) in &lock.tools {
        let definition = now.tools.get(tool);
        let kind = match (tool_lock.find_drift(definition), definition) {
            (None, _) => continue,
            (Some(ToolDrift::Changed(parts)), Some(definition)) => {
                let texts = |part| {
                    let (old, new) = (&tool_lock.definition, definition);
                    (part, part_text(old, part), part_text(new, part))
                };
                ChangeKind::Changed(parts.into_iter().map(texts).collect())
            }
            _ => ChangeKind::Gone,
        };
        changes.push(LockChange { tool, kind });
    }
    let new = now
        .tools
        .keys()
        .filter(|tool| !lock.tools.contains_key(*tool));
    changes.extend(new.map(|tool| LockChange {
        tool,
        kind: ChangeKind::New,
    }));
    changes.sort_by_key(|change| change.tool);
    changes
}

fn part_text(definition: &ToolDefinition, part: DefinitionPart) -> String {
    let json = |value: Option<&serde_json::Value>| value.map(ToString::to_string);
    let text = match part {
        DefinitionPart::Title => definition.title.clone(),
        DefinitionPart::Description => definition.description.clone(),
        DefinitionPart::InputSchema => json(Some(&definition.input_schema)),
        DefinitionPart::OutputSchema => json(definition.output_schema.as_ref()),
        DefinitionPart::Annotations => json(definition.annotations.as_ref()),
    };
    text.unwrap_or_else(|| "(none)".to_owned())
}

/// Renders changes of a server, a line for each, with what was and what is below it.
pub(super) fn render_changes(server: &str, changes: &[LockChange<'_>]) -> Vec<String> {
    let mut lines = Vec::new();
    for change in changes {
        let tool = format!("{server}: {}", escape(change.tool));
        match &change.kind {
            ChangeKind::New => lines.push(format!("{tool} is new")),
            ChangeKind::Gone => lines.push(format!("{tool} is gone")),
            ChangeKind::Changed(parts) => {
                for (part, old, new) in parts {
                    lines.push(format!("{tool} has another {}", part.name()));
                    let (old, new) = excerpt_difference(old, new);
                    lines.push(format!("  - {old}"));
                    lines.push(format!("  + {new}"));
                }
            }
        }
    }
    lines
}

/// Returns the beginning of what differs in two texts, with a few words before it.
fn excerpt_difference(old: &str, new: &str) -> (String, String) {
    const CHARS_BEFORE: usize = 40;
    let same = old
        .chars()
        .zip(new.chars())
        .take_while(|(one, other)| one == other)
        .count();
    let skipped = if old.chars().count().max(new.chars().count()) > MAX_PART_CHARS {
        same.saturating_sub(CHARS_BEFORE)
    } else {
        0
    };
    let cut = |text: &str| {
        let rest: String = text.chars().skip(skipped).collect();
        let before = if skipped > 0 { "…" } else { "" };
        format!("{before}{}", truncate(&escape(&rest), MAX_PART_CHARS))
    };
    (cut(old), cut(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_at_the_end_of_a_long_text_is_shown() {
        let long = "x".repeat(5_000);
        let (old, new) = excerpt_difference(&long, &format!("{long} and sends it to evil.example"));
        assert!(
            new.starts_with('…') && new.ends_with("evil.example"),
            "{new}"
        );
        assert_eq!(old.chars().count(), 41);
        let (old, new) = excerpt_difference("reads", "reads and pays");
        assert_eq!((&*old, &*new), ("reads", "reads and pays"));
    }
}
