//! Programs, the scripts that they read, and the interpreters that scripts name.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::commands::check::machine::report::{MissingRequirement, RequirementKind};
use toolq_core::os::Environment;
use toolq_core::text::escape;
use toolq_core::tools_file::{StartedFile, find_started_files};
use toolq_core::types::{
    CommandBacking, MissingProtection, Sandbox, SandboxEntry, Template, ToolsConfig,
};
use toolq_engine::{find_interpreter, find_program, find_sandbox_gaps, hides_file};

/// What the needs depend on.
pub(super) struct Surroundings<'a> {
    pub(super) tools: &'a ToolsConfig,
    /// With the variables of `env_file`.
    pub(super) environment: &'a Environment,
    /// Why addresses can't be reached. Connecting to the others succeeded, or wasn't tried.
    pub(super) unreachable: BTreeMap<String, String>,
}

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

    /// Returns the key that declares the program.
    pub(super) fn part(self) -> &'static str {
        match self {
            Self::Tool | Self::Server => "/command",
            Self::Describe => "/describe",
            Self::Probe => "/probe",
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
                    if path.is_file() {
                        self.check_sandbox(RequirementKind::Script, name, &path)
                    } else {
                        Some(self.missing_script(name))
                    }
                }
            }
        });
        missing.collect()
    }

    /// Checks a program. Only the first one in a command is looked for beside tools.yaml.
    fn check_program(&self, name: &str, is_first: bool) -> Option<MissingRequirement> {
        let dir = if is_first {
            &self.surroundings.tools.dir
        } else {
            &self.command.cwd
        };
        let declared = dir.join(name);
        match find_program(name, &declared, self.path_variable()) {
            Ok(path) if is_executable(&path) => self
                .check_sandbox(RequirementKind::Program, name, &path)
                .or_else(|| self.check_interpreter(&path)),
            Ok(path) if path.is_file() => {
                let message = format!("{name} can't be executed");
                let cure = "make it executable: chmod +x";
                Some(self.missing(RequirementKind::Program, name, message, cure))
            }
            _ => Some(self.missing_program(name)),
        }
    }

    fn missing_program(&self, name: &str) -> MissingRequirement {
        let kind = RequirementKind::Program;
        if name.contains('/') {
            let message = format!("there is no program {name}");
            return self.missing(kind, name, message, "correct its path");
        }
        let cure = if self.surroundings.tools.dir.join(name).is_file() {
            format!("write ./{name}: without a slash, it isn't looked for beside tools.yaml")
        } else {
            "install it".to_owned()
        };
        self.missing(kind, name, format!("{name} isn't in PATH"), &cure)
    }

    /// What is missing until `cure` is done.
    fn missing(
        &self,
        kind: RequirementKind,
        name: &str,
        message: String,
        cure: &str,
    ) -> MissingRequirement {
        let hint = format!("{cure}; until then, {}", self.consequence);
        MissingRequirement::new(kind, name, message, hint)
    }

    fn missing_script(&self, name: &str) -> MissingRequirement {
        let beside = self.surroundings.tools.dir.join(name);
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
            let shown = escape(&interpreter.to_string_lossy()).into_owned();
            let hidden = self.check_sandbox(RequirementKind::Interpreter, &shown, &interpreter);
            if hidden.is_some() {
                return hidden;
            }
            let name = argument.filter(|argument| is_env && !argument.starts_with('-'))?;
            let found = find_program(&name, Path::new(&name), self.path_variable());
            if let Ok(path) = found {
                return self.check_sandbox(RequirementKind::Interpreter, &name, &path);
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
        Some(self.missing(RequirementKind::Interpreter, &missing, message, cure))
    }

    /// Checks that the sandbox shows a file that was found. A name is looked up in all of PATH.
    fn check_sandbox(
        &self,
        kind: RequirementKind,
        name: &str,
        found: &Path,
    ) -> Option<MissingRequirement> {
        let sandbox = self.command.sandbox.as_ref()?;
        let Surroundings {
            tools, environment, ..
        } = self.surroundings;
        let path = self.path_variable();
        let wrapper = self.command.wrapper.as_ref();
        let wrapper = wrapper.and_then(|wrapper| wrapper.argv.first());
        let own = wrapper.into_iter().chain([&self.command.program]);
        let own = own.filter_map(|name| find_program(name, &tools.dir.join(name), path).ok());
        let own: Vec<PathBuf> = own.collect();
        let others = path.into_iter().flat_map(std::env::split_paths);
        let others = others.filter(|dir| !name.contains('/') && dir.is_absolute());
        let others = others
            .map(|dir| dir.join(name))
            .filter(|file| is_executable(file));
        let mut files = std::iter::once(found.to_owned()).chain(others);
        if files.any(|file| !hides_file(sandbox, &file, (&own, &tools.root), environment)) {
            return None;
        }
        let file = escape(&found.to_string_lossy()).into_owned();
        let message = format!("the sandbox doesn't show {file}");
        let cure = "add what it needs to `read` in the `sandbox`: `system`, or its directory";
        Some(self.missing(kind, &file, message, cure))
    }

    fn without_interpreter(&self, script: &Path) -> MissingRequirement {
        let script = escape(&script.to_string_lossy()).into_owned();
        let message = format!("{script} is a text whose first line names no interpreter");
        let cure = "begin it with a line such as `#!/bin/sh`";
        self.missing(RequirementKind::Interpreter, &script, message, cure)
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

// Where commands run, and what they can reach in their sandboxes.

/// Returns what the working directory and the sandbox of a command lack.
pub(super) fn find_missing_places(
    command: &CommandBacking,
    surroundings: &Surroundings<'_>,
) -> Vec<MissingRequirement> {
    let mut missing = Vec::new();
    // The root isn't specific to this command.
    let root = &surroundings.tools.root;
    if command.cwd != *root && !command.cwd.is_dir() {
        let relative = command.cwd.strip_prefix(root);
        let shown = relative.unwrap_or(&command.cwd).display().to_string();
        let message = format!("there is no directory {shown} in the root, where this runs");
        let hint = "create it, or correct `cwd`";
        let kind = RequirementKind::Directory;
        missing.push(MissingRequirement::new(kind, shown, message, hint));
    }
    if let Some(sandbox) = &command.sandbox {
        let gaps = find_sandbox_gaps(&sandbox.network).into_iter();
        missing.extend(gaps.map(|gap| missing_protection(gap, sandbox.missing)));
        missing.extend(find_missing_paths(sandbox, surroundings));
    }
    missing
}

fn missing_protection(gap: &str, policy: MissingProtection) -> MissingRequirement {
    let message = format!("this system can't confine {gap}");
    let missing =
        |hint: &str| MissingRequirement::new(RequirementKind::Kernel, "sandbox", message, hint);
    match policy {
        MissingProtection::Refuse => missing(
            "calls don't start; `missing: warn` under `sandbox` starts them with what the system can do",
        ),
        MissingProtection::Warn => missing("calls start without that").into_optional(),
    }
}

/// Returns the declared paths that don't exist. They allow nothing then.
fn find_missing_paths(
    sandbox: &Sandbox,
    surroundings: &Surroundings<'_>,
) -> Vec<MissingRequirement> {
    let entries = sandbox.read.iter().chain(&sandbox.write);
    let missing = entries.filter_map(|entry| {
        let SandboxEntry::Path(template) = entry else {
            return None;
        };
        if template.uses_input() {
            return None;
        }
        let lookup = |name: &str| surroundings.environment.get(name);
        let path = template.without_values().resolve(&lookup);
        let shown = template.to_string();
        let missing = |message: String, hint: &str| {
            MissingRequirement::new(RequirementKind::Path, shown.clone(), message, hint)
        };
        match path {
            Err(name) => Some(missing(
                format!("the variable {name} in the path {shown} is unset or empty"),
                "set it",
            )),
            Ok(path) if surroundings.tools.root.join(&path).exists() => None,
            Ok(_) => {
                let message = format!("absent, so the sandbox allows nothing there: {shown}");
                Some(missing(message, "create what is needed before the call").into_optional())
            }
        }
    });
    missing.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_optional_where_it_is_allowed() {
        for (policy, optional) in [
            (MissingProtection::Refuse, false),
            (MissingProtection::Warn, true),
        ] {
            let missing = missing_protection("files", policy);
            assert_eq!(missing.optional, optional);
            assert_eq!(missing.message, "this system can't confine files");
        }
    }
}
