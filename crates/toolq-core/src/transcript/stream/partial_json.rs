//! JSON that is still arriving → the value known so far.

/// Where a text stands, in the value that it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before a value.
    Value,
    /// Before a key, or the end of the object.
    Key,
    /// Behind a key.
    Colon,
    /// Behind a value.
    Behind,
}

/// The object that `text`, the begin of one, tells by now, as JSON: strings end where the text does, and what is not
/// surely known yet is left out: keys without a value, numbers and words that may go on. So it is a begin of the whole:
/// every string of it begins the string there, every list the list. None where nothing is known, or `text` begins no object.
pub fn completed(text: &str) -> Option<String> {
    let mut walk = Walk {
        text,
        at: text.len() - text.trim_start().len(),
        open: Vec::new(),
        known: 0,
    };
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let begin = walk.at;
    let ending = walk.run()?;
    let mut value = text[begin..walk.known.max(begin)].to_owned();
    value.push_str(ending);
    value.extend(walk.open.iter().rev().map(|&open| char::from(open)));
    // The walk follows brackets and strings; whether all between is JSON, the parser knows.
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&value).is_ok();
    is_json.then_some(value)
}

struct Walk<'a> {
    text: &'a str,
    at: usize,
    /// What ends the lists and objects that are open.
    open: Vec<u8>,
    /// Up to here everything is known: what is open is closed right behind.
    known: usize,
}

impl Walk<'_> {
    /// Walks to the end; what ends the string in which the text ends. None where the text is no begin of JSON.
    fn run(&mut self) -> Option<&'static str> {
        let mut at = At::Value;
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            at = match (at, byte) {
                (_, b' ' | b'\t' | b'\r' | b'\n') => {
                    self.at += 1;
                    continue;
                }
                (At::Value, b'{') => self.enter(b'}', At::Key),
                (At::Value, b'[') => self.enter(b']', At::Value),
                (At::Value | At::Behind, b']') | (At::Key | At::Behind, b'}') => {
                    self.leave(byte)?
                }
                (At::Key, b'"') => match self.string() {
                    Ok(end) => {
                        self.at = end;
                        At::Colon
                    }
                    Err(_) => return Some(""),
                },
                (At::Value, b'"') => match self.string() {
                    Ok(end) => {
                        (self.at, self.known) = (end, end);
                        At::Behind
                    }
                    Err(end) => {
                        self.known = end;
                        return Some("\"");
                    }
                },
                (At::Colon, b':') => self.pass(At::Value),
                (At::Behind, b',') => match self.open.last()? {
                    b'}' => self.pass(At::Key),
                    _ => self.pass(At::Value),
                },
                (At::Value, _) => {
                    let rest = &self.text[self.at..];
                    let Some(end) = rest.find([',', ']', '}', ' ', '\t', '\r', '\n']) else {
                        // It may go on.
                        return Some("");
                    };
                    self.at += end;
                    self.known = self.at;
                    At::Behind
                }
                _ => return None,
            };
            if self.open.is_empty() {
                break;
            }
        }
        Some("")
    }

    fn pass(&mut self, next: At) -> At {
        self.at += 1;
        next
    }

    fn enter(&mut self, end: u8, next: At) -> At {
        self.open.push(end);
        self.at += 1;
        self.known = self.at;
        next
    }

    fn leave(&mut self, end: u8) -> Option<At> {
        if self.open.pop()? != end {
            return None;
        }
        self.at += 1;
        self.known = self.at;
        Some(At::Behind)
    }

    /// The end of the string that begins here, behind its quote; else the end of the last character that is there.
    fn string(&self) -> Result<usize, usize> {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        loop {
            match bytes.get(at) {
                None => return Err(at),
                Some(b'"') => return Ok(at + 1),
                Some(b'\\') => match escape(&bytes[at..]) {
                    Some(len) => at += len,
                    None => return Err(at),
                },
                Some(_) => at += 1,
            }
        }
    }
}

/// The bytes of the escape that begins here; none where it goes on. Two halves of one character are one.
fn escape(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'u' => {
            let digits = str::from_utf8(bytes.get(2..6)?).ok();
            let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
            match unit {
                Some(0xD800..0xDC00) => bytes.get(11).map(|_| 12),
                _ => Some(6),
            }
        }
        _ => Some(2),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f32>().prop_map(Value::from),
            "[a\"\\\\é😀\u{1} {}:,\\[\\]]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a\"\\\\é😀]{0,3}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Whether `part` is what a reader of the whole has met somewhere on the way.
    fn begins(part: &Value, whole: &Value) -> bool {
        match (part, whole) {
            (Value::String(part), Value::String(whole)) => whole.starts_with(part.as_str()),
            (Value::Array(part), Value::Array(whole)) => {
                part.len() <= whole.len()
                    && part
                        .iter()
                        .zip(whole)
                        .all(|(part, whole)| begins(part, whole))
            }
            (Value::Object(part), Value::Object(whole)) => {
                part.len() <= whole.len()
                    && part
                        .iter()
                        .zip(whole)
                        .all(|((key, part), (name, whole))| key == name && begins(part, whole))
            }
            _ => part == whole,
        }
    }

    /// As some models write it: other white space, every character beyond ASCII escaped.
    fn escaped(text: &str) -> String {
        let written = text.encode_utf16().map(|unit| match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
            _ => format!("\\u{unit:04x}"),
        });
        written.collect::<Vec<_>>().concat()
    }

    proptest! {
        #[test]
        fn every_begin_of_an_object_is_a_begin_of_its_value(
            members in prop::collection::btree_map("[a-c\"é]{0,2}", value(), 0..4),
        ) {
            let whole = Value::Object(members.into_iter().collect());
            for text in [whole.to_string(), escaped(&whole.to_string()), format!(" {whole:#} ")] {
                let whole: Value = serde_json::from_str(&text).unwrap();
                let mut known = 0;
                for cut in (0..=text.len()).filter(|&cut| text.is_char_boundary(cut)) {
                    let begun = text[..cut].trim_start().starts_with('{');
                    let part = completed(&text[..cut]);
                    prop_assert_eq!(part.is_some(), begun, "{}", &text[..cut]);
                    let Some(part) = part else { continue };
                    prop_assert!(begins(&serde_json::from_str(&part).unwrap(), &whole), "{} of {}", part, text);
                    prop_assert!(part.len() >= known, "{} forgets", part);
                    known = part.len();
                }
                prop_assert_eq!(completed(&text), Some(text.trim().to_owned()));
            }
        }

        #[test]
        fn anything_is_survived(text in "[{}\\[\\]:,\"\\\\ua0d81 -]{0,24}", other in ".*") {
            for text in [text, other] {
                if let Some(part) = completed(&text) {
                    prop_assert!(serde_json::from_str::<Value>(&part).is_ok());
                }
            }
        }
    }

    #[test]
    fn what_may_go_on_is_left_out() {
        for (text, part) in [
            ("{", "{}"),
            (r#"{"pa"#, "{}"),
            (r#"{"path":"a/b"#, r#"{"path":"a/b"}"#),
            (r#"{"a":12"#, "{}"),
            (r#"{"a":12,"b":tr"#, r#"{"a":12}"#),
            (r#"{"a":[1, 2"#, r#"{"a":[1]}"#),
            (r#"{"a":{"b":["x","#, r#"{"a":{"b":["x"]}}"#),
            (r#"{"a":"x\ud83d\ude"#, r#"{"a":"x"}"#),
        ] {
            assert_eq!(completed(text).as_deref(), Some(part), "{text}");
        }
        for text in [
            "",
            " ",
            "[",
            "12",
            r#"{"a" 1"#,
            r#"{"a":]"#,
            r#"{"a":nonsense,"#,
        ] {
            assert_eq!(completed(text), None, "{text}");
        }
    }
}
