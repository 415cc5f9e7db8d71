//! When calls start which calls wait for which others, how many run at once, and how far their starts are apart.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod limits;
mod locks;
#[path = "../support/recorded_data.rs"]
mod recorded_data;
mod recorded_sessions;
#[path = "../support/mod.rs"]
mod support;
