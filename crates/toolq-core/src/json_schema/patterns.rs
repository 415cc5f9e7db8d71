//! Finds the patterns of a schema that can't be matched in linear time.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use jsonschema::Draft;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use serde_json::{Value, json};

use crate::json::escape_pointer_token;
use crate::json_schema::library::{MAX_PATTERN_BYTES, SchemaLibrary, validation_options};
use crate::json_schema::subschemas::{BASE_URI, SchemaError, find_subschemas};

/// Finds the patterns that the linear-time engine rejects. Tries all of them together, except for small ones, and one by one
/// only if that fails.
pub(crate) fn find_rejected_patterns(schema: &Value) -> Vec<SchemaError> {
    let mut patterns: Vec<(String, String)> = Vec::new();
    for subschema in find_subschemas(schema, BASE_URI, Draft::default()) {
        if let Some(pattern) = subschema.schema.get("pattern").and_then(Value::as_str) {
            patterns.push((format!("{}/pattern", subschema.pointer), pattern.to_owned()));
        }
        let named = subschema
            .schema
            .get("patternProperties")
            .and_then(Value::as_object);
        for pattern in named.into_iter().flat_map(|named| named.keys()) {
            let pointer = format!(
                "{}/patternProperties/{}",
                subschema.pointer,
                escape_pointer_token(pattern)
            );
            patterns.push((pointer, pattern.clone()));
        }
    }
    patterns.retain(|(_, pattern)| !is_small(pattern));
    let compiles = |patterns: &[(String, String)]| {
        let different: BTreeSet<&str> = patterns.iter().map(|(_, pattern)| &**pattern).collect();
        let each: Vec<Value> = different
            .into_iter()
            .map(|pattern| json!({"pattern": pattern}))
            .collect();
        patterns.is_empty()
            || validation_options(SchemaLibrary::default())
                .build(&json!({"allOf": each}))
                .is_ok()
    };
    if compiles(&patterns) {
        return Vec::new();
    }
    patterns
        .into_iter()
        .filter(|pattern| !compiles(std::slice::from_ref(pattern)))
        .map(|(pointer, pattern)| rejected_pattern_error(pointer, &pattern))
        .collect()
}

/// Returns a copy of `document` in which each small pattern is as short as can be. They need not be compiled, which takes most
/// of the time. What another pattern has to be depends on its draft.
pub(crate) fn with_short_patterns(document: &Value) -> Value {
    let mut copy = document.clone();
    for subschema in find_subschemas(document, BASE_URI, Draft::default()) {
        let pattern = copy.pointer_mut(&format!("{}/pattern", subschema.pointer));
        let is_small_pattern = |pattern: &&mut Value| pattern.as_str().is_some_and(is_small);
        if let Some(pattern) = pattern.filter(is_small_pattern) {
            *pattern = "a".into();
        }
    }
    copy
}

fn is_small(pattern: &str) -> bool {
    PatternSyntax::parse(pattern).is_some_and(|syntax| syntax.is_small())
}

pub(crate) fn rejected_pattern_error(pointer: String, pattern: &str) -> SchemaError {
    let looks_around = ["(?=", "(?!", "(?<=", "(?<!"]
        .iter()
        .any(|form| pattern.contains(form));
    let refers_back = pattern
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0] == b'\\' && (b'1'..=b'9').contains(&pair[1]) || pair == b"\\k");
    if looks_around || refers_back {
        let what = if looks_around {
            "uses look-around"
        } else {
            "uses a backreference"
        };
        let message = format!("the pattern {what}, which needs a backtracking engine");
        return SchemaError::new(pointer, message).with_hint(
            "patterns are matched in linear time, without look-around and backreferences; check the rest in the tool itself",
        );
    }
    SchemaError::new(
        pointer,
        "the pattern is not a valid regular expression, or is larger than 1 MiB when compiled",
    )
    .with_hint("balance its brackets, escape with `\\\\`, and keep counts such as `{1000}` small")
}

// What can be said about a pattern from its syntax, without compiling it.

/// More bytes than any engine uses for an ASCII character, or for a class of them.
const ASCII_BYTES: usize = 1 << 10;
/// More bytes than any engine uses for a class of all characters but one.
const MOST_BYTES: usize = 2 << 10;
/// More bytes than any engine uses for any class without names of scripts and the like.
const CLASS_BYTES: usize = 4 << 10;
/// What is an operator in a class in Rust, but not in JSON Schema.
const CLASS_OPERATORS: [&str; 3] = ["&&", "--", "~~"];
/// The escapes that mean the same in both.
const ESCAPES: &str = "dDsSwWnrt$()*+-./?[\\]^{|}";

/// The syntax of a pattern.
pub(crate) struct PatternSyntax(Hir);

impl PatternSyntax {
    /// Returns `None` if the pattern isn't valid, or if it may mean something else in JSON Schema.
    pub(crate) fn parse(pattern: &str) -> Option<Self> {
        // There, `\d`, `\w` and `\s` are about ASCII, or nearly so.
        let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
        let parsed = is_common_syntax(pattern).then(|| parser.parse(pattern));
        parsed?.ok().map(Self)
    }

    /// Whether the pattern surely compiles, because it has few parts.
    fn is_small(&self) -> bool {
        count_bytes(&self.0) <= MAX_PATTERN_BYTES
    }

    /// Whether a text that begins with `-` may match.
    pub(crate) fn may_begin_with_dash(&self) -> bool {
        let is_anchored = self.0.properties().look_set_prefix().contains(Look::Start);
        let beginning = Beginning::find(&self.0);
        !is_anchored || beginning.may_be_dash || beginning.may_be_nothing
    }

    /// Whether only texts match that consist of letters, digits and `._,+-`.
    pub(crate) fn is_plain(&self) -> bool {
        let properties = self.0.properties();
        properties.look_set_prefix().contains(Look::Start)
            && properties.look_set_suffix().contains(Look::End)
            && has_only_plain_characters(&self.0)
    }
}

/// Whether Rust and JSON Schema agree on what the pattern means, if it is valid.
fn is_common_syntax(pattern: &str) -> bool {
    let has_operator = CLASS_OPERATORS
        .iter()
        .any(|operator| pattern.contains(operator));
    let has_flags = pattern
        .split("(?")
        .skip(1)
        .any(|rest| !rest.starts_with(':'));
    !has_operator && !has_flags && has_common_characters(pattern)
}

/// Whether all escapes mean the same, and all classes end at the same place.
fn has_common_characters(pattern: &str) -> bool {
    let mut is_in_class = false;
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        let is_common = match character {
            '\\' => rest.next().is_some_and(|escaped| ESCAPES.contains(escaped)),
            '[' => {
                let class = rest.as_str();
                let class = class.strip_prefix('^').unwrap_or(class);
                !std::mem::replace(&mut is_in_class, true) && !class.starts_with(']')
            }
            ']' => {
                is_in_class = false;
                true
            }
            _ => true,
        };
        if !is_common {
            return false;
        }
    }
    true
}

/// Returns a bound of the size of the compiled pattern.
fn count_bytes(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty => 0,
        HirKind::Literal(literal) => literal.0.len().saturating_mul(ASCII_BYTES),
        HirKind::Look(_) => ASCII_BYTES,
        HirKind::Class(class) if is_ascii(class) => ASCII_BYTES,
        HirKind::Class(class) if ranges(class).count() <= 2 => MOST_BYTES,
        HirKind::Class(_) => CLASS_BYTES,
        HirKind::Capture(capture) => count_bytes(&capture.sub).saturating_add(ASCII_BYTES),
        HirKind::Repetition(repetition) => {
            let copies = repetition.max.unwrap_or(repetition.min + 1) as usize;
            count_bytes(&repetition.sub).saturating_mul(copies + 1)
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            let bytes = parts.iter().map(count_bytes);
            bytes.fold(ASCII_BYTES, usize::saturating_add)
        }
    }
}

/// What a part of a pattern says about the beginning of the text that it matches.
#[derive(Clone, Copy)]
struct Beginning {
    /// Whether it may be a `-`.
    may_be_dash: bool,
    /// Whether the part may match nothing, so that what follows decides. At the end of the text, nothing follows.
    may_be_nothing: bool,
}

impl Beginning {
    fn find(hir: &Hir) -> Self {
        let of = |may_be_dash, may_be_nothing| Self {
            may_be_dash,
            may_be_nothing,
        };
        match hir.kind() {
            HirKind::Look(Look::End) => of(false, false),
            HirKind::Empty | HirKind::Look(_) => of(false, true),
            HirKind::Literal(literal) => of(literal.0.first() == Some(&b'-'), false),
            HirKind::Class(class) => of(contains(class, '-'), false),
            HirKind::Capture(capture) => Self::find(&capture.sub),
            HirKind::Repetition(repetition) => {
                let sub = Self::find(&repetition.sub);
                of(sub.may_be_dash, sub.may_be_nothing || repetition.min == 0)
            }
            HirKind::Alternation(parts) => {
                parts
                    .iter()
                    .map(Self::find)
                    .fold(of(false, false), |all, part| {
                        of(
                            all.may_be_dash || part.may_be_dash,
                            all.may_be_nothing || part.may_be_nothing,
                        )
                    })
            }
            HirKind::Concat(parts) => {
                let mut may_be_dash = false;
                for part in parts.iter().map(Self::find) {
                    may_be_dash |= part.may_be_dash;
                    if !part.may_be_nothing {
                        return of(may_be_dash, false);
                    }
                }
                of(may_be_dash, true)
            }
        }
    }
}

fn contains(class: &Class, character: char) -> bool {
    ranges(class).any(|(first, last)| (first..=last).contains(&u32::from(character)))
}

/// Whether only ASCII characters match. `\s` matches others, too, which the parsed class doesn't have.
fn is_ascii(class: &Class) -> bool {
    ranges(class).all(|(_, last)| last <= 0x7f) && !contains(class, '\u{b}')
}

/// Returns the ranges of characters in a class.
fn ranges(class: &Class) -> impl Iterator<Item = (u32, u32)> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => class
            .iter()
            .map(|range| (range.start().into(), range.end().into()))
            .collect(),
        Class::Bytes(class) => class
            .iter()
            .map(|range| (range.start().into(), range.end().into()))
            .collect(),
    };
    ranges.into_iter()
}

fn has_only_plain_characters(hir: &Hir) -> bool {
    let is_plain = |character: u32| {
        char::from_u32(character).is_some_and(|c| c.is_ascii_alphanumeric() || "._,+-".contains(c))
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => literal.0.iter().all(|byte| is_plain(u32::from(*byte))),
        HirKind::Class(class) => ranges(class).all(|(first, last)| (first..=last).all(is_plain)),
        HirKind::Capture(capture) => has_only_plain_characters(&capture.sub),
        HirKind::Repetition(repetition) => has_only_plain_characters(&repetition.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().all(has_only_plain_characters)
        }
    }
}

#[cfg(test)]
mod pattern_tests {
    use super::*;
    use crate::json_schema::CompiledSchema;

    /// docs/tools-yaml.md describes the dialect, with these examples.
    #[test]
    fn patterns_have_the_documented_dialect() {
        for (pattern, accepted, rejected) in [
            ("[0-9]{4}", &["in 2026"][..], &["in 26"][..]),
            (r"^\p{Lu}\w*$", &["Éa_1"], &["éa", "Éé"]),
            (
                r"^[^\s/]{1,64}$",
                &["naïve"],
                &["a b", "a/b", "", "a\u{a0}b", "a\u{feff}"],
            ),
            ("(?i:^yes$)", &["YES"], &["yes!"]),
            ("^a$", &["a"], &["a\n", "b\na", "A"]),
            (r"^\d$", &["1"], &["٣"]),
            ("^.$", &["𝄞", "\r", "\u{2028}"], &["\n"]),
            (r"\bfoo\b", &["-foo-"], &["éfoo"]),
            (r"^\p{Script=Greek}$", &["α"], &["a"]),
            (r"^\p{L}{1,20}$", &["é"], &[]),
            ("(?m:^a$)", &["b\na"], &["ba"]),
            ("^(?s:.)$", &["\n"], &[]),
        ] {
            let schema = json!({"pattern": pattern});
            let schema = CompiledSchema::compile(&schema).unwrap();
            for text in accepted {
                assert!(schema.accepts(&json!(text)), "{pattern} {text:?}");
            }
            for text in rejected {
                assert!(!schema.accepts(&json!(text)), "{pattern} {text:?}");
            }
        }
        for pattern in [
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "(?<!a)",
            r"(a)\1",
            r"(?<n>a)\k<n>",
            r"^\p{L}{1,50}$",
        ] {
            let found = find_rejected_patterns(&json!({"pattern": pattern}));
            assert_eq!(found.len(), 1, "{pattern}");
        }
    }
}
