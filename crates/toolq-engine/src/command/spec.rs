//! Everything a program is started with: its file, arguments, environment, working directory and stdin. Starts the
//! program with that, or says why it can't be started.

mod resolve;

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

#[cfg(target_os = "linux")]
use crate::command::supervised_child::SupervisedChild;

use crate::command::child::ChildProcess;
use crate::command::direct_child::DirectChild;
use crate::command::pipes::ParentEnds;
use crate::command::program_lookup;
use procfence::{ReaperPools, ResourceLimits, SpawnRequest, spawn};
use toolq_core::types::{Leftovers, Outcome, SpawnError};

/// A program and everything it is started with.
#[derive(Debug)]
pub(crate) struct CommandSpec<'a> {
    /// The program, as declared in tools.yaml.
    program: &'a str,
    path: PathBuf,
    root: &'a Path,
    cwd: PathBuf,
    request: SpawnRequest,
    /// Why the program can't be confined, if so.
    confinement_problem: Option<String>,
    leftovers: Leftovers,
    success_codes: &'a [i32],
    stdin: ProgramInput<'a>,
}

/// What a program reads from stdin.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProgramInput<'a> {
    /// These bytes, then the end.
    Bytes(&'a [u8]),
    /// What is written to the program while it runs.
    Open,
}

impl CommandSpec<'_> {
    /// Starts the program. If a reaper starts it, a failure only shows in its exit: `ChildExit::NotStarted`.
    ///
    /// # Errors
    /// The outcome of the call, because nothing was started.
    pub(crate) async fn start(
        &self,
        reaper_pools: Option<&ReaperPools>,
    ) -> Result<(ChildProcess, ParentEnds), Outcome> {
        if let Some(problem) = &self.confinement_problem {
            return Err(self.not_confined(problem.clone(), Errno::NOTSUP.raw_os_error()));
        }
        let start_error =
            |error: io::Error| not_started_outcome(self.program, None, errno_of(&error));
        let (pipes, child_ends) = ParentEnds::new(self.stdin).map_err(start_error)?;
        let child = match reaper_pools {
            #[cfg(not(target_os = "linux"))]
            Some(never) => match *never {},
            #[cfg(target_os = "linux")]
            Some(reaper_pools) => {
                let pool = reaper_pools.pool(self.leftovers == Leftovers::Allow);
                ChildProcess::Supervised(
                    SupervisedChild::start(pool, &self.request, &child_ends.descriptors())
                        .await
                        .map_err(start_error)?,
                )
            }
            None if self.request.limits == ResourceLimits::default() => {
                let started = spawn(&self.request, &child_ends.descriptors());
                ChildProcess::Direct(DirectChild::new(
                    started.map_err(|errno| self.start_failure(errno))?,
                ))
            }
            None => {
                return Err(not_started_outcome(
                    self.program,
                    None,
                    Errno::NOTSUP.raw_os_error(),
                ));
            }
        };
        Ok((child, pipes))
    }

    /// Returns the exit codes that mean success.
    pub(crate) fn success_codes(&self) -> &[i32] {
        self.success_codes
    }

    /// Returns what happens to processes that the program leaves running.
    pub(crate) fn leftovers(&self) -> Leftovers {
        self.leftovers
    }

    /// Returns the outcome of a program that couldn't be confined, for the system's error number.
    pub(crate) fn confinement_failure(&self, errno: i32) -> Outcome {
        let cause = io::Error::from_raw_os_error(errno).to_string();
        self.not_confined(cause, errno)
    }

    fn not_confined(&self, cause: String, errno: i32) -> Outcome {
        Outcome::NotStarted(SpawnError {
            program: self.program.to_owned(),
            directory: None,
            interpreter: None,
            confinement: Some(cause),
            errno,
        })
    }

    /// Returns the outcome for a start error of the system, which may be about the program or its working directory.
    pub(crate) fn start_failure(&self, errno: i32) -> Outcome {
        let Some(errno) = program_lookup::directory_error(&self.cwd) else {
            let is_confined = self.request.sandbox.is_some();
            if is_confined && program_lookup::is_kept_out_by_sandbox(errno, &self.path) {
                let cause = "what it may read lacks the program, or what that needs to start. The author of the tool can add `system` to `read` in its `sandbox`";
                return self.not_confined(cause.to_owned(), errno);
            }
            let errno = program_lookup::refine_start_error(errno, &self.path);
            return Outcome::NotStarted(SpawnError {
                interpreter: program_lookup::missing_interpreter(errno, &self.path),
                ..spawn_error(self.program, None, errno)
            });
        };
        let directory = self.cwd.strip_prefix(self.root).unwrap_or(&self.cwd);
        not_started_outcome(self.program, Some(directory), errno)
    }
}

fn not_started_outcome(program: &str, directory: Option<&Path>, errno: i32) -> Outcome {
    Outcome::NotStarted(spawn_error(program, directory, errno))
}

fn spawn_error(program: &str, directory: Option<&Path>, errno: i32) -> SpawnError {
    SpawnError {
        program: program.to_owned(),
        directory: directory.map(|directory| directory.display().to_string()),
        interpreter: None,
        confinement: None,
        errno,
    }
}

fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())
}
