//! Everything a program is started with: its file, arguments, environment, working directory and stdin.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

#[cfg(target_os = "linux")]
use crate::command::supervised_child::SupervisedChild;

use crate::attempt::Attempt;
use crate::command::child::ChildProcess;
use crate::command::direct_child::DirectChild;
use crate::command::environment::{ChildEnvironment, add_call_variables, build_environment};
use crate::command::pipes::ParentEnds;
use crate::command::program_lookup;
use crate::command::runner::CommandRunner;
use crate::command::sandbox::{self, SandboxContext};
use crate::scheduler::CallJob;
use crate::timing::SERVER_GRACE;
use procfence::{ResourceLimits, SpawnRequest, Supervisor, spawn};
use toolq_core::types::{
    CommandBacking, CommandInvocation, CommandLimits, Leftovers, Outcome, SpawnError, StdinContent,
};

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

impl<'a> CommandSpec<'a> {
    /// Resolves the program of a call and everything it is started with.
    ///
    /// # Errors
    /// The outcome of the call, because nothing can be started.
    pub(crate) fn new(
        commands: &'a CommandRunner,
        (command, backing): (&'a CommandInvocation, Option<&'a CommandBacking>),
        job: &'a CallJob,
        attempt: &Attempt,
    ) -> Result<Self, Outcome> {
        let accepted = &job.accepted;
        let stdin = match &command.stdin {
            StdinContent::Input => accepted.input.text().as_bytes(),
            StdinContent::None => b"",
            StdinContent::Text(text) => text.as_bytes(),
        };
        let add_variables = |variables: &mut ChildEnvironment| {
            add_call_variables(variables, &job.call, attempt);
        };
        let mut spec = Self::resolve(commands, (command, backing), add_variables)?;
        spec.request.host_exit_grace = accepted.tool.timeout.kill_grace;
        spec.stdin = ProgramInput::Bytes(stdin);
        Ok(spec)
    }

    /// Resolves a program that serves many calls, and everything it is started with.
    ///
    /// # Errors
    /// The outcome of the call that needs it, because nothing can be started.
    pub(crate) fn for_server(
        commands: &'a CommandRunner,
        command: &'a CommandInvocation,
        backing: &'a CommandBacking,
    ) -> Result<Self, Outcome> {
        let mut spec = Self::resolve(commands, (command, Some(backing)), |_| {})?;
        spec.request.reports_pid = true;
        Ok(spec)
    }

    fn resolve(
        commands: &'a CommandRunner,
        (command, backing): (&'a CommandInvocation, Option<&'a CommandBacking>),
        add_variables: impl FnOnce(&mut ChildEnvironment),
    ) -> Result<Self, Outcome> {
        let program = command.argv.first().map_or("", String::as_str);
        let start_error = |errno: Errno| not_started_outcome(program, None, errno.raw_os_error());
        let declared_path = command.program_path(&commands.tools.dir);
        let path_variable = commands.environment.get_own("PATH");
        let argv = command
            .argv
            .iter()
            .map(|argument| CString::new(argument.as_str()));
        let path = program_lookup::find_program(program, &declared_path, path_variable)
            .map_err(start_error)?;
        let wrapped = backing.filter(|backing| backing.wrapper.is_some());
        let wrapped = wrapped.and_then(|backing| {
            let declared_path = commands.tools.dir.join(&backing.program);
            program_lookup::find_program(&backing.program, &declared_path, path_variable).ok()
        });
        let cwd = backing.map_or(&commands.tools.root, |backing| &backing.cwd);
        let mut variables = build_environment(&commands.environment, backing, command)?;
        add_variables(&mut variables);
        let sandbox = command.sandbox.as_deref();
        if sandbox.is_some_and(sandbox::needs_dns_over_tcp) {
            variables.add_dns_over_tcp();
        }
        let located = sandbox.map(|sandbox| {
            let context = SandboxContext {
                root: &commands.tools.root,
                cwd,
                programs: std::iter::once(&path)
                    .chain(&wrapped)
                    .map(PathBuf::as_path)
                    .collect(),
                environment: &commands.environment,
            };
            sandbox::locate_sandbox(sandbox, &context)
        });
        let request = SpawnRequest {
            path: to_c_path(&path).map_err(start_error)?,
            cwd: to_c_path(cwd).map_err(start_error)?,
            argv: argv
                .collect::<Result<_, _>>()
                .map_err(|_| start_error(Errno::INVAL))?,
            env: variables
                .into_strings()
                .map_err(|_| start_error(Errno::INVAL))?,
            limits: backing
                .map(|backing| to_resource_limits(backing.limits))
                .unwrap_or_default(),
            sandbox: located.transpose()?,
            host_exit_grace: SERVER_GRACE,
            reports_pid: false,
        };
        Ok(Self {
            program,
            path,
            root: &commands.tools.root,
            cwd: cwd.clone(),
            request,
            confinement_problem: sandbox.and_then(|sandbox| {
                sandbox::find_confinement_problem(sandbox, commands.supervisor.is_some())
            }),
            leftovers: match backing.map(|backing| backing.leftovers) {
                // A copy is removed, or copied again, as soon as its calls have ended.
                Some(Leftovers::Allow) if commands.requires_supervisor => Leftovers::Kill,
                leftovers => leftovers.unwrap_or_default(),
            },
            success_codes: backing.map_or(&[0], |backing| &backing.success_exit),
            stdin: ProgramInput::Open,
        })
    }

    /// Starts the program. If a reaper starts it, a failure only shows in its exit: `ChildExit::NotStarted`.
    ///
    /// # Errors
    /// The outcome of the call, because nothing was started.
    pub(crate) async fn start(
        &self,
        supervisor: Option<&Supervisor>,
    ) -> Result<(ChildProcess, ParentEnds), Outcome> {
        if let Some(problem) = &self.confinement_problem {
            return Err(self.not_confined(problem.clone(), Errno::NOTSUP.raw_os_error()));
        }
        let start_error =
            |error: io::Error| not_started_outcome(self.program, None, errno_of(&error));
        let (pipes, child_ends) = ParentEnds::new(self.stdin).map_err(start_error)?;
        let child = match supervisor {
            #[cfg(not(target_os = "linux"))]
            Some(never) => match *never {},
            #[cfg(target_os = "linux")]
            Some(supervisor) => {
                let pool = supervisor.pool(self.leftovers == Leftovers::Allow);
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
            return not_started_outcome(
                self.program,
                None,
                program_lookup::refine_start_error(errno, &self.path),
            );
        };
        let directory = self.cwd.strip_prefix(self.root).unwrap_or(&self.cwd);
        not_started_outcome(self.program, Some(directory), errno)
    }
}

fn not_started_outcome(program: &str, directory: Option<&Path>, errno: i32) -> Outcome {
    Outcome::NotStarted(SpawnError {
        program: program.to_owned(),
        directory: directory.map(|directory| directory.display().to_string()),
        confinement: None,
        errno,
    })
}

fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())
}

fn to_c_path(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)
}

/// Converts the limits of tools.yaml to those of procfence.
fn to_resource_limits(limits: CommandLimits) -> ResourceLimits {
    let CommandLimits {
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
