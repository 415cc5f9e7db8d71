//! The values of `--color`, and what they mean in an environment.

use clap::ValueEnum;

use toolq_core::os::Environment;

/// When to color the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// Where colors are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorPolicy {
    Everywhere,
    OnTerminals,
    Nowhere,
}

impl ColorPolicy {
    /// Decides by the flag, then `NO_COLOR` (no-color.org), `CLICOLOR_FORCE` and `CLICOLOR` (bixense.com/clicolors),
    /// then `TERM=dumb`.
    pub fn new(choice: ColorChoice, environment: &Environment) -> Self {
        let is_set = |name: &str| {
            environment
                .get_os(name)
                .is_some_and(|value| !value.is_empty())
        };
        let disabled = environment
            .get_os("CLICOLOR")
            .is_some_and(|value| value == "0");
        let forced = is_set("CLICOLOR_FORCE");
        let forbidden = is_set("NO_COLOR");
        match choice {
            ColorChoice::Always => Self::Everywhere,
            ColorChoice::Auto if forced && !forbidden => Self::Everywhere,
            ColorChoice::Auto if !forbidden && !disabled && !is_dumb_terminal(environment) => {
                Self::OnTerminals
            }
            ColorChoice::Auto | ColorChoice::Never => Self::Nowhere,
        }
    }
}

impl From<ColorPolicy> for clap::ColorChoice {
    fn from(policy: ColorPolicy) -> Self {
        match policy {
            ColorPolicy::Everywhere => Self::Always,
            ColorPolicy::OnTerminals => Self::Auto,
            ColorPolicy::Nowhere => Self::Never,
        }
    }
}

/// Returns whether the terminal can neither show colors nor move its cursor.
pub fn is_dumb_terminal(environment: &Environment) -> bool {
    environment.get("TERM").as_deref() == Some("dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// clap by itself colors help on a dumb terminal if `CI` is set.
    #[test]
    fn a_dumb_terminal_has_no_colors_in_ci_either() {
        let policy = |choice, variables: &[(&str, &str)]| {
            let environment = variables
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect();
            ColorPolicy::new(choice, &environment)
        };
        let in_ci = [("TERM", "dumb"), ("CI", "true")];
        assert_eq!(policy(ColorChoice::Auto, &in_ci), ColorPolicy::Nowhere);
        assert_eq!(policy(ColorChoice::Always, &in_ci), ColorPolicy::Everywhere);
        assert_eq!(policy(ColorChoice::Auto, &[]), ColorPolicy::OnTerminals);
    }
}
