//! Option conventions of programs that execute code from their arguments.

mod arguments;

/// How an interpreter takes code from its arguments.
pub(crate) struct Interpreter {
    /// Its names, without a version suffix.
    names: &'static [&'static str],
    /// Letters of the short options that take code, alone or in a cluster such as `-lc`.
    code_letters: &'static str,
    /// Long options and subcommands that take code, matched case-insensitively.
    code_options: &'static [&'static str],
    /// Options whose value is the next element, even if that looks like a file.
    value_options: &'static [&'static str],
    /// Options whose value names a file or module that is run, separated by spaces. The value is the next element, or
    /// follows in the same one.
    loading_options: &'static str,
    /// Where the code is.
    code_position: CodePosition,
}

/// Where an interpreter finds its code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CodePosition {
    /// In the element after the option.
    Next,
    /// The same, but options may also follow operands.
    NextAnywhere,
    /// In everything after the option.
    Rest,
    /// In the first operand after the option. More options may come in between.
    Operand,
    /// In the element after the option. Without that option, in the first operand, unless one of these options names a
    /// file.
    OperandUnless(&'static [&'static str]),
}

/// What an interpreter does with its stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StdinUse {
    /// It runs it.
    Program,
    /// Its code reads it.
    Data,
}

const INTERPRETERS: [Interpreter; 17] = [
    Interpreter {
        value_options: &["--rcfile", "--init-file", "--emulate"],
        loading_options: "--rcfile --init-file",
        code_position: CodePosition::Operand,
        ..base_interpreter(
            &[
                "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "csh", "tcsh",
            ],
            "c",
            &[],
        )
    },
    base_interpreter(&["fish"], "cC", &["--command", "--init-command"]),
    Interpreter {
        code_position: CodePosition::NextAnywhere,
        ..base_interpreter(&["su", "runuser", "script", "flock"], "c", &["--command"])
    },
    Interpreter {
        value_options: &["-W", "-X", "--check-hash-based-pycs"],
        loading_options: "-m",
        ..base_interpreter(&["python", "pypy"], "c", &[])
    },
    Interpreter {
        value_options: &["-I"],
        loading_options: "-M -m -d -I",
        ..base_interpreter(&["perl"], "eE", &[])
    },
    Interpreter {
        value_options: &["-I", "-r", "-C", "-E", "--encoding"],
        loading_options: "-I -r --require",
        ..base_interpreter(&["ruby", "jruby"], "e", &[])
    },
    Interpreter {
        value_options: &["-l"],
        loading_options: "-l",
        ..base_interpreter(&["lua", "luajit"], "e", &[])
    },
    Interpreter {
        value_options: &[
            "-r",
            "--require",
            "--import",
            "--loader",
            "--experimental-loader",
            "--preload",
            "-C",
            "--conditions",
        ],
        loading_options: "-r --require --import --loader --experimental-loader --preload",
        ..base_interpreter(&["node", "nodejs", "bun"], "ep", &["--eval", "--print"])
    },
    Interpreter {
        code_position: CodePosition::Operand,
        ..base_interpreter(&["deno"], "", &["eval"])
    },
    Interpreter {
        value_options: &["-c", "-d", "-z", "--php-ini", "--define"],
        loading_options: "-c -d -f -F -z --php-ini --define --file --process-file --zend-extension",
        ..base_interpreter(
            &["php"],
            "rBRE",
            &[
                "--run",
                "--process-begin",
                "--process-code",
                "--process-end",
            ],
        )
    },
    Interpreter {
        value_options: &[
            "-L",
            "-J",
            "--load",
            "--sysimage",
            "-r",
            "-cp",
            "-classpath",
            "-l",
        ],
        loading_options: "-L -J --load --sysimage -r -cp -classpath",
        ..base_interpreter(
            &[
                "rscript",
                "julia",
                "osascript",
                "elixir",
                "groovy",
                "scala",
                "ghc",
            ],
            "eE",
            &["--eval", "--print"],
        )
    },
    Interpreter {
        code_position: CodePosition::Rest,
        ..base_interpreter(
            &["powershell", "pwsh"],
            "",
            &["-c", "-command", "-e", "-ec", "-encodedcommand"],
        )
    },
    Interpreter {
        value_options: &["-F", "-v", "-f", "-i", "-l"],
        loading_options: "-f -E -i -l --file --exec --include --load",
        code_position: CodePosition::OperandUnless(&["-f", "--file", "-E", "--exec"]),
        ..base_interpreter(&["awk", "gawk", "mawk", "nawk"], "", &["-e", "--source"])
    },
    // The `e` command of GNU sed runs programs.
    Interpreter {
        value_options: &["-f", "-l", "--file", "--line-length"],
        loading_options: "-f --file",
        code_position: CodePosition::OperandUnless(&["-f", "--file"]),
        ..base_interpreter(&["sed", "gsed"], "", &["-e", "--expression"])
    },
    Interpreter {
        value_options: &["-cp", "-classpath", "--class-path", "-p", "--module-path"],
        loading_options: "-cp -classpath --class-path -p --module-path -jar",
        ..base_interpreter(&["java"], "", &[])
    },
    base_interpreter(&["tclsh", "wish", "jimsh"], "", &[]),
    Interpreter {
        value_options: &["-f"],
        loading_options: "-f",
        ..base_interpreter(&["expect"], "c", &[])
    },
];

const fn base_interpreter(
    names: &'static [&'static str],
    code_letters: &'static str,
    code_options: &'static [&'static str],
) -> Interpreter {
    Interpreter {
        names,
        code_letters,
        code_options,
        value_options: &[],
        loading_options: "",
        code_position: CodePosition::Next,
    }
}

/// Returns the interpreter of this name.
pub(crate) fn find_interpreter(name: &str) -> Option<&'static Interpreter> {
    INTERPRETERS
        .iter()
        .find(|interpreter| interpreter.names.contains(&name))
}
