//! Parses simple YAML: without anchors, aliases, tags, merge keys, several documents, or a scalar that takes the whole rules
//! of YAML to tell text from number. Nearly every tools.yaml is simple. serde visits each node and each of its positions
//! through several layers, which takes longer.

#[cfg(test)]
mod tests;

use serde_json::Number;
use serde_saphyr::granit_parser;
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span as ParserSpan, StrInput};

use crate::tools_file::yaml::tree::{YamlContent, YamlEntry, YamlNode};
use crate::types::Span;

/// Larger texts are left to the parser with limits.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// Maximum nesting depth: half of what tools.yaml may have.
const MAX_DEPTH: usize = 32;
/// The number of entries from which on a table isn't simple: each key is compared with all others.
const MAX_ENTRIES: usize = 1_000;

/// Parses a simple document. Returns `None` if it isn't simple, or wrong.
pub(crate) fn parse_simple_yaml(text: &str) -> Option<YamlNode> {
    if text.len() > MAX_TEXT_BYTES || text.starts_with('\u{feff}') || text.contains('\t') {
        return None;
    }
    let options = granit_parser::options! { strict_indentation: true };
    let mut reader = EventReader {
        parser: Parser::new_from_str_with_options(text, options),
    };
    let (Event::StreamStart, _) = reader.next()? else {
        return None;
    };
    let (Event::DocumentStart(false, None), _) = reader.next()? else {
        return None;
    };
    let first = reader.next()?;
    let node = reader.read_node(first, 0)?;
    let is_over = matches!(reader.next()?.0, Event::DocumentEnd)
        && matches!(reader.next()?.0, Event::StreamEnd);
    is_over.then_some(node)
}

/// Reads nodes from the events of the parser.
struct EventReader<'t> {
    parser: Parser<'t, StrInput<'t>>,
}

impl<'t> EventReader<'t> {
    fn next(&mut self) -> Option<(Event<'t>, ParserSpan)> {
        self.parser.next_event()?.ok()
    }

    /// Reads the node that begins with an event.
    fn read_node(
        &mut self,
        (event, span): (Event<'t>, ParserSpan),
        depth: usize,
    ) -> Option<YamlNode> {
        if depth == MAX_DEPTH {
            return None;
        }
        let content = match event {
            Event::Scalar(text, ScalarStyle::Plain, 0, None) => read_unquoted_scalar(&text)?,
            Event::Scalar(text, _, 0, None) => YamlContent::Text(text.into_owned()),
            Event::SequenceStart(_, 0, None) => YamlContent::List(self.read_items(depth)?),
            Event::MappingStart(_, 0, None) => YamlContent::Table(self.read_entries(depth)?),
            _ => return None,
        };
        Some(YamlNode {
            span: to_span(&span)?,
            content,
        })
    }

    fn read_items(&mut self, depth: usize) -> Option<Vec<YamlNode>> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Some(items),
                first => items.push(self.read_node(first, depth + 1)?),
            }
        }
    }

    fn read_entries(&mut self, depth: usize) -> Option<Vec<YamlEntry>> {
        let mut entries: Vec<YamlEntry> = Vec::new();
        loop {
            let first = self.next()?;
            if matches!(first.0, Event::MappingEnd) {
                return Some(entries);
            }
            let key = self.read_node(first, depth + 1)?;
            let YamlContent::Text(name) = key.content else {
                return None;
            };
            let is_known = entries.iter().any(|entry| entry.key == name);
            if is_known || name == "<<" || entries.len() == MAX_ENTRIES {
                return None;
            }
            let first = self.next()?;
            entries.push(YamlEntry {
                key: name,
                key_span: key.span,
                value: self.read_node(first, depth + 1)?,
            });
        }
    }
}

pub(super) fn to_span(span: &ParserSpan) -> Option<Span> {
    let range = span.byte_range()?;
    Some(Span {
        start: range.start,
        len: range.len(),
    })
}

/// Reads a scalar without quotes; returns `None` if it isn't evident what it is.
fn read_unquoted_scalar(text: &str) -> Option<YamlContent> {
    let mut chars = text.chars();
    let (first, second) = (chars.next(), chars.next());
    match first {
        None | Some('~') if second.is_none() => Some(YamlContent::Null),
        Some('0'..='9') => read_number_or_text(text),
        Some('+' | '.') => is_no_number(second).then(|| YamlContent::Text(text.to_owned())),
        Some('-') if is_no_number(second) => Some(YamlContent::Text(text.to_owned())),
        Some('-') => match read_number_or_text(&text[1..])? {
            YamlContent::Number(number) => {
                let negative = number.as_i64().filter(|number| *number != 0);
                negative.map(|number| YamlContent::Number((-number).into()))
            }
            _ => None,
        },
        _ => read_word(text),
    }
}

/// Whether what follows a sign or a point can't belong to a number.
fn is_no_number(next: Option<char>) -> bool {
    !matches!(next, Some('0'..='9' | '.' | 'i' | 'I' | 'n' | 'N'))
}

/// Reads a scalar that doesn't begin as a number.
fn read_word(text: &str) -> Option<YamlContent> {
    const SPECIAL_WORDS: [&str; 6] = ["true", "false", "null", "inf", "infinity", "nan"];
    match text {
        "null" => Some(YamlContent::Null),
        "true" => Some(YamlContent::Bool(true)),
        "false" => Some(YamlContent::Bool(false)),
        _ if SPECIAL_WORDS
            .iter()
            .any(|word| text.eq_ignore_ascii_case(word)) =>
        {
            None
        }
        _ => Some(YamlContent::Text(text.to_owned())),
    }
}

/// Reads a scalar that begins with a digit: an integer, a decimal fraction, or text such as `30s`.
fn read_number_or_text(text: &str) -> Option<YamlContent> {
    let digits = text.len()
        - text
            .trim_start_matches(|next: char| next.is_ascii_digit())
            .len();
    let (whole, rest) = text.split_at(digits);
    let has_leading_zero = whole.len() > 1 && whole.starts_with('0');
    if has_leading_zero || whole.is_empty() || whole.len() > 15 {
        return None;
    }
    if rest.is_empty() {
        let number: u64 = whole.parse().ok()?;
        return Some(YamlContent::Number(number.into()));
    }
    if let Some(fraction) = rest.strip_prefix('.')
        && (1..=15).contains(&fraction.len())
        && fraction.bytes().all(|next| next.is_ascii_digit())
    {
        let number: f64 = text.parse().ok()?;
        return Number::from_f64(number).map(YamlContent::Number);
    }
    let is_unit = |next: char| {
        matches!(
            next,
            's' | 'm' | 'h' | 'd' | 'k' | 'K' | 'M' | 'G' | 'T' | 'i' | 'B' | '%' | '/'
        )
    };
    let is_text = rest.chars().all(is_unit) || rest.contains([' ', '/']);
    is_text.then(|| YamlContent::Text(text.to_owned()))
}
