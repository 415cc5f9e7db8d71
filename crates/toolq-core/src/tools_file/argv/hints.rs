//! What to write instead of a value that a program would run.

/// How a text that an interpreter runs gets a value: the value in its own language, and an example.
macro_rules! beside {
    ($value:literal, $argv:literal) => {
        concat!(
            "hand it over beside the text: as `",
            $value,
            "` in `",
            $argv,
            "`, or by `env` or `stdin`"
        )
    };
}

/// What to do instead of writing a value into the text that the interpreter of this name runs.
pub(crate) fn value_beside(name: &str) -> &'static str {
    match name {
        // Its `--` would be the first argument.
        "python" | "pypy" => beside!(
            "sys.argv[1]",
            "[python3, -c, 'import sys; print(sys.argv[1])', \"{x}\"]"
        ),
        "node" | "nodejs" | "bun" => beside!(
            "process.argv[1]",
            "[node, -e, 'console.log(process.argv[1])', --, \"{x}\"]"
        ),
        "perl" => beside!("$ARGV[0]", "[perl, -e, 'print $ARGV[0]', --, \"{x}\"]"),
        "ruby" | "jruby" => beside!("ARGV[0]", "[ruby, -e, 'puts ARGV[0]', --, \"{x}\"]"),
        "php" => beside!("$argv[1]", "[php, -r, 'echo $argv[1];', --, \"{x}\"]"),
        "awk" | "gawk" | "mawk" | "nawk" => {
            "hand it over by `env` and read `ENVIRON[\"NAME\"]`, or by `stdin`"
        }
        _ => beside!("\"$1\"", "[sh, -c, 'grep -e \"$1\" notes', --, \"{x}\"]"),
    }
}

/// What to do instead of letting a value choose the file that an interpreter runs.
pub(crate) const SCRIPT_BESIDE: &str = "name the file here and hand the value over behind it: `[python3, tool.py, \"{x}\"]`; \
     if the model is to run files of its own, say so by a shell: `[sh, -c, 'exec python3 \"$1\"', --, \"{x}\"]`";
