//! `sandbox`: what it allows, where it applies, and who says so. That nothing gets out is shown in `sandbox/`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::shell_server::shell_server;
use crate::support::{CliOutput, CliSandbox, model_response, skip};
use serde_json::{Value, json};

/// Returns whether this system confines nothing or not everything, and says that the test is skipped.
fn is_skipped() -> bool {
    let missing = procfence::missing_protections(&procfence::NetworkAccess::None);
    if !missing.is_empty() {
        let missing = missing.join(", or ");
        skip(format_args!("this system can't confine {missing}"));
    }
    !missing.is_empty()
}

fn run(tools: &str, calls: &[(&str, Value)]) -> CliOutput {
    CliSandbox::new()
        .tools(tools)
        .file("notes.txt", "notes")
        .stdin(model_response(calls))
        .run(&["run", "--no-log"])
}

/// Returns whether each result is an error, and its text.
fn results(output: &CliOutput) -> Vec<(bool, String)> {
    let texts = output.result_texts().into_iter();
    texts.map(|(text, is_error)| (is_error, text)).collect()
}

/// `edit` writes standard input to a file, `tear` fails before it writes anything.
const EDIT: &str = r#"
version: 1
tools:
  edit:
    input_schema: &edit {type: object, properties: {path: {type: string}, text: {type: string}}, required: [path]}
    paths: [path]
    sandbox: {read: [system], write: ["{path}"]}
    command: {argv: [tee, --, "{path}"], stdin: "{text?}"}
  tear:
    input_schema: *edit
    paths: [path]
    sandbox: {read: [system], write: ["{path}"]}
    command: [sh, -c, 'exit 1', sh, "{path}"]
  both:
    input_schema: {type: object, properties: {paths: {type: array, items: {type: string}}}, required: [paths]}
    paths: [paths]
    sandbox: {read: [system], write: ["{paths...}"]}
    command: [sh, -c, 'for file in "$@" notes.txt; do echo x >> "$file" || exit 1; done', --, "{paths...}"]
"#;

#[test]
fn a_tool_writes_the_file_that_it_was_asked_for_and_no_other() {
    if is_skipped() {
        return;
    }
    let calls = [
        ("edit", json!({"path": "new.txt", "text": "new"})),
        ("edit", json!({"path": "notes.txt", "text": "changed"})),
        ("tear", json!({"path": "torn.txt"})),
        ("tear", json!({"path": "notes.txt"})),
        ("edit", json!({"path": "../outside", "text": "x"})),
        ("both", json!({"paths": ["a", "b"]})),
        ("edit", json!({"path": "missing/new.txt", "text": "x"})),
    ];
    let output = run(EDIT, &calls);
    let results = results(&output);
    let errors: Vec<bool> = results.iter().map(|(is_error, _)| *is_error).collect();
    assert_eq!(
        errors,
        [false, false, true, true, true, true, true],
        "{results:?}"
    );
    let read = |name: &str| fs::read_to_string(output.dir.path().join(name)).ok();
    assert_eq!(read("new.txt").as_deref(), Some("new"));
    assert_eq!(read("notes.txt").as_deref(), Some("changed"));
    // It was created so that it could be written, and never was.
    assert_eq!(read("torn.txt"), None);
    // The spread allows two files, and the program tried a third.
    assert!(results[5].1.contains("notes.txt"), "{}", results[5].1);
    assert_eq!(
        read("a").zip(read("b")),
        Some(("x\n".to_owned(), "x\n".to_owned()))
    );
    assert!(results[6].1.contains("No such file"), "{}", results[6].1);
}

/// A link that appears after the paths were judged leads to nothing that is allowed.
#[test]
fn a_path_that_leads_out_of_the_root_allows_nothing() {
    if is_skipped() {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "canary").unwrap();
    let tools = format!(
        r#"
version: 1
tools:
  swap:
    input_schema: {{type: object, properties: {{path: {{type: string}}}}, required: [path]}}
    paths: [path]
    sandbox: {{read: [system, "{{path}}"], write: ["."]}}
    command: [sh, -c, 'ln -sf {secret} link; cat link "$1"', sh, "{{path}}"]
  read:
    input_schema: {{type: object, properties: {{path: {{type: string}}}}, required: [path]}}
    paths: [path]
    sandbox: {{read: [system, "{{path}}"]}}
    command: [cat, --, "{{path}}"]
"#,
        secret = secret.display()
    );
    let calls = [
        ("swap", json!({"path": "notes.txt"})),
        ("read", json!({"path": "link"})),
        ("read", json!({"path": "notes.txt"})),
    ];
    let results = results(&run(&tools, &calls));
    assert!(!results[0].1.contains("canary"), "{results:?}");
    assert!(results[1].0, "{results:?}");
    assert_eq!(results[2], (false, "notes".to_owned()));
}

#[test]
fn each_call_has_an_empty_temporary_directory_that_is_removed() {
    if is_skipped() {
        return;
    }
    let tools = r#"
version: 1
tools:
  work:
    input_schema: {type: object}
    sandbox: {}
    command: [sh, -c, 'ls -A "$TMPDIR"; mkdir -p "$TMPDIR/a/b" && echo x > "$TMPDIR/a/b/c"; mkdir -m 300 "$TMPDIR/closed"; echo "$TMPDIR"']
"#;
    let outer = tempfile::tempdir().unwrap();
    let call = ("work", json!({}));
    let output = CliSandbox::new()
        .tools(tools)
        .env("TMPDIR", outer.path().to_str().unwrap())
        .stdin(model_response(&[call.clone(), call.clone(), call]))
        .run(&["run", "--no-log"]);
    for (is_error, printed) in results(&output) {
        assert!(!is_error, "{printed}");
        // Nothing of the calls before is listed.
        assert_eq!(printed.lines().count(), 1, "{printed}");
        assert!(Path::new(&printed).starts_with(outer.path()), "{printed}");
    }
    let started = Instant::now();
    while fs::read_dir(outer.path()).unwrap().next().is_some() {
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "something is left"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A probe that asks a file outside what became of a call finds nothing there.
#[test]
fn a_probe_is_confined() {
    if is_skipped() {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let record = outside.path().join("record");
    fs::write(&record, "canary").unwrap();
    let resume = |confined: &str| {
        let tools = format!(
            r"
version: 1
tools:
  pay:
    input_schema: {{type: object}}
    sandbox: {confined}
    probe: [sh, -c, 'cat {record} 2> /dev/null || exit 1']
    command: [echo, paid]
",
            record = record.display()
        );
        let sandbox = CliSandbox::new()
            .tools(&tools)
            .file("turn.json", model_response(&[("pay", json!({}))]));
        let run = |failpoint: &str, arguments: &[&str]| {
            let all = [&["run", "--log", "log.jsonl", "turn.json"], arguments].concat();
            let mut command = sandbox.command(&all);
            command.env("TOOLQ_FAILPOINT", failpoint);
            command.output().unwrap()
        };
        assert_eq!(run("start.before:1:kill", &[]).status.code(), None);
        let resumed = run("", &[]);
        let answer: Value = serde_json::from_slice(&resumed.stdout).unwrap();
        answer["content"][0]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(resume("false"), "canary");
    assert_eq!(resume("{}"), "paid");
}

/// A tool that describes itself and a server: both try to read the same file.
#[test]
fn descriptions_and_servers_are_confined() {
    if is_skipped() {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "canary").unwrap();
    let described = r#"{"description":"canary","input_schema":{"type":"object"}}"#;
    let tools = |sandbox: &str| {
        format!(
            r#"
version: 1
tools:
  described:
    describe: [sh, -c, 'grep -q canary {secret} && printf %s "$1"', sh, '{described}']
    sandbox: {sandbox}
    command: [cat, notes.txt]
"#,
            secret = secret.display()
        )
    };
    let describe = |sandbox: &str| {
        let files = CliSandbox::new().tools(&tools(sandbox));
        files.run(&["tools", "--format", "mcp"])
    };
    assert!(describe("false").stdout.contains("canary"));
    let confined = describe("{}");
    assert!(!confined.stdout.contains("canary"), "{}", confined.stdout);

    let read = format!(
        r#"text=$(cat {secret} 2>/dev/null || echo nothing)
    result='{{"content":[{{"type":"text","text":"'$text'"}}]}}'"#,
        secret = secret.display()
    );
    let server = shell_server("", &[("tools/call", &read)]);
    let serve = |sandbox: &str| {
        let tools = format!(
            "version: 1\nservers: {{s: {{command: [./server], sandbox: {sandbox}}}}}\ntools: {{read: {{input_schema: {{type: object}}, mcp: {{server: s}}}}}}\n"
        );
        let output = CliSandbox::new()
            .tools(&tools)
            .program("server", &server)
            .stdin(model_response(&[("read", json!({}))]))
            .run(&["run", "--no-log"]);
        results(&output).remove(0).1
    };
    assert_eq!(serve("false"), "canary");
    assert_eq!(serve("{}"), "nothing");
}

#[test]
fn a_plan_and_a_listing_say_what_programs_can_reach() {
    let tools = r#"
version: 1
defaults: {sandbox: {network: [443, 53]}}
tools:
  edit:
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
    paths: [path]
    sandbox: {write: ["{path}", "${OUT:-out}/x"], missing: warn}
    command: [touch, --, "{path}"]
  free:
    input_schema: {type: object}
    sandbox: false
    command: [date]
"#;
    let calls = [("edit", json!({"path": "a.txt"})), ("free", json!({}))];
    let files = || CliSandbox::new().tools(tools).stdin(model_response(&calls));
    let plan = files().run(&["plan"]).assert_exit(0).stdout;
    let line = "sandbox: read root, system; write a.txt, ${OUT:-out}/x; TCP to 443, 53; as far as the system can";
    assert!(plan.contains(line), "{plan}");
    assert_eq!(plan.matches("sandbox").count(), 1, "{plan}");
    let plan = files()
        .run(&["plan", "--format", "json"])
        .assert_exit(0)
        .stdout;
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let sandboxes: Vec<&Value> = plan["batches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|batch| &batch["calls"][0]["sandbox"])
        .collect();
    let expected = json!({"read": ["root", "system"], "write": ["a.txt", "${OUT:-out}/x"], "network": [443, 53], "missing": "warn"});
    assert_eq!(sandboxes, [&expected, &Value::Null]);
    let listing = files()
        .run(&["tools", "--format", "json"])
        .assert_exit(0)
        .stdout;
    let listing: Value = serde_json::from_str(&listing).unwrap();
    let described =
        "read root, system; write {path}, ${OUT}/x; TCP to 443, 53; as far as the system can";
    assert_eq!(listing[0]["sandbox"], described);
    assert_eq!(listing[1]["sandbox"], Value::Null);
}

#[test]
fn check_warns_of_ways_out_and_is_silent_where_a_sandbox_is_the_answer() {
    let tools = |sandbox: &str| {
        format!(
            r#"
version: 1
tools:
  cat:
    input_schema: {{type: object, properties: {{path: {{type: string}}}}, required: [path]}}
    sandbox: {sandbox}
    command: [cat, "./{{path}}"]
  shell:
    input_schema: {{type: object, properties: {{script: {{type: string}}}}, required: [script]}}
    sandbox: {sandbox}
    command: {{argv: [sh], stdin: "{{script}}"}}
"#
        )
    };
    let check = |sandbox: &str| {
        let files = CliSandbox::new().tools(&tools(sandbox)).file("src/a", "");
        files.run(&["check"]).stderr
    };
    let unconfined = check("false");
    for message in ["may lead anywhere", "runs what it reads from stdin"] {
        assert!(unconfined.contains(message), "{message}: {unconfined}");
    }
    assert_eq!(unconfined.matches("`sandbox`").count(), 2, "{unconfined}");
    if is_skipped() {
        return;
    }
    assert!(check("{}").contains("no problems"), "{}", check("{}"));
    assert!(check("{write: [src]}").contains("no problems"));
}

#[test]
fn mistakes_in_a_sandbox_are_errors() {
    for (keys, message) in [
        ("sandbox: true", "doesn't say what the program can reach"),
        (
            "sandbox: {write: [\"{path}\"]}",
            "only inputs named in `paths`",
        ),
        ("sandbox: {network: [0]}", "0 isn't a port"),
        ("sandbox: {network: some}", "`none`, `all`"),
        ("sandbox: {read: [\"\"]}", "there is no path"),
        ("sandbox: {reads: [root]}", "reads"),
        (
            "sandbox: {write: [\"{nothing}\"]}",
            "the input has no `nothing`",
        ),
    ] {
        let tools = format!(
            "version: 1\ntools:\n  t:\n    input_schema: {{type: object, properties: {{path: {{type: string}}}}}}\n    {keys}\n    command: [date]\n"
        );
        let output = CliSandbox::new()
            .tools(&tools)
            .run(&["check"])
            .assert_exit(1);
        assert!(output.stderr.contains(message), "{keys}: {}", output.stderr);
    }
    let shared = "version: 1\ndefaults: {sandbox: {write: [\"{path}\"]}}\ntools: {t: {input_schema: {type: object}, command: [date]}}\n";
    let output = CliSandbox::new()
        .tools(shared)
        .run(&["check"])
        .assert_exit(1);
    assert!(
        output.stderr.contains("only the `sandbox` of a tool"),
        "{}",
        output.stderr
    );
    let unused = "version: 1\ntools: {t: {input_schema: {type: object}, sandbox: {}, http: {url: \"https://a.example\"}}}\n";
    let output = CliSandbox::new()
        .tools(unused)
        .run(&["check"])
        .assert_exit(1);
    assert!(
        output.stderr.contains("runs no program"),
        "{}",
        output.stderr
    );
}

/// The program exists and is executable, so users couldn't find the cause if the error didn't name the sandbox.
#[test]
fn a_sandbox_without_what_programs_need_is_named_as_the_cause() {
    if is_skipped() {
        return;
    }
    let tools = |read: &str| {
        format!(
            "version: 1\ntools:\n  sh:\n    input_schema: {{type: object}}\n    sandbox: {{read: {read}}}\n    command: [sh, -c, echo hi]\n"
        )
    };
    let results = results(&run(&tools("[]"), &[("sh", json!({}))]));
    let (is_error, text) = &results[0];
    assert!(*is_error);
    for words in ["can't be started in its sandbox", "add `system` to `read`"] {
        assert!(text.contains(words), "{text}");
    }
    let check = |read: &str| CliSandbox::new().tools(&tools(read)).run(&["check"]).stderr;
    let warned = check("[]");
    assert!(warned.contains("the sandbox doesn't show"), "{warned}");
    assert!(check("[root]").contains("the sandbox doesn't show"));
    assert!(check("[system]").contains("no problems"));
    assert!(check("[/]").contains("no problems"));
}

/// Answers every question over TCP with one address, like a name server that clients reach with `use-vc`.
const NAME_SERVER: &str = r#"
import socket, sys
server = socket.create_server(("127.0.0.1", 53))
open("ready", "w").close()
while True:
    connection, _ = server.accept()
    with connection:
        while header := connection.recv(2):
            query = connection.recv(int.from_bytes(header, "big"))
            question = query[12:query.index(b"\0", 12) + 5]
            is_a = question[-4:-2] == b"\0\1"
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x0a\1\2\3" if is_a else b""
            reply = query[:2] + b"\x81\x80\0\1" + bytes([0, int(is_a)]) + b"\0\0\0\0" + question + answer
            connection.sendall(len(reply).to_bytes(2, "big") + reply)
"#;

/// With port 53 among the ports, names are looked up over TCP: against a name server in namespaces of its own, which has the
/// port and nothing else.
#[test]
fn with_port_53_names_are_looked_up_over_tcp() {
    let ports = procfence::NetworkAccess::TcpPorts(vec![53]);
    let missing = procfence::missing_protections(&ports);
    let tools = |ports: &str| {
        format!(
            r"
version: 1
tools:
  look_up:
    effect: read
    input_schema: {{type: object}}
    sandbox: {{network: {ports}}}
    command: [getent, ahostsv4, toolq.example]
"
        )
    };
    let script = r#"
        ip link set lo up && mount --bind resolv.conf /etc/resolv.conf && mount --bind nsswitch.conf /etc/nsswitch.conf || { echo "no namespaces"; exit; }
        python3 name_server.py & server=$!
        until [ -e ready ]; do kill -0 $server || exit; sleep 0.05; done
        for file in with.yaml without.yaml; do
            "$TOOLQ" run -q --no-log -c $file call.json | jq -r '.content[0] | [.is_error // false, (.content | split(" ")[0])] | @csv'
        done
        kill $server
    "#;
    let sandbox = CliSandbox::new()
        .file("with.yaml", tools("[53]"))
        .file("without.yaml", tools("[54]"))
        .file("name_server.py", NAME_SERVER)
        .file("resolv.conf", "nameserver 127.0.0.1\n")
        .file("nsswitch.conf", "hosts: dns\n")
        .file("inside", script)
        .file("call.json", model_response(&[("look_up", json!({}))]));
    let unshare =
        "unshare --user --map-root-user --net --mount sh inside 2> problems || echo no namespaces";
    let output = sandbox.run_shell(unshare);
    if !missing.is_empty()
        || output.stdout.contains("no namespaces")
        || !output.dir.path().join("ready").exists()
    {
        let problems = output.file("problems").unwrap_or_default();
        return skip(format_args!(
            "this system has no namespaces, Python or ports in Landlock: {}",
            problems.trim()
        ));
    }
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(
        lines[0],
        "false,\"10.1.2.3\"",
        "{}",
        output.file("problems").unwrap()
    );
    assert!(lines[1].starts_with("true,"), "{lines:?}");
}
