//! What a log knows of agents: turns below calls, answers of models, and which of that holds for a later run.

use crate::open::Log;
use serde_json::value::RawValue;

use super::*;

use toolq_core::types::{AgentInvocation, Effect, Invocation, Memory, Past, Response, Stop, Usage};

/// A log below which an agent works on call 0 of turn 0.
struct Agent {
    log: SessionLog,
    lead: Arc<CallRef>,
}

impl Agent {
    /// Begins, or goes on.
    fn at(path: &Path, begin: Begin) -> Self {
        let log = OpenLog::open(path, begin).unwrap();
        let log = log.begin(&session(), Arc::new(Mask::default()), clock());
        let mut log = log.unwrap();
        let mut lead = accepted(0, tool("lead"), false, "{}");
        if let Verdict::Accepted(accepted) = &mut lead.verdict {
            let task = AgentInvocation { prompt: None };
            accepted.invocation = Some(Invocation::Agent(task));
        }
        let turn = Event::TurnStarted {
            turn: 0,
            within: None,
        };
        let queued = Event::Queued {
            checked: &lead,
            batch: Some(0),
        };
        log.tell(&[turn, queued]).unwrap();
        let call = Arc::new(CallRef::new(&lead.call, Some(0)));
        start(&mut log, &call, &lead);
        Self { log, lead: call }
    }

    /// Its call of a tool in its turn 0. All but `pay` only look.
    fn asks(&self, name: &str, input: &str) -> Checked {
        let mut tool = tool(name);
        if name != "pay" {
            tool.effect = Effect::Read;
        }
        let mut checked = accepted(0, tool, false, input);
        checked.call.within = Some(Arc::clone(&self.lead));
        checked
    }

    fn turn(&mut self, checked: &Checked) {
        let turn = Event::TurnStarted {
            turn: 0,
            within: Some(&self.lead),
        };
        let queued = Event::Queued {
            checked,
            batch: Some(0),
        };
        self.log.tell(&[turn, queued]).unwrap();
        let call = CallRef::new(&checked.call, Some(0));
        start(&mut self.log, &call, checked);
        finish(&mut self.log, &call, &succeeded("seen"), "seen", (1, 1)).unwrap();
    }

    fn hears(&mut self) {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let response = Response {
            body: raw("{\"content\":[]}"),
            message: raw("{}"),
            text: String::new(),
            stop: Stop::Done,
            unknown_stop: None,
            model: Some("m".to_owned()),
            usage: Usage {
                input: 7,
                ..Usage::default()
            }
            .into(),
        };
        let heard = Event::AgentMessage {
            call: &self.lead,
            message: &response.message,
            response: Some((&response, "digest")),
            turn: 0,
        };
        self.log.tell(&[heard]).unwrap();
    }
}

fn start(log: &mut SessionLog, call: &CallRef, checked: &Checked) {
    let Verdict::Accepted(accepted) = &checked.verdict else {
        unreachable!()
    };
    let started = Event::Started {
        call,
        accepted,
        attempt: 1,
        idempotency_key: "key",
    };
    log.tell(&[started]).unwrap();
}

/// What the log at `path` tells agents.
fn memory(path: &Path) -> (Arc<History>, Recollection) {
    let mut history = History::default();
    let log = Log::open(path, |record, end| history.take(record, end)).unwrap();
    history.read_from(path.to_owned(), log.file().unwrap());
    let history = Arc::new(history);
    let recollection = Recollection::new(Arc::clone(&history), Arc::new(Mask::default()));
    (history, recollection)
}

/// FAULTS 117: what an agent heard and what it called is known by its place below the agent's call.
#[test]
fn what_an_agent_did_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mut agent = Agent::at(&path, Begin::Next);
    let look = agent.asks("look", "{}");
    let (other, lead) = (agent.asks("look", "{\"n\":1}"), Arc::clone(&agent.lead));
    agent.hears();
    agent.turn(&look);
    drop(agent);
    let (history, memory) = memory(&path);
    let told = memory.told(&lead, 0).unwrap().unwrap();
    assert_eq!(
        (told.body.get(), told.model.as_deref()),
        ("{\"content\":[]}", Some("m"))
    );
    assert!(memory.told(&lead, 1).unwrap().is_none());
    let Ok(Past::Answered(answered)) = memory.past(&look) else {
        panic!("it has its result");
    };
    assert_eq!(answered.status, "ok");
    let conflict = memory.past(&other).unwrap_err().0;
    assert_eq!(
        conflict,
        "turn 0, call 0: the session log has look {}, the agent has look {\"n\":1}"
    );
    let taken = memory.taken(&lead);
    assert_eq!((taken.len(), taken[0].1.0.unwrap().input), (1, 7));
    assert_eq!((history.len(), history.entries().count()), (1, 2));
    drop((history, memory));
    // Nothing of it is written again.
    let records = lines(&path).len();
    let mut again = Agent::at(&path, Begin::Resume);
    again.turn(&look);
    drop(again);
    let new: Vec<String> = lines(&path)[records..]
        .iter()
        .map(|record| record["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(new, ["session", "tool_start", "tool_start", "tool_result"]);
}

/// An answer that never came whole is asked for again, and its calls may be others: those that had started of it, since
/// they only look, are nothing to go on from.
#[test]
fn a_turn_without_its_answer_does_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mut agent = Agent::at(&path, Begin::Next);
    let look = agent.asks("look", "{}");
    agent.turn(&look);
    drop(agent);
    let first = memory(&path).1;
    assert!(matches!(first.past(&look), Ok(Past::None)));
    drop(first);
    // It asks for something else now.
    let mut again = Agent::at(&path, Begin::Resume);
    let seek = again.asks("seek", "{}");
    again.turn(&seek);
    again.hears();
    drop(again);
    let second = memory(&path).1;
    assert!(matches!(second.past(&seek), Ok(Past::Answered(_))));
    let conflict = second.past(&look).unwrap_err().0;
    assert!(conflict.contains("the session log has seek"), "{conflict}");
    let turns = lines(&path);
    let turns = turns.iter().filter(|record| record["type"] == "turn");
    assert_eq!(turns.count(), 3);
}

/// FAULTS 118: what has started and writes is of an answer that was whole: another call in its place is a conflict, though
/// the turn began while the model still spoke.
#[test]
fn what_writes_is_of_no_answer_that_broke_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mut agent = Agent::at(&path, Begin::Next);
    let pay = agent.asks("pay", "{}");
    let other = agent.asks("pay", "{ }");
    agent.turn(&pay);
    agent.hears();
    drop(agent);
    let memory = memory(&path).1;
    assert!(matches!(memory.past(&pay), Ok(Past::Answered(_))));
    let conflict = memory.past(&other).unwrap_err().0;
    assert!(conflict.contains("the session log has pay"), "{conflict}");
}

/// The answer of a later run comes whole, and that run ends before its turn begins: what stood in its places is that of
/// an answer which nobody heard, also where it is the same call.
#[test]
fn a_later_answer_has_no_calls_of_an_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mut agent = Agent::at(&path, Begin::Next);
    let (look, seek) = (agent.asks("look", "{}"), agent.asks("seek", "{}"));
    agent.turn(&look);
    drop(agent);
    let mut again = Agent::at(&path, Begin::Resume);
    again.hears();
    let lead = Arc::clone(&again.lead);
    drop(again);
    let memory = memory(&path).1;
    assert!(memory.told(&lead, 0).unwrap().is_some());
    for call in [look, seek] {
        assert!(matches!(memory.past(&call), Ok(Past::None)));
    }
}
