//! What every command needs: the environment, stderr, and a loaded tools.yaml.

mod read_tools_file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::args::{CommonFlags, DEFAULT_TOOLS_FILE};
use crate::environment;
use crate::output::diagnostics;
use crate::output::diagnostics::DiagnosticStyle;
use crate::output::{CommandError, StderrWriter};
use redact::Mask;
use toolq_core::os::Environment;
use toolq_core::text::quote_path_for_shell;
use toolq_core::tools_lock::{LockUse, ToolsLock};
use toolq_core::types::{FileProblem, Severity, ToolsConfig};

pub use read_tools_file::LoadedToolsFile;

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
    pub has_named_tools: bool,
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

    /// Like [`load_tools`](Self::load_tools), for a command that runs calls. Warns if they can't because of the root.
    ///
    /// # Errors
    /// As [`load_tools`](Self::load_tools).
    pub fn load_tools_to_run(&self) -> Result<ToolsConfig, CommandError> {
        self.load_tools_to_run_with_secret(None)
    }

    /// Like [`load_tools_to_run`](Self::load_tools_to_run), but the value of one more variable is a secret.
    ///
    /// # Errors
    /// As [`load_tools`](Self::load_tools).
    pub fn load_tools_to_run_with_secret(
        &self,
        variable: Option<&str>,
    ) -> Result<ToolsConfig, CommandError> {
        let file = self.read_tools_file_with_secret(variable)?;
        let (tools, file) = self.require_tools(file, NOTHING_RAN)?;
        self.warn_about_root(&tools, &file);
        Ok(tools)
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
        let (tools, file) = self.require_tools(file, "")?;
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
