//! The example of docs/scale.md works as it is written there.

use std::fs;

use rustix::process::Signal;

use crate::queue_sandbox::QueueSandbox;
use crate::support::repository_root;

/// Returns the blocks of shell commands below this heading.
fn shell_blocks(heading: &str) -> Vec<String> {
    let page = fs::read_to_string(repository_root().join("docs/scale.md")).unwrap();
    let (_, section) = page.split_once(heading).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap().to_owned());
    blocks.collect()
}

#[test]
fn the_first_example_gets_its_answers() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    let blocks = shell_blocks("## In five minutes\n");
    let [server, submit, work, collect] = &blocks[..] else {
        panic!("{blocks:?}");
    };
    assert!(server.starts_with("nats-server --jetstream"));
    sandbox.run_shell(submit).assert_exit(0);
    let arguments: Vec<&str> = work.split_whitespace().skip(1).collect();
    let workers = [(); 2].map(|()| sandbox.start(&arguments));
    let output = sandbox.run_shell(collect).assert_exit(0);
    assert_eq!(
        output.texts(),
        ["Hello, Ada", "Hello, Grace", "Hello, Linus"]
    );
    for worker in workers {
        worker.end(Signal::TERM);
    }
}
