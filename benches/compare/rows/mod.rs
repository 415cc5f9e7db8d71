//! The rows of the table: what is measured, against which programs, and the bars that toolq must meet.

mod durable;
mod http;
mod lines;
mod log;
mod recording;
mod resume;
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
    ("durable", durable::synced_cats),
    ("transcript", transcript::after_a_transcript),
    ("sleep-8", sleep::eight_calls),
    ("sleep-64", sleep::sixty_four_calls),
    ("http", http::ten_thousand_posts),
    ("version", startup::version),
    ("plan", startup::plan),
    ("stream", stream::call_starts),
    ("lines", lines::many_turns),
    ("recording", recording::replayed_and_planned),
    ("wide", wide::one_turn),
    ("log", log::many_records),
    ("resume", resume::finished_calls),
];
