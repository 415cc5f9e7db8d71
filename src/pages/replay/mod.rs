//! The page of `toolq replay --html`: what holds and what differs, with recorded and current values side by side.

use std::time::{Duration, Instant};

use maud::{Markup, html};
use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

use crate::pages::time_axis::RowLook;
use crate::pages::{CHUNK_ROWS, Page, filter_form, visible_text};

/// A replayed call on the page.
pub(crate) struct ReplayRow {
    pub(crate) file: String,
    pub(crate) turn: usize,
    pub(crate) tool_use_id: String,
    pub(crate) tool_name: String,
    /// The beginning of its input.
    pub(crate) input: String,
    pub(crate) state: ReplayState,
    /// What was found, in one line each, with the values side by side.
    pub(crate) findings: Vec<(String, Vec<SideRow>)>,
}

/// What a replay says about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReplayState {
    Differs,
    Stale,
    Matches,
    Served,
    NotCompared,
}

impl ReplayState {
    const ALL: [Self; 5] = [
        Self::Differs,
        Self::Stale,
        Self::Matches,
        Self::Served,
        Self::NotCompared,
    ];

    fn label(self) -> &'static str {
        match self {
            Self::Differs => "differs",
            Self::Stale => "stale",
            Self::Matches => "matches",
            Self::Served => "served",
            Self::NotCompared => "not compared",
        }
    }

    /// Formats how many calls have this state: `2 differ`.
    pub(crate) fn counted(self, count: usize) -> String {
        let words = match (self, count) {
            (Self::Differs, 0) => return "none differ".to_owned(),
            (Self::Differs, 1) => "differs",
            (Self::Differs, _) => "differ",
            (Self::Matches, 1) => "matches",
            (Self::Matches, _) => "match",
            (Self::Served, _) => "served from the recording (not run)",
            (Self::Stale | Self::NotCompared, _) => self.label(),
        };
        format!("{count} {words}")
    }

    /// Says what the label means, on the page.
    fn meaning(self) -> &'static str {
        match self {
            Self::Differs => "no longer what was recorded",
            Self::Stale => {
                "differs, but a call before it that may have changed something was not run"
            }
            Self::Matches => "ran again, with the recorded result",
            Self::Served => "not run; its recorded result was used",
            Self::NotCompared => "has nothing to be compared with",
        }
    }

    fn look(self) -> RowLook {
        match self {
            Self::Differs => RowLook::new("failed", "✕"),
            Self::Stale => RowLook::new("doubt", "?"),
            Self::Matches => RowLook::new("ok", "✓"),
            Self::Served => RowLook::new("served", "↺"),
            Self::NotCompared => RowLook::new("skipped", "◇"),
        }
    }
}

/// Returns the page. `totals` is the summary of the replay, `unreadable` says which recordings could not be read to their end,
/// and `omitted` is the number of calls that have no row.
pub(crate) fn replay_page(
    rows: &[ReplayRow],
    totals: &str,
    unreadable: &[String],
    omitted: usize,
) -> String {
    let has = |state: &ReplayState| rows.iter().any(|row| row.state == *state);
    let states: Vec<ReplayState> = ReplayState::ALL.into_iter().filter(has).collect();
    let labels = states.iter().map(|state| state.label());
    let body = html! {
        header {
            h1 { "toolq replay" }
            p { (visible_text(totals)) }
            @for message in unreadable { p.problem { "✕ " (visible_text(message)) } }
            @if omitted > 0 { p { (omitted) " more calls are not on this page." } }
            (filter_form(rows.iter().map(|row| row.tool_name.as_str()), labels))
        }
        main {
            p.legend { @for state in &states { (legend_entry(*state)) } }
            @for (number, rows) in rows.chunk_by(|one, other| one.file == other.file).enumerate() {
                (file_section(number, rows))
            }
            p #none hidden { "No call matches the filter." }
        }
    };
    Page {
        title: "toolq replay".to_owned(),
        body,
        data: "null".to_owned(),
        script: concat!(include_str!("../filter.js"), include_str!("replay.js")),
        reload_after: None,
    }
    .into_html()
}

fn legend_entry(state: ReplayState) -> Markup {
    let RowLook { class, mark } = state.look();
    html! { span class=(class) { span.state { (mark) " " (state.label()) } (state.meaning()) } }
}

/// Returns the calls of one recording.
fn file_section(file: usize, rows: &[ReplayRow]) -> Markup {
    let numbered: Vec<(usize, &ReplayRow)> = rows.iter().enumerate().collect();
    html! {
        section {
            h2 { (visible_text(&rows[0].file)) }
            @for chunk in numbered.chunks(CHUNK_ROWS) {
                ol.lazy[chunk.len() == CHUNK_ROWS] { @for (number, row) in chunk { (call_item(&format!("call-{file}-{number}"), row)) } }
            }
        }
    }
}

fn call_item(anchor: &str, row: &ReplayRow) -> Markup {
    let RowLook { class, mark } = row.state.look();
    let head = html! {
        span.state { (mark) " " (row.state.label()) }
        span.name { (visible_text(&row.tool_name)) }
        span.input { (row.input) }
        span.place { "turn " (row.turn) " · " (visible_text(&row.tool_use_id)) }
    };
    html! {
        li id=(anchor) class=(class) data-state=(row.state.label()) data-tool-use-id=(visible_text(&row.tool_use_id)) {
            @if row.findings.is_empty() {
                div.head { (head) }
            } @else {
                details open[row.state == ReplayState::Differs] {
                    summary.head { (head) }
                    @for (label, lines) in &row.findings {
                        p.finding { (visible_text(label)) }
                        @if !lines.is_empty() { (diff_table(lines)) }
                    }
                }
            }
        }
    }
}

fn diff_table(lines: &[SideRow]) -> Markup {
    let cell = |side: &Side, class: &str| {
        html! {
            @match side {
                Side::Text(text) => td class=(class) { (visible_text(text)) },
                Side::Nothing => td.nothing {},
            }
        }
    };
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr { th scope="col" { "recorded" } th scope="col" { "now" } } }
                tbody {
                    @for row in lines {
                        @match row {
                            SideRow::Omitted(count) => tr { td.omitted colspan="2" { "… " (count) " lines that are the same" } },
                            SideRow::Same(text) => tr { td { (visible_text(text)) } td { (visible_text(text)) } },
                            SideRow::Changed(before, after) => tr { (cell(before, "before")) (cell(after, "after")) },
                        }
                    }
                }
            }
        }
    }
}

// Two texts side by side, line by line.

/// Time after which a diff may be longer than it needs to be.
const MAX_DIFF_TIME: Duration = Duration::from_millis(200);
/// Equal lines that are shown before and after a change.
const CONTEXT_LINES: usize = 3;
/// Maximum number of rows of one diff.
const MAX_ROWS: usize = 400;
/// Maximum length of a line, in characters.
const MAX_CHARACTERS: usize = 2_000;

/// A row of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SideRow {
    Same(String),
    Changed(Side, Side),
    /// This many equal lines are left out.
    Omitted(usize),
}

/// One side of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Side {
    Text(String),
    Nothing,
}

/// Puts the lines of two texts side by side. Long texts are cut.
pub(crate) fn side_rows(before: &[String], after: &[String]) -> Vec<SideRow> {
    let deadline = Instant::now() + MAX_DIFF_TIME;
    let ops = capture_diff_slices_deadline(Algorithm::Myers, before, after, Some(deadline));
    let mut rows = Vec::new();
    let last = ops.len().saturating_sub(1);
    for (index, op) in ops.iter().enumerate() {
        let (old, new) = (&before[op.old_range()], &after[op.new_range()]);
        if op.tag() == DiffTag::Equal {
            push_equal(old, index > 0, index < last, &mut rows);
            continue;
        }
        for number in 0..old.len().max(new.len()) {
            rows.push(SideRow::Changed(
                side(old.get(number)),
                side(new.get(number)),
            ));
        }
    }
    if rows.len() > MAX_ROWS {
        let omitted = rows.len() - MAX_ROWS;
        rows.truncate(MAX_ROWS);
        let rest = Side::Text(format!("… {omitted} more rows"));
        rows.push(SideRow::Changed(rest.clone(), rest));
    }
    rows
}

/// Adds equal lines: only those next to a change before or after them.
fn push_equal(lines: &[String], follows: bool, precedes: bool, rows: &mut Vec<SideRow>) {
    let head = if follows {
        CONTEXT_LINES.min(lines.len())
    } else {
        0
    };
    let tail = if precedes {
        CONTEXT_LINES.min(lines.len() - head)
    } else {
        0
    };
    let omitted = lines.len() - head - tail;
    rows.extend(lines[..head].iter().map(|line| SideRow::Same(cut(line))));
    rows.extend((omitted > 0).then_some(SideRow::Omitted(omitted)));
    rows.extend(
        lines[lines.len() - tail..]
            .iter()
            .map(|line| SideRow::Same(cut(line))),
    );
}

fn side(line: Option<&String>) -> Side {
    line.map_or(Side::Nothing, |line| Side::Text(cut(line)))
}

fn cut(line: &str) -> String {
    let mut rest = line.chars();
    let mut shown: String = rest.by_ref().take(MAX_CHARACTERS).collect();
    let more = rest.count();
    if more > 0 {
        shown = format!("{shown}… {more} more characters");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split('\n').map(str::to_owned).collect()
    }

    fn changed(before: &str, after: &str) -> SideRow {
        let side = |text: &str| match text {
            "" => Side::Nothing,
            text => Side::Text(text.to_owned()),
        };
        SideRow::Changed(side(before), side(after))
    }

    #[test]
    fn only_lines_near_a_change_are_shown() {
        let before = lines("1\n2\n3\n4\n5\n6\nold\n7");
        let after = lines("1\n2\n3\n4\n5\n6\nnew\nmore\n7");
        let same = |text: &str| SideRow::Same(text.to_owned());
        assert_eq!(
            side_rows(&before, &after),
            [
                SideRow::Omitted(3),
                same("4"),
                same("5"),
                same("6"),
                changed("old", "new"),
                changed("", "more"),
                same("7")
            ]
        );
    }

    #[test]
    fn a_diff_of_any_size_is_short() {
        let many = |word: &str| vec![word.repeat(5_000); 3_000];
        let rows = side_rows(&many("a"), &many("b"));
        assert_eq!(rows.len(), MAX_ROWS + 1);
        assert_eq!(
            rows[MAX_ROWS],
            changed("… 2600 more rows", "… 2600 more rows")
        );
        let SideRow::Changed(Side::Text(line), _) = &rows[0] else {
            panic!("{:?}", rows[0]);
        };
        assert!(line.chars().count() < 2_100 && line.ends_with("3000 more characters"));
    }
}
