//! Values as YAML that people like to read: block style, keys in the order in which they came, quotes only where they are
//! needed.

use std::fmt::{self, Write as _};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// Keys longer than this are written apart from their values (YAML 1.2, section 7.4.2, allows 1,024 characters).
const LONGEST_KEY: usize = 1_000;

/// A value.
#[derive(Debug)]
pub enum Block {
    Map(Vec<(String, Block)>),
    List(Vec<Block>),
    Text(String),
    /// null, a boolean or a number: the same text in JSON and YAML.
    Plain(String),
}

impl Block {
    /// Appends the value's lines at a depth of `level`.
    pub fn write(&self, to: &mut String, level: usize) {
        match self {
            Self::Map(members) => members.iter().for_each(|(key, value)| {
                indent(to, level);
                write_key(to, key, level);
                value.write_behind(to, level);
            }),
            Self::List(items) => items.iter().for_each(|item| item.write_item(to, level)),
            scalar => scalar.write_behind(to, level),
        }
    }

    /// Appends an item of a list; one of several lines begins behind its dash.
    fn write_item(&self, to: &mut String, level: usize) {
        if matches!(self, Self::Map(all) if !all.is_empty()) {
            let dash = to.len() + 2 * level;
            self.write(to, level + 1);
            to.replace_range(dash..dash + 2, "- ");
        } else {
            indent(to, level);
            to.push('-');
            self.write_behind(to, level);
        }
    }

    /// Appends the value behind its key or dash.
    fn write_behind(&self, to: &mut String, level: usize) {
        match self {
            Self::Map(members) if members.is_empty() => to.push_str(" {}\n"),
            Self::List(items) if items.is_empty() => to.push_str(" []\n"),
            Self::Map(_) | Self::List(_) => {
                to.push('\n');
                self.write(to, level + 1);
            }
            Self::Plain(text) => line(to, text),
            Self::Text(text) if is_literal(text) => {
                to.push_str(" |-\n");
                text.split('\n').for_each(|line| {
                    if !line.is_empty() {
                        indent(to, level + 1);
                        to.push_str(line);
                    }
                    to.push('\n');
                });
            }
            Self::Text(text) => line(to, &scalar(text)),
        }
    }
}

fn indent(to: &mut String, level: usize) {
    to.extend(std::iter::repeat_n("  ", level));
}

fn line(to: &mut String, text: &str) {
    to.push(' ');
    to.push_str(text);
    to.push('\n');
}

fn write_key(to: &mut String, key: &str, level: usize) {
    let key = scalar(key);
    if key.len() > LONGEST_KEY {
        to.push_str("? ");
        to.push_str(&key);
        to.push('\n');
        indent(to, level);
    } else {
        to.push_str(&key);
    }
    to.push(':');
}

/// Whether a text of several lines can stand as it is.
fn is_literal(text: &str) -> bool {
    text.contains('\n')
        && !text.ends_with([' ', '\n'])
        && !text.starts_with([' ', '\n'])
        && text.chars().all(|c| c == '\n' || is_printable(c))
}

/// A text on one line: plain where it can't be taken for anything else, or in double quotes.
fn scalar(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if is_printable(c) => quoted.push(c),
            c => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Words and sentences in which no character means anything to YAML. That a letter or `_`, `/`, `$` stands first excludes
/// numbers and dates.
fn is_plain(text: &str) -> bool {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "_-. /,;()'+=$".contains(c);
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    text.starts_with(|c: char| c.is_ascii_alphabetic() || "_/$".contains(c))
        && !text.ends_with(' ')
        && text.chars().all(harmless)
        && !reserved.contains(&text.to_ascii_lowercase().as_str())
}

/// Whether YAML takes a character as it is, on one line, and an editor shows it.
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}'
        )
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(Read)
    }
}

/// Builds a value, keys in their order.
struct Read;

impl<'de> Visitor<'de> for Read {
    type Value = Block;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Block, E> {
        Ok(Block::Plain(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Block, E> {
        Ok(Block::Plain(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Block, E> {
        Ok(Block::Plain(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Block, E> {
        Ok(Block::Plain(format!("{value:?}")))
    }

    fn visit_unit<E>(self) -> Result<Block, E> {
        Ok(Block::Plain("null".to_owned()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Block, E> {
        Ok(Block::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Block, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Block::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Block, A::Error> {
        let mut map: Vec<(String, Block)> = Vec::new();
        while let Some((key, value)) = members.next_entry()? {
            map.push((key, value));
        }
        Ok(Block::Map(map))
    }
}
