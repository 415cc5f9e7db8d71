//! toolq's own part, in the worst case: a program has killed its keeper and the root above it. Then what it started
//! comes to toolq.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, waitpid};

use crate::descendants;
use crate::proc_tree;
use crate::proc_tree::Process;

/// How often is looked for strays, and the time between two looks.
const LOOKS: u32 = 100;
const LOOK: Duration = Duration::from_millis(10);

/// Every root of this process. Keepers stay in the session of theirs, programs never do.
static ROOTS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// There are keepers that let go what they have started. That is not to come here.
static LENIENT: AtomicBool = AtomicBool::new(false);

/// Takes in, from now on, who loses everybody above him below this process.
pub(crate) fn take_in(lenient: bool) {
    let lenient = LENIENT.fetch_or(lenient, Ordering::Relaxed) || lenient;
    // Where that can't be had, the roots still do their part.
    let _ = set_child_subreaper((!lenient).then(getpid));
}

/// Remembers a root.
pub(crate) fn know(root: Pid) {
    ROOTS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(root.as_raw_nonzero().get());
}

/// Ends everybody who came here because his keeper and root are gone, and looks again until nobody is left. The keepers
/// of a root that is `closed` are waited for: they end by themselves.
pub(crate) fn end(closed: Option<Pid>) {
    let roots = ROOTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let own = proc_tree::own().map(|own| own.session);
    let closed = closed.map(|root| root.as_raw_nonzero().get());
    for _ in 0..LOOKS {
        let children = proc_tree::children().into_iter();
        let strangers =
            children.filter(|child| Some(child.session) != own && !roots.contains(&child.pid));
        let (keepers, strays): (Vec<Process>, Vec<Process>) =
            strangers.partition(|child| roots.contains(&child.session));
        descendants::signal_all(Signal::KILL, &strays);
        let pids = keepers.iter().chain(&strays).map(|child| child.pid);
        for pid in pids.filter_map(Pid::from_raw) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        let is_awaited = |keeper: &Process| Some(keeper.session) == closed;
        if strays.is_empty() && !keepers.iter().any(is_awaited) {
            return;
        }
        thread::sleep(LOOK);
    }
}
