//! Runs calls of tools that the process serves which embeds the engine.

use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;

use crate::attempt::{Attempt, AttemptResult, canceled};
use crate::output::OutputCollector;
use crate::reach::Reach;
use crate::settings::{EngineSettings, HostCall, HostReply};
use toolq_core::json::JsonText;
use toolq_core::types::{
    CallEnding, CallOutput, CallRef, Effect, Outcome, OutputKind, TransportCause, TransportError,
    TransportPhase,
};

/// Runs calls of host tools.
#[derive(Debug)]
pub(crate) struct HostRunner(pub(crate) Arc<EngineSettings>);

impl HostRunner {
    /// Runs one attempt. What the host does isn't stopped by its end: the future of the call is dropped, and the host does
    /// what it can.
    pub(crate) async fn run(&self, attempt: Attempt) -> AttemptResult {
        // There are none if tools are only planned or checked.
        let Some(tools) = &self.0.host_tools else {
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
        let mut output = OutputCollector::for_response(tool, None, &self.0, output_counter);
        match reply {
            HostReply::Done {
                content,
                is_error: true,
            } => {
                output.push(text_of_host_content(content.as_deref()).as_bytes());
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

// Reads the content of a host's result.

/// Adds the content of a result to the output, as the tool's `output` declares it.
///
/// # Errors
/// What is wrong with it. Values aren't quoted.
fn push_content(
    content: Option<&RawValue>,
    output: OutputCollector,
) -> Result<OutputCollector, String> {
    let content = content.map(JsonText::from).filter(|json| !json.is_null());
    let text = content.map_or(Some("".into()), JsonText::to_text);
    let is_list = content.is_some_and(|json| json.elements().is_some());
    let (mut output, document) = match (output.kind(), text, content) {
        (OutputKind::Text | OutputKind::Json, Some(text), _) => (output, text.into_owned()),
        (OutputKind::Content, Some(text), _) => {
            let blocks = json!([{"type": "text", "text": text}]);
            (output, blocks.to_string())
        }
        (OutputKind::Json, None, Some(json)) => (output, json.get().to_owned()),
        (OutputKind::Content, None, Some(json)) if is_list => (output, json.get().to_owned()),
        (OutputKind::Text, None, Some(json)) if is_list => {
            (output.into_content(), json.get().to_owned())
        }
        (_, _, json) => {
            let kind = json.map_or("missing".to_owned(), |json| json.kind().to_string());
            return Err(format!(
                "the content of its result is {kind}; it must be a text or a list of content blocks"
            ));
        }
    };
    output.push(document.as_bytes());
    Ok(output)
}

/// Returns the content of a result as text: the texts of its blocks, or its JSON if it has no texts.
fn text_of_host_content(content: Option<&RawValue>) -> String {
    let Some(content) = content.map(JsonText::from).filter(|json| !json.is_null()) else {
        return String::new();
    };
    if let Some(text) = content.to_text() {
        return text.into_owned();
    }
    let blocks = content.elements().unwrap_or_default();
    let texts = blocks.iter().filter_map(|block| {
        let text = block.object()?.get("text")?.to_text()?;
        Some(text.into_owned())
    });
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() {
        content.get().to_owned()
    } else {
        texts.join("\n")
    }
}
