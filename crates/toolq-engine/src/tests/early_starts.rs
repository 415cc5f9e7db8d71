//! Which server starts before the other calls of a turn are checked.

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
use toolq_core::types::{Call, HaltCause, ServerConfig, ToolsConfig};

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
        Box::pin(async {
            // Such a start takes a moment.
            tokio::task::yield_now().await;
            self.0.lock().unwrap().push(server.name.clone());
        })
    }
}

fn tools() -> Arc<ToolsConfig> {
    let loaded = parse_tools_file(TOOLS, Path::new("/work"), Path::new("/work"));
    Arc::new(loaded.tools.unwrap())
}

fn call_of(tool: &str) -> Call {
    Call {
        turn: 0,
        position: 0,
        id: "c0".to_owned(),
        name: tool.into(),
        input: Ok(Input::empty()),
        parent: None,
    }
}

/// Returns the servers that start before a turn is checked that begins with a call of `tool`.
fn early_starts(tool: &str, budget_limits: BudgetLimits, halt: Option<HaltCause>) -> Vec<String> {
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
        engine
            .start_first_server(call_of(tool), (&checker, &NoPriorCalls))
            .await;
    });
    let started = runner.0.lock().unwrap();
    started.clone()
}

fn starts_of(tool: &str) -> Vec<String> {
    early_starts(tool, BudgetLimits::default(), None)
}

#[test]
fn the_server_of_the_first_call_starts_before_the_others_are_checked() {
    assert_eq!(starts_of("ask"), ["local"]);
}

#[test]
fn no_server_starts_early_for_a_call_that_has_no_program_or_may_not_run() {
    for first in ["pay", "fetch", "echo", "unknown"] {
        assert!(starts_of(first).is_empty(), "{first}");
    }
    let no_calls = BudgetLimits {
        calls: Some(0),
        ..BudgetLimits::default()
    };
    assert!(early_starts("ask", no_calls, None).is_empty());
    let halted = Some(HaltCause::Signal(15));
    assert!(early_starts("ask", BudgetLimits::default(), halted).is_empty());
}
