//! Where commands run, and what they can reach in their sandboxes.

use crate::commands::check::machine::Surroundings;
use crate::commands::check::machine::missing::{MissingRequirement, RequirementKind};
use toolq_core::types::{
    CommandBacking, MissingProtection, PartialTemplate, Sandbox, SandboxEntry, SandboxNetwork,
    TemplatePart,
};

/// Returns what the working directory and the sandbox of a command lack. `find_gaps` returns what the kernel can't do.
pub(super) fn find_missing_places(
    command: &CommandBacking,
    surroundings: &Surroundings<'_>,
    find_gaps: &dyn Fn(&SandboxNetwork) -> Vec<&'static str>,
) -> Vec<MissingRequirement> {
    let mut missing = Vec::new();
    // The root isn't specific to this command.
    if command.cwd != surroundings.root && !command.cwd.is_dir() {
        let relative = command.cwd.strip_prefix(surroundings.root);
        let shown = relative.unwrap_or(&command.cwd).display().to_string();
        let message = format!("there is no directory {shown} in the root, where this runs");
        let hint = "create it, or correct `cwd`";
        let kind = RequirementKind::Directory;
        missing.push(MissingRequirement::new(kind, shown, message, hint));
    }
    if let Some(sandbox) = &command.sandbox {
        missing.extend(find_sandbox_gaps(sandbox, find_gaps));
        missing.extend(find_missing_paths(sandbox, surroundings));
    }
    missing
}

fn find_sandbox_gaps(
    sandbox: &Sandbox,
    find_gaps: &dyn Fn(&SandboxNetwork) -> Vec<&'static str>,
) -> Vec<MissingRequirement> {
    let gaps = find_gaps(&sandbox.network).into_iter();
    let missing = gaps.map(|gap| {
        let message = format!("this system can't confine {gap}");
        let missing = |hint: &str| {
            MissingRequirement::new(RequirementKind::Kernel, "sandbox", message.clone(), hint)
        };
        match sandbox.missing {
            MissingProtection::Refuse => missing(
                "calls don't start; `missing: warn` under `sandbox` starts them with what the system can do",
            ),
            MissingProtection::Warn => missing("calls start without that").into_optional(),
        }
    });
    missing.collect()
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
        let segments: Option<Vec<_>> = template
            .parts
            .iter()
            .map(TemplatePart::as_segment)
            .collect();
        let lookup = |name: &str| surroundings.environment.get(name);
        let path = PartialTemplate(segments?).resolve(&lookup);
        let shown = template.to_string();
        let missing = |message: String, hint: &str| {
            MissingRequirement::new(RequirementKind::Path, shown.clone(), message, hint)
        };
        match path {
            Err(name) => Some(missing(
                format!("the variable {name} in the path {shown} is unset or empty"),
                "set it",
            )),
            Ok(path) if surroundings.root.join(&path).exists() => None,
            Ok(_) => {
                let message = format!("{shown} doesn't exist, so the sandbox allows nothing there");
                Some(missing(message, "create it before the call, if it is needed").into_optional())
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
        let gaps = |_: &SandboxNetwork| vec!["files", "signals"];
        for (policy, optional) in [
            (MissingProtection::Refuse, false),
            (MissingProtection::Warn, true),
        ] {
            let sandbox = Sandbox {
                missing: policy,
                ..Sandbox::default()
            };
            let missing = find_sandbox_gaps(&sandbox, &gaps);
            assert_eq!(missing.len(), 2);
            assert!(missing.iter().all(|missing| missing.optional == optional));
            assert_eq!(missing[0].message, "this system can't confine files");
        }
    }
}
