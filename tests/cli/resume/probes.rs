//! Tools with a probe, which finds out whether an interrupted call did its work.

use crate::support::resume_sandbox::{ResumeSandbox, calls_message, shell_tools};

/// The arguments of a run whose memory is a named log, and of one that shares a memory.
const MEMORIES: [&[&str]; 2] = [
    &["run", "input.json", "--log", "log.jsonl"],
    &["run", "input.json"],
];

/// Returns a sandbox in which toolq was killed during a payment. The tool has this probe.
fn killed_payment(probe: &str) -> ResumeSandbox {
    let pay = r#"echo "pay $1" >> effects; test -e dead || { touch dead; kill -9 "$(cat pid)"; sleep 60; }; echo "paid $1""#;
    let probe = format!(
        "effect: write\n    probe: [sh, -c, \"echo \\\"probe $1\\\" >> effects; {probe}\", sh, \"{{n}}\"]"
    );
    let sandbox = ResumeSandbox::new(
        &shell_tools(&[("pay", &probe, pay)]),
        &calls_message(&[("pay", 5), ("pay", 6)]),
    );
    assert_eq!(sandbox.run().code, None);
    sandbox
}

#[test]
fn a_done_finding_is_the_result() {
    let sandbox = killed_payment("echo found $1; exit 0");
    let done = sandbox.run().assert_exit(0);
    assert_eq!(done.result_texts(), ["found 5", "paid 6"]);
    assert_eq!(sandbox.effects(), ["pay 5", "probe 5", "pay 6"]);
    let expected = [
        "tool_call",
        "tool_start 1",
        "tool_call",
        "probe_start",
        "probe_end done",
        "resolve",
        "tool_skipped resolved",
    ];
    assert_eq!(sandbox.call_records("toolu_0"), expected);
    assert_eq!(sandbox.run().assert_exit(0).stdout, done.stdout);
    assert_eq!(sandbox.effects().len(), 3, "the probe must not run again");
    sandbox.assert_log_sequence();
}

#[test]
fn a_not_done_finding_runs_the_call() {
    let sandbox = killed_payment("exit 1");
    assert_eq!(
        sandbox.run().assert_exit(0).result_texts(),
        ["paid 5", "paid 6"]
    );
    assert_eq!(sandbox.effects(), ["pay 5", "probe 5", "pay 5", "pay 6"]);
    let expected = [
        "tool_call",
        "tool_start 1",
        "tool_call",
        "probe_start",
        "probe_end not_done",
        "resolve",
        "tool_start 1",
        "tool_result ok",
    ];
    assert_eq!(sandbox.call_records("toolu_0"), expected);
    sandbox.assert_log_sequence();
}

/// Only a clear answer of a probe settles a call.
#[test]
fn any_other_probe_exit_leaves_the_call_in_doubt() {
    for probe in ["exit 2", "kill -9 $$"] {
        let sandbox = killed_payment(probe);
        let done = sandbox.run().assert_exit(3);
        assert!(
            done.result_texts()[0].starts_with("In doubt"),
            "{:?}",
            done.result_texts()
        );
        assert_eq!(sandbox.effects(), ["pay 5", "probe 5"]);
        assert_eq!(sandbox.run().assert_exit(3).stdout, done.stdout);
        assert_eq!(sandbox.effects(), ["pay 5", "probe 5", "probe 5"]);
        sandbox.assert_log_sequence();
    }
}

/// If toolq is killed between what a probe has found and the start that follows, the finding still counts.
#[cfg_attr(not(debug_assertions), ignore = "a release build has no failpoints")]
#[test]
fn a_not_done_finding_survives_a_kill() {
    let killed_after_finding = (1..20).find_map(|step| {
        let sandbox = killed_payment("exit 1");
        let failpoint = format!("append.before:{step}:kill");
        let killed = sandbox.run_with_env(
            &[("TOOLQ_FAILPOINT", &*failpoint)],
            &["run", "--log", "log.jsonl", "input.json"],
        );
        assert_eq!(killed.code, None, "step {step}");
        let last = sandbox.call_records("toolu_0").pop();
        (last.as_deref() == Some("resolve")).then_some(sandbox)
    });
    let sandbox = killed_after_finding.expect("no step between the finding and the start");
    assert_eq!(sandbox.effects(), ["pay 5", "probe 5"]);
    let done = sandbox.run().assert_exit(0);
    assert_eq!(done.result_texts(), ["paid 5", "paid 6"]);
    assert_eq!(sandbox.effects(), ["pay 5", "probe 5", "pay 5", "pay 6"]);
    sandbox.assert_log_sequence();
}

/// Before a probe runs, all processes of the killed run must be gone. Otherwise they could still do their work later.
#[test]
fn probes_wait_until_leftovers_are_gone() {
    let pay = r#"trap "" TERM HUP INT; echo $$ > runner; test -e dead && { echo "paid $1"; exit 0; }; touch dead; kill -9 "$(cat pid)"; while :; do sleep 0.01; done"#;
    let probe = "effect: write\n    probe: [sh, -c, 'kill -0 \"$(cat runner)\" 2> alive && exit 9; exit 1', sh, \"{n}\"]";
    let sandbox = ResumeSandbox::new(
        &shell_tools(&[("pay", probe, pay)]),
        &calls_message(&[("pay", 5)]),
    );
    assert_eq!(sandbox.run().code, None);
    assert_eq!(sandbox.run().assert_exit(0).result_texts(), ["paid 5"]);
    assert_eq!(
        sandbox.call_records("toolu_0")[4..],
        [
            "probe_end not_done",
            "resolve",
            "tool_start 1",
            "tool_result ok"
        ]
    );
}

/// Placeholders in a probe are checked like those in a command.
#[test]
fn a_probe_is_checked_like_a_command() {
    let file = shell_tools(&[("pay", "effect: write\n    probe: [\"{n}\", x]", "true")]);
    let sandbox = ResumeSandbox::new(&file, &calls_message(&[("pay", 5)]));
    let refused = sandbox.run_toolq(&["check"]).assert_exit(1).stderr;
    assert!(
        refused.contains("an input value can't name a program"),
        "{refused}"
    );
    let file = shell_tools(&[("look", "effect: read\n    probe: [\"true\"]", "true")]);
    sandbox.write_file("tools.yaml", &file);
    let warned = sandbox.run_toolq(&["check"]).assert_exit(0).stderr;
    assert!(warned.contains("this `probe` never runs"), "{warned}");
}

/// What a probe says is the result, however long it is, and whatever it consists of.
#[test]
fn a_large_finding_and_one_of_blocks_are_results() {
    for arguments in MEMORIES {
        for (output, probe, expected) in [
            ("text", "seq 30000", "30000"),
            ("content", "cat blocks", "\"data\":\"R0lGODlh\""),
        ] {
            let keys =
                format!("effect: write\n    output: {output}\n    probe: [sh, -c, \"{probe}\"]");
            let kill = r#"kill -9 "$(cat pid)"; sleep 60"#;
            let tools = shell_tools(&[("pay", &keys, kill)]);
            let sandbox = ResumeSandbox::new(&tools, &calls_message(&[("pay", 1)]));
            let image = r#"{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"R0lGODlh"}}"#;
            sandbox.write_file("blocks", &format!("[{image}]"));
            assert_eq!(sandbox.run_toolq(arguments).code, None);
            let found = sandbox.run_toolq(arguments).assert_exit(0).stdout;
            assert!(found.contains(expected), "{found}");
            assert_eq!(sandbox.run_toolq(arguments).assert_exit(0).stdout, found);
        }
    }
}

/// A probe only reads, so nobody has to approve it. What it has found not done needs a new approval.
#[test]
fn a_probe_needs_no_approval() {
    for arguments in MEMORIES {
        for (code, expected) in [(0, 0), (1, 6), (2, 3)] {
            let keys = format!(
                "effect: write\n    approve: true\n    probe: [sh, -c, \"echo probe >> effects; exit {code}\"]"
            );
            let pay = r#"echo "pay $1" >> effects; test -e dead || { touch dead; kill -9 "$(cat pid)"; sleep 60; }"#;
            let tools = shell_tools(&[("pay", &keys, pay)]);
            let calls = calls_message(&[("pay", 1), ("pay", 2)]);
            let sandbox = ResumeSandbox::new(&tools, &calls);
            let approve_all = [arguments, &["--approve", "all"]].concat();
            assert_eq!(sandbox.run_toolq(&approve_all).code, None);
            let probed = sandbox.run_toolq(arguments);
            assert_eq!(sandbox.effects(), ["pay 1", "probe"], "{code}");
            let is_settled = code == 0;
            let waiting = [&["approvals", "--format", "json"], &arguments[2..]].concat();
            let waiting = sandbox.run_toolq(&waiting).assert_exit(0).stdout;
            match code {
                0 | 1 => {
                    probed.assert_exit(6);
                    assert_eq!(
                        waiting.matches("\"tool_use_id\"").count(),
                        2 - usize::from(is_settled)
                    );
                    sandbox.run_toolq(&approve_all).assert_exit(0);
                    let repeated = sandbox
                        .effects()
                        .iter()
                        .filter(|effect| *effect == "pay 1")
                        .count();
                    assert_eq!(repeated, if is_settled { 1 } else { 2 });
                    assert_eq!(sandbox.effects().last().unwrap(), "pay 2");
                }
                _ => {
                    let stderr = probed.assert_exit(expected).stderr;
                    assert!(stderr.contains("toolq log resolve "), "{stderr}");
                }
            }
        }
    }
}
