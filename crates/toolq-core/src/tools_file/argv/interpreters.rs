//! The conventions of programs that run a text in their arguments.

/// How an interpreter is told to run a text.
pub(crate) struct Interpreter {
    /// Its names, without a version behind.
    names: &'static [&'static str],
    /// Letters of short options, alone or in a cluster as in `-lc`.
    letters: &'static str,
    /// Long options and subcommands, in any case.
    words: &'static [&'static str],
    /// Options whose value is an element of its own, even where it looks like a file.
    valued: &'static [&'static str],
    /// Where the text stands.
    text: Text,
}

/// Where the text stands that an interpreter runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    /// Right behind the option.
    Next,
    /// The same, and options may also stand behind operands.
    NextAnywhere,
    /// Everything behind the option.
    Rest,
    /// The first operand, once the option was given: more options may stand between.
    Operand,
    /// Right behind the option; without it the first operand, unless one of these names a file.
    OperandUnless(&'static [&'static str]),
}

const INTERPRETERS: [Interpreter; 14] = [
    Interpreter {
        valued: &["--rcfile", "--init-file", "--emulate"],
        text: Text::Operand,
        ..runs_by(
            &[
                "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "csh", "tcsh",
            ],
            "c",
            &[],
        )
    },
    runs_by(&["fish"], "cC", &["--command", "--init-command"]),
    Interpreter {
        text: Text::NextAnywhere,
        ..runs_by(&["su", "runuser", "script", "flock"], "c", &["--command"])
    },
    Interpreter {
        valued: &["-W", "-X", "--check-hash-based-pycs"],
        ..runs_by(&["python", "pypy"], "c", &[])
    },
    Interpreter {
        valued: &["-I"],
        ..runs_by(&["perl"], "eE", &[])
    },
    Interpreter {
        valued: &["-I", "-r", "-C", "-E", "--encoding"],
        ..runs_by(&["ruby", "jruby"], "e", &[])
    },
    Interpreter {
        valued: &["-l"],
        ..runs_by(&["lua", "luajit"], "e", &[])
    },
    Interpreter {
        valued: &[
            "-r",
            "--require",
            "--import",
            "--loader",
            "--experimental-loader",
            "--preload",
            "-C",
            "--conditions",
        ],
        ..runs_by(&["node", "nodejs", "bun"], "ep", &["--eval", "--print"])
    },
    Interpreter {
        text: Text::Operand,
        ..runs_by(&["deno"], "", &["eval"])
    },
    Interpreter {
        valued: &["-c", "-d", "-z", "--php-ini", "--define"],
        ..runs_by(
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
        valued: &[
            "-L",
            "-J",
            "--load",
            "--sysimage",
            "-r",
            "-cp",
            "-classpath",
            "-l",
        ],
        ..runs_by(
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
        text: Text::Rest,
        ..runs_by(
            &["powershell", "pwsh"],
            "",
            &["-c", "-command", "-e", "-ec", "-encodedcommand"],
        )
    },
    Interpreter {
        valued: &["-F", "-v", "-f", "-i", "-l"],
        text: Text::OperandUnless(&["-f", "--file", "-E", "--exec"]),
        ..runs_by(&["awk", "gawk", "mawk", "nawk"], "", &["-e", "--source"])
    },
    // GNU's runs programs, by its command `e`.
    Interpreter {
        valued: &["-f", "-l", "--file", "--line-length"],
        text: Text::OperandUnless(&["-f", "--file"]),
        ..runs_by(&["sed", "gsed"], "", &["-e", "--expression"])
    },
];

const fn runs_by(
    names: &'static [&'static str],
    letters: &'static str,
    words: &'static [&'static str],
) -> Interpreter {
    Interpreter {
        names,
        letters,
        words,
        valued: &[],
        text: Text::Next,
    }
}

/// The interpreter of this name.
pub(crate) fn interpreter(name: &str) -> Option<&'static Interpreter> {
    INTERPRETERS
        .iter()
        .find(|interpreter| interpreter.names.contains(&name))
}

impl Interpreter {
    /// Whether its first operand is a text that is run, whatever options there are.
    pub(crate) fn runs_operand(&self) -> bool {
        matches!(self.text, Text::OperandUnless(_))
    }

    /// Whether its first operand is a file that is run, where no option says otherwise.
    pub(crate) fn runs_file(&self) -> bool {
        match self.text {
            Text::Next | Text::Rest => true,
            Text::Operand => !self.names.contains(&"deno"),
            Text::NextAnywhere | Text::OperandUnless(_) => false,
        }
    }

    /// Whether no operand is a file that is run once this option was given: it says what is run. `-s` of a shell is that
    /// it is read.
    pub(crate) fn runs_no_file(&self, element: &str) -> bool {
        let is_read = self.text == Text::Operand && in_cluster(element, "s");
        is_read || self.runs_next(element) || self.runs_rest_of(element)
    }

    /// Whether its option makes the first operand behind it a text that is run.
    pub(crate) fn runs_operand_after_option(&self) -> bool {
        self.text == Text::Operand
    }

    /// Whether the text goes on to the end of the arguments.
    pub(crate) fn runs_all_behind(&self) -> bool {
        self.text == Text::Rest
    }

    /// Whether no option is read behind an operand.
    pub(crate) fn ends_at_operand(&self) -> bool {
        self.text != Text::NextAnywhere
    }

    /// Whether an element is no operand; `-` ends the options of a shell.
    pub(crate) fn is_option(&self, element: &str, operand_is_code: bool) -> bool {
        let signed = element.starts_with(['-', '+']) && element.len() > 1;
        let ends = operand_is_code || self.text == Text::Operand;
        signed || self.is_word(element) || ends && element == "-"
    }

    /// Whether the element behind this one is run. In a cluster, `-e'text'`, the rest of this one may be, too.
    pub(crate) fn runs_next(&self, element: &str) -> bool {
        self.is_word(element) || in_cluster(element, self.letters)
    }

    /// `--eval=text`
    pub(crate) fn runs_rest_of(&self, element: &str) -> bool {
        element
            .split_once('=')
            .is_some_and(|(option, _)| option.starts_with("--") && self.is_word(option))
    }

    /// Whether its program comes from a file, so that no operand is one.
    pub(crate) fn names_file(&self, element: &str) -> bool {
        match self.text {
            Text::OperandUnless(files) => files.iter().any(|option| element.starts_with(option)),
            _ => false,
        }
    }

    /// `-m` of Python names a module, whose own options follow.
    pub(crate) fn ends_reading(&self, element: &str) -> bool {
        element == "-m" && self.names.contains(&"python")
    }

    /// Whether `element` is the value of the option before it. Where nobody knows that option, what doesn't look like a
    /// file is taken for one, and reading goes on; a value of the input only where a file comes `behind`.
    pub(crate) fn takes_value(&self, before: &str, element: &str, behind: &[&str]) -> bool {
        if self.valued.contains(&before) {
            return true;
        }
        match self.text {
            // `-o` of a shell, also in a cluster as in `-euo`, takes the name of a setting.
            Text::Operand => {
                !before.starts_with("--")
                    && before.ends_with(['o', 'O'])
                    && before.starts_with(['-', '+'])
            }
            // BSD's `sed -i ''`.
            Text::OperandUnless(_) => element.is_empty() || self.runs_next(before),
            Text::Next | Text::NextAnywhere | Text::Rest => {
                let may_be = before.starts_with(['-', '+']) && !before.contains('=');
                let is_file = if element.contains('{') {
                    !behind.iter().any(|element| is_like_file(element))
                } else {
                    is_like_file(element)
                };
                self.runs_next(before) || may_be && !is_file
            }
        }
    }

    fn is_word(&self, element: &str) -> bool {
        self.words
            .iter()
            .any(|word| word.eq_ignore_ascii_case(element))
    }
}

fn is_like_file(element: &str) -> bool {
    !element.starts_with('-') && element.contains(['/', '.'])
}

/// Whether one of `letters` stands in a cluster of short options: `-c`, `-lc`, `-e'text'`.
fn in_cluster(element: &str, letters: &str) -> bool {
    let Some(cluster) = element.strip_prefix('-') else {
        return false;
    };
    cluster
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .any(|letter| letters.contains(letter))
}
