//! Without the feature `nats`, the commands of a queue say so.

use crate::support::CliSandbox;

#[test]
fn commands_of_a_queue_say_that_they_are_not_built_in() {
    for arguments in [
        &["submit", "jobs", "in.json"][..],
        &["work", "jobs"],
        &["collect", "jobs"],
        &["queue", "status", "jobs"],
    ] {
        let output = CliSandbox::new().run(arguments).assert_exit(2);
        let message = "this toolq was built without `nats`; nothing ran";
        assert!(output.stderr.contains(message), "{}", output.stderr);
        assert!(
            output.stderr.contains("--features nats"),
            "{}",
            output.stderr
        );
    }
}
