//! Scenarios, output formats, and the batching rule, checked against an independently written oracle.

use std::num::NonZeroUsize;
use std::time::Duration;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

use crate::json::Input;
use crate::linear_time::assert_linear_time;
use crate::plan::timeline::{PlanDetail, PlanStyle};
use crate::plan::{json, text};
use crate::testing::{
    accepted_call, call_with_estimate, rejected_call, sample_tool, sample_tools, with_program,
};
use crate::types::{
    Backing, HttpBacking, HttpInvocation, HttpMethod, Invocation, PartialJson, PartialTemplate,
    RequestBody, Segment, Template, Tool,
};
use redact::Mask;

fn jobs(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

fn no_tools() -> ToolsConfig {
    sample_tools(Vec::new())
}

fn plan<'a>(checked: &'a [CheckedCall], tools: &'a ToolsConfig) -> TurnPlan<'a> {
    TurnPlan::new(0, checked, tools, jobs(10))
}

/// Returns the call positions of each batch.
fn batch_positions(plan: &TurnPlan<'_>) -> Vec<Vec<usize>> {
    let calls =
        |batch: &PlannedBatch<'_>| batch.calls.iter().map(|call| call.call.position).collect();
    plan.batches.iter().map(calls).collect()
}

fn estimate_seconds(plan: &TurnPlan<'_>) -> (u64, u64) {
    (
        plan.estimate.serial.as_secs(),
        plan.estimate.planned.as_secs(),
    )
}

#[test]
fn a_batch_takes_as_long_as_its_slowest_call() {
    let tools = no_tools();
    let experts = [
        call_with_estimate(0, "invoke_assessment_expert", 4, true),
        call_with_estimate(1, "invoke_case_analyst", 2, true),
        call_with_estimate(2, "invoke_strategist", 2, true),
    ];
    assert_eq!(estimate_seconds(&plan(&experts, &tools)), (8, 4));

    let memory = [
        call_with_estimate(0, "invoke_policy_expert", 3, true),
        call_with_estimate(1, "invoke_memory_manager", 2, false),
    ];
    assert_eq!(estimate_seconds(&plan(&memory, &tools)), (5, 5));

    let payment = [
        call_with_estimate(0, "save_user_memory", 1, false),
        call_with_estimate(1, "invoke_assessment_expert", 4, true),
        call_with_estimate(2, "generate_payment", 2, false),
    ];
    assert_eq!(estimate_seconds(&plan(&payment, &tools)), (7, 7));

    let three = [
        call_with_estimate(0, "invoke_policy_expert", 3, true),
        call_with_estimate(1, "invoke_case_analyst", 2, true),
        call_with_estimate(2, "save_user_memory", 1, false),
        call_with_estimate(3, "invoke_assessment_expert", 4, true),
    ];
    assert_eq!(
        batch_positions(&plan(&three, &tools)),
        [vec![0, 1], vec![2], vec![3]]
    );
}

#[test]
fn calls_beyond_the_concurrency_wait_for_the_first_free_slot() {
    let checked =
        [3, 1, 1, 2].map(|seconds| call_with_estimate(seconds, "get", seconds as u64, true));
    let tools = no_tools();
    let planned = |number| estimate_seconds(&TurnPlan::new(0, &checked, &tools, jobs(number))).1;
    assert_eq!(
        [planned(1), planned(2), planned(3), planned(9)],
        [7, 4, 3, 3]
    );
    let title = |number| TurnPlan::new(0, &checked, &tools, jobs(number)).batch_title(0);
    assert_eq!(title(3), "batch 0: 4 calls, 3 at a time");
    assert_eq!(title(4), "batch 0: 4 in parallel");
}

#[test]
fn a_rejected_call_does_not_split_a_batch() {
    let checked = [
        call_with_estimate(0, "get", 1, true),
        rejected_call(1, "nobody"),
        call_with_estimate(2, "get", 1, true),
    ];
    let tools = no_tools();
    let plan = plan(&checked, &tools);
    assert_eq!(batch_positions(&plan), [vec![0, 2]]);
    assert_eq!(plan.rejected.len(), 1);
}

#[test]
fn nothing_runs_after_a_rejected_call_that_stops() {
    let stopping = Tool {
        on_failure: OnFailure::Stop,
        ..sample_tool("check")
    };
    let checked = [
        call_with_estimate(0, "get", 1, true),
        rejected_call(1, "check"),
        call_with_estimate(2, "get", 1, true),
        rejected_call(3, "nobody"),
    ];
    let tools = sample_tools(vec![stopping]);
    let plan = plan(&checked, &tools);
    assert_eq!(batch_positions(&plan), [vec![0]]);
    let reasons: Vec<_> = plan.rejected.iter().map(RejectedCall::reason).collect();
    assert_eq!(reasons, ["unknown_tool", "not_executed", "unknown_tool"]);
    assert_snapshot!(plan.rejected[1].details()[0].message, @"the preceding check call is rejected, and check has `on_failure: stop`");
}

/// A request with an environment variable in its header.
fn http_call(position: usize) -> CheckedCall {
    let text = |text: &str| PartialTemplate(vec![Segment::Text(text.to_owned())]);
    let backing = HttpBacking {
        method: HttpMethod::Post,
        url: Template::default(),
        allowed_hosts: None,
        query: Vec::new(),
        headers: Vec::new(),
        body: RequestBody::Input,
        success_status: Vec::new(),
        select: None,
        max_redirects: 0,
        proxy: None,
    };
    let tool = Tool {
        backing: Some(Backing::Http(backing)),
        ..sample_tool("get_rate")
    };
    let mut checked = accepted_call(position, tool, true, "{}");
    if let Verdict::Accepted(accepted) = &mut checked.verdict {
        let token = Segment::Env {
            name: "RATES_TOKEN".to_owned(),
            default: None,
        };
        let bearer = Segment::Text("Bearer ".to_owned());
        let input = Input::parse("{\n \"n\": 1.00}").unwrap();
        accepted.invocation = Some(Invocation::Http(Box::new(HttpInvocation {
            url: text("http://127.0.0.1:8080/rates/USD"),
            query: vec![("to".to_owned(), text("EUR"))],
            headers: vec![(
                "authorization".to_owned(),
                PartialTemplate(vec![bearer, token]),
            )],
            body: Some(PartialJson::Raw(input.share())),
        })));
    }
    checked
}

/// Digits are kept verbatim, variables appear by name, and secrets don't appear.
#[test]
fn plan_json_keeps_digits_and_hides_secrets() {
    let read = call_with_estimate(0, "read_file", 4, true);
    let checked = [
        with_program(read, &["cat", "--", "READ s3cr3t-value"]),
        http_call(1),
        call_with_estimate(2, "save", 1, false),
        rejected_call(3, "nobody"),
    ];
    let tools = no_tools();
    let mask = Mask::new(["s3cr3t-value"]);
    assert_snapshot!(json::render_plan_json(&plan(&checked, &tools), &mask), @r#"{"turn":0,"batches":[{"parallel":true,"calls":[{"position":0,"tool_use_id":"toolu_0","tool_name":"read_file","concurrency_safe":true,"decided_by":"rule get_*","timeout_ms":30000,"estimate_ms":4000,"runs":{"command":["cat","--","READ [masked]"]},"effect":"write","input":{},"approve":false},{"position":1,"tool_use_id":"toolu_1","tool_name":"get_rate","concurrency_safe":true,"decided_by":"rule get_*","timeout_ms":30000,"estimate_ms":null,"runs":{"http":{"method":"POST","url":"http://127.0.0.1:8080/rates/USD","query":{"to":"EUR"},"headers":{"authorization":"Bearer ${RATES_TOKEN}"},"body":{"n":1.00}}},"effect":"write","input":{},"approve":false}]},{"parallel":false,"calls":[{"position":2,"tool_use_id":"toolu_2","tool_name":"save","concurrency_safe":false,"decided_by":"rule save_*","timeout_ms":30000,"estimate_ms":1000,"runs":null,"effect":"write","input":{},"approve":false}]}],"rejected":[{"position":3,"tool_use_id":"toolu_3","tool_name":"nobody","reason":"unknown_tool","details":[{"path":"","message":"no tool has this name; did you mean `read_file`?"}]}],"estimate":{"serial_ms":5000,"planned_ms":5000,"unknown":1}}"#);
    assert_snapshot!(json::render_plan_json(&plan(&[], &tools), &mask), @r#"{"turn":0,"batches":[],"rejected":[],"estimate":{"serial_ms":0,"planned_ms":0,"unknown":0}}"#);
}

#[test]
fn plan_text_draws_a_timeline() {
    let checked = [
        with_program(
            call_with_estimate(0, "invoke_case_analyst", 2, true),
            &["cat", "a b\x1b[2J"],
        ),
        with_program(
            call_with_estimate(1, "读取文件", 4, true),
            &["cat", "--", "README.md"],
        ),
        rejected_call(2, "red\x1b[31m_file"),
        call_with_estimate(3, "save_user_memory", 1, false),
        http_call(4),
    ];
    let tools = no_tools();
    let plan = plan(&checked, &tools);
    let style = |width| PlanStyle {
        width,
        color: false,
        is_unicode: true,
        detail: PlanDetail::OneLine,
    };
    let mask = Mask::default();
    assert_snapshot!(text::render_plan_text(&plan, style(80), &mask), @r#"
    turn 0: 5 calls, 3 batches, 1 rejected

      batch 0: 2 in parallel (by rule get_*)
        0  invoke_case_analyst  changes  ━━━━━━━━━━━━━                           2s
           cat $'a b\x1b[2J'
        1  读取文件             changes  ━━━━━━━━━━━━━━━━━━━━━━━━━━              4s
           cat -- README.md

      batch 1: alone (by rule save_*), after all calls before it
        3  save_user_memory     changes                            ━━━━━━━       1s
           no backing

      batch 2: 1 call (parallel by rule get_*), after call 3, which runs alone
        4  get_rate             changes                                  ?  unknown
           POST http://127.0.0.1:8080/rates/USD?to=EUR authorization: "Bearer ${RA…

      rejected
        2  red\x1b[31m_file  unknown tool
           no tool has this name; did you mean `read_file`?

    estimated at least 5s, at least 7s if run one after another; unknown for 1
    call: get_rate
    shortened; `-v` shows all of what runs
    "#);
    assert_snapshot!(text::render_plan_text(&plan, style(40), &mask), @r"
    turn 0: 5 calls, 3 batches, 1 rejected

      batch 0: 2 in parallel
        (by rule get_*)
        0  invoke_case_analyst  changes       2s
           cat $'a b\x1b[2J'
        1  读取文件             changes       4s
           cat -- README.md

      batch 1: alone (by rule save_*),
        after all calls before it
        3  save_user_memory     changes       1s
           no backing

      batch 2: 1 call
        (parallel by rule get_*),
        after call 3, which runs alone
        4  get_rate             changes  unknown
           POST http://127.0.0.1:8080/rate…

      rejected
        2  red\x1b[31m_file  unknown tool
           no tool has this name; did you
           mean `read_file`?

    estimated at least 5s, at least 7s if
    run one after another; unknown for 1
    call: get_rate
    shortened; `-v` shows all of what runs
    ");
    for width in (0..200).chain([usize::MAX]) {
        text::render_plan_text(&plan, style(width), &mask);
    }
    let colored = PlanStyle {
        color: true,
        ..style(80)
    };
    assert!(text::render_plan_text(&plan, colored, &mask).contains("\x1b[36m"));
}

#[test]
fn plan_text_has_no_bars_without_estimates() {
    let tools = no_tools();
    let style = PlanStyle {
        width: 80,
        color: false,
        is_unicode: true,
        detail: PlanDetail::OneLine,
    };
    let checked = [accepted_call(0, sample_tool("date"), false, "{}")];
    let render = |checked| text::render_plan_text(&plan(checked, &tools), style, &Mask::default());
    assert_snapshot!(render(&[]), @"turn 0: no calls");
    assert_snapshot!(render(&checked), @r"
    turn 0: 1 call, 1 batch

      batch 0: alone (by rule save_*)
        0  date  changes
           no backing

    duration unknown: no tool has an `estimate`
    ");
}

/// A script that needs an approval is shown whole; `-v` shows all of them whole.
#[test]
fn scripts_are_folded_unless_they_need_an_approval() {
    let script = "set -e\nrm -rf build\n";
    let shell = |position| {
        let call = call_with_estimate(position, "shell", 1, false);
        with_program(call, &["sh", "-c", script])
    };
    let mut checked = [shell(0), shell(1)];
    if let Verdict::Accepted(accepted) = &mut checked[1].verdict {
        accepted.needs_approval = true;
    }
    let tools = no_tools();
    let plan = plan(&checked, &tools);
    let style = |detail| PlanStyle {
        width: 80,
        color: false,
        is_unicode: false,
        detail,
    };
    let whole = "sh -c $'set -e\\nrm -rf build\\n'";
    let folded = text::render_plan_text(&plan, style(PlanDetail::FoldedScripts), &Mask::default());
    assert_snapshot!(folded, @r"
    turn 0: 2 calls, 2 batches

      batch 0: alone (by rule save_*)
        0  shell  changes  ==================                    1s
           sh -c 'set -e'~

      batch 1: alone (by rule save_*), after all calls before it
        1  shell  changes                    ==================  1s  needs approval
           sh -c $'set -e\nrm -rf build\n'

    estimated 2s
    needs approval: shell toolu_1
    shortened; `-v` shows all of what runs
    ");
    let verbose = text::render_plan_text(&plan, style(PlanDetail::Whole), &Mask::default());
    assert_eq!(verbose.matches(whole).count(), 2, "{verbose}");
    assert!(!verbose.contains("shortened"), "{verbose}");
}

/// Toolq's own lines break between words, and have only characters that the terminal can show.
#[test]
fn a_narrow_ascii_terminal_gets_short_ascii_lines() {
    let words = serde_json::json!({"text": "one two three ".repeat(9)}).to_string();
    let checked = [
        with_program(
            accepted_call(0, sample_tool("look"), true, &words),
            &["echo", &words],
        ),
        call_with_estimate(1, "find", 5, true),
        rejected_call(2, "nobody_at_home"),
    ];
    let tools = no_tools();
    let style = PlanStyle {
        width: 40,
        color: false,
        is_unicode: false,
        detail: PlanDetail::OneLine,
    };
    let text = text::render_plan_text(&plan(&checked, &tools), style, &Mask::default());
    assert_snapshot!(text, @r#"
    turn 0: 3 calls, 1 batch, 1 rejected

      batch 0: 2 in parallel
        (by rule get_*)
        0  look  changes  {"text"~  unknown
           echo '{"text":"one two three on~
        1  find  changes                 5s
           no backing

      rejected
        2  nobody_at_home  unknown tool
           no tool has this name; did you
           mean `read_file`?

    estimated at least 5s; unknown for 1
    call: look
    shortened; `-v` shows all of what runs
    "#);
    assert!(text.is_ascii());
    assert!(text.lines().all(|line| line.len() < 40));
}

#[test]
fn calls_are_planned_in_linear_time() {
    let tools = no_tools();
    assert_linear_time("a plan", 3_000, |count| {
        let checked: Vec<_> = (0..count)
            .map(|position| match position % 3 {
                0 => rejected_call(position, "nobody"),
                other => call_with_estimate(position, "get", 1, other == 1),
            })
            .collect();
        let plan = plan(&checked, &tools);
        assert_eq!(plan.call_count(), count);
        assert_eq!(plan.estimate.serial.as_secs(), count as u64 / 3 * 2);
        let line = json::render_plan_json(&plan, &Mask::default());
        assert_eq!(line.matches("tool_use_id").count(), count);
    });
}

/// The same rule from the view of two neighbors: they share a batch if both are safe.
fn oracle(calls: &[Option<bool>]) -> Vec<Vec<usize>> {
    let running: Vec<(usize, bool)> = calls
        .iter()
        .enumerate()
        .filter_map(|(position, safe)| Some((position, (*safe)?)))
        .collect();
    running
        .chunk_by(|(_, before), (_, after)| *before && *after)
        .map(|batch| batch.iter().map(|(position, _)| *position).collect())
        .collect()
}

proptest! {
    #[test]
    fn batches_match_the_oracle(
        calls in prop::collection::vec(prop::option::weighted(0.8, any::<bool>()), 0..40)
    ) {
        let checked: Vec<_> = calls
            .iter()
            .enumerate()
            .map(|(position, safe)| match safe {
                Some(safe) => call_with_estimate(position, "tool", 1, *safe),
                None => rejected_call(position, "nobody"),
            })
            .collect();
        let tools = no_tools();
        let plan = plan(&checked, &tools);
        prop_assert_eq!(batch_positions(&plan), oracle(&calls));
        prop_assert!(plan.estimate.planned <= plan.estimate.serial);
        let longest = plan.batches.iter().map(|batch| batch.duration).sum::<Duration>();
        prop_assert_eq!(longest, plan.estimate.planned);
    }
}

/// Every estimate is known, and an empty part of a request isn't shown.
#[test]
fn a_plan_shows_nothing_that_is_not_there() {
    let tools = no_tools();
    let style = PlanStyle {
        width: 80,
        color: false,
        is_unicode: true,
        detail: PlanDetail::OneLine,
    };
    let checked = [
        call_with_estimate(0, "get", 1, true),
        call_with_estimate(1, "get", 2, true),
    ];
    let text = text::render_plan_text(&plan(&checked, &tools), style, &Mask::default());
    assert!(
        text.ends_with("\n\nestimated 2s, 3s if run one after another\n"),
        "{text}"
    );
    let mut request = http_call(0);
    if let Verdict::Accepted(accepted) = &mut request.verdict
        && let Some(Invocation::Http(request)) = &mut accepted.invocation
    {
        (request.query, request.headers) = (Vec::new(), Vec::new());
    }
    let line = json::render_plan_json(&plan(&[request], &tools), &Mask::default());
    let runs = r#""runs":{"http":{"method":"POST","url":"http://127.0.0.1:8080/rates/USD","body":{"n":1.00}}}"#;
    assert!(line.contains(runs), "{line}");
}

/// On the scale of the other calls, its bar would begin in the last column and have no length.
#[test]
fn a_call_too_short_for_the_scale_is_drawn_in_the_last_column() {
    let mut short = call_with_estimate(1, "save", 1, false);
    if let Verdict::Accepted(accepted) = &mut short.verdict {
        let tool = Tool {
            estimate: Some(Duration::from_millis(1)),
            ..(*accepted.tool).clone()
        };
        accepted.tool = tool.into();
    }
    let checked = [call_with_estimate(0, "save", 1_000, false), short];
    let tools = no_tools();
    let style = PlanStyle {
        width: 80,
        color: false,
        is_unicode: true,
        detail: PlanDetail::OneLine,
    };
    let drawn = text::render_plan_text(&plan(&checked, &tools), style, &Mask::default());
    let bars: Vec<&str> = drawn.lines().filter(|line| line.contains('━')).collect();
    let end = |bar: &str| bar.rfind('━').map(|at| bar[..at].chars().count());
    assert_eq!(bars.len(), 2, "{drawn}");
    assert_eq!(bars[1].matches('━').count(), 1, "{drawn}");
    assert_eq!(end(bars[0]), end(bars[1]), "{drawn}");
}
