//! Finds the calls and answers in what passes, and records them.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::output::StderrWriter;
use crate::session::{RunSession, RunSinks};
use toolq_core::answer::{AnswerWording, build_answer};
use toolq_core::json::Input;
use toolq_core::types::{
    AcceptedCall, CacheNote, Call, CallOutput, CallRef, CallRequest, CheckedCall, DoubtCause,
    Event, EventSink as _, Outcome, ResumeState, SafetySource, Tool, TransportCause,
    TransportError, TransportPhase, TurnOrigin, Verdict,
};
use toolq_engine::{EngineSettings, outcome_of_answer};
use toolq_mcp::{CallObserver, Frame, LineFramer, ObservedAnswer, ObservedCall};

/// The longest line that is searched for calls. A longer one passes, too.
const MAX_LINE_BYTES: usize = 64 << 20;

/// Records the calls of a connection, each in a turn of its own.
pub(crate) struct CallRecorder<'s> {
    sinks: &'s mut RunSinks,
    stderr: &'s StderrWriter,
    settings: EngineSettings,
    observer: CallObserver,
    from_client: LineFramer,
    from_server: LineFramer,
    /// The calls without an answer, by their number.
    open: HashMap<usize, RecordedCall>,
    begun: usize,
    has_failed: bool,
}

/// A call without an answer.
struct RecordedCall {
    call: Call,
    tool: Arc<Tool>,
    started: Instant,
}

impl<'s> CallRecorder<'s> {
    /// `settings` has the tool that represents all tools of the server.
    pub(crate) fn new(session: &'s mut RunSession<'_>, settings: EngineSettings) -> Self {
        Self {
            stderr: &session.context.stderr,
            sinks: &mut session.sinks,
            settings,
            observer: CallObserver::default(),
            from_client: LineFramer::new(MAX_LINE_BYTES),
            from_server: LineFramer::new(MAX_LINE_BYTES),
            open: HashMap::new(),
            begun: 0,
            has_failed: false,
        }
    }

    /// Takes bytes before they reach the server.
    pub(crate) fn take_client_bytes(&mut self, bytes: &[u8]) {
        let mut calls = Vec::new();
        let observer = &mut self.observer;
        let mut is_too_long = false;
        self.from_client.push(bytes, |frame| match frame {
            Frame::Line(line) => calls.extend(observer.take_client_line(line)),
            Frame::TooLong { .. } => is_too_long = true,
        });
        if is_too_long {
            self.warn("a message of the client is too long to be searched for calls");
        }
        for call in calls {
            self.begin_call(call);
        }
    }

    /// Takes bytes before they reach the client.
    pub(crate) fn take_server_bytes(&mut self, bytes: &[u8]) {
        let mut answers = Vec::new();
        let observer = &mut self.observer;
        let mut is_too_long = false;
        self.from_server.push(bytes, |frame| match frame {
            Frame::Line(line) => answers.extend(observer.take_server_line(line)),
            Frame::TooLong { .. } => is_too_long = true,
        });
        if is_too_long {
            self.warn("a message of the server is too long to be recorded");
        }
        for answer in answers {
            self.end_call(answer);
        }
    }

    /// Records that the calls without an answer won't get one.
    pub(crate) fn finish(mut self) {
        let mut unanswered: Vec<RecordedCall> = mem::take(&mut self.open).into_values().collect();
        unanswered.sort_by_key(|open| open.call.turn);
        for open in unanswered {
            let error = TransportError {
                phase: TransportPhase::Response,
                origin: "the MCP server".to_owned(),
                cause: TransportCause::Other,
                detail: "the connection ended before the answer".to_owned(),
            };
            let outcome = Outcome::InDoubt {
                cause: DoubtCause::ConnectionLost(Box::new(error)),
                output: CallOutput::default(),
            };
            self.record_end(&open, &outcome);
        }
    }

    fn begin_call(&mut self, observed: ObservedCall) {
        let arguments = observed.arguments.as_ref().map_or("{}", |json| json.get());
        let input = match Input::parse(arguments) {
            Ok(input) => input,
            Err(error) => {
                let name = &observed.name;
                return self.warn(&format!("a call of {name} isn't recorded: {error}"));
            }
        };
        let Some(pattern) = self.settings.tools.tools.first() else {
            return;
        };
        let tool = Arc::new(Tool {
            name: observed.name.clone(),
            ..(**pattern).clone()
        });
        let turn = self.begun;
        self.begun += 1;
        let call = Call {
            turn,
            position: 0,
            id: format!("call_{turn}"),
            name: observed.name.into(),
            input: Ok(input.clone()),
            parent: None,
        };
        let origin = TurnOrigin {
            input: Some("-".to_owned()),
            message_id: Some(observed.request_id.trim_matches('"').to_owned()),
            model: None,
            traceparent: None,
        };
        self.record_start(&call, &origin, &accept_unchecked(&tool, input));
        let open = RecordedCall {
            call,
            tool,
            started: Instant::now(),
        };
        // Of two calls with the same id, only the last one can get an answer.
        self.open.insert(observed.number, open);
    }

    fn record_start(&mut self, call: &Call, origin: &TurnOrigin, accepted: &AcceptedCall) {
        let turn = call.turn;
        let key = format!("{}-{turn}", self.settings.task_id);
        let reference = CallRef::new(call, None);
        let checked = CheckedCall {
            call: call.clone(),
            verdict: Verdict::Accepted(Box::new(accepted.clone())),
            resume_state: ResumeState::NotStarted,
        };
        self.emit(&[
            Event::TurnStarted {
                turn,
                parent: None,
                origin,
            },
            Event::Queued {
                checked: &checked,
                batch: Some(0),
            },
            Event::Started {
                call: &reference,
                accepted,
                attempt: 1,
                idempotency_key: &key,
                waited: None,
            },
        ]);
    }

    fn end_call(&mut self, answer: ObservedAnswer) {
        if let Some(open) = self.open.remove(&answer.number) {
            let outcome = outcome_of_answer(answer.result, &open.tool, &self.settings);
            self.record_end(&open, &outcome);
        }
    }

    fn record_end(&mut self, open: &RecordedCall, outcome: &Outcome) {
        let RecordedCall {
            call,
            tool,
            started,
        } = open;
        let wording = AnswerWording {
            messages: &tool.messages,
            mask: &self.settings.mask,
            output_reader: None,
        };
        let answer = build_answer(call, Some(tool), outcome, wording);
        let duration: Duration = started.elapsed();
        let finished = Event::Finished {
            call: &CallRef::new(call, None),
            request: CallRequest {
                call,
                accepted: None,
            },
            outcome,
            answer: &answer,
            duration,
            attempts: 1,
            agent_usage: None,
            cache: &CacheNote::default(),
        };
        self.emit(&[finished, Event::QueueDrained { turn: call.turn }]);
    }

    /// Records events. A log that can't be written must not break the connection; the exit code tells in the end.
    fn emit(&mut self, events: &[Event<'_>]) {
        if let Err(error) = self.sinks.emit(events)
            && !mem::replace(&mut self.has_failed, true)
        {
            self.warn(&format!("no more calls are recorded: {error}"));
        }
    }

    fn warn(&self, text: &str) {
        self.stderr.print_warning(text);
    }
}

/// Accepts a call as it is, since the server checks it.
fn accept_unchecked(tool: &Arc<Tool>, input: Input) -> AcceptedCall {
    AcceptedCall {
        tool: Arc::clone(tool),
        input,
        before_coercion: None,
        is_coerced: false,
        safe: false,
        safety_source: SafetySource::Default,
        locks: None,
        needs_approval: false,
        invocation: None,
        probe: None,
    }
}
