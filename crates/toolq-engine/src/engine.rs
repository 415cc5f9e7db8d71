//! The ordered queue of calls, their attempts, and one folder per backing.
//!
//! Checked calls come in, events go to a [`Sink`] and answers to a [`Delivery`], in call order. One dispatcher per turn
//! owns all state; attempts are tasks that send it messages. Nothing here knows logs, screens or dialects.

use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use crate::attempt::Runner;
use crate::backends::Backings;
use crate::control::Control;
use crate::dispatcher::{Ears, Turn};
use crate::settings::{Delivery, EngineSettings};
use crate::state::EngineState;
use toolq_core::types::{Arrival, Checked, Sink};

/// Runs turns, one after another.
pub struct Engine {
    pub(crate) state: EngineState,
}

impl Engine {
    /// An engine that has run nothing yet. Nothing is opened or started before the first call needs it.
    pub fn new(settings: EngineSettings) -> Self {
        let runner = Arc::new(Backings::new(&settings));
        Self::with_runner(settings, runner)
    }

    pub(crate) fn with_runner(settings: EngineSettings, runner: Arc<dyn Runner>) -> Self {
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
