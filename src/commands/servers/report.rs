//! What `toolq servers` reports of servers and their tools, for people and for programs.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use crate::log_view::table::{left_aligned, render_rows, row_name};
use crate::session::SurveyReply;
use toolq_core::text::{escape, format_duration, truncate};
use toolq_core::types::{DefinitionPart, Effect, ServerLock, ToolDefinition, ToolDrift};
use toolq_engine::ServerAnnouncement;

/// A server. What isn't known of one that can't be asked is left out.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct ServerReport<'a> {
    server: &'a str,
    /// Its state relative to its lock.
    pub(super) state: &'static str,
    error: Option<&'a str>,
    protocol: Option<&'a str>,
    era: Option<&'static str>,
    ready_ms: Option<u128>,
    #[serde(skip)]
    ready: Option<Duration>,
    name: Option<&'a str>,
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    problems: &'a [String],
    tools: Option<Vec<ToolReport<'a>>>,
}

/// A tool that a server has, or had when it was locked.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct ToolReport<'a> {
    tool: &'a str,
    /// Its state relative to the lock of its server.
    state: &'static str,
    /// What the lock says that it does.
    effect: Option<&'static str>,
    /// What the server claims that it does, or claimed of one that is gone.
    hint: Option<&'static str>,
    /// The parts that aren't as they were locked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<PartChange>,
}

#[derive(Serialize)]
struct PartChange {
    part: &'static str,
    was: String,
    is: String,
}

impl<'a> ServerReport<'a> {
    /// Compares the reply of a server with its lock.
    pub(super) fn new(reply: &'a SurveyReply, lock: Option<&'a ServerLock>) -> Self {
        let answer = reply.result.as_ref().ok();
        let now = answer.map(|(now, _)| &**now);
        let tools = now.map(|now| report_tools(lock, now));
        Self {
            server: &reply.server.name,
            state: match &tools {
                None => "failed",
                Some(_) if lock.is_none() => "not_locked",
                Some(tools) if tools.iter().all(|tool| tool.state == "locked") => "locked",
                Some(_) => "changed",
            },
            error: reply.result.as_ref().err().map(String::as_str),
            protocol: now.map(|now| &*now.protocol),
            era: now.map(ServerAnnouncement::era),
            ready_ms: answer.map(|(_, time)| time.as_millis()),
            ready: answer.map(|(_, time)| *time),
            name: now.and_then(|now| now.name.as_deref()),
            version: now.and_then(|now| now.version.as_deref()),
            problems: now.map(|now| &*now.problems).unwrap_or_default(),
            tools,
        }
    }

    fn program(&self) -> Option<String> {
        let parts = [self.name, self.version].map(Option::unwrap_or_default);
        let program = escape(parts.join(" ").trim()).into_owned();
        self.error.is_none().then_some(program)
    }
}

/// Compares the tools of a server with its lock.
pub(super) fn report_tools<'a>(
    lock: Option<&'a ServerLock>,
    now: &'a ServerAnnouncement,
) -> Vec<ToolReport<'a>> {
    let locked = lock.into_iter().flat_map(|lock| lock.tools.keys());
    let names: BTreeSet<&String> = locked.chain(now.tools.keys()).collect();
    let report = |tool: &'a String| {
        let definition = now.tools.get(tool);
        let tool_lock = lock.and_then(|lock| lock.tools.get(tool));
        let drift = tool_lock.and_then(|tool_lock| tool_lock.find_drift(definition));
        let mut changes = Vec::new();
        let state = match (drift, tool_lock, definition) {
            _ if lock.is_none() => "not_locked",
            (None, None, _) => "new",
            (None, Some(_), _) => "locked",
            (Some(ToolDrift::Changed(parts)), Some(tool_lock), Some(definition)) => {
                changes.extend(parts.into_iter().map(|part| PartChange {
                    part: part.name(),
                    was: part_text(&tool_lock.definition, part),
                    is: part_text(definition, part),
                }));
                "changed"
            }
            (Some(_), ..) => "gone",
        };
        let hint = match definition {
            Some(definition) => definition.hint(),
            None => tool_lock.and_then(|lock| lock.hint),
        };
        ToolReport {
            tool,
            state,
            effect: tool_lock.map(|lock| lock.effect.name()),
            hint: hint.map(Effect::name),
            changes,
        }
    };
    names.into_iter().map(report).collect()
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

// The report for people: a row per server, then what is wrong.

/// How much of a part of a definition is shown.
const MAX_PART_CHARS: usize = 300;

/// Renders the report, with a row per tool if `lists_tools`.
pub(super) fn render_report(
    reports: &[ServerReport<'_>],
    lists_tools: bool,
    color: bool,
) -> String {
    let mut sections = vec![render_servers(reports, color)];
    let mut details = Vec::new();
    for report in reports {
        let problems = report.problems.iter().map(String::as_str);
        let wrong = report.error.into_iter().chain(problems);
        details.extend(wrong.map(|what| render_detail(report.server, what)));
        if let Some(tools) = &report.tools {
            details.extend(render_changes(report.server, tools));
            if lists_tools {
                sections.push(render_tools(tools, color));
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

fn render_servers(reports: &[ServerReport<'_>], color: bool) -> String {
    let column = |title, cell: &dyn Fn(&ServerReport<'_>) -> Option<String>| {
        let cells = reports.iter().map(cell);
        left_aligned(title, cells.map(or_dash).collect())
    };
    let columns = [
        column("server", &|report| Some(row_name(Some(report.server)))),
        column("state", &|report| Some(report.state.replace('_', " "))),
        column("protocol", &|report| {
            Some(format!("{} ({})", report.protocol?, report.era?))
        }),
        column("ready", &|report| report.ready.map(format_duration)),
        column("tools", &|report| {
            let tools = report.tools.as_ref()?.iter();
            Some(
                tools
                    .filter(|tool| tool.state != "gone")
                    .count()
                    .to_string(),
            )
        }),
        column("program", &|report| report.program()),
    ];
    render_rows(&columns, color)
}

/// Renders a row per tool: what the lock says that it does, and what the server says.
fn render_tools(tools: &[ToolReport<'_>], color: bool) -> String {
    let column = |title, cell: &dyn Fn(&ToolReport<'_>) -> Option<String>| {
        let cells = tools.iter().map(cell);
        left_aligned(title, cells.map(or_dash).collect())
    };
    let columns = [
        column("tool", &|tool| Some(row_name(Some(tool.tool)))),
        column("state", &|tool| Some(tool.state.replace('_', " "))),
        column("effect", &|tool| tool.effect.map(str::to_owned)),
        column("hint", &|tool| tool.hint.map(str::to_owned)),
    ];
    render_rows(&columns, color)
}

fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".to_owned())
}

/// Renders the changes of a server, a line for each, with what was and what is below it.
pub(super) fn render_changes(server: &str, tools: &[ToolReport<'_>]) -> Vec<String> {
    let mut lines = Vec::new();
    for report in tools {
        let tool = format!("{server}: {}", escape(report.tool));
        if matches!(report.state, "new" | "gone") {
            lines.push(format!("{tool} is {}", report.state));
        }
        for change in &report.changes {
            lines.push(format!("{tool} has another {}", change.part));
            let (was, is) = excerpt_difference(&change.was, &change.is);
            lines.push(format!("  - {was}"));
            lines.push(format!("  + {is}"));
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
