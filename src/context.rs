//! What every command needs: the environment, stderr, and a loaded tools.yaml.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::args::{CommonFlags, DEFAULT_TOOLS_FILE};
use crate::environment;
use crate::input::stdin;
use crate::output::diagnostics;
use crate::output::diagnostics::DiagnosticStyle;
use crate::output::{CommandError, StderrWriter};
use redact::Mask;
use toolq_core::os::Environment;
use toolq_core::tools_file;
use toolq_core::tools_file::{HostTools, ParsedToolsFile};
use toolq_core::tools_lock::{LockUse, ToolsLock};
use toolq_core::types::{FileProblem, Severity, Span, ToolsConfig, mask_variables};

/// What stands in place of a tools.yaml that has nothing.
const EMPTY_TOOLS_FILE: &[u8] = b"version: 1\n";

/// How the message about an unusable file ends at the start of a command.
const NOTHING_RAN: &str = "; nothing ran";

/// The settings shared by all commands.
#[derive(Debug)]
pub struct CommandContext {
    pub environment: Arc<Environment>,
    pub stderr: StderrWriter,
    pub verbose: bool,
    /// The path of tools.yaml, as given.
    pub tools_path: PathBuf,
    /// Whether somebody named it. Otherwise it is the default.
    pub has_named_tools: bool,
}

/// A parsed tools.yaml.
#[derive(Debug)]
pub struct ToolsFile {
    pub path: PathBuf,
    pub loaded: ParsedToolsFile,
    /// The secrets that the file names.
    pub mask: Mask,
}

impl ToolsFile {
    /// Returns the path of the file in which a span is: tools.yaml, or one that it includes.
    pub fn path_of(&self, span: Span) -> PathBuf {
        match self.loaded.sources.locate(span).included {
            Some(included) => self.path.with_file_name("").join(included),
            None => self.path.clone(),
        }
    }
}

impl CommandContext {
    /// Reads the environment once.
    pub fn new(common: &CommonFlags) -> Self {
        let environment = Arc::new(environment::read());
        let named_tools = find_named_tools(common, &environment);
        // Before and after the command's name, both may be given: an alias for `toolq -q` doesn't stop `-v`.
        let quiet = common.quiet && !common.verbose;
        Self {
            stderr: StderrWriter::new(common.color, quiet, &environment),
            verbose: common.verbose,
            has_named_tools: named_tools.is_some(),
            tools_path: named_tools.unwrap_or_else(|| PathBuf::from(DEFAULT_TOOLS_FILE)),
            environment,
        }
    }

    /// Reads and parses tools.yaml, and starts masking its secrets in messages. Its problems are returned as part of the
    /// file, not as an error.
    ///
    /// # Errors
    /// The file is missing, unreadable, or not UTF-8, or its lock can't be used.
    pub fn read_tools_file(&self) -> Result<ToolsFile, CommandError> {
        let lock = self.read_lock()?;
        self.read_locked_tools_file(LockUse::from(&lock), None, None)
    }

    /// Like [`read_tools_file`](Self::read_tools_file), but the value of one more variable is a secret.
    ///
    /// # Errors
    /// As [`read_tools_file`](Self::read_tools_file).
    pub fn read_tools_file_with_secret(
        &self,
        variable: Option<&str>,
    ) -> Result<ToolsFile, CommandError> {
        let lock = self.read_lock()?;
        self.read_locked_tools_file(LockUse::from(&lock), variable, None)
    }

    /// Like [`read_tools_file`](Self::read_tools_file), with the tools that a host process announces. With these, tools.yaml
    /// may be missing if nobody named it, and it may be empty.
    ///
    /// # Errors
    /// As [`read_tools_file`](Self::read_tools_file).
    pub fn read_tools_file_with_host(
        &self,
        host_tools: Option<&HostTools>,
    ) -> Result<ToolsFile, CommandError> {
        let lock = self.read_lock()?;
        self.read_locked_tools_file(LockUse::from(&lock), None, host_tools)
    }

    /// Reads tools.lock, if there is one.
    fn read_lock(&self) -> Result<Option<ToolsLock>, CommandError> {
        ToolsLock::read(&self.tools_path).map_err(|why| {
            CommandError::usage(why)
                .with_hint("restore it, or remove it and write it again with `toolq servers lock`")
        })
    }

    /// Loads tools.yaml for a command that is about its servers, with tools.lock, which may be missing.
    ///
    /// # Errors
    /// As [`load_tools`](Self::load_tools).
    pub fn load_servers(&self) -> Result<(Arc<ToolsConfig>, ToolsLock), CommandError> {
        let lock = self.read_lock()?.unwrap_or_default();
        let file = self.read_locked_tools_file(LockUse::Rewrite(&lock), None, None)?;
        let (tools, _) = self.require_tools(file, NOTHING_RAN)?;
        Ok((Arc::new(tools), lock))
    }

    fn read_locked_tools_file(
        &self,
        lock: LockUse<'_>,
        secret: Option<&str>,
        host_tools: Option<&HostTools>,
    ) -> Result<ToolsFile, CommandError> {
        let is_stdin = self.tools_path == Path::new("-");
        let path = self.tools_path.as_path();
        let (path, mut bytes) = if is_stdin {
            (Path::new("stdin"), stdin::read_to_end()?)
        } else {
            match std::fs::read(path) {
                Ok(bytes) => (path, bytes),
                Err(error) if host_tools.is_some() && self.is_absent_default(&error) => {
                    (path, Vec::new())
                }
                Err(error) => return Err(unreadable_tools_file(path, &error)),
            }
        };
        if host_tools.is_some() && bytes.trim_ascii().is_empty() {
            EMPTY_TOOLS_FILE.clone_into(&mut bytes);
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let offset = error.utf8_error().valid_up_to();
            CommandError::usage(format!(
                "{} isn't valid UTF-8 (at byte {offset})",
                path.display()
            ))
        })?;
        let current_dir = std::env::current_dir().map_err(|error| {
            CommandError::usage(format!("can't determine the current directory: {error}"))
        })?;
        let dir = match path.parent() {
            Some(parent) => current_dir.join(parent),
            None => current_dir.clone(),
        };
        let texts = (text.as_str(), host_tools);
        let mut loaded = tools_file::parse_with_host_tools(texts, &dir, &current_dir, lock);
        if let Some(tools) = loaded.tools.as_mut().filter(|_| !is_stdin) {
            let files = [path.to_owned(), ToolsLock::path_beside(path)];
            tools
                .own_files
                .extend(files.map(|file| current_dir.join(file)));
        }
        loaded.secrets.extend(secret.map(str::to_owned));
        if let Some(tools) = &mut loaded.tools {
            tools.secrets.extend(secret.map(str::to_owned));
        }
        let mask = mask_variables(&loaded.secrets, &self.environment, &loaded.env_file);
        StderrWriter::set_mask(&mask);
        Ok(ToolsFile {
            path: path.to_owned(),
            loaded,
            mask,
        })
    }

    /// Loads tools.yaml. Warnings are left to `check`.
    ///
    /// # Errors
    /// The file can't be read or has errors, which are printed.
    pub fn load_tools(&self) -> Result<ToolsConfig, CommandError> {
        self.load_tools_file().map(|(tools, _)| tools)
    }

    /// Like [`load_tools`](Self::load_tools), but the value of one more variable is a secret.
    ///
    /// # Errors
    /// As [`load_tools`](Self::load_tools).
    pub fn load_tools_with_secret(
        &self,
        variable: Option<&str>,
    ) -> Result<ToolsConfig, CommandError> {
        let file = self.read_tools_file_with_secret(variable)?;
        self.require_tools(file, NOTHING_RAN)
            .map(|(tools, _)| tools)
    }

    /// Loads tools.yaml anew, for a command that has been running with what it said before.
    ///
    /// # Errors
    /// As [`load_tools`](Self::load_tools).
    pub fn reload_tools(&self, secret: Option<&str>) -> Result<ToolsConfig, CommandError> {
        if self.tools_path == Path::new("-") {
            let message = "the tools file came from stdin, so it can't be read again";
            return Err(CommandError::usage(message));
        }
        let file = self.read_tools_file_with_secret(secret)?;
        self.require_tools(file, "").map(|(tools, _)| tools)
    }

    /// Like [`load_tools`](Self::load_tools), but also returns the file, for the source locations.
    ///
    /// # Errors
    /// As [`load_tools`](Self::load_tools).
    pub fn load_tools_file(&self) -> Result<(ToolsConfig, ToolsFile), CommandError> {
        self.require_tools(self.read_tools_file()?, NOTHING_RAN)
    }

    /// Takes the tools from a file, or prints its errors. `consequence` ends the message then.
    ///
    /// # Errors
    /// The file has errors.
    pub fn require_tools(
        &self,
        mut file: ToolsFile,
        consequence: &str,
    ) -> Result<(ToolsConfig, ToolsFile), CommandError> {
        if self.verbose {
            self.stderr
                .print_note(&format!("tools from {}", file.path.display()));
        }
        if let Some(tools) = file.loaded.tools.take() {
            return Ok((tools, file));
        }
        let is_error = |problem: &FileProblem| problem.severity == Severity::Error;
        let problems = file
            .loaded
            .problems
            .iter()
            .filter(|problem| is_error(problem));
        let errors: Vec<FileProblem> = problems.cloned().collect();
        self.print_problems(&file, &errors);
        Err(CommandError::usage(format!(
            "{} can't be used{consequence}",
            file.path.display()
        )))
    }

    /// Returns whether reading failed because there is no tools.yaml, and nobody named one.
    fn is_absent_default(&self, error: &std::io::Error) -> bool {
        !self.has_named_tools && error.kind() == std::io::ErrorKind::NotFound
    }

    /// Prints problems of tools.yaml to stderr.
    pub fn print_problems(&self, file: &ToolsFile, problems: &[FileProblem]) {
        let style = DiagnosticStyle {
            color: self.stderr.is_colored(),
            is_unicode: self.stderr.is_unicode,
            width: StderrWriter::width(),
        };
        let sources = &file.loaded.sources;
        let included = |problem: &FileProblem| sources.locate(problem.span).included;
        for problems in problems.chunk_by(|one, other| included(one) == included(other)) {
            let located = problems.iter().map(|problem| FileProblem {
                span: sources.locate(problem.span).span,
                ..problem.clone()
            });
            let located: Vec<FileProblem> = located.collect();
            let text = sources.locate(problems[0].span).text;
            let path = file.path_of(problems[0].span).display().to_string();
            StderrWriter::write_text(&diagnostics::render(
                &located, &path, text, &file.mask, style,
            ));
        }
    }

    /// Builds the mask for the secrets that `tools` names.
    pub fn build_mask(&self, tools: &ToolsConfig) -> Mask {
        tools.build_mask(&self.environment)
    }
}

/// Returns the path that `-c` or `TOOLQ_TOOLS` names. As usual for paths, an empty variable is unset.
fn find_named_tools(common: &CommonFlags, environment: &Environment) -> Option<PathBuf> {
    let from_environment = || environment.get_os("TOOLQ_TOOLS").map(PathBuf::from);
    let named = common.tools.clone().or_else(from_environment);
    named.filter(|path| !path.as_os_str().is_empty())
}

fn unreadable_tools_file(path: &Path, error: &std::io::Error) -> CommandError {
    let failure = CommandError::usage(format!("{} can't be read: {error}", path.display()));
    match error.kind() {
        std::io::ErrorKind::NotFound => failure.with_hint(
            "name it with -c FILE or TOOLQ_TOOLS, or create a starter file with `toolq init`",
        ),
        _ => failure,
    }
}
