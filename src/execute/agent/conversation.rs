//! The loop of an agent: its model is asked, what it calls runs, the results are sent back, and it is asked again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::execute::control::Control;
use crate::execute::desk::{Answers, Desk};
use crate::execute::queue::Job;
use crate::execute::running::Voice;
use crate::model::{
    AgentBacking, AgentFault, AgentInvocation, Answer, Api, Arrival, Content, Ending, Form, Halt,
    NotExecuted, Refused, Stop, Tool, Turn, cut, pretty,
};
use crate::respond::render;
use crate::validate::clipped;

use super::kit::Kit;
use super::memory::in_doubt;
use super::request::{Address, Texts, user};
use super::speech::{Served, Speech};
use super::{Agents, Around, Broken, Purse};

/// Characters of a word that is told.
const WORD: usize = 60;
/// Characters of a model's name that are kept.
const NAME: usize = 100;

impl Around {
    /// Where an agent stands that a call of `outer` started, or one of the input.
    pub(super) fn of(
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
pub(super) struct Conversation<'a> {
    pub(super) agents: &'a Agents,
    pub(super) job: &'a Job,
    pub(super) backing: &'a AgentBacking,
    pub(super) kit: Arc<Kit>,
    pub(super) around: Arc<Around>,
    pub(super) desk: Desk,
    pub(super) voice: Voice,
    pub(super) control: Control,
    /// When its time is over, in the time of the run.
    pub(super) until: Duration,
    /// A number of the call's own, the same on every run.
    pub(super) seed: u64,
    /// All that was said, in the API's form.
    pub(super) messages: Vec<Box<RawValue>>,
}

impl Conversation<'_> {
    /// Works on `task` until there is an answer. `spoken` is the last text of the model at every time.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) async fn hold(
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
        let last = self.backing.max_turns as usize - 1;
        for number in 0.. {
            let models = (model.as_str(), fallback.as_deref());
            let (turn, stop, speech) = self.hear(&kit, &address, models, number, spoken).await?;
            let goes_on = match stop {
                Stop::Done | Stop::Paused if turn.calls.is_empty() || number == last => Ok(()),
                Stop::Done | Stop::Paused => self.around.purse.check(),
                Stop::Refused => Err(AgentFault::Refused),
                Stop::MaxTokens => Err(AgentFault::MaxTokens),
                Stop::ContextFull => Err(AgentFault::ContextFull),
            };
            if let Err(fault) = goes_on {
                if let Some(mut speech) = speech {
                    let over = NotExecuted::Halted(Halt::AgentOver);
                    speech.end(over, turn.cut_off).await;
                }
                return Err(fault.into());
            }
            match stop {
                Stop::Done if turn.calls.is_empty() => {
                    return Ok((final_text(spoken), Ending::Answered));
                }
                _ if number == last => break,
                _ if turn.calls.is_empty() => continue,
                _ => {}
            }
            if let Some(result) = self.serve(turn, speech).await? {
                return Ok((result, Ending::Answered));
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
        // What the API calls its model is what it likes.
        let named = response.model.take();
        response.model = named.map(|name| cut(&self.agents.mask.text(&name), NAME).into_owned());
        let model = response.model.as_deref().unwrap_or(models.0);
        let price = self.kit.tools.prices.of(model);
        self.around.purse.take(model, &response.usage, price);
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
    /// the calls was that.
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
            completion,
        } = match spoken {
            Some(served) => served,
            None => self.serve_whole(turn).await?,
        };
        if let Some(doubt) = doubt {
            return Err(in_doubt(doubt).into());
        }
        if let Some(answer) = completion.and_then(|position| answers.get(position))
            && !answer.is_error
        {
            return Ok(Some(text_of(answer)));
        }
        for message in results(self.backing.api, form, &answers) {
            self.say(number, message).await?;
        }
        Ok(None)
    }

    /// Has the calls of a turn run that are all known.
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
        let completion = calls
            .iter()
            .position(|checked| checked.verdict.is_completion());
        let (feed, arriving) = mpsc::unbounded_channel();
        for call in calls {
            // The receiver is in this function until it is handed over.
            let _ = feed.send(Arrival::Call(Box::new(call)));
        }
        drop(feed);
        let tools = Arc::clone(&self.kit.tools);
        let around = Arc::clone(&self.around);
        let answers = self.desk.turn(number, arriving, tools, around).await;
        Ok(Served {
            answers: answers.unwrap_or_default(),
            completion,
        })
    }
}

/// The messages that carry the results of a turn: one for all, or one for each.
fn results(api: Api, form: Form, answers: &[Answer]) -> Vec<Box<RawValue>> {
    let rendered = render(form, answers);
    match api {
        Api::Anthropic => RawValue::from_string(rendered).into_iter().collect(),
        Api::OpenAiChat => serde_json::from_str(&rendered).unwrap_or_default(),
    }
}

fn text_of(answer: &Answer) -> String {
    match &answer.content {
        Content::Text(text) => text.clone(),
        Content::Blocks(_) => String::new(),
    }
}

/// What the caller reads of a complete answer.
fn final_text(spoken: &str) -> String {
    match spoken {
        "" => "(The agent is done, and its answer is empty.)".to_owned(),
        text => text.to_owned(),
    }
}

/// What the caller reads where the agent would have gone on.
fn unfinished(spoken: &str, max_turns: u32) -> String {
    let turns = match max_turns {
        1 => "its only turn".to_owned(),
        turns => format!("its {turns} turns"),
    };
    let note = format!("(The agent was not done after {turns}; these are its last words.)");
    match spoken {
        "" => format!("(The agent was not done after {turns}, and said nothing.)"),
        text => format!("{text}\n{note}"),
    }
}
