//! The dispatcher of one turn: it alone knows what waits, runs and is answered, and it alone tells events.
//!
//! Calls and news come in, one at a time; each is followed to its end before the next. A call goes through `arrive`,
//! `start`, `news` and `finish`, in this order; `halt` ends them all.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use tokio::sync::mpsc::{self, error::TryRecvError};

use crate::dispatcher::attempt_tasks::Running;
use crate::dispatcher::halt::halting;
use crate::dispatcher::shared_sink::Ears;
use crate::dispatcher::sub_turns::Inner;
use crate::scheduler::{Gate, Queue};
use crate::settings::Delivery;
use crate::state::EngineState;
use toolq_core::plan::Partition;
use toolq_core::types::{Arrival, CallRef, Doubt, Event, Halt, NotExecuted, Sink as _};

/// What came in a turn.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub(crate) calls: u64,
    /// Those that may not run.
    pub(crate) rejected: u64,
    /// The first of those in doubt, by position.
    pub(crate) doubt: Option<(usize, Doubt)>,
}

/// The state of a turn that is being served.
pub(crate) struct Turn<'e> {
    pub(crate) number: usize,
    pub(crate) engine: &'e mut EngineState,
    pub(crate) sink: Ears<'e>,
    pub(crate) delivery: &'e mut dyn Delivery,
    /// The call of the agent whose turn it is.
    within: Option<Arc<CallRef>>,
    /// The turns of the agents that work on calls of this one.
    pub(crate) inner: Inner<'e>,
    pub(crate) partition: Partition,
    pub(crate) queue: Queue,
    pub(crate) gate: Gate,
    /// The next call may run as soon as there is a place for it.
    pub(crate) starved: bool,
    pub(crate) tally: Tally,
    pub(crate) running: Running,
    /// How many batches have started.
    pub(crate) batches: usize,
    /// Batches in which a call failed in an earlier run, and its tool, where that cancels the others.
    pub(crate) cancelled: HashMap<usize, String>,
    /// The failed call, or the answer, that ended the turn.
    pub(crate) stopped_by: Option<NotExecuted>,
    /// Why nothing more starts of what arrives, if that was said.
    pub(crate) over: Option<NotExecuted>,
    /// A call that writes has ended, and its result may be forgotten by a loss of power.
    pub(crate) unsettled: bool,
    /// What ended the run, once that was heeded here.
    pub(crate) halted: Option<Halt>,
}

impl<'e> Turn<'e> {
    pub(crate) fn new(
        engine: &'e mut EngineState,
        number: usize,
        sink: Ears<'e>,
        delivery: &'e mut dyn Delivery,
    ) -> Self {
        Self {
            number,
            engine,
            sink,
            delivery,
            within: None,
            inner: Inner::default(),
            partition: Partition::default(),
            queue: Queue::default(),
            gate: Gate::default(),
            starved: false,
            tally: Tally::default(),
            running: Running::new(),
            batches: 0,
            cancelled: HashMap::new(),
            stopped_by: None,
            over: None,
            unsettled: false,
            halted: None,
        }
    }

    /// The same as the turn of the agent that works on this call.
    pub(crate) fn within(self, call: Arc<CallRef>) -> Self {
        Self {
            within: Some(call),
            ..self
        }
    }

    /// Serves calls until no more can come and all are delivered.
    pub(crate) async fn serve(mut self, mut calls: mpsc::UnboundedReceiver<Arrival>) -> Tally {
        let within = self.within.clone();
        self.tell(&Event::TurnStarted {
            turn: self.number,
            within: within.as_ref(),
        });
        self.engine.spending.begin(self.engine.control.now());
        loop {
            self.heed();
            // All that is there is queued before anything starts: what is known at the start holds from the start.
            let open = self.take_in(&mut calls);
            self.start();
            self.settle();
            if !open && self.queue.is_empty() {
                break;
            }
            tokio::select! {
                arrival = calls.recv(), if open => arrival.into_iter().for_each(|arrival| self.arrive(arrival)),
                news = self.running.next() => self.hear(news),
                (call, served) = self.inner.next() => self.served(call, served),
                () = self.engine.slots.freed(), if self.starved => {}
                () = halting(self.engine), if self.halted.is_none() => {}
            }
        }
        self.delivery.drained(&mut self.sink);
        if self.within.is_none() {
            self.tell(&Event::QueueDrained { turn: self.number });
        }
        self.tally
    }

    /// Takes in all that is there. Says whether more can come.
    fn take_in(&mut self, calls: &mut mpsc::UnboundedReceiver<Arrival>) -> bool {
        loop {
            match calls.try_recv() {
                Ok(arrival) => self.arrive(arrival),
                Err(error) => return error == TryRecvError::Empty,
            }
        }
    }

    /// What can't be repeated is remembered before anything is waited for. Not at once when it ends: the start of what
    /// follows it has to be remembered as well, and one sync does for both.
    fn settle(&mut self) {
        if mem::take(&mut self.unsettled) {
            // A log that can't promise it refuses the next start.
            let _ = self.sink.settle();
        }
    }

    /// Tells an event that nothing depends on: only a refused start holds a call back, and a sink that can't go on
    /// knows it itself.
    pub(crate) fn tell(&mut self, event: &Event<'_>) {
        let _ = self.sink.tell(std::slice::from_ref(event));
    }
}
