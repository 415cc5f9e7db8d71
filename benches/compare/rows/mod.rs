//! The rows of the table: what is measured, against which programs, and the bars that toolq must meet.

mod durable;
mod http;
mod lines;
mod mcp_calls;
mod sleep;
mod spawn;
mod startup;

use crate::Result;
use crate::bench_context::BenchContext;
use crate::comparison::ComparisonLine;

/// Runs a row and returns its lines.
type RowFn = fn(&BenchContext) -> Result<Vec<ComparisonLine>>;

/// All rows, by name.
pub const ALL_ROWS: &[(&str, RowFn)] = &[
    ("spawn", spawn::thousand_cats),
    ("durable", durable::synced_cats),
    ("durable-1000", durable::many_synced_cats),
    ("durable-claims", durable::beside_many_claims),
    ("sleep-8", sleep::eight_calls),
    ("http", http::ten_thousand_posts),
    ("version", startup::version),
    ("plan", startup::plan),
    ("plan-patterns", startup::plan_with_patterns),
    ("lines", lines::many_turns),
    ("mcp-floor", mcp_calls::floor_server),
    ("mcp-locked", mcp_calls::locked_server),
    ("mcp-everything", mcp_calls::real_server),
];
