//! A tools.yaml that takes a part of what it says from elsewhere: included files, `env_file`, and `defaults` for every program.

mod defaults;
mod env_file;
mod include;
mod wrapper;

use crate::support::CliOutput;

/// Asserts that `toolq` failed with this code, and said all of `parts`.
fn assert_says(output: &CliOutput, code: i32, parts: &[&str]) {
    assert_eq!(output.code, code, "{}", output.stderr);
    for part in parts {
        assert!(output.stderr.contains(part), "{part}\n{}", output.stderr);
    }
}
