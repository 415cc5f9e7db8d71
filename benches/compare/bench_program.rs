//! A program that does a row's work: how to start it, and what one run of it took.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufReader, Read as _, Seek as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use memchr::memmem::Finder;

use crate::Result;
use crate::resource_usage::{self, ResourceUsage};

/// How much a pipe holds on Linux by default.
const PIPE_BYTES: usize = 64 << 10;

/// The measurements of one run.
#[derive(Debug, Clone, Copy)]
pub struct RunSample {
    /// From before the start until the process was waited for and all its output was read.
    pub time: Duration,
    /// Resources that the whole run used.
    pub usage: ResourceUsage,
}

/// A program with its arguments, environment, and checks.
#[derive(Debug)]
pub struct BenchProgram {
    /// Name in the table.
    pub name: &'static str,
    program: OsString,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    log: Option<PathBuf>,
    output_check: Option<OutputCheck>,
    install_check: Option<InstallCheck>,
}

/// A text that must appear in the output once per unit of work, so that no program is fast because it does less.
#[derive(Debug)]
struct OutputCheck {
    pattern: Finder<'static>,
    count: usize,
}

/// Arguments with which the program succeeds only if it's installed, and how to install it.
#[derive(Debug)]
struct InstallCheck {
    arguments: Vec<OsString>,
    hint: &'static str,
}

impl RunSample {
    /// Returns the time in ms.
    pub fn ms(&self) -> f64 {
        self.time.as_secs_f64() * 1e3
    }
}

impl BenchProgram {
    /// Creates a program: its name in the table, and the executable.
    pub fn new(name: &'static str, program: impl Into<OsString>) -> Self {
        Self {
            name,
            program: program.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            log: None,
            output_check: None,
            install_check: None,
        }
    }

    /// Changes the name in the table.
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Sets the session log that it writes, which is removed before each run.
    pub fn log(self, file: impl Into<PathBuf>) -> Self {
        Self {
            log: Some(file.into()),
            ..self
        }
    }

    /// Requires `pattern` to appear exactly `count` times in the output; otherwise the run fails.
    pub fn expect_output(self, pattern: &str, count: usize) -> Result<Self> {
        if pattern.is_empty() {
            return Err("nothing to look for in the output".into());
        }
        let pattern = Finder::new(pattern).into_owned();
        Ok(Self {
            output_check: Some(OutputCheck { pattern, count }),
            ..self
        })
    }

    /// Requires the program to succeed with the arguments `probe`; otherwise it's skipped, with `hint`.
    pub fn require<A: Into<OsString>>(
        self,
        probe: impl IntoIterator<Item = A>,
        hint: &'static str,
    ) -> Self {
        let arguments = probe.into_iter().map(Into::into).collect();
        Self {
            install_check: Some(InstallCheck { arguments, hint }),
            ..self
        }
    }

    /// Returns how to install it, if it isn't installed.
    pub fn missing_hint(&self) -> Option<&'static str> {
        let check = self.install_check.as_ref()?;
        let mut probe = self.command_with(&check.arguments);
        let status = probe.stdout(Stdio::null()).stderr(Stdio::null()).status();
        (!status.is_ok_and(|status| status.success())).then_some(check.hint)
    }

    /// Runs it once.
    ///
    /// # Errors
    /// It can't be started, fails, or doesn't do all its work.
    pub fn run(&self) -> Result<RunSample> {
        if let Some(log) = self.log.as_ref().filter(|log| log.exists()) {
            fs::remove_file(log)?;
        }
        let mut stderr = tempfile::tempfile()?;
        let mut command = self.command_with(&self.arguments);
        command.stdout(Stdio::piped()).stderr(stderr.try_clone()?);

        let start = Instant::now();
        let mut child = command
            .spawn()
            .map_err(|error| format!("{}: {error}", self.name))?;
        let count = self.count_matches(&mut child)?;
        let (status, usage) = resource_usage::wait_with_usage(&child)?;
        let elapsed = start.elapsed();

        if !status.success() {
            let mut stderr_text = String::new();
            stderr.rewind()?;
            stderr.read_to_string(&mut stderr_text)?;
            return Err(format!("{} ended with {status}: {stderr_text}", self.name).into());
        }
        match &self.output_check {
            Some(check) if check.count != count => {
                Err(format!("{} did {count} of {} units of work", self.name, check.count).into())
            }
            _ => Ok(RunSample {
                time: elapsed,
                usage,
            }),
        }
    }

    /// Returns the command that starts it, for a row that communicates with it while it runs.
    pub fn command(&self) -> Command {
        self.command_with(&self.arguments)
    }

    fn command_with(&self, arguments: &[OsString]) -> Command {
        let mut prepared = Command::new(&self.program);
        prepared
            .args(arguments)
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null());
        prepared
    }

    /// Reads all output without keeping it, and counts the units of work in it.
    fn count_matches(&self, child: &mut Child) -> Result<usize> {
        let Some(mut stdout) = child.stdout.take() else {
            return Ok(0);
        };
        let Some(check) = &self.output_check else {
            io::copy(&mut stdout, &mut io::sink())?;
            return Ok(0);
        };
        let mut counter = OutputCounter::new(check);
        let mut stdout = BufReader::with_capacity(PIPE_BYTES, stdout);
        io::copy(&mut stdout, &mut counter)?;
        Ok(counter.count)
    }
}

/// Counts the units of work in an output that arrives in pieces. It has to be fast: a program whose output isn't read must wait.
struct OutputCounter<'c> {
    pattern: &'c Finder<'static>,
    /// The end of what came before, in which a pattern may begin.
    rest: Vec<u8>,
    count: usize,
}

impl<'c> OutputCounter<'c> {
    fn new(check: &'c OutputCheck) -> Self {
        Self {
            pattern: &check.pattern,
            rest: Vec::new(),
            count: 0,
        }
    }
}

impl io::Write for OutputCounter<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(piece);
        let pattern_bytes = self.pattern.needle().len();
        let mut end = 0;
        for begin in self.pattern.find_iter(&self.rest) {
            self.count += 1;
            end = begin + pattern_bytes;
        }
        let kept = (self.rest.len() - end).min(pattern_bytes - 1);
        self.rest.drain(..self.rest.len() - kept);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
