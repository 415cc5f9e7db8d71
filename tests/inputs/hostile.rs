//! Inputs that were made to break a reader.

use std::io::Read as _;

use proptest::prelude::*;
use toolq_core::transcript::{Place, Recording, Source};

use super::shapes::{USE, shapes};
use super::{MAX, calls, error, read};

/// FAULTS 3: nesting is walked without the stack; the input itself has a limit.
#[test]
fn depth_is_no_bomb() {
    let small = std::thread::Builder::new().stack_size(256 * 1024);
    let bombs = || {
        for open in ["[", "{\"a\":", "[{\"content\":"] {
            assert!(read(open.repeat(100_000)).is_err(), "{open}");
        }
        assert!(read(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))).is_err());
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let text = format!(
            r#"[{{"type":"text","x":{deep}}},{{"type":"tool_use","id":"a","name":"n","input":{{"x":{deep}}}}}]"#
        );
        assert_eq!(calls(&text), ["0.0:a n !"]);
    };
    small.spawn(bombs).unwrap().join().unwrap();
}

/// FAULTS 4: a document over the limit is refused while it is read, however long it goes on.
#[test]
fn size_is_no_bomb() {
    let endless = |begin: &'static str, rest: &'static [u8]| {
        let feed = begin.as_bytes().chain(std::io::repeat(rest[0]));
        Recording::read(Source::pipe("in", feed).unwrap(), None, MAX)
    };
    for begin in ["\"", "[\"", "{\"a\":\""] {
        let error = endless(begin, b"x").err().unwrap();
        assert!(error.message.contains("more than 1 MiB"), "{error}");
        assert_eq!(error.place, Some(Place { line: 1, column: 1 }));
    }
    let large = format!("{USE}\n[\"{}\"]", "x".repeat(1 << 20));
    assert_eq!(error(large).0, 2);
    let fits = format!(
        r#"{{"role":"assistant","content":"{}"}}"#,
        "x".repeat((1 << 20) - 50)
    );
    assert_eq!(read(fits.repeat(3)).unwrap().len(), 3);
}

/// Documents and characters may be cut anywhere by the buffer; a file is read from where it stands.
#[test]
fn buffers_cut_nothing() {
    let text = format!("[{}]", USE.replace("\"n\"", "\"é漢😀\""));
    let many: String = (0..60_000)
        .map(|index| text.replace(":1}", &format!(":{index}}}\n ")))
        .collect();
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, format!("skipped {many}").as_bytes()).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(8)).unwrap();
    let recording = Recording::read(Source::file("f", file).unwrap(), None, MAX).unwrap();
    assert_eq!(recording.len(), 60_000);
    for number in [0, 1, 29_999, 59_999] {
        let turn = recording.turn(number, false).unwrap();
        assert_eq!(turn.calls[0].name, "é漢😀");
        assert_eq!(
            turn.calls[0].input.as_ref().unwrap().text(),
            format!("{{\"x\":{number}}}")
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// FAULTS 2, 5, 7, 11, 15: whatever is done to a valid input, it is read or it is an error; all that is read loads.
    #[test]
    fn damaged_inputs_are_survived(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..4),
    ) {
        let shapes = shapes();
        let mut bytes = which.get(&shapes).text.clone().into_bytes();
        for (at, byte, how) in damage {
            let at = at.index(bytes.len());
            match how {
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
fn recordings_are_shared() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&read(USE).unwrap());
}
