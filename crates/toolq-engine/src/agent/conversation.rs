//! The loop of an agent: its model is asked, what it calls runs, the results are sent back, and it is asked again.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::agent::budget::Purse;
use crate::agent::error::{Broken, in_doubt};
use crate::agent::messages::{final_text, results, text_of, unfinished};
use crate::agent::model_name::named;
use crate::agent::request::{Address, Texts, user};
use crate::agent::runner::Agents;
use crate::agent::scope::Around;
use crate::agent::streaming::{Served, Speech};
use crate::agent::toolset::Kit;
use crate::control::Control;
use crate::dispatcher::{Answers, Desk};
use crate::progress::Voice;
use crate::scheduler::Job;
use toolq_core::json::pretty;
use toolq_core::text::clipped;
use toolq_core::types::{
    AgentBacking, AgentFault, AgentInvocation, Arrival, Checked, Ending, Halt, NotExecuted,
    Refused, Stop, Tool, Turn, Verdict,
};

/// Characters of a word that is told.
const WORD: usize = 60;

impl Around {
    /// Where an agent stands that a call of `outer` started, or one of the input.
    pub(crate) fn of(
        tool: &Tool,
        backing: &AgentBacking,
        safe: bool,
        outer: Option<&Self>,
    ) -> Self {
        let depth = outer.map_or(0, |outer| outer.depth) + 1;
        let own = depth.saturating_add(backing.max_depth - 1);
        let above = outer.map(|outer| Arc::clone(&outer.purse));
        Self {
            depth,
            deepest: outer.map_or(own, |outer| outer.deepest.min(own)),
            safe: safe || outer.is_some_and(|outer| outer.safe),
            purse: Arc::new(Purse::new(&tool.name, backing.budget, above)),
        }
    }
}

/// An agent at work.
pub(crate) struct Conversation<'a> {
    pub(crate) agents: &'a Agents,
    pub(crate) job: &'a Job,
    pub(crate) backing: &'a AgentBacking,
    pub(crate) kit: Arc<Kit>,
    pub(crate) around: Arc<Around>,
    pub(crate) desk: Desk,
    pub(crate) voice: Voice,
    pub(crate) control: Control,
    /// When its time is over, in the time of the run.
    pub(crate) until: Duration,
    /// A number of the call's own, the same on every run.
    pub(crate) seed: u64,
    /// All that was said, in the API's form.
    pub(crate) messages: Vec<Box<RawValue>>,
}

impl Conversation<'_> {
    /// Works on `task` until there is an answer. `spoken` is the last text of the model at every time.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(crate) async fn hold(
        mut self,
        task: &AgentInvocation,
        spoken: &mut String,
    ) -> Result<(String, Ending), Broken> {
        let agents = self.agents;
        let texts = Texts(&agents.environment);
        let address = Address::of(self.backing, &texts)?;
        let model = texts.fixed(&self.backing.model)?;
        let fallback = self.backing.fallback_model.as_ref();
        let fallback = fallback.map(|model| texts.fixed(model)).transpose()?;
        let prompt = match &task.prompt {
            Some(prompt) => texts.draft(prompt)?,
            None => pretty(self.job.accepted.input.text()),
        };
        self.say(0, user(&prompt)).await?;
        let kit = Arc::clone(&self.kit);
        for number in 0.. {
            let last = self.is_last(number);
            let models = (model.as_str(), fallback.as_deref());
            let (turn, stop, speech) = self.hear(&kit, &address, models, number, spoken).await?;
            let goes_on = match stop {
                Stop::Done | Stop::Paused if turn.calls.is_empty() || last => Ok(()),
                Stop::Done | Stop::Paused => self.around.purse.check(),
                Stop::Refused => Err(AgentFault::Refused),
                Stop::MaxTokens => Err(AgentFault::MaxTokens),
                Stop::ContextFull => Err(AgentFault::ContextFull),
            };
            if let Err(fault) = goes_on {
                if let Some(mut speech) = speech {
                    let over = NotExecuted::Halted(Halt::AgentOver);
                    if let Some(doubt) = speech.end(over, turn.cut_off).await {
                        return Err(in_doubt(doubt).into());
                    }
                }
                return Err(fault.into());
            }
            match stop {
                Stop::Done if turn.calls.is_empty() => {
                    return Ok((final_text(spoken), Ending::Answered));
                }
                _ if turn.calls.is_empty() && !last => continue,
                _ => {}
            }
            if let Some(result) = self.serve(turn, speech).await? {
                return Ok((result, Ending::Answered));
            }
            if last {
                break;
            }
        }
        let last_words = unfinished(spoken, self.backing.max_turns);
        Ok((last_words, Ending::Unfinished))
    }

    /// Asks, unless an earlier run did, and takes note of the answer. What of its calls has started by then comes with it.
    async fn hear<'k>(
        &mut self,
        kit: &'k Kit,
        address: &Address,
        models: (&str, Option<&str>),
        number: usize,
        spoken: &mut String,
    ) -> Result<(Turn, Stop, Option<Speech<'k>>), Broken> {
        let (mut response, turn, asked) = if let Some((response, turn)) = self.remembered(number)? {
            (response, turn, None)
        } else {
            self.around.purse.check()?;
            let of = u64::from(self.backing.max_turns);
            self.desk.progress(number as u64 + 1, of).await?;
            let heard = self.answer(kit, address, models, number, spoken).await?;
            if let Some(word) = &heard.response.unknown_stop {
                self.voice.tip(format!(
                    "its answer ended with {}, which is not known: taken for a good end",
                    clipped(word, WORD)
                ));
            }
            (
                heard.response,
                heard.turn,
                Some((heard.digest, heard.speech)),
            )
        };
        let (digest, speech) = asked.unzip();
        let mask = &self.agents.mask;
        response.model = response.model.take().map(|name| named(&name, mask));
        let model = response.model.as_deref().unwrap_or(models.0);
        let price = self.kit.tools.prices.of(model);
        self.around.purse.take(model, response.usage, price);
        spoken.clone_from(&response.text);
        let (message, stop) = (response.message.clone(), response.stop);
        self.messages.push(message.clone());
        let answer = Box::new((response, digest));
        self.desk.message(number, message, Some(answer)).await?;
        Ok((turn, stop, speech))
    }

    /// Adds a message of the agent's own.
    async fn say(&mut self, turn: usize, message: Box<RawValue>) -> Result<(), Refused> {
        self.messages.push(message.clone());
        self.desk.message(turn, message, None).await
    }

    /// Has the calls of a turn run, those that run by now among them, and adds their results. The final answer, if one of
    /// the calls was that; in the last turn nothing else runs.
    ///
    /// # Errors
    /// One of the calls is in doubt, or the log has others.
    async fn serve(
        &mut self,
        turn: Turn,
        speech: Option<Speech<'_>>,
    ) -> Result<Option<String>, Broken> {
        let (number, form) = (turn.number, turn.form);
        let spoken = match speech {
            Some(mut speech) => speech.serve(turn.cut_off).await,
            None => None,
        };
        let Served {
            answers: Answers { answers, doubt },
            completions,
        } = match spoken {
            Some(served) => served,
            None => self.serve_whole(turn).await?,
        };
        if let Some(doubt) = doubt {
            return Err(in_doubt(doubt).into());
        }
        let mut completions = completions.iter().filter_map(|at| answers.get(*at));
        if let Some(answer) = completions.find(|answer| !answer.is_error) {
            return Ok(Some(text_of(answer)));
        }
        if self.is_last(number) {
            return Ok(None);
        }
        for message in results(self.backing.api, form, &answers) {
            self.say(number, message).await?;
        }
        Ok(None)
    }

    /// Whether its model is not asked again behind the turn of this number.
    pub(crate) fn is_last(&self, number: usize) -> bool {
        number + 1 == self.backing.max_turns as usize
    }

    /// Has the calls of a turn run that are all known; of the last one those that are the agent's answer, if any is.
    ///
    /// # Errors
    /// The log has others.
    async fn serve_whole(&self, turn: Turn) -> Result<Served, Broken> {
        let number = turn.number;
        let mut calls = self.kit.check(turn, &self.around);
        for checked in &mut calls {
            checked.call.within = Some(Arc::clone(&self.desk.call));
            checked.past = self.past(checked)?;
        }
        let accepted = |checked: &Checked| matches!(checked.verdict, Verdict::Accepted(_));
        self.desk
            .busy()
            .fetch_or(calls.iter().any(accepted), Relaxed);
        let completions = calls.iter().filter(|call| call.verdict.is_completion());
        let completions: Vec<usize> = completions.map(|checked| checked.call.position).collect();
        let (feed, arriving) = mpsc::unbounded_channel();
        if self.is_last(number) {
            if completions.is_empty() {
                return Ok(Served::default());
            }
            // The receiver is in this function until it is handed over.
            let _ = feed.send(Arrival::Over(NotExecuted::LastTurn));
        }
        for call in calls {
            let _ = feed.send(Arrival::Call(Box::new(call)));
        }
        drop(feed);
        let tools = Arc::clone(&self.kit.tools);
        let around = Arc::clone(&self.around);
        let answers = self.desk.turn(number, arriving, tools, around).await;
        Ok(Served {
            answers: answers.unwrap_or_default(),
            completions,
        })
    }
}
