//! The one place that reads the environment.

use crate::model::Environment;

/// The variables as they are now.
pub fn read() -> Environment {
    std::env::vars_os().collect()
}
