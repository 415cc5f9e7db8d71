//! What differs between what a server announces and what was locked.

use toolq_core::text::{escape, truncate};
use toolq_core::types::{DefinitionPart, ServerLock, ToolDefinition, ToolDrift};
use toolq_engine::ServerAnnouncement;

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
                    let excerpts = DifferenceExcerpts::new(old, new);
                    lines.push(format!("  - {}", excerpts.old));
                    lines.push(format!("  + {}", excerpts.new));
                }
            }
        }
    }
    lines
}

/// The beginning of what differs in two texts, with a few words before it.
struct DifferenceExcerpts {
    old: String,
    new: String,
}

impl DifferenceExcerpts {
    fn new(old: &str, new: &str) -> Self {
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
        Self {
            old: cut(old),
            new: cut(new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_at_the_end_of_a_long_text_is_shown() {
        let long = "x".repeat(5_000);
        let DifferenceExcerpts { old, new } =
            DifferenceExcerpts::new(&long, &format!("{long} and sends it to evil.example"));
        assert!(
            new.starts_with('…') && new.ends_with("evil.example"),
            "{new}"
        );
        assert_eq!(old.chars().count(), 41);
        let short = DifferenceExcerpts::new("reads", "reads and pays");
        assert_eq!(short.old, "reads");
        assert_eq!(short.new, "reads and pays");
    }
}
