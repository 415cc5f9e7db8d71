//! The examples in the README and in docs/ are true: every `console` block is run and its output compared. A `yaml`
//! block that is a complete tools.yaml must pass `toolq check`. The `console` blocks after it use it, up to the next
//! `##` heading, where the tools.yaml of this repository is restored. So do those after an `sh` block that writes a
//! program (`cat > NAME`, then `chmod +x NAME`), which is run.
//!
//! With `README=update` in the environment, the `console` blocks are updated instead.

use std::fs;
use std::io::{Read as _, Seek as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{lacks, repository_root};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

/// A segment of a page: the prose between code blocks, or a code block with its language and text.
enum PageSegment<'p> {
    Prose(&'p str),
    Block(&'p str, &'p str),
}

/// Splits a page into its segments.
fn split_page(page: &str) -> Vec<PageSegment<'_>> {
    let mut segments = Vec::new();
    let mut parts = page.split("```");
    while let Some(prose) = parts.next() {
        segments.push(PageSegment::Prose(prose));
        if let Some(block) = parts.next() {
            let (language, text) = block.split_once('\n').unwrap();
            segments.push(PageSegment::Block(language, text));
        }
    }
    segments
}

/// Returns the tools.yaml that a `yaml` block is, or one with the tool in the block; `None` if it is only part of a
/// tool. An agent needs tools to call, so it is added to the tools.yaml of this repository.
fn tools_file_for(block: &str) -> Option<String> {
    if block.contains("\ntools:") {
        Some(block.to_owned())
    } else {
        let is_tool = block.starts_with("  ");
        let before = if block.contains("\n    agent:") {
            fs::read_to_string(repository_root().join("tools.yaml")).unwrap()
        } else {
            "version: 1\ntools:\n".to_owned()
        };
        is_tool.then(|| before + block)
    }
}

/// Returns the commands typed in a block: the lines that begin with `$ `, with their continuation lines (`> `).
fn typed_commands(block: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut in_command = false;
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push(command.to_owned());
            in_command = true;
        } else if in_command && let Some(more) = line.strip_prefix("> ") {
            let last = commands.last_mut().unwrap();
            last.push('\n');
            last.push_str(more);
        } else {
            in_command = false;
        }
    }
    commands
}

/// The process groups of commands. What they have left in the background is killed when this is dropped.
#[derive(Default)]
struct BackgroundJobs(Vec<Pid>);

impl Drop for BackgroundJobs {
    fn drop(&mut self) {
        for group in &self.0 {
            // Most groups are gone.
            let _ = kill_process_group(*group, Signal::KILL);
        }
    }
}

/// Runs the commands of a block and returns them, each followed by its output; `None` if a program isn't installed.
fn run_block(block: &str, dir: &Path) -> Option<String> {
    let mut transcript = String::new();
    let mut jobs = BackgroundJobs::default();
    for command in typed_commands(block) {
        let mut programs = vec!["jq", "python3", "bash"];
        programs.retain(|program| command.contains(&format!("{program} ")));
        if lacks(&programs) {
            return None;
        }
        let bin = Path::new(env!("CARGO_BIN_EXE_toolq")).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        // A job in the background may hold the output open, so it goes to a file.
        let mut output = tempfile::tempfile().unwrap();
        let mut shell = Command::new("sh")
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .current_dir(dir)
            .env("PATH", path)
            .env("XDG_STATE_HOME", dir.join("state"))
            .env_remove("CI")
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        jobs.0.push(Pid::from_child(&shell));
        shell.wait().unwrap();
        let typed = command.replace('\n', "\n> ");
        let mut printed = String::new();
        output.rewind().unwrap();
        output.read_to_string(&mut printed).unwrap();
        // Where the directory is for a person whose home is /home/me.
        let state_home = dir.join("state").display().to_string();
        let printed = printed.replace(&state_home, "/home/me/.local/state");
        transcript.push_str(&format!("$ {typed}\n{printed}"));
    }
    Some(transcript)
}

/// Replaces every duration and every generated name of a session log or a call by `…`, since they differ between runs.
fn mask_differences(text: &str) -> String {
    let mut masked = String::new();
    for word in text.split_inclusive([' ', '\n']) {
        let bare = word.trim_end_matches([' ', '\n', ',', ':', ';', '`']);
        let number = bare.trim_end_matches("ms").trim_end_matches('s');
        let is_duration = number.len() < bare.len() && number.parse::<f64>().is_ok();
        let is_time_character = |c: u8| c.is_ascii_digit() || matches!(c, b':' | b'-');
        let is_time = bare.matches([':', '-']).count() == 2 && bare.bytes().all(is_time_character);
        // What names a call in doubt depends on the directory.
        let is_key = bare.len() == 12
            && bare.bytes().all(|c| c.is_ascii_hexdigit())
            && bare.bytes().any(|c| c.is_ascii_digit());
        if is_duration || is_time || is_key || bare.contains("/toolq/sessions/") {
            masked.push_str(&word.replace(bare, "…"));
        } else {
            masked.push_str(word);
        }
    }
    // It is only there if calls saved time by running together.
    masked.replace(", … if run one after another", "")
}

/// Runs the blocks of a page in a temporary directory. Returns the updated page and a list of what was wrong.
fn run_page(page: &str, name: &str) -> (String, Vec<String>) {
    let temp_dir = TempDir::new().unwrap();
    for name in ["fixtures", "tools.yaml"] {
        let copied = Command::new("cp")
            .arg("-r")
            .arg(repository_root().join(name))
            .arg(temp_dir.path())
            .status();
        assert!(copied.unwrap().success());
    }
    let (mut updated, mut wrong) = (String::new(), Vec::new());
    for segment in split_page(page) {
        let (language, text) = match segment {
            PageSegment::Prose(text) => {
                if text.contains("\n## ") {
                    let repository_tools = repository_root().join("tools.yaml");
                    fs::copy(repository_tools, temp_dir.path().join("tools.yaml")).unwrap();
                }
                updated.push_str(text);
                continue;
            }
            PageSegment::Block(language, text) => (language, text),
        };
        let mut rendered = text.to_owned();
        if language == "yaml"
            && let Some(tools) = tools_file_for(text)
        {
            fs::write(temp_dir.path().join("tools.yaml"), tools).unwrap();
            let checked = run_block("$ toolq check || echo WRONG", temp_dir.path()).unwrap();
            if checked.contains("\nWRONG\n") {
                wrong.push(format!("{name} has:\n{text}\n{checked}"));
            }
        } else if language == "sh" && text.starts_with("cat > ") && text.contains("\nchmod +x ") {
            let written = Command::new("sh")
                .args(["-euc", text])
                .current_dir(temp_dir.path())
                .status();
            assert!(written.unwrap().success(), "{name} has:\n{text}");
        } else if language == "console" {
            rendered = run_block(text, temp_dir.path()).unwrap_or(rendered);
            if mask_differences(&rendered) != mask_differences(text) {
                wrong.push(format!("{name} shows:\n{text}\nprinted is:\n{rendered}"));
            }
        }
        updated.push_str(&format!("```{language}\n{rendered}```"));
    }
    (updated, wrong)
}

/// The blocks show the output of GNU programs, which differs in details on other systems.
#[cfg_attr(not(target_os = "linux"), ignore = "shows the output of GNU programs")]
#[test]
fn the_pages_show_what_is_printed() {
    let docs = fs::read_dir(repository_root().join("docs")).unwrap();
    let mut pages: Vec<_> = docs.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|end| end == "md"));
    pages.push(repository_root().join("README.md"));
    let update = std::env::var("README").is_ok_and(|value| value == "update");
    let mut wrong = Vec::new();
    for path in pages {
        let name = path.strip_prefix(repository_root()).unwrap().display();
        let page = fs::read_to_string(&path).unwrap();
        let (updated, found) = run_page(&page, &name.to_string());
        if update {
            fs::write(&path, updated).unwrap();
        }
        let still_wrong = |found: &String| !update || found.contains("\nWRONG\n");
        wrong.extend(found.into_iter().filter(still_wrong));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_job_in_the_background_neither_holds_up_a_block_nor_outlives_it() {
    let dir = TempDir::new().unwrap();
    let block = "$ sleep 600 & echo $! > pid; echo started\n";
    let printed = run_block(block, dir.path()).unwrap();
    assert_eq!(printed, format!("{block}started\n"));
    let pid = fs::read_to_string(dir.path().join("pid")).unwrap();
    crate::support::waiting::wait_until_gone(&[pid.trim().to_owned()]);
}

/// The agent loop in docs/streams.md, with a fake `curl` as the model: two responses with a call, then one without.
#[test]
fn the_agent_loop_ends() {
    let page = fs::read_to_string(repository_root().join("docs/streams.md")).unwrap();
    let blocks = split_page(&page);
    let agent_loop = blocks.iter().find_map(|segment| match segment {
        PageSegment::Block("sh", text) if text.contains("\nwhile ") => Some(*text),
        _ => None,
    });
    if lacks(&["jq"]) {
        return;
    }
    let dir = TempDir::new().unwrap();
    let curl = dir.path().join("bin/curl");
    fs::create_dir(dir.path().join("bin")).unwrap();
    fs::write(&curl, FAKE_CURL).unwrap();
    fs::set_permissions(&curl, fs::Permissions::from_mode(0o755)).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_toolq")).parent().unwrap();
    let path = format!(
        "{}:{}:{}",
        dir.path().join("bin").display(),
        bin.display(),
        std::env::var("PATH").unwrap()
    );
    let output = Command::new("sh")
        .args(["-euc", agent_loop.unwrap()])
        .current_dir(dir.path())
        .env("PATH", path)
        .env("TOOLQ_TOOLS", repository_root().join("tools.yaml"))
        .env("ANTHROPIC_API_KEY", "unused")
        .env("XDG_STATE_HOME", dir.path().join("state"))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "Done.\n",
        "{error}"
    );
    let request = fs::read_to_string(dir.path().join("request-3.json")).unwrap();
    let request: serde_json::Value = serde_json::from_str(&request).unwrap();
    assert_eq!(request["messages"].as_array().unwrap().len(), 5);
    assert_eq!(
        request["messages"][4]["content"][0]["tool_use_id"],
        "toolu_2"
    );
}

/// Saves each request, and responds to the third one without a call.
const FAKE_CURL: &str = r#"#!/bin/sh
count=$(($(cat count 2> /dev/null || echo 0) + 1))
echo "$count" > count
cat > "request-$count.json"
case $count in
3) printf '%s' '{"type":"message","role":"assistant","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn"}' ;;
*) printf '{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"toolu_%s","name":"current_date","input":{}}],"stop_reason":"tool_use"}' "$count" ;;
esac
"#;

/// Returns the string literals in a source file between two markers.
fn quoted_words(file: &str, from: &str, to: &str) -> Vec<String> {
    let source = fs::read_to_string(repository_root().join(file)).unwrap();
    let (_, source) = source.split_once(from).unwrap();
    let source = source.split(to).next().unwrap();
    let quoted = source.split('"').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

/// The documentation explains every status, reason and record type in logs, events and plans.
#[test]
fn every_log_word_is_documented() {
    let schema = repository_root().join("schemas/session-log.schema.json");
    let schema: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let status: Vec<String> =
        serde_json::from_value(schema["$defs"]["Status"]["examples"].clone()).unwrap();
    let last = status.iter().position(|word| word == "internal_error");
    let reasons = status[last.unwrap() + 1..].to_vec();
    let types = quoted_words(
        "crates/toolq-log/src/records/record.rs",
        "fn name(",
        "/// Whether",
    );
    let all = [&status[..], &reasons, &types].concat();
    assert!(all.len() > 20, "{all:?}");
    for (page, words) in [("session-log.md", &all), ("plan.md", &reasons)] {
        let text = fs::read_to_string(repository_root().join("docs").join(page)).unwrap();
        for word in words {
            assert!(
                text.contains(&format!("`{word}`")),
                "docs/{page} doesn't mention `{word}`"
            );
        }
    }
}
