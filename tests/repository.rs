//! The repository checks itself: who writes to stdout, what is pure, generated files, the README's commands.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on fails"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{Toolq, repository};

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

/// Results must never mix with anything else.
#[test]
fn only_one_file_writes_to_stdout() {
    for directory in ["src", "crates"] {
        for file in rust_files(&repository().join(directory)) {
            let code = fs::read_to_string(&file).unwrap();
            assert!(
                !code.contains("io::stdout") || file.ends_with("src/output/stdout.rs"),
                "{} touches stdout",
                file.display()
            );
        }
    }
}

/// The core is pure: no task, no process, no request. The log needs no runtime either.
#[test]
fn only_the_engine_and_the_program_are_async() {
    for crate_name in ["redact", "toolq-core", "toolq-log"] {
        let manifest = repository()
            .join("crates")
            .join(crate_name)
            .join("Cargo.toml");
        let manifest = fs::read_to_string(manifest).unwrap();
        for dependency in ["tokio", "reqwest", "procfence"] {
            assert!(
                !manifest.contains(dependency),
                "{crate_name} depends on {dependency}"
            );
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
