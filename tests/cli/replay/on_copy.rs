//! `--on-copy`: calls run with all their effects, but on a throw-away copy, and the original isn't touched.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::check_machine::old_kernel::take_away_landlock;
use crate::replay::copy_replay::{
    CopyReplay, TOOLS, is_refused, replay_on_copy, replay_with_tools, sandbox, shell, snapshot,
};
use crate::replay::{differences, ok_result, recorded_turn, report_counts};
use crate::support::eprint_uncaptured;

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
        let ran = sandbox.run(&arguments);
        if is_refused(&ran.stderr) {
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
        "echo x >> poem; cat poem; echo y >> scratch; cat scratch",
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

/// A write outside of `root` fails rather than changing the machine, and so does anything that needs a network or a service.
/// The same goes for the original, wherever a link in the copy leads.
#[test]
fn nothing_but_the_copy_can_be_changed() {
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("file"), "as before").unwrap();
    let _service = UnixListener::bind(outside.path().join("socket")).unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let port = server.local_addr().unwrap().port();
    let sandbox = sandbox();
    let original = sandbox.path().join("root");
    symlink(&original, original.join("original")).unwrap();
    symlink(outside.path(), original.join("outside")).unwrap();
    let script = format!(
        "for dir in {} outside original; do (cd -P $dir; {{ echo x > file || echo refused; touch new || echo refused; \
         rm poem file || echo refused; mkdir d || echo refused; }} 2> /dev/null); done; \
         command -v bash > /dev/null && bash -c ': < /dev/tcp/127.0.0.1/{port}' 2> /dev/null || echo no network; \
         mktemp > t; echo y > $(cat t); cat $(cat t)",
        outside.path().display()
    );
    let expected = format!("{}no network\ny", "refused\n".repeat(12));
    let replayed = replay_on_copy(sandbox, &[&shell(&script, &expected)], &[]);
    let Some(CopyReplay { ran, .. }) = replayed else {
        return;
    };
    ran.assert_exit(0);
    assert_eq!(
        fs::read_to_string(outside.path().join("file")).unwrap(),
        "as before"
    );
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 2);
    assert!(server.accept().is_err(), "a connection came through");
}

/// Recordings are full of commands such as `kill 4711` and `pkill node`, and numbers of processes recur.
#[test]
fn other_processes_can_not_be_reached() {
    let mut other = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let script = format!("kill -9 {} 2> /dev/null || echo alive", other.id());
    let replayed = replay_on_copy(sandbox(), &[&shell(&script, "alive")], &[]);
    let is_alive = other.try_wait().unwrap().is_none();
    other.kill().unwrap();
    other.wait().unwrap();
    let Some(CopyReplay { ran, .. }) = replayed else {
        return;
    };
    ran.assert_exit(0);
    assert!(is_alive);
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
            "(sleep 60; touch late) > /dev/null 2>&1 & echo $! > pid",
            "(no output)",
        ),
        shell(
            "kill -0 $(cat pid) 2> /dev/null || [ ! -d /proc/$(cat pid) ] && echo gone",
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

/// A tool's own sandbox holds on the copy, too, where its paths are those of the copy. A path that leads out of it allows
/// nothing.
#[test]
fn a_sandbox_holds_on_the_copy() {
    let outside = TempDir::new().unwrap();
    for (write, result) in [
        ("[out]", "new\nso much depends"),
        ("[out, root]", "new\nso much depends\nx"),
    ] {
        let tools = TOOLS.replace(
            "description: Run a script.",
            &format!(
                "description: Run a script.\n    sandbox: {{read: [root, system], network: all, write: {}}}",
                write.replace(']', &format!(", link, {}]", outside.path().display()))
            ),
        );
        let sandbox = sandbox().file("root/out/old", "old\n");
        symlink(outside.path(), sandbox.path().join("root/link")).unwrap();
        let script = format!(
            "(echo new > out/new; cat out/new poem; echo x > beside; cat beside; touch link/a {}/b) 2> /dev/null; true",
            outside.path().display()
        );
        let recording = shell(&script, result);
        let Some(CopyReplay { ran, .. }) = replay_with_tools(&tools, sandbox, &[&recording], &[])
        else {
            return;
        };
        ran.assert_exit(0);
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "{write}");
    }
}

/// It could change the original as well as any call.
#[test]
fn a_program_that_describes_its_tool_is_confined_too() {
    let describe = r#"echo x > $ORIGINAL/described; echo '{"input_schema": {"type": "object"}}'"#;
    let sandbox = sandbox();
    let original = sandbox.path().join("root").display().to_string();
    let tools = format!(
        "version: 1\ntools:\n  own:\n    description: x\n    describe: [sh, -c, '{}']\n    command: [echo, ran]\n",
        describe.replace("$ORIGINAL", &original).replace('\'', "''")
    );
    let recording = recorded_turn(&[("a", "own", json!({}), ok_result("ran"))]);
    if let Some(CopyReplay { ran, .. }) = replay_with_tools(&tools, sandbox, &[&recording], &[]) {
        let ran = ran.assert_exit(0);
        assert_eq!(report_counts(&ran), [1, 1, 0, 1], "{}", ran.stderr);
    }
}

#[test]
fn without_a_sandbox_it_is_refused() {
    let sandbox = sandbox()
        .tools(&TOOLS.replace("version: 1", "version: 1\nroot: root"))
        .file("r.jsonl", shell("echo x > poem", "(no output)"));
    let before = snapshot(&sandbox.path().join("root"));
    let mut command = sandbox.command(&["replay", "--on-copy", "r.jsonl"]);
    take_away_landlock(&mut command);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    let message = "`--on-copy` runs programs in a sandbox, and this system can't confine files";
    assert!(stderr.contains(message), "{stderr}");
    assert_eq!(snapshot(&sandbox.path().join("root")), before);
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

/// Without it, nobody finds the copy that was asked for.
#[test]
fn the_place_of_a_kept_copy_is_all_that_quiet_leaves() {
    let recording = shell("echo one > poem", "(no output)");
    let arguments = ["--keep", "--quiet"];
    let Some(CopyReplay {
        ran,
        left_over,
        temp,
    }) = replay_on_copy(sandbox(), &[&recording], &arguments)
    else {
        return;
    };
    let start = temp.path().join(&left_over[0]).display().to_string();
    let place = ran
        .stderr
        .strip_prefix("note: the copy on which 0.jsonl was replayed: ");
    let place = place.expect(&ran.stderr).trim_end();
    assert!(place.starts_with(&start), "{place}");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
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
    if is_refused(&stderr) {
        return;
    }
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0, "{stderr}");
    assert_eq!(snapshot(&sandbox.path().join("root")), before);
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
    let note = "none differ, 1 matches, 1 not compared (no recorded result)\n";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
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
