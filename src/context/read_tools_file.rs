//! Reads and parses tools.yaml with its lock.

use std::path::{Path, PathBuf};

use crate::context::CommandContext;
use crate::input::stdin;
use crate::output::{CommandError, StderrWriter};
use redact::Mask;
use toolq_core::text::decode_text;
use toolq_core::tools_file;
use toolq_core::tools_file::{HostToolDeclarations, ParsedToolsFile};
use toolq_core::tools_lock::{LockUse, ToolsLock};
use toolq_core::types::{Span, mask_variables};

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
    ) -> Result<LoadedToolsFile, CommandError> {
        let lock = self.read_lock()?;
        self.read_locked_tools_file(LockUse::from(&lock), variable, None)
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
    pub(super) fn read_lock(&self) -> Result<Option<ToolsLock>, CommandError> {
        ToolsLock::read(&self.tools_path).map_err(|why| {
            CommandError::usage(why)
                .with_hint("restore it, or remove it and write it again with `toolq servers lock`")
        })
    }

    pub(super) fn read_locked_tools_file(
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
    match error.kind() {
        std::io::ErrorKind::NotFound => failure.with_hint(
            "name it with -c FILE or TOOLQ_TOOLS, or create a starter file with `toolq init`",
        ),
        _ => failure,
    }
}
