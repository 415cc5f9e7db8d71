//! What has changed between a plan and what would run now.

use std::collections::BTreeSet;

use crate::plan_file::file::{CallEntry, PlanBody};
use toolq_core::json::{JsonText, meaning_digest};

/// Returns each difference in words. Empty if the plan is what would run.
pub fn find_differences(plan: &PlanBody, now: &PlanBody) -> Vec<String> {
    if plan.toolq != now.toolq {
        let (by, this) = (&plan.toolq, &now.toolq);
        return vec![format!("it was made by toolq {by}, and this is {this}")];
    }
    let mut differences = Vec::new();
    if plan.root != now.root {
        differences.push(format!("root is {} and was {}", now.root, plan.root));
    }
    differences.extend(tool_differences(plan, now));
    // Changes of tools change calls, too.
    let explained = !differences.is_empty();
    differences.extend(call_differences(&plan.calls, &now.calls, explained));
    let shown = |body: &PlanBody| -> Vec<_> {
        let turns = body.turns.iter();
        turns
            .map(|turn| meaning_digest(JsonText::new(turn.get())))
            .collect()
    };
    if differences.is_empty() && shown(plan) != shown(now) {
        let message = "what it shows for reading isn't what would run";
        differences.push(message.to_owned());
    }
    differences
}

fn tool_differences(plan: &PlanBody, now: &PlanBody) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, was) in &plan.tools {
        // A tool that is no longer called shows in the calls.
        let Some(is) = now.tools.get(name) else {
            continue;
        };
        let aspects: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
        // Where a command runs is a part of it, so under another root its digest says nothing about the tool.
        let is_about_root = |aspect: &&String| plan.root != now.root && *aspect == "command";
        let changed: Vec<&str> = aspects
            .into_iter()
            .filter(|aspect| was.get(*aspect) != is.get(*aspect) && !is_about_root(aspect))
            .map(String::as_str)
            .collect();
        if !changed.is_empty() {
            let changed = changed.join(", ");
            differences.push(format!("the tool {name} has changed: {changed}"));
        }
    }
    let added = now.tools.keys();
    for name in added.filter(|name| !plan.tools.contains_key(*name)) {
        if !now.calls.iter().any(|call| call.tool_name == *name) {
            differences.push(format!("an agent has the tool {name} now"));
        }
    }
    differences
}

fn call_differences(plan: &[CallEntry], now: &[CallEntry], explained: bool) -> Vec<String> {
    let identity = |call: &CallEntry| (call.tool_use_id.clone(), call.tool_name.clone());
    let sorted = |calls: &[CallEntry]| {
        let mut calls: Vec<_> = calls.iter().map(identity).collect();
        calls.sort();
        calls
    };
    let has_moved = |(was, is): (&CallEntry, &CallEntry)| {
        identity(was) != identity(is) || (was.turn, was.position) != (is.turn, is.position)
    };
    if plan.len() == now.len() && plan.iter().zip(now).any(has_moved) && sorted(plan) == sorted(now)
    {
        return vec!["its calls are in another order".to_owned()];
    }
    let mut differences = Vec::new();
    for (was, is) in plan.iter().zip(now) {
        if has_moved((was, is)) {
            let (was, is) = (name_call(was), name_call(is));
            differences.push(format!("it has {was} where the input has {is}"));
        } else if was.input != is.input {
            differences.push(format!("{} has another input", name_call(is)));
        } else if was.verdict != is.verdict && !explained {
            differences.push(format!("{} would run something else", name_call(is)));
        }
    }
    let more = now.iter().skip(plan.len());
    differences.extend(more.map(|call| format!("it doesn't have {}", name_call(call))));
    let missing = plan.iter().skip(now.len());
    let missing = missing.map(|call| format!("the input doesn't have {}", name_call(call)));
    differences.extend(missing);
    differences
}

/// `the call toolu_2 of pay`.
fn name_call(call: &CallEntry) -> String {
    let CallEntry {
        tool_use_id,
        tool_name,
        ..
    } = call;
    format!("the call {tool_use_id} of {tool_name}")
}
