//! Reads YAML text into a tree of nodes with their positions, or reports every problem in the text.
//!
//! Accepts only what JSON can express: no tags, no merge keys, only text as keys, no duplicate keys. Aliases may expand
//! only so far. This stage doesn't know what the keys mean.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::Number;
use serde_saphyr::granit_parser::{
    Event, Parser, ScalarStyle, ScanError, Scanner, Span as ParserSpan, StrInput, TokenType,
};

use crate::json::rounded_integer;
use crate::text::line_starts;
use crate::tools_file::yaml::{YamlContent, YamlEntry, YamlNode};
use crate::types::{FileProblem, Span};

/// Maximum nesting depth of a file.
const MAX_NESTING_LEVELS: usize = 64;

/// Maximum number of nodes in a file. Nodes reached through an alias count each time.
const MAX_NODES: usize = 1_000_000;

/// Maximum number of aliases in a file.
const MAX_ALIASES: usize = 1_000;

/// Maximum number of nodes that all aliases together may repeat.
const MAX_REPEATED_NODES: usize = 10_000;

/// Parses one YAML 1.2 document. Recurses into nested values, at most 64 levels deep.
///
/// # Errors
/// One problem for each tag and each tab in the indentation. Without those, one for each merge key, each key that isn't text,
/// each duplicate key and each number that would change, up to where the text isn't valid YAML or exceeds a limit.
pub fn parse_yaml(text: &str) -> Result<YamlNode, Vec<FileProblem>> {
    let mut reader = NodeReader {
        text,
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        nodes: 0,
        aliases: 0,
        repeated_nodes: 0,
        unsupported: find_indenting_tabs(text),
        problems: Vec::new(),
    };
    let root = reader.read_document();
    // Whatever else is wrong may be because of these.
    if !reader.unsupported.is_empty() {
        reader.unsupported.sort_by_key(|problem| problem.span);
        return Err(reader.unsupported);
    }
    match root {
        Ok(root) if reader.problems.is_empty() => Ok(root),
        root => {
            reader.problems.extend(root.err().map(|fatal| *fatal));
            Err(reader.problems)
        }
    }
}

/// A problem after which nothing can be read.
type FatalProblem = Box<FileProblem>;

fn stop<T>(span: Span, message: impl Into<String>, hint: &str) -> Result<T, FatalProblem> {
    let problem = FileProblem::error(span, message, "");
    Err(Box::new(if hint.is_empty() {
        problem
    } else {
        problem.with_hint(hint)
    }))
}

/// A node behind an anchor, and how many nodes it consists of.
struct AnchoredNode {
    node: YamlNode,
    size: usize,
}

/// Reads nodes from the events of the parser.
struct NodeReader<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    /// The anchors so far. A node that is still being read can't be repeated.
    anchors: HashMap<usize, Option<AnchoredNode>>,
    nodes: usize,
    aliases: usize,
    repeated_nodes: usize,
    unsupported: Vec<FileProblem>,
    problems: Vec<FileProblem>,
}

impl<'t> NodeReader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), FatalProblem> {
        let (event, span) = match self.parser.next_event() {
            Some(Ok(found)) => found,
            Some(Err(error)) => return stop_at_error(self.text, &error),
            None => return Ok((Event::StreamEnd, Span::default())),
        };
        let tag = match &event {
            Event::Scalar(_, _, _, tag)
            | Event::SequenceStart(_, _, tag)
            | Event::MappingStart(_, _, tag) => tag.as_ref(),
            _ => None,
        };
        if tag.is_some() {
            let at = to_span(&span.tag_span().unwrap_or(span));
            let problem = FileProblem::error(at, "tags are not supported", "this tag");
            let hint = "write the value without a tag; put it in quotes to make it text";
            self.unsupported.push(problem.with_hint(hint));
        }
        Ok((event, to_span(&span)))
    }

    fn read_document(&mut self) -> Result<YamlNode, FatalProblem> {
        let mut root = None;
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => {
                    let end = Span {
                        start: self.text.len(),
                        len: 0,
                    };
                    return Ok(root.unwrap_or(YamlNode {
                        span: end,
                        content: YamlContent::Null,
                    }));
                }
                (Event::DocumentStart(..), span) if root.is_some() => {
                    let hint = "tools.yaml must be a single document";
                    return stop(span, "a second document starts here", hint);
                }
                (Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd, _) => {}
                first => root = Some(self.read_node(first, 0)?),
            }
        }
    }

    /// Reads the node that begins with an event.
    fn read_node(
        &mut self,
        (event, span): (Event<'t>, Span),
        depth: usize,
    ) -> Result<YamlNode, FatalProblem> {
        self.count_node(span, depth)?;
        let nodes_before = self.nodes;
        let anchor = match &event {
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(_, anchor, _)
            | Event::MappingStart(_, anchor, _) => Some(*anchor).filter(|anchor| *anchor != 0),
            _ => None,
        };
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, None);
        }
        let content = match event {
            Event::Alias(anchor) => return self.repeat_node(anchor, span),
            Event::Scalar(text, ScalarStyle::Plain, ..) => self.read_plain_text(&text, span),
            Event::Scalar(text, ..) => YamlContent::Text(text.into_owned()),
            Event::SequenceStart(..) => YamlContent::List(self.read_items(depth)?),
            Event::MappingStart(..) => YamlContent::Table(self.read_entries(depth)?),
            _ => return stop(span, "the document ends here too early", ""),
        };
        let node = YamlNode { span, content };
        if let Some(anchor) = anchor {
            let anchored = AnchoredNode {
                node: node.clone(),
                size: self.nodes - nodes_before + 1,
            };
            self.anchors.insert(anchor, Some(anchored));
        }
        Ok(node)
    }

    fn count_node(&mut self, span: Span, depth: usize) -> Result<(), FatalProblem> {
        self.nodes += 1;
        if depth > MAX_NESTING_LEVELS {
            return stop_at_depth(span);
        }
        if self.nodes > MAX_NODES {
            return stop(span, format!("more than {MAX_NODES} values"), "");
        }
        Ok(())
    }

    /// Returns the node that an alias stands for, where that node is.
    fn repeat_node(&mut self, anchor: usize, span: Span) -> Result<YamlNode, FatalProblem> {
        let Some(Some(AnchoredNode { node, size })) = self.anchors.get(&anchor) else {
            let hint = "write the value out";
            return stop(span, "an anchor contains itself", hint);
        };
        self.aliases += 1;
        self.repeated_nodes += size;
        self.nodes += size - 1;
        if self.aliases > MAX_ALIASES || self.repeated_nodes > MAX_REPEATED_NODES {
            let hint = "write the values out";
            return stop(span, "aliases expand to too many values", hint);
        }
        Ok(node.clone())
    }

    fn read_plain_text(&mut self, text: &str, span: Span) -> YamlContent {
        let content = read_plain_scalar(text).unwrap_or_else(|| {
            let problem = FileProblem::error(span, "JSON can't represent this number", "");
            self.problems
                .push(problem.with_hint("put it in quotes if it is text"));
            YamlContent::Null
        });
        self.problems.extend(find_rounding(text, span, &content));
        content
    }

    fn read_items(&mut self, depth: usize) -> Result<Vec<YamlNode>, FatalProblem> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                first => items.push(self.read_node(first, depth + 1)?),
            }
        }
    }

    fn read_entries(&mut self, depth: usize) -> Result<Vec<YamlEntry>, FatalProblem> {
        let mut entries = Vec::new();
        let mut key_spans: HashMap<String, Span> = HashMap::new();
        loop {
            let first = self.next()?;
            if matches!(first.0, Event::MappingEnd) {
                return Ok(entries);
            }
            let is_plain = matches!(first.0, Event::Scalar(_, ScalarStyle::Plain, ..));
            let key = self.read_node(first, depth + 1)?;
            let first = self.next()?;
            let value = self.read_node(first, depth + 1)?;
            let key_span = key.span;
            let problem = match key.content {
                YamlContent::Text(name) if is_plain && name == "<<" => merge_key_problem(key_span),
                YamlContent::Text(name) => {
                    if let Some(earlier) = key_spans.get(&name) {
                        duplicate_key_problem(&name, *earlier, key_span, self.text)
                    } else {
                        key_spans.insert(name.clone(), key_span);
                        entries.push(YamlEntry {
                            key: name,
                            key_span,
                            value,
                        });
                        continue;
                    }
                }
                _ => {
                    let message = format!("a key must be text, not {}", key.kind_phrase());
                    FileProblem::error(key_span, message, "this key").with_hint("put it in quotes")
                }
            };
            self.problems.push(problem);
        }
    }
}

fn merge_key_problem(span: Span) -> FileProblem {
    FileProblem::error(span, "merge keys are not supported", "")
        .with_hint("write the keys out, or move settings that tools share to `defaults`")
}

fn duplicate_key_problem(name: &str, first_span: Span, span: Span, text: &str) -> FileProblem {
    let line = 1 + line_starts(text, 0..first_span.start).count();
    FileProblem::error(span, format!("duplicate key `{name}`"), "repeated here")
        .with_hint(format!("the first one is on line {line}; keep one of them"))
}

fn stop_at_depth<T>(span: Span) -> Result<T, FatalProblem> {
    let message = format!("nested deeper than {MAX_NESTING_LEVELS} levels");
    stop(span, message, "")
}

/// Converts the error that stopped the parser into a problem, with a hint where there is a common cause.
fn stop_at_error<T>(text: &str, error: &ScanError) -> Result<T, FatalProblem> {
    let offset = error.marker().byte_offset().unwrap_or(text.len());
    let start = text.floor_char_boundary(offset.min(text.len()));
    let span = Span { start, len: 0 };
    let ends_item = |rest: &str| {
        let rest = rest.trim_start_matches(' ');
        rest.is_empty() || rest.starts_with(['\n', '\r', ',', '}', ']', '#'])
    };
    if text[start..].strip_prefix(',').is_some_and(ends_item) {
        let span = Span { start, len: 1 };
        return stop(span, "a comma that separates nothing", "leave it out");
    }
    let message = error.info();
    // The parser has a limit of its own, which is higher.
    if message.contains("recursion limit") {
        return stop_at_depth(span);
    }
    let hint = if message.contains("tabs disallowed") {
        "indent with spaces"
    } else if message.contains("quoted scalar") {
        "is there an unclosed quote before this?"
    } else if message.contains("did not find expected key") {
        "the keys of one table begin in the same column: is this line, or the one before it, indented too little or too much?"
    } else {
        ""
    };
    stop(span, message, hint)
}

/// Converts a position to bytes. For a list or table it covers only the first character.
fn to_span(span: &ParserSpan) -> Span {
    let range = span.byte_range().unwrap_or_default();
    Span {
        start: range.start,
        len: range.len(),
    }
}

/// Returns what the scalar is; `None` if it is a number that JSON doesn't have.
pub(super) fn read_plain_scalar(text: &str) -> Option<YamlContent> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => YamlContent::Null,
        "true" | "True" | "TRUE" => YamlContent::Bool(true),
        "false" | "False" | "FALSE" => YamlContent::Bool(false),
        _ => match (read_integer(text), read_float(text)) {
            (Some(integer), _) => YamlContent::Number(integer),
            (None, Some(float)) => YamlContent::Number(Number::from_f64(float)?),
            (None, None) => YamlContent::Text(text.to_owned()),
        },
    })
}

/// Returns the integer that `text` is, if 64 bits hold it.
fn read_integer(text: &str) -> Option<Number> {
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return u64::from_str_radix(digits, radix)
                .ok()
                .map(Number::from)
                .filter(|_| digits.chars().all(|digit| digit.is_digit(radix)));
        }
    }
    if !is_decimal_integer(text) {
        return None;
    }
    let signed = text.strip_prefix('+').unwrap_or(text);
    signed
        .parse::<u64>()
        .map(Number::from)
        .or_else(|_| signed.parse::<i64>().map(Number::from))
        .ok()
}

/// Whether `text` is a sign and digits, without zeros before them.
fn is_decimal_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let begins_with_zero = digits.starts_with('0') && digits.len() > 1;
    !digits.is_empty() && !begins_with_zero && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the float that `text` is, which also holds larger integers, or infinity for what isn't a number.
fn read_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if [".inf", ".nan"]
        .iter()
        .any(|word| unsigned.eq_ignore_ascii_case(word))
    {
        return Some(f64::INFINITY);
    }
    let begins_number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let is_of_float = |byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    let is_of_digits = unsigned.bytes().all(|byte| byte.is_ascii_digit());
    let is_float = begins_number && unsigned.bytes().all(is_of_float);
    if !is_float || is_of_digits && !is_decimal_integer(text) {
        return None;
    }
    text.parse().ok()
}

/// Returns the problem of an integer that `content` only holds rounded.
pub(super) fn find_rounding(text: &str, span: Span, content: &YamlContent) -> Option<FileProblem> {
    let YamlContent::Number(number) = content else {
        return None;
    };
    let float = rounded_integer(text).filter(|_| number.is_f64())?;
    let problem = FileProblem::error(
        span,
        "an integer beyond 64 bits can't keep its digits here",
        "would be rounded",
    );
    Some(problem.with_hint(format!(
        "put it in quotes if it may be text, or write `{float:e}` if the rounded number will do"
    )))
}

/// Returns a problem for each tab that indents a list or table of `text`, up to the first error of its syntax.
fn find_indenting_tabs(text: &str) -> Vec<FileProblem> {
    if !text.contains('\t') {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for token in Scanner::new(StrInput::new(text)).map_while(Result::ok) {
        let begins_block = matches!(
            token.token_type(),
            TokenType::BlockSequenceStart | TokenType::BlockMappingStart
        );
        let start = token.span().start.byte_offset().filter(|_| begins_block);
        if let Some(tab) = start.and_then(|start| find_tab_before(text, start)) {
            let span = Span { start: tab, len: 1 };
            let problem = FileProblem::error(span, "a tab can't be indentation", "this tab");
            problems.push(problem.with_hint("indent with spaces"));
        }
    }
    problems
}

/// Returns where the first tab is among the blanks right before `start`.
fn find_tab_before(text: &str, start: usize) -> Option<usize> {
    let before = text.get(..start)?;
    let blanks_start = before.trim_end_matches([' ', '\t']).len();
    Some(blanks_start + before[blanks_start..].find('\t')?)
}
