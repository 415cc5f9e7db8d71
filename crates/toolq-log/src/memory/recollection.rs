//! What a memory answers the engine: a session's, or that of who runs nothing. A plan asks what it says of calls, and leaves it as
//! it is.

use std::collections::HashMap;

use crate::claims::{EntryName, Settlement};
use crate::error::LogError;
use crate::identity::{CallKeys, Identity, MemoryKey, Remembered};
use crate::memory::approvals::approval_digest;
use crate::memory::decision::{
    Asker, AttemptEnd, Decision, IfDoubtful, LogAccess, Member, Recalled, recall,
};
use crate::memory::known_call::{KnownCall, member};
use crate::memory::log_index::{AttemptFacts, LogIndex, ReadFacts, content_of};
use crate::memory::store::MemoryStore;
use crate::records::recorded_text;
use toolq_core::json::Input;
use toolq_core::types::{
    CallClaim, CallConflict, CallHistory, CallOutput, CallRef, DoubtCause, EarlierRun, Effect,
    EmitError, MemoryVerdict, Outcome, RecalledCall, Recollection, RestoredResult, ResultContent,
    ResultSource, RunsAgain, Status, UnsettledStart,
};

impl CallHistory for MemoryStore {
    fn recall(&self, request: &RecalledCall<'_>) -> Result<Recollection, EmitError> {
        let recalled = self.recall_call(request);
        recalled.map_err(|error| error.of_memory())
    }

    fn find_run(&self, request: &RecalledCall<'_>) -> Result<Option<EarlierRun>, EmitError> {
        let lookup = self.look_up(request).map_err(|error| error.of_memory())?;
        Ok(lookup.and_then(|lookup| lookup.earlier_run()))
    }

    fn recall_read(
        &self,
        request: &RecalledCall<'_>,
        run: Option<&EarlierRun>,
    ) -> Result<Option<RestoredResult>, EmitError> {
        let identity = self.identify(request);
        let Some(identity) = identity.filter(|_| !self.runs_again(&request.call.id)) else {
            return Ok(None);
        };
        let found = self.find_read(request, &identity, run);
        found.map_err(|error| error.of_memory())
    }

    fn resumes_reads(&self) -> bool {
        self.unfinished.is_some()
    }

    fn remembers_ids(&self) -> bool {
        self.usage.remembered == Remembered::ById
    }

    fn is_at_hand(&self) -> bool {
        self.is_own_log()
    }
}

impl MemoryStore {
    fn recall_call(&self, request: &RecalledCall<'_>) -> Result<Recollection, LogError> {
        let Some(lookup) = self.look_up(request)? else {
            return Ok(Recollection::FORGETTABLE);
        };
        let verdict = lookup.verdict()?;
        // What a call would wait for stays the agent that makes it.
        if matches!(&verdict, MemoryVerdict::Known(outcome) if !matches!(**outcome, Outcome::IsRunning))
        {
            let call = CallRef::new(request.call, None).key();
            self.take(&lookup.recalled.key, lookup.recalled.instance, call);
        }
        let approval = match (&verdict, request.accepted) {
            (MemoryVerdict::Run(_), Some(accepted)) if accepted.needs_approval => {
                self.find_approval(&lookup.entry(), &approval_digest(accepted, &self.root))?
            }
            _ => None,
        };
        Ok(Recollection {
            verdict,
            approval,
            run: lookup.earlier_run(),
        })
    }

    /// Looks a call up. `None` if nothing names it that lasts.
    pub(super) fn look_up<'a>(
        &'a self,
        request: &'a RecalledCall<'a>,
    ) -> Result<Option<Lookup<'a>>, LogError> {
        let Some(identity) = self.identify(request) else {
            return Ok(None);
        };
        let once = request.accepted.and_then(|call| call.tool.once.as_ref());
        let expiry = (once.and_then(|once| once.expires), self.clock.now_ms());
        let tool = recorded_text(&request.call.name, &self.mask);
        let call = CallRef::new(request.call, None);
        let mut known: HashMap<(MemoryKey, u32), KnownCall> = HashMap::new();
        let recalled = recall(
            &identity.keys,
            identity.context,
            self.asker(request),
            &mut |key| {
                let mut members = Vec::new();
                for mut earlier in self.known_calls(key)? {
                    let is_own = earlier.access == LogAccess::Own;
                    if is_own && !self.is_ancestor(key, earlier.instance, &call) {
                        // It ends whatever becomes of `call`, so its result can be awaited.
                        earlier.access = LogAccess::Held;
                    }
                    members.push(Member {
                        is_taken: self.is_taken(key, earlier.instance, &call.key()),
                        ..member(&earlier, &identity, &tool, expiry)
                    });
                    known.insert((key.clone(), earlier.instance), earlier);
                }
                Ok::<_, LogError>(members)
            },
        )?;
        let known = known.remove(&(recalled.key.clone(), recalled.instance));
        Ok(Some(Lookup {
            store: self,
            request,
            identity,
            recalled,
            known,
        }))
    }

    fn asker(&self, request: &RecalledCall<'_>) -> Asker {
        let if_doubtful = match request.accepted {
            Some(accepted) if accepted.tool.effect == Effect::Idempotent => IfDoubtful::Repeat,
            Some(accepted) if accepted.probe.is_some() => IfDoubtful::Probe,
            _ => IfDoubtful::Ask,
        };
        Asker {
            if_doubtful,
            is_once: request
                .accepted
                .is_some_and(|call| call.tool.once.is_some()),
            is_new: self.runs_again(&request.call.id),
        }
    }

    /// Returns the result that a call which only reads had in `run` or, without one, in the latest run of a named log, if that
    /// didn't come to its end.
    fn find_read(
        &self,
        request: &RecalledCall<'_>,
        identity: &Identity,
        run: Option<&EarlierRun>,
    ) -> Result<Option<RestoredResult>, LogError> {
        let (log, session) = match (run, self.unfinished) {
            (Some(run), _) => (run.log.as_str(), run.session.clone()),
            (None, Some(session)) => (&*self.own_log, Some(session.to_string())),
            (None, None) => return Ok(None),
        };
        let call = CallRef::new(request.call, None).key();
        let is_alike = |read: &&ReadFacts| {
            read.session.map(|read| read.to_string()) == session
                && !identity.context.differs_from(read.context)
                && !self.is_read_taken(log, read, &call)
        };
        let found = self.with_index(log, |index| {
            let reads = index.update()?.reads(identity.keys.new_key());
            let alike = reads.iter().filter(is_alike);
            let read = alike.min_by_key(|read| !identity.context.is_same_place(read.context));
            let Some(read) = read.cloned() else {
                return Ok(None);
            };
            let result = index.read_result(read.result)?;
            Ok(result.map(|result| (read, result)))
        })?;
        let Some((read, result)) = found.flatten() else {
            return Ok(None);
        };
        self.take_read(log, &read, call);
        Ok(Some(RestoredResult {
            source: Some(Box::new(ResultSource {
                log: self.log_path(log),
                ended_ms: read.ended_ms,
                other_id: None,
            })),
            ..result
        }))
    }

    /// Records what a probe found out about an attempt.
    ///
    /// # Errors
    /// It can't be recorded.
    pub(crate) fn settle(
        &self,
        entry: &EntryName,
        settlement: &Settlement,
    ) -> Result<(), LogError> {
        self.make_entry(|entries| entries.settle(entry, settlement))?;
        Ok(())
    }
}

/// A call that is looked up, and what the memory knows of it.
pub(super) struct Lookup<'a> {
    store: &'a MemoryStore,
    request: &'a RecalledCall<'a>,
    pub(super) identity: Identity,
    pub(super) recalled: Recalled,
    /// Its latest attempt, unless it is new.
    known: Option<KnownCall>,
}

impl Lookup<'_> {
    /// Returns the number of the next attempt, or of the latest one if there is none.
    pub(super) fn entry(&self) -> EntryName {
        let latest = self.known.as_ref().map_or(1, |known| known.attempt.max(1));
        let attempt = match self.recalled.decision {
            Decision::Run(number) | Decision::Renew(number) => number,
            _ => latest,
        };
        EntryName {
            key: self.recalled.key.clone(),
            instance: self.recalled.instance,
            attempt,
        }
    }

    /// Returns the run that made the call, if it has run or may have.
    fn earlier_run(&self) -> Option<EarlierRun> {
        match self.recalled.decision {
            Decision::Run(_) | Decision::Renew(_) => None,
            _ => self.known.as_ref().map(|known| EarlierRun {
                log: known.log.clone(),
                session: known
                    .facts
                    .as_ref()
                    .and_then(|facts| Some(facts.session?.to_string())),
            }),
        }
    }

    /// Returns how often the call has been repeated on purpose, with this time.
    fn generation(&self) -> u32 {
        let latest = self
            .known
            .as_ref()
            .map_or(1, |known| known.generation.max(1));
        match self.recalled.decision {
            Decision::Renew(_) => latest + 1,
            _ => latest,
        }
    }

    fn verdict(&self) -> Result<MemoryVerdict, LogError> {
        let known = self.known.as_ref();
        Ok(match self.recalled.decision {
            Decision::Run(_) | Decision::Renew(_) => MemoryVerdict::Run(self.claim()),
            Decision::Probe => MemoryVerdict::Probe(self.claim(), self.doubt()?),
            Decision::Wait => MemoryVerdict::RunsElsewhere,
            Decision::IsRunning => MemoryVerdict::Known(Box::new(Outcome::IsRunning)),
            Decision::InDoubt => MemoryVerdict::Known(self.doubt()?),
            Decision::Conflict => {
                MemoryVerdict::Known(Box::new(Outcome::Conflict(Box::new(self.conflict(known)?))))
            }
            Decision::AnswerSettled => {
                MemoryVerdict::Known(Box::new(Outcome::Restored(self.settled(known))))
            }
            Decision::Answer => match self.answer(known)? {
                Some(result) => MemoryVerdict::Known(Box::new(Outcome::Restored(result))),
                // What it was is gone, and whether it was is what the log says.
                None => MemoryVerdict::Known(self.doubt()?),
            },
        })
    }

    fn claim(&self) -> CallClaim {
        let entry = self.entry();
        let generation = self.generation();
        CallClaim {
            name: entry.to_string(),
            attempt: entry.attempt,
            generation,
            again: self.runs_again(),
            idempotency_key: entry
                .key
                .callee_key(entry.instance, generation, &self.origin()),
            settle_id: entry.settle_id(&self.request.call.id),
        }
    }

    /// Returns the run that made the call first. A call that its id or its values name is the same in all memories.
    fn origin(&self) -> String {
        let is_named = self.identity.keys.is_name(&self.recalled.key);
        let known = self.known.as_ref();
        let is_repeated = matches!(self.recalled.decision, Decision::Renew(_));
        match known.filter(|known| known.attempt > 0 && !is_repeated) {
            _ if is_named => String::new(),
            Some(known) => known.origin.clone(),
            None => self.store.own_origin(),
        }
    }

    /// Whether the call is known by its values.
    fn is_once(&self) -> bool {
        matches!(&self.identity.keys, CallKeys::Once { values, .. } if *values == self.recalled.key)
    }

    fn runs_again(&self) -> Option<RunsAgain> {
        let known = self.known.as_ref().filter(|known| known.attempt > 0)?;
        Some(match self.recalled.decision {
            Decision::Renew(_) => RunsAgain::Renewed,
            _ if known.settlement.is_some() => RunsAgain::SettledNotDone,
            _ if known.did_nothing() => RunsAgain::DidNothing,
            _ => RunsAgain::Idempotent,
        })
    }

    fn doubt(&self) -> Result<Box<Outcome>, LogError> {
        let start = |known: &KnownCall| {
            let facts = known.facts.as_ref();
            let is_same = facts.is_none_or(|facts| self.is_same_as(facts));
            let answer = is_same.then(|| self.recorded_doubt(known)).flatten();
            let is_ended = facts.is_some_and(|facts| facts.result.is_some());
            let is_told = answer.is_none() && (is_ended || !is_same);
            Ok(Box::new(UnsettledStart {
                settle_id: self.entry().settle_id(&self.request.call.id),
                started_ms: facts.map(|facts| facts.started_ms),
                log: self.store.log_path(&known.log),
                answer,
                earlier: is_told.then(|| self.conflict(Some(known))).transpose()?,
            }))
        };
        let start = self.known.as_ref().map(start).transpose()?;
        Ok(Box::new(Outcome::InDoubt {
            cause: DoubtCause::EndNotLogged(start),
            output: CallOutput::default(),
        }))
    }

    fn is_same_as(&self, facts: &AttemptFacts) -> bool {
        let tool = recorded_text(&self.request.call.name, &self.store.mask);
        facts.is_same_as(&tool, &self.identity)
    }

    /// Returns what the model has read about a call that its run left in doubt.
    fn recorded_doubt(&self, known: &KnownCall) -> Option<String> {
        let facts = known.facts.as_ref()?;
        let (extent, _) = facts.result.filter(|_| facts.end == AttemptEnd::InDoubt)?;
        let read = |index: &mut LogIndex| index.read_result(extent);
        // Without it, the model reads that the end isn't known.
        let result = self.store.with_index(&known.log, read).ok()?;
        Some(result.flatten()?.content.to_text().into_owned())
    }

    fn answer(&self, known: Option<&KnownCall>) -> Result<Option<RestoredResult>, LogError> {
        let Some((known, facts)) = known.and_then(|known| Some((known, known.facts.as_ref()?)))
        else {
            return Ok(None);
        };
        let Some((extent, ended_ms)) = facts.result else {
            return Ok(None);
        };
        // Another run's result may be lost in a power loss until it is synced, and then nobody may have read it.
        if !self.store.is_own_log() {
            self.store.sync_log(&known.log)?;
        }
        let result = self
            .store
            .with_index(&known.log, |index| index.read_result(extent))?
            .flatten();
        Ok(result.map(|result| RestoredResult {
            source: Some(Box::new(self.source(known, facts, ended_ms))),
            ..result
        }))
    }

    fn source(&self, known: &KnownCall, facts: &AttemptFacts, ended_ms: u64) -> ResultSource {
        let id = recorded_text(&self.request.call.id, &self.store.mask);
        ResultSource {
            log: self.store.log_path(&known.log),
            ended_ms,
            other_id: (self.is_once() && *facts.tool_use_id != *id)
                .then(|| facts.tool_use_id.clone()),
        }
    }

    fn settled(&self, known: Option<&KnownCall>) -> RestoredResult {
        let settlement = known.and_then(|known| known.settlement.as_ref());
        let result = settlement.and_then(|settlement| settlement.result.as_ref());
        let content = result.and_then(|result| content_of(&result.to_string()));
        RestoredResult {
            status: Status::Resolved,
            is_error: settlement.is_some_and(|settlement| settlement.is_error),
            content: content.unwrap_or(ResultContent::Text(String::new())),
            cut_output: None,
            agent_usage: None,
            source: known.zip(settlement).map(|(known, settlement)| {
                Box::new(ResultSource {
                    log: self.store.log_path(&known.log),
                    ended_ms: settlement.timestamp,
                    other_id: None,
                })
            }),
        }
    }

    fn conflict(&self, known: Option<&KnownCall>) -> Result<CallConflict, LogError> {
        let facts = known.and_then(|known| known.facts.as_ref());
        let log = known.map_or_else(String::new, |known| known.log.clone());
        let read = facts.map(|facts| {
            self.store.with_index(&log, |index| {
                let result = match facts.result {
                    Some((extent, _)) => index.read_result(extent)?,
                    None => None,
                };
                Ok((index.read_input(facts.call), result))
            })
        });
        let (input, result) = read.transpose()?.flatten().unwrap_or_default();
        let is_settled = known.is_some_and(|known| known.settlement.is_some());
        let result = if is_settled {
            Some(self.settled(known))
        } else {
            result
        };
        Ok(CallConflict {
            tool: facts.map(|facts| facts.tool.clone()).unwrap_or_default(),
            input: input.unwrap_or_else(|| Input::empty().text().to_owned()),
            result: result.map(|result| result.content.to_text().into_owned()),
            is_once: self.is_once(),
            log: self.store.log_path(&log),
        })
    }
}
