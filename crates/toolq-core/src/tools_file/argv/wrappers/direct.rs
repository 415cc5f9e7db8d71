//! Programs that do nothing but run another program in some way.

use crate::tools_file::argv::wrappers::{Wrapper, with_variables, wrapper};

pub(super) const DIRECT_WRAPPERS: [Wrapper; 36] = [
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
    // `linux` is `linux32` and `linux64`, without what looks like a version.
    wrapper(
        &[
            "nohup", "setsid", "busybox", "toybox", "linux", "i386", "x86_64", "uname26",
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
    wrapper(
        &[
            "valgrind",
            "catchsegv",
            "prlimit",
            "firejail",
            "unbuffer",
            "rlwrap",
            "entr",
        ],
        0,
        "",
    ),
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
    wrapper(&["chronic", "ts-exec", "sem"], 0, "-j --jobs --id"),
];
