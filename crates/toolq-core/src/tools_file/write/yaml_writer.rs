//! Writes values as readable YAML: block style, keys in their original order, quotes only where they are needed.

use std::fmt::{self, Write as _};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// Longer keys get the explicit `? ` indicator. YAML 1.2, section 7.4.2, limits keys without it to 1,024 characters.
const MAX_INLINE_KEY_BYTES: usize = 1_000;

/// A value to write.
#[derive(Debug)]
pub enum YamlValue {
    Table(Vec<(String, YamlValue)>),
    List(Vec<YamlValue>),
    Text(String),
    /// Null, a boolean or a number, which have the same text in JSON and YAML.
    Plain(String),
}

impl YamlValue {
    /// Appends the lines of the value, indented by `level` levels.
    pub fn write(&self, output: &mut String, level: usize) {
        match self {
            Self::Table(members) => members.iter().for_each(|(key, value)| {
                push_indent(output, level);
                write_key(output, key, level);
                value.write_after_indicator(output, level);
            }),
            Self::List(items) => items.iter().for_each(|item| item.write_item(output, level)),
            scalar => scalar.write_after_indicator(output, level),
        }
    }

    /// Appends an item of a list. The first entry of a table goes on the same line as the dash.
    fn write_item(&self, output: &mut String, level: usize) {
        if matches!(self, Self::Table(all) if !all.is_empty()) {
            let dash = output.len() + 2 * level;
            self.write(output, level + 1);
            output.replace_range(dash..dash + 2, "- ");
        } else {
            push_indent(output, level);
            output.push('-');
            self.write_after_indicator(output, level);
        }
    }

    /// Appends the value after its key or dash.
    fn write_after_indicator(&self, output: &mut String, level: usize) {
        match self {
            Self::Table(members) if members.is_empty() => output.push_str(" {}\n"),
            Self::List(items) if items.is_empty() => output.push_str(" []\n"),
            Self::Table(_) | Self::List(_) => {
                output.push('\n');
                self.write(output, level + 1);
            }
            Self::Plain(text) => push_line(output, text),
            Self::Text(text) if fits_literal_style(text) => {
                output.push_str(" |-\n");
                text.split('\n').for_each(|line| {
                    if !line.is_empty() {
                        push_indent(output, level + 1);
                        output.push_str(line);
                    }
                    output.push('\n');
                });
            }
            Self::Text(text) => push_line(output, &format_scalar(text)),
        }
    }
}

fn push_indent(output: &mut String, level: usize) {
    output.extend(std::iter::repeat_n("  ", level));
}

fn push_line(output: &mut String, text: &str) {
    output.push(' ');
    output.push_str(text);
    output.push('\n');
}

fn write_key(output: &mut String, key: &str, level: usize) {
    let key = format_scalar(key);
    if key.len() > MAX_INLINE_KEY_BYTES {
        output.push_str("? ");
        output.push_str(&key);
        output.push('\n');
        push_indent(output, level);
    } else {
        output.push_str(&key);
    }
    output.push(':');
}

/// Whether a text with several lines can be written verbatim as a block.
fn fits_literal_style(text: &str) -> bool {
    text.contains('\n')
        && !text.ends_with([' ', '\n'])
        && !text.starts_with([' ', '\n'])
        && text.chars().all(|c| c == '\n' || is_printable(c))
}

/// Formats a text on one line: without quotes if it can't be mistaken for anything else, else in double quotes.
fn format_scalar(text: &str) -> String {
    if fits_plain_style(text) {
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

/// Whether a text can be written without quotes because no character in it means anything to YAML. It must begin with a
/// letter, `_`, `/` or `$`, which excludes numbers and dates.
fn fits_plain_style(text: &str) -> bool {
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || "_-. /,;()'+=$".contains(c);
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    text.starts_with(|c: char| c.is_ascii_alphabetic() || "_/$".contains(c))
        && !text.ends_with(' ')
        && text.chars().all(is_harmless)
        && !reserved.contains(&text.to_ascii_lowercase().as_str())
}

/// Whether YAML accepts a character verbatim on one line and editors show it.
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}'
        )
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlValueVisitor)
    }
}

/// Builds a value with its keys in their original order.
struct YamlValueVisitor;

impl<'de> Visitor<'de> for YamlValueVisitor {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Plain(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlValue, E> {
        Ok(YamlValue::Plain(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlValue, E> {
        Ok(YamlValue::Plain(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<YamlValue, E> {
        Ok(YamlValue::Plain(format!("{value:?}")))
    }

    fn visit_unit<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Plain("null".to_owned()))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(YamlValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<YamlValue, A::Error> {
        let mut map: Vec<(String, YamlValue)> = Vec::new();
        while let Some((key, value)) = members.next_entry()? {
            map.push((key, value));
        }
        Ok(YamlValue::Table(map))
    }
}
