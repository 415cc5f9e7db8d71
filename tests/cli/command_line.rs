//! Conventions of the command line: `-`, repeated flags, empty variables, colors, completions.

use std::fs::File;

use crate::support::{CliOutput, CliSandbox, lacks, parse_json_lines};

const TOOLS: &str = "version: 1
tools:
  count_words:
    description: Count the words of a text.
    input_schema: {type: object}
    effect: read
    command: [wc, -w]
  ask_librarian:
    description: Answer a question about books.
    input_schema: {type: object, properties: {question: {type: string}}, required: [question]}
    agent: {endpoint: 'http://127.0.0.1:1', api_key: '${KEY}', model: m, system: s, prompt: '{question}', tools: []}
";

const CALL: &str = r#"{"type":"tool_use","id":"toolu_1","name":"count_words","input":{}}"#;

fn toolq() -> CliSandbox {
    CliSandbox::new().tools(TOOLS)
}

#[test]
fn a_dash_is_stdin_for_tools_and_logs() {
    for arguments in [
        &["check", "-c", "-"][..],
        &["tools", "-c", "-"],
        &["plan", "-c", "-", "call.json"],
    ] {
        let ran = CliSandbox::new().file("call.json", CALL);
        let ran = ran.stdin(TOOLS).run(arguments).assert_exit(0);
        assert!(
            !ran.stderr.contains("error"),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
    let script = r#""$TOOLQ" run -q --log log call.json > /dev/null
        for verb in show verify stats; do
            "$TOOLQ" log $verb log > named && cat log | "$TOOLQ" log $verb - > piped && "$TOOLQ" log $verb - < log > redirected
            sed -i 's/^log:/-:/' named
            cmp named piped && cmp named redirected && echo $verb
        done"#;
    let ran = toolq().file("call.json", CALL).run_shell(script);
    assert_eq!(ran.stdout, "show\nverify\nstats\n", "{}", ran.stderr);
}

#[test]
fn stdin_is_read_only_once() {
    for (arguments, stdin) in [
        (&["plan", "-c", "-"][..], TOOLS),
        (&["plan", "-", "-"], CALL),
    ] {
        let ran = toolq().stdin(stdin).run(arguments).assert_exit(2);
        assert!(
            ran.stderr.contains("stdin can be read only once"),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
    let ran = toolq().run(&["log", "show", "-f", "-"]).assert_exit(2);
    assert!(
        ran.stderr.contains("stdin can't be followed"),
        "{}",
        ran.stderr
    );
}

#[test]
fn init_to_stdout_prints_the_starter_file() {
    let ran = CliSandbox::new().run(&["init", "-c", "-"]).assert_exit(0);
    assert!(ran.stdout.contains("version: 1"), "{}", ran.stdout);
    assert_eq!(ran.file("-"), None);
}

#[test]
fn the_last_of_a_repeated_flag_counts() {
    let plan = |arguments: &[&str]| {
        let arguments = [&["plan"], arguments].concat();
        toolq().stdin(CALL).run(&arguments).assert_exit(0).stdout
    };
    assert_eq!(plan(&["--format", "json", "--format", "text"]), plan(&[]));
    assert_eq!(plan(&["-j", "1", "-j", "4"]), plan(&["-j", "4"]));
    // An alias for `toolq -q` can be overridden.
    let verbose = toolq().stdin(CALL).run(&["-q", "plan", "-q", "-v"]);
    assert!(
        verbose.stderr.contains("note: tools from"),
        "{}",
        verbose.stderr
    );
    let quiet = toolq().stdin(CALL).run(&["plan", "-v", "-q"]);
    assert_eq!(quiet.stderr, "");
}

/// Flags that may be repeated still collect their values.
#[test]
fn a_repeatable_flag_keeps_all_values() {
    let script = r#""$TOOLQ" run -q --log log > /dev/null
        "$TOOLQ" log show --tool count_words --tool other log"#;
    let ran = toolq().stdin(CALL).run_shell(script);
    assert!(ran.stdout.contains("count_words"), "{}", ran.stdout);
    assert!(ran.stderr.contains("no calls of other"), "{}", ran.stderr);
}

#[test]
fn an_empty_variable_counts_as_unset() {
    for arguments in [&["check"][..], &["generate", "man"], &["tools"]] {
        toolq().env("TOOLQ_TOOLS", "").run(arguments).assert_exit(0);
    }
    let named = toolq().env("TOOLQ_TOOLS", "nowhere.yaml");
    let ran = named.run(&["check"]).assert_exit(2);
    assert!(ran.stderr.contains("nowhere.yaml"), "{}", ran.stderr);
    let flag = toolq().env("TOOLQ_TOOLS", "nowhere.yaml");
    flag.run(&["check", "-c", "tools.yaml"]).assert_exit(0);
}

#[cfg(target_os = "linux")] // It needs /dev/full.
#[test]
fn help_that_cannot_be_written_is_an_error() {
    for arguments in [&["--help"][..], &["--version"], &["help", "run"]] {
        let sandbox = toolq();
        let mut command = sandbox.command(arguments);
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = command.stdout(full).output().unwrap();
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(74), "{arguments:?}");
        assert!(stderr.contains("stdout can't be written"), "{stderr}");
    }
    toolq().run(&["--help"]).assert_exit(0);
}

#[test]
fn the_color_flag_reaches_help_and_usage_errors() {
    let is_colored = |ran: CliOutput| (ran.stdout + &ran.stderr).contains("\u{1b}[");
    for rest in [
        &["--help"][..],
        &["--nonsense"],
        &["check", "-c", "nowhere.yaml"],
    ] {
        for (color, expected) in [("always", true), ("never", false), ("auto", false)] {
            let arguments = [&["--color", color], rest].concat();
            assert_eq!(
                is_colored(toolq().run(&arguments)),
                expected,
                "{arguments:?}"
            );
        }
        let forced = || toolq().env("CLICOLOR_FORCE", "1");
        assert!(is_colored(forced().run(rest)), "{rest:?}");
        let forbidden = forced().env("NO_COLOR", "1");
        assert!(!is_colored(forbidden.run(rest)), "{rest:?}");
    }
}

/// Returns what completes the words, and whether a path does.
fn complete(words: &[&str]) -> (bool, Vec<String>) {
    let arguments = [&["__complete", "--", "toolq"], words].concat();
    let ran = toolq()
        .file("call.json", CALL)
        .run(&arguments)
        .assert_exit(0);
    let mut lines = ran.stdout.lines();
    let takes_files = lines.next() == Some("files");
    let values = lines.map(|line| line.split('\t').next().unwrap().to_owned());
    (takes_files, values.collect())
}

#[test]
fn completions_know_commands_flags_values_and_names() {
    let words = |words: &[&str]| complete(words).1;
    assert_eq!(words(&["rep"]), ["replay"]);
    assert_eq!(words(&["plan", "--fo"]), ["--format"]);
    assert_eq!(words(&["plan", "--format", "j"]), ["json"]);
    assert_eq!(words(&["plan", "--format=j"]), ["--format=json"]);
    for names in [
        &["log", "show", "--tool", ""][..],
        &["serve", "--only", ""],
        &["call", ""],
    ] {
        assert_eq!(words(names), ["count_words", "ask_librarian"], "{names:?}");
    }
    assert_eq!(words(&["serve", "--only=co"]), ["--only=count_words"]);
    let elsewhere = words(&["-c", "nowhere.yaml", "call", ""]);
    assert!(!elsewhere.contains(&"ask_librarian".to_owned()));
    assert_eq!(
        words(&["call", "-c", "tools.yaml", "ask"]),
        ["ask_librarian"]
    );
    assert!(!words(&["__"]).contains(&"__complete".to_owned()));
}

#[test]
fn completions_offer_servers() {
    let tools = "version: 1\nservers:\n  files: {command: [cat]}\n  search: {command: [cat]}\n";
    for words in [&["servers", ""][..], &["servers", "lock", ""]] {
        let arguments = [&["__complete", "--", "toolq"], words].concat();
        let ran = CliSandbox::new().tools(tools).run(&arguments);
        for server in ["files\t", "search\t"] {
            assert!(ran.stdout.contains(server), "{words:?}: {}", ran.stdout);
        }
    }
}

#[test]
fn completions_know_where_a_path_can_stand() {
    assert_eq!(
        complete(&["run", "call"]),
        (true, vec!["call.json".to_owned()])
    );
    assert!(complete(&["run", ""]).0);
    assert!(complete(&["check", "-c", "too"]).0);
    assert!(!complete(&["plan", "--format", ""]).0);
}

#[test]
fn completions_offer_sessions() {
    let script = r#""$TOOLQ" run -q > /dev/null; "$TOOLQ" __complete -- toolq log show """#;
    let ran = toolq().stdin(CALL).run_shell(script).assert_exit(0);
    let session = |line: &&str| line.contains("/toolq/sessions/") && line.contains(".jsonl\t");
    assert_eq!(
        ran.stdout.lines().filter(session).count(),
        1,
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("tools.yaml\t"), "{}", ran.stdout);
}

#[test]
fn completions_offer_sessions_to_every_verb_that_reads_a_log() {
    let verbs = [
        "show",
        "stats",
        "cost",
        "export",
        "verify",
        "resolve toolu_01",
    ];
    let lines = verbs.map(|verb| {
        format!(
            r#""$TOOLQ" __complete -- toolq log {verb} "" | grep -c '/sessions/.*jsonl.a session'"#
        )
    });
    let script = format!("\"$TOOLQ\" run -q > /dev/null\n{}", lines.join("\n"));
    let ran = toolq().stdin(CALL).run_shell(&script).assert_exit(0);
    assert_eq!(ran.stdout.lines().collect::<Vec<_>>(), verbs.map(|_| "1"));
}

#[test]
fn completions_finish_the_id_of_a_session() {
    let script = r#""$TOOLQ" run -q > /dev/null
        id=$(basename state/toolq/sessions/*.jsonl .jsonl); id=${id##*-}
        "$TOOLQ" __complete -- toolq log show "${id%????}" | grep -c "^$id""#;
    let ran = toolq().stdin(CALL).run_shell(script).assert_exit(0);
    assert_eq!(ran.stdout, "1\n");
}

/// A new user types just the name of the program.
#[test]
fn without_a_command_stderr_says_what_to_type_first() {
    let ran = CliSandbox::new().run(&[]).assert_exit(2);
    assert_eq!(ran.stdout, "");
    for text in ["Usage: toolq", "\n  toolq init ", "toolq --help"] {
        assert!(ran.stderr.contains(text), "{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("error"), "{}", ran.stderr);
    // A command with commands of its own has a help of its own.
    let ran = CliSandbox::new().run(&["log"]).assert_exit(2);
    assert!(ran.stderr.contains("Usage: toolq log"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("toolq init"), "{}", ran.stderr);
}

/// The scripts for zsh and fish differ only in how they ask their shell for the words.
#[test]
fn the_bash_script_completes() {
    if lacks(&["bash"]) {
        return;
    }
    let script = r#"ln -s "$TOOLQ" toolq; PATH=$PWD:$PATH; "$TOOLQ" generate completions bash > script
        bash --norc -c '
            source ./script
            ask() {
                COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
                _toolq toolq "${!#}"
                echo "${COMPREPLY[@]}"
            }
            ask toolq rep
            ask toolq call ask
            ask toolq plan --format = j
            ask toolq run call'"#;
    let ran = toolq().file("call.json", CALL).run_shell(script);
    assert_eq!(
        ran.stdout, "replay\nask_librarian\njson\ncall.json\n",
        "{}",
        ran.stderr
    );
}

/// `messages` decide what the model reads, not what programs and people read.
#[test]
fn results_for_programs_say_why_a_call_failed() {
    let tools = "version: 1
messages: {failed: Answer directly.}
secrets: [PASSWORD]
tools:
  log_in:
    description: Log in.
    input_schema: {type: object}
    effect: read
    retry: {times: 1, on: ['exit:2'], backoff: 1ms}
    command: {argv: [sh, -c, 'echo connecting >&2; echo rejected $PASSWORD >&2; exit 2'], pass_env: [PASSWORD]}
";
    let call = CALL.replace("count_words", "log_in");
    let run = |arguments: &[&str]| {
        let sandbox = CliSandbox::new()
            .tools(tools)
            .env("PASSWORD", "c4n4ry-password");
        sandbox.stdin(&call).run(arguments).assert_exit(0)
    };
    let ran = run(&["run", "--to", "results", "--progress", "plain"]);
    let mut result = ran.json()[0].clone();
    assert!(result["duration_ms"].take().is_u64());
    let expected = serde_json::json!({
        "tool_use_id": "toolu_1", "tool_name": "log_in", "status": "failed", "is_error": true,
        "content": "Answer directly.", "error": "rejected [masked]", "duration_ms": null, "attempts": 2,
    });
    assert_eq!(result, expected);
    assert!(
        ran.stderr.contains("#0 log_in toolu_1: exit 2")
            && ran.stderr.contains(": rejected [masked]\n"),
        "{}",
        ran.stderr
    );
    let line = run(&["run", "-q", "--to", "result-lines"]);
    assert_eq!(line.lines()[0]["error"], "rejected [masked]");
}

#[test]
fn tools_can_be_listed_for_people_and_programs() {
    let ran = toolq().run(&["tools", "--format", "table"]).assert_exit(0);
    let rows: Vec<Vec<&str>> = ran
        .stdout
        .lines()
        .map(|line| line.split("  ").collect())
        .collect();
    let cells = |row: usize| -> Vec<&str> {
        let cells = rows[row].iter().map(|cell| cell.trim());
        cells.filter(|cell| !cell.is_empty()).collect()
    };
    assert_eq!(
        cells(0),
        [
            "tool",
            "kind",
            "effect",
            "in parallel",
            "timeout",
            "retries"
        ]
    );
    assert_eq!(
        cells(1),
        ["count_words", "command", "read", "yes: effect", "30s", "1"]
    );
    assert_eq!(
        cells(2),
        ["ask_librarian", "agent", "write", "no: default", "30s", "1"]
    );
    let ran = toolq().run(&["tools", "--format", "json"]).assert_exit(0);
    let expected = serde_json::json!({
        "name": "count_words", "kind": "command", "effect": "read", "concurrency_safe": true,
        "decided_by": "effect", "timeout_ms": 30_000, "retries": 1, "approve": false,
    });
    assert_eq!(ran.json()[0], expected);
}

/// Calls that neither run nor are rejected are in a plan of every format: a call that was sent twice, and one that nobody waits for.
#[test]
fn every_plan_has_the_calls_that_do_not_run() {
    let call =
        |id: &str| serde_json::json!({"type": "tool_use", "id": id, "name": "say", "input": {}});
    let model = |ids: &[&str]| serde_json::json!({"role": "assistant", "content": ids.iter().map(|id| call(id)).collect::<Vec<_>>()});
    let said = serde_json::json!({"role": "user", "content": "go on"});
    let request = serde_json::json!({"messages": [model(&["old"]), said, model(&["new", "new"])]});
    let sandbox = CliSandbox::new()
        .tools("version: 1\ntools:\n  say: {input_schema: {type: object}, command: [echo]}\n")
        .file("in.json", request.to_string());
    let plan = |format: &str| {
        let ran = sandbox
            .command(&["plan", "--format", format, "in.json"])
            .output();
        String::from_utf8(ran.unwrap().stdout).unwrap()
    };
    let text = plan("text");
    for words in ["abandoned: ", "sent twice", "has the result of call 0"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let turns = parse_json_lines(&plan("json"));
    let idle = |turn: usize, key: &str| turns[turn][key].clone();
    let old = serde_json::json!([{"position": 0, "tool_use_id": "old", "tool_name": "say"}]);
    assert_eq!(idle(0, "abandoned"), old);
    let again =
        serde_json::json!([{"position": 1, "tool_use_id": "new", "tool_name": "say", "of": 0}]);
    assert_eq!(idle(1, "repeats"), again);
    let page = plan("html");
    for row in ["id=\"call-0-0\"", "id=\"call-1-0\"", "id=\"call-1-1\""] {
        assert_eq!(page.matches(row).count(), 1, "{row}");
    }
    assert!(page.contains("abandoned: ") && page.contains("has the result of call 0"));
}

/// What a model wrote is text on the page; every call has its id and a link there.
#[test]
fn the_page_of_a_plan_has_every_call_as_text() {
    let hostile = "</script><img src=x onerror=alert(1)><!--\u{202e}";
    let tools = "version: 1\nsecrets: [TOKEN]\ntools:\n  say: {input_schema: {type: object}, estimate: 1s, command: [echo]}\n";
    let call = |id: &str, name: &str| serde_json::json!({"type": "tool_use", "id": id, "name": name, "input": {"x": [hostile, "tok-4711-abc"]}});
    let calls = serde_json::json!([call("toolu_1", "say"), call("toolu_2", hostile)]);
    let ran = CliSandbox::new()
        .tools(tools)
        .env("TOKEN", "tok-4711-abc")
        .stdin(calls.to_string())
        .run(&["plan", "--format", "html"])
        .assert_exit(0);
    let page = ran.stdout;
    assert_eq!(
        page.matches("<script").count(),
        2,
        "the data and the page's own script"
    );
    assert!(!page.contains("<img") && !page.contains("<!--") && !page.contains('\u{202e}'));
    assert!(!page.contains("tok-4711-abc") && page.contains("[masked]"));
    for id in ["toolu_1", "toolu_2"] {
        let named = format!("data-tool-use-id=\"{id}\"");
        assert_eq!(page.matches(&named).count(), 1, "{id}");
    }
    assert!(page.contains("href=\"#call-0-0\"") && page.contains("href=\"#call-0-1\""));
    assert!(page.contains("estimated 1s<"), "{page}");
}

/// One broken entry of a client doesn't spoil the whole request.
#[test]
fn a_tool_without_a_name_is_left_out() {
    let ran = CliSandbox::new()
        .file(
            "request.json",
            r#"{"tools":[{"input_schema":{}},{"name":"a","input_schema":{"type":"object"}}]}"#,
        )
        .run(&["init", "--from", "request.json", "-c", "-"])
        .assert_exit(0);
    assert!(
        ran.stderr.contains("left out a tool without a name"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("  a:\n"), "{}", ran.stdout);
}

#[test]
fn a_path_in_the_wrong_place_is_met_with_the_right_command() {
    for (arguments, tip) in [
        (&["./calls.json"][..], "'toolq run ./calls.json'"),
        (&["init", "tools.json"], "'toolq init --from tools.json'"),
    ] {
        let ran = toolq().run(arguments).assert_exit(2);
        assert!(ran.stderr.contains(tip), "{}", ran.stderr);
    }
    let ran = toolq().run(&["init", "--fram"]).assert_exit(2);
    assert!(!ran.stderr.contains("--from --fram"), "{}", ran.stderr);
}

/// Whoever types what another program calls it, or a file, is told what to type.
#[test]
fn what_others_call_otherwise_leads_to_the_right_command() {
    for (typed, tip) in [
        ("dry-run", "'toolq plan'"),
        ("run --dry-run", "'toolq plan'"),
        ("validate", "'toolq check'"),
        ("exec", "'toolq run'"),
        ("test", "'toolq replay'"),
        ("resume", "'toolq run FILE'"),
        ("logs", "'toolq log list'"),
        ("show", "'toolq log show'"),
        ("deny", "'toolq approvals deny'"),
        ("answers/response.json", "'toolq run answers/response.json'"),
        (
            "init mine/tools.json",
            "'toolq init --from mine/tools.json'",
        ),
    ] {
        let words: Vec<&str> = typed.split(' ').collect();
        let ran = toolq().run(&words).assert_exit(2);
        assert!(ran.stderr.contains(tip), "{typed}: {}", ran.stderr);
    }
    let unknown = toolq().run(&["frobnicate"]).assert_exit(2).stderr;
    assert!(!unknown.contains("tip:"), "{unknown}");
}

/// A flag that only some builds have is in the help of all of them.
#[cfg(not(feature = "otlp"))]
#[test]
fn a_toolq_without_otlp_says_so_and_how_to_get_it() {
    let message = r#"{"content":[{"type":"tool_use","id":"a","name":"say","input":{}}]}"#;
    let ran = CliSandbox::new()
        .tools("version: 1\ntools:\n  say: {input_schema: {type: object}, command: [touch, ran]}\n")
        .stdin(message)
        .run(&["run", "--otlp"])
        .assert_exit(2);
    let wanted = ["this toolq was built without `otlp`", "--features otlp"];
    assert!(
        wanted.iter().all(|part| ran.stderr.contains(part)),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.file("ran"), None);
}
