//! Hands calls to the host, and turns its replies into outcomes.

use std::path::PathBuf;
use std::sync::Arc;

use crate::attempt::{Attempt, AttemptResult, canceled};
use crate::host::content::{push_content, text_of};
use crate::host::{HostCall, HostReply, HostTools};
use crate::output::OutputCollector;
use crate::reach::Reach;
use crate::settings::EngineSettings;
use redact::Mask;
use toolq_core::types::{
    CallEnding, CallOutput, CallRef, Effect, Outcome, TransportCause, TransportError,
    TransportPhase,
};

/// Runs calls of host tools.
#[derive(Debug)]
pub(crate) struct HostRunner {
    /// `None` if the tools are only planned or checked.
    tools: Option<Arc<dyn HostTools>>,
    mask: Arc<Mask>,
    outputs: Option<PathBuf>,
}

impl HostRunner {
    pub(crate) fn new(settings: &EngineSettings) -> Self {
        Self {
            tools: settings.host_tools.clone(),
            mask: Arc::clone(&settings.mask),
            outputs: settings.output_dir.clone(),
        }
    }

    /// Runs one attempt. What the host does isn't stopped by its end: the future of the call is dropped, and the host does
    /// what it can.
    pub(crate) async fn run(&self, attempt: Attempt) -> AttemptResult {
        let Some(tools) = &self.tools else {
            return Outcome::NoBacking.into();
        };
        let Attempt {
            job,
            number,
            idempotency_key,
            timeout: limit,
            cancel,
            output_counter,
            control,
            ..
        } = attempt;
        let tool = &job.accepted.tool;
        let call = HostCall {
            call: CallRef::new(&job.call, None),
            effect: tool.effect,
            input: job.accepted.input.clone(),
            attempt: number,
            idempotency_key,
            timeout: limit.duration,
        };
        let reply = tokio::select! {
            // A result that has come counts.
            biased;
            reply = tools.run(&call) => reply,
            () = canceled(cancel, &control) => return AttemptResult::Canceled {
                partial_output: CallOutput::default(),
                // A function can't be ended from outside, so it may still be running.
                reach: Reach::of_request(tool.effect, true),
            },
            () = control.sleep(limit.duration) => {
                return Reach::outcome_of_timeout(tool.effect, limit.configured, CallOutput::default()).into();
            }
        };
        let mut output =
            OutputCollector::for_response(tool, self.outputs.as_ref(), &self.mask, None)
                .with_counter(output_counter);
        match reply {
            HostReply::Done {
                content,
                is_error: true,
            } => {
                output.push(text_of(content.as_deref()).as_bytes());
                let ending = CallEnding::ServerError;
                let output = output.into_output(String::new());
                Outcome::Failed { output, ending }.into()
            }
            HostReply::Done {
                content,
                is_error: false,
            } => match push_content(content.as_deref(), output) {
                Ok(output) => output
                    .into_outcome(CallEnding::Answered, String::new)
                    .into(),
                Err(problem) => bad_output(problem).into(),
            },
            HostReply::Lost { was_sent, why } => lost_outcome(was_sent, why, tool.effect).into(),
        }
    }
}

fn bad_output(problem: String) -> Outcome {
    Outcome::BadOutput {
        problem,
        output: CallOutput::default(),
        ending: CallEnding::Answered,
    }
}

fn lost_outcome(was_sent: bool, why: String, effect: Effect) -> Outcome {
    let error = TransportError {
        phase: if was_sent {
            TransportPhase::Response
        } else {
            TransportPhase::Connect
        },
        origin: "the host process".to_owned(),
        cause: TransportCause::Other,
        detail: why,
    };
    Reach::outcome_of_loss(effect, error, CallOutput::default)
}
