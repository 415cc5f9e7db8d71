//! Everything a program is started with: its file, arguments, environment, working directory and stdin. Starts the
//! program with that, or says why it can't be started.

use std::ffi::{CString, NulError, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::{io, iter};

use rustix::io::Errno;

use crate::attempt::{Attempt, CallJob};
#[cfg(target_os = "linux")]
use crate::command::child::SupervisedChild;
use crate::command::child::{ChildProcess, DirectChild};
use crate::command::pipes::{ParentEnds, ProgramInput};
use crate::command::program_lookup;
use crate::command::sandbox::{self, SandboxContext};
use crate::settings::EngineSettings;
use crate::timing::SERVER_GRACE;
use procfence::{ProgramSandbox, ReaperPools, ResourceLimits, SpawnRequest, spawn};
use toolq_core::os::Environment;
use toolq_core::types::{
    Call, CommandBacking, CommandInvocation, CommandLimits, Leftovers, Outcome, SandboxInvocation,
    SpawnError, StdinContent,
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
    /// What confines the program. Whether this machine can do that shows at the start.
    sandbox: Option<&'a SandboxInvocation>,
    pub(crate) leftovers: Leftovers,
    pub(crate) success_codes: &'a [i32],
    stdin: ProgramInput<'a>,
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
        let problem = self
            .sandbox
            .and_then(|sandbox| sandbox::find_confinement_problem(sandbox, reaper_pools.is_some()));
        if let Some(problem) = problem {
            return Err(self.not_confined(problem, Errno::NOTSUP.raw_os_error()));
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

// Resolves what a program is started with: from a call or a server, the settings of its tool, and the environment.

impl<'a> CommandSpec<'a> {
    /// Resolves the program of a call and everything it is started with.
    ///
    /// # Errors
    /// The outcome of the call, because nothing can be started.
    pub(crate) fn new(
        settings: &'a EngineSettings,
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
        let mut spec = Self::resolve(settings, (command, backing), add_variables)?;
        spec.request.host_exit_grace = accepted.tool.timeout.kill_grace;
        spec.stdin = ProgramInput::Bytes(stdin);
        Ok(spec)
    }

    /// Resolves a program that serves many calls, and everything it is started with.
    ///
    /// # Errors
    /// The outcome of the call that needs it, because nothing can be started.
    pub(crate) fn for_server(
        settings: &'a EngineSettings,
        command: &'a CommandInvocation,
        backing: &'a CommandBacking,
    ) -> Result<Self, Outcome> {
        let mut spec = Self::resolve(settings, (command, Some(backing)), |_| {})?;
        spec.request.reports_pid = true;
        Ok(spec)
    }

    fn resolve(
        settings: &'a EngineSettings,
        (command, backing): (&'a CommandInvocation, Option<&'a CommandBacking>),
        add_variables: impl FnOnce(&mut ChildEnvironment),
    ) -> Result<Self, Outcome> {
        let program = command.argv.program();
        let start_error = |errno: Errno| not_started_outcome(program, None, errno.raw_os_error());
        let declared_path = command.program_path(&settings.tools.dir);
        let path_variable = settings.environment.get_own("PATH");
        let path = program_lookup::find_program(program, &declared_path, path_variable)
            .map_err(start_error)?;
        let cwd = backing.map_or(&settings.tools.root, |backing| &backing.cwd);
        let mut variables = build_environment(&settings.environment, backing, command)?;
        add_variables(&mut variables);
        let sandbox = command.sandbox.as_deref();
        if sandbox.is_some_and(sandbox::needs_dns_over_tcp) {
            variables.add_dns_over_tcp();
        }
        let wrapped = backing.and_then(|backing| find_wrapped_program(settings, backing));
        let programs = iter::once(&path).chain(&wrapped).map(PathBuf::as_path);
        let located =
            sandbox.map(|sandbox| locate_sandbox(settings, sandbox, cwd, programs.collect()));
        let mut request =
            spawn_request(&path, cwd, command, backing, variables).map_err(start_error)?;
        request.sandbox = located.transpose()?;
        Ok(Self {
            program,
            path,
            root: &settings.tools.root,
            cwd: cwd.clone(),
            request,
            sandbox,
            leftovers: backing.map_or_else(Leftovers::default, |backing| backing.leftovers),
            success_codes: backing.map_or(&[0], |backing| &backing.success_exit),
            stdin: ProgramInput::Open,
        })
    }
}

/// Returns the program that a wrapper starts, if there is one and it exists.
fn find_wrapped_program(settings: &EngineSettings, backing: &CommandBacking) -> Option<PathBuf> {
    backing.wrapper.as_ref()?;
    let declared_path = settings.tools.dir.join(&backing.program);
    let path_variable = settings.environment.get_own("PATH");
    program_lookup::find_program(&backing.program, &declared_path, path_variable).ok()
}

/// Returns where the places of a sandbox are for a program in `cwd`.
fn locate_sandbox(
    settings: &EngineSettings,
    sandbox: &SandboxInvocation,
    cwd: &Path,
    programs: Vec<&Path>,
) -> Result<ProgramSandbox, Outcome> {
    let context = SandboxContext {
        root: &settings.tools.root,
        cwd,
        programs,
        environment: &settings.environment,
    };
    sandbox::locate_sandbox(sandbox, &context)
}

/// Returns what the system needs to start the program, still without a sandbox.
///
/// # Errors
/// A text contains a NUL character.
fn spawn_request(
    path: &Path,
    cwd: &Path,
    command: &CommandInvocation,
    backing: Option<&CommandBacking>,
    variables: ChildEnvironment,
) -> Result<SpawnRequest, Errno> {
    let argv = command.argv.iter();
    let argv = argv.map(CString::new);
    Ok(SpawnRequest {
        path: to_c_path(path)?,
        cwd: to_c_path(cwd)?,
        argv: argv.collect::<Result<_, _>>().map_err(|_| Errno::INVAL)?,
        env: variables.into_strings().map_err(|_| Errno::INVAL)?,
        limits: backing
            .map(|backing| to_resource_limits(backing.limits))
            .unwrap_or_default(),
        sandbox: None,
        host_exit_grace: SERVER_GRACE,
        reports_pid: false,
    })
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

// The environment of a child: a few variables of toolq's own environment, those that the tool declares, and `TOOLQ_*`.

/// Variables that every child inherits, in addition to those whose names begin with `LC_`.
const INHERITED_VARIABLES: [&str; 5] = ["PATH", "HOME", "LANG", "TMPDIR", "TZ"];

/// The variables of a child. If a name is set twice, the last value counts.
#[derive(Debug, Default)]
struct ChildEnvironment(Vec<(OsString, OsString)>);

impl ChildEnvironment {
    fn set(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        let (name, value) = (name.as_ref(), value.as_ref().to_owned());
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Tells the resolver to look names up over TCP, in addition to any other options of the resolver.
    fn add_dns_over_tcp(&mut self) {
        const VARIABLE: &str = "RES_OPTIONS";
        let options = self.0.iter().find(|(known, _)| known == VARIABLE);
        let mut options = options.map_or_else(OsString::new, |(_, options)| {
            let mut options = options.clone();
            options.push(" ");
            options
        });
        options.push("use-vc");
        self.set(VARIABLE, options);
    }

    /// Returns the variables as `NAME=value`.
    fn into_strings(self) -> Result<Vec<CString>, NulError> {
        let join = |(mut name, value): (OsString, OsString)| {
            name.push("=");
            name.push(value);
            CString::new(name.into_vec())
        };
        self.0.into_iter().map(join).collect()
    }
}

/// Builds the environment of a program.
///
/// # Errors
/// The outcome of the call that needs it, because a variable isn't set.
fn build_environment(
    environment: &Environment,
    backing: Option<&CommandBacking>,
    command: &CommandInvocation,
) -> Result<ChildEnvironment, Outcome> {
    let mut variables = ChildEnvironment(inherited_variables(environment));
    for name in backing.iter().flat_map(|backing| &backing.pass_env) {
        if let Some(value) = environment.get_os(name) {
            variables.set(name, value);
        }
    }
    for (name, template) in &command.env {
        let value = template.resolve(&|name| environment.get(name));
        variables.set(name, value.map_err(Outcome::MissingVariable)?);
    }
    Ok(variables)
}

/// Adds the variables that tell a program which call it serves.
fn add_call_variables(variables: &mut ChildEnvironment, call: &Call, attempt: &Attempt) {
    variables.set("TOOLQ_TOOL_NAME", call.name.replace('\0', "\u{FFFD}"));
    variables.set("TOOLQ_TOOL_USE_ID", call.id.replace('\0', "\u{FFFD}"));
    variables.set("TOOLQ_IDEMPOTENCY_KEY", &*attempt.idempotency_key);
    variables.set("TOOLQ_TURN", call.turn.to_string());
    variables.set("TOOLQ_ATTEMPT", attempt.number.to_string());
    variables.set("TOOLQ_STATUS_FD", "3");
    if let Some(trace) = &attempt.trace {
        variables.set("TRACEPARENT", &trace.traceparent);
        if let Some(state) = &trace.tracestate {
            variables.set("TRACESTATE", state);
        }
    }
}

fn inherited_variables(environment: &Environment) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsStr| {
        INHERITED_VARIABLES
            .iter()
            .any(|inherited| name == *inherited)
            || name.as_bytes().starts_with(b"LC_")
    };
    let variables = environment.iter().filter(|(name, _)| passes(name));
    variables
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
