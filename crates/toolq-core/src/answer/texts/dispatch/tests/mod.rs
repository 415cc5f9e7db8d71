//! Every text that a model reads, as it reads it.

mod halted;
mod http;
mod limits;
mod program;
mod rejected;
mod truncation;

use std::time::Duration;

use serde_json::json;

use crate::answer::texts::dispatch::answer;
use crate::json::Input;
use crate::testing::{template, tool_with_schema};
use crate::types::{
    Backing, Budget, Call, Captured, CommandBacking, Content, Detail, Doubt, Effect, Ending, Halt,
    Leftovers, Limit, Limits, MessageKey, NotExecuted, Outcome, OutputKind, Reason, Rejection,
    SpawnFault, Stdin, Tool, Transport, TransportPhase,
};
use redact::Mask;

fn call(name: &str) -> Call {
    Call {
        turn: 0,
        position: 0,
        id: "toolu_1".to_owned(),
        name: name.to_owned(),
        input: Ok(Input::empty()),
        within: None,
    }
}

fn read() -> Tool {
    Tool {
        effect: Effect::Read,
        ..tool_with_schema("search", json!(true))
    }
}

fn text_of(tool: Option<&Tool>, outcome: &Outcome) -> String {
    let name = tool.map_or("serch", |tool| &tool.name);
    let words = tool.map(|tool| tool.messages.clone()).unwrap_or_default();
    let answer = answer(
        &call(name),
        tool,
        outcome,
        &words,
        &Mask::new(["s3cr3t-value"]),
    );
    assert_eq!(answer.is_error, outcome.is_error());
    match answer.content {
        Content::Text(text) => text,
        Content::Blocks(blocks) => blocks
            .iter()
            .map(|block| block.get().to_owned() + "\n")
            .collect(),
    }
}

/// The texts of several outcomes of a tool that reads, with lines between.
fn texts(outcomes: &[Outcome]) -> String {
    let texts: Vec<String> = outcomes
        .iter()
        .map(|outcome| text_of(Some(&read()), outcome))
        .collect();
    texts.join("\n---\n")
}

fn failed(ending: Ending, output: &str, stderr: &str) -> Outcome {
    Outcome::Failed {
        output: output.to_owned(),
        stderr: stderr.to_owned(),
        captured: Captured::default(),
        ending,
    }
}

fn rejected(reason: Reason, details: &[(&str, &str)]) -> Outcome {
    let detail = |(path, message): &(&str, &str)| Detail {
        path: (*path).to_owned(),
        message: (*message).to_owned(),
    };
    Outcome::Rejected(Rejection {
        reason,
        details: details.iter().map(detail).collect(),
    })
}

fn transport(phase: TransportPhase, detail: &str) -> Outcome {
    Outcome::Transport(Transport {
        phase,
        origin: "http://127.0.0.1:8080".to_owned(),
        detail: detail.to_owned(),
    })
}
