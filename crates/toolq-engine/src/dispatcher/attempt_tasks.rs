//! The tasks of a turn and what the dispatcher hears from them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};

use crate::attempt;
use crate::attempt::{Attempt, End, Runner, Written};
use crate::control::Control;
use crate::dispatcher::handle::{Ask, Desk};
use crate::progress::{NOTES, Note, Voice};
use toolq_core::types::{CallRef, Outcome};

/// What the dispatcher hears; calls are numbered as in its queue.
#[derive(Debug)]
pub(crate) enum News {
    /// A call has something to say.
    Said(usize, Note),
    /// An attempt is over.
    Ended(usize, End),
    /// The wait before the next attempt is over.
    Rested(usize),
    /// An agent asks for something.
    Asked(usize, Ask),
}

enum Done {
    Attempt(End),
    Rest,
}

/// The running tasks. Dropping it ends them.
pub(crate) struct Running {
    tasks: JoinSet<Done>,
    calls: HashMap<Id, usize>,
    voices: mpsc::Sender<(usize, Note)>,
    notes: mpsc::Receiver<(usize, Note)>,
    desk: mpsc::UnboundedSender<(usize, Ask)>,
    asks: mpsc::UnboundedReceiver<(usize, Ask)>,
    /// A task that ended, and how many notes were there before it: these are heard first.
    ended: Option<(News, usize)>,
}

impl Running {
    pub(crate) fn new() -> Self {
        let (voices, notes) = mpsc::channel(NOTES);
        let (desk, asks) = mpsc::unbounded_channel();
        Self {
            tasks: JoinSet::new(),
            calls: HashMap::new(),
            voices,
            notes,
            desk,
            asks,
            ended: None,
        }
    }

    /// What `call` says people with.
    pub(crate) fn voice(&self, call: usize) -> Voice {
        Voice {
            call,
            notes: self.voices.clone(),
        }
    }

    /// Where the agent of `call` brings what it asks for.
    pub(crate) fn desk(&self, number: usize, call: &CallRef) -> Desk {
        Desk::new(number, Arc::new(call.clone()), self.desk.clone())
    }

    /// Starts an attempt.
    pub(crate) fn start(&mut self, call: usize, runner: Arc<dyn Runner>, attempt: Attempt) {
        let work = async move { Done::Attempt(attempt::run(runner, attempt).await) };
        let task = self.tasks.spawn(work);
        self.calls.insert(task.id(), call);
    }

    /// Waits before the next attempt, or until told not to.
    pub(crate) fn rest(
        &mut self,
        call: usize,
        wait: Duration,
        cancel: oneshot::Receiver<()>,
        control: Control,
    ) {
        let task = self.tasks.spawn(async move {
            tokio::select! {
                () = control.sleep(wait) => Done::Rest,
                Ok(()) = cancel => Done::Attempt(End::midway(Written::default())),
            }
        });
        self.calls.insert(task.id(), call);
    }

    /// The next news. What a call said or asked for is heard before its end.
    pub(crate) async fn next(&mut self) -> News {
        loop {
            if let Some((news, before)) = self.ended.take() {
                if let Ok((call, ask)) = self.asks.try_recv() {
                    self.ended = Some((news, before));
                    return News::Asked(call, ask);
                }
                let Some((left, Ok((call, note)))) = before
                    .checked_sub(1)
                    .map(|left| (left, self.notes.try_recv()))
                else {
                    return news;
                };
                self.ended = Some((news, left));
                return News::Said(call, note);
            }
            tokio::select! {
                Some((call, note)) = self.notes.recv() => return News::Said(call, note),
                Some((call, ask)) = self.asks.recv() => return News::Asked(call, ask),
                Some(done) = self.tasks.join_next_with_id() => {
                    let before = self.notes.len();
                    self.ended = self.news_of(done).map(|news| (news, before));
                }
            }
        }
    }

    fn news_of(&mut self, done: Result<(Id, Done), JoinError>) -> Option<News> {
        let id = done.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let call = self.calls.remove(&id)?;
        Some(match done {
            Ok((_, Done::Rest)) => News::Rested(call),
            Ok((_, Done::Attempt(end))) => News::Ended(call, end),
            Err(error) => News::Ended(call, Outcome::Broken(panic_text(error)).into()),
        })
    }
}

fn panic_text(error: JoinError) -> String {
    let Ok(payload) = error.try_into_panic() else {
        return "the task was aborted".to_owned();
    };
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast::<&'static str>().map_or_else(
            |_| "a panic without words".to_owned(),
            |text| (*text).to_owned(),
        ),
    }
}
