//! The state that an engine keeps from turn to turn.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::agent_scope::AgentScope;
use crate::attempt::{AttemptRunner, CallJob};
use crate::backends::BackendRunner;
use crate::control::RunControl;
use crate::conversation_outputs::ConversationOutputs;
use crate::result_cache::SharedResultCache;
use crate::run_budget::RunBudget;
use crate::scheduler::{CallLimits, CircuitBreakers, SharedStartLimiter};
use crate::settings::EngineSettings;
use toolq_core::schedule::{AppliedLimits, applied_limits};
use toolq_core::types::{ToolsConfig, TurnOrigin};

/// The settings of an engine, its runner, and the limits and budgets that apply across turns. Clones share the limits and budgets.
#[derive(Clone)]
pub(crate) struct EngineState {
    pub(crate) settings: Arc<EngineSettings>,
    pub(crate) backends: Arc<BackendRunner>,
    /// What runs attempts: the backends, except in tests.
    pub(crate) runner: Arc<dyn AttemptRunner>,
    pub(crate) circuit_breakers: CircuitBreakers,
    pub(crate) run_budget: RunBudget,
    pub(crate) control: RunControl,
    pub(crate) call_limits: CallLimits,
    pub(crate) start_limiter: SharedStartLimiter,
    pub(crate) result_cache: SharedResultCache,
    /// The outputs of the conversation whose turns it runs. `None` if the conversation can't be identified, or no tool reads
    /// them.
    pub(crate) outputs: Option<ConversationOutputs>,
    /// The scope of the agent whose turns it runs. `None` for turns of the input.
    pub(crate) agent_scope: Option<Arc<AgentScope>>,
    /// Where the turns come from that it runs from now on.
    pub(crate) turn_origin: TurnOrigin,
}

impl EngineState {
    pub(crate) fn new(settings: EngineSettings) -> Self {
        let (settings, control) = (Arc::new(settings), RunControl::new());
        let backends = Arc::new(BackendRunner::new(&settings, &control));
        Self {
            circuit_breakers: CircuitBreakers::default(),
            run_budget: RunBudget::new(settings.budget_limits),
            control,
            call_limits: CallLimits::new(settings.jobs),
            start_limiter: SharedStartLimiter::default(),
            result_cache: SharedResultCache::default(),
            outputs: readable_outputs(&settings.tools),
            agent_scope: None,
            turn_origin: TurnOrigin::default(),
            settings,
            runner: Arc::clone(&backends) as Arc<dyn AttemptRunner>,
            backends,
        }
    }

    /// Returns the state for the turns of an agent that this engine runs. It has its own tools, circuit breakers and outputs,
    /// and a control that can halt this agent alone; permits, limits and budgets are shared.
    pub(crate) fn for_agent(&self, tools: Arc<ToolsConfig>, agent_scope: Arc<AgentScope>) -> Self {
        Self {
            outputs: readable_outputs(&tools),
            settings: self.settings.with_tools(tools),
            circuit_breakers: CircuitBreakers::for_agent(),
            control: self.control.for_scope(),
            agent_scope: Some(agent_scope),
            turn_origin: TurnOrigin::default(),
            ..self.clone()
        }
    }

    /// Returns the state for one of several turns that run at the same time, with these tools. It has a control that can halt this turn
    /// alone, and the outputs of its conversation; all else is shared.
    pub(crate) fn for_concurrent_turn(
        &self,
        tools: &Arc<ToolsConfig>,
        turn_origin: TurnOrigin,
        outputs: Option<ConversationOutputs>,
    ) -> Self {
        Self {
            settings: self.settings.with_tools(Arc::clone(tools)),
            control: self.control.for_scope(),
            outputs,
            agent_scope: None,
            turn_origin,
            ..self.clone()
        }
    }

    /// Returns what limits when this call starts.
    pub(crate) fn limits_of(&self, job: &CallJob) -> AppliedLimits {
        let depth = self.agent_depth();
        applied_limits(&job.accepted, depth)
    }

    /// Returns the limit that a call of the current turn counts toward.
    pub(crate) fn limit_for(&self, job: &CallJob) -> Arc<Semaphore> {
        if !job.is_agent() {
            return Arc::clone(&self.call_limits.calls);
        }
        self.call_limits.agents_at_depth(self.agent_depth())
    }

    /// Returns how many agents the turns of this engine are nested in.
    fn agent_depth(&self) -> usize {
        let scope = self.agent_scope.as_ref();
        scope.map_or(0, |scope| scope.depth as usize)
    }
}

/// Returns where the outputs of a new conversation are remembered, if one of these tools can read them.
fn readable_outputs(tools: &ToolsConfig) -> Option<ConversationOutputs> {
    tools
        .output_reader()
        .map(|_| ConversationOutputs::default())
}
