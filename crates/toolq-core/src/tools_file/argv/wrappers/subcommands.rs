//! Programs with a subcommand that runs another program.

use crate::tools_file::argv::wrappers::{Wrapper, wrapper};

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

pub(super) const SUBCOMMAND_WRAPPERS: [Wrapper; 19] = [
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
