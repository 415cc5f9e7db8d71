use std::path::Path;

use insta::assert_snapshot;
use unicode_width::UnicodeWidthStr as _;

use super::*;

use toolq_core::tools_file::parse_tools_file;

fn render_tools_file(text: &str) -> String {
    let loaded = parse_tools_file(text, Path::new("/srv"), Path::new("/srv"));
    render(
        &loaded.problems,
        "tools.yaml",
        text,
        &Mask::default(),
        style(false, 100),
    )
}

fn style(color: bool, width: usize) -> DiagnosticStyle {
    DiagnosticStyle {
        color,
        is_unicode: true,
        width,
    }
}

#[test]
fn the_name_of_the_file_cannot_steer_a_terminal() {
    let text = "version: 1\ntools: {a: {sandbox: {network: [99999]}}}\n";
    let loaded = parse_tools_file(text, Path::new("/srv"), Path::new("/srv"));
    let (mask, style) = (Mask::default(), style(false, 100));
    let rendered = render(&loaded.problems, "e\x1b[31m\n.yaml", text, &mask, style);
    assert!(rendered.contains(r"[e\x1b[31m\n.yaml:2:"), "{rendered}");
    assert!(!rendered.contains('\x1b'), "{rendered}");
    assert!(
        rendered.contains("a whole number from 0 to 65535"),
        "{rendered}"
    );
}

#[test]
fn an_ascii_locale_gets_ascii() {
    let text = "version: 1\ntools: {a: {timout: 5s}}\n";
    let loaded = parse_tools_file(text, Path::new("/srv"), Path::new("/srv"));
    let ascii = DiagnosticStyle {
        is_unicode: false,
        ..style(false, 100)
    };
    let rendered = render(
        &loaded.problems,
        "tools.yaml",
        text,
        &Mask::default(),
        ascii,
    );
    assert!(
        rendered.is_ascii() && rendered.contains("timout"),
        "{rendered}"
    );
    assert!(!rendered.contains('\x1b'), "{rendered}");
}

#[test]
fn all_problems_at_once_in_the_order_of_the_file() {
    let text = r#"concurrency: 0
tools:
  read_file:
    input_schema:
      type: object
      properties: {path: {type: strin}, 名: {type: string, pattern: "(?=x)"}}
      required: [path]
    timout: 5s
    timeout: 5
    command: [cat, "{pat}", 12]
  run:
    input_schema: {type: object, properties: {script: {type: string}}, required: [script]}
    command: [sh, -c, "cd /tmp; {script}"]
"#;
    assert_snapshot!(render_tools_file(text), @r##"
     × 0 calls can't run at once
      ╭─[tools.yaml:1:14]
    1 │ concurrency: 0
      ·              ┬
      ·              ╰── 1 to 10000
      ╰────
     help: 1 turns parallelism off

     ⚠ some APIs reject the property `名` of the input of `read_file`
      ╭─[tools.yaml:3:3]
    3 │   read_file:
      ·   ─────────
      ╰────
     help: up to 64 letters, digits, `_`, `-` and `.` are accepted everywhere

     × `strin` is not a JSON Schema type
      ╭─[tools.yaml:6:33]
    6 │       properties: {path: {type: strin}, 名: {type: string, pattern: "(?=x)"}}
      ·                                 ──┬──
      ·                                   ╰── in this schema
      ╰────
     help: did you mean `string`?

     × the pattern uses look-around, which needs a backtracking engine
      ╭─[tools.yaml:6:68]
    6 │       properties: {path: {type: strin}, 名: {type: string, pattern: "(?=x)"}}
      ·                                                                     ───┬───
      ·                                                                        ╰── in this schema
      ╰────
     help: patterns are matched in linear time, without look-around and backreferences; check the
           rest in the tool itself

     × unknown key `timout`
      ╭─[tools.yaml:8:5]
    8 │     timout: 5s
      ·     ───┬──
      ·        ╰── not a key of `read_file`
      ╰────
     help: did you mean `timeout`?

     × a duration needs a unit
      ╭─[tools.yaml:9:14]
    9 │     timeout: 5
      ·              ─
      ╰────
     help: write `5s` for seconds or `5ms` for milliseconds

     × the input has no `pat`
       ╭─[tools.yaml:10:21]
    10 │     command: [cat, "{pat}", 12]
       ·                     ──┬──
       ·                       ╰── not in `input_schema`
       ╰────
     help: did you mean `path`? Or write `{{pat}` if you mean the text `{pat}`

     × an element of `command` must be text
       ╭─[tools.yaml:10:29]
    10 │     command: [cat, "{pat}", 12]
       ·                             ─┬
       ·                              ╰── this is a number
       ╰────
     help: put it in quotes to make it text

     × an input value can't be part of code that is run
       ╭─[tools.yaml:13:33]
    13 │     command: [sh, -c, "cd /tmp; {script}"]
       ·                                 ────┬───
       ·                                     ╰── an input value
       ╰────
     help: pass it separately: as `"$1"` in `[sh, -c, 'grep -e "$1" notes', --, "{x}"]`, or through
           `env` or `stdin`
    "##);
}

#[test]
fn invalid_yaml_is_shown_with_its_location() {
    assert_snapshot!(render_tools_file("tools:\n  a: {b: [1\n"), @r##"
     × unclosed bracket '['
      ╭─[tools.yaml:2:10]
    2 │   a: {b: [1
      ·          ▲
      ╰────
    "##);
}

#[test]
fn a_multiline_span_is_cut_at_its_first_line() {
    let text = "a: |\n  one\n  two\n";
    let span = Span { start: 7, len: 9 };
    let problem = FileProblem::warning(span, "two lines", "this").with_hint("none");
    assert_snapshot!(render(&[problem], "f", text, &Mask::default(), style(false, 80)), @r##"
     ⚠ two lines
      ╭─[f:2:3]
    2 │   one
      ·   ─┬─
      ·    ╰── this
      ╰────
     help: none
    "##);
}

#[test]
fn lines_may_end_in_crlf() {
    let text = "a: 1\r\nb: 2\r\nc: 3\r\n";
    let problem = FileProblem::error(Span { start: 6, len: 1 }, "two", "");
    assert_snapshot!(render(&[problem], "f", text, &Mask::default(), style(false, 80)), @r"
     × two
      ╭─[f:2:1]
    2 │ b: 2
      · ─
      ╰────
    ");
}

#[test]
fn the_message_survives_a_span_outside_the_text() {
    let problem = FileProblem::error(Span { start: 99, len: 3 }, "lost", "");
    assert!(render(&[problem], "f", "a", &Mask::default(), style(false, 80)).contains("lost"));
}

#[test]
fn color_is_the_callers_choice() {
    let problem = FileProblem::error(Span::default(), "red", "");
    let escaped = |color| {
        render(
            std::slice::from_ref(&problem),
            "f",
            "a",
            &Mask::default(),
            style(color, 80),
        )
        .contains('\x1b')
    };
    assert!(escaped(true) && !escaped(false));
}

#[test]
fn a_long_line_is_shown_around_its_problem() {
    let long = format!("n: {{title: {}}}, ", "名".repeat(5_000));
    for place in ["x: {type: strin}, ", ""] {
        let text = format!(
            "tools:\n  a:\n    input_schema: {{type: object, properties: {{{place}{long}y: {{type: strin}}}}}}\n    command: [a]\n"
        );
        let shown = render_tools_file(&text);
        assert!(shown.len() < 4_000 && shown.contains('…'), "{shown}");
        let lines: Vec<&str> = shown.lines().collect();
        let caret = lines.iter().position(|line| line.contains('┬')).unwrap();
        let before = |line: &str, mark: &str| line.split(mark).next().unwrap().width();
        let wrong = before(lines[caret - 1], "strin}");
        assert_eq!(before(lines[caret], "──┬"), wrong, "{shown}");
    }
}

/// A message quotes a key, which may be longer than anybody wants to read.
#[test]
fn a_long_key_is_cut_in_the_message() {
    let key = format!("begin{}end", "k".repeat(5_000));
    for text in [
        format!("? {key}\n: 1\ntools: {{}}\n"),
        format!("{key}: 1\ntools: {{}}\n"),
    ] {
        let shown = render_tools_file(&text);
        assert!(shown.len() < 4_000, "{} bytes:\n{shown}", shown.len());
    }
    let explicit = render_tools_file(&format!("? {key}\n: 1\n"));
    assert!(
        explicit.contains("begin") && explicit.contains("end`"),
        "{explicit}"
    );
}

/// The text of a file, which may come from elsewhere, can't reach the clipboard or change the screen.
#[test]
fn control_characters_of_a_file_are_not_printed() {
    let clipboard =
        "tools:\n  \"\\x1b]52;c;aGk=\\x07\": {input_schema: {type: object}, timout: 1s}\n";
    for (text, shown) in [
        (clipboard, "timout"),
        (
            "tools:\n  \"a\\x1b]52;c;aGk=\\x07\": {}\n",
            r"\x1b]52;c;aGk=\x07",
        ),
        (
            "tools:\n  a: {timout: \u{202e}x\u{9b}2J}\n",
            "timout: ???x??2J",
        ),
        ("tools:\n  a: {\u{1b}[2J: 1}\n", "?[2J"),
    ] {
        let rendered = render_tools_file(text);
        let is_shown = |c: char| c == '\n' || !is_hidden(c);
        assert!(rendered.chars().all(is_shown), "{rendered:?}");
        assert!(rendered.contains(shown), "{rendered}");
    }
}

/// The columns and the caret stay where they are in the file.
#[test]
fn a_secret_in_a_line_is_covered() {
    let text = "a: t0p-s3cret-value, b: tru\n";
    let at = text.find("tru").unwrap();
    let span = Span { start: at, len: 3 };
    let mut problem = FileProblem::error(span, "`t0p-s3cret-value`", "not t0p-s3cret-value");
    problem.hint = Some("no t0p-s3cret-value".to_owned());
    let mask = Mask::new(["t0p-s3cret-value"]);
    let rendered = render(&[problem], "f", text, &mask, style(false, 80));
    assert!(rendered.contains("f:1:25"), "{rendered}");
    assert!(
        rendered.contains("a: [masked]********, b: tru"),
        "{rendered}"
    );
    assert!(!rendered.contains("s3cret"), "{rendered}");
}
