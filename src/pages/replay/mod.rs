//! The page of `toolq replay --html`: what holds and what differs, with recorded and current values side by side.

mod side_by_side;

use maud::{Markup, html};

use crate::pages::filter_form::filter_form;
use crate::pages::frame::{CHUNK_ROWS, Page};
use crate::pages::replay::side_by_side::Side;
use crate::pages::row_look::RowLook;
use crate::pages::visible_text::visible_text;

pub(crate) use crate::pages::replay::side_by_side::{SideRow, side_rows};

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
