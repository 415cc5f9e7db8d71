//! A runner that ends attempts when the test says so, and a witness of what is told. No process, no time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::{mpsc, oneshot};

use crate::attempt::{Attempt, End, Runner, Work, Written};
use crate::control::Suspend;
use crate::engine::Engine;
use crate::http::Resolver;
use crate::run_budget::Budgets;
use crate::settings::{Delivery, EngineSettings};
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::os::Environment;
use toolq_core::types::{
    Accepted, Answer, Call, CallRef, Captured, Checked, Compare, Content, DecidedBy, Effect,
    Ending, Event, OnFailure, Outcome, OutputKind, Past, Reason, Refused, Rejection, Retry, Safety,
    Sink, Status, Timeout, Tool, Tools, Verdict,
};

/// Attempts that wait for the test, by the id of their call.
pub(super) struct Remote(mpsc::UnboundedSender<(String, oneshot::Sender<Outcome>)>);

pub(crate) type Attempts = mpsc::UnboundedReceiver<(String, oneshot::Sender<Outcome>)>;

impl Suspend for Remote {}

impl Runner for Remote {
    fn run(&self, attempt: Attempt) -> Work<'_> {
        let id = attempt.job.call.id.clone();
        assert!(attempt.job.call.name != "panics", "as it was told to");
        let (end, ended) = oneshot::channel();
        self.0.send((id, end)).unwrap();
        let deaf = attempt.job.call.name == "deaf";
        Box::pin(async move {
            tokio::select! {
                Ok(outcome) = ended => outcome.into(),
                Ok(()) = attempt.cancel, if !deaf => End::midway(Written::default()),
                () = std::future::pending() => unreachable!(),
            }
        })
    }
}

/// What was told and delivered, one word list a line.
#[derive(Default, Clone)]
pub(crate) struct Witness {
    pub(super) told: Arc<Mutex<Vec<String>>>,
    pub(super) refuses: Option<&'static str>,
}

impl Witness {
    fn note(&self, line: String) {
        self.told.lock().unwrap().push(line);
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }

    /// The lines about what `word` says, without it.
    pub(super) fn of(&self, word: &str) -> Vec<String> {
        let lines = self.lines();
        let rests = lines
            .iter()
            .filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
        rests.map(str::to_owned).collect()
    }
}

impl Sink for Witness {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        let together: Vec<String> = events.iter().map(line_of).collect();
        self.note(together.join(" + "));
        let refused = events.iter().any(|event| {
            matches!(event, Event::Started { call, .. } if Some(&*call.tool_use_id) == self.refuses)
        });
        if refused {
            Err(Refused("full".to_owned()))
        } else {
            Ok(())
        }
    }

    fn settle(&mut self) -> Result<(), Refused> {
        self.note("settled".to_owned());
        Ok(())
    }
}

impl Delivery for Witness {
    fn deliver(&mut self, call: &CallRef, _answer: Answer, _sink: &mut dyn Sink) {
        self.note(format!("delivered {}", call.tool_use_id));
    }

    fn drained(&mut self, _sink: &mut dyn Sink) {}
}

pub(super) fn line_of(event: &Event<'_>) -> String {
    match event {
        Event::TurnStarted { turn, .. } => format!("turn {turn}"),
        Event::Part { call, text } => format!("part {} {text}", call.tool_use_id),
        Event::Queued { checked, batch } => format!("queued {} {batch:?}", checked.call.id),
        Event::BatchStarted { batch, calls, .. } => {
            let ids: Vec<&str> = calls.iter().map(|call| &*call.tool_use_id).collect();
            format!("batch {batch} [{}]", ids.join(" "))
        }
        Event::Started { call, attempt, .. } => format!("started {} {attempt}", call.tool_use_id),
        Event::Status { call, .. } => format!("status {}", call.tool_use_id),
        Event::Describing { tool } => format!("describing {}", tool.name),
        Event::Described { tool, .. } => format!("described {}", tool.name),
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
        Event::AgentProgress { call, turn, .. } => format!("asks {} {turn}", call.tool_use_id),
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
        safety: Safety::Default,
        effect: Effect::Read,
        timeout: Timeout {
            after: second,
            grace: second,
            slow: None,
            total: None,
        },
        estimate: None,
        paths: Vec::new(),
        status: Status::default(),
        backing: None,
        probe: None,
        output: OutputKind::Text,
        max_output: 1 << 16,
        max_saved: 0,
        retry: Retry {
            times: 0,
            on: Vec::new(),
            backoff: Duration::ZERO,
            max_backoff: second,
        },
        on_failure: OnFailure::Continue,
        pause_after_failures: None,
        coerce: false,
        compare: Compare::Json,
        ignore: Vec::new(),
        messages: BTreeMap::new(),
    }
}

/// A call of turn 0, safe where its id is lower case.
pub(crate) fn call(position: usize, id: &str, tool: &Tool) -> Checked {
    let input = Input::empty();
    Checked {
        call: Call {
            turn: 0,
            position,
            id: id.to_owned(),
            name: tool.name.clone(),
            input: Ok(input.clone()),
            within: None,
        },
        verdict: Verdict::Accepted(Box::new(Accepted {
            tool: Arc::new(tool.clone()),
            input,
            before_coercion: None,
            safe: id.starts_with(|c: char| c.is_lowercase()),
            decided_by: DecidedBy::Declared,
            invocation: None,
            probe: None,
        })),
        past: Past::None,
    }
}

pub(crate) fn rejected(position: usize, id: &str, tool: &Tool) -> Checked {
    let rejection = Rejection {
        reason: Reason::InvalidInput,
        details: Vec::new(),
    };
    Checked {
        verdict: Verdict::Rejected(rejection),
        ..call(position, id, tool)
    }
}

pub(crate) fn calls(ids: &str, tool: &Tool) -> Vec<Checked> {
    let ids = ids.split_whitespace().enumerate();
    ids.map(|(position, id)| call(position, id, tool)).collect()
}

pub(crate) fn good() -> Outcome {
    Outcome::Succeeded {
        content: Content::Text(String::new()),
        captured: Captured::default(),
        ending: Ending::Exit(0),
    }
}

pub(crate) fn bad() -> Outcome {
    Outcome::Failed {
        output: String::new(),
        stderr: String::new(),
        captured: Captured::default(),
        ending: Ending::Exit(1),
    }
}

pub(crate) fn engine(tools: &[&Tool], jobs: usize) -> (Engine, Attempts) {
    budgeted(tools, jobs, Budgets::default())
}

pub(crate) fn budgeted(tools: &[&Tool], jobs: usize, budgets: Budgets) -> (Engine, Attempts) {
    let (send, attempts) = mpsc::unbounded_channel();
    let settings = EngineSettings {
        tools: Arc::new(Tools {
            tools: tools.iter().map(|tool| Arc::new((*tool).clone())).collect(),
            concurrency: jobs.try_into().unwrap(),
            root: PathBuf::new(),
            dir: PathBuf::new(),
            secrets: Vec::new(),
            messages: BTreeMap::default(),
            prices: toolq_core::types::Prices::default(),
            digest: String::new(),
        }),
        jobs: jobs.try_into().unwrap(),
        outputs: None,
        supervisor: None,
        environment: Arc::new(Environment::default()),
        resolver: Resolver::system(),
        mask: Arc::new(Mask::default()),
        task: "task".to_owned(),
        budgets,
        memory: None,
    };
    (
        Engine::with_runner(settings, Arc::new(Remote(send))),
        attempts,
    )
}

/// Runs a turn; `script` names attempts in the order in which they end, `!` before those that fail. Each is waited for.
pub(crate) fn run(
    engine: &mut (Engine, Attempts),
    calls: Vec<Checked>,
    script: &str,
    witness: &mut Witness,
) {
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let (engine, attempts) = engine;
    let mut delivery = witness.clone();
    runtime.block_on(async {
        tokio::join!(
            engine.turn(0, calls, witness, &mut delivery),
            act(attempts, script)
        );
    });
}

pub(crate) async fn act(attempts: &mut Attempts, script: &str) {
    let mut waiting = BTreeMap::new();
    for step in script.split_whitespace() {
        let id = step.trim_start_matches('!');
        while !waiting.contains_key(id) {
            let (id, end) = attempts.recv().await.unwrap();
            waiting.insert(id, end);
        }
        let outcome = if id == step { good() } else { bad() };
        waiting.remove(id).unwrap().send(outcome).unwrap();
    }
}

/// Waits until `id` has started, does `then`, and lets all that follows from it happen before `id` ends.
pub(crate) async fn act_when_started(attempts: &mut Attempts, id: &str, then: impl FnOnce()) {
    let (started, end) = attempts.recv().await.unwrap();
    assert_eq!(started, id);
    then();
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
    end.send(good()).unwrap();
}

pub(crate) fn witness(tools: &[&Tool], jobs: usize, calls: Vec<Checked>, script: &str) -> Witness {
    let mut witness = Witness::default();
    run(&mut engine(tools, jobs), calls, script, &mut witness);
    witness
}
