//! A sandbox that is ready for one program.

use std::io;

use landlock::{RulesetCreated, RulesetStatus};

use crate::sandbox::opened_path::CreatedFile;

/// A sandbox that is ready to be entered, by a child of a reaper that has given up what its shape says.
#[derive(Debug)]
pub(crate) struct PreparedSandbox {
    pub(crate) ruleset: RulesetCreated,
    pub(crate) created_files: Vec<CreatedFile>,
    pub(crate) allows_gaps: bool,
}

impl PreparedSandbox {
    /// Confines this process, and all that it starts.
    ///
    /// # Errors
    /// The system doesn't allow it. The process must exit.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let restricted = self.ruleset.try_clone()?.restrict_self();
        let status = restricted.map_err(io::Error::other)?;
        if !self.allows_gaps && status.ruleset != RulesetStatus::FullyEnforced {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(())
    }

    /// Removes the files that were created for a program that failed without having written to them.
    pub(crate) fn remove_unwritten_files(&mut self) {
        for file in self.created_files.drain(..) {
            file.remove_if_empty();
        }
    }
}
