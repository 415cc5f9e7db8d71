//! What every command needs: the environment, stderr, and a loaded tools.yaml.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::args::{CommonFlags, DEFAULT_TOOLS_FILE};
use crate::input::stdin;
use crate::output::diagnostics::{self, DiagnosticStyle};
use crate::output::{CommandError, StderrWriter};
use redact::Mask;
use toolq_core::os::Environment;
use toolq_core::text::{decode_text, quote_path_for_shell};
use toolq_core::tools_file::{self, HostToolDeclarations, ParsedToolsFile};
use toolq_core::tools_lock::{LockUse, ToolsLock};
use toolq_core::types::{FileProblem, Severity, Span, ToolsConfig, mask_variables};

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
    /// Whether the path was given. Otherwise it is the default.
    has_named_tools: bool,
}

impl CommandContext {
    /// Returns the flag that makes another command use the same tools.yaml, with a space before it, for hints. Nothing if
    /// the command finds the file by itself.
    pub(crate) fn tools_flag(&self) -> String {
        if !self.has_named_tools {
            return String::new();
        }
        format!(" -c {}", quote_path_for_shell(&self.tools_path))
    }

    /// Returns whether tools.yaml came through a pipe (`-c -`, or `-c <(…)` in bash), so that no flag names it later.
    pub(crate) fn has_piped_tools(&self) -> bool {
        self.has_named_tools && !self.tools_path.is_file()
    }

    /// Reads the environment once.
    pub fn new(common: &CommonFlags) -> Self {
        let environment = Arc::new(read_environment());
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

    /// Loads tools.yaml. Warnings are left to `check`.
    ///
    /// # Errors
    /// The file can't be read or has errors, which are printed.
    pub fn load_tools(&self) -> Result<ToolsConfig, CommandError> {
        self.load_tools_file().map(|(tools, _)| tools)
    }

    /// Like [`load_tools`](Self::load_tools), for a command that runs calls. Warns if they can't because of the root. The value of
    /// the variable `secret`, if one is named, is a secret, too.
    ///
    /// # Errors
    /// As [`load_tools`](Self::load_tools).
    pub fn load_tools_to_run(&self, secret: Option<&str>) -> Result<ToolsConfig, CommandError> {
        let lock = self.read_lock()?;
        let file = self.read_locked_tools_file(LockUse::from(&lock), secret, None)?;
        let (tools, file) = self.require_tools(file, NOTHING_RAN)?;
        self.warn_about_root(&tools, &file);
        Ok(tools)
    }

    /// Like [`load_tools`](Self::load_tools), but also returns the file, for the source locations.
    ///
    /// # Errors
    /// As [`load_tools`](Self::load_tools).
    pub fn load_tools_file(&self) -> Result<(ToolsConfig, LoadedToolsFile), CommandError> {
        self.require_tools(self.read_tools_file()?, NOTHING_RAN)
    }

    /// Takes the tools from a file, or prints its errors. `consequence` ends the message then.
    ///
    /// # Errors
    /// The file has errors.
    pub fn require_tools(
        &self,
        mut file: LoadedToolsFile,
        consequence: &str,
    ) -> Result<(ToolsConfig, LoadedToolsFile), CommandError> {
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

    /// Warns if the root isn't a directory: then no program starts and no path is accepted, and the failures of calls would
    /// look like faults of their inputs.
    pub fn warn_about_root(&self, tools: &ToolsConfig, file: &LoadedToolsFile) {
        let root = &tools.root;
        let Some(tree) = file.loaded.tree.as_ref().filter(|_| !root.is_dir()) else {
            return;
        };
        let place = file.place_of(tree.span_at(&["root"], ""));
        let what = if root.exists() {
            "isn't a directory"
        } else {
            "doesn't exist"
        };
        self.stderr.print_warning(&format!(
            "{place}: the root {} {what}, so commands don't start, and no path is accepted; create it, correct `root`, or start toolq elsewhere",
            root.display()
        ));
    }

    /// Prints problems of tools.yaml to stderr.
    pub fn print_problems(&self, file: &LoadedToolsFile, problems: &[FileProblem]) {
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

// Reads and parses tools.yaml with its lock.

/// Replaces a tools.yaml that is empty or missing.
const EMPTY_TOOLS_FILE: &[u8] = b"version: 1\n";

/// A parsed tools.yaml.
#[derive(Debug)]
pub struct LoadedToolsFile {
    pub path: PathBuf,
    pub loaded: ParsedToolsFile,
    /// The secrets that the file names.
    pub mask: Mask,
}

impl LoadedToolsFile {
    /// Returns the files that it was read from: tools.yaml, tools.lock, and whatever tools.yaml names.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.path.clone(), ToolsLock::path_beside(&self.path)];
        files.extend_from_slice(&self.loaded.other_files);
        files
    }

    /// Returns the path of the file in which a span is: tools.yaml, or one that it includes.
    pub fn path_of(&self, span: Span) -> PathBuf {
        match self.loaded.sources.locate(span).included {
            Some(included) => self.path.with_file_name("").join(included),
            None => self.path.clone(),
        }
    }

    /// Returns the file and the line on which a span begins, for messages: `tools.yaml:3`.
    pub fn place_of(&self, span: Span) -> String {
        let line = self.loaded.sources.locate(span).line();
        format!("{}:{line}", self.path_of(span).display())
    }
}

impl CommandContext {
    /// Reads and parses tools.yaml, and starts masking its secrets in messages. Its problems are returned as part of the
    /// file, not as an error.
    ///
    /// # Errors
    /// The file is missing, unreadable, or not UTF-8, or its lock can't be used.
    pub fn read_tools_file(&self) -> Result<LoadedToolsFile, CommandError> {
        self.read_tools_file_with_host(None)
    }

    /// Like [`read_tools_file`](Self::read_tools_file), with the tools that a host process announces. With these, tools.yaml
    /// may be missing if its path wasn't given, and it may be empty.
    ///
    /// # Errors
    /// As [`read_tools_file`](Self::read_tools_file).
    pub fn read_tools_file_with_host(
        &self,
        host_tools: Option<&HostToolDeclarations>,
    ) -> Result<LoadedToolsFile, CommandError> {
        let lock = self.read_lock()?;
        self.read_locked_tools_file(LockUse::from(&lock), None, host_tools)
    }

    /// Returns the files that tools.yaml consists of, for a command that works without them. If it can't be used, what it names
    /// isn't known.
    pub fn find_tools_files(&self) -> Vec<PathBuf> {
        if self.tools_path == Path::new("-") {
            return Vec::new();
        }
        match self.read_tools_file() {
            Ok(file) => file.files(),
            Err(_) => vec![
                self.tools_path.clone(),
                ToolsLock::path_beside(&self.tools_path),
            ],
        }
    }

    /// Reads tools.lock, if there is one.
    fn read_lock(&self) -> Result<Option<ToolsLock>, CommandError> {
        ToolsLock::read(&self.tools_path).map_err(|why| {
            CommandError::usage(why)
                .with_hint("restore it, or remove it and write it again with `toolq servers lock`")
        })
    }

    fn read_locked_tools_file(
        &self,
        lock: LockUse<'_>,
        secret: Option<&str>,
        host_tools: Option<&HostToolDeclarations>,
    ) -> Result<LoadedToolsFile, CommandError> {
        let is_stdin = self.tools_path == Path::new("-");
        let path = if is_stdin {
            Path::new("stdin")
        } else {
            self.tools_path.as_path()
        };
        let text = self.read_text(path, is_stdin, host_tools.is_some())?;
        let current_dir = std::env::current_dir().map_err(|error| {
            CommandError::usage(format!("can't determine the current directory: {error}"))
        })?;
        let dir = match path.parent() {
            Some(parent) => current_dir.join(parent),
            None => current_dir.clone(),
        };
        let texts = (text.as_str(), host_tools);
        let mut loaded = tools_file::parse_with_host_tools(texts, &dir, &current_dir, lock);
        loaded.secrets.extend(secret.map(str::to_owned));
        if let Some(tools) = &mut loaded.tools {
            tools.secrets.extend(secret.map(str::to_owned));
            let files = [path.to_owned(), ToolsLock::path_beside(path)];
            let files = files.into_iter().filter(|_| !is_stdin);
            // Whoever writes to the memory can approve its own calls, whichever log it has.
            let files = files.chain(toolq_log::state_dir(&self.environment));
            tools
                .own_files
                .extend(files.map(|file| current_dir.join(file)));
        }
        let mask = mask_variables(&loaded.secrets, &self.environment, &loaded.env_file);
        StderrWriter::set_mask(&mask);
        Ok(LoadedToolsFile {
            path: path.to_owned(),
            loaded,
            mask,
        })
    }

    /// Reads the text of tools.yaml. With the tools of a host, it may be missing or empty.
    fn read_text(
        &self,
        path: &Path,
        is_stdin: bool,
        has_host_tools: bool,
    ) -> Result<String, CommandError> {
        let mut bytes = if is_stdin {
            stdin::read_to_end()?
        } else {
            match std::fs::read(path) {
                Ok(bytes) => bytes,
                Err(error) if has_host_tools && self.is_absent_default(&error) => Vec::new(),
                Err(error) => return Err(unreadable_tools_file(path, &error)),
            }
        };
        if has_host_tools && bytes.trim_ascii().is_empty() {
            EMPTY_TOOLS_FILE.clone_into(&mut bytes);
        }
        decode_text(bytes).map_err(|why| {
            CommandError::usage(format!("{}: {why}", path.display()))
                .with_hint("save the file as UTF-8")
        })
    }

    /// Returns whether reading failed because there is no tools.yaml, and its path wasn't given.
    fn is_absent_default(&self, error: &std::io::Error) -> bool {
        !self.has_named_tools && error.kind() == std::io::ErrorKind::NotFound
    }
}

fn unreadable_tools_file(path: &Path, error: &std::io::Error) -> CommandError {
    let message = format!("{} can't be read: {error}", path.display());
    let failure = CommandError::unusable_file(message, error);
    let other = path.with_extension("yml");
    match error.kind() {
        std::io::ErrorKind::NotFound if other.is_file() => {
            let other = other.display();
            failure.with_hint(format!(
                "there is {other}: rename it, or name it with `-c {other}`"
            ))
        }
        std::io::ErrorKind::NotFound => failure.with_hint(
            "name it with -c FILE or TOOLQ_TOOLS, or create a starter file with `toolq init`",
        ),
        _ => failure,
    }
}

/// Names the directory for temporary files.
const TEMP_DIR_VARIABLE: &str = "TMPDIR";

/// Returns a snapshot of the environment variables, which nothing else reads. A relative TMPDIR is made absolute, since commands
/// run in other directories.
pub fn read_environment() -> Environment {
    std::env::vars_os().map(absolute_temp_dir).collect()
}

fn absolute_temp_dir((name, value): (OsString, OsString)) -> (OsString, OsString) {
    if name != OsStr::new(TEMP_DIR_VARIABLE) {
        return (name, value);
    }
    // An empty one has no absolute path, and means nothing.
    let absolute = std::path::absolute(&value).map(OsString::from);
    (name, absolute.unwrap_or(value))
}
