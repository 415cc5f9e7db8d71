//! What was found, in words.

use crate::replay::case::{Difference, Kind, Totals};
use toolq_core::text::escape;

/// `3 files, 12 turns, 20 calls: 8 run, 11 served from the recording; 19 hold, 1 differs`.
pub fn summary(totals: &Totals) -> String {
    let count =
        |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    let Totals {
        executed,
        served,
        matched,
        differing,
        ..
    } = totals;
    let found = match (matched, differing) {
        (0, 0) => "nothing was compared".to_owned(),
        (matched, 0) => format!("{matched} hold, none differs"),
        (matched, 1) => format!("{matched} hold, 1 differs"),
        (matched, differing) => format!("{matched} hold, {differing} differ"),
    };
    let updated = match totals.updated {
        0 => String::new(),
        updated => format!(", {updated} updated"),
    };
    format!(
        "{}, {}, {}: {executed} run, {served} served from the recording; {found}{updated}",
        count(totals.files, "file"),
        count(totals.turns, "turn"),
        count(totals.calls, "call"),
    )
}

/// One difference in one line, without the values.
pub(crate) fn headline(difference: &Difference) -> String {
    let text = |json: &Option<String>| {
        let json = json.as_deref().unwrap_or_default();
        let text: Result<String, _> = serde_json::from_str(json);
        text.unwrap_or_else(|_| json.to_owned())
    };
    let at = match difference.path.as_str() {
        "" => String::new(),
        path => format!(" at {}", escape(path)),
    };
    let told = text(&difference.expected);
    match difference.kind {
        Kind::Schema => format!("the input is refused{at}: {}", escape(&told)),
        Kind::UnknownTool => escape(&told).into_owned(),
        Kind::Result => format!("the result is another{at}"),
        Kind::Missing => "the recording has no result, and the call is not run".to_owned(),
    }
}
