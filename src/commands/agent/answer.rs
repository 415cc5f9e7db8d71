//! The answer of an agent on its way to stdout.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::args::ToAnswer;
use crate::commands::agent::transcript::Story;
use crate::output::Failure;
use crate::output::stdout;
use toolq_core::json::pretty;
use toolq_core::types::{Answer, CallRef, Content, Sink, Tokens, Tools, usd};
use toolq_engine::Delivery;

/// The answer.
#[derive(Default)]
pub(crate) struct Given(Option<Answer>);

impl Given {
    /// Whether there is none, or one that says that the agent failed.
    pub(crate) fn is_error(&self) -> bool {
        self.0.as_ref().is_none_or(|answer| answer.is_error)
    }

    /// Why the agent failed, where it says so.
    pub(crate) fn error(&self) -> Option<String> {
        let answer = self.0.as_ref().filter(|answer| answer.is_error);
        answer.map(text)
    }
}

impl Delivery for Given {
    fn deliver(&mut self, _: &CallRef, answer: Answer, sink: &mut dyn Sink) {
        // What the log refuses it says itself at the end.
        let _ = sink.settle();
        self.0 = Some(answer);
    }

    fn drained(&mut self, _: &mut dyn Sink) {}
}

fn text(answer: &Answer) -> String {
    match &answer.content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => {
            let blocks: Vec<&str> = blocks.iter().map(|block| block.get()).collect();
            format!("[{}]", blocks.join(","))
        }
    }
}

/// `--to json`.
#[derive(Serialize)]
struct Report<'a> {
    text: String,
    is_error: bool,
    status: &'a str,
    /// Whether the text is an answer, and not what there was when the agent failed or its turns were used up.
    done: bool,
    agent_name: &'a str,
    turns_used: u64,
    /// None where an API did not count them.
    tokens_used: Option<u64>,
    tool_calls_made: u64,
    corrections: u64,
    /// By model, with what the agents used that it called.
    usage: &'a BTreeMap<String, Tokens>,
    /// None where a price is not known.
    estimated_cost_usd: Option<Box<RawValue>>,
    duration_ms: u64,
}

/// Prints the answer, or the conversation that led to it.
///
/// # Errors
/// Stdout takes no more.
pub(crate) fn print(
    story: &Story,
    given: &Given,
    to: ToAnswer,
    tools: &Tools,
) -> Result<(), Failure> {
    let Some(answer) = &given.0 else {
        return Ok(());
    };
    match to {
        ToAnswer::Text if answer.is_error => Ok(()),
        ToAnswer::Text => Ok(stdout::line(&text(answer))?),
        ToAnswer::Messages => json(&story.conversation),
        ToAnswer::Json => json(&Report {
            text: text(answer),
            is_error: answer.is_error,
            status: story.status,
            done: !answer.is_error && !story.used.unfinished,
            agent_name: &story.used.agent_name,
            turns_used: story.used.turns,
            tokens_used: story.used.tokens(),
            tool_calls_made: story.used.calls,
            corrections: story.used.corrections,
            usage: &story.total,
            estimated_cost_usd: cost(story, tools),
            duration_ms: story.duration_ms,
        }),
    }
}

fn json(value: &impl Serialize) -> Result<(), Failure> {
    // Texts, numbers and JSON: there is nothing in it that JSON has no form for.
    let compact = serde_json::to_string(value).unwrap_or_default();
    let line = if stdout::is_terminal() {
        pretty(&compact)
    } else {
        compact
    };
    Ok(stdout::line(&line)?)
}

/// What all of it cost, as a JSON number.
fn cost(story: &Story, tools: &Tools) -> Option<Box<RawValue>> {
    let parts = story
        .total
        .iter()
        .map(|(model, usage)| tools.prices.cost(model, usage));
    let sum = parts.sum::<Option<u128>>()?;
    RawValue::from_string(usd(sum)).ok()
}
