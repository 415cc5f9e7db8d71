//! Builds and applies filters of system calls (seccomp). This file contains unsafe code.

use std::io;
use std::mem::offset_of;

use libc::{seccomp_data, sock_filter};

/// From here on, `x86_64` has the same calls again, for programs with short pointers (x32), with other numbers.
const FIRST_X32_NUMBER: u32 = 0x4000_0000;

/// The architecture whose system calls are filtered. A program for another one, such as a 32-bit program, is killed: its
/// calls have other numbers.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xC000_003E)
} else if cfg!(target_arch = "aarch64") {
    Some(0xC000_00B7)
} else {
    None
};

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const JUMP_IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const JUMP_IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// A system call, the position of one of its arguments, and the bits of it that count. Arguments that the kernel takes as
/// 32 bits have only those.
pub(crate) type CallArgument = (libc::c_long, usize, u32);

/// A filter that isn't complete. It looks at a [`seccomp_data`], and between the rules, the number of the call is loaded.
#[derive(Debug)]
pub(crate) struct FilterProgram(Vec<sock_filter>);

/// A filter of system calls.
#[derive(Debug)]
pub(crate) struct SystemCallFilter(Vec<sock_filter>);

impl FilterProgram {
    /// Begins a filter that only refuses what is made for other architectures.
    ///
    /// # Errors
    /// This architecture isn't known.
    pub(crate) fn new() -> io::Result<Self> {
        let architecture = ARCHITECTURE.ok_or(io::ErrorKind::Unsupported)?;
        let instructions = vec![
            load(offset_of!(seccomp_data, arch))?,
            jump(JUMP_IF_EQUAL, architecture, 1, 0),
            instruction(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
            load_number()?,
            jump(JUMP_IF_AT_LEAST, FIRST_X32_NUMBER, 0, 1),
            // As from a kernel without them.
            refusal(libc::ENOSYS),
        ];
        Ok(Self(instructions))
    }

    /// Refuses these calls.
    pub(crate) fn refuse(&mut self, calls: &[libc::c_long], errno: libc::c_int) -> io::Result<()> {
        for call in calls {
            self.0.push(jump(JUMP_IF_EQUAL, number(*call)?, 0, 1));
            self.0.push(refusal(errno));
        }
        Ok(())
    }

    /// Refuses a call unless an argument has one of these values.
    pub(crate) fn allow_only(
        &mut self,
        argument: CallArgument,
        values: &[u32],
        errno: libc::c_int,
    ) -> io::Result<()> {
        let count = u8::try_from(values.len()).map_err(io::Error::other)?;
        let comparisons = (0..count).rev().zip(values);
        // Skips the other comparisons, and the refusal.
        let comparisons = comparisons.map(|(left, value)| jump(JUMP_IF_EQUAL, *value, left + 1, 0));
        let block = comparisons.chain([refusal(errno)]).collect();
        self.add_argument_rule(argument, block)
    }

    /// Refuses a call if an argument has one of these values.
    pub(crate) fn refuse_values(
        &mut self,
        argument: CallArgument,
        values: &[u32],
        errno: libc::c_int,
    ) -> io::Result<()> {
        let comparisons = values
            .iter()
            .flat_map(|value| [jump(JUMP_IF_EQUAL, *value, 0, 1), refusal(errno)]);
        self.add_argument_rule(argument, comparisons.collect())
    }

    /// Adds instructions that look at an argument of one call.
    fn add_argument_rule(
        &mut self,
        (call, position, bits): CallArgument,
        comparisons: Vec<sock_filter>,
    ) -> io::Result<()> {
        let mut block = vec![
            // The lower half of the argument, since these architectures are little-endian.
            load(offset_of!(seccomp_data, args) + size_of::<u64>() * position)?,
            instruction(AND, bits),
        ];
        block.extend(comparisons);
        block.push(load_number()?);
        let length = u8::try_from(block.len()).map_err(io::Error::other)?;
        self.0.push(jump(JUMP_IF_EQUAL, number(call)?, 0, length));
        self.0.extend(block);
        Ok(())
    }

    /// Completes the filter: it allows everything else.
    pub(crate) fn finish(mut self) -> SystemCallFilter {
        self.0.push(instruction(RETURN, libc::SECCOMP_RET_ALLOW));
        SystemCallFilter(self.0)
    }
}

impl SystemCallFilter {
    /// Filters the system calls of this process, which must be unable to gain privileges, and of all that it starts.
    ///
    /// # Errors
    /// The kernel has no filters.
    pub(crate) fn apply(&self) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: u16::try_from(self.0.len()).map_err(io::Error::other)?,
            filter: self.0.as_ptr().cast_mut(),
        };
        // SAFETY: the kernel only reads the program, whose length is given.
        let result = unsafe {
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            )
        };
        if result == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

fn load_number() -> io::Result<sock_filter> {
    load(offset_of!(seccomp_data, nr))
}

fn load(offset: usize) -> io::Result<sock_filter> {
    let offset = u32::try_from(offset).map_err(io::Error::other)?;
    Ok(instruction(LOAD, offset))
}

fn refusal(errno: libc::c_int) -> sock_filter {
    instruction(RETURN, libc::SECCOMP_RET_ERRNO | errno.unsigned_abs())
}

/// Returns a jump over this many instructions if the comparison holds, and this many if it doesn't.
fn jump(comparison: u32, value: u32, if_so: u8, if_not: u8) -> sock_filter {
    sock_filter {
        jt: if_so,
        jf: if_not,
        ..instruction(comparison, value)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the codes of instructions fit into 16 bits"
)]
fn instruction(code: u32, value: u32) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k: value,
    }
}

/// Returns the number of a system call as the filter sees it.
fn number(call: libc::c_long) -> io::Result<u32> {
    u32::try_from(call).map_err(io::Error::other)
}
