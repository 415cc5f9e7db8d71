//! The ordered queue of calls, their attempts, and one folder per backing.
//!
//! Checked calls come in, events go to a [`Sink`] and answers to a [`Delivery`], in call order. One dispatcher per turn
//! owns all state; attempts are tasks that send it messages. Nothing here knows logs, screens or dialects.

mod gate;
mod slots;
mod pauses;
mod stopwatch;
mod control;
mod budget;
mod digest;
mod queue;
mod retry;
mod attempt;
mod desk;
mod running;
mod process;
mod private;
mod turn;
mod capture;
mod output;
mod exit;
mod limits;
mod spawn;
#[cfg_attr(not(target_os = "linux"), path = "supervisor/absent.rs")]
mod supervisor;
mod command;
mod http;
mod agent;
mod asking;
#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use crate::model::{Answer, Arrival, CallRef, Checked, Environment, Mask, Memory, Sink, Tools};

use agent::Around;
pub use asking::Asking;
use attempt::{Backings, Runner};
use budget::Spending;
pub use http::Resolver;
use pauses::Pauses;
pub use private::make_private_folder;
pub use process::Process;
use slots::Slots;
pub use supervisor::supervise;
use turn::Turn;
use turn::ears::Ears;

pub use budget::Budgets;
pub use control::Control;
use control::Suspend;

/// What an engine is made of.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// The tools whose calls will come.
    pub tools: Arc<Tools>,
    /// Calls running at once.
    pub jobs: NonZeroUsize,
    /// The folder for outputs that were cut, made when the first one is; none keeps none.
    pub outputs: Option<PathBuf>,
    /// This program, which stands between the engine and what it starts ([`supervise`]), so that nobody is left behind.
    /// Where there is none, the engine starts commands itself, and what leaves their group outlives them.
    pub supervisor: Option<PathBuf>,
    /// What children inherit from, and where `${NAME}` is read.
    pub environment: Arc<Environment>,
    /// Where the hosts of requests are looked up.
    pub resolver: Resolver,
    /// Hides secrets in everything that leaves the engine.
    pub mask: Arc<Mask>,
    /// What makes idempotency keys those of this task and of no other: the same when it is resumed.
    pub task: String,
    /// What all turns together may use.
    pub budgets: Budgets,
    /// What earlier runs made of the work of agents, where this one resumes them.
    pub memory: Option<Arc<dyn Memory>>,
}

/// Who is handed the answers.
pub trait Delivery: Send {
    /// Takes the next answer in call order, as soon as it and all before it are there. Events that follow from it, such
    /// as its being written, go to `sink`.
    fn deliver(&mut self, call: &CallRef, answer: Answer, sink: &mut dyn Sink);

    /// Every call of the turn was delivered. What is told here comes before the turn's last event.
    fn drained(&mut self, sink: &mut dyn Sink);
}

/// Runs turns, one after another.
pub struct Engine {
    state: EngineState,
}

/// What an engine keeps from turn to turn.
struct EngineState {
    settings: EngineSettings,
    runner: Arc<dyn Runner>,
    pauses: Pauses,
    spending: Spending,
    control: Control,
    slots: Slots,
    /// The agent whose turns it runs.
    around: Option<Arc<Around>>,
}

impl EngineState {
    fn new(settings: EngineSettings, runner: Arc<dyn Runner>) -> Self {
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
    fn within(&self, tools: Arc<Tools>, around: Arc<Around>) -> Self {
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

impl Engine {
    /// An engine that has run nothing yet. Nothing is opened or started before the first call needs it.
    pub fn new(settings: EngineSettings) -> Self {
        let runner = Arc::new(Backings::new(&settings));
        Self::with_runner(settings, runner)
    }

    fn with_runner(settings: EngineSettings, runner: Arc<dyn Runner>) -> Self {
        Self {
            state: EngineState::new(settings, runner),
        }
    }

    /// Ends and stops what this engine runs.
    pub fn control(&self) -> Control {
        self.state.control.clone()
    }

    /// Ends who started its commands, and waits for them. Where nobody asks for it, that happens when the last part of the
    /// engine is dropped, and a control or a task of the runtime may be one.
    pub fn close(self) {
        self.state.runner.close();
    }

    /// Runs a turn whose calls are all known, and returns when every one of them was delivered.
    ///
    /// Dropping the future ends whatever it runs.
    pub async fn turn(
        &mut self,
        number: usize,
        calls: Vec<Checked>,
        sink: &mut dyn Sink,
        delivery: &mut dyn Delivery,
    ) {
        let (feed, arriving) = mpsc::unbounded_channel();
        for call in calls {
            // The receiver lives until the turn is served, so that no call gets lost here.
            let _ = feed.send(Arrival::Call(Box::new(call)));
        }
        drop(feed);
        self.fed_turn(number, arriving, sink, delivery).await;
    }

    /// Runs a turn that is still arriving: each call may start when it is there. The turn ends when the sender of
    /// `arriving` is dropped and every call was delivered.
    pub async fn fed_turn(
        &mut self,
        number: usize,
        arriving: mpsc::UnboundedReceiver<Arrival>,
        sink: &mut dyn Sink,
        delivery: &mut dyn Delivery,
    ) {
        let sink = Mutex::new(sink);
        Turn::new(&mut self.state, number, Ears(&sink), delivery)
            .serve(arriving)
            .await;
    }
}
