//! `--on-copy`: what calls can't reach, which processes don't outlive them, and what runs on systems without namespaces.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use serde_json::json;

use crate::replay::copy_replay::{
    CopyReplay, TOOLS, directory_outside, replay_on_copy, replay_with_tools, sandbox, shell,
};
use crate::replay::{differences, ok_result, recorded_turn, report_counts};
use crate::support::eprint_uncaptured;

/// A write outside of `root` fails rather than changing the machine, and so does anything that needs a network or a service.
#[test]
fn nothing_outside_of_the_copy_can_be_changed() {
    let Some(outside) = directory_outside() else {
        return;
    };
    fs::write(outside.path().join("file"), "as before").unwrap();
    let socket = outside.path().join("socket");
    let _service = UnixListener::bind(&socket).unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let port = server.local_addr().unwrap().port();
    let dir = outside.path().display();
    let script = format!(
        "cd {dir}; {{ echo x > file || echo refused; touch new || echo refused; rm file || echo refused; cat file; echo; \
         [ -S socket ] || echo no service; }} 2> /dev/null; command -v bash > /dev/null && bash -c ': < \
         /dev/tcp/127.0.0.1/{port}' 2> /dev/null || echo no network; mount -o remount,rw / 2> /dev/null || echo still \
         read-only"
    );
    let expected = "refused\nrefused\nrefused\nas before\nno service\nno network\nstill read-only";
    let Some(CopyReplay { ran, .. }) = replay_on_copy(sandbox(), &[&shell(&script, expected)], &[])
    else {
        return;
    };
    ran.assert_exit(0);
    assert_eq!(
        fs::read_to_string(outside.path().join("file")).unwrap(),
        "as before"
    );
    assert!(!outside.path().join("new").exists());
    assert!(server.accept().is_err(), "a connection came through");
}

/// What is removed between recordings is what the calls made, never what their links lead to.
#[test]
fn a_link_in_place_of_a_directory_above_root_is_not_followed() {
    let Some(outside) = directory_outside() else {
        return;
    };
    fs::write(outside.path().join("file"), "as before").unwrap();
    let sandbox = sandbox();
    // The sandbox is a temporary directory, so calls find a private one in its place, which they can write.
    let parent = sandbox.path().display().to_string();
    let attack = format!(
        "cd /; mv {parent} {parent}-moved 2> /dev/null || echo stays; ln -s {0} {parent}/link; ln -s {0} {parent}-link; \
         mkdir -p {parent}-other/a && mv {parent}-other {parent}-b && ls -d {parent}-b/a",
        outside.path().display()
    );
    let recordings = [
        shell(&attack, &format!("stays\n{parent}-b/a")),
        shell("cat poem; ls -A ..", "so much depends\nroot"),
    ];
    let recordings = recordings.each_ref().map(String::as_str);
    let Some(CopyReplay { ran, .. }) = replay_on_copy(sandbox, &recordings, &[]) else {
        return;
    };
    ran.assert_exit(0);
    assert_eq!(
        fs::read_to_string(outside.path().join("file")).unwrap(),
        "as before"
    );
}

/// Recordings are full of commands such as `kill 4711` and `pkill node`, and numbers of processes recur.
#[test]
fn other_processes_can_not_be_reached() {
    let Some(outside) = directory_outside() else {
        return;
    };
    let mut other = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let pid = other.id();
    let file = outside.path().join("file").display().to_string();
    let script = format!(
        "kill -9 {pid} 2> /dev/null || echo alive; {{ echo x > /proc/{pid}/root{file}; }} 2> /dev/null || echo refused; \
         sleep 60 & kill $! && wait $! || echo ended; trap 'echo caught' USR1; kill -USR1 $$; echo x > /dev/null; \
         echo x > /dev/stdout; mkfifo p; (echo y > p &); cat p; mkdir d; mv poem d; ln d/poem poem; cat poem; mktemp > t; \
         echo z > $(cat t); mv $(cat t) d/t; cat d/t"
    );
    let expected = "alive\nrefused\nended\ncaught\nx\ny\nso much depends\nz";
    let replayed = replay_on_copy(sandbox(), &[&shell(&script, expected)], &[]);
    let is_alive = other.try_wait().unwrap().is_none();
    other.kill().unwrap();
    other.wait().unwrap();
    let Some(CopyReplay { ran, .. }) = replayed else {
        return;
    };
    assert!(!outside.path().join("file").exists());
    if !is_alive {
        eprint_uncaptured(format_args!("skipped: no Landlock that knows signals\n"));
        return;
    }
    ran.assert_exit(0);
}

/// With `leftovers: allow`, a process could keep changing the copy while it is removed.
#[test]
fn no_process_outlives_its_call() {
    let tools = TOOLS.replace(
        "    command: {argv: [sh, -c, 'eval \"$SCRIPT\"']",
        "    command: {leftovers: allow, argv: [sh, -c, 'eval \"$SCRIPT\"']",
    );
    let recording = [
        shell(
            "echo $$ > pid; (sleep 60; touch late) > /dev/null 2>&1 & echo $! > pid",
            "(no output)",
        ),
        shell(
            "sleep 0; kill -0 $(cat pid) 2> /dev/null || echo gone",
            "gone",
        ),
    ]
    .concat();
    let Some(CopyReplay { ran, .. }) = replay_with_tools(&tools, sandbox(), &[&recording], &[])
    else {
        return;
    };
    ran.assert_exit(0);
}

/// Without namespaces, the copy has another path, so only calls run whose paths toolq knows.
#[test]
fn without_namespaces_only_calls_with_declared_paths_run() {
    if !cfg!(debug_assertions) {
        return;
    }
    let sandbox = sandbox().env("TOOLQ_FAILPOINT", "confine.before:1:error");
    let poem = sandbox.path().join("root/poem").display().to_string();
    let call = |id, name, input, result_text: &str| {
        recorded_turn(&[(id, name, input, ok_result(result_text))])
    };
    let recording = [
        call(
            "a",
            "write",
            json!({"path": "poem", "text": "upon"}),
            "written",
        ),
        call("b", "read", json!({"path": "poem"}), "upon"),
        call("c", "shell", json!({"script": "rm poem"}), "served"),
        call(
            "d",
            "write",
            json!({"path": poem, "text": "served"}),
            "served",
        ),
        call("e", "read", json!({"path": "poem"}), "upon"),
        call("f", "write", json!({"path": "../poem", "text": ""}), "no"),
    ]
    .concat();
    let CopyReplay { ran, left_over, .. } = replay_on_copy(sandbox, &[&recording], &[]).unwrap();
    let ran = ran.assert_exit(1);
    assert!(
        ran.stderr
            .contains("calls can't find the copy at the path of `root`"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        differences(&ran),
        [("schema".to_owned(), "/path".to_owned())]
    );
    assert_eq!(report_counts(&ran), [6, 3, 2, 5]);
    assert_eq!(left_over, <[&str; 0]>::default());
}

/// Landlock doesn't keep a program from changing permissions, so what leads to the original must not reach the program.
#[test]
fn without_namespaces_no_call_runs_whose_variables_may_lead_to_the_original() {
    if !cfg!(debug_assertions) {
        return;
    }
    let sandbox = sandbox();
    let poem = sandbox.path().join("root/poem").display().to_string();
    let sandbox = sandbox
        .env("TOOLQ_FAILPOINT", "confine.before:1:error")
        .env("POEM", &poem);
    let named = format!("env: {{POEM: '{poem}'}}");
    let with_default = format!("env: {{POEM: '${{NO_SUCH_POEM:-{poem}}}'}}");
    let variables = [
        ("harmless", "env: {POEM: poem}"),
        ("named", &named),
        ("expanded", "env: {POEM: '${POEM}'}"),
        ("defaulted", &with_default),
        ("inherited", "pass_env: [POEM]"),
    ];
    let mut tools = "version: 1\ntools:\n".to_owned();
    let mut recording = String::new();
    for (name, keys) in variables {
        tools += &format!(
            "  {name}:\n    description: Protect a file.\n    input_schema: {{type: object, properties: {{dir: {{type: string}}}}}}\n    \
             paths: [dir]\n    command: {{argv: [sh, -c, 'chmod 600 \"$POEM\"; echo done'], stdin: none, {keys}}}\n"
        );
        recording += &recorded_turn(&[(name, name, json!({"dir": "."}), ok_result("done"))]);
    }
    let CopyReplay { ran, .. } = replay_with_tools(&tools, sandbox, &[&recording], &[]).unwrap();
    if ran.stderr.contains("so none runs") {
        eprint_uncaptured(format_args!("skipped: {}\n", ran.stderr));
        return;
    }
    let ran = ran.assert_exit(0);
    assert_eq!(report_counts(&ran), [5, 1, 4, 5], "{}", ran.stdout);
}

/// A script isn't a path, so it isn't known which files it writes: they must not be those of the original.
#[test]
fn without_namespaces_nothing_but_the_copy_can_be_written() {
    if !cfg!(debug_assertions) {
        return;
    }
    let tools = TOOLS.replace(
        "input_schema: {type: object, properties: {script: {type: string}}, required: [script]}",
        "input_schema: {type: object, properties: {script: {type: string}, dir: {type: string}}}\n    paths: [dir]",
    );
    let Some(outside) = directory_outside() else {
        return;
    };
    fs::write(outside.path().join("file"), "as before").unwrap();
    let script = |dir: &str| {
        format!(
            "cd {dir}\n{{ echo x > file || echo refused; true >> file || echo refused; rm file || echo refused; touch new || \
             echo refused; mkdir d || echo refused; truncate -s 0 file || echo refused; mv file ../moved || echo refused; \
             }} 2> /dev/null"
        )
    };
    let inside = "echo x > poem; mkdir d; mv poem d; cat d/poem; cat <<< here > d/here; cat d/here; mktemp > t; echo y > $(cat \
                  t); cat $(cat t); rm -r d; ls";
    let call = |script: &str, result_text: &str| {
        recorded_turn(&[(
            "s",
            "shell",
            json!({"script": script, "dir": "."}),
            ok_result(result_text),
        )])
    };
    let refused = "refused\n".repeat(7);
    let recording = [
        call(
            &script(&outside.path().display().to_string()),
            refused.trim_end(),
        ),
        call(&format!("bash -c '{inside}'"), "x\nhere\ny\nt"),
    ]
    .concat();
    let sandbox = sandbox().env("TOOLQ_FAILPOINT", "confine.before:1:error");
    let CopyReplay { ran, left_over, .. } =
        replay_with_tools(&tools, sandbox, &[&recording], &[]).unwrap();
    assert_eq!(
        fs::read_to_string(outside.path().join("file")).unwrap(),
        "as before"
    );
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(left_over, <[&str; 0]>::default());
    if ran.stderr.contains("so none runs") {
        eprint_uncaptured(format_args!("skipped: {}\n", ran.stderr));
        return;
    }
    let ran = ran.assert_exit(0);
    assert_eq!(report_counts(&ran), [2, 2, 0, 2]);
}

#[test]
fn without_any_confinement_nothing_runs() {
    if !cfg!(debug_assertions) {
        return;
    }
    let recording = recorded_turn(&[(
        "a",
        "write",
        json!({"path": "poem", "text": "upon"}),
        ok_result("served"),
    )]);
    let sandbox = sandbox().env("TOOLQ_FAILPOINT", "confine.none:1:error");
    let CopyReplay { ran, .. } = replay_on_copy(sandbox, &[&recording], &[]).unwrap();
    let ran = ran.assert_exit(0);
    assert!(ran.stderr.contains("so none runs"), "{}", ran.stderr);
    assert_eq!(report_counts(&ran), [1, 0, 1, 1]);
}
