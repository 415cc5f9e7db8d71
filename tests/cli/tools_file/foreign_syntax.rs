//! Warnings and hints for the syntax of shells, other template languages and other tools' configuration.

use toolq_core::types::Severity;

use crate::tools_file::{
    assert_no_problems, assert_warned, expand_line_breaks, file_with_lines, file_with_tool,
    load_text,
};

/// No shell reads a command's arguments, so syntax that only a shell would interpret causes a warning.
#[test]
fn shell_syntax_without_a_shell_causes_warnings() {
    assert_warned(
        file_with_tool,
        r#"
        command: [cat, --, "{a}", "|", wc, ">", out] ⇒ "|"   ⇒ no shell reads
        command: [make, "&&", make, install]         ⇒ "&&"  ⇒ no shell reads
        command: [ls, $HOME/x]                       ⇒ $HOME ⇒ stays text
        command: [ls, --dir=$HOME]                   ⇒ $HOME ⇒ stays text
        command: [cat, $a]                           ⇒ $a    ⇒ `$a` stays text
        command: [ls, ~/x]                           ⇒ ~/x   ⇒ `~` stays text
        command: {argv: [ls], env: {T: $TOKEN}}      ⇒ $TOKEN ⇒ `$TOKEN` stays text
        command: {argv: [ls], env: {T: "~/x"}}       ⇒ "~/x" ⇒ `~` stays text
        command: {argv: [ls], cwd: ~/x}              ⇒ ~/x   ⇒ `~` stays text
        http: {url: "http://h/", headers: {x: Bearer $TOKEN}} ⇒ $TOKEN ⇒ stays text
        "#,
    );
    assert_no_problems(
        file_with_tool,
        r#"
        command: [find, ., -name, x, -exec, wc, "{}", ";"]
        command: [expr, "1", "<", "2"]
        command: [sh, -c, 'cat -- "$1" | wc > $HOME/x; ls ~/x', --, "{a}"]
        command: [jq, '$ENV.HOME, $x, $1']
        command: {argv: [ls], env: {T: "${TOKEN}", U: "a ~/b", V: "$x"}, stdin: "$HOME"}
        "#,
    );
}

#[test]
fn placeholders_of_other_template_languages_cause_warnings() {
    assert_warned(
        file_with_tool,
        r#"
        command: [cat, --, "{ a }"]         ⇒ { a }     ⇒ stays text
        command: [cat, --, "x{a|json}"]     ⇒ {a|json}  ⇒ stays text
        command: {argv: [cat], stdin: "{list[0]}"} ⇒ {list[0]} ⇒ stays text
        http: {url: "http://h/", body: {x: "{a!r}"}} ⇒ {a!r} ⇒ stays text
        "#,
    );
    assert_no_problems(
        file_with_tool,
        r#"
        command: [jq, "{a: .x}", "{ b }", "{a,n}"]
        command: [awk, "{ a }"]
        "#,
    );
}

/// Asserts that each line of the table causes one problem with the given hint: `fragment ⇒ part of the hint`.
fn assert_hint(frame: impl Fn(&str) -> String, table: &str) {
    for line in crate::tools_file::table_rows(table) {
        let Some((fragment, expected)) = line.split_once('⇒') else {
            panic!("expected two cells: {line}");
        };
        let text = frame(&expand_line_breaks(fragment.trim()));
        let problems = load_text(&text).problems;
        let [problem] = &problems[..] else {
            panic!("{text}{problems:#?}");
        };
        let hint = problem.hint.as_deref().unwrap_or_default();
        assert!(hint.contains(expected.trim()), "{text}{problem:#?}");
    }
}

#[test]
fn misplaced_keys_get_a_hint() {
    assert_hint(
        file_with_tool,
        r#"
        secret: [A]             ⇒ a top-level key: `secrets: [NAME]`
        secrets: [A]            ⇒ a top-level key: `secrets: [NAME]`
        parameters: {}          ⇒ did you mean `input_schema`?
        env: {A: b}             ⇒ a key of `command`
        url: "http://h/"        ⇒ a key of `http`
        run: ls                 ⇒ did you mean `command`?
        name: t                 ⇒ is its key in `tools`
        backend: x              ⇒ one of `command`, `http`, `agent` and `mcp`
        read_only: true         ⇒ did you mean `effect`?
        annotations: {}         ⇒ did you mean `effect`?
        parallel: true          ⇒ did you mean `concurrency_safe`?
        retries: 3              ⇒ did you mean `retry`?
        timeout_seconds: 3      ⇒ did you mean `timeout`?
        requires_approval: true ⇒ did you mean `approve`?
        confirm: true           ⇒ did you mean `approve`?
        retry: {on: exit:75}    ⇒ `[exit:75]`
        paths: a                ⇒ `[a]`
        "#,
    );
    assert_hint(
        |key| file_with_tool(&format!("command: {{argv: [date], {key}}}")),
        r"
        timeout: 5s             ⇒ next to `command`
        sandbox: {}             ⇒ next to `command`
        args: [x]               ⇒ did you mean `argv`?
        ",
    );
    assert_hint(file_with_lines, "secret: [A] ⇒ did you mean `secrets`?");
    assert_hint(
        file_with_lines,
        "hosts: {a.example: {max_parallel: 2}} ⇒ of a tool, of `defaults` or of a server",
    );
    assert_hint(
        |line| {
            file_with_tool(&format!(
                "agent: {{endpoint: \"http://h/\", model: m, tools: [], {line}}}"
            ))
        },
        "temperature: 0 ⇒ `extra_body: {temperature: 0}`",
    );
    assert_hint(
        str::to_owned,
        "version: 1 ⏎ tools: ⏎  - name: look ⇒ write `look:` instead of `- name: look`",
    );
}

/// MCP clients have other keys for servers. A server that has one of them has one error.
#[test]
fn servers_as_clients_write_them_get_a_hint() {
    for (server, expected) in [
        ("command: [npx], args: [-y, server]", "a part of `command`"),
        ("command: [npx], env: {A: b}", "a part of `command`"),
        ("command: [npx], type: stdio", "leave it out"),
        (
            "command: [npx], timeout: 5s",
            "under `defaults` of the server",
        ),
        ("command: npx", ""),
    ] {
        let text = file_with_lines(&format!("servers: {{gh: {{{server}}}}}"));
        let problems = load_text(&text).problems;
        let errors = problems.iter();
        let errors = errors.filter(|problem| problem.severity == Severity::Error);
        let [error] = &errors.collect::<Vec<_>>()[..] else {
            panic!("{text}{problems:#?}");
        };
        let hint = error.hint.as_deref().unwrap_or_default();
        assert!(hint.contains(expected), "{text}{error:#?}");
    }
}

/// The hint says how the program's own language reads an argument.
#[test]
fn hints_show_how_each_language_reads_a_value() {
    assert_hint(
        file_with_tool,
        r#"
        command: [bash, -c, "wc {a}"]                ⇒ as `"$1"`
        command: [python3, -c, "print('{a}')"]       ⇒ as `sys.argv[1]`
        command: [env, python3.12, -c, "print({a})"] ⇒ as `sys.argv[1]`
        command: [node, -e, "f('{a}')"]              ⇒ as `process.argv[1]`
        command: [perl, -ne, "print '{a}'"]          ⇒ as `$ARGV[0]`
        command: [ruby, -e, "p '{a}'"]               ⇒ as `ARGV[0]`
        command: [php, -r, "echo '{a}';"]            ⇒ as `$argv[1]`
        command: [awk, "/{a}/"]                      ⇒ ENVIRON
        "#,
    );
}
