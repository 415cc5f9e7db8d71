//! Prepares a sandbox before its program is forked, enters it in the child, and cleans up after the call.

use std::ffi::CString;
use std::io;

use landlock::{RulesetCreated, RulesetStatus};

use crate::filter_program::SystemCallFilter;
use crate::privileges::drop_privileges;
use crate::sandbox::opened_path::CreatedFile;
use crate::sandbox::private_temp_dir::PrivateTempDir;
use crate::sandbox::ruleset::{BuiltRuleset, build_ruleset};
use crate::sandbox::{PathAccess, ProgramSandbox, SandboxPath};
use crate::system_call_filter::sandbox_filter;

/// A sandbox that is ready to be entered.
#[derive(Debug)]
pub(crate) struct PreparedSandbox {
    ruleset: RulesetCreated,
    filter: SystemCallFilter,
    created_files: Vec<CreatedFile>,
    temp_dir: PrivateTempDir,
    allows_gaps: bool,
}

impl PreparedSandbox {
    /// Prepares `sandbox` for a program with these variables, one of which will name its temporary directory.
    ///
    /// # Errors
    /// The system can't confine the program, or is out of resources.
    pub(crate) fn new(sandbox: &ProgramSandbox, env: &mut Vec<CString>) -> io::Result<Self> {
        let changes_files = |path: &SandboxPath| path.access == PathAccess::Write;
        let filter = sandbox_filter(&sandbox.network, sandbox.paths.iter().any(changes_files))?;
        let temp_dir = PrivateTempDir::create(env)?;
        let mut sandbox = sandbox.clone();
        sandbox.paths.push(SandboxPath {
            path: temp_dir.path().to_owned(),
            access: PathAccess::Write,
            stays_inside: false,
        });
        let BuiltRuleset {
            ruleset,
            created_files,
        } = build_ruleset(&sandbox)?;
        Ok(Self {
            ruleset,
            filter,
            created_files,
            temp_dir,
            allows_gaps: sandbox.allows_gaps,
        })
    }

    /// Confines this process, and all that it starts.
    ///
    /// # Errors
    /// The system doesn't allow it. The process may be confined in part, and must exit.
    pub(crate) fn enter(&self) -> io::Result<()> {
        drop_privileges()?;
        let restricted = self.ruleset.try_clone()?.restrict_self();
        let status = restricted.map_err(io::Error::other)?;
        if !self.allows_gaps && status.ruleset != RulesetStatus::FullyEnforced {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.filter.apply()
    }

    /// Removes the files that were created for a program that failed without having written to them.
    pub(crate) fn remove_unwritten_files(&mut self) {
        for file in self.created_files.drain(..) {
            file.remove_if_empty();
        }
    }

    /// Removes what only the program needed. If some of its processes go on, they keep it.
    pub(crate) fn clean_up(self, is_gone: bool) {
        if is_gone {
            self.temp_dir.remove();
        } else {
            self.temp_dir.keep();
        }
    }
}
