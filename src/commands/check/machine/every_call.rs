//! What every call needs.

use std::fs;
use std::path::PathBuf;

use crate::commands::check::machine::Surroundings;
use crate::commands::check::machine::missing::{MissingRequirement, RequirementKind};
use toolq_core::os::Environment;

/// Returns what is missing for any call, or for `replay --on-copy`.
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
    missing.extend(find_namespace_obstacle());
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

/// Returns why `replay --on-copy` can't work, as far as settings of the kernel tell.
fn find_namespace_obstacle() -> Option<MissingRequirement> {
    let setting = |name: &str| {
        let text = fs::read_to_string(PathBuf::from("/proc/sys").join(name)).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let is_root = rustix::process::geteuid().is_root();
    let reason = if setting("user/max_user_namespaces") == Some(0) {
        "user.max_user_namespaces is 0"
    } else if !is_root && setting("kernel/unprivileged_userns_clone") == Some(0) {
        "kernel.unprivileged_userns_clone is 0"
    } else if !is_root && setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        "kernel.apparmor_restrict_unprivileged_userns is 1"
    } else {
        return None;
    };
    let message = format!("user namespaces are switched off: {reason}");
    let hint = "`toolq replay --on-copy` needs them; nothing else does";
    let kind = RequirementKind::Kernel;
    Some(MissingRequirement::new(kind, "user namespaces", message, hint).into_optional())
}
