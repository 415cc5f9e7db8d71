//! Which server starts while the calls of a turn are still being checked.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::attempt::{Attempt, AttemptFuture, AttemptRunner, StartFuture};
use crate::control::{RunControl, Suspendable};
use crate::engine::Engine;
use crate::prior_calls::NoPriorCalls;
use crate::run_budget::BudgetLimits;
use crate::settings::EngineSettings;
use crate::tests::scripted_runner::{block_on, engine_settings, success_outcome};
use toolq_core::check::CallChecker;
use toolq_core::json::Input;
use toolq_core::tools_file::parse_tools_file;
use toolq_core::types::{
    AnswerForm, Call, HaltCause, ResponseEnding, ServerConfig, ToolsConfig, Turn, TurnOrigin,
};

const TOOLS: &str = "
version: 1
servers:
  local: {command: [server]}
  remote: {url: 'https://mcp.example/'}
tools:
  ask: {description: Asks., input_schema: {type: object}, mcp: {server: local}, effect: read}
  pay: {description: Pays., input_schema: {type: object}, mcp: {server: local}, approve: true}
  fetch: {description: Fetches., input_schema: {type: object}, mcp: {server: remote}}
  echo: {description: Echoes., input_schema: {type: object}, command: {argv: [echo]}}
";

/// Remembers the servers that it is to start.
#[derive(Default)]
struct StartRecorder(Mutex<Vec<String>>);

impl Suspendable for StartRecorder {}

impl AttemptRunner for StartRecorder {
    fn run(&self, _: Box<Attempt>) -> AttemptFuture<'_> {
        Box::pin(async { success_outcome().into() })
    }

    fn start_server<'r>(
        &'r self,
        server: &'r Arc<ServerConfig>,
        _: &'r RunControl,
    ) -> StartFuture<'r> {
        self.0.lock().unwrap().push(server.name.clone());
        Box::pin(async {})
    }
}

fn tools() -> Arc<ToolsConfig> {
    let loaded = parse_tools_file(TOOLS, Path::new("/work"), Path::new("/work"));
    Arc::new(loaded.tools.unwrap())
}

/// Returns a turn whose first call is of `first`, and all others of a tool without a server.
fn turn_of(first: &str) -> Turn {
    let call = |position: usize| Call {
        turn: 0,
        position,
        id: format!("c{position}"),
        name: if position == 0 { first } else { "echo" }.into(),
        input: Ok(Input::empty()),
        parent: None,
    };
    Turn {
        number: 0,
        calls: (0..9).map(call).collect(),
        answered_count: 0,
        answer_form: AnswerForm::Message,
        ending: ResponseEnding::Complete,
        started_positions: Vec::new(),
        in_doubt_positions: Vec::new(),
        origin: TurnOrigin::default(),
    }
}

/// Returns the servers that start while this turn is checked.
fn early_starts(turn: &Turn, budget_limits: BudgetLimits, halt: Option<HaltCause>) -> Vec<String> {
    let tools = tools();
    let settings = EngineSettings {
        tools: Arc::clone(&tools),
        budget_limits,
        ..engine_settings(&[], 1)
    };
    let runner = Arc::new(StartRecorder::default());
    let engine = Engine::with_runner(settings, Arc::clone(&runner) as Arc<dyn AttemptRunner>);
    if let Some(cause) = halt {
        engine.control().halt(cause);
    }
    block_on(async {
        let checker = CallChecker::new(tools);
        if let Some(start) = engine.start_first_server(turn, (&checker, &NoPriorCalls)) {
            start.await.unwrap();
        }
    });
    let started = runner.0.lock().unwrap();
    started.clone()
}

fn starts_of(turn: &Turn) -> Vec<String> {
    early_starts(turn, BudgetLimits::default(), None)
}

#[test]
fn the_server_of_the_first_call_starts_while_the_others_are_checked() {
    assert_eq!(starts_of(&turn_of("ask")), ["local"]);
}

#[test]
fn no_server_starts_early_for_a_call_that_has_no_program_or_may_not_run() {
    for first in ["pay", "fetch", "echo", "unknown"] {
        assert!(starts_of(&turn_of(first)).is_empty(), "{first}");
    }
    let no_calls = BudgetLimits {
        calls: Some(0),
        ..BudgetLimits::default()
    };
    assert!(early_starts(&turn_of("ask"), no_calls, None).is_empty());
    let halted = Some(HaltCause::Signal(15));
    assert!(early_starts(&turn_of("ask"), BudgetLimits::default(), halted).is_empty());
}

#[test]
fn no_server_starts_early_for_a_turn_that_other_calls_or_its_end_decide() {
    let mut repeated = turn_of("ask");
    repeated.calls[8].id = "c0".to_owned();
    let refused = Turn {
        ending: ResponseEnding::Refused,
        ..turn_of("ask")
    };
    let started = Turn {
        started_positions: vec![0],
        ..turn_of("ask")
    };
    let answered = Turn {
        answered_count: 1,
        ..turn_of("ask")
    };
    for turn in [repeated, refused, started, answered] {
        assert!(starts_of(&turn).is_empty());
    }
}
