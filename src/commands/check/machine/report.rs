//! The report for people.

use crate::commands::check::machine::missing::{MissingRequirement, NeedsReport, NeedsSurvey};
use toolq_core::text::{escape, format_count, paint};

/// SGR codes of a line's first word.
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
/// The state of what lacks nothing.
const READY: &str = "ready";

/// Renders a line per tool and server, with what it lacks below it.
pub(in crate::commands::check) fn render_text(survey: &NeedsSurvey, color: bool) -> String {
    let mut lines = Vec::new();
    if !survey.machine.is_empty() {
        lines.extend(render_needs("this machine", &survey.machine, READY, color));
    }
    let ready = if is_ready(&survey.machine) {
        READY
    } else {
        "ready once this machine is"
    };
    let render = |subject: &str, report: &NeedsReport| {
        let name = format!("{subject} {}", escape(&report.name));
        render_needs(&name, &report.missing, ready, color)
    };
    lines.extend(survey.tools.iter().flat_map(|tool| render("tool", tool)));
    let servers = survey.servers.iter();
    lines.extend(servers.flat_map(|server| render("server", server)));
    if lines.is_empty() {
        lines.push("no tools".to_owned());
    }
    lines.join("\n")
}

fn is_ready(missing: &[MissingRequirement]) -> bool {
    missing.iter().all(|missing| missing.optional)
}

/// `ready` is the state of what lacks nothing.
fn render_needs(
    name: &str,
    missing: &[MissingRequirement],
    ready: &str,
    color: bool,
) -> Vec<String> {
    let painted = |code: &str, text: &str| paint(text, code, color);
    let state = if is_ready(missing) {
        painted(if ready == READY { GREEN } else { YELLOW }, ready)
    } else {
        painted(RED, "not ready")
    };
    let mut lines = vec![format!("{name}: {state}")];
    for missing in missing {
        let mark = if missing.optional {
            painted(YELLOW, "note")
        } else {
            painted(RED, "missing")
        };
        lines.push(format!("  {mark}: {}", escape(&missing.message)));
        lines.push(format!("    {}", escape(&missing.hint)));
    }
    lines
}

/// Says how much is missing.
pub(in crate::commands::check) fn summarize(survey: &NeedsSurvey) -> String {
    match survey.missing().filter(|missing| !missing.optional).count() {
        0 => "nothing is missing".to_owned(),
        1 => "1 thing is missing".to_owned(),
        missing => format!("{} are missing", format_count(missing as u64, "thing")),
    }
}
