//! What a text says beyond its bytes: a backslash and what follows, `%2F`, `&amp;`. Each is read from the bytes so far,
//! which may be too few to tell.

/// Backslashes that stand together: JSON in JSON in JSON doubles them each time. More of them say nothing.
const RUN: usize = 16;
/// The entities of HTML that stand for what quotes and tags are made of.
const ENTITIES: [(&[u8], u8); 5] = [
    (b"&amp;", b'&'),
    (b"&lt;", b'<'),
    (b"&gt;", b'>'),
    (b"&quot;", b'"'),
    (b"&apos;", b'\''),
];
/// The longest reference to a character, `&#x0010ffff;`.
const REFERENCE: usize = 12;

/// What the begin of some bytes says.
#[derive(Debug)]
pub(crate) enum Reading {
    /// Nothing yet.
    More,
    /// So many bytes say the first so many of these.
    Says(usize, [u8; 4], usize),
}

impl Reading {
    fn byte(used: usize, byte: u8) -> Self {
        Self::Says(used, [byte, 0, 0, 0], 1)
    }

    fn char(used: usize, c: char) -> Self {
        let mut bytes = [0; 4];
        let len = c.encode_utf8(&mut bytes).len();
        Self::Says(used, bytes, len)
    }

    fn nothing(used: usize) -> Self {
        Self::Says(used, [0; 4], 0)
    }
}

/// A backslash and what follows, as in JSON and in most languages. `is_all` says that nothing follows.
pub(crate) fn escape(bytes: &[u8], is_all: bool) -> Reading {
    match bytes {
        [_] if !is_all => Reading::More,
        [_, b'\\', ..] => Reading::byte(2, b'\\'),
        _ => letter(bytes, 1, is_all).unwrap_or(Reading::byte(1, b'\\')),
    }
}

/// Any number of backslashes and what follows. How many there are tells only how often a text was escaped, so that one
/// counts as much as eight; secrets are read alike before they are looked for.
pub(crate) fn escapes(bytes: &[u8], is_all: bool) -> Reading {
    let run = run(bytes, RUN);
    if run == RUN {
        return Reading::byte(run, b'\\');
    }
    if run == bytes.len() && !is_all {
        return Reading::More;
    }
    letter(bytes, run, is_all).unwrap_or(Reading::nothing(run))
}

/// What the letter behind `run` backslashes makes of them; none where it is none that they change.
fn letter(bytes: &[u8], run: usize, is_all: bool) -> Option<Reading> {
    let (c, digits) = bytes.get(run..)?.split_first()?;
    let used = run + 1;
    Some(match c {
        b'n' => Reading::byte(used, b'\n'),
        b't' => Reading::byte(used, b'\t'),
        b'r' => Reading::byte(used, b'\r'),
        b'b' => Reading::byte(used, 8),
        b'f' => Reading::byte(used, 12),
        b'"' | b'\'' | b'/' => Reading::byte(used, *c),
        b'u' if digits.starts_with(b"{") => braced(bytes, used + 1, is_all)?,
        b'u' => match hex(digits, 4) {
            Some(unit @ 0xd800..0xdc00) => pair(bytes, (run, used + 4), unit, is_all),
            Some(unit) => Reading::char(used + 4, char_of(unit)),
            None if may_be_hex(digits, 4) && !is_all => Reading::More,
            None => return None,
        },
        b'x' => match hex(digits, 2) {
            Some(byte) => Reading::byte(used + 2, u8::try_from(byte).unwrap_or_default()),
            None if may_be_hex(digits, 2) && !is_all => Reading::More,
            None => return None,
        },
        _ => return None,
    })
}

/// As Rust and JavaScript write a character, `\u{e9}`, whose digits begin at `at`.
fn braced(bytes: &[u8], at: usize, is_all: bool) -> Option<Reading> {
    let digits = bytes[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit());
    let count = digits.take(6).count();
    match (bytes.get(at + count), hex(&bytes[at..], count)) {
        (Some(b'}'), Some(code)) if count > 0 => Some(Reading::char(at + count + 1, char_of(code))),
        (None, _) if !is_all => Some(Reading::More),
        _ => None,
    }
}

/// A character beyond the first 65,536: `\ud83d\ude00`. The second half is looked for at `at`, behind as many backslashes.
fn pair(bytes: &[u8], (backslashes, at): (usize, usize), high: u32, is_all: bool) -> Reading {
    let rest = &bytes[at..];
    let run = run(rest, backslashes);
    let digits = rest.get(run + 1..).unwrap_or_default();
    let is_escape = run == backslashes && rest.get(run) == Some(&b'u');
    if let Some(low @ 0xdc00..0xe000) = hex(digits, 4).filter(|_| is_escape) {
        let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return Reading::char(at + run + 5, char_of(code));
    }
    let may_follow = run == rest.len() || is_escape && may_be_hex(digits, 4);
    if may_follow && !is_all {
        return Reading::More;
    }
    Reading::char(at, char::REPLACEMENT_CHARACTER)
}

/// What URLs and HTML write for a character: `%2f`, `&amp;`, `&#38;`, `&#x26;`.
pub(crate) fn reference(bytes: &[u8], is_all: bool) -> Reading {
    let read = match bytes.first() {
        Some(b'%') => percent(&bytes[1..]),
        _ => entity(bytes),
    };
    match read {
        Reading::More if is_all => Reading::byte(1, bytes[0]),
        read => read,
    }
}

fn percent(digits: &[u8]) -> Reading {
    match hex(digits, 2) {
        Some(byte) => Reading::byte(3, u8::try_from(byte).unwrap_or_default()),
        None if may_be_hex(digits, 2) => Reading::More,
        None => Reading::byte(1, b'%'),
    }
}

fn entity(bytes: &[u8]) -> Reading {
    for (name, said) in ENTITIES {
        if bytes.starts_with(name) {
            return Reading::byte(name.len(), said);
        }
        if name.starts_with(bytes) {
            return Reading::More;
        }
    }
    let (begin, radix) = match bytes {
        [b'&', b'#', b'x' | b'X', ..] => (3, 16),
        [b'&', b'#', ..] => (2, 10),
        _ => return Reading::byte(1, bytes[0]),
    };
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    let digits = bytes[begin..].iter().take_while(|b| is_digit(b)).count();
    let end = begin + digits;
    let number = std::str::from_utf8(&bytes[begin..end]).ok();
    let code = number.and_then(|number| u32::from_str_radix(number, radix).ok());
    match (bytes.get(end), code) {
        (Some(b';'), Some(code)) => Reading::char(end + 1, char_of(code)),
        (None, _) if end < REFERENCE => Reading::More,
        _ => Reading::byte(1, bytes[0]),
    }
}

/// How many backslashes `bytes` begin with: `most`, or fewer.
fn run(bytes: &[u8], most: usize) -> usize {
    let backslashes = bytes.iter().take_while(|byte| **byte == b'\\');
    backslashes.take(most).count()
}

/// The number that the first `count` digits are.
fn hex(bytes: &[u8], count: usize) -> Option<u32> {
    let digits = bytes.get(..count)?.iter();
    let mut digits = digits.map(|digit| char::from(*digit).to_digit(16));
    digits.try_fold(0, |number, digit| Some(number * 16 + digit?))
}

/// Whether so many digits may still come.
fn may_be_hex(bytes: &[u8], count: usize) -> bool {
    bytes.len() < count && bytes.iter().all(u8::is_ascii_hexdigit)
}

fn char_of(code: u32) -> char {
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}
