//! A time axis on which nothing happens for long: idle times between calls take a fixed, small part of its width.

use std::time::Duration;

use maud::{Markup, html};
use serde::Serialize;

use crate::pages::visible_text;
use toolq_core::text::format_duration;

/// What an idle time takes of the axis, in percent, if there are few.
const GAP_PERCENT: f64 = 2.0;
/// What all idle times together may take of the axis, in percent.
const MAX_GAPS_PERCENT: f64 = 25.0;
/// An idle time is shortened if it is longer than this part of the time in which calls were under way.
const MIN_GAP_SHARE: f64 = 0.1;

/// The most marks after the first, on a whole axis.
const MAX_MARKS: u64 = 5;
/// What a character of a time takes where the axis is narrowest, in percent.
const CHARACTER_PERCENT: f64 = 2.8;
/// Times between two marks that people read easily, in milliseconds.
const ROUND_STEPS_MS: [u64; 27] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000,
    120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000,
    43_200_000, 86_400_000,
];

/// Maps times to positions between 0 and 100 percent.
#[derive(Debug)]
pub(crate) struct TimeAxis {
    /// The times in which calls were under way, without the idle times between them.
    spans: Vec<AxisSpan>,
}

/// A part of the axis with one scale.
#[derive(Debug)]
struct AxisSpan {
    from_ms: u64,
    to_ms: u64,
    /// Where it begins and ends on the axis, in percent.
    start: f64,
    end: f64,
}

/// A mark on the axis.
#[derive(Debug, Clone, PartialEq)]
struct AxisMark {
    /// Its position, in percent.
    at: f64,
    /// The time that it marks, in milliseconds since the beginning, or the idle time that it replaces.
    ms: u64,
    is_gap: bool,
}

impl AxisMark {
    fn time(&self) -> String {
        format_duration(Duration::from_millis(self.ms))
    }

    /// Whether its time is to the left of it.
    fn is_last(&self) -> bool {
        self.at > LAST_MARK_PERCENT
    }

    /// Returns where its text begins and ends where the axis is narrowest, in percent.
    fn extent(&self) -> (f64, f64) {
        if self.is_gap {
            return (self.at - CHARACTER_PERCENT, self.at + CHARACTER_PERCENT);
        }
        let width = as_f64(self.time().len() as u64) * CHARACTER_PERCENT;
        if self.is_last() {
            return (self.at - width, self.at);
        }
        (self.at, self.at + width)
    }
}

impl TimeAxis {
    /// Creates the axis for calls that were under way in `intervals`: pairs of milliseconds.
    pub(crate) fn new(intervals: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let busy = merge(intervals.into_iter().collect());
        let total: u64 = busy.iter().map(|(from, to)| to - from).sum();
        let shortest_gap = as_f64(total.max(1)) * MIN_GAP_SHARE;
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for (from, to) in busy {
            match spans.last_mut() {
                Some(last) if as_f64(from - last.1) < shortest_gap => last.1 = to,
                _ => spans.push((from, to)),
            }
        }
        let gaps = as_f64(spans.len().saturating_sub(1) as u64);
        let gap = if gaps > 0.0 {
            GAP_PERCENT.min(MAX_GAPS_PERCENT / gaps)
        } else {
            0.0
        };
        let shown: u64 = spans.iter().map(|(from, to)| to - from).sum();
        let scale = (100.0 - gap * gaps) / as_f64(shown.max(1));
        let mut start = 0.0;
        let spans = spans.into_iter().map(|(from_ms, to_ms)| {
            let end = start + as_f64(to_ms - from_ms) * scale;
            let span = AxisSpan {
                from_ms,
                to_ms,
                start,
                end,
            };
            start = end + gap;
            span
        });
        Self {
            spans: spans.collect(),
        }
    }

    /// Returns the position of a time, in percent.
    pub(crate) fn position(&self, ms: u64) -> f64 {
        let after = self.spans.partition_point(|span| span.from_ms <= ms);
        let Some(span) = self.spans.get(after.saturating_sub(1)) else {
            return 0.0;
        };
        let (elapsed, length) = (ms.saturating_sub(span.from_ms), span.to_ms - span.from_ms);
        let share = as_f64(elapsed.min(length)) / as_f64(length.max(1));
        span.start + (span.end - span.start) * share
    }

    /// Returns each idle time that was left out as a mark, and round times in the span with the most room, where nothing else is
    /// written.
    fn marks(&self) -> Vec<AxisMark> {
        let Some(first) = self.spans.first() else {
            return Vec::new();
        };
        let beginning = first.from_ms;
        let mut marks = Vec::new();
        for pair in self.spans.windows(2) {
            marks.push(AxisMark {
                at: pair[0].end,
                ms: pair[1].from_ms - pair[0].to_ms,
                is_gap: true,
            });
        }
        let time = |ms: u64| AxisMark {
            at: self.position(ms),
            ms: ms - beginning,
            is_gap: false,
        };
        let widest = self
            .spans
            .iter()
            .max_by(|one, other| (one.end - one.start).total_cmp(&(other.end - other.start)));
        if let Some(widest) = widest {
            let step = mark_step(widest.to_ms - widest.from_ms, widest.end - widest.start);
            let first = (widest.from_ms - beginning).div_ceil(step);
            let last = (widest.to_ms - beginning) / step;
            marks.extend((first..=last).map(|number| time(beginning + number * step)));
        }
        let mut written: Vec<(f64, f64)> = Vec::new();
        marks.retain(|mark| {
            let (begin, end) = mark.extent();
            let has_room = written
                .iter()
                .all(|(from, to)| end <= *from || *to <= begin);
            written.extend(has_room.then_some((begin, end)));
            has_room
        });
        marks
    }
}

/// Returns the time between two marks of a span that takes `percent` of the axis: a round one, so that there are at most two, or
/// three to six of them on a whole axis.
fn mark_step(length_ms: u64, percent: f64) -> u64 {
    let most = (as_f64(MAX_MARKS) * percent / 100.0).max(1.0);
    let fits = |step: &&u64| as_f64(length_ms / **step) <= most;
    let day = 24 * 3_600_000;
    let steps = ROUND_STEPS_MS.iter().find(fits);
    steps
        .copied()
        .unwrap_or_else(|| (length_ms / MAX_MARKS).div_ceil(day) * day)
}

/// Merges intervals that overlap or touch, in order of time.
fn merge(mut intervals: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    intervals.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (from, to) in intervals {
        let to = to.max(from);
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a picture needs no more than 52 bits"
)]
fn as_f64(ms: u64) -> f64 {
    ms as f64
}

// The row with the times above bars.

/// Marks that are further right have their times to the left of them, in percent.
const LAST_MARK_PERCENT: f64 = 90.0;

/// Returns the row. One that is `sticky` stays on the screen while the page is scrolled.
pub(crate) fn axis_row(axis: &TimeAxis, sticky: bool) -> Markup {
    html! {
        div.axis.sticky[sticky] aria-hidden="true" {
            svg {
                @for mark in axis.marks() {
                    @let at = format!("{:.2}%", mark.at);
                    @let time = mark.time();
                    @if mark.is_gap {
                        text.gap x=(at) y="11" { "⋯" title { (time) " without a call" } }
                    } @else {
                        line x1=(at) x2=(at) y1="14" y2="20" {}
                        text x=(at) y="11" class=(if mark.is_last() { "last" } else { "" }) { (time) }
                    }
                }
            }
        }
    }
}

// The patterns of bars.

/// Returns the patterns that tell bars apart without color.
pub(crate) fn bar_patterns() -> Markup {
    let pattern = |id: &str, path: &str| {
        html! {
            pattern id=(id) width="6" height="6" patternUnits="userSpaceOnUse" {
                rect width="6" height="6" {}
                path d=(path) {}
            }
        }
    };
    html! {
        svg.patterns width="0" height="0" aria-hidden="true" {
            defs {
                (pattern("hatched", "M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2"))
                (pattern("dotted", "M2,3 h2"))
            }
        }
    }
}

// What a page shows of a call when it is pointed at or has the focus, as JSON for its script.

/// What all long texts of a page may take together, in bytes. Each keeps at least its beginning.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// What a long text of a call may always take, in bytes.
const MIN_TEXT_BYTES: usize = 400;
/// What a long text may take where the number of calls isn't known yet, in bytes.
const MAX_SINGLE_TEXT_BYTES: usize = 64 << 10;
/// How much of an input a row has room for, in characters.
const MAX_INPUT_CHARS: usize = 80;

/// The details of a call: rows with a label and a text.
#[derive(Serialize)]
pub(crate) struct CallDetails<'a> {
    /// The state that the filter looks for.
    state: &'a str,
    retried: bool,
    tool: String,
    rows: Vec<(&'static str, String)>,
}

impl<'a> CallDetails<'a> {
    /// Makes the texts visible.
    pub(crate) fn new(tool: &str, state: &'a str, rows: Vec<(&'static str, String)>) -> Self {
        let rows = rows.into_iter();
        Self {
            state,
            retried: false,
            tool: visible_text(tool),
            rows: rows
                .map(|(label, text)| (label, visible_text(&text)))
                .collect(),
        }
    }

    /// Returns how much text it has, in bytes.
    pub(crate) fn text_bytes(&self) -> usize {
        self.rows.iter().map(|(_, text)| text.len()).sum()
    }

    pub(crate) fn retried(self, retried: bool) -> Self {
        Self { retried, ..self }
    }
}

/// Returns the maximum length in bytes of each of the two texts of a call, on a page of `calls` calls.
pub(crate) fn text_limit(calls: usize) -> usize {
    (MAX_TEXT_BYTES / (2 * calls.max(1))).max(MIN_TEXT_BYTES)
}

/// Returns the maximum length in bytes of the next text on a page that already has `bytes` bytes of texts. Unlike
/// [`text_limit`], it doesn't need the number of calls.
pub(crate) fn text_limit_after(bytes: usize) -> usize {
    if bytes < MAX_TEXT_BYTES {
        MAX_SINGLE_TEXT_BYTES
    } else {
        MIN_TEXT_BYTES
    }
}

/// Cuts a text off after `limit` bytes, and says where there is more of it.
pub(crate) fn cut_text(text: &str, limit: usize, more: &str) -> String {
    let end = text.floor_char_boundary(limit);
    if end == text.len() {
        return text.to_owned();
    }
    format!("{}\n… cut; {more}", &text[..end])
}

/// Returns the beginning of an input on one line.
pub(crate) fn input_beginning(input: &str) -> String {
    let mut text: String = input.chars().take(MAX_INPUT_CHARS).collect();
    if text.len() < input.len() {
        text.push('…');
    }
    visible_text(&text).replace(['\n', '\t'], " ")
}

/// Returns the place where the script shows the details. `shown` says what they are.
pub(crate) fn details_panel(shown: &str) -> Markup {
    html! {
        aside #details tabindex="0" aria-label="The call under the pointer or with the focus" {
            p { "Point at a call" span.keys { " or move to it with " kbd { "↑" } " and " kbd { "↓" } } " to see " (shown) ". " span.keys { kbd { "F" } " goes to the next call that didn't go well." } }
        }
    }
}

// How the row of a call looks, according to its state.

/// The look of a row.
pub(super) struct RowLook {
    /// The class of the row, which decides about its color.
    pub(super) class: &'static str,
    /// A mark that doesn't need a color.
    pub(super) mark: &'static str,
}

impl RowLook {
    pub(super) fn new(class: &'static str, mark: &'static str) -> Self {
        Self { class, mark }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_hour_of_waiting_takes_two_percent() {
        let axis = TimeAxis::new([(0, 100), (50, 200), (3_600_200, 3_600_400)]);
        let rounded: Vec<i64> = [0, 100, 200, 1_800_000, 3_600_200, 3_600_400]
            .map(|ms| {
                #[expect(clippy::cast_possible_truncation, reason = "these are percentages")]
                let tenths = (axis.position(ms) * 10.0).round() as i64;
                tenths
            })
            .into();
        assert_eq!(rounded, [0, 245, 490, 490, 510, 1000]);
        let gaps: Vec<u64> = axis
            .marks()
            .iter()
            .filter(|mark| mark.is_gap)
            .map(|mark| mark.ms)
            .collect();
        assert_eq!(gaps, [3_600_000]);
    }

    /// The more idle times there are, the less room is between them.
    #[test]
    fn no_text_is_written_over_another() {
        for count in 1..40 {
            let intervals = (0..count).map(|number| (number * 10_000, number * 10_000 + 300));
            let marks = TimeAxis::new(intervals).marks();
            let mut extents: Vec<(f64, f64)> = marks.iter().map(AxisMark::extent).collect();
            extents.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(!extents.is_empty());
            assert!(
                extents.is_sorted_by(|one, other| one.1 <= other.0),
                "{marks:?}"
            );
        }
    }

    #[test]
    fn marks_are_at_round_times() {
        let times = |length: u64| -> Vec<u64> {
            let marks = TimeAxis::new([(7, 7 + length)]).marks();
            marks.iter().map(|mark| mark.ms).collect()
        };
        assert_eq!(times(0), [0]);
        assert_eq!(times(9), [0, 2, 4, 6, 8]);
        assert_eq!(times(2_580), [0, 500, 1_000, 1_500, 2_000, 2_500]);
        assert_eq!(times(95_000), [0, 30_000, 60_000, 90_000]);
        assert_eq!(times(20 * 86_400_000).len(), 5);
    }

    proptest! {
        /// A later time is never placed before an earlier one, and every time is on the axis.
        #[test]
        fn positions_keep_the_order_of_times(intervals in prop::collection::vec((0_u64..10_000, 0_u64..500), 0..20), times in prop::collection::vec(0_u64..12_000, 2..10)) {
            let axis = TimeAxis::new(intervals.into_iter().map(|(from, length)| (from, from + length)));
            let mut times = times;
            times.sort_unstable();
            let positions: Vec<f64> = times.iter().map(|ms| axis.position(*ms)).collect();
            prop_assert!(positions.is_sorted(), "{positions:?}");
            prop_assert!(positions.iter().all(|position| (0.0..=100.001).contains(position)), "{positions:?}");
        }
    }
}
