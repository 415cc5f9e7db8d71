//! Bars on a terminal.

use indicatif::ProgressDrawTarget;

use crate::terminal::tests::terminal::Terminal;

use super::*;

/// Bars on a terminal of 60 columns.
fn bars(color: bool) -> (Bars, Terminal) {
    let terminal = Terminal::default();
    let look = Look {
        color,
        size: || (60, 20),
        jobs: JOBS,
    };
    let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
    (Bars::new(target, look, mask()), terminal)
}

/// FAULTS 78: nothing that a tool says reaches the terminal as a command.
#[test]
fn bars_on_a_terminal() {
    let (mut bars, terminal) = bars(false);
    let screen = bars.screen();
    let checked = checked();
    play(&mut bars, &checked, "done").unwrap();
    start(&mut bars, &checked[0]);
    screen.tick();
    let many: Vec<_> = (0..20)
        .map(|position| timed(position, "get", 1, true))
        .collect();
    play(&mut bars, &many, "done").unwrap();
    trouble(&mut bars, &timed(3, "wait", 1, false));
    assert_eq!(screen.suspend(|| 1), 1);
    drop(bars);
    let text = terminal.written();
    for words in [
        r"no\x1b[31mbody: unknown tool ",
        r"Read: reading [masked]\x1b[2J",
        "20 calls, 10 at a time",
        "wait: timeout after 30s ",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(!text.contains('\x1b'), "{text}");
}

/// A call that says something and runs on.
fn say(sink: &mut dyn Sink, checked: &Checked, tip: Option<&str>, progress: Option<f64>) {
    let call = &CallRef::new(&checked.call, Some(0));
    let status = Event::Status {
        call,
        tip,
        progress,
    };
    sink.tell(&[status]).unwrap();
}

#[test]
fn a_row_has_room_for_what_the_tool_says() {
    let (mut bars, terminal) = bars(false);
    let long = timed(0, &"name_".repeat(20), 1, true);
    let short = timed(1, "short", 1, true);
    for checked in [&long, &short] {
        start(&mut bars, checked);
        say(&mut bars, checked, Some("the first of many words"), None);
    }
    // What is not said anew stays.
    say(&mut bars, &short, None, Some(0.5));
    bars.screen().tick();
    assert_snapshot!(terminal.picture(), @r"
    ⠁ name_name_name_name_nam…: the first of many words
    ⠁ short: the first of many words, 50 %
    ──────────────────────── 0/2
    ");
}

/// Agents, each with its turn and the calls that it waits for below it, whatever started first.
#[test]
fn agents_are_a_tree() {
    let (mut bars, terminal) = bars(false);
    let agents = [0, 1].map(|at| timed(at, ["expert", "new_task"][at], 1, true));
    let below = |agent: &Checked, at, name| {
        let mut checked = timed(at, name, 1, true);
        checked.call.id = format!("{}_{at}", agent.call.id);
        checked.call.within = Some(Arc::new(CallRef::new(&agent.call, Some(0))));
        checked
    };
    let asks = |bars: &mut Bars, checked: &Checked, agent, turn| {
        let call = &CallRef::new(&checked.call, Some(0));
        let progress = Event::AgentProgress {
            call,
            agent,
            turn,
            max_turns: 3,
        };
        bars.tell(&[progress]).unwrap();
    };
    for (agent, name) in agents.iter().zip(["expert", "reader"]) {
        start(&mut bars, agent);
        asks(&mut bars, agent, name, 1);
    }
    start(&mut bars, &timed(2, "get", 1, true));
    let helper = below(&agents[0], 0, "helper");
    let look = below(&helper, 0, "look");
    let read = below(&agents[1], 0, "read");
    for call in [&read, &helper, &look, &below(&agents[0], 1, "search")] {
        start(&mut bars, call);
    }
    say(&mut bars, &look, Some("at home"), Some(0.5));
    bars.screen().tick();
    assert_snapshot!(terminal.picture(), @r"
    ⠁ expert: turn 1 of 3
    ⠁ └ helper
    ⠁   └ look: at home, 50 %
    ⠁ └ search
    ⠁ new_task: reader, turn 1 of 3
    ⠁ └ read
    ⠁ get
    ──────────────────────── 0/3
    ");
    trouble(&mut bars, &look);
    asks(&mut bars, &agents[0], "expert", 2);
    bars.screen().tick();
    assert_snapshot!(terminal.picture(), @r"
    expert › helper › look: timeout after 30s
    ⠉ expert: turn 2 of 3
    ⠉ └ helper
    ⠉ └ search
    ⠉ new_task: reader, turn 1 of 3
    ⠉ └ read
    ⠉ get
    ──────────────────────── 0/3
    ");
}

/// Whoever interrupts a run gets the terminal back without a row of what still ran, also from one who still ticks.
#[test]
fn nothing_is_left_of_calls_that_still_run() {
    let (mut bars, terminal) = bars(true);
    let calls: Vec<_> = (0..12)
        .map(|position| timed(position, "get", 1, true))
        .collect();
    for call in &calls {
        start(&mut bars, call);
    }
    trouble(&mut bars, &calls[3]);
    let screen = bars.screen();
    screen.tick();
    // Half of the terminal's lines are for calls.
    let picture = terminal.picture();
    assert_eq!(picture.lines().count(), 12, "{picture}");
    assert!(
        picture.ends_with("1/13                         1 more"),
        "{picture}"
    );
    drop(bars);
    screen.tick();
    assert_snapshot!(terminal.picture(), @"get: timeout after 30s");
}

/// Tools that are asked what they take have rows of their own, before there is a call.
#[test]
fn tools_that_are_asked() {
    let (mut bars, terminal) = bars(false);
    let paper = Paper::default();
    let mut lines = Lines::new(Box::new(paper.clone()), JOBS, mask(), clock());
    let [say, mute] = ["say", "mute"].map(tool);
    let asked = [&say, &mute].map(|tool| Event::Describing { tool });
    bars.tell(&asked).unwrap();
    lines.tell(&asked).unwrap();
    bars.screen().tick();
    assert_snapshot!(terminal.picture(), @r"
    ⠁ say: asking what it takes
    ⠁ mute: asking what it takes
    ");
    assert_snapshot!(paper.text(), @r"
    say: asking what it takes
    mute: asking what it takes
    ");
    let said = Event::Described {
        tool: &say,
        outcome: &Outcome::NoBacking,
        duration: Duration::from_secs(1),
        attempts: 1,
    };
    bars.tell(&[said]).unwrap();
    bars.screen().tick();
    assert_snapshot!(terminal.picture(), @"⠉ mute: asking what it takes");
}
