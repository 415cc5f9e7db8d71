//! The recipes in examples/ run as they are, and leave nothing behind.

use std::io::{Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::support::waiting::PATIENCE;
use crate::support::{CliSandbox, repository_root, reset_signals, skip};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

/// What `run.sh` exits with where something is missing, after a line that says what.
const SKIPPED: i32 = 77;

/// Returns the names of the recipes: the folders in examples/.
fn recipes() -> Vec<String> {
    let entries = fs::read_dir(repository_root().join("examples")).unwrap();
    let folders = entries
        .map(Result::unwrap)
        .filter(|entry| entry.path().join("run.sh").exists());
    let mut names: Vec<String> = folders
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Waits until a script ends; `None` if it didn't in time, and was killed with all that it started.
fn wait_for_script(mut script: Child) -> Option<ExitStatus> {
    let begin = Instant::now();
    loop {
        if let Some(status) = script.try_wait().unwrap() {
            return Some(status);
        }
        if begin.elapsed() > 2 * PATIENCE {
            kill_process_group(Pid::from_child(&script), Signal::KILL).unwrap();
            script.wait().unwrap();
            return None;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a recipe from another directory. Returns what was wrong.
fn run_recipe(name: &str) -> Option<String> {
    let dir = TempDir::new().unwrap();
    let temp_dir = dir.path().join("tmp");
    fs::create_dir(&temp_dir).unwrap();
    let mut output = tempfile::tempfile().unwrap();
    let mut command = Command::new(repository_root().join("examples").join(name).join("run.sh"));
    command
        .current_dir(dir.path())
        .env("TOOLQ", env!("CARGO_BIN_EXE_toolq"))
        .env("TMPDIR", &temp_dir)
        .env("HOME", dir.path())
        .env_remove("CI")
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output.try_clone().unwrap())
        .process_group(0);
    reset_signals(&mut command);
    let status = wait_for_script(command.spawn().unwrap());

    let mut printed = String::new();
    output.rewind().unwrap();
    output.read_to_string(&mut printed).unwrap();
    let Some(status) = status else {
        return Some(format!(
            "examples/{name}/run.sh doesn't end; it printed:\n{printed}"
        ));
    };
    match status.code() {
        Some(0) => {}
        Some(SKIPPED) => {
            let reason = printed
                .lines()
                .find_map(|line| line.strip_prefix("skipped: "));
            skip(format_args!("examples/{name}: {}", reason.unwrap()));
        }
        _ => {
            return Some(format!(
                "examples/{name}/run.sh: {status}; it printed:\n{printed}"
            ));
        }
    }
    let is_left = fs::read_dir(&temp_dir).unwrap().next().is_some();
    is_left.then(|| format!("examples/{name}/run.sh leaves files behind"))
}

#[test]
fn every_recipe_shows_what_it_claims() {
    let recipes = recipes();
    assert!(recipes.len() >= 6, "{recipes:?}");
    let wrong: Vec<String> = recipes.iter().filter_map(|name| run_recipe(name)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_example_is_listed() {
    let examples = repository_root().join("examples");
    let list = fs::read_to_string(examples.join("README.md")).unwrap();
    for entry in fs::read_dir(examples).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Programs leave hidden files and `__pycache__`.
        let is_example = !name.starts_with(['.', '_']) && name != "README.md";
        assert!(
            !is_example || list.contains(&format!("[{name}]({name})")),
            "examples/README.md doesn't list {name}"
        );
    }
}

#[test]
fn every_recipe_has_tools_without_problems() {
    for name in recipes() {
        let folder = format!("examples/{name}");
        let tools = format!("{folder}/tools.yaml");
        if repository_root().join(&tools).exists() {
            let ran = CliSandbox::in_repository().run(&["check", "--strict", "-c", &tools]);
            assert_eq!(ran.code, 0, "{tools}: {}", ran.stderr);
        } else {
            let script = fs::read_to_string(repository_root().join(&folder).join("run.sh"));
            assert!(script.unwrap().contains("toolq init "), "{folder}");
        }
    }
}
