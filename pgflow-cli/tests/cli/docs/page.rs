//! The page in parts.

/// The beginning of the block that is run.
const BLOCK: &str = "```console";

#[derive(Debug, PartialEq)]
pub(super) enum Part {
    /// A line that is left as it is.
    Text(String),
    /// An event before the next command.
    Then(String),
    /// An event while the next command runs.
    Meanwhile(String),
    /// A command and its output.
    Command { command: String, output: String },
}

pub(super) fn read(page: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut in_block = false;
    for line in page.lines() {
        let comment = |word: &str| {
            line.strip_prefix(&format!("<!-- {word}: "))?
                .strip_suffix(" -->")
                .map(ToOwned::to_owned)
        };
        if let Some(event) = comment("then") {
            parts.push(Part::Then(event));
        } else if let Some(event) = comment("meanwhile") {
            parts.push(Part::Meanwhile(event));
        } else if let (true, Some(command)) = (in_block, line.strip_prefix("$ ")) {
            parts.push(Part::Command {
                command: command.to_owned(),
                output: String::new(),
            });
        } else if let (true, false, Some(Part::Command { output, .. })) =
            (in_block, line == "```", parts.last_mut())
        {
            output.push_str(line);
            output.push('\n');
        } else {
            in_block = line == BLOCK;
            parts.push(Part::Text(line.to_owned()));
        }
    }
    parts
}

pub(super) fn write(parts: &[Part]) -> String {
    let mut page = String::new();
    for part in parts {
        match part {
            Part::Text(line) => page.extend([line, "\n"]),
            Part::Then(event) => page.extend(["<!-- then: ", event, " -->\n"]),
            Part::Meanwhile(event) => page.extend(["<!-- meanwhile: ", event, " -->\n"]),
            Part::Command { command, output } => page.extend(["$ ", command, "\n", output]),
        }
    }
    page
}

#[test]
fn a_page_is_read_and_written_again() {
    let page =
        "text\n$ no command\n<!-- then: so -->\n```console\n$ one\na\n\nb\n$ two\n```\nend\n";
    let parts = read(page);
    assert_eq!(write(&parts), page);
    let command = |command: &str, output: &str| Part::Command {
        command: command.to_owned(),
        output: output.to_owned(),
    };
    assert_eq!(parts[2], Part::Then("so".to_owned()));
    assert_eq!(
        parts[4..6],
        [command("one", "a\n\nb\n"), command("two", "")]
    );
    assert_eq!(parts.len(), 8);
}
