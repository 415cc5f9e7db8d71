//! The least that running commands costs: `posix_spawn`, two pipes and poll, in one thread, a few at a time.
//!
//! std starts a program by `posix_spawn` where nothing but pipes is asked for (a loop over libc's own call is no faster).
//! No input is validated, nothing is logged, no time runs out; outputs are printed in the order of the lines.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};

use super::synced::Synced;
use crate::Result;

/// A command that runs.
struct Running {
    line: usize,
    child: Child,
    stdout: ChildStdout,
}

/// Runs `command` for each line of `lines`, `jobs` at a time; `synced` is told of each start and end.
///
/// # Errors
/// A command can't be started or fails, or a line is longer than a pipe takes at once.
pub fn run(jobs: usize, synced: Option<&Path>, lines: &Path, command: &[OsString]) -> Result<()> {
    let mut synced = synced.map(Synced::new).transpose()?;
    let text = fs::read_to_string(lines)?;
    let mut waiting = text.lines().enumerate();
    let mut outputs = vec![Vec::new(); text.lines().count()];
    let mut running = Vec::with_capacity(jobs);
    loop {
        while running.len() < jobs
            && let Some((line, input)) = waiting.next()
        {
            tell(&mut synced)?;
            running.push(start(line, input, command)?);
        }
        if running.is_empty() {
            break;
        }
        for place in readable(&running)?.into_iter().rev() {
            let Running { line, stdout, .. } = &mut running[place];
            if read_some(stdout, &mut outputs[*line])? == 0 {
                end(running.swap_remove(place))?;
                tell(&mut synced)?;
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

fn tell(synced: &mut Option<Synced>) -> io::Result<()> {
    synced.as_mut().map_or(Ok(()), Synced::tell)
}

/// Starts a command and writes all of its input, which a pipe's buffer (64 KiB) takes without waiting.
fn start(line: usize, input: &str, command: &[OsString]) -> Result<Running> {
    let (Some(program), true) = (command.first(), input.len() <= 1 << 16) else {
        return Err("there is no command, or a line is too long".into());
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
    Ok(Running {
        line,
        child,
        stdout,
    })
}

/// Waits until some have written or closed their output; their places, in order.
fn readable(running: &[Running]) -> Result<Vec<usize>> {
    let mut ready: Vec<PollFd<'_>> = running
        .iter()
        .map(|one| PollFd::new(&one.stdout, PollFlags::IN))
        .collect();
    poll(&mut ready, None)?;
    Ok((0..running.len())
        .filter(|&place| !ready[place].revents().is_empty())
        .collect())
}

fn read_some(stdout: &mut ChildStdout, output: &mut Vec<u8>) -> io::Result<usize> {
    let mut buffer = [0; 1 << 14];
    let count = stdout.read(&mut buffer)?;
    output.extend_from_slice(&buffer[..count]);
    Ok(count)
}

fn end(mut ended: Running) -> Result<()> {
    let status = ended.child.wait()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the command ended with {status}").into())
    }
}
