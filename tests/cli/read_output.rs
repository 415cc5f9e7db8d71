//! The built-in tool `read_output`: a model reads on where an output was cut.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout};

use crate::support::{CliOutput, CliSandbox, model_response};
use serde_json::{Value, json};

const TOOLS: &str = r"
version: 1
secrets: [TOKEN]
builtins: [read_output]
tools:
  dump:
    effect: read
    max_output: 100
    input_schema: {type: object}
    command: [cat, text]
  small:
    effect: read
    input_schema: {type: object}
    command: [echo, little]
";

/// A call with an id of its own.
fn turn(id: &str, name: &str, input: &Value) -> String {
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
    json!({"role": "assistant", "content": [block]}).to_string()
}

fn lines_of_text() -> String {
    let lines = (0..900).map(|number| format!("line {number} é中😀\n"));
    lines.collect()
}

/// A conversation with `run --follow`.
struct Conversation {
    toolq: Child,
    answers: BufReader<ChildStdout>,
}

impl Conversation {
    fn begin(sandbox: &CliSandbox, arguments: &[&str]) -> Self {
        let arguments = [&["run", "--follow"], arguments].concat();
        let mut toolq = sandbox.command(&arguments).spawn().unwrap();
        let answers = BufReader::new(toolq.stdout.take().unwrap());
        Self { toolq, answers }
    }

    fn ask(&mut self, id: &str, name: &str, input: &Value) -> String {
        let stdin = self.toolq.stdin.as_mut().unwrap();
        writeln!(stdin, "{}", turn(id, name, input)).unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        answer["content"][0]["content"].as_str().unwrap().to_owned()
    }

    fn end(mut self) {
        drop(self.toolq.stdin.take());
        self.toolq.wait().unwrap();
    }
}

/// Follows the first lines of results from page to page, and returns what the pages have.
fn read_all(conversation: &mut Conversation, input: &Value) -> String {
    let (mut whole, mut offset) = (String::new(), 0);
    loop {
        let mut input = input.clone();
        input["offset"] = json!(offset);
        let page = conversation.ask(&format!("page_{offset}"), "read_output", &input);
        let (note, text) = page.split_once('\n').unwrap();
        whole += text;
        let Some((_, next)) = note.split_once("continue with \"offset\": ") else {
            assert!(note.ends_with("the end]"), "{note}");
            return whole;
        };
        offset = next.trim_end_matches(']').parse().unwrap();
    }
}

#[test]
fn a_model_reads_page_by_page_what_was_cut_and_nothing_is_missing() {
    let text = lines_of_text();
    let sandbox = CliSandbox::new().tools(TOOLS).file("text", &text);
    let mut conversation = Conversation::begin(&sandbox, &["--log", "log.jsonl"]);
    let cut = conversation.ask("toolu_a", "dump", &json!({}));
    assert!(
        cut.contains(r#"; read_output {"id":"toolu_a"} reads it …]"#),
        "{cut}"
    );
    // Each size cuts in the middle of characters.
    for limit in [997, 4_001, 60_000] {
        let input = json!({"id": "toolu_a", "limit": limit});
        assert_eq!(read_all(&mut conversation, &input), text, "{limit}");
    }
    let whole = read_all(&mut conversation, &json!({"id": "toolu_a"}));
    assert_eq!(whole, text);
    conversation.end();
    let script = r#""$TOOLQ" log verify log.jsonl > /dev/null && jq -r 'select(.type == "tool_start") | .metadata.effect' log.jsonl | sort | uniq -c"#;
    let verified = sandbox.run_shell(script);
    assert!(
        verified.stdout.trim().ends_with("read"),
        "{}",
        verified.stdout
    );
}

#[test]
fn a_pattern_finds_lines_with_their_offsets() {
    let text = lines_of_text();
    let sandbox = CliSandbox::new().tools(TOOLS).file("text", &text);
    let mut conversation = Conversation::begin(&sandbox, &[]);
    conversation.ask("toolu_a", "dump", &json!({}));
    let mut search = |id: &str, pattern: &str, more: Value| {
        let mut input = more;
        input["id"] = json!("toolu_a");
        input["pattern"] = json!(pattern);
        conversation.ask(id, "read_output", &input)
    };
    let found = search("s1", "^line (7|800) ", json!({}));
    let place = |line: &str| text.find(line).unwrap();
    let expected = format!(
        "[2 matches in bytes 0 to {} of {0}; the end]\n{}: line 7 é中😀\n{}: line 800 é中😀",
        text.len(),
        place("line 7 "),
        place("line 800 ")
    );
    assert_eq!(found, expected);
    let none = search("s2", "line 7 ", json!({"offset": 200}));
    assert!(none.starts_with("[no match in bytes 200 to "), "{none}");
    let first = search("s3", "line", json!({"limit": 30}));
    let next = place("line 1 ");
    assert!(
        first.contains(&format!("\"offset\": {next}]\n0: line 0")),
        "{first}"
    );
    let backtracking = search("s4", r"(a+)+\1", json!({}));
    assert!(
        backtracking.contains("/pattern: isn't a regular expression"),
        "{backtracking}"
    );
    conversation.end();
}

/// Errors are written for the model: which ids there are, and what to do.
#[test]
fn what_cannot_be_read_is_explained() {
    let sandbox = CliSandbox::new().tools(TOOLS).file("text", lines_of_text());
    let secret = sandbox.path().join("secret");
    fs::write(&secret, "out of reach").unwrap();
    let mut conversation = Conversation::begin(&sandbox, &[]);
    let read = |conversation: &mut Conversation, id: &str, input: Value| {
        conversation.ask(id, "read_output", &input)
    };
    let nothing = read(&mut conversation, "r0", json!({"id": "toolu_a"}));
    assert!(
        nothing.contains("Hint: no output was cut in this conversation"),
        "{nothing}"
    );
    conversation.ask("toolu_a", "dump", &json!({}));
    conversation.ask("toolu_b", "small", &json!({}));
    let path = secret.to_str().unwrap();
    for (id, input, expected) in [
        (
            "r1",
            json!({"id": "toolu_b"}),
            "the output of \"toolu_b\" wasn't cut",
        ),
        (
            "r2",
            json!({"id": "toolu_c"}),
            "Outputs that were cut: \"toolu_a\"\nHint: use one of these ids.",
        ),
        ("r3", json!({"id": path}), "has the id"),
        ("r4", json!({"id": "../../secret"}), "has the id"),
        (
            "r5",
            json!({"id": "toolu_a", "offset": 1_000_000}),
            "There is nothing at byte 1000000: the output has ",
        ),
        (
            "r6",
            json!({"id": "toolu_a", "limit": 1_000_000}),
            "- /limit: ",
        ),
        ("r7", json!({"id": "toolu_a", "path": path}), "- : "),
    ] {
        let text = read(&mut conversation, id, input);
        let text = text.replacen("The output of", "the output of", 1);
        assert!(
            text.contains(expected) || expected == "- : " && text.contains("path"),
            "{text}"
        );
        assert!(!text.contains("out of reach"), "{text}");
    }
    // What was kept is gone, or something else is in its place.
    let log = fs::read_dir(sandbox.path().join("state/toolq/sessions"));
    let dirs = log.into_iter().flatten().filter_map(|entry| {
        let path = entry.unwrap().path();
        path.is_dir().then_some(path)
    });
    let kept: Vec<_> = dirs
        .flat_map(|dir| fs::read_dir(dir).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    assert_eq!(kept.len(), 1);
    fs::remove_file(&kept[0]).unwrap();
    std::os::unix::fs::symlink(&secret, &kept[0]).unwrap();
    let gone = read(&mut conversation, "r8", json!({"id": "toolu_a"}));
    assert!(gone.contains("can't be read any more"), "{gone}");
    conversation.end();
}

#[test]
fn without_a_log_the_text_and_the_error_say_that_nothing_was_kept() {
    let sandbox = CliSandbox::new().tools(TOOLS).file("text", lines_of_text());
    let mut conversation = Conversation::begin(&sandbox, &["--no-log"]);
    let cut = conversation.ask("toolu_a", "dump", &json!({}));
    assert!(
        cut.contains("the whole output was not kept …]") && !cut.contains("read_output"),
        "{cut}"
    );
    let text = conversation.ask("r", "read_output", &json!({"id": "toolu_a"}));
    assert!(text.contains("the rest of it wasn't kept"), "{text}");
    conversation.end();
}

/// Only the beginning of a very long output is kept, and the last page says so.
#[test]
fn the_last_page_of_what_was_kept_says_that_there_was_more() {
    let tools = TOOLS.replace("max_output: 100", "max_output: 100\n    max_saved: 1000");
    let sandbox = CliSandbox::new()
        .tools(&tools)
        .file("text", lines_of_text());
    let mut conversation = Conversation::begin(&sandbox, &[]);
    conversation.ask("toolu_a", "dump", &json!({}));
    let page = conversation.ask("r", "read_output", &json!({"id": "toolu_a"}));
    assert!(
        page.starts_with("[bytes 0 to 1000 of 1000; the end of what was kept]\n"),
        "{page}"
    );
    conversation.end();
}

fn texts(output: &CliOutput) -> Vec<String> {
    let lines = output.lines();
    let texts = lines
        .iter()
        .map(|line| line["content"][0]["content"].as_str().unwrap().to_owned());
    texts.collect()
}

/// The log knows the outputs of the calls before, and a file that it names elsewhere isn't opened.
#[test]
fn a_resumed_run_reads_what_an_earlier_one_kept() {
    let text = lines_of_text();
    let input = [
        turn("toolu_a", "dump", &json!({})),
        turn(
            "r",
            "read_output",
            &json!({"id": "toolu_a", "limit": 50_000}),
        ),
    ];
    let sandbox = CliSandbox::new()
        .tools(TOOLS)
        .file("text", &text)
        .file("input.jsonl", input.join("\n"));
    let run = |arguments: &[&str]| {
        let arguments = [&["run", "--log", "log.jsonl", "input.jsonl"], arguments].concat();
        sandbox.command(&arguments).output().unwrap()
    };
    let first = run(&["--max-calls", "1"]);
    assert_eq!(first.status.code(), Some(3), "{first:?}");
    let resumed = run(&[]);
    let stdout = String::from_utf8(resumed.stdout).unwrap();
    let last: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    let page = last["content"][0]["content"].as_str().unwrap();
    assert_eq!(page.split_once('\n').unwrap().1, text);
}

/// Each input is a conversation.
#[test]
fn the_outputs_of_another_input_are_unknown() {
    let read = turn("r", "read_output", &json!({"id": "toolu_a"}));
    let output = CliSandbox::new()
        .tools(TOOLS)
        .file("text", lines_of_text())
        .file("one.json", turn("toolu_a", "dump", &json!({})))
        .file("two.json", &read)
        .run(&["run", "one.json", "two.json"]);
    let texts = texts(&output);
    assert!(texts[0].contains("reads it"), "{texts:?}");
    assert!(
        texts[1].contains("has the id \"toolu_a\"") && !texts[1].contains("Outputs that were cut"),
        "{texts:?}"
    );
}

#[test]
fn pages_are_masked() {
    let text = "s3cr3t-canary ".repeat(500);
    let sandbox = CliSandbox::new()
        .tools(TOOLS)
        .file("text", text)
        .env("TOKEN", "s3cr3t-canary");
    let mut conversation = Conversation::begin(&sandbox, &[]);
    conversation.ask("toolu_a", "dump", &json!({}));
    let whole = read_all(&mut conversation, &json!({"id": "toolu_a", "limit": 7}));
    assert_eq!(whole, "[masked] ".repeat(500));
    conversation.end();
}

#[test]
fn it_is_declared_planned_and_overridden_like_other_built_in_tools() {
    let script = r#"
        "$TOOLQ" tools --format anthropic | jq -c '.[] | select(.name == "read_output") | .input_schema.properties | [keys, .limit.maximum]'
        "$TOOLQ" plan turn.json | grep -o 'output of .*'
        "$TOOLQ" plan --format json turn.json | jq -c '.batches[0] | [.parallel, (.calls[] | [.decided_by, .effect, .runs])]'
    "#;
    let calls = [
        ("read_output", json!({"id": "a b", "offset": 1e1})),
        ("read_output", json!({"id": "a", "pattern": "x|y"})),
    ];
    let tools = TOOLS.replace("tools:\n", "defaults: {max_output: 4KiB}\ntools:\n");
    let sandbox = CliSandbox::new()
        .tools(&tools)
        .file("turn.json", model_response(&calls));
    let output = sandbox.run_shell(script);
    let lines: Vec<&str> = output.stdout.lines().collect();
    let expected = [
        r#"[["id","limit","offset","pattern"],4096]"#,
        "output of 'a b' from byte 10",
        "output of a that matches 'x|y'",
        r#"[true,["effect","read",{"builtin":"read_output"}],["effect","read",{"builtin":"read_output"}]]"#,
    ];
    assert_eq!(lines, expected, "{}", output.stderr);
    let own =
        "  read_output: {effect: read, input_schema: {type: object}, command: [echo, mine]}\n";
    let sandbox = CliSandbox::new()
        .tools(&format!("{TOOLS}{own}"))
        .file("text", lines_of_text());
    let calls = [("dump", json!({})), ("read_output", json!({}))];
    let output = sandbox.stdin(model_response(&calls)).run(&["run"]);
    let texts = output.result_texts();
    assert!(!texts[0].0.contains("reads it"), "{texts:?}");
    assert_eq!(texts[1].0, "mine");
}

/// A replay keeps no outputs, so such calls are served from the recording.
#[test]
fn a_replay_takes_pages_from_the_recording() {
    let script = r#"
        printf '%s\n' "$ONE" "$TWO" | "$TOOLQ" run -q --log log.jsonl --follow > /dev/null
        "$TOOLQ" replay --json report.json log.jsonl 2> /dev/null; echo "exit $?"
        jq -c '[.calls, .executed, .served, .matched, .differ]' report.json
    "#;
    let output = CliSandbox::new()
        .tools(TOOLS)
        .file("text", lines_of_text())
        .env("ONE", &turn("toolu_a", "small", &json!({})))
        .env("TWO", &turn("r", "read_output", &json!({"id": "toolu_a"})))
        .run_shell(script);
    assert_eq!(output.stdout, "exit 0\n[2,1,1,2,[]]\n", "{}", output.stderr);
}
