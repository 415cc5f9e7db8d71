//! Encodes spawn requests for the reaper.

use std::ffi::CStr;
use std::time::Duration;

use crate::limits::ResourceLimits;
use crate::protocol::encode_millis;
use crate::sandbox::ProgramSandbox;
use crate::spawn::SpawnRequest;

/// How a limit of `None` is encoded.
const NO_LIMIT: u64 = u64::MAX;

/// Writes the limits, the grace period, whether the process id is reported, the number of arguments, and the number of
/// strings of the sandbox (0 without a sandbox), then all strings, each with its trailing NUL.
pub(crate) fn write_spawn_request(spawn_request: &SpawnRequest, bytes: &mut Vec<u8>) {
    let ResourceLimits {
        cpu,
        memory,
        files,
        processes,
        file_size,
    } = spawn_request.limits;
    let cpu = cpu.map(|cpu| cpu.as_secs());
    for limit in [cpu, memory, files, processes, file_size] {
        bytes.extend(limit.unwrap_or(NO_LIMIT).to_le_bytes());
    }
    bytes.extend(encode_millis(spawn_request.host_exit_grace));
    let sandbox = spawn_request.sandbox.as_ref();
    let sandbox = sandbox.map(ProgramSandbox::to_strings).unwrap_or_default();
    bytes.extend(u64::from(spawn_request.reports_pid).to_le_bytes());
    for count in [spawn_request.argv.len(), sandbox.len()] {
        bytes.extend((count as u64).to_le_bytes());
    }
    let strings = [&spawn_request.path, &spawn_request.cwd]
        .into_iter()
        .chain(&spawn_request.argv)
        .chain(&sandbox)
        .chain(&spawn_request.env);
    strings.for_each(|string| bytes.extend(string.as_bytes_with_nul()));
}

/// Returns `None` if the bytes aren't a request.
pub(crate) fn parse_spawn_request(body: &[u8]) -> Option<SpawnRequest> {
    let (numbers, strings) = body.split_first_chunk::<72>()?;
    let mut numbers = numbers
        .as_chunks::<8>()
        .0
        .iter()
        .copied()
        .map(u64::from_le_bytes);
    let mut limit = || numbers.next().filter(|limit| *limit != NO_LIMIT);
    let limits = ResourceLimits {
        cpu: limit().map(Duration::from_secs),
        memory: limit(),
        files: limit(),
        processes: limit(),
        file_size: limit(),
    };
    let host_exit_grace = Duration::from_millis(limit()?);
    let reports_pid = limit()? == 1;
    let argument_count = usize::try_from(limit()?).ok()?;
    let sandbox_count = usize::try_from(limit()?).ok()?;
    let strings = strings.split_inclusive(|byte| *byte == 0);
    let mut strings = strings
        .map_while(|text| CStr::from_bytes_with_nul(text).ok())
        .map(CStr::to_owned);
    Some(SpawnRequest {
        path: strings.next()?,
        cwd: strings.next()?,
        argv: strings.by_ref().take(argument_count).collect(),
        sandbox: match sandbox_count {
            0 => None,
            count => Some(ProgramSandbox::from_strings(strings.by_ref().take(count))?),
        },
        env: strings.collect(),
        limits,
        host_exit_grace,
        reports_pid,
    })
}
