//! Answers while the input still arrives: streams of events, and lines.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on fails"
)]

mod alike;
mod broken;
mod follow;
mod live;
mod parts;
#[path = "../support/mod.rs"]
mod support;
mod talk;
mod vendors;
