//! Programs, the scripts that they read, and the interpreters that scripts name.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::commands::check::machine::Surroundings;
use crate::commands::check::machine::missing::{MissingRequirement, RequirementKind};
use toolq_core::text::escape;
use toolq_core::tools_file::{StartedFile, find_started_files};
use toolq_core::types::{CommandBacking, Template};
use toolq_engine::{find_interpreter, find_program};

/// What a program is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramRole {
    Tool,
    Describe,
    Probe,
    Server,
}

impl ProgramRole {
    /// Returns what doesn't work without the program.
    fn consequence(self) -> &'static str {
        match self {
            Self::Tool => "calls of this tool fail",
            Self::Describe => "calls of this tool can't be checked and don't run",
            Self::Probe => "an interrupted call stays in doubt",
            Self::Server => "calls of its tools fail",
        }
    }
}

/// Returns the programs and scripts that `command` needs and that can't be run.
pub(super) fn find_missing_programs(
    command: &CommandBacking,
    role: ProgramRole,
    surroundings: &Surroundings<'_>,
) -> Vec<MissingRequirement> {
    let own: Vec<String> = std::iter::once(command.program.clone())
        .chain(command.arguments.iter().map(Template::to_string))
        .collect();
    let lookup = FileLookup {
        command,
        consequence: role.consequence(),
        surroundings,
    };
    let Some(wrapper) = &command.wrapper else {
        return lookup.find_missing(&own);
    };
    let mut missing = lookup.find_missing(&wrapper.argv);
    // What a daemon or another host runs isn't on this machine.
    if wrapper.hands_over_to.is_none() {
        missing.extend(lookup.find_missing(&own));
    }
    missing
}

struct FileLookup<'a> {
    command: &'a CommandBacking,
    consequence: &'static str,
    surroundings: &'a Surroundings<'a>,
}

impl FileLookup<'_> {
    fn find_missing(&self, argv: &[String]) -> Vec<MissingRequirement> {
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let files = find_started_files(&argv);
        let missing = files.iter().enumerate().filter_map(|(index, file)| {
            match file {
                StartedFile::Program(name) => self.check_program(name, index == 0),
                // An interpreter looks for it where it runs.
                StartedFile::Script(name) => {
                    let path = self.command.cwd.join(name);
                    (!path.is_file()).then(|| self.missing_script(name))
                }
            }
        });
        missing.collect()
    }

    /// Checks a program. Only the first one in a command is looked for beside tools.yaml.
    fn check_program(&self, name: &str, is_first: bool) -> Option<MissingRequirement> {
        let dir = if is_first {
            self.surroundings.dir
        } else {
            &self.command.cwd
        };
        let declared = dir.join(name);
        match find_program(name, &declared, self.path_variable()) {
            Ok(path) if is_executable(&path) => self.check_interpreter(&path),
            Ok(path) if path.is_file() => {
                let hint = format!(
                    "make it executable: chmod +x; until then, {}",
                    self.consequence
                );
                let message = format!("{name} can't be executed");
                Some(MissingRequirement::new(
                    RequirementKind::Program,
                    name,
                    message,
                    hint,
                ))
            }
            _ => Some(self.missing_program(name)),
        }
    }

    fn missing_program(&self, name: &str) -> MissingRequirement {
        let (message, hint) = if name.contains('/') {
            (
                format!("there is no program {name}"),
                String::from("correct its path"),
            )
        } else if self.surroundings.dir.join(name).is_file() {
            let hint =
                format!("write ./{name}: without a slash, it isn't looked for beside tools.yaml");
            (format!("{name} isn't in PATH"), hint)
        } else {
            (format!("{name} isn't in PATH"), String::from("install it"))
        };
        let hint = format!("{hint}; until then, {}", self.consequence);
        MissingRequirement::new(RequirementKind::Program, name, message, hint)
    }

    fn missing_script(&self, name: &str) -> MissingRequirement {
        let beside = self.surroundings.dir.join(name);
        let hint = if beside.is_file() {
            "it is beside tools.yaml, but commands run in `root`, or in their `cwd`"
        } else {
            "its path is relative to the directory in which the command runs"
        };
        let message = format!("there is no script {name}");
        MissingRequirement::new(RequirementKind::Script, name, message, hint)
    }

    /// Checks what the first line of a script names, such as `#!/usr/bin/env python3`.
    fn check_interpreter(&self, script: &Path) -> Option<MissingRequirement> {
        let Some((interpreter, argument)) = find_interpreter(script) else {
            return is_text(script).then(|| self.without_interpreter(script));
        };
        let is_env = interpreter.file_name() == Some(OsStr::new("env"));
        let missing = if is_executable(&interpreter) {
            let name = argument.filter(|argument| is_env && !argument.starts_with('-'))?;
            let found = find_program(&name, Path::new(&name), self.path_variable());
            if found.is_ok() {
                return None;
            }
            name
        } else {
            escape(&interpreter.to_string_lossy()).into_owned()
        };
        let message = format!("{} needs {missing}, which isn't there", script.display());
        let cure = if missing.ends_with("\\r") {
            "write its lines without the carriage returns of Windows"
        } else {
            "install it"
        };
        let hint = format!("{cure}; until then, {}", self.consequence);
        let kind = RequirementKind::Interpreter;
        Some(MissingRequirement::new(kind, missing, message, hint))
    }

    fn without_interpreter(&self, script: &Path) -> MissingRequirement {
        let script = escape(&script.to_string_lossy()).into_owned();
        let message = format!("{script} is a text whose first line names no interpreter");
        let hint = format!(
            "begin it with a line such as `#!/bin/sh`; until then, {}",
            self.consequence
        );
        MissingRequirement::new(RequirementKind::Interpreter, script, message, hint)
    }

    fn path_variable(&self) -> Option<&OsStr> {
        self.surroundings.environment.get_own("PATH")
    }
}

/// Whether a file looks like a text, and not like a program that the system can start.
fn is_text(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(1 << 10).read_to_end(&mut beginning));
    read.is_ok() && !beginning.is_empty() && !beginning.contains(&0)
}

fn is_executable(path: &Path) -> bool {
    let may_execute = rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    may_execute && path.is_file()
}
