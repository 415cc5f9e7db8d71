//! Writes a plan to a file, for review.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::args::plan::PlanArguments as Arguments;
use crate::context::{CommandContext, LoadedToolsFile};
use crate::output::{CommandError, check_output_file};
use crate::plan_file::{PlanBuilder, PlanFile};
use redact::Mask;
use toolq_core::text::quote_path_for_shell;
use toolq_core::types::{CheckedCall, ToolsConfig};

/// The file that `--out` names.
pub(super) struct PlanWriter<'a> {
    path: &'a Path,
    valid: Duration,
    builder: PlanBuilder,
    context: &'a CommandContext,
}

impl<'a> PlanWriter<'a> {
    /// `path` is where the plan will be.
    ///
    /// # Errors
    /// The file is one that the command reads, or a session log.
    pub(super) fn new(
        path: &'a Path,
        arguments: &Arguments,
        tools_file: &LoadedToolsFile,
        tools: &Arc<ToolsConfig>,
        mask: &Arc<Mask>,
        context: &'a CommandContext,
    ) -> Result<Self, CommandError> {
        let inputs = arguments.input.files.iter().chain(&arguments.estimates);
        let inputs = inputs.map(PathBuf::as_path);
        check_output_file(path, inputs, &tools_file.files())?;
        Ok(Self {
            path,
            valid: arguments.valid,
            builder: PlanBuilder::new(Arc::clone(tools), Arc::clone(mask)),
            context,
        })
    }

    /// Adds the checked calls of a turn.
    pub(super) fn add_turn(
        &mut self,
        number: usize,
        calls: &[CheckedCall],
    ) -> Result<(), CommandError> {
        self.builder.add_turn(number, calls)
    }

    /// Writes the file, and says which plan it holds.
    ///
    /// # Errors
    /// What would run can't be known, or the file can't be written.
    pub(super) fn write(self) -> Result<(), CommandError> {
        let described = self.builder.described_tools().join(", ");
        if !described.is_empty() {
            return Err(CommandError::usage(format!(
                "no plan can be written: what the calls of {described} mean is only known when `describe` has run"
            ))
            .with_hint("approve such calls when they run, with `--approve ask` or `--approve-with PROGRAM`"));
        }
        let stderr = &self.context.stderr;
        let unplanned = self.builder.unplanned_tools().join(", ");
        if !unplanned.is_empty() {
            stderr.print_warning(&format!(
                "the plan doesn't approve the calls of {unplanned} that agents make, since they aren't known yet; `run --plan` with `--approve ask` or `--approve-with PROGRAM` asks about them"
            ));
        }
        let count = self.builder.call_count();
        let created = Timestamp::now();
        // The file has whole milliseconds, like the log.
        let created = Timestamp::from_millisecond(created.as_millisecond()).unwrap_or(created);
        let valid_until = created
            .checked_add(self.valid)
            .map_err(|error| CommandError::usage(format!("`--valid`: {error}")))?;
        let body = self.builder.finish(created, valid_until);
        let file = PlanFile::new(body).map_err(CommandError::usage)?;
        let path = self.path.display();
        file.write(self.path)
            .map_err(|error| CommandError::usage(format!("{path} can't be written: {error}")))?;
        let path = quote_path_for_shell(self.path);
        let calls = if count == 1 { "call" } else { "calls" };
        stderr.print_note(&format!(
            "plan {} of {count} {calls}, valid until {valid_until}: `toolq run{} --plan {path}` with the same input runs exactly this",
            file.id,
            self.context.tools_flag(),
        ));
        Ok(())
    }
}
