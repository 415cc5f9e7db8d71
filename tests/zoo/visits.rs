//! Each beast runs as a call of an engine of its own.

use std::time::Duration;

use rustix::process::Signal;
use toolq_core::types::{Ending, Limit, Limits, Outcome};

use crate::machine::{Span, fair};
use crate::scene::{Asked, Scene, command, text, text_of};
use crate::tracks::{self, MARK};
use crate::{beasts, number};

/// Who is too slow is ended after this much.
const TIMEOUT: Duration = Duration::from_millis(150);
const GRACE: Duration = Duration::from_millis(100);
/// How much later than its timeout and grace a call may be answered.
const SLACK: Duration = Duration::from_secs(1);

/// How a beast's call must end.
#[derive(Debug, Clone, Copy)]
pub enum End {
    Says(&'static str),
    Dies(Signal),
    Late,
    Over(Limit),
    /// By error, in time.
    Fails,
}

/// The longest times of many visits, without those that the machine was not there.
#[derive(Debug, Clone, Copy, Default)]
struct Worst {
    /// From the start of a call to its answer.
    answered: Duration,
    /// From there until nobody was left.
    gone: Duration,
}

/// Visits every beast, and then many at once; how many visits that were.
pub fn all(is_chosen: impl Fn(&str) -> bool) -> usize {
    let chosen: Vec<_> = beasts::ALL
        .iter()
        .filter(|beast| is_chosen(beast.name))
        .collect();
    assert!(beasts::ALL.len() >= 40);
    let mut visited = 0;
    let mut worst = Worst::default();
    let mut descriptors = None;
    for _ in 0..number("ZOO_TIMES", 1) {
        for beast in &chosen {
            worst = worst.or(visit(beast, visited));
            visited += 1;
            let now = tracks::descriptors();
            assert_eq!(
                *descriptors.get_or_insert(now),
                now,
                "descriptors after {}",
                beast.name
            );
            assert!(
                tracks::children().is_empty(),
                "{}: {:?}",
                beast.name,
                tracks::children()
            );
        }
    }
    if is_chosen("crowd") {
        worst = worst.or(crowd());
        visited += 1;
    }
    println!(
        "answered after {} ms, nobody left {} ms later, at the latest",
        worst.answered.as_millis(),
        worst.gone.as_millis()
    );
    visited
}

impl Worst {
    fn or(self, other: Self) -> Self {
        Self {
            answered: self.answered.max(other.answered),
            gone: self.gone.max(other.gone),
        }
    }
}

fn visit(beast: &beasts::Beast, number: usize) -> Worst {
    let mark = format!("{}-{}-{number}", beast.name, std::process::id());
    let span = Span::begin();
    let ran = Scene::default().call(call(beast, &mark)).run();
    let answered = fair(ran.durations[&0], span.lost());
    check(beast, ran.outcome());
    in_time(beast, answered);
    Worst {
        answered,
        gone: tracks::wait_until_gone(&mark, beast.name),
    }
}

/// No call is answered later than this.
fn in_time(beast: &beasts::Beast, answered: Duration) {
    let limit = limit(beast) + GRACE + SLACK;
    assert!(
        answered < limit,
        "{} was answered after {answered:?}, at the latest it should be {limit:?}",
        beast.name
    );
}

/// Beasts that kill what they find get at nobody beside them.
fn crowd() -> Worst {
    let mark = format!("crowd-{}", std::process::id());
    let beasts: Vec<_> = beasts::ALL
        .iter()
        .filter(|beast| beast.name != "kills_all_above")
        .collect();
    let calls = beasts.iter().fold(Scene::default(), |scene, beast| {
        scene.call(call(beast, &mark))
    });
    let span = Span::begin();
    let ran = calls.run();
    let lost = span.lost();
    for (position, beast) in beasts.iter().enumerate() {
        check(beast, &ran.outcomes[&position]);
        in_time(beast, fair(ran.durations[&position], lost));
    }
    let answered = ran.durations.values().max().copied().unwrap_or_default();
    Worst {
        answered: fair(answered, lost),
        gone: tracks::wait_until_gone(&mark, "the crowd"),
    }
}

/// When the call of a beast is late. The limit is far away for those that end by themselves, but they end at once.
fn limit(beast: &beasts::Beast) -> Duration {
    match beast.end {
        End::Fails => TIMEOUT * 4,
        _ => TIMEOUT,
    }
}

fn call(beast: &beasts::Beast, mark: &str) -> Asked {
    let itself = std::env::current_exe().unwrap();
    let mut limits = Limits::default();
    if let End::Over(Limit::Processes) = beast.end {
        limits.processes = Some(16);
    }
    let asked = command(&[itself.to_str().unwrap(), "beast", beast.name])
        .input(&format!(r#"{{"x":"{}"}}"#, "x".repeat(1 << 18)))
        .backing(|backing| backing.limits = limits)
        .command(|command| command.env = vec![(MARK.to_owned(), text(mark))]);
    match beast.end {
        End::Late | End::Fails => asked.tool(|tool| {
            tool.timeout.after = limit(beast);
            tool.timeout.grace = GRACE;
        }),
        _ => asked,
    }
}

fn check(beast: &beasts::Beast, outcome: &Outcome) {
    let holds = match beast.end {
        End::Says(text) => outcome.ending() == Some(Ending::Exit(0)) && text_of(outcome) == text,
        End::Dies(signal) => outcome.ending() == Some(Ending::Signal(signal.as_raw())),
        End::Over(limit) => outcome.ending() == Some(Ending::Limit(limit)),
        End::Late => matches!(outcome, Outcome::TimedOut { .. }),
        End::Fails => outcome.is_error(),
    };
    assert!(holds, "{}: {outcome:?} is not {:?}", beast.name, beast.end);
}
