//! Replays the corpus of the fuzz targets, without a fuzzer: what was once a finding stays fixed.

use std::path::Path;
use std::{fs, panic};

/// Every input in `fuzz/corpus/TARGET`, and a few that are in no corpus.
#[test]
fn every_input_of_the_corpus_passes_its_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (name, check) in toolq_fuzz::TARGETS {
        let mut failures = Vec::new();
        let mut count = 0;
        for entry in fs::read_dir(corpus.join(name)).unwrap() {
            let path = entry.unwrap().path();
            let data = fs::read(&path).unwrap();
            count += 1;
            if panic::catch_unwind(|| check(&data)).is_err() {
                failures.push(path.display().to_string());
            }
        }
        assert!(count > 0, "{name} has no corpus");
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        check(b"");
    }
}

/// Streams that were changed on their way, each by a few random choices.
#[test]
fn no_call_of_a_changed_stream_runs_with_what_was_not_sent_for_it() {
    let mut random = fastrand::Rng::with_seed(36);
    for _ in 0..8000 {
        let data: Vec<u8> = (0..32).map(|_| random.u8(..)).collect();
        let checked = panic::catch_unwind(|| toolq_fuzz::mutated_streams(&data));
        assert!(checked.is_ok(), "{data:?}");
    }
}
