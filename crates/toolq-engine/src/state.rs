use crate::agent::Around;
use crate::attempt::Runner;
use crate::control::{Control, Suspend};
use crate::run_budget::Spending;
use crate::scheduler::{Pauses, Slots};
use crate::settings::EngineSettings;
use std::sync::Arc;
use toolq_core::types::Tools;

/// What an engine keeps from turn to turn.
pub(crate) struct EngineState {
    pub(crate) settings: EngineSettings,
    pub(crate) runner: Arc<dyn Runner>,
    pub(crate) pauses: Pauses,
    pub(crate) spending: Spending,
    pub(crate) control: Control,
    pub(crate) slots: Slots,
    /// The agent whose turns it runs.
    pub(crate) around: Option<Arc<Around>>,
}

impl EngineState {
    pub(crate) fn new(settings: EngineSettings, runner: Arc<dyn Runner>) -> Self {
        Self {
            pauses: Pauses::default(),
            spending: Spending::new(settings.budgets),
            control: Control::new(Arc::clone(&runner) as Arc<dyn Suspend>),
            slots: Slots::new(settings.jobs),
            around: None,
            settings,
            runner,
        }
    }

    /// The state for the turns of an agent that this engine runs: of its own are the tools and who is paused. Places,
    /// budgets and reins are shared.
    pub(crate) fn within(&self, tools: Arc<Tools>, around: Arc<Around>) -> Self {
        Self {
            settings: EngineSettings {
                tools,
                ..self.settings.clone()
            },
            runner: Arc::clone(&self.runner),
            pauses: Pauses::of_agent(),
            spending: self.spending.clone(),
            control: self.control.of_agent(),
            slots: self.slots.clone(),
            around: Some(around),
        }
    }
}
