//! The README and the pages of docs/ show what the program prints: every `console` block is run, and what it shows is
//! compared. A `yaml` block that is a whole tools.yaml must pass `toolq check`, and is the tools.yaml of the `console`
//! blocks behind it, up to the next `##` heading. There the one of this repository is back.
//!
//! With `README=update` in the environment the `console` blocks are written anew instead.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]
#![allow(
    clippy::print_stdout,
    clippy::format_push_string,
    reason = "a test may"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "the environment of the tests themselves"
)]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use support::repository;
use tempfile::TempDir;

/// A page in pieces: what stands between blocks, and blocks with their language.
enum Piece<'p> {
    Prose(&'p str),
    Block(&'p str, &'p str),
}

/// The pieces; put together again they are the page.
fn pieces(page: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut parts = page.split("```");
    while let Some(prose) = parts.next() {
        pieces.push(Piece::Prose(prose));
        if let Some(block) = parts.next() {
            let (language, text) = block.split_once('\n').unwrap();
            pieces.push(Piece::Block(language, text));
        }
    }
    pieces
}

/// The tools.yaml that a `yaml` block is, or belongs into; none where it is a piece of a tool. An agent has tools beside
/// it, which are those of this repository: its file ends with them.
fn tools_file(block: &str) -> Option<String> {
    if block.contains("\ntools:") {
        Some(block.to_owned())
    } else {
        let is_tool = block.starts_with("  ");
        let before = if block.contains("\n    agent:") {
            fs::read_to_string(repository().join("tools.yaml")).unwrap()
        } else {
            "version: 1\ntools:\n".to_owned()
        };
        is_tool.then(|| before + block)
    }
}

/// What is typed in a block: lines that begin with `$ `, each with those behind it that begin with `> `.
fn commands(block: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut is_typed = false;
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push(command.to_owned());
            is_typed = true;
        } else if is_typed && let Some(more) = line.strip_prefix("> ") {
            let last = commands.last_mut().unwrap();
            last.push('\n');
            last.push_str(more);
        } else {
            is_typed = false;
        }
    }
    commands
}

/// The output of a block's commands, in the order of its lines, each behind its command.
fn output(block: &str, folder: &Path) -> Option<String> {
    let mut shown = String::new();
    for command in commands(block) {
        for program in ["jq", "python3", "bash"] {
            if command.contains(&format!("{program} ")) && !is_installed(program) {
                println!("skipped, since there is no {program}: {command}");
                return None;
            }
        }
        let bin = Path::new(env!("CARGO_BIN_EXE_toolq")).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let ran = Command::new("sh")
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .current_dir(folder)
            .env("PATH", path)
            .env("XDG_STATE_HOME", folder.join("state"))
            .env_remove("CI")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let typed = command.replace('\n', "\n> ");
        let printed = String::from_utf8(ran.stdout).unwrap();
        shown.push_str(&format!("$ {typed}\n{printed}"));
    }
    Some(shown)
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    found.unwrap().status.success()
}

/// The text with every duration as `…`, since no two runs take the same time.
fn timeless(text: &str) -> String {
    let mut timeless = String::new();
    for word in text.split_inclusive([' ', '\n']) {
        let bare = word.trim_end_matches([' ', '\n', ',', ':']);
        let number = bare.trim_end_matches("ms").trim_end_matches('s');
        if number.len() < bare.len() && number.parse::<f64>().is_ok() {
            timeless.push_str(&word.replace(bare, "…"));
        } else {
            timeless.push_str(word);
        }
    }
    timeless
}

/// Runs the blocks of a page in a folder of their own, and gives the page with what was printed, and what is wrong.
fn walked(page: &str, name: &str) -> (String, Vec<String>) {
    let folder = TempDir::new().unwrap();
    for name in ["fixtures", "tools.yaml"] {
        let copied = Command::new("cp")
            .arg("-r")
            .arg(repository().join(name))
            .arg(folder.path())
            .status();
        assert!(copied.unwrap().success());
    }
    let (mut updated, mut wrong) = (String::new(), Vec::new());
    for piece in pieces(page) {
        let (language, text) = match piece {
            Piece::Prose(text) => {
                if text.contains("\n## ") {
                    let own = repository().join("tools.yaml");
                    fs::copy(own, folder.path().join("tools.yaml")).unwrap();
                }
                updated.push_str(text);
                continue;
            }
            Piece::Block(language, text) => (language, text),
        };
        let mut shown = text.to_owned();
        if language == "yaml"
            && let Some(tools) = tools_file(text)
        {
            fs::write(folder.path().join("tools.yaml"), tools).unwrap();
            let checked = output("$ toolq check || echo WRONG", folder.path()).unwrap();
            if checked.contains("\nWRONG\n") {
                wrong.push(format!("{name} has:\n{text}\n{checked}"));
            }
        } else if language == "console" {
            shown = output(text, folder.path()).unwrap_or(shown);
            if timeless(&shown) != timeless(text) {
                wrong.push(format!("{name} shows:\n{text}\nprinted is:\n{shown}"));
            }
        }
        updated.push_str(&format!("```{language}\n{shown}```"));
    }
    (updated, wrong)
}

/// What other systems' programs print is as true, but not the same to the letter.
#[cfg_attr(not(target_os = "linux"), ignore = "shows what GNU programs print")]
#[test]
fn the_pages_show_what_is_printed() {
    let docs = fs::read_dir(repository().join("docs")).unwrap();
    let mut pages: Vec<_> = docs.map(|entry| entry.unwrap().path()).collect();
    pages.push(repository().join("README.md"));
    let update = std::env::var("README").is_ok_and(|value| value == "update");
    let mut wrong = Vec::new();
    for path in pages {
        let name = path.strip_prefix(repository()).unwrap().display();
        let page = fs::read_to_string(&path).unwrap();
        let (updated, found) = walked(&page, &name.to_string());
        if update {
            fs::write(&path, updated).unwrap();
        }
        let is_left = |found: &String| !update || found.contains("\nWRONG\n");
        wrong.extend(found.into_iter().filter(is_left));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The quoted words of a source between two marks.
fn words(file: &str, from: &str, to: &str) -> Vec<String> {
    let source = fs::read_to_string(repository().join(file)).unwrap();
    let (_, source) = source.split_once(from).unwrap();
    let source = source.split(to).next().unwrap();
    let quoted = source.split('"').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

/// Every word that a program may meet in a log, an event or a plan is explained.
#[test]
fn every_word_has_its_row() {
    let status = words(
        "crates/toolq-core/src/types/outcome.rs",
        "fn status(",
        "fn ending(",
    );
    let reasons = words(
        "crates/toolq-core/src/types/verdict.rs",
        "fn name(",
        "/// One problem",
    );
    let types = words(
        "crates/toolq-log/src/records/kind.rs",
        "fn name(",
        "/// Whether",
    );
    let all = [&status[..], &reasons, &types].concat();
    assert!(all.len() > 20, "{all:?}");
    for (page, words) in [("session-log.md", &all), ("plan.md", &reasons)] {
        let text = fs::read_to_string(repository().join("docs").join(page)).unwrap();
        for word in words {
            assert!(
                text.contains(&format!("`{word}`")),
                "docs/{page} lacks `{word}`"
            );
        }
    }
}
