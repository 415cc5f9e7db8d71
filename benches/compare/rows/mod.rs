//! The rows of the table: what is measured, against which programs, and the bars that toolq must meet.

mod durable;
mod http;
mod lines;
mod log;
mod mcp_calls;
mod recording;
mod resume;
mod serve;
mod servers;
mod sleep;
mod spawn;
mod startup;
mod stream;
mod transcript;
mod wide;

use crate::Result;
use crate::bench_context::BenchContext;
use crate::comparison::ComparisonLine;

/// Runs a row and returns its lines.
type RowFn = fn(&BenchContext) -> Result<Vec<ComparisonLine>>;

/// All rows, by name.
pub const ALL_ROWS: &[(&str, RowFn)] = &[
    ("spawn", spawn::thousand_cats),
    ("confined", spawn::thousand_confined_cats),
    ("durable", durable::synced_cats),
    ("transcript", transcript::after_a_transcript),
    ("sleep-8", sleep::eight_calls),
    ("sleep-64", sleep::sixty_four_calls),
    ("http", http::ten_thousand_posts),
    ("version", startup::version),
    ("plan", startup::plan),
    ("plan-patterns", startup::plan_with_patterns),
    ("stream", stream::call_starts),
    ("lines", lines::many_turns),
    ("recording", recording::replayed_and_planned),
    ("wide", wide::one_turn),
    ("log", log::many_records),
    ("resume", resume::finished_calls),
    ("mcp-floor", mcp_calls::floor_server),
    ("mcp-locked", mcp_calls::locked_server),
    ("mcp-everything", mcp_calls::real_server),
    ("mcp-starts", servers::six_starts),
    ("mcp-long-line", servers::long_line),
    ("mcp-lock", servers::locked_tools),
    ("serve-start", serve::first_answers),
    ("serve-calls", serve::command_calls),
];
