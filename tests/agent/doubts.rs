//! A call of an agent that may have done its work, which nobody knows: the agent stops there until that is settled.

use serde_json::json;

use crate::api::{Act, Step, calls, message, ok, streamed, text, uses};
use crate::play::{Play, file, killed, n, one, whom};

/// FAULTS 118: the agent stops at the call, tells which it is, and goes on when that is settled.
#[test]
fn an_agent_stops_at_a_call_in_doubt() {
    for done in [true, false] {
        let play = killed(&file());
        let first = play.resume().exits(3);
        let said = &first.texts()[0];
        assert!(
            said.starts_with("In doubt: lead stopped at a call of fatal (a1)")
                && said.contains("`toolq log resolve`"),
            "{said}"
        );
        // What the model asked for beside it runs: it didn't wait for the answer.
        assert_eq!(play.did("pay 3"), 1);
        let records = play.stage.log().len();
        for _ in 0..2 {
            assert_eq!(play.resume().exits(3).stdout, first.stdout);
        }
        assert_eq!(play.api.heard().len(), 1, "and nobody is asked meanwhile");
        // Two sessions, and nothing in them.
        assert_eq!(play.stage.log().len(), records + 4);
        let mut resolve = vec!["log", "resolve", "a1", "log.jsonl"];
        if done {
            resolve.extend(["--done", "--result", "done by hand"]);
        } else {
            resolve.push("--not-done");
        }
        play.stage.toolq(&resolve).exits(0);
        let last = play.resume().exits(0);
        let expected = if done { "done by hand" } else { "done 2" };
        assert!(last.texts()[0].contains(expected), "{}", last.stdout);
        assert_eq!(play.resume().exits(0).stdout, last.stdout);
        assert_eq!(play.api.heard().len(), 3);
        let effects = play.stage.effects();
        let keys: Vec<&String> = effects
            .iter()
            .filter(|effect| effect.starts_with("fatal"))
            .collect();
        assert_eq!(keys.len(), if done { 1 } else { 2 }, "{effects:?}");
        assert!(keys.iter().all(|key| *key == keys[0]), "FAULTS 101");
        assert_eq!(play.did("look 1"), 1);
        assert_eq!(play.used("lead")["turns_used"], 3);
        play.stage.log_is_in_order();
    }
}

/// The same of an agent that ends by itself while what its model spoke of still runs: whatever the end, there is a doubt.
#[test]
fn a_doubt_is_more_than_the_end_of_a_stream() {
    let send = "  send:\n    input_schema: {type: object, properties: {n: {type: integer}}}\n    http: {method: POST, url: \"${BASE}/send\"}\n";
    let file = (file() + send).replace("max_turns: 4", "max_turns: 4, stream: true");
    let file = file.replace("tools: [look, keep, pay, fatal]", "tools: [send]");
    let (before, helper) = file.split_once("  helper:").unwrap();
    let file = format!(
        "{before}  helper:{}",
        helper.replacen("write", "read\n    concurrency_safe: false", 1)
    );
    for reason in ["max_tokens", "broken"] {
        let folder = tempfile::tempdir().unwrap();
        let sent = folder.path().join("sent");
        let play = Play::new(&file, &one("lead"), move |body| {
            match body["model"].as_str() {
                None => {
                    std::fs::write(&sent, "").unwrap();
                    Act::Close
                }
                Some("helper") => calls(&[("send", n(1))]),
                Some(_) => {
                    let calls = uses(&[("helper", n(0))]);
                    let Act::Speak(mut steps) = streamed(ok(message(json!(calls), reason))) else {
                        panic!("it speaks");
                    };
                    // Its last two are the end.
                    let end = steps.len() - 2;
                    steps.insert(end, Step::Until(sent.clone()));
                    if reason == "broken" {
                        steps.truncate(end + 1);
                    }
                    Act::Speak(steps)
                }
            }
        });
        let ended = play.run(&[], None).exits(3);
        let said = &ended.texts()[0];
        assert!(
            said.starts_with("In doubt: lead stopped at a call of send (a0)"),
            "{reason}: {said}"
        );
        assert_eq!(play.resume().exits(3).stdout, ended.stdout, "{reason}");
        play.stage.log_is_in_order();
    }
}

/// Somebody may also say what the whole agent came to.
#[test]
fn an_agent_may_be_resolved_itself() {
    let play = killed(&file());
    let resolve = ["log", "resolve", "toolu_0", "log.jsonl", "--done"];
    let resolve = [&resolve[..], &["--result", "never mind"]].concat();
    play.stage.toolq(&resolve).exits(0);
    assert_eq!(play.resume().exits(0).texts(), ["never mind"]);
    assert_eq!(play.api.heard().len(), 1);
}

/// A probe is asked in agents, too.
#[test]
fn a_probe_settles_it() {
    let probed = file().replace(
        "  fatal:\n",
        "  fatal:\n    probe: [sh, -c, 'echo \"probed $1\"', sh, \"{n}\"]\n",
    );
    let play = killed(&probed);
    let done = play.resume().exits(0);
    assert!(done.texts()[0].contains("probed 2"), "{}", done.stdout);
    assert_eq!(
        play.stage.story("a1")[..4],
        [
            "tool_call ",
            "tool_start 1",
            "probe_start ",
            "probe_end done"
        ]
        .map(str::trim_end)
    );
    play.stage.log_is_in_order();
}

/// A request that was sent and not answered stops the agent at once: its model would only guess.
#[test]
fn a_doubt_of_this_run_stops_the_agent_too() {
    let send = "  send:\n    input_schema: {type: object, properties: {n: {type: integer}}}\n    effect: write\n    http: {method: POST, url: \"${BASE}/send\"}\n";
    let file = (file() + send).replace("tools: [look, keep,", "tools: [send, look, keep,");
    let play = Play::new(&file, &one("lead"), |body| {
        match body["messages"].as_array().map(Vec::len) {
            None => Act::Close,
            Some(1) => calls(&[("send", n(1))]),
            Some(_) => text(
                body["messages"][2]["content"][0]["content"]
                    .as_str()
                    .unwrap(),
            ),
        }
    });
    let doubtful = play.run(&[], None).exits(3);
    assert!(
        doubtful.texts()[0].starts_with("In doubt: lead stopped at a call of send (a0)"),
        "{}",
        doubtful.stdout
    );
    assert_eq!(play.resume().exits(3).stdout, doubtful.stdout);
    let resolve = [
        "log",
        "resolve",
        "a0",
        "log.jsonl",
        "--done",
        "--result",
        "sent",
    ];
    play.stage.toolq(&resolve).exits(0);
    assert_eq!(play.resume().exits(0).texts(), ["sent"]);
    assert_eq!(play.api.heard().len(), 3);
    play.stage.log_is_in_order();
}

/// An agent that a resumed run doesn't come to is in doubt, and not just skipped, as long as a call of it may have done
/// something.
#[test]
fn an_agent_that_is_not_come_to_is_in_doubt() {
    let play = killed(&file());
    let held = play.run(&["--resume", "--max-calls", "0"], None).exits(3);
    assert!(
        held.texts()[0].starts_with("In doubt: lead may have done its work"),
        "{}",
        held.stdout
    );
    let come = play.resume().exits(3);
    assert!(
        come.texts()[0].starts_with("In doubt: lead stopped at a call of fatal"),
        "{}",
        come.stdout
    );
    play.stage.log_is_in_order();
}

/// FAULTS 108: who was handed a task by `new_task` goes on like any agent.
#[test]
fn a_task_that_was_handed_on_goes_on() {
    let file = file()
        .replace("[attempt_completion]", "[attempt_completion, new_task]")
        .replace(
            "tools: [look, keep, pay, fatal, helper,",
            "tools: [new_task,",
        );
    let play = Play::new(&file, &one("lead"), |body| match whom(body) {
        ("lead", 1) => calls(&[("new_task", json!({"agent": "helper", "task": "help"}))]),
        ("helper", 1) => calls(&[("pay", n(1)), ("fatal", n(2))]),
        ("helper", _) => text("helped"),
        _ => text("done"),
    });
    assert_eq!(play.run(&[], None).code, None);
    assert!(play.resume().exits(3).texts()[0].contains("stopped at a call of fatal (a1)"));
    play.stage
        .toolq(&["log", "resolve", "a1", "log.jsonl", "--not-done"])
        .exits(0);
    assert_eq!(play.resume().exits(0).texts(), ["done"]);
    assert_eq!((play.did("pay 1"), play.api.heard().len()), (1, 4));
    assert_eq!(play.used("helper")["turns_used"], 2);
    play.stage.log_is_in_order();
}

/// An agent whose time is over in the middle of such a call is in doubt, too: who called it must not take it for a delay.
#[test]
fn a_late_agent_may_be_in_doubt() {
    let send = "  send:\n    input_schema: {type: object, properties: {n: {type: integer}}}\n    effect: write\n    http: {method: POST, url: \"${BASE}/send\"}\n";
    let file = (file() + send).replace("tools: [look, keep,", "tools: [send, look, keep,");
    let file = file.replace("  lead:\n", "  lead:\n    timeout: 500ms\n");
    let play = Play::new(&file, &one("lead"), |body| {
        match body["messages"].as_array().map(Vec::len) {
            None => Act::Hang,
            Some(1) => calls(&[("send", n(1))]),
            Some(_) => text("sent it"),
        }
    });
    let late = play.run(&[], None).exits(3);
    let said = &late.texts()[0];
    assert!(
        said.starts_with("In doubt: lead stopped at a call of send (a0)"),
        "{said}"
    );
    let resolve = [
        "log",
        "resolve",
        "a0",
        "log.jsonl",
        "--done",
        "--result",
        "sent",
    ];
    play.stage.toolq(&resolve).exits(0);
    assert_eq!(play.resume().exits(0).texts(), ["sent it"]);
    play.stage.log_is_in_order();
}

/// Who begins another run behind it is told of the call, and not of the agent: that is not what may have been done.
#[test]
fn what_is_left_behind_is_the_call() {
    let play = killed(&file());
    let arguments = ["run", "--new", "--log", "log.jsonl", "input.json"];
    let base = [("BASE", play.api.url.as_str())];
    let new = play.stage.with(&base, &arguments).exits(0).stderr;
    assert!(
        new.contains("a1 (fatal)") && !new.contains("(lead)"),
        "{new}"
    );
}
