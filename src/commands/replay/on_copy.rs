//! `--on-copy`: prepares the copy of `root`.

use std::io;
use std::path::{Path, PathBuf};

use crate::context::CommandContext;
use crate::output::CommandError;
use crate::replay::RootCopy;
use toolq_core::types::{SandboxNetwork, ToolsConfig};
use toolq_engine::find_sandbox_gaps;

/// Prepares a place for copies of `root`.
///
/// # Errors
/// The system can't confine programs to a copy, `root` is the whole file system, or the place can't be created.
pub(super) fn prepare_copy(
    context: &CommandContext,
    tools: &ToolsConfig,
    keep: bool,
) -> Result<RootCopy, CommandError> {
    let gaps = find_sandbox_gaps(&SandboxNetwork::None);
    if !gaps.is_empty() {
        let failure = CommandError::usage(format!(
            "`--on-copy` runs programs in a sandbox, and this system can't confine {}",
            gaps.join(", or ")
        ));
        return Err(failure.with_hint("leave it out: only reads run then, and writes are served"));
    }
    let root = &tools.root;
    let failed = |error: io::Error| {
        CommandError::usage(format!("{} can't be copied: {error}", root.display()))
            .with_hint("set TMPDIR to a directory with enough space")
    };
    let original = root.canonicalize().map_err(failed)?;
    if original == Path::new("/") {
        return Err(CommandError::usage("`root` is /, which can't be copied")
            .with_hint("name the directory that the tools work on as `root` in tools.yaml"));
    }
    if root.join(".git").is_file() {
        context.stderr.print_warning(
            "`.git` is a file: the git directory lies outside `root` and isn't copied, so git can't write",
        );
    }
    let place = context.environment.get_os("TMPDIR").map(PathBuf::from);
    let place = place.unwrap_or_else(|| PathBuf::from("/tmp"));
    RootCopy::new(&original, &place, keep).map_err(failed)
}
