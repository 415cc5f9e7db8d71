//! The least that running commands can cost: `posix_spawn`, two pipes, and poll, in one thread, a few at a time.
//!
//! std uses `posix_spawn` if only pipes are requested (a loop around libc's own call isn't faster). Inputs aren't
//! validated, nothing is logged, and there are no timeouts. Outputs are printed in the order of the lines.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};

use crate::Result;

/// A running command.
struct RunningCommand {
    line: usize,
    child: Child,
    stdout: ChildStdout,
}

/// A file that grows by the size of a record, with an fsync each time: the least that a durable log can cost.
struct SyncedFile(File);

impl SyncedFile {
    fn append_synced(&mut self) -> io::Result<()> {
        self.0.write_all(&[b'x'; 400])?;
        self.0.sync_data()
    }
}

/// Runs `command` for each line of `lines`, `jobs` at a time. A line is appended to `synced` at each start and end.
///
/// # Errors
/// A command can't be started or fails, or a line doesn't fit into the buffer of a pipe.
pub fn run(jobs: usize, synced: Option<&Path>, lines: &Path, command: &[OsString]) -> Result<()> {
    let mut synced = synced.map(File::create).transpose()?.map(SyncedFile);
    let text = fs::read_to_string(lines)?;
    let mut waiting = text.lines().enumerate();
    let mut outputs = vec![Vec::new(); text.lines().count()];
    let mut running = Vec::with_capacity(jobs);
    loop {
        while running.len() < jobs
            && let Some((line, input)) = waiting.next()
        {
            append_synced(&mut synced)?;
            running.push(start_command(line, input, command)?);
        }
        if running.is_empty() {
            break;
        }
        for index in wait_for_output(&running)?.into_iter().rev() {
            let RunningCommand { line, stdout, .. } = &mut running[index];
            if read_some(stdout, &mut outputs[*line])? == 0 {
                wait_for_success(running.swap_remove(index))?;
                append_synced(&mut synced)?;
            }
        }
    }
    let mut stdout = io::stdout().lock();
    for output in outputs {
        stdout.write_all(&output)?;
        stdout.write_all(b"\n")?;
    }
    Ok(())
}

fn append_synced(synced: &mut Option<SyncedFile>) -> io::Result<()> {
    synced.as_mut().map_or(Ok(()), SyncedFile::append_synced)
}

/// Starts a command and writes all its input at once: it fits into the pipe's buffer (64 KiB), so this doesn't block.
fn start_command(line: usize, input: &str, command: &[OsString]) -> Result<RunningCommand> {
    let (Some(program), true) = (command.first(), input.len() <= 1 << 16) else {
        return Err("no command given, or a line is longer than 64 KiB".into());
    };
    let mut child = Command::new(program)
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let stdout = child.stdout.take().ok_or("the command has no stdout")?;
    Ok(RunningCommand {
        line,
        child,
        stdout,
    })
}

/// Waits until some commands have written or closed their output, and returns their indices in ascending order.
fn wait_for_output(running: &[RunningCommand]) -> Result<Vec<usize>> {
    let mut poll_fds: Vec<PollFd<'_>> = running
        .iter()
        .map(|command| PollFd::new(&command.stdout, PollFlags::IN))
        .collect();
    poll(&mut poll_fds, None)?;
    Ok((0..running.len())
        .filter(|&index| !poll_fds[index].revents().is_empty())
        .collect())
}

fn read_some(stdout: &mut ChildStdout, output: &mut Vec<u8>) -> io::Result<usize> {
    let mut buffer = [0; 1 << 14];
    let count = stdout.read(&mut buffer)?;
    output.extend_from_slice(&buffer[..count]);
    Ok(count)
}

fn wait_for_success(mut command: RunningCommand) -> Result<()> {
    let status = command.child.wait()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the command ended with {status}").into())
    }
}
