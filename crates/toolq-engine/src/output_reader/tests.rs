//! Pages and searches of kept outputs.

use std::fmt::Write as _;
use std::fs;

use proptest::prelude::*;
use regex::bytes::RegexBuilder;
use tempfile::TempDir;

use super::*;

/// An output in a directory that lives as long as it.
struct KeptText {
    _dir: TempDir,
    file: OutputFile,
}

fn keep(bytes: &[u8]) -> KeptText {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("output.txt");
    fs::write(&path, bytes).unwrap();
    let file = OutputFile::open(&path).unwrap();
    KeptText { _dir: dir, file }
}

fn read_pages(file: &OutputFile, limit: u64) -> Vec<OutputPage> {
    let mut pages: Vec<OutputPage> = Vec::new();
    let mut next = 0;
    while next < file.len {
        let page = file.read_page(next, limit).unwrap();
        assert_eq!(page.begin, next);
        assert!(page.end > page.begin, "each page gets further");
        next = page.end;
        pages.push(page);
    }
    pages
}

fn search(file: &OutputFile, pattern: &str, offset: u64, limit: usize) -> FoundExcerpts {
    let pattern = RegexBuilder::new(pattern)
        .multi_line(true)
        .crlf(true)
        .build();
    search_output(file, &pattern.unwrap(), offset, limit, &|| false).unwrap()
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let text = "[a\u{e9}\u{4e2d}\u{1f600}\n]{0,12}".prop_map(String::into_bytes);
    let raw = prop::collection::vec(any::<u8>(), 0..6);
    let broken = Just("\u{1f600}".as_bytes()[..3].to_vec());
    let piece = prop_oneof![text, raw, broken];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever the bytes are, pages put together are what the whole output decodes to, and no page is longer than asked for
    /// unless a single character is.
    #[test]
    fn pages_put_together_are_the_whole_output(bytes in pieces(), limit in 1_u64..40) {
        let kept = keep(&bytes);
        let pages = read_pages(&kept.file, limit);
        let joined: String = pages.iter().map(|page| &*page.text).collect();
        prop_assert_eq!(joined, String::from_utf8_lossy(&bytes));
        prop_assert!(pages.iter().all(|page| page.end - page.begin <= limit.max(4)));
    }

    /// An offset within a character begins with it.
    #[test]
    fn a_page_begins_with_the_character_at_its_offset(text in "[a\u{e9}\u{4e2d}\u{1f600}]{1,20}", at in any::<prop::sample::Index>()) {
        let kept = keep(text.as_bytes());
        let offset = at.index(text.len());
        let page = kept.file.read_page(offset as u64, 100).unwrap();
        prop_assert_eq!(page.begin, text.floor_char_boundary(offset) as u64);
        prop_assert_eq!(page.text, &text[text.floor_char_boundary(offset)..]);
    }

    /// A search finds exactly the lines that a second, simpler search finds, in any number of steps.
    #[test]
    fn a_search_finds_the_lines_that_match(lines in prop::collection::vec("[ab]{0,6}", 0..30), limit in 1_usize..60) {
        let text = lines.join("\n");
        let kept = keep(text.as_bytes());
        let (mut found, mut next) = (String::new(), Some(0));
        while let Some(offset) = next.filter(|offset| *offset < kept.file.len) {
            let step = search(&kept.file, "ab+", offset, limit);
            found += &step.text;
            next = step.next;
        }
        let mut expected = String::new();
        let mut at = 0;
        for line in text.split('\n') {
            if line.contains("ab") {
                let _ = writeln!(expected, "{at}: {line}");
            }
            at += line.len() + 1;
        }
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn lines_are_found_with_their_offsets_and_empty_matches_end() {
    let kept = keep(b"one\r\ntwo\n\nthree\n");
    assert_eq!(search(&kept.file, "^t", 0, 100).text, "5: two\n10: three\n");
    assert_eq!(search(&kept.file, "e$", 0, 100).text, "0: one\n10: three\n");
    assert_eq!(search(&kept.file, "^$", 0, 100).text, "9: \n");
    assert_eq!(search(&kept.file, "x*", 0, 100).count, 4);
    assert_eq!(search(&kept.file, "zzz", 0, 100), FoundExcerpts::default());
    assert_eq!(
        search(&kept.file, "^wo", 6, 100).count,
        0,
        "an offset begins no line"
    );
}

/// What is found in one line is shown in excerpts, and found wherever it is in the output.
#[test]
fn matches_in_a_line_of_megabytes_are_found_with_what_is_around_them() {
    let mut bytes = vec![b'.'; 3 << 20];
    let places = [
        0,
        500,
        (1 << 20) - (64 << 10),
        (1 << 20) - 3,
        2 << 20,
        (3 << 20) - 6,
    ];
    for place in places {
        bytes[place..place + 6].copy_from_slice(b"needle");
    }
    let kept = keep(&bytes);
    let found = search(&kept.file, "needle", 0, 1 << 20);
    assert_eq!((found.count, found.next), (places.len(), None));
    for (line, place) in found.text.lines().zip(places) {
        let (offset, excerpt) = line.split_once(": ").unwrap();
        let offset: usize = offset.parse().unwrap();
        assert!(offset <= place && place - offset <= 100, "{line}");
        assert!(excerpt.contains("needle") && excerpt.len() < 550, "{line}");
        assert_eq!(excerpt.starts_with('…'), offset > 0, "{line}");
        assert_eq!(excerpt.ends_with('…'), place < places[5], "{line}");
    }
}

#[test]
fn a_search_that_nobody_waits_for_ends() {
    let kept = keep(&vec![b'.'; 8 << 20]);
    let pattern = RegexBuilder::new("needle").build().unwrap();
    let asked = std::cell::Cell::new(0);
    let is_canceled = || asked.replace(asked.get() + 1) == 2;
    search_output(&kept.file, &pattern, 0, 100, &is_canceled).unwrap();
    assert_eq!(asked.get(), 3);
}

#[test]
fn nothing_but_a_file_of_its_own_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    fs::write(place("secret"), "s3cr3t").unwrap();
    std::os::unix::fs::symlink(place("secret"), place("link")).unwrap();
    fs::hard_link(place("secret"), place("hard")).unwrap();
    fs::create_dir(place("dir")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place("pipe"),
        rustix::fs::FileType::Fifo,
        Mode::RUSR,
        0,
    )
    .unwrap();
    for name in ["link", "hard", "dir", "pipe", "missing"] {
        assert!(OutputFile::open(&place(name)).is_err(), "{name}");
    }
}
