//! YAML text → one tree of nodes with their places, or every problem of the text.
//!
//! Only what JSON can say is taken: no tags, no merge keys, text as keys, each key once. Aliases are taken within a
//! budget. What the keys mean is not known here.

use std::collections::HashMap;

use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{Options, alias_limits, budget, options};

use crate::tools_file::yaml::reader::{Raw, RawData};
use crate::tools_file::yaml::syntax_error;
use crate::tools_file::yaml::tree::{Data, Entry, Node};
use crate::types::{Problem, Span};

/// How deep a file may be nested.
pub(crate) const MAX_DEPTH: usize = 64;
/// How many nodes a file may have, those behind aliases counted each time.
pub(crate) const MAX_NODES: usize = 1_000_000;
/// How many aliases a file may use.
const MAX_ALIASES: usize = 1_000;
/// How many parser events all aliases together may repeat.
const MAX_REPEATED: usize = 20_000;

pub(crate) const NO_TAGS: &str = "write the value without a tag; quotes make anything text";

/// Reads one YAML 1.2 document. It recurses into nested values, at most 64 levels.
///
/// # Errors
/// The one problem of a text that is no YAML or is over a budget; else every tag, every key that is no text and every
/// key that its table already has.
pub fn parse_yaml(text: &str) -> Result<Node, Vec<Problem>> {
    let raw: Raw = serde_saphyr::from_str_with_options(text, settings())
        .map_err(|error| vec![syntax_error::problem(&error, text)])?;
    let mut settling = Settling {
        text,
        problems: Vec::new(),
    };
    let node = settling.node(raw);
    if settling.problems.is_empty() {
        Ok(node)
    } else {
        Err(settling.problems)
    }
}

/// Strict readings, so that `no` is text and `012` keeps its zero. Duplicate keys pass: they are found all at once
/// later.
fn settings() -> Options {
    options! {
        budget: budget! {
            max_documents: 1,
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_aliases: MAX_ALIASES,
        },
        alias_limits: alias_limits! { max_total_replayed_events: MAX_REPEATED },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

/// Raw nodes → nodes without the faults that a raw one may have; each fault becomes a problem.
struct Settling<'t> {
    text: &'t str,
    problems: Vec<Problem>,
}

impl Settling<'_> {
    fn node(&mut self, raw: Raw) -> Node {
        if tagged(self.text, raw.span.start) {
            self.problems
                .push(Problem::error(raw.span, "tags are not taken", "tagged").with_hint(NO_TAGS));
        }
        let data = match raw.data {
            RawData::Null => Data::Null,
            RawData::Bool(bool) => Data::Bool(bool),
            RawData::Number(number) => Data::Number(number),
            RawData::Text(text) => Data::Text(text),
            RawData::List(items) => {
                Data::List(items.into_iter().map(|item| self.node(item)).collect())
            }
            RawData::Table(entries) => Data::Table(self.table(entries)),
        };
        Node {
            span: raw.span,
            data,
        }
    }

    fn table(&mut self, raw: Vec<(Raw, Raw)>) -> Vec<Entry> {
        let mut first: HashMap<String, Span> = HashMap::with_capacity(raw.len());
        let mut entries = Vec::with_capacity(raw.len());
        for (raw_key, raw_value) in raw {
            let key = self.node(raw_key);
            let value = self.node(raw_value);
            let Data::Text(name) = key.data else {
                let message = format!("a key must be text, not {}", key.kind());
                let problem = Problem::error(key.span, message, "this key");
                self.problems.push(problem.with_hint("put it into quotes"));
                continue;
            };
            if let Some(earlier) = first.get(&name) {
                self.problems
                    .push(duplicate(&name, *earlier, key.span, self.text));
                continue;
            }
            first.insert(name.clone(), key.span);
            entries.push(Entry {
                key: name,
                key_span: key.span,
                value,
            });
        }
        entries
    }
}

/// Whether a tag stands right before `start` in the same line. The reader refuses unknown tags itself but takes YAML's
/// own (`!!str`, `!!binary`) without a word.
fn tagged(text: &str, start: usize) -> bool {
    let line = text[..start].rsplit('\n').next().unwrap_or_default();
    line.split_whitespace()
        .rev()
        .find(|word| !word.starts_with('&'))
        .and_then(|word| word.trim_start_matches(['[', '{']).strip_prefix('!'))
        .is_some_and(|tag| {
            tag.chars()
                .all(|c| c.is_ascii_alphanumeric() || "!/._-%<>".contains(c))
        })
}

fn duplicate(name: &str, earlier: Span, span: Span, text: &str) -> Problem {
    let line = 1 + text[..earlier.start].matches('\n').count();
    Problem::error(span, format!("`{name}` stands twice"), "again here")
        .with_hint(format!("the first one is in line {line}; keep one of them"))
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

    /// FAULTS 22: only what is written as a boolean or a number is one.
    #[test]
    fn words_stay_words() {
        let node = parse_yaml("[no, on, 012, 1_000, 12:30, 1e3, 0o17, true, ~]").unwrap();
        let json = node.to_value().to_string();
        assert_eq!(
            json,
            r#"["no","on","012","1_000","12:30",1000.0,15,true,null]"#
        );
    }

    #[test]
    fn places_are_bytes() {
        let text = "é: {b: [ü, x]}\nc: |\n  two\n  lines\n";
        let tree = parse_yaml(text).unwrap();
        let at = |pointer: &str| {
            let span = tree.place(&[], pointer);
            &text[span.start..span.start + span.len]
        };
        assert_eq!(at("/é/b/1"), "x");
        assert_eq!(at("/é/b/7"), "b");
        assert_eq!(at("/é/b"), "b");
        assert_eq!(at("/c"), "two\n  lines\n");
    }

    /// FAULTS 20: the last of two keys would win silently.
    #[test]
    fn every_duplicate_is_found() {
        let found = problems("a: 1\nb:\n  c: {d: 1, d: 2}\na: 3\n1: x\n");
        let keys: Vec<&str> = found.iter().map(|(_, place)| place.as_str()).collect();
        assert_eq!(keys, ["d", "a", "1"]);
    }

    /// FAULTS 19, 23.
    #[test]
    fn what_is_no_plain_yaml_is_refused_where_it_stands() {
        let bomb = (1..10).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
            let aliases = vec![format!("*a{}", n - 1); 10].join(", ");
            text + &format!("a{n}: &a{n} [{aliases}]\n")
        });
        let wide = format!("a: &a x\nb: [{}]", "*a, ".repeat(2_000));
        let deep = format!("a: {}{}", "[".repeat(40), "]".repeat(40));
        assert!(parse_yaml(&deep).is_ok());
        let bracket_bomb = "[".repeat(100_000);
        for (text, words) in [
            (bomb.as_str(), "aliases repeat"),
            (&wide, "aliases repeat"),
            (&bracket_bomb, "recursion limit"),
            ("a: &a [*a]", "an anchor holds itself"),
            ("a: *b", "unknown anchor"),
            ("a: !!python/object:os.system x", "tags are not taken"),
            ("a: !!str x", "tags are not taken"),
            ("a: !include other.yaml", "tags are not taken"),
            ("a: &x {b: 1}\nc:\n  <<: *x", "merge keys"),
            ("a: 1\n---\nb: 2", "second document"),
            ("a:\n\tb: 1", "tab"),
            ("a: {b: 1\n", "unclosed"),
            ("a: .inf", "no such number"),
            ("a: \u{1}", "unexpected character"),
            ("? [a, b]\n: c", "must be text, not a list"),
        ] {
            let found = problems(text);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].0.contains(words), "{found:?}");
        }
        assert_eq!(problems("a: !!str x")[0].1, "x");
        assert_eq!(problems("ab: {b: 1\n")[0].1, "");
    }

    /// FAULTS 23: the limit of 64 levels fits the 8 MiB of a main thread even in an unoptimised build.
    #[test]
    fn too_deep_is_refused() {
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
