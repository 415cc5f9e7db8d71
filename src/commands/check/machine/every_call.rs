//! What every call needs.

use crate::commands::check::machine::Surroundings;
use crate::commands::check::machine::missing::{MissingRequirement, RequirementKind};
use toolq_core::os::Environment;

/// Returns what is missing for any call.
pub(super) fn find_missing_machine_parts(
    surroundings: &Surroundings<'_>,
) -> Vec<MissingRequirement> {
    let mut missing = Vec::new();
    if !surroundings.root.is_dir() {
        let root = surroundings.root.display().to_string();
        let message = format!("the root {root} isn't a directory");
        let hint = "commands run there; create it, correct `root`, or start toolq elsewhere";
        let kind = RequirementKind::Directory;
        missing.push(MissingRequirement::new(kind, root, message, hint));
    }
    missing.extend(find_log_obstacle(surroundings.environment));
    missing
}

/// Returns why session logs can't be written, as far as directories and permissions show.
fn find_log_obstacle(environment: &Environment) -> Option<MissingRequirement> {
    let kind = RequirementKind::Directory;
    let is_named = environment
        .get_os("TOOLQ_LOG_FILE")
        .is_some_and(|file| !file.is_empty());
    if is_named {
        return None;
    }
    let hint = "set HOME or XDG_STATE_HOME, or name a log with --log or TOOLQ_LOG_FILE";
    let Ok(directory) = toolq_log::sessions_dir(environment) else {
        let message = "there is no directory for session logs: HOME isn't set";
        return Some(MissingRequirement::new(kind, "HOME", message, hint));
    };
    let existing = directory.ancestors().find(|ancestor| ancestor.exists())?;
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    if existing.is_dir() && rustix::fs::access(existing, access).is_ok() {
        return None;
    }
    let shown = directory.display().to_string();
    let message = format!("session logs can't be written to {shown}");
    Some(MissingRequirement::new(kind, shown, message, hint))
}
