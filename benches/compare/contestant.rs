//! A program that does a row's work: how it is started, and what one run of it took.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aho_corasick::AhoCorasick;

use crate::Result;
use crate::session;
use crate::usage::{self, Usage};

/// What one run took.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// By the contestant's clock.
    pub time: Duration,
    /// What the whole of it used.
    pub usage: Usage,
}

/// A program with everything that it is given.
#[derive(Debug)]
pub struct Contestant {
    /// As the table names it.
    pub name: &'static str,
    program: OsString,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    stdin: Option<PathBuf>,
    log: Option<PathBuf>,
    clock: Clock,
    proof: Option<Proof>,
    need: Option<Need>,
}

/// What of a run is timed.
#[derive(Debug, Clone, Copy)]
enum Clock {
    /// From before its start until it was waited for and all of its output was read.
    Whole,
    /// From the start of the first call to the result of the last, as its session log has it.
    Calls,
}

/// A text that stands in the output once for each piece of work, so that nobody is fast by doing less.
#[derive(Debug)]
struct Proof {
    text: AhoCorasick,
    times: usize,
}

/// Arguments with which the program succeeds only where it is installed, and how to get it.
#[derive(Debug)]
struct Need {
    arguments: Vec<OsString>,
    cure: &'static str,
}

impl Sample {
    /// The time in ms.
    pub fn ms(&self) -> f64 {
        self.time.as_secs_f64() * 1e3
    }
}

impl Contestant {
    /// A program as the table names it and as it is started.
    pub fn new(name: &'static str, program: impl Into<OsString>) -> Self {
        Self {
            name,
            program: program.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            stdin: None,
            log: None,
            clock: Clock::Whole,
            proof: None,
            need: None,
        }
    }

    /// Another argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// More arguments.
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// The file that it reads; without one, nothing.
    pub fn stdin(self, file: impl Into<PathBuf>) -> Self {
        Self {
            stdin: Some(file.into()),
            ..self
        }
    }

    /// A variable of its environment.
    pub fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// The session log that it writes: removed before each run.
    pub fn log(self, file: impl Into<PathBuf>) -> Self {
        Self {
            log: Some(file.into()),
            ..self
        }
    }

    /// Times only what lies between its first start of a call and its last result, by the log.
    pub fn timed_by_log(self) -> Self {
        Self {
            clock: Clock::Calls,
            ..self
        }
    }

    /// What it prints so and so often, or the run counts for nothing.
    pub fn prints(self, text: &str, times: usize) -> Result<Self> {
        let text = AhoCorasick::new([text])?;
        Ok(Self {
            proof: Some(Proof { text, times }),
            ..self
        })
    }

    /// What its program must be able to do for it to take part, and how to get it where it can't.
    pub fn needs<A: Into<OsString>>(
        self,
        probe: impl IntoIterator<Item = A>,
        cure: &'static str,
    ) -> Self {
        let arguments = probe.into_iter().map(Into::into).collect();
        Self {
            need: Some(Need { arguments, cure }),
            ..self
        }
    }

    /// How to get it, where it is not installed.
    pub fn missing(&self) -> Option<&'static str> {
        let need = self.need.as_ref()?;
        let mut probe = self.prepare(&need.arguments);
        let probed = probe.stdout(Stdio::null()).stderr(Stdio::null()).status();
        (!probed.is_ok_and(|status| status.success())).then_some(need.cure)
    }

    /// Runs it once.
    ///
    /// # Errors
    /// It can't be started, fails, or does less than its work.
    pub fn run(&self) -> Result<Sample> {
        if let Some(log) = self.log.as_ref().filter(|log| log.exists()) {
            fs::remove_file(log)?;
        }
        let mut complaints = tempfile::tempfile()?;
        let mut command = self.prepare(&self.arguments);
        command
            .stdout(Stdio::piped())
            .stderr(complaints.try_clone()?);
        if let Some(file) = &self.stdin {
            command.stdin(File::open(file)?);
        }

        let start = Instant::now();
        let mut child = command
            .spawn()
            .map_err(|error| format!("{}: {error}", self.name))?;
        let found = self.read(&mut child)?;
        let (status, usage) = usage::wait(&child)?;
        let whole = start.elapsed();

        if !status.success() {
            let mut said = String::new();
            complaints.rewind()?;
            complaints.read_to_string(&mut said)?;
            return Err(format!("{} ended with {status}: {said}", self.name).into());
        }
        match &self.proof {
            Some(proof) if proof.times != found => {
                Err(format!("{} did {found} of {}", self.name, proof.times).into())
            }
            _ => Ok(Sample {
                time: self.time(whole)?,
                usage,
            }),
        }
    }

    fn time(&self, whole: Duration) -> Result<Duration> {
        match (self.clock, &self.log) {
            (Clock::Calls, Some(log)) => session::calls_took(log),
            _ => Ok(whole),
        }
    }

    /// What starts it, for a row that talks to it while it runs.
    pub fn command(&self) -> Command {
        self.prepare(&self.arguments)
    }

    fn prepare(&self, arguments: &[OsString]) -> Command {
        let mut prepared = Command::new(&self.program);
        prepared
            .args(arguments)
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null());
        prepared
    }

    /// Reads all output, keeping none, and counts the proofs of work in it.
    fn read(&self, child: &mut Child) -> Result<usize> {
        let Some(mut stdout) = child.stdout.take() else {
            return Ok(0);
        };
        let Some(proof) = &self.proof else {
            io::copy(&mut stdout, &mut io::sink())?;
            return Ok(0);
        };
        let mut found = 0;
        for hit in proof.text.stream_find_iter(stdout) {
            hit?;
            found += 1;
        }
        Ok(found)
    }
}
