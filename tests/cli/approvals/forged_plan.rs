//! Plans that were edited, and plans that are too old: they approve nothing.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::plan::{assert_refused, plan_then, planned};
use super::{four_calls, sandbox};
use crate::support::CliOutput;

/// However the file is changed, it approves only what it was made for.
#[test]
fn a_plan_that_was_changed_approves_nothing() {
    for (change, words) in [
        (
            "sed -i 's/\"amount\":5/\"amount\":6/' plan.json",
            "was changed after it was written",
        ),
        (
            "sed -i 's/valid_until\": \"20/valid_until\": \"30/' plan.json",
            "was changed after it was written",
        ),
        (
            "sed -i 's/\"id\": \"./\"id\": \"/' plan.json",
            "was changed after it was written",
        ),
        (
            r#"jq '.id = "x" | .plan.more = 1' plan.json > p && mv p plan.json"#,
            "isn't a plan",
        ),
        ("echo '{}' > plan.json", "isn't a plan"),
        (": > plan.json", "isn't a plan"),
        ("rm plan.json", "can't be read"),
        ("rm plan.json; mkdir plan.json", "can't be read"),
    ] {
        assert_refused(&planned(change), words);
    }
    let cut = r#"for bytes in 1 100 500 1000 2000 3000; do head -c $bytes plan.json > cut.json; "$TOOLQ" run -q --plan cut.json calls.json; test $? = 2 || exit 9; done; rm plan.json"#;
    assert_refused(&planned(cut), "can't be read");
}

/// Gives an edited plan the id that fits.
fn forge(plan: &str, edit: impl FnOnce(&mut Value)) -> String {
    let mut file: Value = serde_json::from_str(plan).unwrap();
    edit(&mut file["plan"]);
    let mut id = String::new();
    for byte in Sha256::digest(file["plan"].to_string()) {
        write!(id, "{byte:02x}").unwrap();
    }
    file["id"] = json!(id[..40]);
    file.to_string()
}

/// Writes a plan of `calls.json`, edits it, gives it the id that fits, and applies it.
fn apply_forged(edit: impl FnOnce(&mut Value)) -> CliOutput {
    let sandbox = sandbox().file("calls.json", four_calls());
    let plan = sandbox.path().join("plan.json");
    let mut write = sandbox.command(&["plan", "-q", "--out", "plan.json", "calls.json"]);
    assert!(write.output().unwrap().status.success());
    let forged = forge(&fs::read_to_string(&plan).unwrap(), edit);
    fs::write(&plan, forged).unwrap();
    let run = [
        "run",
        "--log",
        "log.jsonl",
        "--plan",
        "plan.json",
        "calls.json",
    ];
    sandbox.run(&run)
}

/// What people read in a plan is what it approves, even if its id was recomputed after a change.
#[test]
fn a_plan_cannot_show_other_calls_than_it_approves() {
    type Edit = fn(&mut Value);
    let edits: [(Edit, &str); 3] = [
        (
            |plan| plan["turns"][0]["batches"][1]["calls"][0]["input"]["amount"] = json!(1),
            "what it shows for reading isn't what would run",
        ),
        (
            |plan| plan["calls"][1]["input"] = json!("00"),
            "has another input",
        ),
        (
            |plan| plan["toolq"] = json!("0.0.1"),
            "it was made by toolq 0.0.1",
        ),
    ];
    for (edit, words) in edits {
        assert_refused(&apply_forged(edit), words);
    }
}

/// A forged plan with its own id is a plan like any other: this shows that `forge` finds the right id.
#[test]
fn a_plan_with_a_fitting_id_is_a_plan() {
    let output = apply_forged(|plan| {
        plan["valid_until"] = json!("2999-01-01T00:00:00Z");
    });
    assert_eq!(output.code, 0, "{}", output.stderr);
}

/// What was reviewed long ago may not hold any more.
#[test]
fn an_old_plan_approves_nothing_and_one_from_the_future_neither() {
    let output = plan_then(
        sandbox().file("calls.json", four_calls()),
        r#""$TOOLQ" plan -q --valid 1ms --out plan.json calls.json > plan.txt"#,
        "--log log.jsonl --plan plan.json calls.json",
    );
    assert_refused(&output, "was valid until");
    let output = apply_forged(|plan| {
        plan["created"] = json!("2998-01-01T00:00:00Z");
        plan["valid_until"] = json!("2999-01-01T00:00:00Z");
    });
    assert_refused(&output, "in the future");
}
