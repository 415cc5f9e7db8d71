//! Applies a plan: reads it, and compares it with what would run.

use std::path::Path;
use std::sync::Arc;

use crate::approval::user_name;
use crate::commands::run::settings::RunSettings;
use crate::context::CommandContext;
use crate::input::CommandInput;
use crate::output::CommandError;
use crate::plan_file::{PlanFile, PlannedCalls};
use toolq_core::check::CallChecker;
use toolq_core::transcript::Recording;
use toolq_core::types::{CheckedCall, ToolsConfig};

/// Reads the plan and compares it with all calls of the inputs.
///
/// # Errors
/// The plan can't be used, or isn't what would run. Nothing ran.
pub(crate) fn read_plan(
    path: &Path,
    inputs: &[CommandInput],
    settings: RunSettings,
    tools: &Arc<ToolsConfig>,
    context: &CommandContext,
) -> Result<Arc<PlannedCalls>, CommandError> {
    let file = PlanFile::read(path)?;
    let mut recordings = Vec::new();
    for input in inputs {
        let CommandInput::Recording(recording) = input else {
            return Err(CommandError::usage(
                "the calls of a stream aren't known before they run, so no plan can hold them; nothing ran",
            ));
        };
        recordings.push(&**recording);
    }
    let mask = Arc::new(context.build_mask(tools));
    let user = user_name(&context.environment);
    let plan = PlannedCalls::new(file, mask, user);
    let checker = CallChecker::new(Arc::clone(tools));
    let turns = checked_turns(&recordings, settings.include_answered, &checker);
    plan.compare(tools, turns)?;
    Ok(Arc::new(plan))
}

/// Reads and checks turn after turn, as the run will.
fn checked_turns<'a>(
    recordings: &'a [&'a Recording],
    include_answered: bool,
    checker: &'a CallChecker,
) -> impl Iterator<Item = Result<(usize, Vec<CheckedCall>), CommandError>> + 'a {
    let turns = recordings.iter().flat_map(move |recording| {
        (0..recording.len()).map(move |index| recording.turn(index, include_answered))
    });
    turns.enumerate().map(|(number, turn)| {
        let turn = turn?.with_number(number);
        Ok((number, checker.check_turn(turn)))
    })
}
