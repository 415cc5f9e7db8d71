//! Each beast runs as a call of an engine of its own.

use std::time::Duration;

use rustix::process::Signal;
use toolq::model::{Ending, Limit, Limits, Outcome};

use crate::scene::{Asked, Scene, command, text, text_of};
use crate::tracks::{self, MARK};
use crate::{beasts, number};

/// Who is too slow is ended after this much.
const TIMEOUT: Duration = Duration::from_millis(150);
const GRACE: Duration = Duration::from_millis(100);
/// Beside timeout and grace, what a loaded machine may need until the answer.
const SLACK: Duration = Duration::from_secs(5);

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

/// Visits every beast, and then many at once; how many visits that were.
pub fn all(is_chosen: impl Fn(&str) -> bool) -> usize {
    let chosen: Vec<_> = beasts::ALL
        .iter()
        .filter(|beast| is_chosen(beast.name))
        .collect();
    assert!(beasts::ALL.len() >= 40);
    let mut visited = 0;
    let mut descriptors = None;
    for _ in 0..number("ZOO_TIMES", 1) {
        for beast in &chosen {
            visit(beast, visited);
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
        crowd();
        visited += 1;
    }
    visited
}

fn visit(beast: &beasts::Beast, number: usize) {
    let mark = format!("{}-{}-{number}", beast.name, std::process::id());
    let span = crate::machine::Span::begin();
    let ran = Scene::default().call(call(beast, &mark)).run();
    check(beast, ran.outcome());
    let lost = span.lost();
    let span2 = crate::machine::Span::begin();
    let gone = tracks::wait_until_gone(&mark, beast.name);
    println!("XX {} {} lost {} gone {} lost {}", beast.name, ran.took.as_millis(), lost.as_millis(), gone.as_millis(), span2.lost().as_millis());
}

/// Beasts that kill what they find get at nobody beside them.
fn crowd() {
    let mark = format!("crowd-{}", std::process::id());
    let beasts: Vec<_> = beasts::ALL
        .iter()
        .filter(|beast| beast.name != "kills_all_above")
        .collect();
    let calls = beasts.iter().fold(Scene::default(), |scene, beast| {
        scene.call(call(beast, &mark))
    });
    let ran = calls.run();
    for (position, beast) in beasts.iter().enumerate() {
        check(beast, &ran.outcomes[&position]);
        println!("XX crowd {} {}", beast.name, ran.durations[&position].as_millis());
    }
    tracks::wait_until_gone(&mark, "the crowd");
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
        End::Late => asked.tool(|tool| (tool.timeout.after, tool.timeout.grace) = (TIMEOUT, GRACE)),
        End::Fails => {
            asked.tool(|tool| (tool.timeout.after, tool.timeout.grace) = (TIMEOUT * 4, GRACE))
        }
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
