//! `--on-copy`: calls run with all their effects, but on a throw-away copy.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{CliOutput, CliSandbox, eprint_uncaptured};
use crate::{differences, ok_result, recorded_turn, report_counts};

pub const TOOLS: &str = r#"version: 1
tools:
  read:
    description: Read a file.
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
    effect: read
    paths: [path]
    command: [cat, --, "{path}"]
  write:
    description: Write a file.
    input_schema: {type: object, properties: {path: {type: string}, text: {type: string}}, required: [path, text]}
    paths: [path]
    command: {argv: [sh, -c, 'cat > "$1" && echo written', --, "{path}"], stdin: "{text}"}
  shell:
    description: Run a script.
    input_schema: {type: object, properties: {script: {type: string}}, required: [script]}
    command: {argv: [sh, -c, 'eval "$SCRIPT"'], env: {SCRIPT: "{script}"}}
  fetch:
    description: Send a request.
    input_schema: {type: object}
    effect: read
    http: {url: "http://127.0.0.1:9/"}
"#;

pub fn sandbox() -> CliSandbox {
    CliSandbox::new()
        .tools(TOOLS)
        .file("root/poem", "so much depends\n")
}

pub fn shell(script: &str, result_text: &str) -> String {
    recorded_turn(&[(
        "s",
        "shell",
        json!({"script": script}),
        ok_result(result_text),
    )])
}

/// Everything below a directory: kind, permissions, time, and content.
fn snapshot(root: &Path) -> BTreeMap<String, (u32, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            open.extend(entries.map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path)
                .unwrap()
                .into_os_string()
                .into_encoded_bytes()
        } else {
            fs::read(&path).unwrap()
        };
        let state = (
            metadata.mode(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            content,
        );
        found.insert(path.display().to_string(), state);
    }
    found
}

/// The result of replaying a recording on a copy of `root/`.
pub struct CopyReplay {
    pub ran: CliOutput,
    /// TMPDIR, which exists as long as this.
    temp: TempDir,
    /// What is left in TMPDIR.
    left_over: Vec<String>,
}

/// Replays `recordings` on a copy, and asserts that nothing in the original changed. Returns `None` if this system
/// doesn't allow the confinement.
pub fn replay_on_copy(
    sandbox: CliSandbox,
    recordings: &[&str],
    arguments: &[&str],
) -> Option<CopyReplay> {
    replay_with_tools(TOOLS, sandbox, recordings, arguments)
}

pub fn replay_with_tools(
    tools: &str,
    sandbox: CliSandbox,
    recordings: &[&str],
    arguments: &[&str],
) -> Option<CopyReplay> {
    let temp = TempDir::new().unwrap();
    let mut sandbox = sandbox
        .tools(&tools.replace("version: 1", "version: 1\nroot: root"))
        .env("TMPDIR", temp.path().to_str().unwrap());
    let names: Vec<String> = (0..recordings.len())
        .map(|number| format!("{number}.jsonl"))
        .collect();
    for (name, text) in names.iter().zip(recordings) {
        sandbox = sandbox.file(name, text);
    }
    let before = snapshot(&sandbox.path().join("root"));
    let mut all = vec!["replay", "--on-copy", "--json", "-"];
    all.extend(names.iter().map(String::as_str));
    all.extend(arguments);
    let ran = sandbox.run(&all);
    assert_eq!(
        snapshot(&ran.dir.path().join("root")),
        before,
        "{}",
        ran.stderr
    );
    if ran.stderr.contains("calls can't find the copy") && !ran.stderr.contains("failpoint") {
        eprint_uncaptured(format_args!(
            "skipped: no mount namespaces: {}\n",
            ran.stderr
        ));
        return None;
    }
    let left_over = fs::read_dir(temp.path()).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().display().to_string();
    let left_over = left_over.map(|entry| name(entry.unwrap())).collect();
    Some(CopyReplay {
        ran,
        temp,
        left_over,
    })
}

/// A relative TMPDIR is below the directory in which toolq was started, for toolq and for the programs of the calls.
#[test]
fn a_relative_tmpdir_holds_the_copy() {
    for dir in ["exists", "missing"] {
        let sandbox = sandbox()
            .tools(&TOOLS.replace("version: 1", "version: 1\nroot: root"))
            .file("exists/other", "")
            .file(
                "recording.jsonl",
                shell("cat poem; echo $TMPDIR; : > $TMPDIR/x", "?"),
            )
            .env("TMPDIR", dir);
        let temp = sandbox.path().join(dir).display().to_string();
        let arguments = [
            "replay",
            "--on-copy",
            "--keep",
            "--json",
            "-",
            "recording.jsonl",
        ];
        let ran = sandbox.run(&arguments).assert_exit(1);
        if ran.stderr.contains("calls can't find the copy") || ran.stderr.contains("none runs") {
            eprint_uncaptured(format_args!("skipped: no namespaces: {}\n", ran.stderr));
            return;
        }
        let kept = format!("the copy on which recording.jsonl was replayed: {temp}/toolq-copy-");
        assert!(ran.stderr.contains(&kept), "{dir}: {}", ran.stderr);
        let text = format!("so much depends\\n{temp}");
        assert!(ran.stdout.contains(&text), "{dir}: {}", ran.stdout);
    }
}

#[test]
fn writes_take_effect_on_the_copy_and_nowhere_else() {
    let sandbox = sandbox();
    let poem = sandbox.path().join("root/poem").display().to_string();
    let call = |id, name, input, result_text: &str| {
        recorded_turn(&[(id, name, input, ok_result(result_text))])
    };
    let recording = [
        call("a", "read", json!({"path": "poem"}), "so much depends"),
        call(
            "b",
            "write",
            json!({"path": "poem", "text": "upon"}),
            "written",
        ),
        call("c", "read", json!({"path": "poem"}), "upon"),
        // Recordings are full of absolute paths.
        call(
            "d",
            "shell",
            json!({"script": format!("echo a red >> {poem}; cat {poem}")}),
            "upona red",
        ),
        call("e", "read", json!({"path": poem}), "upona red"),
        call("f", "write", json!({"path": "new", "text": "x"}), "written"),
        call(
            "g",
            "shell",
            json!({"script": "rm poem; ls; pwd"}),
            &format!("new\n{}", poem.trim_end_matches("/poem")),
        ),
    ]
    .concat();
    let Some(CopyReplay {
        ran,
        left_over,
        temp: _temp,
    }) = replay_on_copy(sandbox, &[&recording], &[])
    else {
        return;
    };
    let ran = ran.assert_exit(0);
    assert_eq!(differences(&ran), []);
    assert_eq!(report_counts(&ran), [7, 7, 0, 7]);
    assert_eq!(left_over, <[&str; 0]>::default());
}

#[test]
fn a_result_that_differs_on_the_copy_is_found() {
    let recording = shell("echo x > poem; cat poem", "y");
    let Some(CopyReplay { ran, .. }) = replay_on_copy(sandbox(), &[&recording], &[]) else {
        return;
    };
    let ran = ran.assert_exit(1);
    assert_eq!(differences(&ran), [("result".to_owned(), String::new())]);
}

/// The index, the branches and the hooks of the original are out of reach, because `.git` is copied, too.
#[test]
fn git_works_on_the_copy() {
    let git =
        "git -c user.name=a -c user.email=b -c init.defaultBranch=main -c commit.gpgsign=false";
    let sandbox = sandbox();
    let init = format!("cd root && {git} init -q . && {git} add . && {git} commit -qm one");
    let made = std::process::Command::new("sh")
        .args(["-c", &init])
        .current_dir(sandbox.path())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprint_uncaptured(format_args!("skipped: git isn't installed\n"));
        return;
    }
    let script = format!(
        "git status --short; echo more >> poem; {git} commit -qam two; git checkout -qb other; echo '#!/bin/sh' > \
         .git/hooks/post-commit; git config a.b c; git log --oneline | wc -l; git branch --show-current"
    );
    let Some(CopyReplay { ran, .. }) = replay_on_copy(sandbox, &[&shell(&script, "2\nother")], &[])
    else {
        return;
    };
    ran.assert_exit(0);
}

#[test]
fn each_recording_starts_from_the_original() {
    let recording = shell(
        "echo x >> poem; cat poem; echo y >> /tmp/scratch; cat /tmp/scratch",
        "so much depends\nx\ny",
    );
    let Some(CopyReplay { ran, .. }) =
        replay_on_copy(sandbox(), &[&recording, &recording, &recording], &[])
    else {
        return;
    };
    let ran = ran.assert_exit(0);
    assert_eq!(report_counts(&ran), [3, 3, 0, 3]);
}

/// A write outside of `root` fails rather than changing the machine; so does whatever needs a network or a service.
#[test]
fn nothing_outside_of_the_copy_can_be_changed() {
    let outside = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
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
    let outside = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
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
    let mut other = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let pid = other.id();
    let outside = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
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

/// With `leftovers: allow`, a process could go on changing the copy while it is removed.
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

/// Requests reach beyond the copy, so they are served, even those that only read.
#[test]
fn requests_stay_served() {
    let recording = recorded_turn(&[("a", "fetch", json!({}), ok_result("recorded"))]);
    let Some(CopyReplay { ran, .. }) = replay_on_copy(sandbox(), &[&recording], &[]) else {
        return;
    };
    let ran = ran.assert_exit(0);
    assert_eq!(report_counts(&ran), [1, 0, 1, 1]);
}

#[test]
fn keep_leaves_the_copy_as_the_recording_left_it() {
    let recordings = [
        shell("echo one > poem", "(no output)"),
        shell("echo two > poem", "(no output)"),
    ];
    let Some(CopyReplay {
        ran,
        left_over,
        temp: _temp,
    }) = replay_on_copy(sandbox(), &[&recordings[0], &recordings[1]], &["--keep"])
    else {
        return;
    };
    assert_eq!(left_over.len(), 1, "{left_over:?}");
    for (name, text) in [("0.jsonl", "one\n"), ("1.jsonl", "two\n")] {
        let label = format!("the copy on which {name} was replayed: ");
        let place = ran
            .stderr
            .split_once(&label)
            .unwrap()
            .1
            .lines()
            .next()
            .unwrap();
        assert!(place.contains(&left_over[0]), "{place}");
        assert_eq!(
            fs::read_to_string(Path::new(place).join("poem")).unwrap(),
            text
        );
    }
}

#[test]
fn the_copy_is_removed_after_a_signal() {
    let temp = TempDir::new().unwrap();
    // A directory that can't be written must not get in the way.
    let script =
        "mkdir a a/b; chmod a-w a; echo x > poem; echo started >&2; kill -INT $PPID; sleep 60";
    let sandbox = sandbox()
        .tools(&TOOLS.replace("version: 1", "version: 1\nroot: root"))
        .file("r.jsonl", shell(script, "x"))
        .env("TMPDIR", temp.path().to_str().unwrap());
    let before = snapshot(&sandbox.path().join("root"));
    let mut child = sandbox
        .command(&["replay", "--on-copy", "r.jsonl"])
        .spawn()
        .unwrap();
    // The call has started once the copy has been changed.
    let changed = || {
        let copies = fs::read_dir(temp.path()).unwrap();
        let mut copies = copies
            .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("copy/poem")).ok());
        copies.any(|poem| poem == "x\n")
    };
    while !changed() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    if child.try_wait().unwrap().is_none() {
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("calls can't find the copy") {
        eprint_uncaptured(format_args!("skipped: no mount namespaces\n"));
        return;
    }
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0, "{stderr}");
    assert_eq!(snapshot(&sandbox.path().join("root")), before);
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

/// A script is no path, so nobody knows what it does: it must not do it to the original.
#[test]
fn without_namespaces_nothing_but_the_copy_can_be_written() {
    if !cfg!(debug_assertions) {
        return;
    }
    let tools = TOOLS.replace(
        "input_schema: {type: object, properties: {script: {type: string}}, required: [script]}",
        "input_schema: {type: object, properties: {script: {type: string}, dir: {type: string}}}\n    paths: [dir]",
    );
    let outside = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
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

/// Such a call runs, so that later ones find what it changed, but there is nothing to compare.
#[test]
fn a_call_without_a_recorded_result_is_counted() {
    let write = json!({"path": "poem", "text": "upon\n"});
    let recording = [
        recorded_turn(&[("a", "write", write, None)]),
        recorded_turn(&[("b", "read", json!({"path": "poem"}), ok_result("upon"))]),
    ];
    let Some(CopyReplay { ran, .. }) = replay_on_copy(sandbox(), &[&recording.concat()], &[])
    else {
        return;
    };
    let ran = ran.assert_exit(0);
    assert_eq!(ran.json()["unrecorded"], 1);
    let note =
        "2 run, 0 served from the recording; 1 matches, none differ, 1 has no recorded result\n";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
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

#[test]
fn flags_that_contradict_each_other_are_refused() {
    for wrong in [&["--on-copy", "--execute", "all"][..], &["--keep"]] {
        let ran = sandbox().run(&[&["replay", "r.jsonl"], wrong].concat());
        assert_eq!(ran.code, 2, "{wrong:?}");
    }
    let whole = TOOLS.replace("version: 1", "version: 1\nroot: /");
    let ran = sandbox()
        .tools(&whole)
        .file("r.jsonl", shell("true", "x"))
        .run(&["replay", "r.jsonl", "--on-copy"])
        .assert_exit(2);
    assert!(
        ran.stderr.contains("which can't be copied"),
        "{}",
        ran.stderr
    );
    // Permissions of the root are those of the original.
    let sandbox = sandbox();
    fs::set_permissions(
        sandbox.path().join("root"),
        fs::Permissions::from_mode(0o750),
    )
    .unwrap();
    if let Some(CopyReplay { ran, .. }) =
        replay_on_copy(sandbox, &[&shell("stat -c %a .", "750")], &[])
    {
        ran.assert_exit(0);
    }
}
