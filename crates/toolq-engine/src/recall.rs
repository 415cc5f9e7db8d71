//! Asks the memory about calls before their turn runs: what is known of them, they needn't wait for.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use crate::state::EngineState;
use toolq_core::types::{
    Backing, Call, CallHistory, CallMemory, CheckedCall, EarlierRun, Effect, EmitError,
    MemoryVerdict, Outcome, RecalledCall, RunsAgain, Tool, ToolsConfig, TurnOrigin, Verdict,
};

/// How deep agents are followed that work for agents. Deeper ones count as if they wrote.
const MAX_DEPTH: u32 = 8;

/// The writes of an input. What is read before one that has run must not show what came after, and what is read behind one that
/// hasn't must.
#[derive(Debug, Clone, Default)]
pub struct RememberedWrites {
    /// Those that have run or may have, in their order, each with its turn, its position and the run that made it.
    ran: Vec<(usize, usize, EarlierRun)>,
    /// The turn and the position of the first one that may run now.
    first_open: Option<(usize, usize)>,
}

/// Where the result of a read may come from.
enum ReadFrom<'a> {
    /// It is read anew.
    Nowhere,
    /// From the first of these runs that has it.
    Runs([Option<&'a EarlierRun>; 2]),
    /// From a run of the same log that didn't come to its end.
    Unfinished,
}

impl RememberedWrites {
    /// Returns the run of the nearest write behind a call, and that of the last one before it, from whose log the other may have the
    /// result. Not if a write before it may run now.
    fn runs_for(&self, call: &Call) -> ReadFrom<'_> {
        let at = (call.turn, call.position);
        let (before, behind) = self.ran.split_at(
            self.ran
                .partition_point(|(turn, position, _)| (*turn, *position) < at),
        );
        let is_behind_open = self.first_open.is_some_and(|open| open < at);
        let behind = behind.first().map(|(_, _, run)| run);
        let before = before.last().map(|(_, _, run)| run);
        match (behind, before.filter(|_| !is_behind_open)) {
            (None, None) if is_behind_open => ReadFrom::Nowhere,
            (None, None) => ReadFrom::Unfinished,
            (behind, before) => ReadFrom::Runs([behind, before]),
        }
    }

    fn add(&mut self, call: &Call, run: EarlierRun) {
        let (turn, position) = (call.turn, call.position);
        let key = |(turn, position, _): &(usize, usize, _)| (*turn, *position);
        if let Err(at) = self.ran.binary_search_by_key(&(turn, position), key) {
            self.ran.insert(at, (turn, position, run));
        }
    }

    /// Notes a write of which nothing is known.
    fn add_open(&mut self, call: &Call) {
        let at = (call.turn, call.position);
        self.first_open = Some(self.first_open.map_or(at, |first| first.min(at)));
    }
}

/// Returns whether calls of a tool may change something, so that the memory keeps them: because the tool says so, or because it is an
/// agent that has such a tool.
pub(crate) fn may_write(tool: &Tool, tools: &ToolsConfig) -> bool {
    may_write_at(tool, tools, MAX_DEPTH)
}

fn may_write_at(tool: &Tool, tools: &ToolsConfig, depth: u32) -> bool {
    let agent_writes = |name: &String| match (tools.get(name), depth) {
        (Some(tool), 1..) => may_write_at(tool, tools, depth - 1),
        _ => true,
    };
    tool.effect != Effect::Read
        || matches!(&tool.backing, Some(Backing::Agent(agent)) if agent.tools.iter().any(agent_writes))
}

/// Adds to calls what the memory knows of them, without holding up other work.
pub(crate) async fn recall_calls(
    memory: &Arc<dyn CallMemory>,
    tools: &Arc<ToolsConfig>,
    writes: &mut RememberedWrites,
    (mut calls, origin): (Vec<CheckedCall>, &TurnOrigin),
) -> Vec<CheckedCall> {
    if !writes.concern(memory.history(), tools, &calls) {
        return calls;
    }
    // Calls of other clients must not overtake one that is looked up.
    if memory.history().is_at_hand() || !memory.history().remembers_ids() {
        writes.recall(memory.history(), tools, &mut calls, origin);
        return calls;
    }
    let (memory, tools, origin) = (Arc::clone(memory), Arc::clone(tools), origin.clone());
    let mut found = std::mem::take(writes);
    let work = spawn_blocking(move || {
        found.recall(memory.history(), &tools, &mut calls, &origin);
        (calls, found)
    });
    match work.await {
        Ok((calls, found)) => {
            *writes = found;
            calls
        }
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

impl RememberedWrites {
    /// Whether the memory may know something of one of these calls.
    fn concern(
        &self,
        history: &dyn CallHistory,
        tools: &ToolsConfig,
        calls: &[CheckedCall],
    ) -> bool {
        let is_asked = |checked: &CheckedCall| match &checked.verdict {
            Verdict::Accepted(accepted) => {
                may_write(&accepted.tool, tools)
                    || accepted.needs_approval
                    || !self.ran.is_empty()
                    || history.resumes_reads()
            }
            Verdict::Rejected(_) => true,
        };
        // A client's call is looked up when it starts, unless it can't start before somebody approved it.
        let is_approved_later = |checked: &CheckedCall| {
            let accepted = checked.verdict.accepted();
            accepted.is_some_and(|call| call.needs_approval && call.tool.once.is_some())
        };
        let is_looked_up =
            |checked| is_asked(checked) && (history.remembers_ids() || is_approved_later(checked));
        calls.iter().any(is_looked_up)
    }

    /// Adds to the calls of a turn what is known of them. Blocks, unless the history is at hand.
    pub fn recall(
        &mut self,
        history: &dyn CallHistory,
        tools: &ToolsConfig,
        calls: &mut [CheckedCall],
        origin: &TurnOrigin,
    ) {
        if !self.concern(history, tools, calls) {
            return;
        }
        for checked in &mut *calls {
            match recall_write(history, tools, checked, origin) {
                Some(run) => self.add(&checked.call, run),
                None if is_open_write(checked, tools) => self.add_open(&checked.call),
                None => {}
            }
        }
        for checked in calls {
            recall_read(history, tools, self, checked, origin);
        }
    }

    /// Finds the writes of a turn that have run or may have, so that what is read in earlier turns doesn't show what came after.
    /// Blocks, unless the history is at hand.
    pub fn find(
        &mut self,
        history: &dyn CallHistory,
        tools: &ToolsConfig,
        calls: &[CheckedCall],
        origin: &TurnOrigin,
    ) {
        for checked in calls
            .iter()
            .filter(|checked| is_first_write(checked, tools))
        {
            let request = RecalledCall {
                call: &checked.call,
                accepted: checked.verdict.accepted(),
                origin,
            };
            // One that can't be looked up is answered so when its turn comes.
            if let Some(run) = history.find_run(&request).ok().flatten() {
                self.add(&checked.call, run);
            }
        }
    }
}

/// Returns whether a call may write, and doesn't repeat another one.
pub(crate) fn is_first_write(checked: &CheckedCall, tools: &ToolsConfig) -> bool {
    let accepted = checked.verdict.accepted();
    accepted.is_some_and(|accepted| may_write(&accepted.tool, tools)) && checked.repeats.is_none()
}

/// Returns whether a call writes, and nothing is known of it.
fn is_open_write(checked: &CheckedCall, tools: &ToolsConfig) -> bool {
    is_first_write(checked, tools) && checked.known.is_none() && checked.unsettled.is_none()
}

/// Adds what is known of a call that isn't `read`. Returns the run that made it, if it has run or may have.
fn recall_write(
    history: &dyn CallHistory,
    tools: &ToolsConfig,
    checked: &mut CheckedCall,
    origin: &TurnOrigin,
) -> Option<EarlierRun> {
    let accepted = checked.verdict.accepted();
    let reads = accepted.is_some_and(|accepted| !may_write(&accepted.tool, tools));
    if reads || checked.repeats.is_some() {
        return None;
    }
    let request = RecalledCall {
        call: &checked.call,
        accepted,
        origin,
    };
    match history.recall(&request) {
        Ok(recollection) => {
            match recollection.verdict {
                MemoryVerdict::Known(outcome) => checked.known = Some(outcome),
                // These are decided when the call starts.
                MemoryVerdict::Probe(_, doubt) => {
                    checked.known = None;
                    checked.unsettled = Some(doubt);
                }
                MemoryVerdict::RunsElsewhere => {
                    checked.known = None;
                    checked.unsettled = Some(Box::new(Outcome::IsRunning));
                }
                MemoryVerdict::Run(claim) => {
                    checked.is_renewed = claim.again == Some(RunsAgain::Renewed);
                }
                MemoryVerdict::Forgettable => {}
            }
            checked.approval = recollection.approval.map(Box::new);
            recollection.run
        }
        Err(EmitError(why)) if accepted.is_some() => {
            checked.known = Some(Box::new(Outcome::LogRefused(why)));
            None
        }
        Err(_) => None,
    }
}

/// Adds the result that a call had around the writes of its input, if it only reads.
fn recall_read(
    history: &dyn CallHistory,
    tools: &ToolsConfig,
    writes: &RememberedWrites,
    checked: &mut CheckedCall,
    origin: &TurnOrigin,
) {
    let Some(accepted) = checked.verdict.accepted() else {
        return;
    };
    if checked.known.is_some() || checked.repeats.is_some() || may_write(&accepted.tool, tools) {
        return;
    }
    let request = RecalledCall {
        call: &checked.call,
        accepted: Some(accepted),
        origin,
    };
    // What was said about it counts, whether it reads or writes.
    if accepted.needs_approval
        && let Ok(recollection) = history.recall(&request)
    {
        checked.approval = recollection.approval.map(Box::new);
    }
    // A result that can't be read again is read anew.
    let read = |run| history.recall_read(&request, run).ok().flatten();
    let result = match writes.runs_for(&checked.call) {
        ReadFrom::Nowhere => None,
        ReadFrom::Runs(runs) => runs.into_iter().flatten().find_map(|run| read(Some(run))),
        ReadFrom::Unfinished => read(None),
    };
    checked.known = result.map(|result| Box::new(Outcome::Restored(result)));
}

/// Returns the calls of which the memory knows no outcome. Only their tools need a description.
pub(crate) fn open_calls(calls: &[CheckedCall]) -> impl Iterator<Item = &Call> {
    let open = calls.iter().filter(|checked| checked.known.is_none());
    open.map(|checked| &checked.call)
}

impl EngineState {
    pub(crate) async fn recall(
        &self,
        calls: Vec<CheckedCall>,
        writes: &mut RememberedWrites,
    ) -> Vec<CheckedCall> {
        match &self.settings.memory {
            Some(memory) => {
                let calls = (calls, &self.turn_origin);
                recall_calls(memory, &self.settings.tools, writes, calls).await
            }
            None => calls,
        }
    }
}
