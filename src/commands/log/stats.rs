//! `toolq log stats`: prints statistics of each tool over all logs.

use std::collections::BTreeSet;
use std::path::Path;

use crate::args::values::LogFormat;
use crate::commands::log::log_files::{for_each_record, select_logs};
use crate::commands::log::{LogCostArguments, LogStatsArguments};
use crate::context::CommandContext;
use crate::log_view::{CostCollector, StatsCollector};
use crate::output::{CommandError, Exit, stdout};
use toolq_core::text::escape;
use toolq_core::types::PriceTable;

/// Prints the statistics.
///
/// # Errors
/// A log can't be read, or stdout can't be written.
pub fn print_stats(
    arguments: &LogStatsArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let mut stats = StatsCollector::default();
    for path in select_logs(&arguments.logs, context)? {
        for_each_record(&path, context, |record| stats.add_record(record))?;
        stats.finish_log();
    }
    match arguments.format {
        LogFormat::Text => {
            let table = stats.to_table(context.stderr.is_stdout_colored());
            stdout::write_line(&context.stderr.own_symbols(table))?;
        }
        LogFormat::Json => stdout::write_line(&stats.to_json())?,
    }
    Ok(Exit::Ok)
}

// `toolq log cost`: prints the usage and cost of agents over all logs, by the prices in tools.yaml.

/// Prints the costs. Warns about models without a price.
///
/// # Errors
/// A log can't be read, tools.yaml is invalid, or missing although it was named, or stdout can't be written.
pub fn print_cost(
    arguments: &LogCostArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let prices = load_prices(context)?;
    let mut cost = CostCollector::default();
    for path in select_logs(&arguments.logs, context)? {
        for_each_record(&path, context, |record| cost.add_record(record))?;
        cost.finish_log();
    }
    match arguments.format {
        LogFormat::Text => {
            let table = cost.to_table(&prices, context.stderr.is_stdout_colored());
            stdout::write_line(&context.stderr.own_symbols(table))?;
        }
        LogFormat::Json => stdout::write_line(&cost.to_json(&prices))?,
    }
    let unpriced = format_models(&cost.unpriced_models(&prices));
    if !unpriced.is_empty() {
        let (models, path) = (unpriced, context.tools_path.display());
        context.stderr.print_warning(&format!(
            "`prices` in {path} doesn't cover all tokens of {models}, so their cost is unknown"
        ));
    }
    let uncounted = format_models(&cost.uncounted_models());
    if !uncounted.is_empty() {
        context.stderr.print_warning(&format!(
            "the API didn't report the tokens of some responses of {uncounted}, so usage and cost are unknown"
        ));
    }
    Ok(Exit::Ok)
}

/// Formats the names of models, separated by commas.
fn format_models(models: &BTreeSet<&str>) -> String {
    let names = models.iter().map(|model| match *model {
        "" => "a model without a name".into(),
        model => escape(model),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Loads the prices from tools.yaml. Without a tools.yaml, the log can still be read, but has no prices.
pub(super) fn load_prices(context: &CommandContext) -> Result<PriceTable, CommandError> {
    let path = &context.tools_path;
    if path == Path::new(crate::args::shared_flags::DEFAULT_TOOLS_FILE) && !path.exists() {
        return Ok(PriceTable::default());
    }
    Ok(context.load_tools()?.prices)
}
