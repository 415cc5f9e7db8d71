//! Compares the cost of toolq with that of the alternatives, and with the least that the same work can cost.
//!
//! `cargo bench --bench compare [-- [--rounds N] [NAME…]]` prints a Markdown table. Within every round of a row, each
//! program runs once, and a figure is the median of the figures of the rounds: the speed of a machine drifts, but
//! ratios are stable. On a busy machine, a program's share of the CPU depends on how many processes it has. So the last
//! column has toolq's CPU time as a multiple of the rival's, which shows costs that waiting hides. Programs that aren't
//! installed are skipped with a hint on how to install them (`benches/setup`).

mod bar;
mod bench_context;
mod bench_program;
mod comparison;
mod floors;
mod inputs;
mod locked_server;
mod programs;
mod resource_usage;
mod rows;
mod table;

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use bench_context::BenchContext;
use floors::FloorCommand;

/// Errors are only printed, never handled.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Compare toolq with its alternatives, and with the least that the same work can cost
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct BenchArguments {
    /// Run only rows whose name contains one of these words [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Number of measured rounds of each row, after a warm-up round
    #[arg(long, value_name = "N", default_value = "7")]
    rounds: NonZeroUsize,
    /// Directory in which `../shared/mcp/setup.sh` has installed MCP servers [default: rows with them are skipped]
    #[arg(long, value_name = "DIR", env = "MCP_KIT")]
    mcp_kit: Option<PathBuf>,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
    #[command(subcommand)]
    floor: Option<FloorCommand>,
}

fn main() -> Result<ExitCode> {
    let arguments = BenchArguments::parse();
    match arguments.floor {
        Some(floor) => floor.run().map(|()| ExitCode::SUCCESS),
        None => run_rows(&arguments),
    }
}

/// Runs the selected rows. Fails if a bar is missed or a row can't be run.
fn run_rows(arguments: &BenchArguments) -> Result<ExitCode> {
    let bench = BenchContext::new(
        arguments.rounds.get(),
        arguments.mcp_kit.clone().unwrap_or_default(),
    )?;
    let is_selected = |name: &str| {
        arguments.names.is_empty() || arguments.names.iter().any(|word| name.contains(&**word))
    };
    let mut all_hold = true;
    table::print_head();
    for (name, run) in rows::ALL_ROWS {
        if is_selected(name) {
            all_hold &= match run(&bench) {
                Ok(lines) => lines
                    .iter()
                    .map(table::print_line)
                    .fold(true, |all, holds| all & holds),
                Err(error) => table::print_broken(name, &*error),
            };
        }
    }
    Ok(if all_hold {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
