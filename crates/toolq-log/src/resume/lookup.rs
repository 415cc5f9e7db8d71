//! Queries of a history: whether a call is the one that the log has in its place, what to do with it, and what its
//! result was.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use serde_json::value::RawValue;

use crate::call_log::CallState;
use crate::read::{Corruption, RecordReader};
use crate::records::{
    BlobError, CallContent, CallEndRecord, Record, ToolMeaning, recorded_text, sha256_hex,
};
use crate::resume::history::{CallPosition, TaskHistory};
use crate::resume::logged_call::{LineExtent, LoggedAnswer, LoggedCall};
use crate::resume::policy::{Executor, ResumeDecision, decide_on_resume};
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::text::{escape, truncate_to_columns};
use toolq_core::types::{
    AcceptedCall, Backing, Call, CheckedCall, Effect, Invocation, PriorAttempts, RestoredResult,
    ResultContent, ResumeState, Tool, ToolsConfig, Verdict,
};

/// Width of a call in a message, in columns.
const MAX_PREVIEW_CHARS: usize = 60;

/// The log has a different call in the place of a requested one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("turn {turn}, call {position}: the session log has {logged}, {requester} has {requested}")]
pub struct CallConflict {
    turn: usize,
    position: usize,
    /// `pay {"amount":5}`
    logged: String,
    requested: String,
    /// What requests it now: the input or an agent.
    requester: &'static str,
}

/// How a tool has changed since a task last called it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToolChange {
    name: String,
    kind: ToolChangeKind,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ToolChangeKind {
    /// These keys of tools.yaml mean something else.
    Changed(Vec<String>),
    /// tools.yaml no longer has the tool.
    Removed,
    /// An older toolq recorded its calls.
    Unknown,
}

impl fmt::Display for ToolChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.kind {
            ToolChangeKind::Changed(aspects) => write!(f, "{name} (its {})", aspects.join(", ")),
            ToolChangeKind::Removed => write!(f, "{name} (it is no longer declared)"),
            ToolChangeKind::Unknown => write!(
                f,
                "{name} (an older toolq logged it, so whether it has changed isn't known)"
            ),
        }
    }
}

/// Why content of the log can't be read again.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A record has changed since the log was opened.
    #[error("the session log {} can no longer be read: {corruption}", path.display())]
    Corrupt {
        /// The log.
        path: PathBuf,
        /// What is wrong now.
        corruption: Corruption,
    },
    /// A blob is missing or was changed.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The log has no result for a call that must not run.
    #[error("the session log has no result for a call of this input")]
    NoResult,
    /// There is no log to read.
    #[error("there is no session log")]
    NoLog,
    /// A result is neither a text nor a list of content blocks.
    #[error("the session log {} has a result that is neither text nor content blocks", .0.display())]
    InvalidAnswer(PathBuf),
}

impl RestoreError {
    /// Returns the path of the log that can't be read again.
    pub fn log_path(&self) -> Option<PathBuf> {
        match self {
            Self::Corrupt { path, .. } | Self::InvalidAnswer(path) => Some(path.clone()),
            Self::Blob(error) => Some(error.log_path()),
            Self::NoLog | Self::NoResult => None,
        }
    }
}

impl TaskHistory {
    /// Returns whether the log has a call in the place of `call`.
    pub fn contains(&self, call: &Call) -> bool {
        self.find_logged_call(call).is_some()
    }

    /// Returns whether the log has `call`.
    ///
    /// # Errors
    /// The log has another call in its place.
    pub fn check_call(&self, call: &Call, mask: &Mask) -> Result<bool, CallConflict> {
        match self.find_logged_call(call) {
            Some(logged_call) if is_same_call(logged_call, call, mask) => Ok(true),
            Some(logged_call) => Err(self.conflict_with(logged_call, call, mask)),
            None => Ok(false),
        }
    }

    /// Returns what this run should do with a call that has passed [`check_call`](Self::check_call).
    ///
    /// # Errors
    /// Its result can't be read.
    pub fn resume_state(&self, checked: &CheckedCall) -> Result<ResumeState, RestoreError> {
        let Some(logged_call) = self.find_logged_call(&checked.call) else {
            return Ok(ResumeState::NotStarted);
        };
        let attempts = || PriorAttempts {
            count: logged_call.log.attempts(),
            idempotency_key: logged_call.idempotency_key.as_deref().map(str::to_owned),
            has_nested_doubt: logged_call.log.is_agent_call()
                && self
                    .descendants(logged_call.record_id)
                    .any(|call| call.log.is_unsettled()),
        };
        Ok(match self.decide_call(logged_call, checked) {
            ResumeDecision::Run | ResumeDecision::Conflict => ResumeState::NotStarted,
            ResumeDecision::RunAgain => ResumeState::Started(attempts()),
            ResumeDecision::Probe => ResumeState::NeedsProbe(attempts()),
            ResumeDecision::InDoubt => ResumeState::InDoubt(attempts()),
            ResumeDecision::Restore => match &logged_call.answer {
                Some(answer) => ResumeState::Answered(self.restore_result(logged_call, answer)?),
                None => ResumeState::InDoubt(attempts()),
            },
        })
    }

    /// Returns the result of a call exactly as the log has it, even if the call was rejected.
    ///
    /// # Errors
    /// There is none, or it can't be read.
    pub fn logged_result(&self, call: &Call) -> Result<RestoredResult, RestoreError> {
        let logged_call = self.find_logged_call(call).ok_or(RestoreError::NoResult)?;
        if let Some(answer) = &logged_call.answer {
            return self.restore_result(logged_call, answer);
        }
        let extent = logged_call.last_rejection.ok_or(RestoreError::NoResult)?;
        let record = self.read_record(extent)?;
        let rejection: CallEndRecord<'_> = record
            .parse_metadata()
            .map_err(|_| RestoreError::InvalidAnswer(self.source_path()))?;
        let answer = LoggedAnswer {
            extent,
            status: rejection.status,
            is_error: rejection.is_error,
        };
        self.restore_result(logged_call, &answer)
    }

    /// Returns whether the log has `call` under the same id. Its tool and its input may differ.
    pub fn has_same_id(&self, call: &Call, mask: &Mask) -> bool {
        self.find_logged_call(call)
            .is_some_and(|logged_call| *logged_call.tool_use_id == *recorded_text(&call.id, mask))
    }

    /// Returns whether what happens to a call depends on the current tools rather than on the log.
    pub fn needs_current_tools(&self, checked: &CheckedCall) -> bool {
        let Some(logged_call) = self.find_logged_call(&checked.call) else {
            return true;
        };
        let is_rejected = matches!(checked.verdict, Verdict::Rejected(_));
        match self.decide_call(logged_call, checked) {
            ResumeDecision::Restore | ResumeDecision::InDoubt => false,
            ResumeDecision::Run | ResumeDecision::RunAgain | ResumeDecision::Probe => {
                !(is_rejected && logged_call.last_rejection.is_some())
            }
            ResumeDecision::Conflict => true,
        }
    }

    /// Returns whether the log leaves open what happens to a call: it has no result of its own, or an agent that works
    /// on it may resume after a doubt.
    pub fn is_undecided(&self, call: &Call) -> bool {
        self.find_logged_call(call)
            .is_none_or(|logged_call| match logged_call.log.state() {
                CallState::Ended | CallState::Done => false,
                CallState::InDoubt => logged_call.log.is_agent_call(),
                CallState::Requested
                | CallState::Started
                | CallState::Interrupted
                | CallState::NotDone => true,
            })
    }

    /// Returns the changed tools on which a call depends that still has to run: its own and, if an agent works on it,
    /// those of the agent. A tool that the task never called has nothing to be compared with.
    pub fn changes_affecting(
        &self,
        checked: &CheckedCall,
        tools: &ToolsConfig,
    ) -> BTreeSet<ToolChange> {
        let mut changes = BTreeSet::new();
        if self.needs_current_tools(checked) {
            let mut seen = BTreeSet::new();
            self.add_changes(&checked.call.name, tools, &mut seen, &mut changes);
        }
        changes
    }

    fn add_changes<'t>(
        &self,
        name: &'t str,
        tools: &'t ToolsConfig,
        seen: &mut BTreeSet<&'t str>,
        changes: &mut BTreeSet<ToolChange>,
    ) {
        if !seen.insert(name) {
            return;
        }
        let tool = tools.get(name).map(|tool| &**tool);
        changes.extend(self.tool_change(name, tool));
        if let Some(Backing::Agent(agent)) = tool.and_then(|tool| tool.backing.as_ref()) {
            for name in &agent.tools {
                self.add_changes(name, tools, seen, changes);
            }
        }
    }

    /// Returns how a tool has changed since the task last called it, or `None` if it means the same or wasn't called.
    fn tool_change(&self, name: &str, tool: Option<&Tool>) -> Option<ToolChange> {
        let logged = self.tool_meanings.get(name)?;
        let kind = match (tool, logged) {
            (None, _) => ToolChangeKind::Removed,
            (Some(_), None) => ToolChangeKind::Unknown,
            (Some(tool), Some(logged)) => {
                let mut aspects = logged.difference(&ToolMeaning::new(tool));
                // What its `describe` will print isn't known yet.
                aspects.retain(|aspect| !(tool.needs_describe() && aspect == "input_schema"));
                if aspects.is_empty() {
                    return None;
                }
                ToolChangeKind::Changed(aspects)
            }
        };
        let name = name.to_owned();
        Some(ToolChange { name, kind })
    }

    /// Returns whether the latest rejection of a call in the log has exactly this content.
    pub(crate) fn has_same_rejection(&self, position: CallPosition, json: &str) -> bool {
        let rejection = self
            .call_at(position)
            .and_then(|logged_call| logged_call.last_rejection);
        let logged_json = rejection.and_then(|extent| self.read_answer(extent).ok());
        logged_json.is_some_and(|logged_json| logged_json == json)
    }

    fn find_logged_call(&self, call: &Call) -> Option<&LoggedCall> {
        let parent = match &call.parent {
            Some(agent) => Some(self.find_call_record(agent)?),
            None => None,
        };
        let (turn, position) = (call.turn, call.position);
        self.call_at(CallPosition {
            parent,
            turn,
            position,
        })
    }

    fn decide_call(&self, logged_call: &LoggedCall, checked: &CheckedCall) -> ResumeDecision {
        let accepted = match &checked.verdict {
            Verdict::Accepted(accepted) => Some(&**accepted),
            Verdict::Rejected(_) => None,
        };
        let is_agent = accepted.is_some_and(|accepted| {
            logged_call.log.is_agent_call()
                && matches!(accepted.invocation, Some(Invocation::Agent(_)))
        });
        let executor = if !is_agent {
            let has_probe = accepted.is_some_and(|accepted| accepted.probe.is_some());
            Executor::Tool(max_effect(logged_call, accepted), has_probe)
        // An agent called by another agent resumes along with it, and gets to the call in doubt itself.
        } else if logged_call.log.state() == CallState::InDoubt
            && logged_call.parent.is_none()
            && self
                .descendants(logged_call.record_id)
                .any(|call| call.log.state() == CallState::InDoubt)
        {
            Executor::AgentInDoubt
        } else {
            Executor::Agent
        };
        decide_on_resume(Some(logged_call.log.state()), true, executor)
    }

    fn restore_result(
        &self,
        logged_call: &LoggedCall,
        answer: &LoggedAnswer,
    ) -> Result<RestoredResult, RestoreError> {
        let json = self.read_answer(answer.extent)?;
        let text = serde_json::from_str(&json).map(ResultContent::Text);
        let content = text.or_else(|_| serde_json::from_str(&json).map(ResultContent::Blocks));
        let record = logged_call
            .log
            .is_agent_call()
            .then(|| self.read_record(answer.extent));
        let record = record.transpose()?;
        let end = record
            .as_ref()
            .map(Record::parse_metadata::<CallEndRecord<'_>>);
        let agent = end.and_then(|end| end.ok()?.agent);
        Ok(RestoredResult {
            status: answer.status.clone(),
            is_error: answer.is_error,
            content: content.map_err(|_| RestoreError::InvalidAnswer(self.source_path()))?,
            agent_usage: agent.map(|agent| Box::new(agent.into())),
        })
    }

    /// Returns the result of a call as JSON, from the cache or from the file.
    fn read_answer(&self, extent: LineExtent) -> Result<Cow<'_, str>, RestoreError> {
        if let Some(json) = self.answer_cache.get(extent.offset) {
            return Ok(Cow::Borrowed(json));
        }
        let json: Box<str> = self.read_content(extent)?.into();
        Ok(Cow::Owned(json.into()))
    }

    pub(crate) fn read_content(&self, extent: LineExtent) -> Result<Box<RawValue>, RestoreError> {
        let record = self.read_record(extent)?;
        Ok(record.content.load(&self.source_path())?)
    }

    fn read_record(&self, extent: LineExtent) -> Result<Record<'static>, RestoreError> {
        let read_error = |corruption| RestoreError::Corrupt {
            path: self.source_path(),
            corruption,
        };
        let (_, file) = self.source.as_ref().ok_or(RestoreError::NoLog)?;
        RecordReader::read_at(file, extent.offset, extent.len).map_err(read_error)
    }

    fn source_path(&self) -> PathBuf {
        let path = self.source.as_ref().map(|(path, _)| path.clone());
        path.unwrap_or_default()
    }

    fn conflict_with(&self, logged_call: &LoggedCall, call: &Call, mask: &Mask) -> CallConflict {
        let logged = self.read_content(logged_call.call_extent).ok();
        let logged: Option<CallContent<'_>> = logged
            .as_ref()
            .and_then(|body| serde_json::from_str(body.get()).ok());
        let input = logged.as_ref().and_then(|content| content.input.as_ref());
        let requested = call.input.as_ref().ok().map(Input::text);
        let requested = requested.map(|text| mask.apply_to_json(text));
        CallConflict {
            turn: call.turn,
            position: call.position,
            requester: match call.parent {
                Some(_) => "the agent",
                None => "the input",
            },
            logged: preview_call(
                &logged_call.tool_name,
                input.map(|input| input.as_raw().get()),
            ),
            requested: preview_call(&mask.apply(&call.name), requested.as_deref()),
        }
    }
}

/// Compares tool and input of two calls in the same place. The id doesn't count, since recordings reuse ids.
fn is_same_call(logged_call: &LoggedCall, call: &Call, mask: &Mask) -> bool {
    let input = call.input.as_ref().ok();
    let digest = input.map(|input| sha256_hex(input.text().as_bytes()));
    *logged_call.tool_name == *recorded_text(&call.name, mask)
        && logged_call.input_sha256.as_deref() == digest.as_deref()
}

/// Returns the more severe of the tool's effect when the call was started and its effect now.
fn max_effect(logged_call: &LoggedCall, accepted: Option<&AcceptedCall>) -> Effect {
    let current = accepted.map(|accepted| accepted.tool.effect);
    let both = [logged_call.log.effect(), current].into_iter().flatten();
    both.max().unwrap_or(Effect::Write)
}

/// Formats a call for a message: `pay {"amount":5}`.
fn preview_call(tool: &str, input: Option<&str>) -> String {
    let text = format!("{tool} {}", input.unwrap_or("without input"));
    escape(&truncate_to_columns(&text, MAX_PREVIEW_CHARS)).into_owned()
}
