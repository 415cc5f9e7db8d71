//! What progress bars look like.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressState, ProgressStyle};

use crate::terminal::bar_options::{BarOptions, GAUGE_COLUMNS, GAUGE_LABEL_COLUMNS, TIME_COLUMNS};
use crate::terminal::call_pace::CallPace;
use crate::terminal::footer::Footer;
use toolq_core::text::format_duration;

/// Terminals with fewer columns get a shorter bar of all calls.
const NARROW_COLUMNS: usize = 60;

/// Columns of the gaps around the number of calls, and the last column, which stays empty.
const FOOTER_GAP_COLUMNS: usize = 4;

impl BarOptions {
    /// Returns the indentation of a row that is `depth` agents deep.
    pub(crate) fn tree_prefix(self, depth: usize) -> String {
        let branch = if self.is_unicode { "└ " } else { "> " };
        match depth {
            0 => String::new(),
            _ => "  ".repeat(depth - 1) + branch,
        }
    }

    pub(crate) fn total_bar_style(self, footer: &Arc<Footer>) -> ProgressStyle {
        let bar_columns = if self.columns() < NARROW_COLUMNS {
            10
        } else {
            24
        };
        let bar = self.cyan(&format!("{{bar:{bar_columns}}}"));
        let (footer, text) = (Arc::clone(footer), self.dim("{footer}"));
        let write_footer = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            let count = format!("{}/{}", state.pos(), state.len().unwrap_or_default());
            let used = bar_columns + count.len() + FOOTER_GAP_COLUMNS;
            // Writing to a buffer can't fail.
            let _ = out.write_str(&footer.text(self.columns().saturating_sub(used)));
        };
        parse_style(&format!("{bar} {{pos}}/{{len}}  {text}"))
            .with_key("footer", write_footer)
            .progress_chars(if self.is_unicode { "━╸─" } else { "=>-" })
    }

    pub(crate) fn row_style(self, pace: Option<CallPace>) -> ProgressStyle {
        let pace = pace.filter(|_| self.gauge_columns() > 0);
        let spinner = self.cyan("{spinner}");
        let (gauge, time) = match pace {
            Some(_) => (
                self.cyan(" {gauge}"),
                self.dim(&format!("{{took:>{GAUGE_LABEL_COLUMNS}}}")),
            ),
            None => (
                String::new(),
                self.dim(&format!("{{took:>{TIME_COLUMNS}}}")),
            ),
        };
        let style = parse_style(&format!("{spinner} {{wide_msg}}{gauge} {time}"));
        let write_gauge = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            // Like the time, it isn't shown during the first second.
            let elapsed = state.elapsed();
            let pace = pace.filter(|_| elapsed.as_secs() > 0);
            let gauge = pace.map(|pace| pace.draw(elapsed, GAUGE_COLUMNS, self.is_unicode));
            // Writing to a buffer can't fail.
            let _ = write!(out, "{:GAUGE_COLUMNS$}", gauge.unwrap_or_default());
        };
        let write_time = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            write_elapsed(state.elapsed(), pace, out);
        };
        let style = style
            .with_key("took", write_time)
            .with_key("gauge", write_gauge);
        if self.is_unicode {
            style
        } else {
            style.tick_chars("|/-\\ ")
        }
    }
}

/// Writes the elapsed whole seconds and what the gauge beside them shows, or nothing during the first second.
fn write_elapsed(elapsed: Duration, pace: Option<CallPace>, out: &mut dyn fmt::Write) {
    let seconds = elapsed.as_secs();
    if seconds > 0 {
        let alone = || format_duration(Duration::from_secs(seconds));
        // Writing to a buffer can't fail.
        let _ = out.write_str(&pace.map_or_else(alone, |pace| pace.label(elapsed)));
    }
}

/// Parses a style template. The templates are constant, so the fallback for invalid ones isn't used.
fn parse_style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}
