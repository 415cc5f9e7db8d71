//! What a session's memory answers the engine.

use std::path::Path;
use std::sync::Arc;

use crate::error::LogError;
use crate::memory::claims::{ClaimsDir, Decided, EntryName, Question, Settlement};
use crate::memory::decision::{Asker, AttemptEnd, Decision, IfDoubtful};
use crate::memory::identity::{CallKeys, Identity, digest_text};
use crate::memory::known_call::KnownCall;
use crate::memory::log_index::{AttemptFacts, LogIndex};
use crate::memory::store::{Lookup, MemoryStore};
use crate::records::{recorded_text, sha256_hex};
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::types::{
    AcceptedCall, Approval, ApprovalDecision, ApprovalMeans, CallClaim, CallConflict, CallKey,
    CallOutput, CallRef, DoubtCause, EarlierRun, Effect, MemoryVerdict, Outcome, RecalledCall,
    Recollection, RestoredResult, ResultContent, ResultSource, RunsAgain, Status, UnsettledStart,
};

impl MemoryStore {
    /// Returns what is known of a call that `identity` names. `now` is in milliseconds since 1970.
    ///
    /// # Errors
    /// The memory can't be read.
    pub(crate) fn recall(
        &self,
        request: &RecalledCall<'_>,
        identity: &Identity,
        mask: &Arc<Mask>,
        now: u64,
    ) -> Result<Recollection, LogError> {
        let asker = self.asker(request);
        let once = request
            .accepted
            .and_then(|accepted| accepted.tool.once.as_ref());
        let expires = once.and_then(|once| once.expires);
        let tool = recorded_text(&request.call.name, mask);
        let call = CallRef::new(request.call, None).key();
        let lookup = self.look_up(identity, (&call, &tool), asker, (expires, now))?;
        let answerer = Answerer {
            store: self,
            request,
            identity,
            mask,
            lookup: &lookup,
        };
        let verdict = answerer.verdict()?;
        if matches!(verdict, MemoryVerdict::Known(_)) {
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

    /// Returns the run that made a call, if it has run or may have.
    ///
    /// # Errors
    /// The memory can't be read.
    pub(crate) fn find_run(
        &self,
        request: &RecalledCall<'_>,
        identity: &Identity,
        mask: &Arc<Mask>,
        now: u64,
    ) -> Result<Option<EarlierRun>, LogError> {
        let tool = recorded_text(&request.call.name, mask);
        let call = CallRef::new(request.call, None).key();
        let asker = self.asker(request);
        let lookup = self.look_up(identity, (&call, &tool), asker, (None, now))?;
        Ok(lookup.earlier_run())
    }

    /// Returns the result that a call which only reads had in `run` or, without one, in the latest run of a named log, if that
    /// didn't come to its end.
    ///
    /// # Errors
    /// The log can't be read.
    pub(crate) fn recall_read(
        &self,
        call: &CallKey,
        identity: &Identity,
        run: Option<&EarlierRun>,
    ) -> Result<Option<RestoredResult>, LogError> {
        let (log, session) = match (run, self.unfinished_session()) {
            (Some(run), _) => (run.log.as_str(), run.session.clone()),
            (None, Some(session)) => (self.own_log(), Some(session.to_string())),
            (None, None) => return Ok(None),
        };
        let key = identity.keys.new_key();
        let found = self.with_index(log, |index| {
            let reads = index.update()?.reads(key).iter();
            let alike = reads.filter(|read| {
                let is_of_run = read.session.map(|read| read.to_string()) == session;
                is_of_run
                    && !identity.context.differs_from(read.context)
                    && !self.is_read_taken(log, read, call)
            });
            let mut alike: Vec<_> = alike.collect();
            alike.sort_by_key(|read| !identity.context.is_same_place(read.context));
            let Some(read) = alike.first().map(|read| (*read).clone()) else {
                return Ok(None);
            };
            let result = index.read_result(read.result)?;
            Ok(result.map(|result| (read, result)))
        })?;
        let Some((read, result)) = found.flatten() else {
            return Ok(None);
        };
        self.take_read(log, &read, call.clone());
        Ok(Some(RestoredResult {
            source: Some(Box::new(ResultSource {
                log: self.log_path(log),
                ended_ms: read.ended_ms,
                other_id: None,
            })),
            ..result
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
                .is_some_and(|accepted| accepted.tool.once.is_some()),
            is_new: self.runs_again(&request.call.id),
        }
    }

    /// Returns what was said about the question whether an attempt may start that would run exactly this.
    fn find_approval(&self, entry: &EntryName, digest: &str) -> Result<Option<Approval>, LogError> {
        let dir = self.entries_dir();
        let fail = LogError::io(dir, "read");
        let Some(entries) = ClaimsDir::open(dir).map_err(fail)? else {
            return Ok(None);
        };
        // Somebody may have asked again after a no.
        let mut last = None;
        for number in 1.. {
            let Some(question) = entries.read_question(entry, number).map_err(fail)? else {
                break;
            };
            if question.digest == digest {
                last = Some(number);
            }
        }
        let Some(number) = last else { return Ok(None) };
        let decided = entries.read_decision(entry, number).map_err(fail)?;
        if decided.is_some() {
            entries.sync().map_err(fail)?;
        }
        Ok(decided.map(approval_of))
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
        let dir = self.entries_dir();
        let settled = ClaimsDir::create(dir).and_then(|entries| {
            entries.settle(entry, settlement)?;
            entries.sync()
        });
        settled.map_err(LogError::io(dir, "written"))
    }

    /// Returns the question whether a call may start that has no approval, with the attempt that it is about. `None` if it runs
    /// under another name meanwhile.
    pub(crate) fn question(
        &self,
        identity: &Identity,
        request: &RecalledCall<'_>,
        mask: &Arc<Mask>,
        now: u64,
    ) -> Result<Option<(EntryName, Question)>, LogError> {
        let Some(accepted) = request.accepted else {
            return Ok(None);
        };
        let tool = recorded_text(&request.call.name, mask);
        let call = CallRef::new(request.call, None).key();
        let asker = self.asker(request);
        let lookup = self.look_up(identity, (&call, &tool), asker, (None, now))?;
        let question = Question {
            log: self.own_log().to_owned(),
            offset: 0,
            digest: approval_digest(accepted, &self.root),
            context: identity.context,
        };
        let is_open = matches!(
            lookup.recalled.decision,
            Decision::Run(_) | Decision::Renew(_)
        );
        Ok(is_open.then(|| {
            let entry = lookup.entry();
            let instance = self.take_free(&entry.key, entry.instance, &call);
            (EntryName { instance, ..entry }, question)
        }))
    }
}

/// Returns a digest of what would run: the tool as it is declared, what its input means as it is executed, and where.
fn approval_digest(accepted: &AcceptedCall, root: &Path) -> String {
    let definition = crate::records::definition_digests(&accepted.tool);
    let mut text = format!("{}\0{}", root.display(), digest_text(&accepted.input));
    for (part, digest) in definition {
        text.extend(["\0", part.as_str(), "\0", digest.as_str()]);
    }
    sha256_hex(text.as_bytes())[..16].to_owned()
}

/// Returns what a decision says about the question whether a call may start.
pub(crate) fn approval_of(decided: Decided) -> Approval {
    Approval {
        decision: if decided.approved {
            ApprovalDecision::Yes
        } else {
            ApprovalDecision::No
        },
        means: ApprovalMeans::Later,
        reason: decided.reason,
        user: decided.user,
    }
}

/// Makes the answer about one call.
struct Answerer<'a> {
    store: &'a MemoryStore,
    request: &'a RecalledCall<'a>,
    identity: &'a Identity,
    mask: &'a Arc<Mask>,
    lookup: &'a Lookup,
}

impl Answerer<'_> {
    fn verdict(&self) -> Result<MemoryVerdict, LogError> {
        let known = self.lookup.known.as_ref();
        Ok(match self.lookup.recalled.decision {
            Decision::Run(_) | Decision::Renew(_) => MemoryVerdict::Run(self.claim()),
            Decision::Probe => MemoryVerdict::Probe(self.claim()),
            Decision::Wait => MemoryVerdict::RunsElsewhere,
            Decision::IsRunning => MemoryVerdict::Known(Box::new(Outcome::IsRunning)),
            Decision::InDoubt => self.in_doubt(),
            Decision::Conflict => {
                MemoryVerdict::Known(Box::new(Outcome::Conflict(Box::new(self.conflict(known)?))))
            }
            Decision::AnswerSettled => {
                MemoryVerdict::Known(Box::new(Outcome::Restored(self.settled(known))))
            }
            Decision::Answer => match self.answer(known)? {
                Some(result) => MemoryVerdict::Known(Box::new(Outcome::Restored(result))),
                // What it was is gone, and whether it was is what the log says.
                None => self.in_doubt(),
            },
        })
    }

    fn claim(&self) -> CallClaim {
        let entry = self.lookup.entry();
        let generation = self.lookup.generation();
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
        let is_named = match &self.identity.keys {
            CallKeys::Once(_) => true,
            CallKeys::Id { id, .. } => *id == self.lookup.recalled.key,
            CallKeys::Call { .. } => false,
        };
        let known = self.lookup.known.as_ref();
        let is_repeated = matches!(self.lookup.recalled.decision, Decision::Renew(_));
        match known.filter(|known| known.attempt > 0 && !is_repeated) {
            _ if is_named => String::new(),
            Some(known) => known.origin.clone(),
            None => self.store.own_origin(),
        }
    }

    fn runs_again(&self) -> Option<RunsAgain> {
        let known = self
            .lookup
            .known
            .as_ref()
            .filter(|known| known.attempt > 0)?;
        Some(match self.lookup.recalled.decision {
            Decision::Renew(_) => RunsAgain::Renewed,
            _ if known.settlement.is_some() => RunsAgain::SettledNotDone,
            _ if known.did_nothing() => RunsAgain::DidNothing,
            _ => RunsAgain::Idempotent,
        })
    }

    fn in_doubt(&self) -> MemoryVerdict {
        let known = self.lookup.known.as_ref();
        let start = known.map(|known| {
            Box::new(UnsettledStart {
                settle_id: self.lookup.entry().settle_id(&self.request.call.id),
                started_ms: known.facts.as_ref().map(|facts| facts.started_ms),
                log: self.store.log_path(&known.log),
                answer: self.recorded_doubt(known),
            })
        });
        MemoryVerdict::Known(Box::new(Outcome::InDoubt {
            cause: DoubtCause::EndNotLogged(start),
            output: CallOutput::default(),
        }))
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
        if !self.store.is_at_hand() {
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
        let id = recorded_text(&self.request.call.id, self.mask);
        let is_once = self
            .request
            .accepted
            .is_some_and(|accepted| accepted.tool.once.is_some());
        ResultSource {
            log: self.store.log_path(&known.log),
            ended_ms,
            other_id: (is_once && *facts.tool_use_id != *id).then(|| facts.tool_use_id.clone()),
        }
    }

    fn settled(&self, known: Option<&KnownCall>) -> RestoredResult {
        let settlement = known.and_then(|known| known.settlement.as_ref());
        let result = settlement.and_then(|settlement| settlement.result.clone());
        RestoredResult {
            status: Status::Resolved,
            is_error: settlement.is_some_and(|settlement| settlement.is_error),
            content: ResultContent::Text(result.unwrap_or_default()),
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
        Ok(CallConflict {
            tool: facts.map(|facts| facts.tool.clone()).unwrap_or_default(),
            input: input.unwrap_or_else(|| Input::empty().text().to_owned()),
            result: result.map(|result| result.content.to_text().into_owned()),
            is_once: self
                .request
                .accepted
                .is_some_and(|accepted| accepted.tool.once.is_some()),
            log: self.store.log_path(&log),
        })
    }
}
