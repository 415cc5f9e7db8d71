//! The roles of the arguments of well-known programs.

use super::*;

/// Returns one letter per element: P for a program, C for code, S for a script, L for what is loaded, and - for data.
fn role_letters(argv: &[&str]) -> String {
    let letter = |role: &ArgRole| match role {
        ArgRole::Program => 'P',
        ArgRole::Code => 'C',
        ArgRole::Script => 'S',
        ArgRole::LoadedFile => 'L',
        ArgRole::PlainText => 'T',
        ArgRole::PlainTextOrPath => 'F',
        ArgRole::Data => '-',
    };
    classify_args(argv).iter().map(letter).collect()
}

/// A value must never become a part of the code after `-c` or `-e`.
/// A value must never become a part of the code after `-c` or `-e`.
#[test]
fn code_arguments_are_found() {
    for (argv, roles) in [
        ("cat -- {x}", "P--"),
        ("{x} a", "P-"),
        ("sh -c {x} -- {y}", "P-C--"),
        ("/bin/bash -lc {x}", "P-C"),
        ("bash -euo pipefail -c {x} a", "P---C-"),
        ("bash -e script.sh -c {x}", "P-S--"),
        ("python3.12 -c {x} {y}", "P-C-"),
        ("python3 -m pip install -c {x}", "P-L---"),
        ("python3 tool.py -c {x}", "PS--"),
        ("perl -ne {x}", "P-C"),
        ("perl -e{x}", "PC"),
        ("node --eval={x}", "PC"),
        ("node --eval {x}", "P-C"),
        ("deno eval {x}", "P-C"),
        ("awk {x} file", "PC-"),
        ("awk -F : {x} file", "P--C-"),
        ("awk -f prog.awk {x}", "P-L-"),
        ("env -i A={x} sh -c {y}", "P--P-C"),
        ("env {x}", "PP"),
        ("env -S {x}", "P-C"),
        ("timeout 5 bash -c {x}", "P-P-C"),
        ("timeout 5 {x}", "P-P"),
        ("nice -n 5 cat {x}", "P--P-"),
        ("xargs -n 1 sh -c {x}", "P--P-C"),
        ("xargs -I % sh -c {x}", "P--P-C"),
        ("sudo -u root bash -o pipefail -c {x}", "P--P---C"),
        ("docker exec box sh -c {x}", "P--P-C"),
        ("sh -c exec -- bash -c {x}", "P-C-P-C"),
        ("grep bash {x}", "P--"),
        ("find {x} -exec sh -c {y} ;", "P--P-C-"),
        ("ssh host cat {x}", "PCCC"),
        ("grep -c {x}", "P--"),
        ("jq -c {x}", "P--"),
        // A shell accepts more options after `-c` and executes its first operand.
        ("sh -c -- {x}", "P--C"),
        ("sh -c - {x} {y}", "P--C-"),
        ("bash -c -e +x {x} {y}", "P---C-"),
        ("bash -c -o pipefail -- {x}", "P----C"),
        ("bash --rcfile /etc/rc -c {x}", "P-L-C"),
        ("fish -C {x} -c {y}", "P-C-C"),
        ("deno eval --ext=ts {x}", "P--C"),
        // A value of an option that looks like a file doesn't end the options.
        ("perl -I ./lib -e {x}", "P-L-C"),
        ("node -r ./hook.js -e {x}", "P-L-C"),
        ("python3 -W ignore::a.B -c {x}", "P---C"),
        ("python3 -u tool.py -c {x}", "P-S--"),
        ("su root -c {x}", "P--C"),
        ("su - root -c {x}", "P---C"),
        ("awk -- {x} file", "P-C-"),
        ("awk -F, {x} file", "P-C-"),
        ("awk -v a=b {x} file", "P--C-"),
        ("sed -n {x} file", "P-C-"),
        ("sed -e p -e {x} {y}", "P-C-C-"),
        ("sed -i  {x} file", "P--C-"),
        ("sed -f script {x}", "P-L-"),
        ("pwsh -NoProfile -command ls {x}", "P-CCC"),
        ("parallel echo {x} ::: {y}", "PCC--"),
        // A value from the input chooses the script file.
        ("python3 {x} {y}", "PS-"),
        ("python3 -u {x}", "P-S"),
        ("python3 -m {x} {y}", "P-L-"),
        ("python3 - {x}", "PS-"),
        ("python3 tool.py {x}", "PS-"),
        ("python3 -W error tool.py {x}", "P--S-"),
        ("sh {x}", "PS"),
        ("sh -- scripts/{x}.sh {y}", "P-S-"),
        ("sh - {x}", "P-S"),
        ("bash -eux -o pipefail {x}", "P---S"),
        ("bash -s {x}", "P--"),
        ("env A=b node {x}", "P-PS"),
        ("node --inspect {x}", "P-S"),
        ("perl -w {x}", "P-S"),
        ("perl -pe CODE {x}", "P-CT"),
        ("su {x}", "P-"),
        ("timeout 5 ruby {x}", "P-PS"),
        // An option names the file or module that is run.
        ("awk -f {x} file", "P-L-"),
        ("awk -f{x} file", "PL-"),
        ("awk -F{x} -va={y} prog file", "P--C-"),
        ("sed -f {x} file", "P-L-"),
        ("sed --file={x} file", "PL-"),
        ("node -r {x} app.js", "P-LS"),
        ("node --import={x} app.js", "PLS"),
        ("perl -M{x} -e code", "PL-C"),
        ("bash --rcfile {x} -i", "P-L-"),
        ("python3 -m{x}", "PL"),
        ("java {x}", "PS"),
        ("java -jar {x}", "P-L"),
        ("java -Xmx{n}m -jar app.jar {x}", "P--L-"),
        ("java -cp {x} Main", "P-LS"),
        ("tclsh tool.tcl {x}", "PS-"),
        ("tclsh {x}", "PS"),
        // A value chooses the option.
        ("python3 -{x} file", "PCS"),
        ("sed -n{x} p file", "PCC-"),
        ("perl -{x} file", "PCS"),
        ("node --max-old-space-size={x} app.js", "P-S"),
    ] {
        let argv: Vec<&str> = argv.split(' ').collect();
        assert_eq!(role_letters(&argv), roles, "{argv:?}");
    }
}

/// Options of a wrapper that take a value don't hide the program.
#[test]
fn programs_behind_wrappers_and_options_are_found() {
    for (argv, roles) in [
        ("env -u FOO {x}", "P--P"),
        ("env -uFOO {x}", "P-P"),
        ("env -i A={x} cat {y}", "P--P-"),
        ("env PATH={x} cat", "PCP"),
        ("xargs -a f -- {x}", "P---P"),
        ("xargs -0 cat {x}", "P-P-"),
        ("flock -w 5 lock {x}", "P---P"),
        ("stdbuf -o L {x}", "P--P"),
        ("stdbuf -oL cat {x}", "P-P-"),
        ("unbuffer {x}", "PP"),
        ("rlwrap {x}", "PP"),
        ("entr {x}", "PP"),
        ("sudo -u root -- {x}", "P---P"),
        ("sudo -nu root {x}", "P--P"),
        ("setpriv --reuid 1000 {x}", "P--P"),
        ("runuser -u nobody -- {x}", "P---P"),
        ("docker exec -it -u me box {x}", "P-----P"),
        ("docker run --rm -v a:b {x} ls", "P----P-"),
        ("docker ps {x}", "P--"),
        ("kubectl exec pod -n a -- {x}", "P-----P"),
        ("nice -n 5 {x}", "P--P"),
        ("timeout -k 1 5 {x}", "P---P"),
        ("nohup {x}", "PP"),
        ("env nice -n 5 timeout 3 {x}", "PP--P-P"),
        ("chrt -f 10 {x}", "P--P"),
        ("tar -I {x} -xf a", "P-C--"),
        ("tar --to-command={x} -xf a", "PC--"),
        ("tar -xf {x}", "P--"),
        ("git -c {x} log", "P-C-"),
        ("git -C {d} -c {x} log", "P---C-"),
        ("git commit -c {x}", "P---"),
        ("git fetch --upload-pack={x} r", "P-C-"),
        ("make {x}", "PT"),
        ("make -C {x} all", "P-L-"),
        ("vim {x}", "PF"),
        ("sqlite3 app.db {x}", "P-C"),
        ("sqlite3 -safe app.db {x}", "P---"),
        ("psql -c {x}", "P-C"),
        ("rsync -e {x} a b", "P-C--"),
        ("sort --compress-program={x} a", "PC-"),
        ("split --filter={x} a", "PC-"),
        ("find {d} -exec {x} ;", "P--P-"),
        ("find . -xdev {x}", "P---"),
        ("fd a -x {x}", "P--P"),
        ("fd a -X {x}", "P--P"),
        ("fd -HX {x}", "P-P"),
        ("fd -x{x}", "PP"),
        ("fd -X={x}", "PP"),
        ("fd a --exec {x}", "P--P"),
        ("fd a --exec-batch {x}", "P--P"),
        ("fd a --exec-batch={x}", "P-P"),
        ("fd a --exec=sh -c {x}", "P-P-C"),
        ("fdfind a --exec-batch {x}", "P--P"),
        ("fd -e tex {x}", "P---"),
        ("fd -etex {x}", "P--"),
        ("fd --exclude {x}", "P--"),
        ("choom -n 0 {x}", "P--P"),
        ("/lib64/ld-linux-x86-64.so.2 {x}", "PP"),
        ("ip netns exec a {x}", "P---P"),
        ("x86_64 {x}", "PP"),
        ("i386 {x}", "PP"),
        ("linux32 {x}", "PP"),
        ("uname26 {x}", "PP"),
        ("catchsegv {x}", "PP"),
        ("npx -c {x}", "P-C"),
        ("git rebase -x {x} main", "P--C-"),
        ("git cherry-pick -x {x}", "P---"),
        ("git bisect run {x}", "P--P"),
        ("git submodule foreach {x}", "P--C"),
        ("tmux new-session -d {x}", "P-CC"),
        ("tmux capture-pane -t {x}", "P---"),
        ("run-parts {x}", "PS"),
        ("cargo run -- {x}", "P---"),
        // GNU programs accept the beginning of a long option.
        ("tar --use-compress={x} -cf a b", "PC---"),
        ("tar --checkpoint-a={x} -cf a b", "PC---"),
        ("zip -TT{x} a b", "PC--"),
        ("gcc {x}", "PF"),
    ] {
        let argv: Vec<&str> = argv.split(' ').collect();
        assert_eq!(role_letters(&argv), roles, "{argv:?}");
    }
}

#[test]
fn wrappers_are_known_by_what_they_do_with_arguments() {
    for (text, expected) in [
        ("nice -n 5", None),
        ("docker exec -i box", None),
        ("sudo -u other nice", None),
        ("bwrap --ro-bind / / --", None),
        ("./my-wrapper", None),
        ("sh -c", Some("sh")),
        ("docker exec box sh -c", Some("sh")),
        ("ssh -p 22 host", Some("ssh")),
        (
            "bwrap --ro-bind / / -- /usr/bin/ssh host",
            Some("/usr/bin/ssh"),
        ),
        ("su other -c", Some("su")),
        ("script -qec", Some("script")),
        ("watch", Some("watch")),
        ("tmux new-session", Some("tmux")),
        ("runuser other -c", Some("runuser")),
        ("flock file -c", Some("flock")),
    ] {
        let argv: Vec<&str> = text.split(' ').collect();
        assert_eq!(find_code_wrapper(&argv), expected, "{text}");
    }
    assert_eq!(
        find_handover(&["sudo", "docker", "exec"]),
        Some("docker".to_owned())
    );
    assert_eq!(find_handover(&["nice"]), None);
}
