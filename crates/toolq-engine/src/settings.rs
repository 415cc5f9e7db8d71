use crate::http::Resolver;
use crate::run_budget::Budgets;
use redact::Mask;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use toolq_core::os::Environment;
use toolq_core::types::{Answer, CallRef, Memory, Sink, Tools};

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
