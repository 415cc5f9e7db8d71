//! Agents that call tools and other agents, under every limit: no call waits forever, and no limit is exceeded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::agent_scope::AgentScope;
use crate::attempt::{Attempt, AttemptFuture, AttemptResult, AttemptRunner};
use crate::engine::Engine;
use crate::tests::scripted_runner::{
    EventRecorder, call, engine_settings, paused_runtime, success_outcome, tool,
};
use toolq_core::types::{
    AgentBacking, AgentBudget, AgentInvocation, Api, CheckedCall, Invocation, Template, Tool,
    TurnArrival, TurnOrigin, Verdict,
};

/// A call to make. An agent makes the calls of its turns.
#[derive(Debug, Clone)]
struct PlannedCall {
    safe: bool,
    /// The turns of an agent. `None` for any other call.
    turns: Option<Vec<Vec<PlannedCall>>>,
}

fn any_turn(depth: u32) -> BoxedStrategy<Vec<PlannedCall>> {
    let turns = if depth == 0 {
        Just(None).boxed()
    } else {
        prop::option::of(prop::collection::vec(any_turn(depth - 1), 1..3)).boxed()
    };
    let call = (any::<bool>(), turns).prop_map(|(safe, turns)| PlannedCall { safe, turns });
    prop::collection::vec(call, 0..6).boxed()
}

/// How many calls of a kind run now, and the most that ever did.
#[derive(Debug, Default)]
struct ConcurrencyGauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl ConcurrencyGauge {
    fn enter(&self) {
        self.most
            .fetch_max(self.now.fetch_add(1, SeqCst) + 1, SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, SeqCst);
    }
}

/// Runs planned calls: an agent runs its turns one after another, and any other call takes a second.
struct PlannedRunner {
    plans: HashMap<String, PlannedCall>,
    tool: Tool,
    calls: ConcurrencyGauge,
    agents_by_depth: Mutex<HashMap<u32, Arc<ConcurrencyGauge>>>,
}

impl PlannedRunner {
    fn new(turn: &[PlannedCall], tool: &Tool) -> Self {
        let mut plans = HashMap::new();
        add_plans("", turn, &mut plans);
        Self {
            plans,
            tool: tool.clone(),
            calls: ConcurrencyGauge::default(),
            agents_by_depth: Mutex::default(),
        }
    }

    async fn run_planned(&self, attempt: Attempt) -> AttemptResult {
        let id = attempt.job.call.id.clone();
        let Some(turns) = &self.plans[&id].turns else {
            self.calls.enter();
            sleep(Duration::from_secs(1)).await;
            self.calls.leave();
            return success_outcome().into();
        };
        let parent = attempt.parent_scope.as_deref();
        let scope = Arc::new(AgentScope::for_call(
            &self.tool,
            &agent_backing(),
            false,
            parent,
        ));
        let gauge = Arc::clone(
            self.agents_by_depth
                .lock()
                .unwrap()
                .entry(scope.depth)
                .or_default(),
        );
        gauge.enter();
        let handle = attempt.turn.unwrap();
        let tools = Arc::new(engine_settings(&[&self.tool], 1).tools.as_ref().clone());
        for (number, turn) in turns.iter().enumerate() {
            let (sender, arrivals) = mpsc::unbounded_channel();
            for checked in checked_calls(&format!("{id}.{number}"), turn, &self.tool) {
                sender.send(TurnArrival::Call(Box::new(checked))).unwrap();
            }
            drop(sender);
            let answers = handle.run_sub_turn(
                (number, TurnOrigin::default()),
                arrivals,
                Arc::clone(&tools),
                Arc::clone(&scope),
            );
            assert_eq!(answers.await.unwrap().answers.len(), turn.len());
        }
        gauge.leave();
        success_outcome().into()
    }
}

impl AttemptRunner for PlannedRunner {
    fn run(&self, attempt: Box<Attempt>) -> AttemptFuture<'_> {
        Box::pin(self.run_planned(*attempt))
    }
}

fn agent_backing() -> AgentBacking {
    AgentBacking {
        api: Api::Anthropic,
        endpoint: Template::default(),
        api_key: None,
        model: Template::default(),
        fallback_model: None,
        system: None,
        prompt: None,
        tools: Vec::new(),
        max_turns: 1,
        max_tokens: 1,
        cache: false,
        headers: Vec::new(),
        extra_body: serde_json::Map::new(),
        budget: AgentBudget::default(),
        max_depth: 10,
    }
}

fn add_plans(prefix: &str, turn: &[PlannedCall], plans: &mut HashMap<String, PlannedCall>) {
    for (position, planned) in turn.iter().enumerate() {
        let id = format!("{prefix}/{position}");
        for (number, turn) in planned.turns.iter().flatten().enumerate() {
            add_plans(&format!("{id}.{number}"), turn, plans);
        }
        plans.insert(id, planned.clone());
    }
}

fn checked_calls(prefix: &str, turn: &[PlannedCall], tool: &Tool) -> Vec<CheckedCall> {
    let calls = turn.iter().enumerate().map(|(position, planned)| {
        let mut checked = call(position, &format!("{prefix}/{position}"), tool);
        if let Verdict::Accepted(accepted) = &mut checked.verdict {
            accepted.safe = planned.safe;
            accepted.invocation = planned
                .turns
                .is_some()
                .then_some(Invocation::Agent(AgentInvocation { prompt: None }));
        }
        checked
    });
    calls.collect()
}

/// Runs a turn on a paused clock, and returns its runner. If calls waited for each other, only the time limit would be
/// left to wait for, and it would elapse at once.
fn run_planned_turn(turn: &[PlannedCall], jobs: usize) -> Arc<PlannedRunner> {
    let tool = tool("t");
    let runner = Arc::new(PlannedRunner::new(turn, &tool));
    let mut engine = Engine::with_runner(engine_settings(&[&tool], jobs), runner.clone());
    let (mut recorder, mut delivery) = (EventRecorder::default(), EventRecorder::default());
    paused_runtime().block_on(async {
        let calls = checked_calls("", turn, &tool);
        let run = engine.run_turn(0, calls, &mut recorder, &mut delivery);
        let day = Duration::from_hours(24);
        timeout(day, run)
            .await
            .expect("the calls wait for each other");
    });
    assert_eq!(delivery.lines_for("delivered").len(), turn.len());
    runner
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// An agent never takes the place of a call, or agents would wait for places that only they could free.
    #[test]
    fn no_agent_waits_for_its_own_tools(turn in any_turn(3), jobs in 1..4_usize) {
        let runner = run_planned_turn(&turn, jobs);
        prop_assert!(runner.calls.most.load(SeqCst) <= jobs);
        for (depth, gauge) in &*runner.agents_by_depth.lock().unwrap() {
            prop_assert!(gauge.most.load(SeqCst) <= jobs, "depth {}", depth);
        }
    }
}

/// As many agents work at once as may, and so do their calls.
#[test]
fn agents_and_their_calls_use_the_whole_limit() {
    let leaf = PlannedCall {
        safe: true,
        turns: None,
    };
    let agent = PlannedCall {
        safe: true,
        turns: Some(vec![vec![leaf.clone(), leaf]]),
    };
    let runner = run_planned_turn(&vec![agent; 20], 5);
    let agents = runner.agents_by_depth.lock().unwrap();
    assert_eq!(agents[&1].most.load(SeqCst), 5);
    assert_eq!(runner.calls.most.load(SeqCst), 5);
}
