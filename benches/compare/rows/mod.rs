//! The rows of the table, one file each: what is done, by whom, and what is asked of toolq.

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
use crate::race::Line;
use crate::workbench::Workbench;

/// A row's lines, once it has run.
type Row = fn(&Workbench) -> Result<Vec<Line>>;

/// All of them, by name.
pub const ALL: [(&str, Row); 14] = [
    ("spawn", spawn::thousand_cats),
    ("durable", durable::synced_cats),
    ("transcript", transcript::after_a_transcript),
    ("sleep-8", sleep::eight),
    ("sleep-64", sleep::sixty_four),
    ("http", http::ten_thousand_posts),
    ("version", startup::version),
    ("plan", startup::plan),
    ("stream", stream::starts),
    ("lines", lines::many_turns),
    ("recording", recording::replayed_and_planned),
    ("wide", wide::one_turn),
    ("log", log::many_records),
    ("resume", resume::finished_calls),
];
