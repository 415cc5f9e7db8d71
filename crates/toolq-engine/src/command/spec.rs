//! What exactly is started: the file, its arguments, its environment, its folder and what it reads, and by whom.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

#[cfg(target_os = "linux")]
use crate::command::supervised_child::Kept;

use crate::command::child::Child;
use crate::command::direct_child::Alone;
use crate::command::environment::variables;
use crate::command::pipes::Pipes;
use crate::command::program_lookup;
use crate::command::runner::Commands;
use crate::scheduler::Job;
use procfence::{Order, ResourceLimits, Supervisor, spawn};
use toolq_core::types::{
    CommandBacking, CommandInvocation, Leftovers, Limits, Outcome, SpawnFault, StdinDraft,
};

/// A program and all that it is started with.
#[derive(Debug)]
pub(crate) struct Recipe<'a> {
    /// As declared.
    program: &'a str,
    path: PathBuf,
    root: &'a Path,
    cwd: PathBuf,
    order: Order,
    leftovers: Leftovers,
    success: &'a [i32],
    stdin: &'a [u8],
}

impl<'a> Recipe<'a> {
    /// # Errors
    /// How the call ends because nothing can be started.
    pub(crate) fn new(
        commands: &'a Commands,
        (command, backing): (&'a CommandInvocation, Option<&'a CommandBacking>),
        job: &'a Job,
        key: &str,
    ) -> Result<Self, Outcome> {
        let program = command.argv.first().map_or("", String::as_str);
        let fault = |errno: Errno| not_started(program, None, errno.raw_os_error());
        let accepted = &job.accepted;
        let place = command.program(&commands.tools.dir);
        let search = commands.environment.raw("PATH");
        let argv = command
            .argv
            .iter()
            .map(|argument| CString::new(argument.as_str()));
        let path = program_lookup::find(program, &place, search).map_err(fault)?;
        let cwd = backing.map_or(&commands.tools.root, |backing| &backing.cwd);
        let order = Order {
            path: c_path(&path).map_err(fault)?,
            cwd: c_path(cwd).map_err(fault)?,
            argv: argv
                .collect::<Result<_, _>>()
                .map_err(|_| fault(Errno::INVAL))?,
            env: variables(&commands.environment, backing, command, (&job.call, key))?
                .into_strings()
                .map_err(|_| fault(Errno::INVAL))?,
            limits: backing
                .map(|backing| resource_limits(backing.limits))
                .unwrap_or_default(),
        };
        Ok(Self {
            program,
            path,
            root: &commands.tools.root,
            cwd: cwd.clone(),
            order,
            leftovers: backing.map(|backing| backing.leftovers).unwrap_or_default(),
            success: backing.map_or(&[0], |backing| &backing.success_exit),
            stdin: match &command.stdin {
                StdinDraft::Input => accepted.input.text().as_bytes(),
                StdinDraft::None => b"",
                StdinDraft::Text(text) => text.as_bytes(),
            },
        })
    }

    /// Starts it. Where a keeper does so, it turns out later whether it could.
    ///
    /// # Errors
    /// How the call ends because nothing was started.
    pub(crate) async fn start(
        &self,
        supervisor: Option<&Supervisor>,
    ) -> Result<(Child, Pipes), Outcome> {
        let fault = |error: io::Error| not_started(self.program, None, errno_of(&error));
        let (pipes, ends) = Pipes::new(self.stdin).map_err(fault)?;
        let child = match supervisor {
            #[cfg(not(target_os = "linux"))]
            Some(never) => match *never {},
            #[cfg(target_os = "linux")]
            Some(supervisor) => {
                let keepers = supervisor.keepers(self.leftovers == Leftovers::Allow);
                Child::Kept(
                    Kept::start(keepers, &self.order, &ends.descriptors())
                        .await
                        .map_err(fault)?,
                )
            }
            None if self.order.limits == ResourceLimits::default() => {
                let started = spawn(&self.order, &ends.descriptors());
                Child::Alone(Alone::new(started.map_err(|errno| self.refused(errno))?))
            }
            None => {
                return Err(not_started(
                    self.program,
                    None,
                    Errno::NOTSUP.raw_os_error(),
                ));
            }
        };
        Ok((child, pipes))
    }

    /// Exit codes that are no failure.
    pub(crate) fn success_exit(&self) -> &[i32] {
        self.success
    }

    /// What happens to processes that it leaves running.
    pub(crate) fn leftovers(&self) -> Leftovers {
        self.leftovers
    }

    /// What the system's refusal to start it was about.
    pub(crate) fn refused(&self, errno: i32) -> Outcome {
        let Some(errno) = program_lookup::folder_fault(&self.cwd) else {
            return not_started(
                self.program,
                None,
                program_lookup::precise(errno, &self.path),
            );
        };
        let folder = self.cwd.strip_prefix(self.root).unwrap_or(&self.cwd);
        not_started(self.program, Some(folder), errno)
    }
}

fn not_started(program: &str, folder: Option<&Path>, errno: i32) -> Outcome {
    Outcome::NotStarted(SpawnFault {
        program: program.to_owned(),
        folder: folder.map(|folder| folder.display().to_string()),
        errno,
    })
}

fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())
}

fn c_path(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)
}

/// The limits of tools.yaml, for the process that applies them.
fn resource_limits(limits: Limits) -> ResourceLimits {
    let Limits {
        cpu,
        memory,
        files,
        processes,
        file_size,
    } = limits;
    ResourceLimits {
        cpu,
        memory,
        files,
        processes,
        file_size,
    }
}
