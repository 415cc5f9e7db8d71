//! A tools.yaml that takes a part of what it says from elsewhere: included files, `env_file`, and `defaults` for every program.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod defaults;
mod env_file;
mod include;
#[path = "../support/mod.rs"]
mod support;
mod wrapper;

use support::CliOutput;

/// Asserts that `toolq` failed with this code, and said all of `parts`.
fn assert_says(output: &CliOutput, code: i32, parts: &[&str]) {
    assert_eq!(output.code, code, "{}", output.stderr);
    for part in parts {
        assert!(output.stderr.contains(part), "{part}\n{}", output.stderr);
    }
}
