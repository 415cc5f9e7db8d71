//! Attempts to read and change files.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timestamps, XattrFlags};

use crate::sandbox::attempts::{AttemptResult, expect_canary};
use crate::sandbox::outside::Facts;
use crate::sandbox::system_calls::call;

pub fn read_through_symlink(place: &Path, _: &Facts) -> AttemptResult {
    let _ = fs::remove_file("link");
    symlink(place.join("canary"), "link")?;
    expect_canary(fs::read("link")?)
}

pub fn read_through_hard_link(place: &Path, _: &Facts) -> AttemptResult {
    let _ = fs::remove_file("hard");
    fs::hard_link(place.join("canary"), "hard")?;
    expect_canary(fs::read("hard")?)
}

pub fn read_through_victim(place: &Path, facts: &Facts) -> AttemptResult {
    let path = format!("/proc/{}/root{}/canary", facts.victim(), place.display());
    expect_canary(fs::read(path)?)
}

/// Enters the directory first, which Landlock allows.
pub fn read_from_inside(place: &Path, _: &Facts) -> AttemptResult {
    std::env::set_current_dir(place)?;
    expect_canary(fs::read("canary")?)
}

/// Opens the file without any right to read it, and then again through that descriptor.
pub fn read_by_reopening(place: &Path, _: &Facts) -> AttemptResult {
    let flags = rustix::fs::OFlags::PATH;
    let opened = rustix::fs::open(place.join("canary"), flags, Mode::empty())?;
    expect_canary(fs::read(format!("/proc/self/fd/{}", opened.as_raw_fd()))?)
}

/// Opens the file by its handle, past all directories.
pub fn read_by_handle(place: &Path, _: &Facts) -> AttemptResult {
    let path = CString::new(place.join("canary").as_os_str().as_bytes())?;
    // A `struct file_handle`, which begins with the size of the handle.
    let mut handle = [0_u32; 34];
    handle[0] = 128;
    let mut mount = 0_i32;
    // SAFETY: all pointers are to memory of the expected size.
    unsafe {
        let handle = handle.as_mut_ptr();
        let arguments = [
            libc::AT_FDCWD as usize,
            path.as_ptr().addr(),
            handle.addr(),
            (&raw mut mount).addr(),
            0,
        ];
        call(libc::SYS_name_to_handle_at, arguments)?;
        let root = File::open(".")?;
        let opened = call(
            libc::SYS_open_by_handle_at,
            [root.as_raw_fd() as usize, handle.addr(), 0, 0, 0],
        )?;
        expect_canary(fs::read(format!("/proc/self/fd/{opened}"))?)
    }
}

/// Has the kernel copy the file.
pub fn read_by_sharing(place: &Path, _: &Facts) -> AttemptResult {
    let from = File::open(place.join("canary"))?;
    let mut to = File::create("copy")?;
    let mut bytes = Vec::new();
    rustix::fs::copy_file_range(&from, None, &to, None, 6)?;
    to.flush()?;
    File::open("copy")?.read_to_end(&mut bytes)?;
    expect_canary(bytes)
}

pub fn list_directory(place: &Path, _: &Facts) -> AttemptResult {
    let mut names = fs::read_dir(place)?
        .flatten()
        .map(|entry| entry.file_name());
    if names.any(|name| name == "canary") {
        Ok(())
    } else {
        Err("the canary isn't listed".into())
    }
}

pub fn append(place: &Path, _: &Facts) -> AttemptResult {
    let mut file = OpenOptions::new().append(true).open(place.join("canary"))?;
    Ok(file.write_all(b"x")?)
}

pub fn truncate(place: &Path, _: &Facts) -> AttemptResult {
    let path = CString::new(place.join("canary").as_os_str().as_bytes())?;
    // SAFETY: the path ends with a NUL.
    unsafe { call(libc::SYS_truncate, [path.as_ptr().addr(), 0, 0, 0, 0])? };
    Ok(())
}

pub fn rename_into_root(place: &Path, _: &Facts) -> AttemptResult {
    fs::rename(place.join("canary"), "canary")?;
    expect_canary(fs::read("canary")?)
}

/// Takes something out of the root, to where another program obeys it.
pub fn rename_out_of_root(place: &Path, _: &Facts) -> AttemptResult {
    fs::write("mine", "x")?;
    Ok(fs::rename("mine", place.join("mine"))?)
}

pub fn exchange(place: &Path, _: &Facts) -> AttemptResult {
    fs::write("mine", "x")?;
    let flags = rustix::fs::RenameFlags::EXCHANGE;
    rustix::fs::renameat_with(CWD, "mine", CWD, place.join("canary"), flags)?;
    expect_canary(fs::read("mine")?)
}

pub fn link_out_of_root(place: &Path, _: &Facts) -> AttemptResult {
    fs::write("mine", "x")?;
    Ok(fs::hard_link("mine", place.join("mine"))?)
}

/// Makes the device of the disk, or any other.
pub fn make_device(_: &Path, _: &Facts) -> AttemptResult {
    let _ = fs::remove_file("device");
    let device = rustix::fs::makedev(1, 3);
    Ok(rustix::fs::mknodat(
        CWD,
        "device",
        FileType::CharacterDevice,
        Mode::RUSR,
        device,
    )?)
}

/// Changes the mode of a file that only its owner may read.
pub fn change_mode(place: &Path, _: &Facts) -> AttemptResult {
    Ok(rustix::fs::chmodat(
        CWD,
        place.join("canary"),
        Mode::from_raw_mode(0o777),
        AtFlags::empty(),
    )?)
}

pub fn change_times(place: &Path, _: &Facts) -> AttemptResult {
    let time = rustix::fs::Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    Ok(rustix::fs::utimensat(
        CWD,
        place.join("canary"),
        &times,
        AtFlags::empty(),
    )?)
}

pub fn change_attributes(place: &Path, _: &Facts) -> AttemptResult {
    Ok(rustix::fs::setxattr(
        place.join("canary"),
        "user.note",
        b"x",
        XattrFlags::empty(),
    )?)
}

/// Sends requests that would change a file in the root, which a reader may only open for reading. What they would change it to
/// is missing, so none of them does any harm. Any other answer than a refusal is one of the file system.
pub fn send_requests(_: &Path, _: &Facts) -> AttemptResult {
    const REQUESTS: [u32; 10] = [
        0x4004_7211, // FAT_IOCTL_SET_ATTRIBUTES
        0x4004_9409, // FICLONE
        0x4008_6602, // FS_IOC_SETFLAGS
        0x4008_7602, // FS_IOC_SETVERSION
        0x401C_5820, // FS_IOC_FSSETXATTR
        0x4080_6685, // FS_IOC_ENABLE_VERITY
        0x5000_9401, // BTRFS_IOC_SNAP_CREATE
        0x6609,      // EXT4_IOC_MIGRATE
        0x800C_6613, // FS_IOC_SET_ENCRYPTION_POLICY
        0xC050_6617, // FS_IOC_ADD_ENCRYPTION_KEY
    ];
    let file = File::open("notes.txt")?;
    for request in REQUESTS {
        let nothing = std::ptr::null::<u8>();
        // SAFETY: nothing is read or written at this address, which is never mapped.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), request.into(), nothing) };
        if answer != -1 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EPERM) {
            return Ok(());
        }
    }
    Err("each is refused".into())
}

/// Asks what a file is: no sandbox refuses that, though not every file system has an answer.
pub fn send_reading_requests(file: &File) -> AttemptResult {
    rustix::io::ioctl_fionread(file)?;
    match rustix::fs::ioctl_getflags(file) {
        Err(rustix::io::Errno::PERM) => Err("its flags can't be read".into()),
        _ => Ok(()),
    }
}

/// Opens a setting of the kernel, without changing it.
pub fn open_kernel_setting(_: &Path, _: &Facts) -> AttemptResult {
    OpenOptions::new()
        .write(true)
        .open("/proc/sys/kernel/core_pattern")?;
    Ok(())
}
