//! Which calls are the same, over the ids, messages and loops of real vendors. Each scenario says what the memory holds, which
//! call comes, and what the people involved mean.

use std::convert::Infallible;
use std::path::Path;

use crate::identity::{CallDescription, CallKeys};
use crate::memory::MemoryKey;
use crate::memory::decision::{Asker, Attempt, AttemptEnd, Decision, LogAccess, ResultKind};
use crate::memory::decision::{Member, recall};
use toolq_core::json::{JsonText, meaning_digest};
use toolq_core::types::{CallContext, ContextDigest};

const ORDER: &str = r#"{"order":7}"#;
const OTHER_ORDER: &str = r#"{"order":8}"#;
const ANTHROPIC: &str = "toolu_01MaGNMRY1hoB34nBTCPD2rx";
const OPENAI: &str = "call_tVwplip8EyrgMsD2ZarNBIFJ";
const MESSAGE: &str = "chatcmpl-xqzKvqcZm67JshRESRk3eHsq4K3TV7Hb";
const OTHER_MESSAGE: &str = "chatcmpl-a0eBc7d1f2334455667788aabbccddee";
const SHARED_ID: &str = "call_f0de99f4-6fe1-4235-b4d9-1fcb010fa197";

/// A call as the memory has it, or as it comes.
#[derive(Clone, Copy)]
struct Call {
    id: &'static str,
    tool: &'static str,
    input: &'static str,
    runs_as: Option<&'static str>,
    message: Option<&'static str>,
    before: Option<&'static str>,
    root: &'static str,
    position: usize,
    end: End,
    shares_id: bool,
    once: Option<&'static str>,
    /// How many calls of the document that look the same come before it.
    twins_before: usize,
}

#[derive(Clone, Copy)]
enum End {
    Done,
    Refused,
    TimedOut,
    Nothing,
    Doubt,
}

#[derive(Debug, PartialEq, Eq)]
enum Meant {
    Run,
    Memory,
    Doubt,
    Conflict,
}

fn call(id: &'static str, tool: &'static str, input: &'static str) -> Call {
    Call {
        id,
        tool,
        input,
        runs_as: None,
        message: None,
        before: None,
        root: "/w",
        position: 0,
        end: End::Done,
        shares_id: false,
        once: None,
        twins_before: 0,
    }
}

impl Call {
    fn keys(&self) -> CallKeys {
        let keys = CallKeys::of(&CallDescription {
            id: self.id,
            tool: self.tool,
            position: self.position,
            meaning: meaning_digest(JsonText::new(self.input)),
            root: Path::new(self.root),
            shares_id: self.shares_id,
        });
        let Some(order) = self.once else { return keys };
        let values = [Some(JsonText::new(order))];
        CallKeys::Once {
            values: MemoryKey::of_values("/w/tools.yaml", self.tool, values),
            earlier: Some(Box::new(keys)),
        }
    }

    fn context(&self) -> CallContext {
        let before = self
            .before
            .map(|text| ContextDigest::of(&[text.as_bytes()]));
        CallContext::new(self.message, before)
    }

    fn is_same_as(&self, other: &Self) -> bool {
        let meaning = |json| meaning_digest(JsonText::new(json));
        let runs = |call: &Self| meaning(call.runs_as.unwrap_or(call.input));
        self.tool == other.tool
            && (meaning(self.input) == meaning(other.input) || runs(self) == runs(other))
    }

    fn attempt(&self, asking: &Self) -> Attempt {
        Attempt {
            number: 1,
            settled: None,
            log: LogAccess::Free,
            end: match self.end {
                End::Done => AttemptEnd::Result(ResultKind::Done),
                End::Refused => AttemptEnd::Result(ResultKind::Refused),
                End::TimedOut => AttemptEnd::Result(ResultKind::Open),
                End::Nothing => AttemptEnd::Nothing,
                End::Doubt => AttemptEnd::Unknown,
            },
            is_same_call: self.is_same_as(asking),
            is_expired: false,
        }
    }
}

/// Returns what becomes of `asking`, where the calls of `memory` were made in this order.
fn ask(asking: &Call, memory: &[Call]) -> Meant {
    let mut taken: Vec<(MemoryKey, u32)> = Vec::new();
    for _ in 0..asking.twins_before {
        let (key, instance, _) = recall_among(asking, memory, &taken);
        taken.push((key, instance));
    }
    match recall_among(asking, memory, &taken).2 {
        Decision::Run(_) | Decision::Renew(_) => Meant::Run,
        Decision::Answer | Decision::AnswerSettled => Meant::Memory,
        Decision::InDoubt => Meant::Doubt,
        Decision::Conflict => Meant::Conflict,
        other => panic!("{other:?}"),
    }
}

fn recall_among(
    asking: &Call,
    memory: &[Call],
    taken: &[(MemoryKey, u32)],
) -> (MemoryKey, u32, Decision) {
    let mut find = |key: &MemoryKey| {
        let with_key = memory.iter().filter(|call| call.keys().new_key() == key);
        let members = with_key.zip(1..).map(|(call, instance)| Member {
            instance,
            context: call.context(),
            attempt: Some(call.attempt(asking)),
            is_taken: taken.contains(&(key.clone(), instance)),
        });
        Ok::<_, Infallible>(members.collect())
    };
    let asker = Asker {
        is_once: asking.once.is_some(),
        ..Asker::default()
    };
    let Ok(recalled) = recall(&asking.keys(), asking.context(), asker, &mut find);
    (recalled.key, recalled.instance, recalled.decision)
}

fn check(name: &str, meant: &Meant, asking: Call, memory: &[Call]) {
    assert_eq!(ask(&asking, memory), *meant, "{name}");
}

#[test]
fn one_call_is_known_in_all_its_forms() {
    let weak = call("E2e1u80j2", "pay", r#"{"order":7,"amount":100.0}"#);
    let strong = Call { id: OPENAI, ..weak };
    let resent = r#"{"order":7,"amount":100}"#;
    let memory = &Meant::Memory;
    check(
        "the same file again",
        memory,
        call("p1", "pay", ORDER),
        &[call("p1", "pay", ORDER)],
    );
    check(
        "resent through JavaScript",
        memory,
        Call {
            input: resent,
            ..weak
        },
        &[weak],
    );
    check(
        "the same with a random id",
        memory,
        Call {
            input: resent,
            ..strong
        },
        &[strong],
    );
    let runs_as = r#"{"order":7,"currency":"EUR"}"#;
    let coerced = Call {
        runs_as: Some(runs_as),
        ..call(OPENAI, "pay", r#"{"order":"7"}"#)
    };
    let sent_back = Call {
        input: runs_as,
        ..coerced
    };
    check(
        "the host sends defaults and coerced values back",
        memory,
        sent_back,
        &[coerced],
    );
    let by_mount = |root| Call {
        root,
        ..call(ANTHROPIC, "pay", ORDER)
    };
    check(
        "a container has another path",
        memory,
        by_mount("/mnt/w"),
        &[by_mount("/home/u/w")],
    );
    let response = Call {
        message: Some(MESSAGE),
        ..call("", "pay", ORDER)
    };
    let conversation = Call {
        before: Some("hello"),
        ..call("", "pay", ORDER)
    };
    check(
        "without ids, as a response and then in its conversation",
        memory,
        conversation,
        &[response],
    );
    check(
        "a random id with another input",
        &Meant::Conflict,
        call(ANTHROPIC, "pay", OTHER_ORDER),
        &[call(ANTHROPIC, "pay", ORDER)],
    );
    check(
        "a random id with another tool",
        &Meant::Conflict,
        call(ANTHROPIC, "send", ORDER),
        &[call(ANTHROPIC, "pay", ORDER)],
    );
}

#[test]
fn second_calls_that_are_meant_run() {
    let run = &Meant::Run;
    let at = |id, tool, input, before| Call {
        before: Some(before),
        ..call(id, tool, input)
    };
    let of = |id, tool, input, message| Call {
        message: Some(message),
        ..call(id, tool, input)
    };
    check(
        "ids beyond 2^53",
        run,
        call("call_0", "delete", r#"{"id":1234567890123456789}"#),
        &[call("call_0", "delete", r#"{"id":1234567890123456788}"#)],
    );
    let test = r#"{"c":"npm test"}"#;
    check(
        "without ids: tests again after an edit",
        run,
        at("", "bash", test, "u,test,fail,edit"),
        &[at("", "bash", test, "u")],
    );
    let pull = r#"{"c":"git pull"}"#;
    check(
        "ids that begin anew in each turn",
        run,
        at("bash:0", "bash", pull, "u,a,b"),
        &[at("bash:0", "bash", pull, "u")],
    );
    check(
        "two conversations in one root",
        run,
        at("functions.bash:0", "bash", pull, "bug B"),
        &[at("functions.bash:0", "bash", pull, "bug A")],
    );
    let numbered = |before| Call {
        message: Some("chatcmpl-66"),
        ..at("bash:0", "bash", pull, before)
    };
    check(
        "ids of messages that are equal by chance",
        run,
        numbered("q2"),
        &[numbered("q1")],
    );
    check(
        "one id of two answers",
        run,
        of("functions.pay:0", "pay", ORDER, OTHER_MESSAGE),
        &[of("functions.pay:0", "pay", ORDER, MESSAGE)],
    );
    let derived = |message| of("call_770ef254227f", "bash", pull, message);
    check(
        "an id that is derived from the input",
        run,
        derived(OTHER_MESSAGE),
        &[derived(MESSAGE)],
    );
    for id in [
        "toolu_1",
        "call_0000000000000001",
        "call_get_weather_in_paris_1",
        "toolq_0123456789abcdef",
    ] {
        check(
            id,
            run,
            call(id, "pay", OTHER_ORDER),
            &[call(id, "pay", ORDER)],
        );
    }
    let shared = |position, input| Call {
        position,
        shares_id: true,
        ..call(SHARED_ID, "pay", input)
    };
    check(
        "one id for all calls of a message",
        run,
        shared(1, OTHER_ORDER),
        &[shared(0, ORDER)],
    );
}

/// A random id may look shared in one form of the input, and not in another.
#[test]
fn an_id_that_looks_shared_finds_what_it_did_alone() {
    let alone = call(SHARED_ID, "pay", ORDER);
    let shared = Call {
        shares_id: true,
        ..alone
    };
    check("alone, then shared", &Meant::Memory, shared, &[alone]);
    check("shared, then alone", &Meant::Memory, alone, &[shared]);
    let other = Call {
        input: OTHER_ORDER,
        ..shared
    };
    check("another call of the same id", &Meant::Run, other, &[alone]);
    let doubtful = Call {
        end: End::Doubt,
        ..alone
    };
    check(
        "alone in doubt, then shared",
        &Meant::Doubt,
        shared,
        &[doubtful],
    );
}

#[test]
fn calls_that_look_the_same_are_counted() {
    let pay = call("p1", "pay", ORDER);
    let doubtful = Call {
        end: End::Doubt,
        ..pay
    };
    let second = Call {
        twins_before: 1,
        ..pay
    };
    check(
        "the second of two equal turns",
        &Meant::Memory,
        second,
        &[pay, pay],
    );
    check(
        "the second of two, of which one was made",
        &Meant::Run,
        second,
        &[pay],
    );
    check(
        "killed in the second, and only that line again",
        &Meant::Doubt,
        pay,
        &[pay, doubtful],
    );
    check(
        "killed in the third, and only that line again",
        &Meant::Doubt,
        pay,
        &[pay, pay, doubtful],
    );
    let nothing = Call {
        end: End::Nothing,
        ..pay
    };
    check(
        "one of two wasn't started",
        &Meant::Memory,
        pay,
        &[nothing, pay],
    );
    check(
        "and the other one runs",
        &Meant::Run,
        second,
        &[nothing, pay],
    );
}

#[test]
fn what_did_nothing_runs_and_what_failed_is_answered() {
    let strong = |end| Call {
        end,
        ..call(ANTHROPIC, "pay", ORDER)
    };
    check(
        "connection refused yesterday",
        &Meant::Run,
        strong(End::Done),
        &[strong(End::Nothing)],
    );
    check(
        "failed yesterday",
        &Meant::Memory,
        strong(End::Done),
        &[strong(End::Refused)],
    );
    check(
        "timed out yesterday",
        &Meant::Memory,
        strong(End::Done),
        &[strong(End::TimedOut)],
    );
    check(
        "killed yesterday",
        &Meant::Doubt,
        strong(End::Done),
        &[strong(End::Doubt)],
    );
}

#[test]
fn a_tool_that_runs_once_is_known_by_its_values() {
    let once = |id, input, end| Call {
        end,
        once: Some("7"),
        ..call(id, "refund", input)
    };
    let asking = once(OPENAI, ORDER, End::Done);
    let first = |end| once(ANTHROPIC, ORDER, end);
    check("done", &Meant::Memory, asking, &[first(End::Done)]);
    check(
        "from another directory",
        &Meant::Memory,
        Call {
            root: "/w/sub",
            ..asking
        },
        &[first(End::Done)],
    );
    let decimal = Call {
        once: Some("7.0"),
        input: r#"{"order":7.0}"#,
        ..asking
    };
    check("7.0 and 7", &Meant::Memory, decimal, &[first(End::Done)]);
    check(
        "failed with an exit code",
        &Meant::Run,
        asking,
        &[first(End::Refused)],
    );
    check(
        "timed out after it began",
        &Meant::Doubt,
        asking,
        &[first(End::TimedOut)],
    );
    check("in doubt", &Meant::Doubt, asking, &[first(End::Doubt)]);
    let before = |end| Call {
        once: None,
        ..once(OPENAI, ORDER, end)
    };
    let name = "before its tool ran once for them";
    check(name, &Meant::Memory, asking, &[before(End::Done)]);
    check(name, &Meant::Doubt, asking, &[before(End::Doubt)]);
    check(name, &Meant::Run, asking, &[before(End::Nothing)]);
    let noted = once(OPENAI, r#"{"order":7,"note":"b"}"#, End::Done);
    check(
        "with another note",
        &Meant::Conflict,
        noted,
        &[first(End::Done)],
    );
    check(
        "with another note after a failure",
        &Meant::Run,
        noted,
        &[first(End::Refused)],
    );
    check(
        "for another order",
        &Meant::Run,
        Call {
            once: Some("8"),
            ..asking
        },
        &[first(End::Done)],
    );
}

/// Nothing in the bytes tells these apart. Most are answered rather than repeated; the last two are repeated.
#[test]
fn what_nothing_tells_apart_is_decided_as_documented() {
    let report = Call {
        before: Some("send the report"),
        ..call("", "report", "{}")
    };
    check("the same words each day", &Meant::Memory, report, &[report]);
    let poll = Call {
        message: Some(MESSAGE),
        ..call(ANTHROPIC, "poll", "{}")
    };
    check(
        "an answer from a gateway's cache",
        &Meant::Memory,
        poll,
        &[poll],
    );
    let at = |before, end| Call {
        before: Some(before),
        end,
        ..call("bash:0", "bash", "{}")
    };
    check(
        "a host that compacts its history after a crash",
        &Meant::Run,
        at("short", End::Done),
        &[at("long", End::Doubt)],
    );
    let pay = call("p1", "pay", ORDER);
    check(
        "a co-process that is sent a line again",
        &Meant::Run,
        Call {
            twins_before: 1,
            ..pay
        },
        &[pay],
    );
}
