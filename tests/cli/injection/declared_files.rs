//! Every tools.yaml of the repository: files of their own, and what the documents show of one, in any form.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use toolq_core::tools_file::parse_tools_file;
use toolq_core::types::Tool;

use crate::support::repository_root;

/// Files that show mistakes, or need other files beside them and hand no value over.
const UNREADABLE: [&str; 3] = [
    "fixtures/broken.yaml",
    "docs/tools-yaml.md: tools.yaml",
    "docs/tools-yaml.md: tools.yaml 2",
];

/// A tools.yaml of the repository, and the directory that its programs and root belong to.
pub struct DeclaredFile {
    pub name: String,
    pub text: String,
    pub dir: PathBuf,
}

/// Returns the tools files of the repository, and those in its documents.
pub fn declared_files() -> Vec<DeclaredFile> {
    let root = repository_root();
    let mut paths = vec![root.join("tools.yaml")];
    let mut pages = vec![root.join("README.md")];
    for directory in [
        "fixtures",
        "examples",
        "docs",
        "packages",
        "src/commands/init/starters",
    ] {
        let (mut files, mut texts) = (Vec::new(), Vec::new());
        find_files(&root.join(directory), &mut files, &mut texts);
        paths.extend(files);
        pages.extend(texts);
    }
    let mut files = Vec::new();
    for path in paths {
        let name = path.strip_prefix(&root).unwrap();
        files.push(DeclaredFile {
            name: name.display().to_string(),
            text: fs::read_to_string(&path).unwrap(),
            dir: name.parent().unwrap().to_owned(),
        });
    }
    for page in pages {
        let name = page.strip_prefix(&root).unwrap().display().to_string();
        let text = fs::read_to_string(&page).unwrap();
        for (file, text) in files_in_page(&text) {
            files.push(DeclaredFile {
                name: format!("{name}: {file}"),
                text,
                dir: PathBuf::new(),
            });
        }
    }
    files
}

/// Calls `visit` with each tool of each file.
pub fn each_tool(mut visit: impl FnMut(&DeclaredFile, &Tool)) {
    for file in declared_files() {
        let dir = Path::new("/srv");
        let parsed = parse_tools_file(&file.text, dir, dir).tools;
        let is_readable = !UNREADABLE.contains(&&*file.name);
        assert_eq!(
            parsed.is_some(),
            is_readable,
            "{}:\n{}",
            file.name,
            file.text
        );
        for tool in parsed.iter().flat_map(|tools| &tools.tools) {
            visit(&file, tool);
        }
    }
}

/// Finds tools files and documents below a directory, in a fixed order.
fn find_files(directory: &Path, files: &mut Vec<PathBuf>, pages: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let is_installed = path.ends_with("node_modules") || path.ends_with(".venv");
        match path.extension().and_then(|extension| extension.to_str()) {
            _ if path.is_dir() && !is_installed => find_files(&path, files, pages),
            Some("yaml") if is_tools_file(&fs::read_to_string(&path).unwrap()) => files.push(path),
            Some("md") => pages.push(path),
            _ => {}
        }
    }
}

fn is_tools_file(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("tools:"))
}

/// Returns the tools files that a page shows, with their names: blocks of YAML, and files that commands write.
fn files_in_page(page: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for (index, block) in page.split("```yaml\n").skip(1).enumerate() {
        let block = block.split("```").next().unwrap();
        files.extend(complete_block(block).map(|text| (format!("block {index}"), text)));
    }
    for (name, text) in written_files(page) {
        if is_tools_file(&text) || text.starts_with("include:") {
            let same = files.iter().filter(|(known, _)| known.starts_with(&name));
            let number = match same.count() {
                0 => String::new(),
                count => format!(" {}", count + 1),
            };
            files.push((format!("{name}{number}"), text));
        }
    }
    files
}

/// Makes a tools file of a block that shows a whole one, some tools, or the backing of a tool.
fn complete_block(block: &str) -> Option<String> {
    if is_tools_file(block) {
        return Some(block.to_owned());
    }
    if block.starts_with("  ") {
        return Some(format!("tools:\n{block}"));
    }
    if !block.starts_with("command:") && !block.starts_with("http:") {
        return None;
    }
    let names = placeholders(block);
    let properties: Vec<String> = names
        .iter()
        .map(|name| format!("{name}: {{type: string}}"))
        .collect();
    let mut text = format!(
        "tools:\n  shown:\n    input_schema: {{type: object, properties: {{{}}}, required: [{}]}}\n",
        properties.join(", "),
        names.join(", ")
    );
    if names.contains(&"path") {
        text.push_str("    paths: [path]\n");
    }
    for line in block.lines() {
        let _ = writeln!(text, "    {line}");
    }
    Some(text)
}

/// Returns the names in `{name}` and `{name?}`, but not those in `${NAME}`.
fn placeholders(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (at, _) in text.match_indices('{') {
        let end = text[at..].find('}').map_or(text.len(), |len| at + len);
        let name = text[at + 1..end].trim_end_matches('?');
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        if is_name && !text[..at].ends_with('$') && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the files that the commands of a page write: by `cat > FILE <<'END'`, or by `echo` and `printf` on one line.
fn written_files(page: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some((command, target)) = line.rsplit_once("> ") else {
            continue;
        };
        let target = target.trim_end_matches(" \\");
        if let Some((name, marker)) = target.split_once("<<") {
            let marker = marker.trim().trim_matches('\'');
            let text: Vec<&str> = lines
                .by_ref()
                .map(|line| line.strip_prefix("> ").unwrap_or(line))
                .take_while(|line| *line != marker)
                .collect();
            files.push((name.trim().to_owned(), format!("{}\n", text.join("\n"))));
        } else if Path::new(target)
            .extension()
            .is_some_and(|end| end == "yaml")
            && let Some((_, quoted)) = command.split_once('\'')
            && let Some((text, _)) = quoted.split_once('\'')
        {
            files.push((target.to_owned(), text.replace("\\n", "\n")));
        }
    }
    files
}

/// The files that commands write are found, so that no page can hide a tool from the attacks.
#[test]
fn files_in_scripts_are_found() {
    let page = "```console\n$ cat > a.yaml << 'END'\n> tools:\n>   a: {}\n> END\n$ echo 'tools: {b: {}}' > b.yaml\n```\n\
                ```yaml\ncommand: [cat, --, \"{path}\", \"${HOME}\"]\n```\n";
    let names: Vec<String> = files_in_page(page)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["block 0", "a.yaml", "b.yaml"]);
    assert_eq!(files_in_page(page)[1].1, "tools:\n  a: {}\n");
    assert_eq!(placeholders("{a} ${HOME} {b?} {print $1}"), ["a", "b"]);
}
