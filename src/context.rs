//! What every command starts from: the environment, stderr, and tools.yaml loaded with its problems shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::args::Common;
use crate::environment;
use crate::output::diagnostics;
use crate::output::{Failure, Stderr};
use redact::Mask;
use toolq_core::os::Environment;
use toolq_core::tools_file;
use toolq_core::tools_file::Loaded;
use toolq_core::types::{Problem, Severity, Tools};

/// The settings that all commands share.
#[derive(Debug)]
pub struct Context {
    pub environment: Arc<Environment>,
    pub stderr: Stderr,
    pub verbose: bool,
    /// tools.yaml as it was named.
    pub tools_path: PathBuf,
}

/// tools.yaml as a text and what it means.
#[derive(Debug)]
pub struct ToolsFile {
    pub path: PathBuf,
    pub text: String,
    pub loaded: Loaded,
}

impl Context {
    /// Reads the environment once.
    pub fn new(common: &Common) -> Self {
        let environment = Arc::new(environment::read());
        Self {
            stderr: Stderr::new(common.color, common.quiet, &environment),
            environment,
            verbose: common.verbose,
            tools_path: common.tools.clone(),
        }
    }

    /// Reads tools.yaml without judging it.
    ///
    /// # Errors
    /// It isn't there, or can't be read.
    pub fn read_tools(&self) -> Result<ToolsFile, Failure> {
        let path = &self.tools_path;
        let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Failure::usage(format!("{} is no UTF-8 (at byte {at})", path.display()))
        })?;
        let here = std::env::current_dir()
            .map_err(|error| Failure::usage(format!("the current directory is gone: {error}")))?;
        let dir = match path.parent() {
            Some(parent) => here.join(parent),
            None => here.clone(),
        };
        let loaded = tools_file::load(&text, &dir, &here);
        Ok(ToolsFile {
            path: path.clone(),
            text,
            loaded,
        })
    }

    /// tools.yaml as a file that holds: errors end the command, warnings are left to `check`.
    /// From now on messages are masked.
    ///
    /// # Errors
    /// Every problem, shown.
    pub fn load_tools(&self) -> Result<Tools, Failure> {
        self.load_tools_file().map(|(tools, _)| tools)
    }

    /// The same, with the file that says where everything stands.
    ///
    /// # Errors
    /// Every problem, shown.
    pub fn load_tools_file(&self) -> Result<(Tools, ToolsFile), Failure> {
        let mut file = self.read_tools()?;
        if let Some(tools) = &file.loaded.tools {
            Stderr::mask(&self.mask(tools));
        }
        if self.verbose {
            self.stderr
                .note(&format!("tools from {}", file.path.display()));
        }
        if let Some(tools) = file.loaded.tools.take() {
            return Ok((tools, file));
        }
        let is_error = |problem: &Problem| problem.severity == Severity::Error;
        let problems = file
            .loaded
            .problems
            .iter()
            .filter(|problem| is_error(problem));
        let errors: Vec<Problem> = problems.cloned().collect();
        self.show_problems(&file, &errors);
        Err(Failure::usage(format!(
            "{} can't be used; nothing ran",
            file.path.display()
        )))
    }

    /// Shows problems of tools.yaml on stderr.
    pub fn show_problems(&self, file: &ToolsFile, problems: &[Problem]) {
        if !problems.is_empty() {
            Stderr::text(&diagnostics::render(
                problems,
                &file.path.display().to_string(),
                &file.text,
                self.stderr.color(),
                Stderr::width(),
            ));
        }
    }

    /// The mask over the secrets that `tools` names.
    pub fn mask(&self, tools: &Tools) -> Mask {
        let values: Vec<String> = tools
            .secrets
            .iter()
            .filter_map(|name| self.environment.get(name))
            .collect();
        Mask::new(values.iter().map(String::as_str))
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::usage(format!("{} can't be read: {error}", path.display()));
    match error.kind() {
        std::io::ErrorKind::NotFound => failure.with_hint(
            "name it with -c FILE or TOOLQ_TOOLS, or write one to start from with `toolq init`",
        ),
        _ => failure,
    }
}
