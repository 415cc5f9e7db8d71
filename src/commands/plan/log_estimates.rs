//! Estimates from a session log: the median duration of each tool's calls.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::commands::log::log_files::read_timeline;
use crate::commands::log::session_id::find_session;
use crate::context::CommandContext;
use crate::log_view::DurationSample;
use crate::output::CommandError;
use toolq_core::text::format_count;
use toolq_core::types::{OutcomeKind, ToolsConfig};

/// Replaces the estimates of tools that have calls with an end in the log. The others keep theirs.
///
/// # Errors
/// The log can't be read.
pub(super) fn apply_log_estimates(
    tools: &mut ToolsConfig,
    log: &Path,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let path = find_session(log, context);
    let (timeline, _) = read_timeline(&path)?;
    let mut samples: HashMap<&str, (DurationSample, usize)> = HashMap::new();
    for call in &timeline.calls {
        let has_ended = matches!(call.outcome, OutcomeKind::Ok | OutcomeKind::Failed);
        if let Some(ms) = timeline.duration_of(call).filter(|_| has_ended) {
            let (sample, count) = samples.entry(&call.tool_name).or_default();
            sample.push(ms);
            *count += 1;
        }
    }
    let (mut estimated, mut calls) = (0_u64, 0);
    for tool in &mut tools.tools {
        let Some((sample, count)) = samples.get(tool.name.as_str()) else {
            continue;
        };
        Arc::make_mut(tool).estimate = sample.to_stats().p50.map(Duration::from_millis);
        (estimated, calls) = (estimated + 1, calls + *count as u64);
    }
    context.stderr.print_note(&format!(
        "estimates of {} are the medians of {} in {}",
        format_count(estimated, "tool"),
        format_count(calls, "call"),
        path.display()
    ));
    Ok(())
}
