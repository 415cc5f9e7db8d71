//! System calls that have no safe interface.

use std::io;

/// Memory that processes share by a number.
pub struct SharedMemory {
    pub key: i32,
    pub id: i32,
}

impl SharedMemory {
    /// Creates a piece of memory with this content.
    pub fn create(content: &[u8]) -> io::Result<Self> {
        let key = fastrand::i32(0x5000_0000..);
        let flags = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;
        // SAFETY: this only takes numbers.
        let id = check(unsafe { libc::shmget(key, 4096, flags) }.into())?;
        let id = i32::try_from(id).unwrap();
        let memory = attach(id)?;
        // SAFETY: a page is mapped there.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), memory, content.len()) };
        Ok(Self { key, id })
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: no buffer is needed to remove it.
        unsafe { libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// Reads the beginning of the memory with this key.
pub fn read_shared_memory(key: i32, length: usize) -> io::Result<Vec<u8>> {
    // SAFETY: this only takes numbers.
    let id = check(unsafe { libc::shmget(key, 4096, 0o600) }.into())?;
    read_memory_by_number(i32::try_from(id).unwrap(), length)
}

/// As [`read_shared_memory`], by the number that the system gave it.
pub fn read_memory_by_number(id: i32, length: usize) -> io::Result<Vec<u8>> {
    let memory = attach(id)?;
    // SAFETY: a page is mapped there.
    Ok(unsafe { std::slice::from_raw_parts(memory, length) }.to_vec())
}

fn attach(id: i32) -> io::Result<*mut u8> {
    // SAFETY: the system chooses the address.
    let memory = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    if memory.addr() == usize::MAX {
        return Err(io::Error::last_os_error());
    }
    Ok(memory.cast())
}

/// Makes a system call that only takes numbers, or pointers to memory that is valid for it.
///
/// # Safety
/// The arguments are what the call expects.
pub unsafe fn call(number: libc::c_long, arguments: [usize; 5]) -> io::Result<i64> {
    let [first, second, third, fourth, fifth] = arguments;
    // SAFETY: as the caller says.
    check(unsafe { libc::syscall(number, first, second, third, fourth, fifth) })
}

/// Returns the result of a system call, or its error.
pub fn check(result: i64) -> io::Result<i64> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
