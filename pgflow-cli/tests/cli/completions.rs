//! Completions of shells.

use crate::support::{json, pgflow};

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    for (shell, start) in [
        ("bash", "_pgflow()"),
        ("zsh", "#compdef pgflow"),
        ("fish", "# "),
        ("powershell", "\nusing namespace"),
        ("elvish", "\nuse builtin;"),
    ] {
        let script = pgflow(&["completions", shell]).done();
        assert!(script.starts_with(start), "{script}");
        for word in ["coverage", "delete-flow", "unfence", "watch"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        let as_json = json(&pgflow(&["completions", shell, "--json"]).done());
        assert_eq!(as_json["shell"], shell);
        assert_eq!(
            as_json["script"].as_str().unwrap().trim_end(),
            script.trim_end()
        );
    }
    let error = pgflow(&["completions", "cmd"]).failed(2);
    assert!(error.contains("bash"), "{error}");
}
