//! Events cut anywhere, the beginnings of streams, and what can't be decoded.

use super::*;

#[test]
fn the_id_of_a_whole_event_and_the_retry_time_are_kept() {
    let mut events = SseDecoder::new(1000);
    let mut read = |text: &str| {
        let mut bytes = text.as_bytes();
        while events.next_event(&mut bytes).unwrap().is_some() {}
        let id = events.last_event_id().map(<[u8]>::to_vec);
        (id.map(|id| String::from_utf8(id).unwrap()), events.retry())
    };
    let (first, second) = (Some("a 1".to_owned()), Some(String::new()));
    assert_eq!(read(": hi\n\ndata: x\n\n"), (None, None));
    assert_eq!(
        read("id: a 1\nretry: 20\ndata:"),
        (None, Some(Duration::from_millis(20)))
    );
    assert_eq!(read("\n\ndata: y\n\n").0, first);
    assert_eq!(
        read("id: \0\nretry: -1\nretry\n\n"),
        (first, Some(Duration::from_millis(20)))
    );
    assert_eq!(read("id\n\n").0, second);
    assert_eq!(read("id: b\ndata: cut off").0, second);
}

fn read_events(pieces: &[&[u8]]) -> Vec<(String, usize)> {
    let mut events = SseDecoder::new(1000);
    let mut found = Vec::new();
    for piece in pieces {
        let mut piece = *piece;
        while let Some(data) = events.next_event(&mut piece).unwrap() {
            found.push((data.text, data.line));
        }
    }
    found.extend(events.finish().unwrap().map(|data| (data.text, data.line)));
    found
}

/// All forms of the standard, in one piece and cut at every byte.
#[test]
fn events_are_found_however_the_bytes_arrive() {
    let text = "\u{FEFF}: hello\r\rdata:ä\r\ndata:  b\r\n\r\nevent: x\nid\ndata\n\nretry: 1\n\n\ndata: {é}\rnonsense\r\rdata: end";
    let expected = [("ä\n b", 3), ("", 8), ("{é}", 13), ("end", 16)]
        .map(|(text, line)| (text.to_owned(), line));
    assert_eq!(read_events(&[text.as_bytes()]), expected);
    for cut in 0..text.len() {
        let (start, rest) = text.as_bytes().split_at(cut);
        assert_eq!(read_events(&[start, rest]), expected, "{cut}");
    }
    let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
    assert_eq!(read_events(&bytes), expected);
}

#[test]
fn a_stream_is_detected_by_its_first_line() {
    for (begin, expected) in [
        ("", None),
        ("\u{FEFF}", None),
        ("\r\n\n", None),
        ("eve", None),
        ("event", None),
        ("event:", Some(true)),
        (": hello", Some(true)),
        ("\u{FEFF}data\n", Some(true)),
        ("\nretry: 1", Some(true)),
        ("evil", Some(false)),
        ("identity: 1", Some(false)),
        ("{", Some(false)),
        (" data:", Some(false)),
    ] {
        assert_eq!(is_event_stream(begin.as_bytes()), expected, "{begin:?}");
    }
}

#[test]
fn a_too_large_or_non_utf8_event_is_an_error() {
    let mut endless = SseDecoder::new(10);
    assert_eq!(
        endless.next_event(&mut &b"data: 12345"[..]),
        Err(SseError::TooLarge { line: 1 })
    );
    let mut many = SseDecoder::new(10);
    assert_eq!(
        many.next_event(&mut &b"data:1234\ndata:5678\ndata:9\n"[..]),
        Err(SseError::TooLarge { line: 2 })
    );
    let mut binary = SseDecoder::new(10);
    assert_eq!(
        binary.next_event(&mut &b"\ndata: \xFF\n"[..]),
        Err(SseError::NotUtf8 { line: 2 })
    );
}

#[test]
fn bytes_that_are_not_utf8_matter_only_in_data() {
    let text = b": \xFF\n\xFE: x\nevent: \xC3\ndata: \xC3\xA4\n\n";
    assert_eq!(read_events(&[text]), [("ä".to_owned(), 4)]);
}
