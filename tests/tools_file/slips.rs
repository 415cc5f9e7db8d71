//! Habits of shells and other template languages.

use crate::{file, on_lines, quiet, read, tool, warned};

/// FAULTS 34: there is no shell, and what only a shell would read is pointed out.
#[test]
fn no_shell_reads_the_arguments() {
    warned(
        tool,
        r#"
        command: [cat, --, "{a}", "|", wc, ">", out] ⇒ "|"   ⇒ no shell reads
        command: [make, "&&", make, install]         ⇒ "&&"  ⇒ no shell reads
        command: [ls, $HOME/x]                       ⇒ $HOME ⇒ stays text
        command: [ls, --dir=$HOME]                   ⇒ $HOME ⇒ stays text
        command: [ls, ~/x]                           ⇒ ~/x   ⇒ `~` stays text
        command: {argv: [ls], env: {T: $TOKEN}}      ⇒ $TOKEN ⇒ `$TOKEN` stays text
        command: {argv: [ls], env: {T: "~/x"}}       ⇒ "~/x" ⇒ `~` stays text
        command: {argv: [ls], cwd: ~/x}              ⇒ ~/x   ⇒ `~` stays text
        http: {url: "http://h/", headers: {x: Bearer $TOKEN}} ⇒ $TOKEN ⇒ stays text
        "#,
    );
    quiet(
        tool,
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
fn other_languages_have_other_placeholders() {
    warned(
        tool,
        r#"
        command: [cat, --, "{ a }"]         ⇒ { a }     ⇒ stays text
        command: [cat, --, "x{a|json}"]     ⇒ {a|json}  ⇒ stays text
        command: {argv: [cat], stdin: "{list[0]}"} ⇒ {list[0]} ⇒ stays text
        http: {url: "http://h/", body: {x: "{a!r}"}} ⇒ {a!r} ⇒ stays text
        "#,
    );
    quiet(
        tool,
        r#"
        command: [jq, "{a: .x}", "{ b }", "{a,n}"]
        command: [awk, "{ a }"]
        "#,
    );
}

#[test]
fn a_pair_of_the_query_is_left_out_only_under_query() {
    warned(
        tool,
        r#"
        http: {url: "http://h/x?day={o?}"}           ⇒ {o?} ⇒ without `o`, `day=` is sent
        http: {url: "http://h/x?a={a}&day={o?}"}     ⇒ {o?} ⇒ without `o`, `day=` is sent
        "#,
    );
    quiet(
        tool,
        r#"
        http: {url: "http://h/x?a={a}", query: {day: "{o?}"}}
        http: {url: "http://h/{o?}"}
        "#,
    );
}

/// Each line has a piece of a file and words of the hint of its one problem.
fn hinted(frame: impl Fn(&str) -> String, table: &str) {
    for line in crate::lines(table) {
        let Some((piece, words)) = line.split_once('⇒') else {
            panic!("{line} has no words");
        };
        let text = frame(&on_lines(piece.trim()));
        let problems = read(&text).problems;
        let [problem] = &problems[..] else {
            panic!("{text}{problems:#?}");
        };
        let hint = problem.hint.as_deref().unwrap_or_default();
        assert!(hint.contains(words.trim()), "{text}{problem:#?}");
    }
}

#[test]
fn keys_of_other_places_and_formats() {
    hinted(
        tool,
        r#"
        secret: [A]             ⇒ a key of the file: `secrets: [NAME]`
        secrets: [A]            ⇒ a key of the file: `secrets: [NAME]`
        parameters: {}          ⇒ did you mean `input_schema`?
        env: {A: b}             ⇒ a key of `command`
        url: "http://h/"        ⇒ a key of `http`
        run: ls                 ⇒ did you mean `command`?
        name: t                 ⇒ the key before it
        retry: {on: exit:75}    ⇒ `[exit:75]`
        paths: a                ⇒ `[a]`
        "#,
    );
    hinted(file, "secret: [A] ⇒ did you mean `secrets`?");
    hinted(
        str::to_owned,
        "version: 1 ⏎ tools: ⏎  - name: look ⇒ write `look:` for `- name: look`",
    );
}

/// FAULTS 35: the cure is in the language of the text.
#[test]
fn a_text_gets_its_values_in_its_own_language() {
    hinted(
        tool,
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
