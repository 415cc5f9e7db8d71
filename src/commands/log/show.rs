//! `toolq log show`: what was asked, ran and was answered; for people, or the records as they are. `-f` goes on while the
//! log grows.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use crate::args::{LogFormat, LogShow as Arguments};
use crate::commands::log::{files, tell_torn, unreadable};
use crate::context::Context;
use crate::log_view::{Filter, Names, Page as LogPage, Show};
use crate::output::stdout;
use crate::output::{Exit, Failure};
use toolq_core::os::Process;
use toolq_core::text::{escape, format_bytes};
use toolq_log::{Body, Damage, Kind, LogError, Record, Records, SessionStart};

/// Columns of what goes to no terminal.
const WIDTH: usize = 100;
/// Between two looks at a log that grows.
const PAUSE: Duration = Duration::from_millis(50);
/// A body in a file that is larger than this, in bytes, is named and not read.
const LARGEST: u64 = 1 << 20;

/// Prints the logs, one after another.
///
/// # Errors
/// A log that can't be read, or a stdout that takes no more. What stands before a damage is shown.
pub fn show(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    let paths = files(&arguments.from, context)?;
    if arguments.follow && paths.len() > 1 {
        return Err(Failure::usage("several logs can't be followed at once")
            .with_hint("name one of them, or leave out `-f`"));
    }
    let mut names = Names::new(&arguments.tool);
    for (number, path) in paths.iter().enumerate() {
        if paths.len() > 1 && arguments.format == LogFormat::Text {
            let gap = if number > 0 { "\n" } else { "" };
            let name = path.display().to_string();
            stdout::line(&format!("{gap}{}:", escape(&name)))?;
        }
        Reader::new(path, arguments, context, &mut names)?.read()?;
    }
    tell_missing(&names, &paths, context);
    Ok(Exit::Ok)
}

/// Says which tools were asked for in vain.
fn tell_missing(names: &Names, paths: &[PathBuf], context: &Context) {
    let place = match paths {
        [path] => path.display().to_string(),
        _ => "these logs".to_owned(),
    };
    for (name, near) in names.missing() {
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        let warning = format!("no call in {place} is of a tool {name}{near}");
        context.stderr.warning(&warning);
    }
}

/// A log on its way to stdout.
struct Reader<'a> {
    path: &'a Path,
    /// The log itself, where `path` is a link: its bodies stand beside it.
    log: PathBuf,
    records: Records,
    /// The file that was opened: its device and its number there.
    identity: Option<(u64, u64)>,
    format: LogFormat,
    filter: Filter,
    show: Show,
    follow: bool,
    has_ended: bool,
    /// Who wrote the last session.
    writer: Option<Process>,
    names: &'a mut Names,
    context: &'a Context,
}

impl<'a> Reader<'a> {
    fn new(
        path: &'a PathBuf,
        arguments: &Arguments,
        context: &'a Context,
        names: &'a mut Names,
    ) -> Result<Self, Failure> {
        let page = LogPage {
            width: stdout::width().unwrap_or(WIDTH),
            color: context.stderr.color_of_stdout(),
        };
        let filter = Filter {
            errors: arguments.errors,
            tools: arguments.tool.clone(),
        };
        let show = Show::new(page, filter.clone());
        let waits = arguments.errors && !arguments.follow;
        Ok(Self {
            path,
            log: fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
            records: Records::open(path).map_err(|error| unreadable(&error))?,
            identity: identity(path),
            format: arguments.format,
            show: if waits { show.at_the_end() } else { show },
            filter,
            follow: arguments.follow,
            has_ended: false,
            writer: None,
            names,
            context,
        })
    }

    fn read(mut self) -> Result<(), Failure> {
        self.read_all()?;
        while self.follow && !self.has_ended {
            // What it wrote last is read once more.
            self.follow = !self.is_abandoned();
            if self.follow {
                sleep(PAUSE);
            }
            self.check_place()?;
            self.records.again();
            self.read_all()?;
            if !self.follow && !self.has_ended {
                self.tell_abandoned();
            }
        }
        let rest = self.show.finish();
        print(&rest)
    }

    /// Whether the session has no end, and nobody is there to write it.
    fn is_abandoned(&self) -> bool {
        let writer = self.writer.as_ref();
        writer.is_some_and(Process::has_ended) && !self.records.is_written()
    }

    fn tell_abandoned(&self) {
        let pid = self.writer.as_ref().map_or(0, |writer| writer.pid);
        let path = self.path.display();
        self.context.stderr.warning(&format!(
            "{path} will not grow: its run, process {pid}, is gone and has written no end"
        ));
    }

    /// Reads up to the end of what there is by now.
    fn read_all(&mut self) -> Result<(), Failure> {
        while let Some(record) = self.records.next() {
            let taken = record.and_then(|record| {
                self.look_at(&record)?;
                self.take(&record)
            });
            match taken {
                Ok(text) => print(&text)?,
                // The rest of it may still come.
                Err(damage) if damage.is_torn() && self.follow => {}
                Err(damage) if damage.is_torn() => tell_torn(self.path, &damage, self.context),
                Err(damage) => {
                    let rest = self.show.finish();
                    print(&rest)?;
                    return Err(unreadable(&LogError::of(self.path, damage)));
                }
            }
        }
        Ok(())
    }

    /// Learns who writes, whether that is over, and whose calls there are.
    fn look_at(&mut self, record: &Record) -> Result<(), Damage> {
        self.names.take(record)?;
        match record.kind {
            Kind::Session => {
                self.has_ended = false;
                self.writer = Some(record.metadata::<SessionStart>()?.process());
            }
            Kind::SessionEnd => self.has_ended = true,
            _ => {}
        }
        Ok(())
    }

    /// The text of a record, with its line break; nothing where there is nothing to show yet.
    fn take(&mut self, record: &Record) -> Result<String, Damage> {
        let mut content = || content(&record.content, &self.log);
        if self.format == LogFormat::Text {
            return self.show.take(record, &mut content);
        }
        let named = match record.kind {
            Kind::ToolCall if !self.filter.is_open() => content().ok(),
            _ => None,
        };
        let keeps = self.filter.keeps(record, named.as_deref())?;
        Ok(if keeps {
            format!("{}\n", self.records.last_line())
        } else {
            String::new()
        })
    }

    /// A log that is followed must stay where it is.
    fn check_place(&self) -> Result<(), Failure> {
        let is_same = identity(self.path) == self.identity;
        let len = fs::metadata(self.path).map_or(0, |metadata| metadata.len());
        if is_same && len >= self.records.offset() {
            return Ok(());
        }
        let path = self.path.display();
        Err(Failure::new(
            Exit::Log,
            format!("the session log {path} was removed, replaced or cut while it was read"),
        )
        .with_hint("begin anew: `toolq log show`"))
    }
}

/// The content as JSON, or what stands in its place.
fn content(body: &Body, log: &Path) -> Result<String, String> {
    if body.is_stored() && body.len() > LARGEST {
        return Err(format!(
            "{} in a file beside the log",
            format_bytes(body.len())
        ));
    }
    let loaded = body.load(log);
    loaded
        .map(|json| json.get().to_owned())
        .map_err(|error| error.to_string())
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

fn print(text: &str) -> Result<(), Failure> {
    match text.strip_suffix('\n') {
        Some(lines) => Ok(stdout::line(lines)?),
        None => Ok(()),
    }
}
