//! An agent that was killed or ended goes on when its run is resumed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Act, Step, calls, completion, message, ok, streamed, text};
use crate::play::{Play, fatal, file, killed, n, one, whom};

/// Ended with its run, it goes on as if killed: what it called that only looks runs again.
#[test]
fn an_interrupted_agent_goes_on() {
    let slow = file().replace(
        "echo \"look $1\" >> effects;",
        "echo \"look $1\" >> effects; test -e quick || sleep 60;",
    );
    let play = Play::new(&slow, &one("lead"), |body| match whom(body).1 {
        1 => calls(&[("pay", n(1)), ("look", n(2))]),
        _ => text("done"),
    });
    let interrupted = interrupt(&play, || play.did("look 2") == 1);
    assert!(interrupted.contains("\"is_error\":true"), "{interrupted}");
    play.stage.write("quick", "");
    let variables = [("BASE", play.api.url.as_str())];
    let arguments = ["run", "--resume", "--log", "log.jsonl", "input.json"];
    let done = play.stage.with(&variables, &arguments).exits(0);
    assert_eq!(done.texts(), ["done"]);
    // Its own turn, and the call that ran in it.
    assert!(
        done.stderr.contains("agents: 1 turn, 1 call;"),
        "{}",
        done.stderr
    );
    assert_eq!((play.did("pay 1"), play.did("look 2")), (1, 2));
    assert_eq!(play.api.heard().len(), 2);
    assert_eq!(
        play.stage.story("toolu_0")[1..4],
        ["tool_start 1", "model_response", "tool_result interrupted"]
    );
    play.stage.log_is_in_order();
}

/// What is printed by a run that gets SIGINT when `there` is.
fn interrupt(play: &Play, there: impl Fn() -> bool) -> String {
    thread::scope(|scope| {
        let run = scope.spawn(|| play.run(&[], None));
        let since = Instant::now();
        while !there() {
            assert!(since.elapsed() < Duration::from_mins(1));
            thread::sleep(Duration::from_millis(5));
        }
        let pid = play.stage.read("pid");
        let sent = std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status();
        assert!(sent.unwrap().success());
        run.join().unwrap().exits(130).stdout
    })
}

/// While its model is asked.
#[test]
fn an_agent_that_waits_for_its_model_goes_on() {
    let calm = Arc::new(AtomicBool::new(false));
    let calmed = Arc::clone(&calm);
    let play = Play::new(&file(), &one("lead"), move |body| match whom(body).1 {
        1 => calls(&[("pay", n(1))]),
        _ if !calmed.load(Ordering::SeqCst) => Act::Hang,
        _ => text("done"),
    });
    interrupt(&play, || play.api.heard().len() == 2);
    calm.store(true, Ordering::SeqCst);
    assert_eq!(play.resume().exits(0).texts(), ["done"]);
    assert_eq!((play.did("pay 1"), play.api.heard().len()), (1, 3));
    play.stage.log_is_in_order();
}

/// FAULTS 31: a started agent is what is still to run.
#[test]
fn changed_tools_let_no_agent_go_on_unasked() {
    let play = killed(&file());
    let changed = file().replace("looked $1", "saw $1");
    play.stage.write("tools.yaml", &changed);
    let before = play.stage.read("log.jsonl");
    let refused = play.resume().exits(2).stderr;
    assert!(
        refused.contains("still to run (lead)") && refused.contains("changed: look"),
        "{refused}"
    );
    assert_eq!(play.stage.read("log.jsonl"), before);
    play.stage
        .toolq(&["log", "resolve", "a1", "log.jsonl", "--not-done"])
        .exits(0);
    let done = play.run(&["--resume", "--accept-changes"], None).exits(0);
    // The finished look is that of then.
    assert!(done.texts()[0].contains("looked 1"), "{}", done.stdout);
    assert_eq!((play.did("look 1"), play.did("look 4")), (1, 1));
    assert_eq!(play.api.heard().len(), 3);
}

/// An answer that can't be used any more is not asked for again behind somebody's back: what followed from it stands.
#[test]
fn another_api_is_no_way_on() {
    let play = killed(&file());
    let changed = file().replace("model: lead,", "model: lead, api: openai-chat,");
    play.stage.write("tools.yaml", &changed);
    let stuck = play.run(&["--resume", "--accept-changes"], None);
    assert!(
        stuck.texts()[0].starts_with("Not executed: the session log has an answer of another API"),
        "{}",
        stuck.stdout
    );
    assert_eq!((stuck.code, play.api.heard().len()), (Some(3), 1));
    play.stage.write("tools.yaml", &file());
    play.stage
        .toolq(&["log", "resolve", "a1", "log.jsonl", "--not-done"])
        .exits(0);
    play.run(&["--resume", "--accept-changes"], None).exits(0);
    play.stage.log_is_in_order();
}

/// What is masked in the log can't be gone on from.
#[test]
fn a_secret_in_an_answer_is_no_way_on() {
    let secret = file().replace("version: 1", "version: 1\nsecrets: [BASE]");
    let play = Play::new(&secret, &one("lead"), |body| {
        let mut answer = message(json!([]), "tool_use");
        answer["content"] =
            json!([{"type": "tool_use", "id": "a0", "name": "fatal", "input": {"n": 1}}]);
        answer["id"] = format!("http://{}", body["model"].as_str().unwrap()).into();
        ok(answer)
    });
    // Nothing of it is in the body: it goes on.
    assert_eq!(play.run(&[], None).code, None);
    assert!(play.resume().exits(3).texts()[0].contains("stopped at a call of fatal"));
    let url = Arc::new(OnceLock::<String>::new());
    let known = Arc::clone(&url);
    let play = Play::new(&secret, &one("lead"), move |_| {
        let mut answer = message(json!([]), "tool_use");
        answer["content"] =
            json!([{"type": "tool_use", "id": "a0", "name": "fatal", "input": {"n": 1}}]);
        answer["id"] = known.get().unwrap().as_str().into();
        ok(answer)
    });
    url.set(play.api.url.clone()).unwrap();
    assert_eq!(play.run(&[], None).code, None);
    let stuck = play.resume().exits(3);
    assert!(
        stuck.texts()[0].starts_with("Not executed: a secret stood in"),
        "{}",
        stuck.stdout
    );
    for way in [
        "`--new` begins anew",
        "`toolq log resolve toolu_0 --done --result TEXT`",
    ] {
        assert!(stuck.texts()[0].contains(way), "{}", stuck.stdout);
    }
    assert_eq!(play.api.heard().len(), 1);
    let resolve = [
        "log",
        "resolve",
        "toolu_0",
        "log.jsonl",
        "--done",
        "--result",
        "so be it",
    ];
    play.stage.toolq(&resolve).exits(0);
    assert_eq!(play.resume().exits(0).texts(), ["so be it"]);
    play.stage.log_is_in_order();
}

/// Each answer is paid once, and counted once: also that of an agent that never came to its end.
#[test]
fn answers_are_counted_once() {
    let play = killed(&file());
    let turns = || {
        let cost = play
            .stage
            .toolq(&["log", "cost", "--format", "json", "log.jsonl"])
            .exits(0);
        let cost: Value = serde_json::from_str(&cost.stdout).unwrap();
        (
            cost["total"]["turns_used"].as_u64(),
            cost["total"]["input_tokens"].as_u64(),
        )
    };
    assert_eq!(turns(), (Some(1), Some(100)));
    play.resume().exits(3);
    assert_eq!(turns(), (Some(1), Some(100)));
    play.stage
        .toolq(&["log", "resolve", "a1", "log.jsonl", "--not-done"])
        .exits(0);
    play.resume().exits(0);
    assert_eq!(turns(), (Some(3), Some(300)));
    let used = play.used("lead");
    assert_eq!(used["tokens_used"], 3 * 116);
    assert_eq!(used["tool_calls_made"], 4);
}

/// A budget is of the whole agent, whoever paid: what a helper used that had its answer counts, too.
#[test]
fn a_budget_is_over_all_runs() {
    let budget = file().replace("model: lead,", "model: lead, budget: {turns: 4},");
    let script = |body: &Value| match whom(body) {
        ("helper", 1) => calls(&[("look", n(1))]),
        ("helper", _) => text("helped"),
        (_, 1) => calls(&[("helper", n(0)), ("fatal", n(1))]),
        _ => calls(&[("look", n(2))]),
    };
    let play = Play::new(&budget, &one("lead"), script);
    assert_eq!(play.run(&[], None).code, None);
    play.stage
        .toolq(&["log", "resolve", "a1", "log.jsonl", "--not-done"])
        .exits(0);
    let done = play.resume().exits(3);
    assert!(
        done.texts()[0].contains("the budget of lead, 4 turns, is used up"),
        "{}",
        done.stdout
    );
    assert_eq!(play.api.heard().len(), 4);
    // That is a result of its own: nothing begins again.
    let records = play.stage.log().len();
    assert_eq!(play.resume().exits(0).stdout, done.stdout);
    assert_eq!(play.stage.log().len(), records + 2);
    play.stage.log_is_in_order();
}

/// However an answer came, its calls are known again: broken into lines, larger than a record, of another API.
#[test]
fn answers_are_read_as_they_came() {
    let pretty = |body: &Value| match fatal(body) {
        Act::Say(status, headers, text) => {
            let value: Value = serde_json::from_str(&text).unwrap();
            let padded = json!({"padding": "é\u{2028}".repeat(30_000), "answer": 0});
            let mut value = value;
            value["padding"] = padded["padding"].clone();
            Act::Say(
                status,
                headers,
                serde_json::to_string_pretty(&value).unwrap(),
            )
        }
        other => other,
    };
    let openai = |body: &Value| {
        let call = |at: u32, name: &str, number: u32| json!({"id": format!("a{at}"), "type": "function", "function": {"name": name, "arguments": format!("{{\n \"n\": {number} }}")}});
        match whom(body).1 {
            1 => completion(
                json!({"role": "assistant", "content": null, "tool_calls": [call(0, "look", 1), call(1, "fatal", 2)]}),
                "tool_calls",
            ),
            _ => completion(json!({"role": "assistant", "content": "well"}), "stop"),
        }
    };
    let other = file().replace("model: lead,", "model: lead, api: openai-chat,");
    for (play, words) in [
        (Play::new(&file(), &one("lead"), pretty), "so: "),
        (Play::new(&other, &one("lead"), openai), "well"),
    ] {
        assert_eq!(play.run(&[], None).code, None);
        play.stage
            .toolq(&["log", "resolve", "a1", "log.jsonl", "--not-done"])
            .exits(0);
        let done = play.resume().exits(0);
        assert!(done.texts()[0].starts_with(words), "{}", done.stdout);
        assert_eq!(play.did("look 1"), 1);
        play.stage.log_is_in_order();
    }
}

/// `toolq agent` has the same flags as `toolq run`.
#[test]
fn an_agent_by_itself_goes_on() {
    let play = Play::new(&file(), &one("lead"), |body| match whom(body) {
        ("helper", _) => text("helped"),
        ("lead", 1) => calls(&[("look", n(1)), ("fatal", n(2)), ("helper", n(3))]),
        ("lead", 3) => calls(&[("look", n(4))]),
        _ => text("so it is"),
    });
    let base = [("BASE", play.api.url.as_str())];
    play.stage.write("task.json", "{\"n\": 0}");
    let agent = |more: &[&str]| {
        let arguments = [&["agent", "-q", "lead", "--to", "json"], more].concat();
        let input = std::fs::File::open(play.stage.path().join("task.json")).unwrap();
        play.stage.fed(&base, &arguments, input.into())
    };
    assert_eq!(agent(&[]).code, None);
    agent(&["--resume", "--new"]).exits(2);
    let doubtful = agent(&["--resume"]).exits(3);
    let report: Value = serde_json::from_str(&doubtful.stdout).unwrap();
    assert_eq!(
        (&report["status"], &report["turns_used"]),
        (&json!("in_doubt"), &json!(1))
    );
    play.stage
        .toolq(&["log", "resolve", "a1", "--not-done"])
        .exits(0);
    let report = |done: crate::stage::Done| {
        let mut report: Value = serde_json::from_str(&done.exits(0).stdout).unwrap();
        report.as_object_mut().unwrap().remove("duration_ms");
        report
    };
    let first = report(agent(&["--resume"]));
    assert_eq!(
        (&first["turns_used"], &first["tool_calls_made"]),
        (&json!(3), &json!(4))
    );
    // Four answers of a hundred tokens: one of them is the helper's, which the doubtful run has heard.
    assert_eq!(first["usage"]["model-1-20260101"]["input"], 400);
    assert_eq!(report(agent(&["--resume"])), first);
    assert_eq!(play.api.heard().len(), 4);
}

/// What a model said is asked for again where toolq was killed before the end of it, and the model may say something else:
/// what had started of the first answer only looked, and is nobody's any more.
#[test]
fn an_answer_that_was_not_heard_to_its_end_may_become_another() {
    let asked = AtomicUsize::new(0);
    let file = file().replace("max_turns: 4", "max_turns: 4, stream: true");
    let (before, fatal) = file.split_once("  fatal:").unwrap();
    let looks = "effect: read\n    concurrency_safe: false";
    let file = format!(
        "{before}  fatal:{}",
        fatal.replacen("effect: write", looks, 1)
    );
    let play = Play::new(&file, &one("lead"), move |body| {
        match (whom(body).1, asked.fetch_add(1, Ordering::SeqCst)) {
            (1, 0) => {
                let begun = streamed(calls(&[("look", n(1)), ("fatal", n(2)), ("pay", n(3))]));
                let Act::Speak(mut steps) = begun else {
                    panic!("it speaks");
                };
                // Its last two are the end.
                steps.truncate(steps.len() - 2);
                steps.push(Step::Hold);
                Act::Speak(steps)
            }
            (1, _) => streamed(calls(&[("look", n(4)), ("pay", n(5))])),
            _ => streamed(text(&format!("so: {}", body["messages"][2]["content"]))),
        }
    });
    assert_eq!(play.run(&[], None).code, None);
    assert_eq!((play.did("look 1"), play.did("pay 3")), (1, 0));
    let last = play.resume().exits(0);
    assert!(last.texts()[0].contains("paid 5"), "{}", last.stdout);
    assert_eq!(play.api.heard().len(), 3);
    assert_eq!(
        ["look 1", "look 4", "pay 3", "pay 5"].map(|what| play.did(what)),
        [1, 1, 0, 1]
    );
    assert_eq!(play.used("lead")["tool_calls_made"], 2);
    play.stage.log_is_in_order();
    assert_eq!(play.resume().exits(0).stdout, last.stdout);
    assert_eq!(play.api.heard().len(), 3);
}
