//! `toolq log cost`: what agents used and what that costs by the prices of tools.yaml, over all logs together.

use std::collections::BTreeSet;
use std::path::Path;

use crate::args::{LogCost as Arguments, LogFormat};
use crate::commands::log::{each_record, files};
use crate::context::Context;
use crate::log_view::Cost;
use crate::output::stdout;
use crate::output::{Exit, Failure};
use toolq_core::text::escape;
use toolq_core::types::Prices;

/// Prints it. What has no price is said on stderr.
///
/// # Errors
/// A log that can't be read, a tools.yaml that is wrong or was named and isn't there, or a stdout that takes no more.
pub fn cost(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    let prices = prices(context)?;
    let mut cost = Cost::default();
    for path in files(&arguments.from, context)? {
        each_record(&path, context, |record| cost.take(record))?;
        cost.end_of_log();
    }
    match arguments.format {
        LogFormat::Text => {
            stdout::line(&cost.table(&prices, context.stderr.color_of_stdout()))?;
        }
        LogFormat::Json => stdout::line(&cost.json(&prices))?,
    }
    let unpriced = names(&cost.unpriced(&prices));
    if !unpriced.is_empty() {
        let (models, path) = (unpriced, context.tools_path.display());
        context.stderr.warning(&format!(
            "`prices` of {path} has nothing of {models}, or not of all kinds of tokens: what they cost is unknown"
        ));
    }
    let uncounted = names(&cost.uncounted());
    if !uncounted.is_empty() {
        context.stderr.warning(&format!(
            "the API of {uncounted} did not say how many tokens an answer took: what it took and cost is unknown"
        ));
    }
    Ok(Exit::Ok)
}

/// Models for people, separated by commas.
fn names(models: &BTreeSet<&str>) -> String {
    let names = models.iter().map(|model| match *model {
        "" => "a model without a name".into(),
        model => escape(model),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// The file whose `prices` hold. A log can be read where there is no tools.yaml, but not priced.
fn prices(context: &Context) -> Result<Prices, Failure> {
    let path = &context.tools_path;
    if path == Path::new(crate::args::TOOLS_FILE) && !path.exists() {
        return Ok(Prices::default());
    }
    Ok(context.load_tools()?.prices)
}
