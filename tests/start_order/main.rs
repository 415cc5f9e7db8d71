//! When calls start beside the order of batches: limits on how many run at once and how far their starts are apart.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod limits;
#[path = "../support/mod.rs"]
mod support;
