//! Something that is missing, and who needs it.

use serde::Serialize;

/// What kind of thing is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequirementKind {
    /// A program that is started.
    Program,
    /// A file that an interpreter runs.
    Script,
    /// What the first line of a script names.
    Interpreter,
    /// An environment variable.
    Variable,
    /// A working directory, or the one of session logs.
    Directory,
    /// A file or directory in a `sandbox`.
    Path,
    /// A feature that only some kernels have.
    Kernel,
    /// An address that a server, an agent's API or a request needs.
    Address,
}

/// Something that this machine lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::commands::check) struct MissingRequirement {
    pub(super) kind: RequirementKind,
    /// A program, path, variable or address. Never the value of a variable.
    pub(super) name: String,
    /// What is wrong, without a final period.
    pub(super) message: String,
    /// What to do about it.
    pub(super) hint: String,
    /// Whether calls run without it.
    pub(super) optional: bool,
}

impl MissingRequirement {
    pub(super) fn new(
        kind: RequirementKind,
        name: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            name: name.into(),
            message: message.into(),
            hint: hint.into(),
            optional: false,
        }
    }

    /// Calls run without it, too.
    pub(super) fn into_optional(self) -> Self {
        Self {
            optional: true,
            ..self
        }
    }
}

/// A tool or server, and what it lacks.
#[derive(Debug, Serialize)]
pub(in crate::commands::check) struct NeedsReport {
    pub(super) name: String,
    pub(super) missing: Vec<MissingRequirement>,
}

/// What was found on this machine.
#[derive(Debug)]
pub(in crate::commands::check) struct NeedsSurvey {
    /// What every call needs.
    pub(in crate::commands::check) machine: Vec<MissingRequirement>,
    pub(in crate::commands::check) tools: Vec<NeedsReport>,
    pub(in crate::commands::check) servers: Vec<NeedsReport>,
}

impl NeedsSurvey {
    /// Returns everything that is missing.
    pub(super) fn missing(&self) -> impl Iterator<Item = &MissingRequirement> {
        let named = self.tools.iter().chain(&self.servers);
        self.machine
            .iter()
            .chain(named.flat_map(|report| &report.missing))
    }

    /// Whether everything that calls can't run without is there.
    pub(in crate::commands::check) fn has_all(&self) -> bool {
        self.missing().all(|missing| missing.optional)
    }
}
