//! Entries are made once, by one of any number of processes.

use std::sync::Barrier;
use std::thread;

use tempfile::TempDir;

use crate::memory::{Claim, ClaimsDir, Decided, EntryName, Made, MemoryKey, Question, Settlement};
use toolq_core::types::{CallContext, ContextDigest};

fn name(attempt: u32) -> EntryName {
    EntryName {
        key: MemoryKey::of_random_id("toolu_01A09q90qw90lq917835lq9x"),
        instance: 1,
        attempt,
    }
}

fn claim(log: &str) -> Claim {
    Claim {
        log: log.to_owned(),
        offset: 1234,
        word: 2,
        context: CallContext {
            message: Some(ContextDigest::of(&[b"message"])),
            before: None,
        },
    }
}

fn settlement(done: bool) -> Settlement {
    Settlement {
        done,
        result: done.then(|| "paid".into()),
        is_error: false,
        by: "person".to_owned(),
        note: None,
        timestamp: 1,
    }
}

#[test]
fn names_and_entries_are_read_as_they_were_written() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("state/claims");
    assert!(ClaimsDir::open(&path).unwrap().is_none());
    let claims = ClaimsDir::create(&path).unwrap();
    assert_eq!(claims.read_claim(&name(1)).unwrap(), None);
    for log in ["20251121T200000Z-0123abcd", "strange:name", ""] {
        let name = EntryName {
            instance: 1 + u32::try_from(log.len()).unwrap(),
            ..name(7)
        };
        assert_eq!(claims.claim(&name, &claim(log)).unwrap(), Made::New);
        assert_eq!(claims.read_claim(&name).unwrap(), Some(claim(log)));
        assert_eq!(
            claims.claim(&name, &claim("other")).unwrap(),
            Made::Existed(claim(log))
        );
    }
    assert_eq!(
        claims.settle(&name(1), &settlement(true)).unwrap(),
        Made::New
    );
    let second = claims.settle(&name(1), &settlement(false)).unwrap();
    assert_eq!(second, Made::Existed(settlement(true)));
    assert_eq!(
        claims.read_settlement(&name(1)).unwrap(),
        Some(settlement(true))
    );
    claims.sync().unwrap();
    let suffixed: Vec<String> = claims.list().unwrap();
    let parsed: Vec<_> = suffixed
        .iter()
        .map(|text| EntryName::parse(text).unwrap())
        .collect();
    assert_eq!(parsed.len(), 4);
    assert!(parsed.contains(&(name(1), ".s")));
    assert!(EntryName::parse("x.1~1").is_none());
}

/// A link of this length needs no block of its own.
#[test]
fn the_entry_of_an_attempt_is_short() {
    let context = ContextDigest::of(&[b"x"]);
    let claim = Claim {
        log: "20251121T200000Z-0123abcd".to_owned(),
        offset: 99_999_999,
        word: 1,
        context: CallContext {
            message: Some(context),
            before: Some(context),
        },
    };
    assert!(claim.to_string().len() < 60, "{claim}");
}

#[test]
fn one_question_is_asked_about_one_thing() {
    let dir = TempDir::new().unwrap();
    let claims = ClaimsDir::create(dir.path()).unwrap();
    let question = |digest: &str| Question {
        log: "a".to_owned(),
        offset: 5,
        word: digest.to_owned(),
        context: CallContext::default(),
    };
    let ask = |digest| claims.ask(&name(1), &question(digest), false).unwrap();
    assert_eq!(
        [ask("one"), ask("two"), ask("one"), ask("two")],
        [1, 2, 1, 2]
    );
    assert_eq!(
        claims.read_question(&name(1), 2).unwrap(),
        Some(question("two"))
    );
    let decided = |approved| Decided {
        approved,
        reason: None,
        user: None,
        timestamp: 1,
    };
    assert_eq!(
        claims.decide(&name(1), 2, &decided(true)).unwrap(),
        Made::New
    );
    let second = claims.decide(&name(1), 2, &decided(false)).unwrap();
    assert_eq!(second, Made::Existed(decided(true)));
    assert_eq!(claims.read_decision(&name(1), 1).unwrap(), None);
}

#[test]
fn of_many_that_claim_an_attempt_one_succeeds() {
    let dir = TempDir::new().unwrap();
    let barrier = Barrier::new(8);
    for attempt in 1..20 {
        let made = thread::scope(|scope| {
            let claimers: Vec<_> = (0..8)
                .map(|number| {
                    let (dir, barrier) = (dir.path(), &barrier);
                    scope.spawn(move || {
                        let claims = ClaimsDir::create(dir).unwrap();
                        barrier.wait();
                        let claim = claim(&format!("log-{number}"));
                        (claim.clone(), claims.claim(&name(attempt), &claim).unwrap())
                    })
                })
                .collect();
            claimers
                .into_iter()
                .map(|claimer| claimer.join().unwrap())
                .collect::<Vec<_>>()
        });
        let winners: Vec<_> = made.iter().filter(|(_, made)| *made == Made::New).collect();
        assert_eq!(winners.len(), 1);
        let winner = &winners[0].0;
        let is_winner = |existing: &Claim| existing == winner;
        assert!(made.iter().all(|(_, made)| match made {
            Made::New => true,
            Made::Existed(existing) => is_winner(existing),
        }));
    }
}

/// On a file system without links, entries are files.
#[test]
fn entries_need_no_links() {
    let dir = TempDir::new().unwrap();
    let claims = ClaimsDir::create(dir.path()).unwrap().without_links();
    assert_eq!(claims.claim(&name(1), &claim("a")).unwrap(), Made::New);
    assert_eq!(
        claims.claim(&name(1), &claim("b")).unwrap(),
        Made::Existed(claim("a"))
    );
    // Its process was killed before it wrote the file.
    std::fs::write(dir.path().join(name(2).to_string()), "").unwrap();
    let unknown = claims.read_claim(&name(2)).unwrap().unwrap();
    assert_eq!((&*unknown.log, unknown.offset), ("", 0));
    std::fs::write(dir.path().join(name(3).to_string()), "nonsense").unwrap();
    assert!(claims.read_claim(&name(3)).is_err());
}
