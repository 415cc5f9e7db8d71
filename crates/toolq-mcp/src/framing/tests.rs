use super::*;

/// Returns the lines of `bytes`, pushed in pieces of `piece` bytes.
fn lines(bytes: &[u8], piece: usize) -> Vec<String> {
    let mut framer = LineFramer::new(0);
    let mut found = Vec::new();
    let mut note = |frame: Frame<'_>| {
        found.push(match frame {
            Frame::Line(line) => String::from_utf8_lossy(line).into_owned(),
            Frame::TooLong { start, bytes } => format!("{} of {bytes}", start.len()),
        });
    };
    for piece in bytes.chunks(piece) {
        framer.push(piece, &mut note);
    }
    framer.finish(&mut note);
    found
}

#[test]
fn lines_are_the_same_however_they_arrive() {
    let bytes = "\u{FEFF}{\"a\":1}\r\n\n  \n{\"b\":\"\u{FEFF}ü\"}\n\n{\"last\":true}".as_bytes();
    for piece in 1..=bytes.len() {
        assert_eq!(
            lines(bytes, piece),
            [r#"{"a":1}"#, "{\"b\":\"\u{FEFF}ü\"}", r#"{"last":true}"#],
            "in pieces of {piece} bytes"
        );
    }
}

#[test]
fn a_line_over_the_limit_keeps_its_beginning_and_the_next_one_is_whole() {
    let mut bytes = vec![b'x'; KEPT_BYTES + 1000];
    bytes.extend_from_slice(b"\nshort\n");
    for piece in [1, 7, 1000, KEPT_BYTES, KEPT_BYTES + 500, bytes.len()] {
        assert_eq!(
            lines(&bytes, piece),
            ["4096 of 5096", "short"],
            "in pieces of {piece} bytes"
        );
    }
}

/// A line that has no end takes no more memory than that.
#[test]
fn memory_stays_at_the_limit_below_a_line_of_64_mib() {
    let mut framer = LineFramer::new(1 << 20);
    let piece = vec![b'x'; 64 << 10];
    for _ in 0..1024 {
        framer.push(&piece, |_| panic!("no line has ended"));
        assert!(framer.partial.capacity() <= 2 << 20);
    }
    let mut length = 0;
    framer.push(b"\n", |frame| {
        if let Frame::TooLong { bytes, .. } = frame {
            length = bytes;
        }
    });
    assert_eq!(length, 64 << 20);
}
