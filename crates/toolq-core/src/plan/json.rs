//! A plan as one line of JSON, the form that programs read. The order of the keys is part of the form.

use std::time::Duration;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::plan::rendered;
use crate::plan::schedule::Estimate;
use crate::plan::turn_plan::{Batch, Plan, Planned, Rejected};
use crate::types::{
    Accepted, AgentInvocation, Detail, Draft, HttpInvocation, Invocation, JsonDraft, MaskedJson,
    MaskedText,
};
use redact::Mask;

/// The line, without the break behind it. Variables of the environment stand in it by name.
pub fn plan_json(plan: &Plan<'_>, mask: &Mask) -> String {
    let line = PlanLine {
        turn: plan.turn,
        batches: Batches(&plan.batches, mask),
        rejected: RejectedCalls(&plan.rejected, mask),
        estimate: EstimateLine::of(&plan.estimate),
    };
    // Strings and numbers: there is nothing in it that JSON has no form for.
    serde_json::to_string(&line).unwrap_or_default()
}

#[derive(serde::Serialize)]
struct PlanLine<'a> {
    turn: usize,
    batches: Batches<'a>,
    rejected: RejectedCalls<'a>,
    estimate: EstimateLine,
}

#[derive(serde::Serialize)]
struct BatchLine<'a> {
    parallel: bool,
    calls: Calls<'a>,
}

#[derive(serde::Serialize)]
struct CallLine<'a> {
    position: usize,
    tool_use_id: MaskedText<'a>,
    tool_name: MaskedText<'a>,
    concurrency_safe: bool,
    decided_by: String,
    timeout_ms: u64,
    /// None where the tool has no estimate.
    estimate_ms: Option<u64>,
    /// None where the tool has no backing.
    runs: Option<Runs<'a>>,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Runs<'a> {
    Command(Vec<MaskedText<'a>>),
    Http(Request<'a>),
    Agent(AgentRun<'a>),
    Builtin(&'a str),
}

#[derive(serde::Serialize)]
struct Request<'a> {
    method: &'static str,
    url: Text<'a>,
    #[serde(skip_serializing_if = "Pairs::is_empty")]
    query: Pairs<'a>,
    #[serde(skip_serializing_if = "Pairs::is_empty")]
    headers: Pairs<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Json<'a>>,
}

/// What an agent is made of. Its key and what it is told are not shown.
#[derive(serde::Serialize)]
struct AgentRun<'a> {
    model: String,
    endpoint: String,
    tools: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<Text<'a>>,
}

impl<'a> AgentRun<'a> {
    fn of(accepted: &'a Accepted, task: &'a AgentInvocation, mask: &'a Mask) -> Option<Self> {
        let agent = rendered::agent(accepted)?;
        let shown = |template| {
            mask.text(&rendered::fixed(template).to_string())
                .into_owned()
        };
        Some(Self {
            model: shown(&agent.model),
            endpoint: shown(&agent.endpoint),
            tools: &agent.tools,
            prompt: task.prompt.as_ref().map(|prompt| Text(prompt, mask)),
        })
    }
}

#[derive(serde::Serialize)]
struct RejectedLine<'a> {
    position: usize,
    tool_use_id: MaskedText<'a>,
    tool_name: MaskedText<'a>,
    reason: &'static str,
    details: Vec<Detail>,
}

#[derive(serde::Serialize)]
struct EstimateLine {
    serial_ms: u64,
    planned_ms: u64,
    unknown: usize,
}

impl<'a> CallLine<'a> {
    fn of(planned: &Planned<'a>, mask: &'a Mask) -> Self {
        let Planned { call, accepted, .. } = *planned;
        let runs = accepted
            .invocation
            .as_ref()
            .and_then(|invocation| match invocation {
                Invocation::Command(command) => {
                    let argv = command.argv.iter();
                    let argv = argv.map(|argument| MaskedText(argument, mask));
                    Some(Runs::Command(argv.collect()))
                }
                Invocation::Http(request) => {
                    let method = rendered::method(accepted);
                    Some(Runs::Http(Request::of(method, request, mask)))
                }
                Invocation::Agent(task) => AgentRun::of(accepted, task, mask).map(Runs::Agent),
                Invocation::Completion(_) => Some(Runs::Builtin(&call.name)),
            });
        Self {
            position: call.position,
            tool_use_id: MaskedText(&call.id, mask),
            tool_name: MaskedText(&call.name, mask),
            concurrency_safe: accepted.safe,
            decided_by: accepted.decided_by.to_string(),
            timeout_ms: ms(accepted.tool.timeout.after),
            estimate_ms: accepted.tool.estimate.map(ms),
            runs,
        }
    }
}

impl<'a> Request<'a> {
    fn of(method: &'static str, request: &'a HttpInvocation, mask: &'a Mask) -> Self {
        Self {
            method,
            url: Text(&request.url, mask),
            query: Pairs(&request.query, mask),
            headers: Pairs(&request.headers, mask),
            body: request.body.as_ref().map(|body| Json(body, mask)),
        }
    }
}

impl<'a> RejectedLine<'a> {
    fn of(rejected: &Rejected<'a>, mask: &'a Mask) -> Self {
        let details = rejected.details();
        let details = details.iter().map(|detail| Detail {
            path: mask.text(&detail.path).into_owned(),
            message: mask.text(&detail.message).into_owned(),
        });
        Self {
            position: rejected.call.position,
            tool_use_id: MaskedText(&rejected.call.id, mask),
            tool_name: MaskedText(&rejected.call.name, mask),
            reason: rejected.reason(),
            details: details.collect(),
        }
    }
}

impl EstimateLine {
    fn of(estimate: &Estimate) -> Self {
        Self {
            serial_ms: ms(estimate.serial),
            planned_ms: ms(estimate.planned),
            unknown: estimate.unknown,
        }
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The body of a request as JSON; none where nothing is sent.
pub(crate) fn body(request: &HttpInvocation, mask: &Mask) -> Option<String> {
    let body = Json(request.body.as_ref()?, mask);
    Some(serde_json::to_string(&body).unwrap_or_default())
}

/// Each batch becomes a line's part only while it is written, and so do the calls: a turn may have many.
struct Batches<'a>(&'a [Batch<'a>], &'a Mask);

impl Serialize for Batches<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|batch| BatchLine {
            parallel: batch.is_parallel(),
            calls: Calls(&batch.calls, self.1),
        }))
    }
}

struct Calls<'a>(&'a [Planned<'a>], &'a Mask);

impl Serialize for Calls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let calls = self.0.iter();
        serializer.collect_seq(calls.map(|planned| CallLine::of(planned, self.1)))
    }
}

struct RejectedCalls<'a>(&'a [Rejected<'a>], &'a Mask);

impl Serialize for RejectedCalls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rejected = self.0.iter();
        serializer.collect_seq(rejected.map(|rejected| RejectedLine::of(rejected, self.1)))
    }
}

/// A text whose variables stay names.
struct Text<'a>(&'a Draft, &'a Mask);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        MaskedText(&self.0.to_string(), self.1).serialize(serializer)
    }
}

/// Names and texts, as an object.
struct Pairs<'a>(&'a [(String, Draft)], &'a Mask);

impl Pairs<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pairs = self.0.iter();
        serializer.collect_map(pairs.map(|(name, value)| (name, Text(value, self.1))))
    }
}

/// A body, as the tree that it is.
struct Json<'a>(&'a JsonDraft, &'a Mask);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(draft, mask) = *self;
        match draft {
            JsonDraft::Raw(raw) => MaskedJson(raw, mask).serialize(serializer),
            JsonDraft::Text(text) => Text(text, mask).serialize(serializer),
            JsonDraft::Array(items) => {
                let mut array = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    array.serialize_element(&Json(item, mask))?;
                }
                array.end()
            }
            JsonDraft::Object(members) => {
                let mut object = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    object.serialize_entry(name, &Json(value, mask))?;
                }
                object.end()
            }
        }
    }
}
