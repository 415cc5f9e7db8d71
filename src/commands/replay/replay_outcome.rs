//! How a replay ends, wherever its calls ran.

use std::path::Path;

use crate::args::ReplayArguments as Arguments;
use crate::commands::replay::messages::{below_root_warning, nothing_to_compare};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit};
use crate::replay::{ReplayTotals, totals_label};

/// What came of a replay.
pub(super) struct ReplayOutcome {
    pub totals: ReplayTotals,
    /// The most severe exit.
    pub exit: Exit,
    /// A signal or a budget stopped it, so that not everything was compared.
    pub was_halted: bool,
    /// Number of recordings that the tools may find, because they lie below `root`.
    pub recordings_below_root: usize,
}

impl ReplayOutcome {
    /// Prints the totals. Returns how the command ends.
    ///
    /// # Errors
    /// There was nothing to compare.
    pub(super) fn conclude(
        self,
        arguments: &Arguments,
        context: &CommandContext,
    ) -> Result<Exit, CommandError> {
        let totals = self.totals;
        if !totals.has_comparison() && self.exit == Exit::Ok && arguments.shard.is_none() {
            return Err(nothing_to_compare(totals.calls));
        }
        if self.was_halted {
            let message = "the replay was stopped early: later calls were not compared";
            context.stderr.print_warning(message);
        }
        context.stderr.print_note(&totals_label(&totals));
        if totals.differing_results > 0 && self.recordings_below_root > 0 {
            let warning = below_root_warning(self.recordings_below_root);
            context.stderr.print_warning(&warning);
        }
        if totals.stale > 0 && !arguments.strict && !arguments.on_copy {
            context.stderr.print_note(
                "`--on-copy` replays writes, too, on a copy; `--strict` lets stale results count as differences",
            );
        }
        Ok(self.exit)
    }
}

/// Returns whether the file at `path` lies below `root`.
pub(super) fn lies_below(path: &Path, root: &Path) -> bool {
    let canonical = path.canonicalize().ok().zip(root.canonicalize().ok());
    canonical.is_some_and(|(path, root)| path.starts_with(root))
}
