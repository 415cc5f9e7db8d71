//! `toolq init`: files that work as they are.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::support::scripted_api::{ApiBehavior, ScriptedApi, calls_response, text_response};
use crate::support::{CliOutput, CliSandbox, lacks, model_response, skip};
use serde_json::{Value, json};

/// Returns the command in the note of `init` that announces it.
fn announced_command(stderr: &str) -> &str {
    let announced = stderr.split_once("note: answer a first call: ");
    announced.expect("a command").1.trim()
}

#[test]
fn the_command_that_init_prints_answers_a_call() {
    for (flag, name) in [("", "tools.yaml"), ("-c 'my tools.yaml'", "my tools.yaml")] {
        let ran = CliSandbox::new().run_shell(&format!("\"$TOOLQ\" init {flag}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
        let command = announced_command(&ran.stderr).replace("toolq run", "\"$TOOLQ\" run");
        let tools = ran.file(name).unwrap();
        let ran = CliSandbox::new().file(name, tools).run_shell(&command);
        let result: Value = serde_json::from_str(&ran.stdout).unwrap();
        let content = format!("{name}\n");
        assert_eq!(result["is_error"], false, "{result}");
        let listed = result["content"].as_str().unwrap().trim_end().to_owned() + "\n";
        assert!(listed.contains(&content), "{result}");
    }
}

/// Returns whether the programs of the coding agent can't run here, and says that the test is skipped.
fn lacks_coding_tools() -> bool {
    let missing = procfence::missing_protections(&procfence::NetworkAccess::None);
    if !missing.is_empty() {
        let missing = missing.join(", or ");
        skip(format_args!("this system can't confine {missing}"));
    }
    !missing.is_empty() || lacks(&["bash", "awk", "git"])
}

#[test]
fn what_works_as_it_is_has_no_warning() {
    for kind in ["minimal", "coding"] {
        if kind == "coding" && lacks_coding_tools() {
            continue;
        }
        let script =
            format!("\"$TOOLQ\" init -q {kind} && \"$TOOLQ\" check --strict --machine --offline");
        let ran = CliSandbox::new().run_shell(&script).assert_exit(0);
        assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    }
}

#[test]
fn what_has_to_be_filled_in_is_a_warning() {
    let warnings = [
        ("http", "the variable API_TOKEN is unset or empty"),
        ("mcp", "the server `search` isn't locked"),
    ];
    for (kind, warning) in warnings {
        let script = format!("\"$TOOLQ\" init {kind} && \"$TOOLQ\" check");
        let ran = CliSandbox::new().run_shell(&script).assert_exit(0);
        assert!(
            ran.stderr.contains("FILL IN, then: toolq "),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    }
}

/// Makes calls in a new repository with the tools of a coding agent. Returns each text, and whether it is an error.
fn coding_results(calls: &[(&str, Value)]) -> Vec<(String, bool)> {
    let sandbox = CliSandbox::new()
        .file("src/main.rs", "fn main() {\n    work();\n}\n")
        .file("notes.txt", "one\ntwo\ntwo\n")
        .stdin(model_response(calls));
    let script = "git init -q && \"$TOOLQ\" init -q coding && \"$TOOLQ\" run --no-log";
    sandbox.run_shell(script).assert_exit(0).result_texts()
}

#[test]
fn the_tools_of_a_coding_agent_read_and_write() {
    if lacks_coding_tools() {
        return;
    }
    let results = coding_results(&[
        (
            "read_file",
            json!({"path": "src/main.rs", "offset": 2, "limit": 1}),
        ),
        ("glob", json!({"pattern": "**/*.rs"})),
        ("grep", json!({"pattern": "work|play", "path": "src"})),
        (
            "edit_file",
            json!({"path": "src/main.rs", "old_text": "work()", "new_text": "play(\\1 & $x)"}),
        ),
        (
            "write_file",
            json!({"path": "src/more/it's.rs", "content": "it\n"}),
        ),
        ("list_files", json!({"path": "src"})),
        (
            "bash",
            json!({"script": "cat src/main.rs; echo built > src/out; cat src/out"}),
        ),
    ]);
    let texts: Vec<&str> = results.iter().map(|(text, _)| text.as_str()).collect();
    assert!(results.iter().all(|(_, is_error)| !is_error), "{texts:?}");
    assert_eq!(texts[0], "     2\t    work();");
    assert_eq!(texts[1], "src/main.rs");
    assert_eq!(texts[2], "src/main.rs:2:    work();");
    assert_eq!(texts[5], "main.rs\nmore/");
    assert_eq!(texts[6], "fn main() {\n    play(\\1 & $x);\n}\nbuilt");
}

#[test]
fn the_tools_of_a_coding_agent_keep_to_their_directory() {
    if lacks_coding_tools() {
        return;
    }
    let results = coding_results(&[
        (
            "edit_file",
            json!({"path": "notes.txt", "old_text": "two", "new_text": "three"}),
        ),
        (
            "edit_file",
            json!({"path": "notes.txt", "old_text": "four", "new_text": "three"}),
        ),
        (
            "edit_file",
            json!({"path": "none.txt", "old_text": "four", "new_text": "three"}),
        ),
        (
            "write_file",
            json!({"path": "src/../.git/hooks/pre-commit", "content": "date"}),
        ),
        (
            "write_file",
            json!({"path": "tools.yaml", "content": "tools: {}"}),
        ),
        ("read_file", json!({"path": "/etc/passwd"})),
        ("bash", json!({"script": "echo > tools.yaml"})),
        ("bash", json!({"script": "echo > .git/config"})),
        ("fetch", json!({"url": "http://127.0.0.1:1/"})),
    ]);
    let expected = [
        "old_text occurs more than once",
        "old_text does not occur",
        "none.txt doesn't exist, or is empty",
        "Path must not lead into .git",
        "Path must not lead to tools.yaml",
        "Path must be within working directory",
        "Permission denied",
        "Permission denied",
        "must have one of these hosts",
    ];
    assert_eq!(results.len(), expected.len());
    for ((text, is_error), expected) in results.iter().zip(expected) {
        assert!(*is_error && text.contains(expected), "{text}");
    }
}

/// A script may make any link where it may write, and what a link leads to stays out of reach.
#[test]
fn the_tools_of_a_coding_agent_reach_no_git_through_a_link() {
    if lacks_coding_tools() {
        return;
    }
    let edit = |path| {
        let input = json!({"path": path, "old_text": "bare", "new_text": "fsmonitor"});
        ("edit_file", input)
    };
    let results = coding_results(&[
        (
            "bash",
            json!({"script": "ln -s ../.git src/git; ln -s ../.git/config src/file"}),
        ),
        edit("src/git/config"),
        edit("src/file"),
        (
            "write_file",
            json!({"path": "src/git/hooks/pre-commit", "content": "date"}),
        ),
        ("bash", json!({"script": "ln .git/config src/hard"})),
        ("bash", json!({"script": "echo > src/git/hooks/pre-commit"})),
        ("bash", json!({"script": "mv .git src/moved"})),
    ]);
    assert!(!results[0].1, "{results:?}");
    let expected = [
        "Path must not lead into .git",
        "Path must not lead into .git",
        "Path must not lead into .git",
        "Invalid cross-device link",
        "Permission denied",
        "Permission denied",
    ];
    for ((text, is_error), expected) in results[1..].iter().zip(expected) {
        assert!(*is_error && text.contains(expected), "{text}");
    }
    assert_eq!(results.len(), 1 + expected.len());
}

/// What a model would otherwise take for an empty result, or wouldn't hear of.
#[test]
fn the_tools_of_a_coding_agent_say_what_happened() {
    if lacks_coding_tools() {
        return;
    }
    let results = coding_results(&[
        ("read_file", json!({"path": "notes.txt", "offset": 9})),
        ("glob", json!({"pattern": "src/*.{rs,toml}"})),
        ("glob", json!({"pattern": "**/*.txt"})),
        ("grep", json!({"pattern": "work", "path": "src/main.rs"})),
        ("grep", json!({"pattern": "version|built"})),
        (
            "bash",
            json!({"script": "echo seen; echo > tools.yaml; true"}),
        ),
        ("bash", json!({"script": "sleep 60 & echo started"})),
        (
            "bash",
            json!({"script": "printf 'one\ntwo' > src/open; mkdir src/target; echo built > src/target/a.txt"}),
        ),
        (
            "edit_file",
            json!({"path": "src/open", "old_text": "two", "new_text": "2"}),
        ),
        ("glob", json!({"pattern": "**/*.txt"})),
        ("grep", json!({"pattern": "built"})),
        ("bash", json!({"script": "od -An -c src/open"})),
    ]);
    let expected = [
        "(the file is empty, or has no line at `offset`)",
        "(no file matches. `{a,b}` isn't known: make a call for each)",
        "notes.txt",
        "src/main.rs:2:    work();",
        "(nothing matches; .git, target, node_modules and tools.yaml are left out)",
        "seen\nstderr:\nbash: line 1: tools.yaml: Permission denied",
        "started\n[killed 1 process that it left running]",
        "(no output)",
        "edited src/open",
        "notes.txt",
        "(nothing matches; .git, target, node_modules and tools.yaml are left out)",
        "   o   n   e  \\n   2",
    ];
    let texts: Vec<&str> = results.iter().map(|(text, _)| &**text).collect();
    assert_eq!(texts, expected);
    assert!(results.iter().all(|(_, is_error)| !is_error));
}

/// cargo creates its lock file and `target`, and a sandbox allows only what exists.
#[test]
fn the_tests_of_a_new_cargo_project_run() {
    if lacks_coding_tools() {
        return;
    }
    let home = std::env::var("HOME").unwrap_or_default();
    if !Path::new(&home).join(".cargo/bin/cargo").exists() {
        return skip("the sandbox shows cargo only where rustup installs it");
    }
    let run = "\"$TOOLQ\" call -q --no-log run_tests '{}'";
    let script = format!(
        "\"$TOOLQ\" init -q coding && {run} && ! ls Cargo.lock target 2> ls.txt && mkdir target && : > Cargo.lock && {run} && grep -q new Cargo.lock && ls target/debug"
    );
    let ran = CliSandbox::new()
        .file(
            "Cargo.toml",
            "[package]\nname = \"new\"\nedition = \"2021\"\n",
        )
        .file("src/lib.rs", "#[test]\nfn it_runs() {}\n")
        .env("HOME", &home)
        .run_shell(&script)
        .assert_exit(0);
    let passed = ran.stdout.matches("test it_runs ... ok").count();
    assert_eq!(passed, 2, "{}", ran.stdout);
}

#[test]
fn init_names_every_file_that_it_writes() {
    let ran = CliSandbox::new().run(&["init"]).assert_exit(0);
    let note = "note: wrote tools.yaml and tools.schema.json\n";
    assert!(ran.stderr.starts_with(note), "{}", ran.stderr);
    let kept = CliSandbox::new().file("tools.schema.json", "mine");
    let ran = kept.run(&["init"]).assert_exit(0);
    let note = "note: wrote tools.yaml\n";
    assert!(ran.stderr.starts_with(note), "{}", ran.stderr);
}

#[test]
fn the_schema_that_the_file_names_is_beside_it() {
    let ran = CliSandbox::new().run(&["init", "-c", "a/tools.yaml"]);
    assert_eq!(ran.code, 2, "there is no directory a");
    let sandbox = CliSandbox::new().file("a/keep", "");
    let ran = sandbox.run(&["init", "-c", "a/tools.yaml"]).assert_exit(0);
    let tools = ran.file("a/tools.yaml").unwrap();
    let named = tools
        .lines()
        .next()
        .unwrap()
        .split_once("$schema=")
        .unwrap()
        .1;
    let schema = ran.file(&format!("a/{named}")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["type"], "object");
}

#[test]
fn files_that_exist_are_kept() {
    let ran = CliSandbox::new()
        .tools("mine")
        .run(&["init"])
        .assert_exit(2);
    assert!(ran.stderr.contains("already exists"), "{}", ran.stderr);
    assert_eq!(ran.file("tools.yaml").unwrap(), "mine");
    assert_eq!(ran.file("tools.schema.json"), None);
    let ran = CliSandbox::new()
        .tools("mine")
        .file("tools.schema.json", "older")
        .run(&["init", "--force"])
        .assert_exit(0);
    assert!(
        ran.file("tools.schema.json")
            .unwrap()
            .contains("\"$schema\"")
    );
    // A schema that the user may have written stays.
    let sandbox = CliSandbox::new().file("tools.schema.json", "older");
    let ran = sandbox.run(&["init"]).assert_exit(0);
    assert_eq!(ran.file("tools.schema.json").unwrap(), "older");
}

#[test]
fn an_import_suggests_effect_paths_timeout_and_once() {
    let schema = json!({"type": "object", "properties": {"file_path": {"type": "string"}}});
    let request = json!({"tools": [
        {"name": "read_file", "input_schema": schema},
        {"name": "run_tests", "input_schema": {"type": "object"}},
    ]});
    let ran = CliSandbox::new()
        .file("request.json", request.to_string())
        .run(&["init", "--from", "request.json"])
        .assert_exit(0);
    let tools = ran.file("tools.yaml").unwrap();
    for line in [
        "effect: read",
        "paths: [NAME]",
        "timeout: 5m",
        "once: [NAME]",
    ] {
        assert_eq!(
            tools.matches(&format!("\n#   {line} ")).count(),
            1,
            "{tools}"
        );
    }
    // What is suggested can be used as it is. A tool that reads has nothing to do once.
    let settings = "    effect: read\n    timeout: 5m\n    paths: [file_path]\n";
    let accepted = tools.replacen("    effect: write\n", settings, 1);
    let ran = CliSandbox::new().tools(&accepted).run(&["check"]);
    assert_eq!(ran.code, 0, "{}\n{accepted}", ran.stderr);
}

/// What is missing in a declaration isn't invented, and what can't be written is named.
#[test]
fn an_import_leaves_out_what_it_cannot_write() {
    let request = r#"{"tools": [
        {"name": "plain", "input_schema": {"type": "object"}},
        {"name": "vast", "description": "Sums.", "input_schema": {"properties": {"n": {"maximum": 1e400}}}}
    ]}"#;
    let ran = CliSandbox::new()
        .file("request.json", request)
        .run(&["init", "--from", "request.json"])
        .assert_exit(0);
    let tools = ran.file("tools.yaml").unwrap();
    assert_eq!(tools.matches("description:").count(), 1, "{tools}");
    let warning = "warning: left out the `input_schema` of `vast`: it has a number out of range; at most 1.8e308";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    let ran = CliSandbox::new().tools(&tools).run(&["check"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
}

/// Returns the command that runs the loop in this language. `None`, and says so, where it can't run.
fn loop_command(language: &str) -> Option<String> {
    let (command, programs) = match language {
        "sh" => ("sh agent.sh", &["curl", "jq"][..]),
        "python" => ("python3 agent.py", &["python3"][..]),
        _ => return typescript_command(),
    };
    (!lacks(programs)).then(|| command.to_owned())
}

/// Runs the loop against an API whose model calls a tool twice, and then answers with what the API got.
fn run_loop(language: &str, command: &str) -> (CliOutput, ScriptedApi) {
    let read = |path| calls_response(&[("read_file", json!({ "path": path }))]);
    let api = ScriptedApi::new(&[
        read("poem.txt"),
        read("missing.txt"),
        text_response("so much depends"),
    ]);
    let bin = Path::new(env!("CARGO_BIN_EXE_toolq")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let script =
        format!("toolq init --agent-loop {language} && {command} 'What does the poem say?'");
    let ran = CliSandbox::new()
        .file("poem.txt", "a red wheel barrow")
        .env("PATH", &format!("{}:{path}", bin.display()))
        .env("ANTHROPIC_BASE_URL", &api.url)
        .env("ANTHROPIC_API_KEY", "c4n4ry-key")
        .run_shell(&script);
    (ran, api)
}

fn assert_loop_works(language: &str) {
    let Some(command) = loop_command(language) else {
        return;
    };
    let (ran, api) = run_loop(language, &command);
    assert_eq!(ran.code, 0, "{language}: {}", ran.stderr);
    assert_eq!(ran.stdout, "so much depends\n", "{language}");
    let requests = api.requests();
    assert_eq!(requests.len(), 3, "{language}");
    assert!(
        requests[0]
            .head
            .to_lowercase()
            .contains("x-api-key: c4n4ry-key")
    );
    assert_eq!(requests[0].body["tools"][1]["name"], "read_file");
    let messages = api.messages(2);
    assert_eq!(messages.len(), 5, "{language}: {messages:?}");
    assert_eq!(messages[0]["content"], "What does the poem say?");
    assert_eq!(messages[2]["content"][0]["content"], "a red wheel barrow");
    assert_eq!(messages[4]["content"][0]["is_error"], true);
}

#[test]
fn the_shell_loop_answers_a_model() {
    assert_loop_works("sh");
}

/// Interrupts the loop after its tool has paid, and starts it again: it goes on with the same message, so nothing is paid twice.
fn assert_loop_goes_on(language: &str) {
    let Some(command) = loop_command(language) else {
        return;
    };
    let api = ScriptedApi::new(&[
        calls_response(&[("pay", json!({}))]),
        ApiBehavior::Respond(400, "", json!({"type": "error"}).to_string()),
        text_response("It is paid."),
    ]);
    let bin = Path::new(env!("CARGO_BIN_EXE_toolq")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        r#"toolq init -q --agent-loop {language} || exit
        {command} "Pay the rent." && exit 8
        {command} another && exit 9
        {command} "Pay the rent." && cat book && test ! -e conversation.json"#
    );
    let pay =
        "{input_schema: {type: object}, effect: write, command: [sh, -c, 'echo paid >> book']}";
    let ran = CliSandbox::new()
        .tools(&format!("tools: {{pay: {pay}}}"))
        .env("PATH", &format!("{}:{path}", bin.display()))
        .env("ANTHROPIC_BASE_URL", &api.url)
        .env("ANTHROPIC_API_KEY", "c4n4ry-key")
        .run_shell(&script);
    assert_eq!(ran.code, 0, "{language}: {}", ran.stderr);
    assert_eq!(ran.stdout, "It is paid.\npaid\n", "{language}");
    let refused = "interrupted conversation";
    assert!(ran.stderr.contains(refused), "{}", ran.stderr);
    let requests = api.requests().len();
    assert_eq!(requests, 3, "{language}: the message isn't asked for again");
}

/// Runs a script in which `{agent}` is the loop in this language, for a model that pays and then answers. Returns how it ended
/// and how many requests the API got, or `None` where the loop can't run.
fn run_paying_loop(language: &str, approve: bool, script: &str) -> Option<(CliOutput, usize)> {
    let command = loop_command(language)?;
    let pay = calls_response(&[("pay", json!({}))]);
    let api = ScriptedApi::new(&[pay, text_response("It is paid.")]);
    let bin = Path::new(env!("CARGO_BIN_EXE_toolq")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let script = script.replace("{agent}", &command);
    let tools = format!(
        "tools: {{pay: {{input_schema: {{type: object}}, approve: {approve}, command: [sh, -c, 'echo paid >> book']}}}}"
    );
    let ran = CliSandbox::new()
        .tools(&tools)
        .env("PATH", &format!("{}:{path}", bin.display()))
        .env("ANTHROPIC_BASE_URL", &api.url)
        .env("ANTHROPIC_API_KEY", "c4n4ry-key")
        .run_shell(&format!(
            "toolq init -q --agent-loop {language} || exit; {script}"
        ));
    Some((ran, api.requests().len()))
}

/// A call that waits for an approval stops the loop. Once it is approved, the same command goes on with it.
#[test]
fn a_loop_waits_for_an_approval() {
    for language in ["sh", "python", "typescript"] {
        let Some((ran, requests)) = run_paying_loop(
            language,
            true,
            r#"{agent} "Pay the rent."; test $? = 6 && test ! -e book && test -e conversation.json || exit 9
            toolq approvals -q approve "$(toolq approvals --format json | jq -r '.[0].id')" || exit 8
            {agent} "Pay the rent." && cat book && test ! -e conversation.json && toolq approvals"#,
        ) else {
            continue;
        };
        assert_eq!(ran.code, 0, "{language}: {}", ran.stderr);
        assert_eq!(ran.stdout, "It is paid.\npaid\n", "{language}");
        let line = "a call waits for an approval: see 'toolq approvals', then run '";
        let line = if language == "sh" {
            line
        } else {
            &line[..line.len() - 1]
        };
        assert!(ran.stderr.contains(line), "{language}: {}", ran.stderr);
        assert_eq!(requests, 2, "{language}");
    }
}

/// A call in doubt isn't an answer: the loop ends, and keeps the conversation until somebody has settled it.
#[test]
fn a_loop_ends_at_a_call_in_doubt() {
    for language in ["sh", "python", "typescript"] {
        let Some((ran, requests)) = run_paying_loop(
            language,
            false,
            r#"TOOLQ_FAILPOINT=start.after:1:kill {agent} "Pay the rent."; test $? = 137 || exit 9
            {agent} "Pay the rent."; test $? = 3 && test -e conversation.json || exit 8
            {agent}; test $? = 3 && test -e conversation.json && cat conversation.json"#,
        ) else {
            continue;
        };
        assert_eq!(ran.code, 0, "{language}: {}", ran.stderr);
        let line = "not every call could run: see 'toolq log show', then run ";
        assert_eq!(ran.stderr.matches(line).count(), 2, "{}", ran.stderr);
        assert_eq!(requests, 1, "{language}");
    }
}

#[test]
fn an_interrupted_loop_goes_on() {
    for language in ["sh", "python", "typescript"] {
        assert_loop_goes_on(language);
    }
}

#[test]
fn the_python_loop_answers_a_model() {
    assert_loop_works("python");
}

#[test]
fn the_typescript_loop_answers_a_model() {
    assert_loop_works("typescript");
}

/// Returns the command that runs `agent.ts`. Node runs TypeScript by itself since 22.18; elsewhere, `TSX` names a program that
/// does.
fn typescript_command() -> Option<String> {
    if let Ok(tsx) = std::env::var("TSX") {
        return Some(format!("{tsx} agent.ts"));
    }
    let node = Command::new("node")
        .args(["--experimental-strip-types", "-e", ""])
        .output();
    if node.is_ok_and(|ran| ran.status.success()) {
        let node = "node --disable-warning=ExperimentalWarning --experimental-strip-types";
        return Some(format!("{node} agent.ts"));
    }
    skip("there is no program that runs TypeScript; TSX can name one");
    None
}

/// A model that answers at once gets no call to toolq's process, which then has nothing to complain about.
#[test]
fn a_loop_without_calls_prints_only_the_answer() {
    for language in ["python", "typescript"] {
        let Some(command) = loop_command(language) else {
            continue;
        };
        let api = ScriptedApi::new(&[text_response("nothing to do")]);
        let ran = run_against(&api.url, language, &command).assert_exit(0);
        assert_eq!((&*ran.stdout, &*ran.stderr), ("nothing to do\n", ""));
    }
}

#[test]
fn a_loop_ends_after_50_turns() {
    for language in ["sh", "python", "typescript"] {
        let Some(command) = loop_command(language) else {
            continue;
        };
        let call = calls_response(&[("list_files", json!({"path": "."}))]);
        let api = ScriptedApi::new(&vec![call; 51]);
        let ran = run_against(&api.url, language, &command).assert_exit(1);
        let last = ran.stderr.trim_end().lines().last();
        assert_eq!(
            last,
            Some("there is no answer after 50 turns"),
            "{language}"
        );
    }
}

/// A busy API is asked up to three times again, after the pause that it names.
#[test]
fn a_loop_asks_a_busy_api_again() {
    let busy = |status| {
        let error = json!({"type": "error"}).to_string();
        ApiBehavior::Respond(status, "Retry-After: 0\r\n", error)
    };
    for language in ["sh", "python", "typescript"] {
        let Some(command) = loop_command(language) else {
            continue;
        };
        let api = ScriptedApi::new(&[busy(429), busy(529), busy(503), text_response("done")]);
        let ran = run_against(&api.url, language, &command).assert_exit(0);
        assert_eq!(ran.stdout, "done\n", "{language}");
        assert_eq!(api.requests().len(), 4, "{language}");

        let api = ScriptedApi::new(&vec![busy(529); 5]);
        let ran = run_against(&api.url, language, &command).assert_exit(1);
        assert!(ran.stderr.contains("529"), "{language}: {}", ran.stderr);
        assert_eq!(api.requests().len(), 4, "{language}");
    }
}

/// An API that refuses the key ends a loop with an error, without the key in it.
#[test]
fn a_loop_ends_when_the_api_refuses() {
    let refuse = ApiBehavior::Respond(401, "", json!({"type": "error"}).to_string());
    for language in ["sh", "python"] {
        let Some(command) = loop_command(language) else {
            continue;
        };
        let api = ScriptedApi::new(std::slice::from_ref(&refuse));
        let ran = run_against(&api.url, language, &command);
        assert_ne!(ran.code, 0, "{language}: {}", ran.stdout);
        assert!(ran.stderr.contains("401"), "{language}: {}", ran.stderr);
        assert!(!ran.stderr.contains("c4n4ry"), "{language}: {}", ran.stderr);
    }
}

/// What nobody wrote for people, such as a traceback, hides the only line that helps.
#[test]
fn a_loop_says_in_one_line_that_it_reaches_no_api() {
    for language in ["python", "typescript"] {
        let Some(command) = loop_command(language) else {
            continue;
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        // Nothing listens there any more.
        drop(listener);
        let ran = run_against(&url, language, &command).assert_exit(1);
        let line = format!("{url}/v1/messages can't be reached: ");
        assert!(ran.stderr.starts_with(&line), "{}", ran.stderr);
        assert!(
            ran.stderr.to_lowercase().contains("refused"),
            "{}",
            ran.stderr
        );
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
}

/// Runs the loop that `toolq init` writes against an API.
fn run_against(url: &str, language: &str, command: &str) -> CliOutput {
    let bin = Path::new(env!("CARGO_BIN_EXE_toolq")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    CliSandbox::new()
        .env("PATH", &format!("{}:{path}", bin.display()))
        .env("ANTHROPIC_BASE_URL", url)
        .env("ANTHROPIC_API_KEY", "c4n4ry-key")
        .run_shell(&format!(
            "toolq init -q --agent-loop {language} && {command} hello"
        ))
}

#[test]
fn a_loop_without_a_key_says_which_variable_to_set() {
    for language in ["sh", "python"] {
        let Some(command) = loop_command(language) else {
            continue;
        };
        let script = format!(
            "\"$TOOLQ\" init -q --agent-loop {language} && env -u ANTHROPIC_API_KEY {command} hello"
        );
        let ran = CliSandbox::new().run_shell(&script);
        assert_ne!(ran.code, 0, "{language}: {}", ran.stdout);
        let lines: Vec<&str> = ran.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{language}: {lines:?}");
        assert!(
            lines[0].contains("ANTHROPIC_API_KEY"),
            "{language}: {lines:?}"
        );
    }
}

#[test]
fn a_loop_joins_a_tools_file_that_exists() {
    let tools = "version: 1\n";
    let ran = CliSandbox::new()
        .tools(tools)
        .run(&["init", "--agent-loop", "sh"])
        .assert_exit(0);
    assert_eq!(ran.file("tools.yaml").unwrap(), tools);
    assert!(ran.file("agent.sh").is_some());
    let directory = ran.dir;
    let again = CliSandbox::new()
        .file(
            "agent.sh",
            fs::read(directory.path().join("agent.sh")).unwrap(),
        )
        .run(&["init", "--agent-loop", "sh"])
        .assert_exit(2);
    assert!(
        again.stderr.contains("agent.sh already exists"),
        "{}",
        again.stderr
    );
    assert_eq!(again.file("tools.yaml"), None);
    // `--force` replaces the agent, as the hint says, and not the tools that the user has written.
    let forced = CliSandbox::new()
        .tools(tools)
        .file("agent.sh", "old")
        .run(&["init", "--agent-loop", "sh", "--force"])
        .assert_exit(0);
    assert_eq!(forced.file("tools.yaml").unwrap(), tools);
    assert_ne!(forced.file("agent.sh").unwrap(), "old");
}

#[test]
fn a_loop_beside_another_tools_file_is_told_its_name() {
    let ran = CliSandbox::new()
        .run(&["init", "-c", "my tools.yaml", "--agent-loop", "sh"])
        .assert_exit(0);
    let command = "TOOLQ_TOOLS='my tools.yaml' ANTHROPIC_API_KEY=… sh agent.sh";
    assert!(ran.stderr.contains(command), "{}", ran.stderr);
}
