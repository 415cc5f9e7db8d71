//! Inputs made to break a parser.

use std::io::Read as _;

use proptest::prelude::*;
use toolq_core::transcript::{InputSource, LineCol, Recording};

use super::shapes::{TOOL_USE, shapes};
use super::{MAX_DOCUMENT_BYTES, open_calls, read, read_error};

/// Documents are parsed without recursion, and the nesting of a call's input has a limit.
#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let small_stack = std::thread::Builder::new().stack_size(256 * 1024);
    let read_bombs = || {
        for open in ["[", "{\"a\":", "[{\"content\":"] {
            assert!(read(open.repeat(100_000)).is_err(), "{open}");
        }
        assert!(read(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))).is_err());
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let text = format!(
            r#"[{{"type":"text","x":{deep}}},{{"type":"tool_use","id":"a","name":"n","input":{{"x":{deep}}}}}]"#
        );
        assert_eq!(open_calls(&text), ["0.0:a n !"]);
    };
    small_stack.spawn(read_bombs).unwrap().join().unwrap();
}

/// A document over the limit is refused while it is still being read, even if it never ends.
#[test]
fn documents_over_the_limit_are_refused() {
    let read_endless = |start: &'static str| {
        let endless = start.as_bytes().chain(std::io::repeat(b'x'));
        Recording::read(
            InputSource::from_pipe("in", endless).unwrap(),
            None,
            MAX_DOCUMENT_BYTES,
        )
    };
    for start in ["\"", "[\"", "{\"a\":\""] {
        let error = read_endless(start).err().unwrap();
        assert!(error.message.contains("larger than 1 MiB"), "{error}");
        assert_eq!(error.position, Some(LineCol { line: 1, column: 1 }));
    }
    let large = format!("{TOOL_USE}\n[\"{}\"]", "x".repeat(1 << 20));
    assert_eq!(read_error(large).0, 2);
    let fits = format!(
        r#"{{"role":"assistant","content":"{}"}}"#,
        "x".repeat((1 << 20) - 50)
    );
    assert_eq!(read(fits.repeat(3)).unwrap().len(), 3);
}

/// Buffer boundaries may fall anywhere within a document or a character. A file is read from its current position.
#[test]
fn buffer_boundaries_split_nothing() {
    let text = format!("[{}]", TOOL_USE.replace("\"n\"", "\"é漢😀\""));
    let documents: String = (0..60_000)
        .map(|index| text.replace(":1}", &format!(":{index}}}\n ")))
        .collect();
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, format!("skipped {documents}").as_bytes()).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(8)).unwrap();
    let recording = Recording::read(
        InputSource::from_file("f", file).unwrap(),
        None,
        MAX_DOCUMENT_BYTES,
    )
    .unwrap();
    assert_eq!(recording.len(), 60_000);
    for number in [0, 1, 29_999, 59_999] {
        let turn = recording.turn(number, false).unwrap();
        assert_eq!(&*turn.calls[0].name, "é漢😀");
        assert_eq!(
            turn.calls[0].input.as_ref().unwrap().text(),
            format!("{{\"x\":{number}}}")
        );
    }
}

/// Wherever a document is in a file, and whether it fits in the first buffer, in one for the whole file, or in neither.
#[test]
fn documents_of_any_size_are_read_from_a_file() {
    const MAX: u64 = 32 << 20;
    for size in [100, 200 << 10, 300 << 10, 1 << 20, 9 << 20] {
        let text = "é".repeat(size / 2);
        let large = format!(
            r#"[{{"type":"text","text":"{text}"}},{{"type":"tool_use","id":"large","name":"n","input":{{}}}}]"#
        );
        for (before, after) in [(0, 0), (3, 0), (0, 3), (2, 2)] {
            let small = format!("[{TOOL_USE}]\n");
            let documents = [&*small.repeat(before), &large, "\n", &*small.repeat(after)];
            let mut file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut file, documents.concat().as_bytes()).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            let source = InputSource::from_file("f", file).unwrap();
            let recording = Recording::read(source, None, MAX).unwrap();
            assert_eq!(recording.len(), before + 1 + after, "{size}");
            let turn = recording.turn(before, false).unwrap();
            assert_eq!(turn.calls[0].id, "large");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A damaged input is either an error, or its turns can all be loaded.
    #[test]
    fn damaged_inputs_never_panic(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..4),
    ) {
        let shapes = shapes();
        let mut bytes = which.get(&shapes).text.clone().into_bytes();
        for (at, byte, kind) in damage {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, b"{}[],:\"\\ x0n"[usize::from(byte) % 12]),
                _ => drop(bytes.drain(at..(at + usize::from(byte) % 9).min(bytes.len() - 1).max(at))),
            }
        }
        if let Ok(recording) = read(&bytes) {
            for number in 0..recording.len() {
                prop_assert!(recording.turn(number, true).is_ok());
            }
        }
    }
}

/// Turns can be loaded on several threads at once.
#[test]
fn recordings_are_send_and_sync() {
    fn assert_send_and_sync<T: Send + Sync>(_: &T) {}
    assert_send_and_sync(&read(TOOL_USE).unwrap());
}
