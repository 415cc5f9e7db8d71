//! Tests of the progress bars.

use indicatif::ProgressDrawTarget;

use crate::terminal::tests::fake_terminal::FakeTerminal;

use super::*;

/// Returns bars on a terminal of 60 columns.
fn new_bars(color: bool) -> (ProgressBars, FakeTerminal) {
    let terminal = FakeTerminal::default();
    let options = BarOptions {
        color,
        is_unicode: true,
        terminal_size: || (60, 20),
        jobs: JOBS,
    };
    let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
    (ProgressBars::new(target, options, mask()), terminal)
}

/// No text from a tool reaches the terminal as a control sequence.
#[test]
fn bars_escape_and_mask_what_tools_say() {
    let (mut bars, terminal) = new_bars(false);
    let screen = bars.screen();
    let checked = sample_calls();
    emit_turn(&mut bars, &checked, "done").unwrap();
    emit_start(&mut bars, &checked[0]);
    screen.tick();
    let many: Vec<_> = (0..20)
        .map(|position| call_with_estimate(position, "get", 1, true))
        .collect();
    emit_turn(&mut bars, &many, "done").unwrap();
    emit_retry_and_timeout(&mut bars, &call_with_estimate(3, "wait", 1, false));
    assert_eq!(screen.suspend(|| 1), 1);
    drop(bars);
    let text = terminal.written();
    for words in [
        r"no\x1b[31mbody toolu_1: unknown tool: no tool has",
        r"Read: reading [masked]\x1b[2J",
        "1 rejected, 10 more",
        "wait toolu_3: timeout after 30s ",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(!text.contains('\x1b'), "{text}");
}

/// Emits a status of a running call.
fn emit_status(
    sink: &mut dyn EventSink,
    checked: &CheckedCall,
    tip: Option<&str>,
    progress: Option<f64>,
) {
    let call = &CallRef::new(&checked.call, Some(0));
    let status = Event::Status {
        call,
        message: tip,
        progress,
        params: None,
        result: None,
    };
    sink.emit(&[status]).unwrap();
}

#[test]
fn a_row_has_room_for_the_status() {
    let (mut bars, terminal) = new_bars(false);
    let long = call_with_estimate(0, &"name_".repeat(20), 1, true);
    let short = call_with_estimate(1, "short", 1, true);
    for checked in [&long, &short] {
        emit_start(&mut bars, checked);
        emit_status(&mut bars, checked, Some("the first of many words"), None);
    }
    // The tip is kept, because only the progress is new.
    emit_status(&mut bars, &short, None, Some(0.5));
    bars.screen().tick();
    assert_snapshot!(terminal.visible_text(), @r"
    ⠁ name_name_name_name_nam…: the first of many words
    ⠁ short: the first of many words, 50 %
    ──────────────────────── 0/2
    ");
}

/// An input takes the room that a status doesn't need, and gives way to it.
#[test]
fn an_input_gives_way_to_the_status() {
    let (mut bars, terminal) = bars_with(BarOptions {
        terminal_size: || (40, 20),
        ..plain_options()
    });
    for position in 0..2 {
        let input = r#"{"query":"a long question"}"#;
        let checked = accepted_call(position, sample_tool("search"), true, input);
        emit_start(&mut bars, &checked);
        if position == 1 {
            emit_status(&mut bars, &checked, Some("reads the archive"), None);
        }
    }
    bars.screen().tick();
    assert_snapshot!(terminal.visible_text(), @r#"
    ⠁ search {"query":"a long ques…
    ⠁ search: reads the archive
    ────────── 0/2
    "#);
}

/// Each agent shows its turn, and its calls are below it, regardless of the order in which they started.
#[test]
fn agents_are_shown_as_a_tree() {
    let (mut bars, terminal) = new_bars(false);
    let agents = [0, 1].map(|at| call_with_estimate(at, ["expert", "new_task"][at], 1, true));
    let child_call = |agent: &CheckedCall, at, name| {
        let mut checked = call_with_estimate(at, name, 1, true);
        checked.call.id = format!("{}_{at}", agent.call.id);
        checked.call.parent = Some(Arc::new(CallRef::new(&agent.call, Some(0))));
        checked
    };
    let emit_agent_turn = |bars: &mut ProgressBars, checked: &CheckedCall, agent, turn| {
        let call = &CallRef::new(&checked.call, Some(0));
        let progress = Event::AgentProgress {
            call,
            agent,
            turn,
            max_turns: 3,
        };
        bars.emit(&[progress]).unwrap();
    };
    for (agent, name) in agents.iter().zip(["expert", "reader"]) {
        emit_start(&mut bars, agent);
        emit_agent_turn(&mut bars, agent, name, 1);
    }
    emit_start(&mut bars, &call_with_estimate(2, "get", 1, true));
    let helper = child_call(&agents[0], 0, "helper");
    let look = child_call(&helper, 0, "look");
    let read = child_call(&agents[1], 0, "read");
    for call in [&read, &helper, &look, &child_call(&agents[0], 1, "search")] {
        emit_start(&mut bars, call);
    }
    emit_status(&mut bars, &look, Some("at home"), Some(0.5));
    bars.screen().tick();
    assert_snapshot!(terminal.visible_text(), @r"
    ⠁ expert: turn 2 of at most 3
    ⠁ └ helper
    ⠁   └ look: at home, 50 %
    ⠁ └ search
    ⠁ new_task: reader, turn 2 of at most 3
    ⠁ └ read
    ⠁ get
    ──────────────────────── 0/3
    ");
    emit_retry_and_timeout(&mut bars, &look);
    emit_agent_turn(&mut bars, &agents[0], "expert", 2);
    bars.screen().tick();
    assert_snapshot!(terminal.visible_text(), @r"
    failed: expert › helper › look toolu_0_0_0: timeout after
        30s
    ⠉ expert: turn 3 of at most 3
    ⠉ └ helper
    ⠉ └ search
    ⠉ new_task: reader, turn 2 of at most 3
    ⠉ └ read
    ⠉ get
    ──────────────────────── 0/3  1 failed
    ");
}

/// After an interrupted run, no rows are left on the terminal, even if a timer still ticks them.
#[test]
fn dropping_the_bars_clears_rows_that_still_run() {
    let (mut bars, terminal) = new_bars(true);
    let calls: Vec<_> = (0..12)
        .map(|position| call_with_estimate(position, "get", 1, true))
        .collect();
    for call in &calls {
        emit_start(&mut bars, call);
    }
    emit_retry_and_timeout(&mut bars, &calls[3]);
    let screen = bars.screen();
    screen.tick();
    // Half of the terminal's lines are rows of calls.
    let picture = terminal.visible_text();
    assert_eq!(picture.lines().count(), 12, "{picture}");
    assert!(picture.ends_with("1/13  1 failed, 1 more"), "{picture}");
    drop(bars);
    screen.tick();
    assert_snapshot!(terminal.visible_text(), @"failed: get toolu_3: timeout after 30s");
}

/// A failure leaves the command line that repeats the call, if that has no secret.
#[test]
fn a_failure_can_be_repeated_by_hand() {
    let (mut bars, terminal) = new_bars(false);
    bars.repeat = Some(RepeatCommand::new(""));
    let output = OutputBuffer::default();
    let mut lines = ProgressLines::new(Box::new(output.clone()), JOBS, mask(), ticking_clock());
    lines.repeat = Some(RepeatCommand::new(r" -c 'it'\''s.yaml'"));
    lines.is_unicode = false;
    let inputs = [r#"{"path":"a"}"#, r#"{"key":"s3cr3t-value"}"#];
    for (position, input) in inputs.into_iter().enumerate() {
        let call = accepted_call(position, sample_tool("wait"), false, input);
        emit_retry_and_timeout(&mut bars, &call);
        emit_retry_and_timeout(&mut lines, &call);
    }
    drop(bars);
    assert_snapshot!(terminal.visible_text(), @r#"
    failed: wait toolu_0 {"path":"a"}: timeout after 30s
      may have done part of its work; after checking: toolq call
     wait '{"path":"a"}'
    failed: wait toolu_1 {"key":"[masked]"}: timeout after 30s
    "#);
    let written = output.to_text();
    let repeated = r#"  may have done part of its work; after checking: toolq call -c 'it'\''s.yaml' wait '{"path":"a"}'"#;
    assert!(written.contains(repeated), "{written}");
    assert_eq!(written.matches("toolq call").count(), 1, "{written}");
    assert!(!written.contains("s3cr3t-value"), "{written}");
}

/// Tools that are being described have rows, before any call does.
#[test]
fn tools_being_described_have_rows() {
    let (mut bars, terminal) = new_bars(false);
    let output = OutputBuffer::default();
    let mut lines = ProgressLines::new(Box::new(output.clone()), JOBS, mask(), ticking_clock());
    let [say, mute] = ["say", "mute"].map(sample_tool);
    let describing = [&say, &mute].map(|tool| Event::Describing { tool });
    bars.emit(&describing).unwrap();
    lines.emit(&describing).unwrap();
    bars.screen().tick();
    assert_snapshot!(terminal.visible_text(), @r"
    ⠁ say: getting its schema
    ⠁ mute: getting its schema
    ");
    assert_snapshot!(output.to_text(), @r"
    say: getting its schema
    mute: getting its schema
    ");
    let described = Event::Described {
        tool: &say,
        outcome: &Outcome::NoBacking,
        duration: Duration::from_secs(1),
        attempts: 1,
    };
    bars.emit(&[described]).unwrap();
    bars.screen().tick();
    assert_snapshot!(terminal.visible_text(), @"⠉ mute: getting its schema");
}

/// Returns bars on a terminal that looks as the options say.
fn bars_with(options: BarOptions) -> (ProgressBars, FakeTerminal) {
    let terminal = FakeTerminal::default();
    let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
    (ProgressBars::new(target, options, mask()), terminal)
}

fn plain_options() -> BarOptions {
    BarOptions {
        color: false,
        is_unicode: true,
        terminal_size: || (60, 20),
        jobs: JOBS,
    }
}

#[test]
fn an_ascii_terminal_gets_ascii() {
    let (mut bars, terminal) = bars_with(BarOptions {
        is_unicode: false,
        ..plain_options()
    });
    let agent = call_with_estimate(0, &"expert_".repeat(9), 1, true);
    emit_start(&mut bars, &agent);
    let mut call = call_with_estimate(0, "look", 1, true);
    call.call.parent = Some(Arc::new(CallRef::new(&agent.call, Some(0))));
    emit_start(&mut bars, &call);
    bars.screen().tick();
    drop(bars);
    let text = terminal.written();
    assert!(text.contains("> look") && text.contains('~'), "{text}");
    assert!(terminal.written().is_ascii(), "{}", terminal.written());
}

/// Failed calls of the same tool can be distinguished, and the reason is shown even if the model reads something else.
#[test]
fn a_failure_says_which_call_and_why() {
    let (mut bars, terminal) = new_bars(false);
    let output = OutputBuffer::default();
    let mut lines = ProgressLines::new(Box::new(output.clone()), JOBS, mask(), ticking_clock());
    lines.columns = Some(60);
    let failed = Outcome::Failed {
        output: CallOutput {
            stderr: "trying s3cr3t-value\npassword authentication failed for s3cr3t-value\n\n"
                .to_owned(),
            ..CallOutput::default()
        },
        ending: CallEnding::ExitCode(2),
    };
    for (position, input) in [r#"{"url":"http://a/1"}"#, r#"{"url":"s3cr3t-value"}"#]
        .iter()
        .enumerate()
    {
        let checked = accepted_call(position, sample_tool("fetch"), true, input);
        let call = &CallRef::new(&checked.call, Some(0));
        for sink in [&mut bars as &mut dyn EventSink, &mut lines] {
            emit_start(sink, &checked);
            emit_finished(sink, call, &failed, "Answer directly.", (2_000, 2)).unwrap();
        }
    }
    drop(bars);
    assert_snapshot!(output.to_text(), @r#"
    failed: #0 fetch toolu_0 {"url":"http://a/1"}: exit 2, 2s:
        password authentication failed for [masked]
    failed: #1 fetch toolu_1 {"url":"[masked]"}: exit 2, 2s:
        password authentication failed for [masked]
    "#);
    // On a terminal, the lines break between words.
    assert_snapshot!(terminal.visible_text(), @r#"
    failed: fetch toolu_0 {"url":"http://a/1"}: exit 2, 2s:
        password authentication failed for [masked]
    failed: fetch toolu_1 {"url":"[masked]"}: exit 2, 2s:
        password authentication failed for [masked]
    "#);
}

/// A call whose input is still arriving has a row, which starts over when the call does.
#[test]
fn a_call_is_shown_while_its_input_arrives() {
    let (mut bars, terminal) = new_bars(false);
    let screen = bars.screen();
    let checked = call_with_estimate(0, "get", 1, true);
    let call = CallRef::new(&checked.call, None);
    let partial = Event::PartialInput {
        call: &call,
        tool: None,
        input_so_far: "{",
    };
    bars.emit(&[partial]).unwrap();
    screen.tick();
    assert!(terminal.visible_text().contains("get: receiving its input"));
    let partial = Event::PartialInput {
        call: &call,
        tool: None,
        input_so_far: r#"{"url":"http://a/"#,
    };
    bars.emit(&[partial]).unwrap();
    screen.tick();
    let text = terminal.visible_text();
    assert!(
        text.contains(r#"get: receiving {"url":"http://a"#),
        "{text}"
    );
    emit_turn(&mut bars, std::slice::from_ref(&checked), "done").unwrap();
    assert!(!terminal.visible_text().contains("receiving"));
    drop(bars);
}
