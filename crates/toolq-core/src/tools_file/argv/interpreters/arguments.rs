//! How an interpreter reads its arguments.

use crate::tools_file::argv::interpreters::{CodePosition, Interpreter, StdinUse};
use crate::tools_file::argv::risky_programs::{OptionMatch, match_option};

impl Interpreter {
    /// What it does with its stdin if its arguments name no code.
    pub(crate) fn stdin_use(&self) -> StdinUse {
        match self.code_position {
            CodePosition::OperandUnless(_) => StdinUse::Data,
            _ if self.names.contains(&"java") => StdinUse::Data,
            CodePosition::NextAnywhere if !self.names.contains(&"su") => StdinUse::Data,
            _ => StdinUse::Program,
        }
    }

    /// Whether an option makes it read code from stdin: `-s` of a shell, or `-i` of Python, which does so after its
    /// other code.
    pub(crate) fn forces_stdin(&self, arguments: &[&str]) -> bool {
        let reads_on = ["python", "node", "lua"]
            .iter()
            .any(|name| self.names.contains(name));
        if reads_on {
            return arguments
                .iter()
                .take_while(|element| element.starts_with('-') && **element != "--")
                .any(|element| *element == "--interactive" || cluster_contains(element, "i"));
        }
        self.code_position == CodePosition::Operand
            && arguments
                .iter()
                .take_while(|element| element.starts_with(['-', '+']) && **element != "--")
                .any(|element| !element.starts_with("--") && cluster_contains(element, "s"))
            && !arguments.iter().any(|element| self.runs_next(element))
    }

    /// Returns the first of `arguments` that is neither an option nor the value of one.
    pub(crate) fn first_operand<'a>(&self, arguments: &[&'a str]) -> Option<&'a str> {
        let mut previous = "";
        for (index, element) in arguments.iter().enumerate() {
            if *element == "--" {
                return arguments.get(index + 1).copied();
            }
            let is_option = element.len() > 1 && self.is_option(element, false);
            if self.names_module(element) {
                return arguments.get(index + 1).copied();
            }
            let is_value =
                *element != "-" && self.is_option_value(previous, element, &arguments[index + 1..]);
            if !is_option && !is_value {
                return Some(element);
            }
            previous = element;
        }
        None
    }

    /// Whether it opens its operands like shell redirections, so that `touch x |` runs: `-n` and `-p` of Perl.
    pub(crate) fn opens_operands(&self, arguments: &[&str]) -> bool {
        self.names.contains(&"perl")
            && arguments
                .iter()
                .take_while(|element| element.starts_with('-') && **element != "--")
                .any(|element| cluster_contains(element, "np"))
    }

    /// Whether its first operand is code, even without an option that says so.
    pub(crate) fn runs_operand(&self) -> bool {
        matches!(self.code_position, CodePosition::OperandUnless(_))
    }

    /// Whether its first operand is a script file, unless an option says otherwise.
    pub(crate) fn runs_file(&self) -> bool {
        match self.code_position {
            CodePosition::Next | CodePosition::Rest => true,
            CodePosition::Operand => !self.names.contains(&"deno"),
            CodePosition::NextAnywhere | CodePosition::OperandUnless(_) => false,
        }
    }

    /// Whether an option rules out a script file, because it takes code or is `-s` of a shell, which reads the code
    /// from stdin.
    pub(crate) fn excludes_script(&self, element: &str) -> bool {
        let is_read = self.code_position == CodePosition::Operand && cluster_contains(element, "s");
        is_read || self.runs_next(element) || self.runs_inline_value(element)
    }

    /// Whether the option that takes code makes the first operand after it the code.
    pub(crate) fn runs_operand_after_option(&self) -> bool {
        self.code_position == CodePosition::Operand
    }

    /// Whether the code extends to the end of the arguments.
    pub(crate) fn runs_all_after(&self) -> bool {
        self.code_position == CodePosition::Rest
    }

    /// Whether options end at the first operand.
    pub(crate) fn stops_at_operand(&self) -> bool {
        self.code_position != CodePosition::NextAnywhere
    }

    /// Whether an element isn't an operand. That includes `-` if it ends the options, as it does for a shell.
    pub(crate) fn is_option(&self, element: &str, operand_is_code: bool) -> bool {
        let has_option_sign = element.starts_with(['-', '+']) && element.len() > 1;
        let dash_ends_options = operand_is_code || self.code_position == CodePosition::Operand;
        has_option_sign || self.is_code_option(element) || dash_ends_options && element == "-"
    }

    /// Whether the next element is code. In a cluster such as `-e'code'`, the rest of this one may be code too.
    pub(crate) fn runs_next(&self, element: &str) -> bool {
        self.is_code_option(element) || cluster_contains(element, self.code_letters)
    }

    /// Whether an option contains its code, as in `--eval=code`.
    pub(crate) fn runs_inline_value(&self, element: &str) -> bool {
        element
            .split_once('=')
            .is_some_and(|(option, _)| option.starts_with("--") && self.is_code_option(option))
    }

    /// Whether an option names the file that holds the code, so that no operand is code.
    pub(crate) fn names_script_file(&self, element: &str) -> bool {
        match self.code_position {
            CodePosition::OperandUnless(files) => {
                files.iter().any(|option| element.starts_with(option))
            }
            _ => false,
        }
    }

    /// How an option names a file or module that is run.
    pub(crate) fn loading_option(&self, element: &str) -> Option<OptionMatch> {
        match_option(element, self.loading_options)
    }

    /// Whether a value chooses the option, or is joined to one that isn't known to take a value: `-{x}`, `-n{x}`.
    pub(crate) fn has_chosen_option(&self, element: &str) -> bool {
        let takes_code = !self.code_letters.is_empty() || self.runs_operand();
        let Some(placeholder) = element.find('{') else {
            return false;
        };
        let option = &element[..placeholder];
        let has_known_value = option.contains('=')
            || self
                .value_options
                .iter()
                .any(|known| option.starts_with(known));
        takes_code && element.starts_with('-') && !has_known_value
    }

    /// Whether an option is Python's `-m`, which names a module and is followed by that module's own options.
    pub(crate) fn names_module(&self, element: &str) -> bool {
        element == "-m" && self.names.contains(&"python")
    }

    /// Whether `element` is the value of the option before it.
    ///
    /// If that option isn't known here, an element that doesn't look like a file is assumed to be its value. An element
    /// with a placeholder is assumed to be its value only if one that looks like a file follows.
    pub(crate) fn is_option_value(
        &self,
        previous: &str,
        element: &str,
        following: &[&str],
    ) -> bool {
        if self.value_options.contains(&previous) {
            return true;
        }
        match self.code_position {
            // `-o` of a shell, alone or in a cluster such as `-euo`, takes the name of a setting.
            CodePosition::Operand => {
                !previous.starts_with("--")
                    && previous.ends_with(['o', 'O'])
                    && previous.starts_with(['-', '+'])
            }
            // BSD's `sed -i ''`.
            CodePosition::OperandUnless(_) => element.is_empty() || self.runs_next(previous),
            CodePosition::Next | CodePosition::NextAnywhere | CodePosition::Rest => {
                let may_take_value = previous.starts_with(['-', '+']) && !previous.contains('=');
                let is_file = if element.contains('{') {
                    !following.iter().any(|element| looks_like_file(element))
                } else {
                    looks_like_file(element)
                };
                self.runs_next(previous) || may_take_value && !is_file
            }
        }
    }

    fn is_code_option(&self, element: &str) -> bool {
        self.code_options
            .iter()
            .any(|option| option.eq_ignore_ascii_case(element))
    }
}

fn looks_like_file(element: &str) -> bool {
    !element.starts_with('-') && element.contains(['/', '.'])
}

/// Whether a cluster of short options, such as `-c`, `-lc` or `-e'code'`, contains one of `letters`.
fn cluster_contains(element: &str, letters: &str) -> bool {
    let Some(cluster) = element.strip_prefix('-') else {
        return false;
    };
    cluster
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .any(|letter| letters.contains(letter))
}
