//! Programs that serve a tool besides its calls.

use toolq_core::types::{
    ApprovalPolicy, Backing, CommandBacking, Effect, OnFailure, OutputKind, SafetyPolicy,
    StartLimits, StatusTemplates, Tool,
};

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
        rule_settings: Vec::new(),
        max_output,
        max_saved: 0,
        on_failure: OnFailure::Continue,
        pause_after_failures: None,
        ..tool.clone()
    }
}
