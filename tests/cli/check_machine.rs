//! `toolq check --machine`: each kind of thing that a tool can need is taken away, and found missing. `toolq check` warns of it
//! where tools.yaml asks for it.

#[cfg(target_os = "linux")]
#[path = "check_machine/old_kernel.rs"]
pub mod old_kernel;

use std::net::TcpListener;

use crate::support::{CliOutput, CliSandbox};
use serde_json::Value;

/// A tool for each kind. `PORT` and `SERVER_PORT` are ports.
const TOOLS: &str = r#"
version: 1
env_file: secrets.env
tools:
  program: {description: d, input_schema: {type: object}, command: [./program.sh]}
  wrapped: {description: d, input_schema: {type: object}, command: [nice, -n, "1", ./program.sh]}
  script: {description: d, input_schema: {type: object}, command: [sh, script.sh, "x"]}
  interpreter: {description: d, input_schema: {type: object}, command: [./shebang]}
  variable: {description: d, input_schema: {type: object}, command: {argv: [cat], env: {TOKEN: "${MACHINE_TOKEN}"}}}
  filed: {description: d, input_schema: {type: object}, command: {argv: [cat], env: {TOKEN: "${FILED}"}}}
  placed: {description: d, input_schema: {type: object}, command: {argv: [cat], cwd: work}}
  probed: {description: d, input_schema: {type: object}, command: [cat], probe: [./probe.sh]}
  asked: {description: d, input_schema: {type: object}, http: {url: "http://127.0.0.1:PORT/x"}}
servers:
  files: {command: [./server.sh]}
  remote: {url: "http://127.0.0.1:SERVER_PORT/mcp"}
"#;

/// A tool that needs nothing.
const BARE_TOOLS: &str =
    "version: 1\ntools:\n  a: {description: d, input_schema: {type: object}, command: [cat]}\n";

struct Machine {
    sandbox: CliSandbox,
    /// Listen until the test ends.
    listeners: Vec<TcpListener>,
}

/// Returns a machine that has everything but `missing`.
fn machine_without(missing: &str) -> Machine {
    let listeners: Vec<TcpListener> = (0..2)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let port = |index: usize| listeners[index].local_addr().unwrap().port().to_string();
    let tools = TOOLS
        .replace("SERVER_PORT", &port(1))
        .replace("PORT", &port(0));
    let mut sandbox = CliSandbox::new().tools(&tools);
    for name in ["program.sh", "probe.sh", "server.sh"] {
        if name != missing {
            // It would leave a trace if it ran.
            sandbox = sandbox.program(name, "#!/bin/sh\ntouch ran\n");
        }
    }
    if missing != "script.sh" {
        sandbox = sandbox.file("script.sh", "touch ran\n");
    }
    let interpreter = if missing == "interpreter" {
        "no-such-interpreter"
    } else {
        "sh"
    };
    sandbox = sandbox.program(
        "shebang",
        &format!("#!/usr/bin/env {interpreter}\ntouch ran\n"),
    );
    if missing != "secrets.env" {
        sandbox = sandbox.file("secrets.env", "FILED=c4n4ry-filed\n");
    }
    if missing != "work" {
        sandbox = sandbox.file("work/keep", "");
    }
    if missing != "MACHINE_TOKEN" {
        sandbox = sandbox.env("MACHINE_TOKEN", "c4n4ry-token");
    }
    let keep = |index: usize, name: &str| (name != missing).then_some(index);
    let kept = [keep(0, "asked"), keep(1, "remote")];
    let listeners = listeners.into_iter().enumerate();
    let listeners = listeners.filter(|(index, _)| kept.contains(&Some(*index)));
    Machine {
        sandbox,
        listeners: listeners.map(|(_, listener)| listener).collect(),
    }
}

/// Returns what is missing, as `owner: kind name`.
fn missing_things(ran: &CliOutput) -> Vec<String> {
    let report: Value = serde_json::from_str(&ran.stdout).expect(&ran.stdout);
    let mut found = Vec::new();
    let mut add = |owner: &str, missing: &Value| {
        for thing in missing.as_array().unwrap() {
            if thing["optional"] == false {
                let (kind, name) = (
                    thing["kind"].as_str().unwrap(),
                    thing["name"].as_str().unwrap(),
                );
                found.push(format!("{owner}: {kind} {name}"));
            }
        }
    };
    add("machine", &report["machine"]);
    for group in ["tools", "servers"] {
        for subject in report[group].as_array().unwrap() {
            add(subject["name"].as_str().unwrap(), &subject["missing"]);
        }
    }
    found
}

#[test]
fn nothing_is_missing_from_a_machine_that_has_everything() {
    let machine = machine_without("nothing");
    let ran = machine.sandbox.run(&["check", "--machine"]).assert_exit(0);
    assert!(
        ran.stdout.contains("tool program: ready\n"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stderr
            .contains("9 tools, 2 warnings; nothing is missing"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.file("ran"), None, "a program was started");
    assert_eq!(machine.listeners.len(), 2);
}

#[test]
fn each_kind_that_is_taken_away_is_found_missing() {
    for (missing, expected) in [
        (
            "program.sh",
            &[
                "program: program ./program.sh",
                "wrapped: program ./program.sh",
            ][..],
        ),
        ("probe.sh", &["probed: program ./probe.sh"]),
        ("server.sh", &["files: program ./server.sh"]),
        ("script.sh", &["script: script script.sh"]),
        (
            "interpreter",
            &["interpreter: interpreter no-such-interpreter"],
        ),
        ("MACHINE_TOKEN", &["variable: variable MACHINE_TOKEN"]),
        ("work", &["placed: directory work"]),
    ] {
        let machine = machine_without(missing);
        let ran = machine
            .sandbox
            .run(&["check", "--machine", "--format", "json"]);
        assert_eq!(ran.code, 1, "{missing}: {}", ran.stderr);
        assert_eq!(missing_things(&ran), expected, "{missing}");
        assert!(
            !(ran.stdout.clone() + &ran.stderr).contains("c4n4ry"),
            "{}",
            ran.stdout
        );
        assert_eq!(ran.file("ran"), None, "a program was started");
    }
}

#[test]
fn an_address_at_which_nothing_listens_is_found_missing() {
    for (missing, kept) in [("asked", 1), ("remote", 1)] {
        let machine = machine_without(missing);
        assert_eq!(machine.listeners.len(), kept);
        let ran = machine
            .sandbox
            .run(&["check", "--machine", "--format", "json"]);
        let found = missing_things(&ran);
        assert_eq!(found.len(), 1, "{found:?}");
        let expected = format!("{missing}: address 127.0.0.1:");
        assert!(found[0].starts_with(&expected), "{found:?}");
        let machine = machine_without(missing);
        machine
            .sandbox
            .run(&["check", "--machine", "--offline"])
            .assert_exit(0);
    }
}

#[test]
fn the_root_and_the_directory_of_logs_are_found_missing() {
    let tools = &format!("{BARE_TOOLS}root: elsewhere\n");
    let ran = CliSandbox::new()
        .tools(tools)
        .run(&["check", "--machine"])
        .assert_exit(1);
    assert!(
        ran.stdout.contains("elsewhere isn't a directory"),
        "{}",
        ran.stdout
    );
    let ran = CliSandbox::new()
        .tools(tools)
        .run(&["check", "--format", "json"])
        .assert_exit(0);
    let warned = warnings_and_places(&ran, tools);
    assert!(warned[0].0.ends_with("elsewhere isn't a directory"));
    assert_eq!((warned.len(), &*warned[0].1), (1, "elsewhere"));
    let sandbox = CliSandbox::new()
        .tools(BARE_TOOLS)
        .env("XDG_STATE_HOME", "")
        .env("HOME", "");
    let ran = sandbox.run(&["check", "--machine"]).assert_exit(1);
    assert!(
        ran.stdout.contains("no directory for session logs"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_variable_that_is_only_passed_on_is_optional() {
    let tools = "version: 1\ntools:\n  a: {description: d, input_schema: {type: object}, command: {argv: [cat], pass_env: [MACHINE_PASSED]}}\n";
    let ran = CliSandbox::new()
        .tools(tools)
        .run(&["check", "--machine"])
        .assert_exit(0);
    assert!(
        ran.stdout
            .contains("note: the variable MACHINE_PASSED isn't set"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_path_that_a_sandbox_names_is_only_missed() {
    let tools = "version: 1\ntools:\n  a: {description: d, input_schema: {type: object}, command: [cat], sandbox: {read: [system, ./gone]}}\n";
    let ran = CliSandbox::new()
        .tools(tools)
        .run(&["check", "--machine", "--format", "json"])
        .assert_exit(0);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let missing = &report["tools"][0]["missing"];
    assert_eq!(missing[0]["kind"], "path", "{missing}");
    assert_eq!(missing[0]["optional"], true, "{missing}");
    let ran = CliSandbox::new()
        .tools(tools)
        .file("gone/is", "there")
        .run(&["check", "--machine", "--format", "json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["tools"][0]["missing"], Value::Array(Vec::new()));
}

/// What several tools miss is said once, and not at all with `-q`.
#[test]
fn a_note_names_all_tools_that_it_is_about() {
    let tool = |name: &str| {
        format!(
            "  {name}: {{description: d, input_schema: {{type: object}}, command: [cat], sandbox: {{missing: warn, read: [system, ./gone], write: [out]}}}}\n"
        )
    };
    let tools = format!("version: 1\ntools:\n{}{}", tool("a"), tool("b"));
    let check = |flags: &[&str]| {
        let arguments = [&["check", "--machine"], flags].concat();
        CliSandbox::new()
            .tools(&tools)
            .run(&arguments)
            .assert_exit(0)
            .stdout
    };
    let (all, quiet) = (check(&[]), check(&["-q"]));
    let note = "note: absent, so the sandbox allows nothing there: ./gone, out (a, b)\n";
    assert!(all.contains(note), "{all}");
    assert_eq!(all.matches("gone").count(), 1, "{all}");
    assert_eq!(quiet, "tool a: ready\ntool b: ready\n");
}

/// A program that the sandbox doesn't show is as good as missing, whether it is started, read or named by a script.
#[test]
fn a_program_that_the_sandbox_keeps_away_is_found_out() {
    let elsewhere = CliSandbox::new().program("hidden", "#!/bin/sh\n");
    let elsewhere = elsewhere.run(&["--version"]).dir;
    let hidden = elsewhere.path().canonicalize().unwrap().join("hidden");
    let hidden = hidden.to_str().unwrap();
    for (command, sandbox, kind) in [
        ("[env, HIDDEN]", "{}", "program"),
        ("[sh, HIDDEN]", "{}", "script"),
        ("[./named]", "{}", "interpreter"),
        ("[cat]", "{read: [root]}", "program"),
        ("[HIDDEN]", "{}", ""),
        ("[env, HIDDEN]", "{read: [system, DIR]}", ""),
        ("[env, HIDDEN]", "false", ""),
        ("[env, cat]", "{}", ""),
    ] {
        let tools = format!(
            "version: 1\ntools:\n  a: {{description: d, input_schema: {{type: object}}, command: {command}, sandbox: {sandbox}}}\n"
        );
        let dir = hidden.strip_suffix("/hidden").unwrap();
        let ran = CliSandbox::new()
            .tools(&tools.replace("HIDDEN", hidden).replace("DIR", dir))
            .program("named", &format!("#!{hidden}\n"))
            .run(&["check", "--machine", "--format", "json"]);
        let mut found = missing_things(&ran);
        found.retain(|thing| !thing.contains(": kernel "));
        let is_as_expected = match kind {
            "" => found.is_empty(),
            kind => found.len() == 1 && found[0].starts_with(&format!("a: {kind} ")),
        };
        assert!(is_as_expected, "{command} {sandbox}: {found:?}");
    }
}

#[test]
fn what_an_agent_and_its_wrapper_need_is_found_missing() {
    let tools = "version: 1\ntools:\n  ask: {description: d, input_schema: {type: object}, agent: {endpoint: 'http://127.0.0.1:1/v1/messages', model: m, prompt: p, system: s, tools: [], api_key: '${MACHINE_KEY}'}}\n  wrapped: {description: d, input_schema: {type: object}, command: [cat], wrapper: [no-such-wrapper, --]}\n";
    let sandbox = CliSandbox::new().tools(tools);
    let ran = sandbox.run(&["check", "--machine", "--offline", "--format", "json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let expected = [
        "ask: variable MACHINE_KEY",
        "wrapped: program no-such-wrapper",
    ];
    assert_eq!(missing_things(&ran), expected);
}

#[test]
fn what_a_file_with_errors_needs_is_not_known() {
    let sandbox = CliSandbox::new().tools("version: 1\nenv_file: gone.env\n");
    let ran = sandbox.run(&["check", "--machine", "--format", "json"]);
    let report = ran.assert_exit(1).json();
    assert_eq!(report["errors"], 2, "{report}");
    assert_eq!(report.get("ready"), None, "{report}");
}

/// Returns the warnings of a check without `--machine`: each message, and the text that it is about.
fn warnings_and_places(ran: &CliOutput, tools: &str) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(&ran.stdout).expect(&ran.stdout);
    assert_eq!(report.get("machine"), None, "{report}");
    let lines: Vec<&str> = tools.lines().collect();
    let problems = report["problems"].as_array().unwrap().iter();
    let placed = problems.map(|problem| {
        let number = |key: &str| usize::try_from(problem[key].as_u64().unwrap()).unwrap() - 1;
        let rest = &lines[number("line")][number("column")..];
        let end = rest.find([',', ']', '}', ':']).unwrap_or(rest.len());
        let message = problem["message"].as_str().unwrap().to_owned();
        (message, rest[..end].to_owned())
    });
    placed.collect()
}

/// What is missing is reported before a model calls the tool. What calls run without isn't.
#[test]
fn what_is_missing_is_a_warning_where_the_file_asks_for_it() {
    let tools = r#"version: 1
defaults: {cwd: absent}
tools:
  a: {input_schema: {type: object}, command: {argv: [no-such-program], cwd: sub}}
  b: {input_schema: {type: object}, command: {argv: [./plain], cwd: ., env: {X: "${UNSET} ${D:-d}"}, pass_env: [GONE]}}
  c: {input_schema: {type: object}, command: [./directory]}
  d: {input_schema: {type: object}, http: {url: "${BASE}:1/", body: ["${UNSET}"]}}
  e: {input_schema: {type: object}, effect: write, command: {argv: [sh, gone.sh], cwd: .}, probe: [no-probe]}
  f: {describe: [./shebang], command: [cat], paths: []}
servers:
  s: {command: {argv: [./server], env: {X: "${UNSET}${ONLY}"}}}
"#;
    let ran = CliSandbox::new()
        .tools(tools)
        .file("plain", "no program")
        .file("directory/keep", "")
        .program("shebang", "#!/no/interpreter\n")
        .run(&["check", "--format", "json"]);
    let mut found = warnings_and_places(&ran, tools);
    found.retain(|(message, _)| !message.contains("isn't locked"));
    let dir = ran.dir.path().canonicalize().unwrap().join("");
    for (message, _) in &mut found {
        *message = message.replace(dir.to_str().unwrap(), "");
    }
    let found: Vec<_> = found.iter().map(|(message, at)| [&**message, at]).collect();
    let expected = [
        [
            "there is no directory absent in the root, where this runs",
            "absent",
        ],
        ["no-such-program isn't in PATH", "no-such-program"],
        [
            "there is no directory sub in the root, where this runs",
            "sub",
        ],
        [
            "the variable UNSET is unset or empty (needed by 2 more)",
            "command",
        ],
        ["./plain can't be executed", "./plain"],
        ["there is no program ./directory", "./directory"],
        ["the variable BASE is unset or empty", "http"],
        ["there is no script gone.sh", "sh"],
        ["no-probe isn't in PATH", "no-probe"],
        [
            "./shebang needs /no/interpreter, which isn't there",
            "./shebang",
        ],
        ["the variable ONLY is unset or empty", "command"],
        ["there is no program ./server", "./server"],
    ];
    assert_eq!(found, expected);
}

/// What a runner of packages starts is in none of the directories of PATH. So what `init` writes can pass once it is locked.
#[test]
fn a_package_is_not_looked_for_like_a_program() {
    let tools = r#"version: 1
tools:
  a: {input_schema: {type: object}, command: [npx, -y, "@scope/pkg@1.2.3"]}
  b: {input_schema: {type: object}, command: [npx, plain-pkg]}
  c: {input_schema: {type: object}, command: [uvx, mcp-x]}
  d: {input_schema: {type: object}, command: [pnpm, dlx, mcp-x]}
"#;
    let mut sandbox = CliSandbox::new().tools(tools);
    for runner in ["npx", "uvx", "pnpm"] {
        sandbox = sandbox.program(runner, "#!/bin/sh\n");
    }
    let ran = sandbox
        .run_shell(
            r#"PATH="$PWD:$PATH" "$TOOLQ" check && PATH="$PWD:$PATH" "$TOOLQ" check --machine"#,
        )
        .assert_exit(0);
    assert!(
        !ran.stderr.contains("there is no program"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("PATH"), "{}", ran.stderr);
}

/// A probe has the environment of its tool's command. What it lacks is said once, either in the report or at its place.
#[test]
fn what_a_tool_lacks_is_said_once() {
    let tools = r#"version: 1
tools:
  pay:
    input_schema: {type: object}
    command: {argv: [cat], env: {X: "${UNSET}"}}
    probe: [cat]
"#;
    let sandbox = || CliSandbox::new().tools(tools);
    let placed = sandbox().run(&["check", "--format", "json"]);
    let unset = "the variable UNSET is unset or empty";
    assert_eq!(
        warnings_and_places(&placed, tools),
        [(unset.to_owned(), "command".to_owned())]
    );
    let reported = sandbox().run(&["check", "--machine"]);
    assert_eq!(reported.stdout.matches(unset).count(), 1);
    assert!(!reported.stderr.contains(unset), "{}", reported.stderr);
    assert!(reported.stderr.contains("no problems; 1 thing is missing"));
}

/// One in `defaults` is about many tools. Where a gap is allowed, there is nothing to warn about.
#[cfg(target_os = "linux")]
#[test]
fn a_sandbox_that_the_kernel_lacks_is_a_warning_where_it_is_declared() {
    for (policy, expected) in [("refuse", 1), ("warn", 0)] {
        let tools = format!(
            "version: 1\ndefaults: {{sandbox: {{read: [system], missing: {policy}}}}}\ntools:\n  a: {{input_schema: {{type: object}}, command: [cat]}}\n  b: {{input_schema: {{type: object}}, command: [cat]}}\n"
        );
        let sandbox = CliSandbox::new().tools(&tools);
        let mut command = sandbox.command(&["check", "--format", "json"]);
        old_kernel::take_away_landlock(&mut command);
        let ran = sandbox.run_command(command).assert_exit(0);
        let found = warnings_and_places(&ran, &tools);
        assert_eq!(found.len(), expected, "{found:?}");
        for (message, place) in found {
            assert!(message.contains("this system can't confine"), "{message}");
            assert_eq!(place, "sandbox");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_kernel_that_cannot_confine_is_found_out() {
    let tools = "version: 1\ntools:\n  a: {description: d, input_schema: {type: object}, command: [cat], sandbox: {read: [system]}}\n";
    let sandbox = CliSandbox::new().tools(tools);
    let mut command = sandbox.command(&["check", "--machine", "--format", "json"]);
    old_kernel::take_away_landlock(&mut command);
    let ran = sandbox.run_command(command).assert_exit(1);
    assert_eq!(missing_things(&ran), ["a: kernel sandbox"]);
    assert!(ran.stdout.contains("lacks Landlock"), "{}", ran.stdout);
}
