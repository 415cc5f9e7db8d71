//! Hints: what to write instead of a value that a program would execute.

use crate::tools_file::argv::interpreters::find_interpreter;
use crate::tools_file::argv::risky_programs::find_risky_program;

/// Builds the hint for code that needs a value, from the expression for that value in the language of the code and an
/// example.
macro_rules! pass_separately {
    ($value:literal, $argv:literal) => {
        concat!(
            "pass it separately: as `",
            $value,
            "` in `",
            $argv,
            "`, or through `env` or `stdin`"
        )
    };
}

/// Returns what to do instead of putting a value into the code that the interpreter `name` executes.
pub(crate) fn code_value_hint(name: &str) -> &'static str {
    match name {
        // No `--` here: Python would pass it to the code as the first argument.
        "python" | "pypy" => pass_separately!(
            "sys.argv[1]",
            "[python3, -c, 'import sys; print(sys.argv[1])', \"{x}\"]"
        ),
        "node" | "nodejs" | "bun" => pass_separately!(
            "process.argv[1]",
            "[node, -e, 'console.log(process.argv[1])', --, \"{x}\"]"
        ),
        "perl" => pass_separately!("$ARGV[0]", "[perl, -e, 'print $ARGV[0]', --, \"{x}\"]"),
        "ruby" | "jruby" => pass_separately!("ARGV[0]", "[ruby, -e, 'puts ARGV[0]', --, \"{x}\"]"),
        "php" => pass_separately!("$argv[1]", "[php, -r, 'echo $argv[1];', --, \"{x}\"]"),
        "awk" | "gawk" | "mawk" | "nawk" => {
            "pass it through `env` and read `ENVIRON[\"NAME\"]`, or through `stdin`"
        }
        "sed" | "gsed" => {
            "only an integer may stand here, such as a line number; for a text, pass it to awk through `env` and read `ENVIRON[\"NAME\"]`"
        }
        _ if find_risky_program(name).is_some() => {
            find_risky_program(name).map_or("", |risky| risky.hint)
        }
        _ if find_interpreter(name).is_none() => {
            "write the text out here; declare one tool per text, or pass the value to a script as an argument of its own"
        }
        _ => pass_separately!("\"$1\"", "[sh, -c, 'grep -e \"$1\" notes', --, \"{x}\"]"),
    }
}

/// What to do instead of letting a value choose the file that an interpreter executes.
pub(crate) const SCRIPT_VALUE_HINT: &str = "name the file here and pass the value after it: `[python3, tool.py, \"{x}\"]`; \
     if there are several files, declare one tool for each";
