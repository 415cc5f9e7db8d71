//! An answer that is still being spoken: the calls of it that may start do so as their blocks stop, the others when it is
//! over and its record was told. With the first that starts, its turn begins.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tokio::sync::{mpsc, oneshot};

use crate::agent::model_name::named;
use crate::agent::scope::Around;
use crate::agent::toolset::{Kit, bounded};
use crate::dispatcher::{Answers, Desk};
use redact::Mask;
use toolq_core::check::Arriving;
use toolq_core::transcript::{Assembly, ResponseFault, bounded_calls};
use toolq_core::types::{Api, Arrival, Doubt, Halt, NotExecuted, Verdict};

/// An answer as far as it was spoken.
pub(crate) struct Speech<'k> {
    kit: &'k Kit,
    around: Arc<Around>,
    desk: Desk,
    /// Of its turn.
    number: usize,
    /// Who was asked.
    model: String,
    mask: Arc<Mask>,
    /// Its tokens are counted with it.
    whole: bool,
    assembly: Assembly,
    /// Which of its calls may start.
    arriving: Arriving<'k>,
    begun: usize,
    /// What was let go before one of it could start.
    held: Vec<Arrival>,
    open: Option<Open>,
    /// As in [`Served`].
    completions: Vec<usize>,
}

/// Its turn, from the first call that could start on.
struct Open {
    feed: mpsc::UnboundedSender<Arrival>,
    answers: oneshot::Receiver<Answers>,
}

/// What became of its calls.
#[derive(Default)]
pub(crate) struct Served {
    pub(crate) answers: Answers,
    /// The calls that would be the agent's answer, in call order. Some may be revoked since.
    pub(crate) completions: Vec<usize>,
}

impl<'k> Speech<'k> {
    /// Nothing was spoken yet.
    pub(crate) fn new(
        api: Api,
        (model, mask): (&str, &Arc<Mask>),
        number: usize,
        kit: &'k Kit,
        around: &Arc<Around>,
        desk: &Desk,
    ) -> Self {
        Self {
            around: Arc::clone(around),
            desk: desk.clone(),
            number,
            model: model.to_owned(),
            mask: Arc::clone(mask),
            whole: false,
            assembly: Assembly::new(api),
            arriving: kit.arriving(),
            kit,
            begun: 0,
            held: Vec::new(),
            open: None,
            completions: Vec::new(),
        }
    }

    /// Takes the next bytes, and lets nothing go.
    ///
    /// # Errors
    /// The API's error, an event that is none, or more calls than an answer may have.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), ResponseFault> {
        self.assembly.push(bytes)?;
        bounded_calls(self.assembly.calls_begun())
    }

    /// Lets calls go that may start by now.
    pub(crate) fn let_go(&mut self) {
        self.take_in();
        self.pass_on();
    }

    /// Whether calls have started, so that it can't be asked for again.
    pub(crate) fn has_begun(&self) -> bool {
        self.open.is_some()
    }

    /// Whether it was spoken to its end.
    pub(crate) fn is_complete(&self) -> bool {
        self.assembly.is_complete()
    }

    /// As [`Assembly::is_over`].
    pub(crate) fn is_over(&self) -> bool {
        self.assembly.is_over()
    }

    /// As [`Assembly::body`].
    ///
    /// # Errors
    /// The same.
    pub(crate) fn body(&mut self) -> Result<Option<String>, ResponseFault> {
        self.assembly.body()
    }

    /// Its text so far.
    pub(crate) fn text(&self) -> String {
        self.assembly.text()
    }

    /// It has become an answer.
    pub(crate) fn is_heard(&mut self) {
        self.whole = true;
    }

    /// What was told of an answer that broke off counts, however it did.
    fn lose(&self) {
        if self.whole {
            return;
        }
        if let Some((model, usage)) = self.assembly.spent() {
            let model = model.map_or_else(|| self.model.clone(), |model| named(&model, &self.mask));
            let price = self.kit.tools.prices.of(&model);
            self.around.purse.lose(&model, usage.into(), price);
            self.desk.lost(model, usage.into());
        }
    }

    /// Lets all go, now that it is over; `cut_off` inside its last call. None where nothing had begun.
    pub(crate) async fn serve(&mut self, cut_off: bool) -> Option<Served> {
        if !self.has_begun() {
            return None;
        }
        self.close(cut_off);
        Some(Served {
            answers: self.answers().await.unwrap_or_default(),
            completions: mem::take(&mut self.completions),
        })
    }

    /// The agent ends for this reason: what waits does not run, what runs goes on to its end, which may be a doubt.
    pub(crate) async fn end(&mut self, why: NotExecuted, cut_off: bool) -> Option<Doubt> {
        self.give_up(why, cut_off);
        self.answers().await?.doubt
    }

    async fn answers(&mut self) -> Option<Answers> {
        let Open { feed, answers } = self.open.take()?;
        drop(feed);
        answers.await.ok()
    }

    fn give_up(&mut self, why: NotExecuted, cut_off: bool) {
        let Some(open) = &self.open else {
            return;
        };
        // It goes first, so that nothing starts that comes now.
        let _ = open.feed.send(Arrival::Over(why));
        if self.is_complete() {
            return self.close(cut_off);
        }
        self.take_in();
        let unfinished = self.assembly.abandon(self.number);
        self.arriving.broke_off(unfinished);
        self.pass_on();
    }

    fn close(&mut self, cut_off: bool) {
        self.take_in();
        self.arriving.closed(cut_off);
        self.pass_on();
    }

    fn take_in(&mut self) {
        while self.begun < self.assembly.calls_begun() {
            self.begun += 1;
            self.arriving.begun();
        }
        while let Some(call) = self.assembly.next_call(self.number) {
            self.arriving.whole(call);
        }
    }

    fn pass_on(&mut self) {
        let mut starts = false;
        for mut arrival in self.arriving.take() {
            if let Arrival::Call(checked) = &mut arrival {
                bounded(checked, &self.around);
                checked.call.within = Some(Arc::clone(&self.desk.call));
                starts |= matches!(checked.verdict, Verdict::Accepted(_));
                if checked.verdict.is_completion() {
                    self.completions.push(checked.call.position);
                }
            }
            self.held.push(arrival);
        }
        if starts && self.open.is_none() {
            self.open = Some(self.begin());
        }
        if let Some(open) = &self.open {
            for arrival in mem::take(&mut self.held) {
                // The dispatcher listens until this sender is gone.
                let _ = open.feed.send(arrival);
            }
        }
    }

    fn begin(&self) -> Open {
        let (feed, arriving) = mpsc::unbounded_channel();
        let (tools, around) = (Arc::clone(&self.kit.tools), Arc::clone(&self.around));
        self.desk.busy().store(true, Relaxed);
        let answers = self.desk.turn(self.number, arriving, tools, around);
        Open { feed, answers }
    }
}

/// An agent that is ended while its model speaks drops it: what was asked by then is answered all the same.
impl Drop for Speech<'_> {
    fn drop(&mut self) {
        self.lose();
        self.give_up(NotExecuted::Halted(Halt::AgentOver), false);
    }
}

/// While it lasts, an answer is spoken. Then its text is in `spoken`: also where the agent was ended meanwhile.
pub(crate) struct Aloud<'s, 'k> {
    pub(crate) speech: &'s mut Speech<'k>,
    pub(crate) spoken: &'s mut String,
}

impl Drop for Aloud<'_, '_> {
    fn drop(&mut self) {
        let text = self.speech.text();
        if !text.is_empty() {
            *self.spoken = text;
        }
    }
}
