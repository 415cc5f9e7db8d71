//! The one place that reads the environment.

use toolq_core::os::Environment;

/// Returns a snapshot of the environment variables.
pub fn read() -> Environment {
    std::env::vars_os().collect()
}
