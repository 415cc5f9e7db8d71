//! Programs that run another program from their arguments.

/// A program that runs another program, and where in its arguments that is.
#[derive(Clone, Copy)]
pub(crate) struct Wrapper {
    /// Its names, without a version suffix.
    names: &'static [&'static str],
    /// The subcommand that runs a program, for a program that does other things, too.
    subcommand: Option<&'static str>,
    /// Options whose value is the next element, separated by spaces. All others are flags.
    value_options: &'static str,
    /// Number of operands before the program.
    pub(crate) operands: usize,
    /// Whether `NAME=value` may stand before the program.
    pub(crate) takes_variables: bool,
}

const fn wrapper(
    names: &'static [&'static str],
    operands: usize,
    value_options: &'static str,
) -> Wrapper {
    Wrapper {
        names,
        subcommand: None,
        value_options,
        operands,
        takes_variables: false,
    }
}

const fn with_variables(wrapper: Wrapper) -> Wrapper {
    Wrapper {
        takes_variables: true,
        ..wrapper
    }
}

const fn below(subcommand: &'static str, wrapper: Wrapper) -> Wrapper {
    Wrapper {
        subcommand: Some(subcommand),
        ..wrapper
    }
}

/// Options of `docker run` and its like whose value is the next element.
pub(crate) const CONTAINER_OPTIONS: &str = "-e --env --env-file -u --user -w --workdir --detach-keys -v --volume --mount --name -p --publish \
     --network --net --entrypoint -l --label -h --hostname -m --memory --cpus --platform --restart --add-host --cap-add \
     --cap-drop --device --dns --gpus --ipc --pid --pull --runtime --security-opt --shm-size --tmpfs --ulimit --userns \
     --volumes-from -H --host --context -c --config --log-level -f --file --project-name --profile --project-directory";

const WRAPPERS: [Wrapper; 55] = [
    with_variables(wrapper(&["env"], 0, "-u --unset -C --chdir -a --argv0")),
    wrapper(
        &["xargs"],
        0,
        "-a --arg-file -d --delimiter -E -I -J -L -n --max-args -P --max-procs -R -S -s --max-chars --process-slot-var",
    ),
    wrapper(&["flock"], 1, "-w --wait --timeout -E --conflict-exit-code"),
    wrapper(&["stdbuf"], 0, "-i --input -o --output -e --error"),
    with_variables(wrapper(
        &["sudo"],
        0,
        "-u --user -g --group -h --host -p --prompt -C --close-from -D --chdir -R --chroot -T --command-timeout -U \
         --other-user -r --role -t --type -a --auth-type",
    )),
    with_variables(wrapper(&["doas"], 0, "-u -C -a")),
    wrapper(
        &["setpriv"],
        0,
        "--ruid --euid --reuid --rgid --egid --regid --groups --inh-caps --ambient-caps --bounding-set --securebits \
         --pdeathsig --selinux-label --apparmor-profile --landlock-access --landlock-rule --seccomp-filter",
    ),
    wrapper(
        &["runuser"],
        0,
        "-u --user -g --group -G --supp-group -s --shell -w --whitelist-environment -c --command",
    ),
    wrapper(&["nice"], 0, "-n --adjustment"),
    wrapper(
        &["ionice"],
        0,
        "-c --class -n --classdata -p --pid -P --pgid -u --uid",
    ),
    wrapper(&["timeout"], 1, "-k --kill-after -s --signal"),
    // `x86_64`, without what looks like a version.
    wrapper(
        &[
            "nohup", "setsid", "busybox", "toybox", "linux", "i386", "x86_",
        ],
        0,
        "",
    ),
    wrapper(&["choom"], 0, "-n --adjust"),
    wrapper(
        &[
            "ld.so",
            "ld-linux-x86-64.so",
            "ld-linux-aarch64.so",
            "ld-linux.so",
            "ld-musl-x86_64.so",
        ],
        0,
        "--library-path --preload --audit --argv0 --inhibit-rpath --glibc-hwcaps-prepend",
    ),
    wrapper(
        &["command", "exec", "builtin", "fakeroot"],
        0,
        "-l -s -i -b -a",
    ),
    wrapper(&["time"], 0, "-f --format -o --output"),
    wrapper(
        &["chrt"],
        1,
        "-T --sched-runtime -P --sched-period -D --sched-deadline",
    ),
    wrapper(&["taskset", "numactl"], 1, ""),
    wrapper(&["chroot"], 1, "--userspec --groups"),
    wrapper(
        &["unshare"],
        0,
        "-S --setuid -G --setgid -R --root -w --wd --map-user --map-group --map-users --map-groups --propagation --monotonic --boottime",
    ),
    wrapper(&["nsenter"], 0, "-t --target -S --setuid -G --setgid"),
    wrapper(
        &["strace", "ltrace"],
        0,
        "-o --output -e -p --attach -s --string-limit -u --user -E --env -a --columns -b -I --interruptible -O -P --trace-path \
         -S --summary-sort-by -X --const-print-style -U -l -x -n -A -D -F",
    ),
    wrapper(&["valgrind", "catchsegv", "prlimit", "firejail"], 0, ""),
    wrapper(
        &[
            "gosu",
            "su-exec",
            "setuidgid",
            "s6-setuidgid",
            "envdir",
            "s6-envdir",
        ],
        1,
        "",
    ),
    wrapper(
        &["chpst"],
        0,
        "-u -U -b -e -/ -C -n -l -L -m -d -o -p -f -c -t",
    ),
    wrapper(&["softlimit"], 0, "-a -c -d -f -l -m -o -p -r -s -t"),
    wrapper(&["setarch"], 1, ""),
    wrapper(&["faketime"], 1, "-f -p"),
    wrapper(&["runcon"], 1, "-t --type -u --user -r --role -l --range"),
    wrapper(&["tini", "dumb-init", "catatonit"], 0, "-p -e -r --rewrite"),
    wrapper(
        &["xvfb-run"],
        0,
        "-e --error-file -f --auth-file -n --server-num -p --xauth-protocol -s --server-args -w --wait",
    ),
    wrapper(
        &["dbus-run-session", "ssh-agent", "aa-exec"],
        0,
        "--config-file --dbus-daemon -a -t -p --profile -n --namespace",
    ),
    wrapper(
        &["systemd-run"],
        0,
        "-p --property -u --unit -E --setenv --uid --gid --description --slice --working-directory -d --nice -H --host -M --machine \
         --on-active --on-boot --on-calendar --on-startup --service-type --background",
    ),
    wrapper(
        &["npx", "bunx", "uvx", "pnpx"],
        0,
        "-p --package -c --call -w --workspace --from --with --python",
    ),
    wrapper(
        &["proot"],
        0,
        "-r --rootfs -b --bind -m --mount -q --qemu -w --pwd --cwd -k --kernel-release",
    ),
    wrapper(
        &["catchsegv", "chronic", "ts-exec", "sem"],
        0,
        "-j --jobs --id",
    ),
    below(
        "exec",
        wrapper(&["docker", "podman", "nerdctl"], 1, CONTAINER_OPTIONS),
    ),
    // The image decides what runs, as much as the program in it.
    below(
        "run",
        wrapper(&["docker", "podman", "nerdctl"], 0, CONTAINER_OPTIONS),
    ),
    below(
        "create",
        wrapper(&["docker", "podman", "nerdctl"], 0, CONTAINER_OPTIONS),
    ),
    below(
        "exec",
        wrapper(&["docker-compose", "podman-compose"], 1, CONTAINER_OPTIONS),
    ),
    below(
        "run",
        wrapper(&["docker-compose", "podman-compose"], 1, CONTAINER_OPTIONS),
    ),
    below(
        "exec",
        wrapper(
            &["kubectl", "oc"],
            1,
            "-c --container -n --namespace -f --filename --context --kubeconfig --cluster --user --pod-running-timeout",
        ),
    ),
    below(
        "run",
        wrapper(
            &["uv", "poetry", "pipenv", "pipx", "hatch", "pdm", "rye"],
            0,
            "--with --python -p --directory --project -C",
        ),
    ),
    below(
        "run",
        wrapper(
            &["conda", "mamba", "micromamba"],
            0,
            "-n --name -p --prefix --cwd",
        ),
    ),
    below(
        "exec",
        wrapper(
            &[
                "npm", "pnpm", "yarn", "bundle", "rbenv", "pyenv", "asdf", "mise",
            ],
            0,
            "-p --package -c --call -w --workspace",
        ),
    ),
    below("dlx", wrapper(&["pnpm", "yarn"], 0, "-p --package")),
    below("exec", wrapper(&["ip"], 1, "")),
    below(
        "exec",
        wrapper(&["lxc", "incus"], 1, "--cwd --env --group --mode --user"),
    ),
    below(
        "shell",
        wrapper(&["machinectl", "multipass"], 1, "-E --setenv --uid"),
    ),
    below(
        "exec",
        wrapper(&["machinectl", "multipass"], 1, "-E --setenv --uid"),
    ),
    below(
        "run",
        wrapper(
            &["flatpak", "snap", "toolbox", "nix"],
            0,
            "-c --container --command --branch --arch",
        ),
    ),
    below(
        "enter",
        wrapper(
            &["distrobox"],
            0,
            "-n --name -e --exec -a --additional-flags",
        ),
    ),
    below(
        "record",
        wrapper(
            &["perf"],
            0,
            "-e --event -o --output -F --freq -p --pid -t --tid -u --uid -c --count -C --cpu -m",
        ),
    ),
    below(
        "stat",
        wrapper(
            &["perf"],
            0,
            "-e --event -o --output -p --pid -t --tid -r --repeat -I -C --cpu -x",
        ),
    ),
    below(
        "run",
        wrapper(
            // What follows `cargo run` and `dotnet run` are arguments of the project's own program.
            &["go", "bun", "deno"],
            0,
            "-p --package --bin --example --features --manifest-path --project --exec -C",
        ),
    ),
];

/// How many elements an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionForm {
    /// Only itself: a flag, or an option with its value attached.
    Single,
    /// Itself and the next element.
    WithNext,
}

impl Wrapper {
    /// Returns how many elements `option` takes. In a cluster of short options, the rest of the cluster after one that
    /// takes a value is that value.
    pub(crate) fn option_form(&self, option: &str) -> OptionForm {
        let takes_value = |name: &str| self.value_options.split(' ').any(|known| known == name);
        if option.starts_with("--") || option.len() == 2 || takes_value(option) {
            return if takes_value(option) {
                OptionForm::WithNext
            } else {
                OptionForm::Single
            };
        }
        let letters: Vec<char> = option.chars().skip(1).collect();
        let first_with_value = letters
            .iter()
            .position(|letter| takes_value(&format!("-{letter}")));
        if first_with_value.is_some_and(|position| position + 1 == letters.len()) {
            OptionForm::WithNext
        } else {
            OptionForm::Single
        }
    }
}

/// Strips the directory and version from a program and lowercases it: `python3.12` → `python`, `/usr/bin/env` → `env`.
/// A number that belongs to the name stays.
pub(crate) fn base_name(program: &str) -> String {
    const NAMES_WITH_NUMBERS: [&str; 3] = ["sqlite3", "m4", "7z"];
    let name = program.rsplit('/').next().unwrap_or_default();
    if NAMES_WITH_NUMBERS.contains(&name) {
        return name.to_owned();
    }
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    name.to_ascii_lowercase()
}

/// Returns the wrapper of this name and the index of its first argument, behind its subcommand if it needs one.
pub(crate) fn find_wrapper(
    name: &str,
    argv: &[&str],
    after: usize,
) -> Option<(&'static Wrapper, usize)> {
    WRAPPERS.iter().find_map(|wrapper| {
        if !wrapper.names.contains(&name) {
            return None;
        }
        match wrapper.subcommand {
            None => Some((wrapper, after)),
            Some(subcommand) => {
                let position = argv[after..]
                    .iter()
                    .position(|element| *element == subcommand)?;
                Some((wrapper, after + position + 1))
            }
        }
    })
}
