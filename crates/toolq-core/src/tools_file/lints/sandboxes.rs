//! Warns about sandboxes that this system can't apply, and about those that keep their own program from starting.

use std::path::{Path, PathBuf};

use crate::tools_file::yaml::YamlNode;
use crate::types::{
    Backing, CommandBacking, FileProblem, MissingProtection, Sandbox, SandboxEntry, SandboxNetwork,
    Span, Tool, ToolsConfig,
};

/// Returns a warning for each sandbox of `tools` of which the system can't apply a part. `find_gaps` returns what that
/// is, each as the end of "this system can't confine". `tree` provides the positions.
pub fn find_sandbox_warnings(
    tools: &ToolsConfig,
    tree: &YamlNode,
    find_gaps: impl Fn(&SandboxNetwork) -> Vec<&'static str>,
) -> Vec<FileProblem> {
    let of_tools = tools.tools.iter().filter_map(|tool| {
        let sandbox = tool_command(tool)?.sandbox.as_ref()?;
        Some(("tools", &tool.name, sandbox))
    });
    let of_servers = tools.servers.iter().filter_map(|server| {
        let sandbox = server.program()?.sandbox.as_ref()?;
        Some(("servers", &server.name, sandbox))
    });
    let mut found: Vec<FileProblem> = Vec::new();
    for (section, name, sandbox) in of_tools.chain(of_servers) {
        let gaps = find_gaps(&sandbox.network);
        let span = find_span(tree, [section, name], "");
        // One in `defaults` is about many tools.
        if !gaps.is_empty() && found.iter().all(|known| known.span != span) {
            found.push(gap_warning(sandbox, &gaps, span));
        }
    }
    found
}

fn tool_command(tool: &Tool) -> Option<&CommandBacking> {
    if let Some(Backing::Command(command)) = &tool.backing {
        return Some(command);
    }
    let describe = tool.describe.as_ref().map(|describe| &describe.command);
    tool.probe.as_ref().or(describe)
}

/// Returns the position of a key of the sandbox: with the tool or server, or in `defaults`. If it is in neither place,
/// returns the position of the tool or server.
fn find_span(tree: &YamlNode, [section, name]: [&str; 2], key: &str) -> Span {
    let pointer = format!("/sandbox{key}");
    let owner = tree.key_span_at(&[section, name], "");
    let candidates: [&[&str]; 2] = [&[section, name], &["defaults"]];
    candidates
        .into_iter()
        .find_map(|keys| {
            let above = tree.key_span_at(
                keys,
                pointer.rsplit_once('/').map_or("", |(above, _)| above),
            );
            let span = tree.key_span_at(keys, &pointer);
            (span != above).then_some(span)
        })
        .unwrap_or(owner)
}

fn gap_warning(sandbox: &Sandbox, gaps: &[&str], span: Span) -> FileProblem {
    let message = format!("this system can't confine {}", gaps.join(", or "));
    let hint = match sandbox.missing {
        MissingProtection::Refuse => {
            "the programs don't start here; `missing: warn` starts them with what the system can do"
        }
        MissingProtection::Warn => "the programs start all the same, because of `missing: warn`",
    };
    FileProblem::warning(span, message, "").with_hint(hint)
}

/// Returns a warning if the sandbox of a command keeps the file of its own program from being read. `owner` has the keys
/// of the tool or the server.
pub(crate) fn unreadable_program_warning(
    command: &CommandBacking,
    file: &Path,
    owner: [&str; 2],
    tools: &ToolsConfig,
    tree: &YamlNode,
) -> Option<FileProblem> {
    let sandbox = command.sandbox.as_ref()?;
    // `system` has the program, and a value may be anything.
    let may_hold = |entry: &SandboxEntry| {
        written_place(entry, &tools.root).is_none_or(|place| holds(&place, file))
    };
    if sandbox.read.iter().chain(&sandbox.write).any(may_hold) {
        return None;
    }
    let message = format!(
        "the sandbox keeps `{}` from starting: `read` doesn't have it",
        file.display()
    );
    let span = find_span(tree, owner, "/read");
    let hint = "add `system`, which is what programs need to start";
    Some(FileProblem::warning(span, message, "").with_hint(hint))
}

/// Returns where an entry leads, if that doesn't depend on anything.
fn written_place(entry: &SandboxEntry, root: &Path) -> Option<PathBuf> {
    match entry {
        SandboxEntry::Root => Some(root.to_owned()),
        SandboxEntry::System => None,
        SandboxEntry::Path(template) => Some(root.join(template.sole_text()?)),
    }
}

/// Whether `file`, which need not exist, is in `place` or is it.
fn holds(place: &Path, file: &Path) -> bool {
    let resolved = |path: &Path| -> Option<PathBuf> {
        path.canonicalize().ok().or_else(|| {
            let above = path.parent()?.canonicalize().ok()?;
            Some(above.join(path.file_name()?))
        })
    };
    match (resolved(place), resolved(file)) {
        (Some(place), Some(file)) => file.starts_with(&place) || place.starts_with(&file),
        _ => false,
    }
}
