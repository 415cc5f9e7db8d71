//! The dispatcher of one turn: it alone knows what waits, runs and is answered, and it alone tells events.
//!
//! Calls and news come in, one at a time; each is followed to its end before the next. A call goes through `arrive`,
//! `start`, `news` and `finish`, in this order; `halt` ends them all.

mod arrive;
mod finish;
mod halt;
mod news;
mod probe;
mod recall;
mod start;

use std::collections::HashMap;

use tokio::sync::mpsc::{self, error::TryRecvError};

use crate::model::{Arrival, Event, Halt, Sink};
use crate::plan::Partition;

use super::gate::Gate;
use super::queue::Queue;
use super::running::Running;
use super::{Delivery, Engine};
use halt::halting;

/// The state of a turn that is being served.
pub(super) struct Turn<'e> {
    number: usize,
    engine: &'e mut Engine,
    sink: &'e mut dyn Sink,
    delivery: &'e mut dyn Delivery,
    partition: Partition,
    queue: Queue,
    gate: Gate,
    running: Running,
    /// How many batches have started.
    batches: usize,
    /// Batches in which a call failed in an earlier run, and its tool, where that cancels the others.
    cancelled: HashMap<usize, String>,
    /// The tool of the failed call that ended the turn.
    stopped_by: Option<String>,
    /// Nothing more of the turn can come whole.
    broke_off: bool,
    /// What ended the run, once that was heeded here.
    halted: Option<Halt>,
}

impl<'e> Turn<'e> {
    pub(super) fn new(
        engine: &'e mut Engine,
        number: usize,
        sink: &'e mut dyn Sink,
        delivery: &'e mut dyn Delivery,
    ) -> Self {
        let gate = Gate::new(engine.settings.jobs);
        Self {
            number,
            engine,
            sink,
            delivery,
            partition: Partition::default(),
            queue: Queue::default(),
            gate,
            running: Running::new(),
            batches: 0,
            cancelled: HashMap::new(),
            stopped_by: None,
            broke_off: false,
            halted: None,
        }
    }

    /// Serves calls until no more can come and all are delivered.
    pub(super) async fn serve(mut self, mut calls: mpsc::UnboundedReceiver<Arrival>) {
        self.tell(&Event::TurnStarted { turn: self.number });
        self.engine.spending.begin(self.engine.control.now());
        loop {
            self.heed();
            // All that is there is queued before anything starts: what is known at the start holds from the start.
            let open = self.take_in(&mut calls);
            self.start();
            if !open && self.queue.is_empty() {
                break;
            }
            tokio::select! {
                arrival = calls.recv(), if open => arrival.into_iter().for_each(|arrival| self.arrive(arrival)),
                news = self.running.next() => self.hear(news),
                () = halting(self.engine), if self.halted.is_none() => {}
            }
        }
        self.delivery.drained(self.sink);
        self.tell(&Event::QueueDrained { turn: self.number });
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

    /// Tells an event that nothing depends on: only a refused start holds a call back, and a sink that can't go on
    /// knows it itself.
    fn tell(&mut self, event: &Event<'_>) {
        let _ = self.sink.tell(std::slice::from_ref(event));
    }
}
