//! What toolq costs, beside what people use instead and beside the least that the same work can cost.
//!
//! `cargo bench --bench compare [-- [--rounds N] [NAME…]]` prints a Markdown table. The contestants of a row take turns
//! within every round, and a figure is the median of what the rounds say each for itself: the speed of a machine drifts,
//! ratios stay. What other work on the machine leaves to a contestant depends on how many processes it has; the last
//! column, toolq's processor time as a multiple of the rival's, tells what waiting hides. A contestant that is not
//! installed is skipped with a word on how to get it (`benches/setup`).

mod bar;
mod contestant;
mod floors;
#[path = "../../tests/log/forge.rs"]
mod forge;
mod inputs;
mod programs;
mod race;
mod rows;
mod session;
mod table;
mod usage;
mod workbench;

use std::error::Error;
use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Parser;

use floors::Floor;
use workbench::Workbench;

/// Nothing here recovers from anything: an error is a text for whoever measures.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Compares toolq with what people use instead, and with the least that the same work can cost.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    /// Rows to run: those whose name holds one of these words [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Measured rounds of each row; one more warms up
    #[arg(long, value_name = "N", default_value = "7")]
    rounds: NonZeroUsize,
    /// What `cargo bench` adds
    #[arg(long, hide = true)]
    bench: bool,
    #[command(subcommand)]
    floor: Option<Floor>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    match arguments.floor {
        Some(floor) => floor.run().map(|()| ExitCode::SUCCESS),
        None => compare(&arguments),
    }
}

/// Runs the chosen rows; fails where a bar is missed or a row breaks.
fn compare(arguments: &Arguments) -> Result<ExitCode> {
    let bench = Workbench::new(arguments.rounds.get())?;
    let chosen = |name: &str| {
        arguments.names.is_empty() || arguments.names.iter().any(|word| name.contains(&**word))
    };
    let mut holds = true;
    table::head();
    for (name, run) in rows::ALL {
        if chosen(name) {
            holds &= match run(&bench) {
                Ok(lines) => lines
                    .iter()
                    .map(table::line)
                    .fold(true, |all, held| all & held),
                Err(error) => table::broken(name, &*error),
            };
        }
    }
    Ok(if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
