//! One-line descriptions of findings.

use crate::replay::case::{CaseDifference, DifferenceKind, ReplayTotals};
use crate::replay::unapplied_call::UnappliedCall;
use toolq_core::text::{escape, format_count};

/// Formats the totals: `3 files, 12 turns, 20 calls: 8 run, 11 served from the recording; 19 match, 1 differs`.
pub fn totals_label(totals: &ReplayTotals) -> String {
    let count = |number: usize, one: &str| format_count(number as u64, one);
    let ReplayTotals {
        executed,
        served,
        matched,
        differing,
        ..
    } = totals;
    let matches = match matched {
        1 => "1 matches".to_owned(),
        _ => format!("{matched} match"),
    };
    let stale = match totals.stale {
        0 => String::new(),
        stale => format!(", {stale} stale"),
    };
    let found = match (matched, differing) {
        (0, 0) if totals.stale == 0 => "nothing was compared".to_owned(),
        (_, 0) => format!("{matches}, none differ"),
        (_, 1) => format!("{matches}, 1 differs"),
        (_, differing) => format!("{matches}, {differing} differ"),
    };
    let unrecorded = match totals.unrecorded {
        0 => String::new(),
        1 => ", 1 has no recorded result".to_owned(),
        unrecorded => format!(", {unrecorded} have no recorded result"),
    };
    let updated = match totals.updated {
        0 => String::new(),
        updated => format!(", {updated} updated"),
    };
    format!(
        "{}, {}, {}: {executed} run, {served} served from the recording; {found}{stale}{unrecorded}{updated}",
        count(totals.files, "file"),
        count(totals.turns, "turn"),
        count(totals.calls, "call"),
    )
}

/// Says why a result is stale.
pub(crate) fn stale_label(after: &UnappliedCall) -> String {
    let UnappliedCall {
        tool_name,
        tool_use_id,
        turn,
    } = after;
    format!("stale: {tool_name} ({tool_use_id}) in turn {turn} did not run, so it changed nothing")
}

/// Describes a difference in one line, without the values.
pub(crate) fn difference_label(difference: &CaseDifference) -> String {
    let text = |json: &Option<String>| {
        let json = json.as_deref().unwrap_or_default();
        let text: Result<String, _> = serde_json::from_str(json);
        text.unwrap_or_else(|_| json.to_owned())
    };
    let at = match difference.path.as_str() {
        "" => String::new(),
        path => format!(" at {}", escape(path)),
    };
    let expected = text(&difference.expected);
    match difference.kind {
        DifferenceKind::Schema => format!("the input is invalid{at}: {}", escape(&expected)),
        DifferenceKind::UnknownTool => escape(&expected).into_owned(),
        DifferenceKind::Result => format!("the result differs{at}"),
        DifferenceKind::Missing => {
            "the recording has no result, and the call was not run".to_owned()
        }
    }
}
