//! Starts a program that another process talks to through stdin and stdout: toolq only passes the bytes on.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::io::Errno;

#[cfg(target_os = "linux")]
use crate::command::supervised_child::SupervisedChild;

use crate::command::child::ChildProcess;
use crate::command::direct_child::DirectChild;
use crate::command::pipes::ProxiedEnds;
use crate::command::program_lookup;
use crate::command::runner::CommandRunner;
use crate::timing::SERVER_GRACE;
use procfence::{ResourceLimits, SpawnRequest, spawn};

impl CommandRunner {
    /// Starts `argv` in the current directory, with toolq's own environment and stderr: as if toolq weren't there. If a
    /// reaper starts it, a failure only shows in its exit: `ChildExit::NotStarted`.
    ///
    /// # Errors
    /// Nothing was started.
    pub(crate) async fn start_proxied(
        &self,
        argv: &[OsString],
    ) -> io::Result<(ChildProcess, ProxiedEnds)> {
        let request = self.proxied_request(argv)?;
        let (ours, theirs) = ProxiedEnds::new()?;
        let descriptors = theirs.descriptors();
        let mut child = match &self.reaper_pools {
            #[cfg(not(target_os = "linux"))]
            Some(never) => match *never {},
            #[cfg(target_os = "linux")]
            Some(reaper_pools) => {
                let pool = reaper_pools.pool(false);
                let started = SupervisedChild::start(pool, &request, &descriptors);
                ChildProcess::Supervised(started.await?)
            }
            None => {
                let started = spawn(&request, &descriptors);
                ChildProcess::Direct(DirectChild::new(
                    started.map_err(io::Error::from_raw_os_error)?,
                ))
            }
        };
        child.register(&self.groups);
        Ok((child, ours))
    }

    fn proxied_request(&self, argv: &[OsString]) -> io::Result<SpawnRequest> {
        let program = argv.first().and_then(|program| program.to_str());
        let program = program.ok_or(io::ErrorKind::InvalidInput)?;
        let current_dir = std::env::current_dir()?;
        let path_variable = self.environment.get_os("PATH");
        let declared_path = current_dir.join(program);
        let path = program_lookup::find_program(program, &declared_path, path_variable)
            .map_err(|errno| start_error(errno.raw_os_error(), &declared_path))?;
        let variables = self.environment.iter().map(|(name, value)| {
            let variable = [name.as_bytes(), b"=", value.as_bytes()].concat();
            Ok(CString::new(variable)?)
        });
        Ok(SpawnRequest {
            path: to_c_string(path.as_os_str())?,
            argv: argv
                .iter()
                .map(|argument| to_c_string(argument))
                .collect::<io::Result<_>>()?,
            env: variables.collect::<io::Result<_>>()?,
            cwd: to_c_string(current_dir.as_os_str())?,
            limits: ResourceLimits::default(),
            sandbox: None,
            host_exit_grace: SERVER_GRACE,
            reports_pid: false,
        })
    }
}

fn start_error(errno: i32, path: &Path) -> io::Error {
    io::Error::from_raw_os_error(program_lookup::refine_start_error(errno, path))
}

fn to_c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| Errno::INVAL.into())
}
