//! Programs that aren't interpreters, but run code or programs that some of their arguments name.

/// A program with options or operands that run something.
pub(crate) struct RiskyProgram {
    /// Its names, without a version suffix.
    names: &'static [&'static str],
    /// Options whose value is run, separated by spaces.
    pub(crate) code_options: &'static str,
    /// Options that do this only before the first operand.
    pub(crate) leading_code_options: &'static str,
    /// What its operands may be.
    pub(crate) operands: OperandRisk,
    /// What to write instead.
    pub(crate) hint: &'static str,
}

/// What a program makes of an operand from an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperandRisk {
    /// Data.
    None,
    /// Some texts run code: only values of a plain form are data.
    UnlessPlain,
    /// Some texts run code, but paths don't, since they begin with `./` where they could.
    UnlessPlainOrPath,
    /// The operands from the second one on are code, unless this option comes first.
    SecondUnless(&'static str),
}

const fn options(
    names: &'static [&'static str],
    code_options: &'static str,
    hint: &'static str,
) -> RiskyProgram {
    RiskyProgram {
        names,
        code_options,
        leading_code_options: "",
        operands: OperandRisk::None,
        hint,
    }
}

const NAME_IT_HERE: &str =
    "write the option's value out here; declare one tool per value, or leave the option out";
const STATEMENT_HINT: &str = "its own commands run programs; pass values as the program's variables, and write the statement out here";

const RISKY_PROGRAMS: [RiskyProgram; 24] = [
    options(
        &["tar", "gtar", "bsdtar"],
        "--to-command --use-compress-program -I --checkpoint-action --info-script --new-volume-script -F --rsh-command --rmt-command",
        NAME_IT_HERE,
    ),
    RiskyProgram {
        leading_code_options: "-c --config-env --exec-path",
        ..options(
            &["git"],
            "--upload-pack --receive-pack --exec --open-files-in-pager --extcmd",
            NAME_IT_HERE,
        )
    },
    options(&["rsync"], "-e --rsh --rsync-path", NAME_IT_HERE),
    options(&["scp", "sftp"], "-S -o -F -J", NAME_IT_HERE),
    options(&["sort"], "--compress-program", NAME_IT_HERE),
    options(&["split"], "--filter", NAME_IT_HERE),
    options(&["zip"], "-TT --unzip-command", NAME_IT_HERE),
    options(
        &["wget"],
        "-e --execute --use-askpass --config",
        NAME_IT_HERE,
    ),
    options(&["curl"], "-K --config", NAME_IT_HERE),
    options(
        &["man"],
        "-P --pager -H --html -p --preprocessor",
        NAME_IT_HERE,
    ),
    options(&["tcpdump"], "-z", NAME_IT_HERE),
    options(&["nmap"], "--script", NAME_IT_HERE),
    options(&["exiftool"], "-if -@ -execute", NAME_IT_HERE),
    RiskyProgram {
        operands: OperandRisk::UnlessPlainOrPath,
        ..options(
            &[
                "gcc", "g++", "cc", "c++", "clang", "clang++", "javac", "rustc",
            ],
            "-wrapper -specs -fplugin -B --specs",
            "`@file` reads options from a file, and some options run programs; name the value in `paths`",
        )
    },
    RiskyProgram {
        operands: OperandRisk::UnlessPlain,
        ..options(
            &["make", "gmake"],
            "-f --file --makefile -E --eval -C --directory -I --include-dir",
            "a text such as `A=$(shell …)` is an assignment, which make evaluates; give the value an `enum` or a `pattern` such as `^[a-z][a-z-]*$`",
        )
    },
    RiskyProgram {
        operands: OperandRisk::UnlessPlainOrPath,
        ..options(
            &["vim", "vi", "ex", "view", "nvim", "gvim", "vimdiff", "rvim"],
            "-c --cmd -S -s -u",
            "an argument that begins with `+` is a command of the editor; name the value in `paths`",
        )
    },
    options(
        &["emacs", "emacsclient"],
        "--eval --execute -e -l --load -f --funcall --script",
        NAME_IT_HERE,
    ),
    options(
        &["gdb", "lldb"],
        "-ex --ex -eval-command --eval-command -x --command -iex -ix -o -O -s -S",
        NAME_IT_HERE,
    ),
    RiskyProgram {
        operands: OperandRisk::SecondUnless("-safe"),
        ..options(
            &["sqlite3"],
            "-cmd -init",
            "sqlite3 has commands that run programs, such as `.shell`; add `-safe` before the database: `[sqlite3, -safe, -readonly, app.db, \"{sql}\"]` (a statement can still read any file, with `fsdir`)",
        )
    },
    options(&["psql"], "-c --command -f --file", STATEMENT_HINT),
    options(&["mysql", "mariadb"], "-e --execute", STATEMENT_HINT),
    options(
        &["gnuplot", "octave", "r", "expect", "mongosh"],
        "-e --eval -c -f --file",
        STATEMENT_HINT,
    ),
    options(&["ansible"], "-a --args -e --extra-vars", NAME_IT_HERE),
    options(
        &["start-stop-daemon"],
        "-x --exec -a --startas",
        NAME_IT_HERE,
    ),
];

/// Returns the risky program of this name.
pub(crate) fn find_risky_program(name: &str) -> Option<&'static RiskyProgram> {
    RISKY_PROGRAMS
        .iter()
        .find(|program| program.names.contains(&name))
}

/// Returns how `element` relates to an option in `options`: it contains the option's value, or the next element is the
/// value. GNU programs accept the beginning of a long option, too. `None` if it isn't one of them.
pub(crate) fn match_option(element: &str, options: &str) -> Option<OptionMatch> {
    options
        .split(' ')
        .filter(|option| !option.is_empty())
        .find_map(|option| {
            let Some(rest) = element.strip_prefix(option) else {
                let (name, _) = element.split_once('=')?;
                let is_beginning = name.len() > 3 && option.starts_with(name);
                return (option.starts_with("--") && is_beginning).then_some(OptionMatch::HasValue);
            };
            let is_short = option.len() == 2;
            match rest.chars().next() {
                None => Some(OptionMatch::NextIsValue),
                Some('=') => Some(OptionMatch::HasValue),
                Some(_) if is_short => Some(OptionMatch::HasValue),
                Some('{') if !option.starts_with("--") => Some(OptionMatch::HasValue),
                Some(_) => None,
            }
        })
}

/// Where the value of an option is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionMatch {
    /// In the same element.
    HasValue,
    /// In the next element.
    NextIsValue,
}
