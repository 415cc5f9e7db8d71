//! Progress bars on a terminal.

mod call_rows;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indicatif::ProgressDrawTarget;

use crate::terminal::bar_options::BarOptions;
use crate::terminal::call_caption::{CallCaption, agent_turn_label, short_name};
use crate::terminal::labels::batch_label;
use crate::terminal::outcome_label;
use crate::terminal::repeat_command::RepeatCommand;
use crate::terminal::screen::ProgressScreen;
use crate::terminal::{RowKey, is_agent_batch};
use redact::Mask;
use toolq_core::types::{EmitError, Event, EventSink};

/// Maximum frame rate of the progress bars.
pub const MAX_FRAMES_PER_SECOND: u8 = 20;

/// Shows a row per running call, above a bar for all calls.
pub struct ProgressBars {
    screen: ProgressScreen,
    options: BarOptions,
    mask: Arc<Mask>,
    /// Repeats calls that failed, if that is possible.
    repeat: Option<RepeatCommand>,
    /// The captions of unfinished calls.
    calls: HashMap<RowKey, CallCaption>,
    /// The rows of calls whose input is still arriving, or which haven't started since, for example because they wait for
    /// their turn.
    arriving: HashSet<RowKey>,
}

impl ProgressBars {
    /// Creates bars that are drawn on `target`.
    pub fn new(target: ProgressDrawTarget, options: BarOptions, mask: Arc<Mask>) -> Self {
        Self {
            screen: ProgressScreen::new(target, options),
            options,
            mask,
            repeat: None,
            calls: HashMap::new(),
            arriving: HashSet::new(),
        }
    }

    /// Adds the command line that repeats a call to each failure.
    pub fn with_repeat_command(mut self, repeat: RepeatCommand) -> Self {
        self.repeat = Some(repeat);
        self
    }

    /// Returns the screen, for others that write to the terminal.
    pub fn screen(&self) -> ProgressScreen {
        self.screen.clone()
    }

    fn handle_event(&mut self, event: &Event<'_>) {
        match event {
            Event::PartialInput {
                call,
                tool,
                input_so_far,
            } => self.on_partial_input(call, *tool, input_so_far),
            Event::Queued { checked, .. } => self.on_queued(checked),
            Event::BatchStarted { calls, .. } if is_agent_batch(calls) => {}
            Event::BatchStarted { calls, .. } => {
                let label = batch_label(calls.len(), self.options.jobs);
                let label = label.map_or_else(String::new, |label| format!("now {label}"));
                self.screen.set_batch_label(label);
            }
            Event::Throttled { call, wait } => self.on_throttled(call, wait),
            Event::Started { call, .. } => self.on_started(call),
            Event::Status {
                call,
                message: tip,
                progress,
                ..
            } => self.on_status(call, *tip, *progress),
            Event::Retrying { call, .. } => {
                let label = outcome_label::retry_label(event);
                self.on_status(call, label.as_deref(), None);
            }
            Event::Finished {
                call,
                outcome,
                duration,
                ..
            } => self.on_finished(call, outcome, *duration),
            Event::AgentProgress {
                call,
                agent,
                turn,
                max_turns,
            } => {
                let turn = agent_turn_label(call, agent, *turn, *max_turns);
                self.on_agent_progress(call, &turn);
            }
            Event::Describing { .. }
            | Event::Described { .. }
            | Event::ListingTools { .. }
            | Event::ToolsListed { .. } => self.handle_definition_event(event),
            // These change no row.
            Event::TurnStarted { .. }
            | Event::AgentStarted { .. }
            | Event::AgentMessage { .. }
            | Event::AgentCompleted { .. }
            | Event::ResultWritten { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalDecided { .. }
            | Event::ApproverStopped { .. }
            | Event::Probing { .. }
            | Event::Probed { .. }
            | Event::ServerStarted(_)
            | Event::ServerEnded(_)
            | Event::ToolsChanged(_)
            | Event::LateResult { .. }
            | Event::QueueDrained { .. } => {}
        }
    }

    /// Handles the search for the definitions of tools, at their programs and servers.
    fn handle_definition_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Describing { tool } => {
                let key = RowKey::Describe(tool.name.clone());
                self.add_named_row(key, &tool.name, outcome_label::DESCRIBING_LABEL);
            }
            Event::Described { tool, .. } => {
                self.screen.remove_row(&RowKey::Describe(tool.name.clone()));
            }
            Event::ListingTools { server } => {
                let name = &server.server.name;
                let key = RowKey::Server(name.clone());
                self.add_named_row(key, name, outcome_label::LISTING_LABEL);
            }
            Event::ToolsListed { server, .. } => {
                let key = RowKey::Server(server.server.name.clone());
                self.screen.remove_row(&key);
            }
            _ => {}
        }
    }

    /// Adds a row about something that isn't a call, such as a server.
    fn add_named_row(&self, key: RowKey, name: &str, label: &str) {
        let name = short_name(name, &self.mask);
        self.screen
            .add_row(key, None, &format!("{name}: {label}"), None);
    }
}

impl EventSink for ProgressBars {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        for event in events {
            self.handle_event(event);
        }
        Ok(())
    }
}

impl Drop for ProgressBars {
    fn drop(&mut self) {
        self.screen.clear();
    }
}
