//! Without the feature `nats`, `toolq queue` isn't in the help, and says how to get it.

use crate::support::CliSandbox;

#[test]
fn queues_that_are_not_built_in_are_not_shown_and_say_so() {
    let help = CliSandbox::new().run(&["--help"]).assert_exit(0).stdout;
    assert!(!help.contains("queue"), "{help}");
    for verb in ["work", "status"] {
        let output = CliSandbox::new().run(&["queue", verb, "jobs"]);
        let stderr = output.assert_exit(2).stderr;
        let message = "this toolq was built without `nats`; nothing ran";
        assert!(stderr.contains(message), "{stderr}");
        assert!(stderr.contains("--features nats"), "{stderr}");
    }
}
