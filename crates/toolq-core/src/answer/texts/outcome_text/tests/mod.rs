//! Every text that a model reads, verbatim.

mod halted;
mod http;
mod limits;
mod program;
mod rejected;
mod truncation;

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::answer::texts::outcome_text::{AnswerWording, build_answer};
use crate::json::Input;
use crate::testing::{sample_template, tool_with_schema};
use crate::tools_file::parse_tools_file;
use crate::types::{
    Backing, BudgetLimit, Call, CallAnswer, CallEnding, CallKind, CallOutput, CaptureStats,
    CommandBacking, CommandLimits, DoubtCause, Effect, HaltCause, Leftovers, LimitKind, MessageKey,
    NotExecutedCause, Outcome, OutputKind, ProblemDetail, Rejection, RejectionReason,
    ResultContent, SpawnError, StderrUse, StdinSource, Tool, TransportCause, TransportError,
    TransportPhase,
};
use redact::Mask;

fn call(name: &str) -> Call {
    Call {
        turn: 0,
        position: 0,
        id: "toolu_1".to_owned(),
        name: name.into(),
        input: Ok(Input::empty()),
        parent: None,
        has_number_id: false,
        kind: CallKind::Function,
    }
}

fn read_tool() -> Tool {
    Tool {
        effect: Effect::Read,
        ..tool_with_schema("search", json!(true))
    }
}

fn answer(tool: Option<&Tool>, outcome: &Outcome) -> CallAnswer {
    let name = tool.map_or("serch", |tool| &tool.name);
    let words = tool.map(|tool| tool.messages.clone()).unwrap_or_default();
    build_answer(
        &call(name),
        tool,
        outcome,
        AnswerWording {
            messages: &words,
            mask: &Mask::new(["s3cr3t-value"]),
            output_reader: None,
        },
    )
}

fn answer_text(tool: Option<&Tool>, outcome: &Outcome) -> String {
    let answer = answer(tool, outcome);
    assert_eq!(answer.is_error, outcome.is_error());
    match answer.content {
        ResultContent::Text(text) => text,
        ResultContent::Blocks(blocks) => blocks
            .iter()
            .map(|block| block.get().to_owned() + "\n")
            .collect(),
    }
}

/// Renders several outcomes of a `read` tool, with separators between them.
fn answer_texts(outcomes: &[Outcome]) -> String {
    let texts: Vec<String> = outcomes
        .iter()
        .map(|outcome| answer_text(Some(&read_tool()), outcome))
        .collect();
    texts.join("\n---\n")
}

fn failed(ending: CallEnding, output: &str, stderr: &str) -> Outcome {
    Outcome::Failed {
        output: CallOutput {
            text: output.to_owned(),
            stderr: stderr.to_owned(),
            ..CallOutput::default()
        },
        ending,
    }
}

fn rejected(reason: RejectionReason, details: &[(&str, &str)]) -> Outcome {
    let detail = |(path, message): &(&str, &str)| ProblemDetail::new(*path, *message);
    Outcome::Rejected(Rejection {
        reason,
        details: details.iter().map(detail).collect(),
    })
}

fn transport(phase: TransportPhase, detail: &str) -> Outcome {
    unreachable(phase, TransportCause::Other, detail)
}

fn unreachable(phase: TransportPhase, cause: TransportCause, detail: &str) -> Outcome {
    Outcome::TransportFailed(TransportError {
        phase,
        origin: "http://127.0.0.1:8080".to_owned(),
        cause,
        detail: detail.to_owned(),
    })
}
