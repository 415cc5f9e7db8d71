//! Command backings: start a program with a call's arguments, feed its stdin, collect its output, and terminate its
//! whole process tree.

mod child;
mod pipes;
mod program_lookup;
mod runner;
mod sandbox;
mod spec;

use toolq_core::types::{
    ApprovalPolicy, Backing, CommandBacking, Effect, OnFailure, OutputKind, SafetyPolicy,
    StartLimits, StatusTemplates, Tool,
};

pub(crate) use child::{ChildExit, ChildProcess};
pub(crate) use pipes::ParentEnds;
pub use program_lookup::{find_interpreter, find_program};
pub(crate) use runner::CommandRunner;
pub use sandbox::{find_sandbox_gaps, hides_file};

/// Returns a tool whose only function is to run `command` for `tool`: with the timeouts of `tool`, and without anything
/// that is only about its calls. `max_output` is in bytes.
pub(crate) fn program_tool(tool: &Tool, command: CommandBacking, max_output: u64) -> Tool {
    Tool {
        backing: Some(Backing::Command(command)),
        describe: None,
        awaits_list: false,
        probe: None,
        safety: SafetyPolicy::Declared(true),
        effect: Effect::Read,
        approve: ApprovalPolicy::Never,
        locks: None,
        start_limits: StartLimits::default(),
        cache: None,
        paths: Vec::new(),
        status: StatusTemplates::default(),
        output: OutputKind::Text,
        raw_output: false,
        empty_output: None,
        output_schema: None,
        max_output,
        max_saved: 0,
        on_failure: OnFailure::Continue,
        pause_after_failures: None,
        ..tool.clone()
    }
}
