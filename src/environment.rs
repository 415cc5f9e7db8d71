//! The one place that reads the environment.

use toolq_core::os::Environment;

/// The variables as they are now.
pub fn read() -> Environment {
    std::env::vars_os().collect()
}
