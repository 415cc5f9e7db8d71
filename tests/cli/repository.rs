//! The repository checks itself: who writes to stdout, what is pure, generated files, and what readers are referred to.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{CliSandbox, repository_root};

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
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
        for file in rust_files(&repository_root().join(directory)) {
            let code = fs::read_to_string(&file).unwrap();
            // The descriptor itself may be asked what it is.
            let code = code.replace("fstat(rustix::stdio::stdout())", "");
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
        let manifest = repository_root()
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
        ("schemas/tools.schema.json", &["generate", "schema"][..]),
        (
            "schemas/session-log.schema.json",
            &["generate", "schema", "--log"],
        ),
        (
            "schemas/plan.schema.json",
            &["generate", "schema", "--plan"],
        ),
        (
            "completions/toolq.bash",
            &["generate", "completions", "bash"],
        ),
        ("completions/_toolq", &["generate", "completions", "zsh"]),
        (
            "completions/toolq.fish",
            &["generate", "completions", "fish"],
        ),
    ] {
        let generated = CliSandbox::new().run(arguments).assert_exit(0).stdout;
        let committed = fs::read_to_string(repository_root().join(file)).unwrap_or_default();
        // Not `assert_eq!`, which would print both files.
        assert!(
            committed == generated,
            "{file} is not current: run tests/regenerate"
        );
    }
}

/// The README has one block of what a newcomer types: exactly two commands.
#[test]
fn from_source_is_two_commands() {
    let readme = fs::read_to_string(repository_root().join("README.md")).unwrap();
    let section = &readme[readme.find("## From source").unwrap()..];
    let block = section.split("```").nth(1).unwrap();
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

/// Readers aren't referred to an address that isn't ours, or to documents that they don't have.
#[test]
fn no_file_names_what_readers_do_not_have() {
    let mut searched = 0;
    for file in all_files(&repository_root()) {
        // This file has the texts that it looks for.
        let text = fs::read_to_string(&file).ok();
        let Some(text) = text.filter(|_| !file.ends_with("tests/cli/repository.rs")) else {
            continue;
        };
        for foreign in ["github.com/toolq/", " FAULTS ", "FINDINGS ", "DESIGN.md"] {
            assert!(
                !text.contains(foreign),
                "{} has {foreign:?}",
                file.display()
            );
        }
        searched += 1;
    }
    assert!(searched > 500, "only {searched} files were found");
}

/// Returns the files of the repository, without what builds leave and what the fuzzer made.
fn all_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let is_made = ["target", ".git", "node_modules", ".venv", "corpus"]
            .iter()
            .any(|name| entry.file_name() == *name);
        if kind.is_dir() && !is_made {
            files.extend(all_files(&path));
        } else if kind.is_file() {
            files.push(path);
        }
    }
    files
}
