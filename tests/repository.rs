//! The repository checks itself: the order of the stages, generated files, the README's commands.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on fails"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{Toolq, repository};

/// The stages in the order of the data's way. Each may know those before it.
const STAGES: [&str; 10] = [
    "model", "parse", "validate", "plan", "respond", "execute", "record", "report", "replay", "cli",
];

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The stages that a file imports: every `crate::NAME` in its code, and the names of `use crate::{…}`.
fn imports(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(group) => group
                .split('}')
                .next()
                .unwrap_or_default()
                .split(',')
                .collect(),
            None => vec![rest],
        };
        found.extend(names.iter().map(|name| {
            name.trim()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect::<String>()
        }));
    }
    found
}

#[test]
fn a_stage_imports_only_what_stands_before_it() {
    let mut wrong = Vec::new();
    for (place, stage) in STAGES.iter().enumerate() {
        for file in rust_files(&repository().join("src").join(stage)) {
            for import in imports(&fs::read_to_string(&file).unwrap()) {
                if !STAGES[..=place].contains(&import.as_str()) {
                    wrong.push(format!("{}: crate::{import}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_folder_of_src_is_a_stage() {
    for entry in fs::read_dir(repository().join("src")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(STAGES.contains(&name), "src/{name} is no stage");
        }
    }
}

/// Only one file writes to stdout, and only `execute` and `cli` know async.
#[test]
fn rooms_keep_to_their_purpose() {
    for file in rust_files(&repository().join("src")) {
        let code = fs::read_to_string(&file).unwrap();
        let name = file
            .strip_prefix(repository().join("src"))
            .unwrap()
            .display()
            .to_string();
        assert!(
            !code.contains("io::stdout") || name == "cli/stdout.rs",
            "{name} touches stdout"
        );
        let pure = ["model/", "parse/", "validate/", "plan/", "respond/"];
        if pure.iter().any(|stage| name.starts_with(stage)) {
            for word in ["tokio::", "reqwest::", "process::Command"] {
                assert!(!code.contains(word), "{name} knows {word}");
            }
        }
    }
}

/// Remade with `tests/regenerate`.
#[test]
fn generated_files_are_current() {
    for (file, arguments) in [
        ("tools.schema.json", &["generate", "schema"][..]),
        ("session-log.schema.json", &["generate", "schema", "--log"]),
        (
            "completions/toolq.bash",
            &["generate", "completions", "bash"],
        ),
        ("completions/_toolq", &["generate", "completions", "zsh"]),
        (
            "completions/toolq.fish",
            &["generate", "completions", "fish"],
        ),
        ("man/toolq.1", &["generate", "man"]),
    ] {
        let made = Toolq::new().run(arguments).exits(0).stdout;
        let kept = fs::read_to_string(repository().join(file)).unwrap_or_default();
        assert_eq!(kept, made, "{file} is not current: run tests/regenerate");
    }
}

/// The first code block of the README is what a newcomer types: exactly two commands.
#[test]
fn the_quick_start_is_two_commands() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let quick = &readme[readme.find("## Quick start").unwrap()..];
    let block = quick.split("```").nth(1).unwrap();
    let commands: Vec<&str> = block
        .lines()
        .skip(1)
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(
        commands,
        ["cargo run -- run fixtures/response.json", "cargo test"]
    );
}
