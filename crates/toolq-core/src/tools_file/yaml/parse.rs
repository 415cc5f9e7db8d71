//! Parses YAML text into a tree of nodes with their positions, or reports every problem in the text.
//!
//! Accepts only what JSON can express: no tags, no merge keys, only text as keys, no duplicate keys. Aliases may expand
//! only so far. This stage doesn't know what the keys mean.

use std::collections::HashMap;

use serde_json::Number;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{Options, alias_limits, budget, options};

use crate::text::line_starts;
use crate::tools_file::yaml::indentation::find_indenting_tabs;
use crate::tools_file::yaml::number::{find_rounding, is_number};
use crate::tools_file::yaml::raw_node::{RawContent, RawNode};
use crate::tools_file::yaml::simple_yaml::parse_simple_yaml;
use crate::tools_file::yaml::syntax_error;
use crate::tools_file::yaml::tags;
use crate::tools_file::yaml::tree::{YamlContent, YamlEntry, YamlNode};
use crate::types::{FileProblem, Span};

/// Maximum nesting depth of a file.
pub(crate) const MAX_NESTING_LEVELS: usize = 64;
/// Maximum number of nodes in a file. Nodes reached through an alias count each time.
pub(crate) const MAX_NODES: usize = 1_000_000;
/// Maximum number of aliases in a file.
const MAX_ALIASES: usize = 1_000;
/// Maximum number of parser events that all aliases together may replay.
const MAX_REPLAYED_EVENTS: usize = 20_000;

/// Parses one YAML 1.2 document. Recurses into nested values, at most 64 levels deep.
///
/// # Errors
/// One problem for each tag and each tab in the indentation. Without those, a single problem if the text isn't valid YAML or
/// exceeds a limit. Otherwise one for each key that isn't text, each duplicate key and each integer that would lose digits.
pub fn parse_yaml(text: &str) -> Result<YamlNode, Vec<FileProblem>> {
    parse_simple_yaml(text).map_or_else(|| parse_checked_yaml(text), Ok)
}

/// Parses a document that may be wrong, or isn't simple.
pub(crate) fn parse_checked_yaml(text: &str) -> Result<YamlNode, Vec<FileProblem>> {
    let mut unsupported = tags::find_tags(text);
    unsupported.extend(find_indenting_tabs(text));
    if !unsupported.is_empty() {
        return Err(unsupported);
    }
    let raw: RawNode = serde_saphyr::from_str_with_options(text, parser_options())
        .map_err(|error| vec![syntax_error::to_problem(&error, text)])?;
    let mut builder = NodeBuilder {
        text,
        problems: Vec::new(),
    };
    let node = builder.build_node(raw);
    if builder.problems.is_empty() {
        Ok(node)
    } else {
        Err(builder.problems)
    }
}

/// Uses strict scalar rules, so that `no` is text and `012` keeps its zero. Lets duplicate keys pass, because
/// [`NodeBuilder`] reports all of them at once.
fn parser_options() -> Options {
    options! {
        budget: budget! {
            max_documents: 1,
            max_depth: MAX_NESTING_LEVELS,
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_aliases: MAX_ALIASES,
        },
        alias_limits: alias_limits! { max_total_replayed_events: MAX_REPLAYED_EVENTS },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

/// Converts raw nodes to checked ones, and collects the problems of [`parse_yaml`].
struct NodeBuilder<'t> {
    text: &'t str,
    problems: Vec<FileProblem>,
}

impl NodeBuilder<'_> {
    fn build_node(&mut self, raw: RawNode) -> YamlNode {
        let content = match raw.content {
            RawContent::Null => YamlContent::Null,
            RawContent::Bool(bool) => YamlContent::Bool(bool),
            RawContent::Number(number) => self.build_number(number, raw.span),
            RawContent::Text(text) => YamlContent::Text(text),
            RawContent::List(items) => YamlContent::List(
                items
                    .into_iter()
                    .map(|item| self.build_node(item))
                    .collect(),
            ),
            RawContent::Table(entries) => YamlContent::Table(self.build_entries(entries)),
        };
        YamlNode {
            span: raw.span,
            content,
        }
    }

    /// Builds a number, or text that only other versions of YAML take for one.
    fn build_number(&mut self, number: Number, span: Span) -> YamlContent {
        let source = self.text.get(span.start..span.start + span.len);
        let source = source.unwrap_or_default().trim();
        if !is_number(source) {
            return YamlContent::Text(source.to_owned());
        }
        let rounding = find_rounding(source, span, &number);
        self.problems.extend(rounding);
        YamlContent::Number(number)
    }

    fn build_entries(&mut self, raw: Vec<(RawNode, RawNode)>) -> Vec<YamlEntry> {
        let mut first: HashMap<String, Span> = HashMap::with_capacity(raw.len());
        let mut entries = Vec::with_capacity(raw.len());
        for (raw_key, raw_value) in raw {
            let key = self.build_node(raw_key);
            let value = self.build_node(raw_value);
            let YamlContent::Text(name) = key.content else {
                let message = format!("a key must be text, not {}", key.kind_phrase());
                let problem = FileProblem::error(key.span, message, "this key");
                self.problems.push(problem.with_hint("put it in quotes"));
                continue;
            };
            if let Some(earlier) = first.get(&name) {
                self.problems
                    .push(duplicate_key_problem(&name, *earlier, key.span, self.text));
                continue;
            }
            first.insert(name.clone(), key.span);
            entries.push(YamlEntry {
                key: name,
                key_span: key.span,
                value,
            });
        }
        entries
    }
}

fn duplicate_key_problem(name: &str, first_span: Span, span: Span, text: &str) -> FileProblem {
    let line = 1 + line_starts(text, 0..first_span.start).count();
    FileProblem::error(span, format!("duplicate key `{name}`"), "repeated here")
        .with_hint(format!("the first one is on line {line}; keep one of them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<(String, String)> {
        let problems = parse_yaml(text).expect_err(text);
        let quote = |span: Span| text[span.start..span.start + span.len].to_owned();
        problems
            .iter()
            .map(|problem| (problem.message.clone(), quote(problem.span)))
            .collect()
    }

    /// YAML 1.1 would read most of these as booleans, octal numbers or times.
    #[test]
    fn yaml_1_1_scalars_stay_text() {
        let node = parse_yaml("[no, on, 012, 1_000, 12:30, 1e3, 0o17, true, ~]").unwrap();
        let json = node.to_json().to_string();
        assert_eq!(
            json,
            r#"["no","on","012","1_000","12:30",1000.0,15,true,null]"#
        );
        let node = parse_yaml("[0b101, 0O17, 0X1F, -0x1F, +0o17, 0x1F, .5, -1., +2]").unwrap();
        let json = node.to_json().to_string();
        assert_eq!(
            json,
            r#"["0b101","0O17","0X1F","-0x1F","+0o17",31,0.5,-1.0,2]"#
        );
    }

    #[test]
    fn spans_are_in_bytes() {
        let text = "é: {b: [ü, x]}\nc: |\n  two\n  lines\n";
        let tree = parse_yaml(text).unwrap();
        let text_at = |pointer: &str| {
            let span = tree.span_at(&[], pointer);
            &text[span.start..span.start + span.len]
        };
        assert_eq!(text_at("/é/b/1"), "x");
        assert_eq!(text_at("/é/b/7"), "b");
        assert_eq!(text_at("/é/b"), "b");
        assert_eq!(text_at("/c"), "two\n  lines\n");
    }

    /// Otherwise the last of several equal keys would silently win.
    #[test]
    fn every_duplicate_key_is_found() {
        let found = problems("a: 1\nb:\n  c: {d: 1, d: 2}\na: 3\n1: x\n");
        let keys: Vec<&str> = found.iter().map(|(_, key)| key.as_str()).collect();
        assert_eq!(keys, ["d", "a", "1"]);
    }

    /// Tags, merge keys, several documents, tabs, anchors that contain themselves, and aliases that expand
    /// exponentially.
    #[test]
    fn unsupported_yaml_is_rejected_at_its_position() {
        let bomb = (1..10).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
            let aliases = vec![format!("*a{}", n - 1); 10].join(", ");
            text + &format!("a{n}: &a{n} [{aliases}]\n")
        });
        let wide = format!("a: &a x\nb: [{}]", "*a, ".repeat(2_000));
        let deep = format!("a: {}{}", "[".repeat(40), "]".repeat(40));
        assert!(parse_yaml(&deep).is_ok());
        let bracket_bomb = "[".repeat(100_000);
        for (text, expected) in [
            (bomb.as_str(), "aliases expand"),
            (&wide, "aliases expand"),
            (&bracket_bomb, "nested deeper than 64 levels"),
            ("a: &a [*a]", "an anchor contains itself"),
            ("a: *b", "unknown anchor"),
            ("a: !!python/object:os.system x", "tags are not supported"),
            ("a: !!str x", "tags are not supported"),
            ("a: !!binary /w==", "tags are not supported"),
            ("a: !!binary \"x y\"", "tags are not supported"),
            ("a: !include other.yaml", "tags are not supported"),
            ("a: &x {b: 1}\nc:\n  <<: *x", "merge keys"),
            ("a: 1\n---\nb: 2", "second document"),
            ("a:\n\tb: 1", "tab"),
            ("a: {b: 1\n", "unclosed"),
            ("a: .inf", "can't represent this number"),
            ("a: \u{1}", "unexpected character"),
            ("? [a, b]\n: c", "must be text, not a list"),
        ] {
            let found = problems(text);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].0.contains(expected), "{found:?}");
        }
        assert_eq!(problems("a: !!str x")[0].1, "!!str");
        assert_eq!(problems("ab: {b: 1\n")[0].1, "");
    }

    /// The parser stops at the key or at its `:`, and says that something else is wrong there.
    #[test]
    fn a_key_that_is_too_long_is_named_as_the_problem() {
        let name = "é".repeat(1_025);
        for (before, quote, after) in [
            ("", "", ": 1\n"),
            ("version: 1\n", "\"", ": 1\n"),
            ("tools:\n  ", "", ":\n    timeout: 1s\n"),
            ("tools:\n  a:\n    - ", "'", ": 1\n"),
            ("tools: {a: {b: 1, ", "", ": {c: 1}}}\n"),
            ("tools: {a: {b: 1, ", "\"", ": {c: 1}}}\n"),
        ] {
            let key = [quote, &name, quote].concat();
            let found = problems(&[before, &key, after].concat());
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].0, "a key is longer than 1024 characters");
            assert_eq!(found[0].1, key);
        }
        assert!(parse_yaml(&format!("{}: 1\n", "k".repeat(1_000))).is_ok());
        let long_value = format!("a: {{b: {}, c: d: 1}}", "k".repeat(2_000));
        assert_ne!(
            problems(&long_value)[0].0,
            "a key is longer than 1024 characters"
        );
    }

    /// 64 levels fit on the 8 MiB stack of a main thread, even in an unoptimized build.
    #[test]
    fn too_deep_nesting_is_rejected() {
        let nested = |levels: usize| format!("{}x{}", "{a: ".repeat(levels), "}".repeat(levels));
        let check = move || {
            assert!(parse_yaml(&nested(63)).is_ok());
            let found = problems(&nested(65));
            assert_eq!(found[0].0, "nested deeper than 64 levels");
        };
        let thread = std::thread::Builder::new().stack_size(8 << 20);
        thread.spawn(check).unwrap().join().unwrap();
    }
}
