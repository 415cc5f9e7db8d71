//! `toolq log`: a file for each verb. What is said of a record stands in `report`; here files are found and opened.

mod cost;
mod prune;
mod resolve;
mod show;
mod stats;
mod verify;

use std::path::{Path, PathBuf};

use crate::args::{Log as Arguments, LogFiles, LogVerb};
use crate::context::Context;
use crate::output::{Exit, Failure};
use toolq_log::{Damage, LogError, Record, Records, Wish};

/// Does what the verb says.
///
/// # Errors
/// A log that can't be read, with its place and what to do; a stdout that takes no more.
pub fn log(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    match &arguments.verb {
        LogVerb::Show(arguments) => show::show(arguments, context),
        LogVerb::Stats(arguments) => stats::stats(arguments, context),
        LogVerb::Cost(arguments) => cost::cost(arguments, context),
        LogVerb::Verify(arguments) => verify::verify(arguments, context),
        LogVerb::Resolve(arguments) => resolve::resolve(arguments, context),
        LogVerb::Prune(arguments) => prune::prune(arguments, context),
    }
}

/// The logs that were named, or the latest session.
fn files(named: &LogFiles, context: &Context) -> Result<Vec<PathBuf>, Failure> {
    if !named.files.is_empty() {
        return Ok(named.files.clone());
    }
    let latest = latest(context, Wish::Read)?;
    if context.verbose {
        let path = latest.display();
        context.stderr.note(&format!("the latest session: {path}"));
    }
    Ok(vec![latest])
}

/// The session of the default folder that was written last.
fn latest(context: &Context, wish: Wish) -> Result<PathBuf, Failure> {
    let folder = toolq_log::sessions_folder(&context.environment);
    let latest = folder.and_then(|folder| toolq_log::latest_session(&folder));
    latest.map_err(|error| Failure::of_log(&error, wish))
}

/// Hands out the records of a log. A torn end, as a run leaves it that was killed, is no more than a warning.
fn each_record(
    path: &Path,
    context: &Context,
    mut take: impl FnMut(&Record) -> Result<(), Damage>,
) -> Result<(), Failure> {
    let mut records = Records::open(path).map_err(|error| unreadable(&error))?;
    while let Some(record) = records.lend() {
        let taken = record.and_then(|record| take(&record));
        if let Err(damage) = taken {
            if !damage.is_torn() {
                return Err(unreadable(&LogError::of(path, damage)));
            }
            tell_torn(path, &damage, context);
        }
    }
    Ok(())
}

/// Says that the end of a log is missing.
fn tell_torn(path: &Path, damage: &Damage, context: &Context) {
    let path = path.display();
    let warning = format!("{path} ends too early, in {damage}");
    context.stderr.warning(&warning);
}

/// What to do about a log that was to be read.
fn unreadable(error: &LogError) -> Failure {
    Failure::of_log(error, Wish::Read)
}

/// `1 record`, `2 records`.
fn counted(number: u64, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}
