//! A runner whose attempts end when the test says so, and a recorder of the emitted events. It uses no processes and no
//! time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::slice;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::{self, Runtime};
use tokio::sync::{mpsc, oneshot};

use crate::attempt::{Attempt, AttemptFuture, AttemptResult, AttemptRunner};
use crate::engine::Engine;
use crate::run_budget::BudgetLimits;
use crate::settings::{AnswerDelivery, EngineSettings, Resolver};
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::os::Environment;
use toolq_core::types::{
    AcceptedCall, ApprovalPolicy, Call, CallAnswer, CallEnding, CallKind, CallOutput, CallRef,
    CallTimeouts, CaptureStats, CheckedCall, Compare, Effect, EmitError, Event, EventSink, OnDoubt,
    OnFailure, Outcome, OutputKind, Rejection, RejectionReason, ResultContent, RetryPolicy,
    SafetyPolicy, SafetySource, StartLimits, StatusTemplates, Tool, ToolsConfig, Verdict,
};

/// Attempts that wait for the test, by the id of their call.
pub(super) struct ScriptedRunner(
    pub(super) mpsc::UnboundedSender<(String, oneshot::Sender<Outcome>)>,
);

pub(crate) type PendingAttempts = mpsc::UnboundedReceiver<(String, oneshot::Sender<Outcome>)>;

impl AttemptRunner for ScriptedRunner {
    fn run(&self, attempt: Box<Attempt>) -> AttemptFuture<'_> {
        let id = attempt.job.call.id.clone();
        assert!(&*attempt.job.call.name != "panics", "panics on purpose");
        let (end, ended) = oneshot::channel();
        self.0.send((id, end)).unwrap();
        let ignores_cancel = &*attempt.job.call.name == "ignores_cancel";
        Box::pin(async move {
            tokio::select! {
                Ok(outcome) = ended => outcome.into(),
                Ok(()) = attempt.cancel, if !ignores_cancel => AttemptResult::canceled_while_running(CallOutput::default()),
                () = std::future::pending() => unreachable!(),
            }
        })
    }
}

/// Records events and deliveries, one line for each slice of events or delivery.
#[derive(Default, Clone)]
pub(crate) struct EventRecorder {
    pub(super) recorded: Arc<Mutex<Vec<String>>>,
    pub(super) refused_call: Option<&'static str>,
    /// The call whose approval is refused.
    pub(super) refused_decision: Option<&'static str>,
    /// The record of an event waits for the next one, so no answer may be delivered.
    pub(super) has_unwritten: Arc<AtomicBool>,
}

impl EventRecorder {
    fn record(&self, line: String) {
        self.recorded.lock().unwrap().push(line);
    }

    /// Returns whether an attempt of this call has started.
    pub(super) fn has_started(&self, id: &str) -> bool {
        let start = format!("started {id} ");
        self.lines().iter().any(|line| line.contains(&start))
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.recorded.lock().unwrap().clone()
    }

    /// Returns the lines of this event, without its name.
    pub(super) fn lines_for(&self, event_name: &str) -> Vec<String> {
        let lines = self.lines();
        let rests = lines
            .iter()
            .filter_map(|line| line.strip_prefix(event_name)?.strip_prefix(' '));
        rests.map(str::to_owned).collect()
    }
}

impl EventSink for EventRecorder {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        self.has_unwritten.store(false, SeqCst);
        if events.is_empty() {
            return Ok(());
        }
        let together: Vec<String> = events.iter().map(event_line).collect();
        self.record(together.join(" + "));
        let refused = events.iter().any(|event| match event {
            Event::Started { call, .. } => Some(&*call.tool_use_id) == self.refused_call,
            Event::ApprovalDecided { call, .. } => {
                Some(&*call.tool_use_id) == self.refused_decision
            }
            _ => false,
        });
        if refused {
            Err(EmitError("full".to_owned()))
        } else {
            Ok(())
        }
    }

    fn emit_later(&mut self, event: &Event<'_>) -> Result<(), EmitError> {
        let emitted = self.emit(slice::from_ref(event));
        self.has_unwritten.store(true, SeqCst);
        emitted
    }
}

impl AnswerDelivery for EventRecorder {
    fn deliver(&mut self, call: &Arc<CallRef>, _answer: CallAnswer, _sink: &mut dyn EventSink) {
        assert!(!self.has_unwritten.load(SeqCst), "a result is on no record");
        self.record(format!("delivered {}", call.tool_use_id));
    }
}

pub(super) fn event_line(event: &Event<'_>) -> String {
    match event {
        Event::TurnStarted { turn, .. } => format!("turn {turn}"),
        Event::PartialInput {
            call,
            input_so_far: text,
            ..
        } => format!("part {} {text}", call.tool_use_id),
        Event::Queued { checked, batch } => format!("queued {} {batch:?}", checked.call.id),
        Event::BatchStarted { batch, calls, .. } => {
            let ids: Vec<&str> = calls.iter().map(|call| &*call.tool_use_id).collect();
            format!("batch {batch} [{}]", ids.join(" "))
        }
        Event::Started { call, attempt, .. } => format!("started {} {attempt}", call.tool_use_id),
        Event::Throttled { call, wait } => {
            let (id, limit) = (&call.tool_use_id, wait.limit_name());
            format!("throttled {id} {limit} of {}", wait.subject)
        }
        Event::Status { call, .. } => format!("status {}", call.tool_use_id),
        Event::ApprovalRequested { call, .. } => format!("asked {}", call.tool_use_id),
        Event::ApprovalDecided { call, approval } => {
            format!("decided {} {}", call.tool_use_id, approval.decision.name())
        }
        Event::ApproverStopped { call, why } => format!("stopped {} {why}", call.tool_use_id),
        Event::Describing { tool } => format!("describing {}", tool.name),
        Event::Described { tool, .. } => format!("described {}", tool.name),
        Event::ListingTools { server } => format!("listing {}", server.server.name),
        Event::ToolsListed { server, .. } => format!("listed {}", server.server.name),
        Event::ServerStarted(start) => format!("server {} started", start.server),
        Event::ServerEnded(end) => format!("server {} ended", end.server),
        Event::ToolsChanged(change) => format!("tools changed {}", change.path),
        Event::Probing { call } => format!("probing {}", call.tool_use_id),
        Event::Probed { call, finding, .. } => {
            format!("probed {} {}", call.tool_use_id, finding.name())
        }
        Event::Retrying { call, .. } => format!("retrying {}", call.tool_use_id),
        Event::Finished {
            call,
            outcome,
            attempts,
            ..
        } => {
            format!(
                "finished {} {} {attempts}",
                call.tool_use_id,
                outcome.status()
            )
        }
        Event::ResultWritten { call } => format!("written {}", call.tool_use_id),
        Event::QueueDrained { .. } => "drained".to_owned(),
        Event::AgentStarted { call, .. } => format!("agent {}", call.tool_use_id),
        Event::AgentProgress { call, turn, .. } => format!("progress {} {turn}", call.tool_use_id),
        Event::AgentMessage { call, .. } => format!("message {}", call.tool_use_id),
        Event::AgentCompleted { call, .. } => format!("done {}", call.tool_use_id),
    }
}

pub(crate) fn tool(name: &str) -> Tool {
    let second = Duration::from_secs(1);
    Tool {
        name: name.to_owned(),
        description: String::new(),
        display_name: None,
        category: None,
        input_schema: serde_json::Value::Bool(true),
        describe: None,
        awaits_list: false,
        safety: SafetyPolicy::Default,
        effect: Effect::Read,
        approve: ApprovalPolicy::Never,
        locks: None,
        start_limits: StartLimits::default(),
        destructive: None,
        open_world: None,
        timeout: CallTimeouts {
            after: second,
            kill_grace: second,
            slow_after: None,
            total: None,
        },
        estimate: None,
        paths: Vec::new(),
        status: StatusTemplates::default(),
        backing: None,
        probe: None,
        output: OutputKind::Text,
        raw_output: false,
        empty_output: None,
        output_schema: None,
        max_output: 1 << 16,
        max_saved: 0,
        retry: RetryPolicy {
            max_retries: 0,
            conditions: Vec::new(),
            initial_backoff: Duration::ZERO,
            max_backoff: second,
        },
        on_failure: OnFailure::Continue,
        on_doubt: OnDoubt::default(),
        pause_after_failures: None,
        coerce: false,
        compare: Compare::Json,
        ignore: Vec::new(),
        normalize: Vec::new(),
        cache: None,
        once: None,
        messages: BTreeMap::new(),
    }
}

/// Returns a call of turn 0, which is concurrency-safe if its id is lowercase, and needs an approval if the id ends in `?`.
pub(crate) fn call(position: usize, id: &str, tool: &Tool) -> CheckedCall {
    let input = Input::empty();
    CheckedCall {
        call: Call {
            turn: 0,
            position,
            id: id.to_owned(),
            name: tool.name.as_str().into(),
            input: Ok(input.clone()),
            parent: None,
            has_number_id: false,
            kind: CallKind::Function,
        },
        verdict: Verdict::Accepted(Box::new(AcceptedCall {
            tool: Arc::new(tool.clone()),
            input,
            before_coercion: None,
            is_coerced: false,
            safe: id.starts_with(|c: char| c.is_lowercase()),
            safety_source: SafetySource::Declared,
            locks: None,
            needs_approval: id.ends_with('?'),
            invocation: None,
            probe: None,
        })),
        known: None,
        approval: None,
        unsettled: None,
        is_renewed: false,
        repeats: None,
    }
}

pub(crate) fn rejected_call(position: usize, id: &str, tool: &Tool) -> CheckedCall {
    let rejection = Rejection {
        reason: RejectionReason::InvalidInput,
        details: Vec::new(),
    };
    CheckedCall {
        verdict: Verdict::rejected(rejection),
        ..call(position, id, tool)
    }
}

pub(crate) fn calls(ids: &str, tool: &Tool) -> Vec<CheckedCall> {
    let ids = ids.split_whitespace().enumerate();
    ids.map(|(position, id)| call(position, id, tool)).collect()
}

pub(crate) fn success_outcome() -> Outcome {
    Outcome::Succeeded {
        content: ResultContent::Text(String::new()),
        captured: CaptureStats::default(),
        ending: CallEnding::ExitCode(0),
        for_clients: None,
    }
}

pub(crate) fn failure_outcome() -> Outcome {
    Outcome::Failed {
        output: CallOutput::default(),
        ending: CallEnding::ExitCode(1),
    }
}

pub(crate) fn engine(tools: &[&Tool], jobs: usize) -> (Engine, PendingAttempts) {
    engine_with_budgets(tools, jobs, BudgetLimits::default())
}

impl Engine {
    /// Creates an engine whose attempts are run by a test.
    pub(crate) fn with_runner(settings: EngineSettings, runner: Arc<dyn AttemptRunner>) -> Self {
        let mut engine = Self::new(settings);
        engine.state.runner = runner;
        engine
    }
}

pub(crate) fn engine_with_budgets(
    tools: &[&Tool],
    jobs: usize,
    budgets: BudgetLimits,
) -> (Engine, PendingAttempts) {
    let (send, attempts) = mpsc::unbounded_channel();
    let settings = EngineSettings {
        budget_limits: budgets,
        ..engine_settings(tools, jobs)
    };
    (
        Engine::with_runner(settings, Arc::new(ScriptedRunner(send))),
        attempts,
    )
}

/// Returns settings without budgets, a log or a supervisor.
pub(crate) fn engine_settings(tools: &[&Tool], jobs: usize) -> EngineSettings {
    EngineSettings {
        tools: Arc::new(ToolsConfig {
            servers: Vec::new(),
            unlocked: Vec::new(),
            tools: tools.iter().map(|tool| Arc::new((*tool).clone())).collect(),
            concurrency: jobs.try_into().unwrap(),
            root: PathBuf::new(),
            dir: PathBuf::new(),
            own_files: Vec::new(),
            env_file: toolq_core::types::EnvFile::default(),
            secrets: Vec::new(),
            messages: BTreeMap::default(),
            prices: toolq_core::types::PriceTable::default(),
            digest: String::new(),
        }),
        jobs: jobs.try_into().unwrap(),
        output_dir: None,
        log_files: Vec::new(),
        supervisor_program: None,
        held_file: None,
        environment: Arc::new(Environment::default()),
        resolver: Resolver::system(),
        mask: Arc::new(Mask::default()),
        task_id: "task".to_owned(),
        trace: None,
        approver: None,
        host_tools: None,
        budget_limits: BudgetLimits::default(),
        memory: None,
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = runtime::Builder::new_current_thread();
    builder.enable_time().build().unwrap().block_on(future)
}

/// Returns a runtime whose clock advances only when all tasks are idle.
pub(crate) fn paused_runtime() -> Runtime {
    let mut builder = runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

/// Runs a turn while the test does `meanwhile`.
pub(crate) fn run_turn_with(
    engine: &mut Engine,
    calls: Vec<CheckedCall>,
    recorder: &mut EventRecorder,
    meanwhile: impl Future,
) {
    let mut delivery = recorder.clone();
    block_on(async {
        tokio::join!(
            engine.run_turn(0, calls, recorder, &mut delivery),
            meanwhile
        );
    });
}

/// Runs a turn. `script` lists the attempts in the order in which they end, with a `!` before those that fail. Each is
/// awaited.
pub(crate) fn run_script(
    engine: &mut (Engine, PendingAttempts),
    calls: Vec<CheckedCall>,
    script: &str,
    recorder: &mut EventRecorder,
) {
    let (engine, attempts) = engine;
    run_turn_with(engine, calls, recorder, play_script(attempts, script));
}

pub(crate) async fn play_script(attempts: &mut PendingAttempts, script: &str) {
    let mut waiting = BTreeMap::new();
    for step in script.split_whitespace() {
        let id = step.trim_start_matches('!');
        while !waiting.contains_key(id) {
            let (id, end) = attempts.recv().await.unwrap();
            waiting.insert(id, end);
        }
        let outcome = if id == step {
            success_outcome()
        } else {
            failure_outcome()
        };
        waiting.remove(id).unwrap().send(outcome).unwrap();
    }
}

/// Waits until `id` has started, runs `action`, and lets all of its consequences happen before `id` ends.
pub(crate) async fn act_while_running(
    attempts: &mut PendingAttempts,
    id: &str,
    action: impl FnOnce(),
) {
    let (started, end) = attempts.recv().await.unwrap();
    assert_eq!(started, id);
    action();
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
    end.send(success_outcome()).unwrap();
}

pub(crate) fn run_and_record(
    tools: &[&Tool],
    jobs: usize,
    calls: Vec<CheckedCall>,
    script: &str,
) -> EventRecorder {
    let mut recorder = EventRecorder::default();
    run_script(&mut engine(tools, jobs), calls, script, &mut recorder);
    recorder
}
