//! The attempts to get out, and the work that every program does first.

mod files;
mod network;
mod processes;

use std::error::Error;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use crate::sandbox::outside::{CANARY, Facts};

/// Whether an attempt got out, or why it couldn't.
pub type AttemptResult = Result<(), Box<dyn Error>>;

/// An attempt to get out.
pub struct Attempt {
    pub name: &'static str,
    pub tool: Tool,
    /// What it needs that not every machine has.
    pub needs: &'static [Need],
    /// Gets the directory outside and what is to be known about the rest.
    action: fn(&Path, &Facts) -> AttemptResult,
}

/// The sandbox in which an attempt is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Reads the root.
    Reader,
    /// Reads and changes the root.
    Writer,
    /// Reads the root, and connects to one port.
    Client,
    /// Reads the root, and reaches the whole network.
    Open,
}

/// What an attempt needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The superuser runs the test.
    Superuser,
    /// The test runs on this processor.
    X86,
}

impl Attempt {
    /// Returns why the attempt can't be made here, if so.
    pub fn skip_reason(&self) -> Option<&'static str> {
        self.needs.iter().find_map(|need| match need {
            Need::Superuser if !rustix::process::geteuid().is_root() => {
                Some("only the superuser could get out this way")
            }
            Need::X86 if !cfg!(target_arch = "x86_64") => Some("it is about x86"),
            _ => None,
        })
    }
}

macro_rules! attempts {
    ($($name:ident $tool:ident $([$($need:ident),*])? => $action:expr;)*) => {
        /// All attempts.
        pub const ALL: &[Attempt] = &[$(Attempt {
            name: stringify!($name),
            tool: Tool::$tool,
            needs: &[$($(Need::$need),*)?],
            action: $action,
        }),*];
    };
}

attempts! {
    reads_a_file Writer => |place, _| expect_canary(fs::read(place.join("canary"))?);
    reads_from_inside_its_directory Writer => files::read_from_inside;
    reads_through_a_symlink Writer => files::read_through_symlink;
    reads_through_a_hard_link Writer => files::read_through_hard_link;
    reads_through_proc_self_root Writer => |place, _| expect_canary(fs::read(below("/proc/self/root", place))?);
    reads_through_proc_self_cwd Writer => |place, _| expect_canary(fs::read(below("/proc/self/cwd/../../../..", place))?);
    reads_through_the_root_of_a_process Writer => files::read_through_victim;
    reads_by_reopening_a_descriptor Writer => files::read_by_reopening;
    reads_by_handle Writer [Superuser] => files::read_by_handle;
    reads_by_copying_ranges Writer => files::read_by_sharing;
    lists_a_directory Writer => files::list_directory;
    writes_a_file Writer => |place, _| Ok(fs::write(place.join("new"), "x")?);
    appends_to_a_file Writer => files::append;
    truncates_a_file Writer => files::truncate;
    removes_a_file Writer => |place, _| Ok(fs::remove_file(place.join("canary"))?);
    makes_a_directory Writer => |place, _| Ok(fs::create_dir(place.join("made"))?);
    removes_a_directory Writer => |place, _| Ok(fs::remove_dir(place.join("sub"))?);
    makes_a_symlink Writer => |place, _| Ok(symlink("/", place.join("made"))?);
    renames_a_file_into_the_root Writer => files::rename_into_root;
    renames_a_file_out_of_the_root Writer => files::rename_out_of_root;
    exchanges_two_files Writer => files::exchange;
    links_a_file_out_of_the_root Writer => files::link_out_of_root;
    makes_a_device Writer [Superuser] => files::make_device;
    opens_a_setting_of_the_kernel Writer [Superuser] => files::open_kernel_setting;
    writes_to_the_root_as_a_reader Reader => |_, _| Ok(fs::write("new", "x")?);
    changes_a_mode Reader => files::change_mode;
    changes_times Reader => files::change_times;
    changes_attributes Reader => files::change_attributes;
    sends_requests_to_a_file Reader => files::send_requests;
    connects_over_tcp Writer => |_, facts| network::connect(facts.port("tcp"));
    binds_a_port Writer => network::bind;
    sends_a_datagram Writer => network::send_datagram;
    connects_to_a_unix_socket Writer => network::connect_to_path;
    connects_to_an_abstract_unix_socket Writer => network::connect_to_abstract_name;
    sends_a_datagram_from_a_pair_of_sockets Writer => network::send_from_pair;
    sends_a_datagram_from_a_pair_as_a_client Client => network::send_from_pair;
    opens_a_unix_datagram_socket Writer => network::open_unix_datagram;
    opens_a_socket_of_another_family Writer => network::open_other_family;
    sets_up_an_io_uring Writer => network::set_up_io_uring;
    makes_a_32_bit_system_call Writer [X86] => processes::call_as_32_bit_program;
    connects_to_another_port Client => |_, facts| network::connect(facts.port("other_tcp"));
    binds_a_port_as_a_client Client => network::bind;
    listens_as_a_client Client => network::listen;
    sends_a_datagram_as_a_client Client => network::send_datagram;
    connects_to_a_unix_socket_as_a_client Client => network::connect_to_path;
    connects_by_fast_open Client => network::send_with_fast_open;
    connects_over_multipath_tcp Client => network::connect_with_other_protocol;
    opens_a_raw_socket_as_a_client Client [Superuser] => network::open_raw_socket;
    connects_to_an_abstract_unix_socket_with_network Open => network::connect_to_abstract_name;
    signals_a_process Writer => processes::signal;
    signals_a_process_by_descriptor Writer => processes::signal_by_descriptor;
    limits_a_process Writer => processes::limit_process;
    binds_a_process_to_its_processors Writer => processes::bind_to_processors;
    sets_the_policy_of_a_process Writer => |_, facts| processes::schedule(libc::SYS_sched_setscheduler, facts);
    sets_the_parameters_of_a_process Writer => |_, facts| processes::schedule(libc::SYS_sched_setparam, facts);
    sets_the_scheduling_of_a_process Writer => |_, facts| processes::schedule(libc::SYS_sched_setattr, facts);
    sets_the_priority_of_a_process Writer => |_, facts| processes::schedule(libc::SYS_setpriority, facts);
    sets_the_input_priority_of_a_process Writer => |_, facts| processes::schedule(libc::SYS_ioprio_set, facts);
    traces_a_process Writer => processes::trace;
    reads_the_memory_of_a_process Writer => processes::read_memory;
    reads_the_environment_of_a_process Writer => processes::read_environment;
    takes_a_descriptor_of_a_process Writer => processes::take_descriptor;
    offers_a_process_to_the_oom_killer Writer => processes::offer_to_oom_killer;
    reads_an_inherited_descriptor Writer => processes::read_inherited_descriptor;
    reads_shared_memory Writer => processes::read_shared;
    reads_shared_memory_by_its_number Writer => processes::read_shared_by_number;
    opens_a_message_queue Writer => processes::open_message_queue;
    uses_the_keys_of_the_user Writer => processes::use_keys;
    reads_through_a_clone_of_a_mount Writer => processes::read_from_cloned_mount;
    mounts_in_a_namespace Writer => processes::mount_in_namespace;
    reads_in_a_namespace Writer => processes::read_in_namespace;
    mounts_as_the_superuser Writer [Superuser] => processes::mount;
    changes_its_root Writer [Superuser] => processes::change_root;
    runs_a_setuid_program Writer [Superuser] => processes::run_setuid_program;
    runs_a_program_outside Writer => processes::run_program_outside;
    reads_as_a_daemon Writer => processes::read_as_daemon;
}

/// Does the allowed work, then makes the attempt, and prints how both went.
pub fn play(name: &str, place: &Path) {
    let attempt = ALL.iter().find(|attempt| attempt.name == name).unwrap();
    let facts = Facts::read();
    match do_work(name, place) {
        Ok(()) => println!("worked"),
        Err(error) => println!("can't work: {error}"),
    }
    match (attempt.action)(place, &facts) {
        Ok(()) => println!("escaped"),
        Err(error) => println!("stayed: {error}"),
    }
}

/// What every sandbox allows: reading the root, programs, temporary files, and pairs of sockets. A writer also writes.
fn do_work(name: &str, place: &Path) -> AttemptResult {
    if fs::read_to_string("notes.txt")? != "notes" {
        return Err("the notes are gone".into());
    }
    files::send_reading_requests(&File::open("notes.txt")?)?;
    let tool = place.file_name().and_then(|name| name.to_str());
    if tool.is_some_and(|tool| tool.starts_with("writer-") || tool.starts_with("free-")) {
        fs::write(format!("by-{name}"), "work")?;
        fs::remove_file(format!("by-{name}"))?;
    }
    if tool.is_some_and(|tool| tool.starts_with("client-")) {
        network::connect(Facts::read().port("tcp"))?;
    }
    let temporary = std::env::temp_dir().join(format!("work-{}", std::process::id()));
    fs::write(&temporary, "work")?;
    fs::remove_file(&temporary)?;
    let (mut one, _other) = UnixStream::pair()?;
    one.write_all(b"work")?;
    let output = Command::new("cat").arg("notes.txt").output()?;
    if output.stdout != b"notes" {
        return Err("cat doesn't run".into());
    }
    Ok(())
}

/// Succeeds if these are the bytes that no program inside should see.
pub fn expect_canary(bytes: impl AsRef<[u8]>) -> AttemptResult {
    if bytes.as_ref().starts_with(CANARY.as_bytes()) {
        Ok(())
    } else {
        Err("something else was read".into())
    }
}

/// Returns the path of the canary, reached through another directory.
fn below(directory: &str, place: &Path) -> String {
    format!("{directory}{}/canary", place.display())
}
