//! `countersign man` and `countersign completions`

use std::{env, fs, io, path::Path};

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use countersign_core::values::time::Timestamp;
use serde_json::json;

use crate::args::{Arguments, CompletionsArgs, ManArgs, help::with_groups};
use crate::words::{error::CliError, error::shown_path, output::Output};

/// The variable from which programs that make files for packages take their time, in seconds since 1970.
const EPOCH_VARIABLE: &str = "SOURCE_DATE_EPOCH";
/// An empty word of roff. Without quotes, the next word would be taken for the date.
const NO_DATE: &str = "\"\"";

/// A page for the program and one for each command, as in `countersign-signers-new.1`.
pub(crate) fn run(args: &ManArgs, output: Output) -> Result<(), CliError> {
    let date = find_date()?;
    let mut root = with_groups(Arguments::command(), None).disable_help_subcommand(true);
    root.build();
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        Man::new(root).date(date).render(&mut page).map_err(|error| {
            CliError::other("the manual page could not be made", "report this").because(error)
        })?;
        let page = String::from_utf8_lossy(&page);
        return output.answer(&page, &json!({"page": page}));
    };
    let written = fs::create_dir_all(dir).and_then(|()| write_pages(root, dir, &date));
    written.map_err(|error| CliError::file("written to", dir, error))?;
    let text = format!("Wrote the manual pages to {}", shown_path(dir));
    output.result(&text, &json!({"dir": dir.display().to_string()}))
}

fn write_pages(command: Command, dir: &Path, date: &str) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write_pages(inner.clone(), dir, date)?;
    }
    Man::new(command).date(date).generate_to(dir)?;
    Ok(())
}

/// The date of the pages, as in `2026-03-01`; none without the variable. The clock has no say, so that all who build
/// one commit get the same pages.
fn find_date() -> Result<String, CliError> {
    let Some(epoch) = env::var_os(EPOCH_VARIABLE).filter(|epoch| !epoch.is_empty()) else {
        return Ok(NO_DATE.to_owned());
    };
    let time = epoch.to_str().and_then(|text| Timestamp::from_unix_seconds(text.parse().ok()?).ok());
    let time = time.ok_or_else(|| {
        CliError::usage(
            format!("{EPOCH_VARIABLE} is not a time"),
            "set it to seconds since 1970, or unset it",
        )
    })?;
    Ok(time.to_string().chars().take_while(|c| *c != 'T').collect())
}

// The command `countersign completions`.

pub(crate) fn run_completions(args: &CompletionsArgs, output: Output) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "countersign", &mut script);
    let script = String::from_utf8_lossy(&script);
    output.answer(&script, &json!({"shell": args.shell.to_string(), "script": script}))
}

/// Makes docs/cli.md from the help texts, so that each text stands in one place.
#[cfg(test)]
mod reference {
    use std::{fs, path::Path};

    use clap::{Command, CommandFactory as _};

    use crate::args::{Arguments, help::with_groups};

    /// If this variable is set, the test writes the file before it compares it.
    const WRITE: &str = "COUNTERSIGN_WRITE_DOCS";

    const HEAD: &str = include_str!("../args/reference.md");
    /// Lines of help are never longer than this, in whatever terminal.
    const WIDTH: usize = 100;

    #[test]
    fn the_command_line_reference_is_what_the_help_texts_say() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
        let expected = render();
        if std::env::var_os(WRITE).is_some() {
            fs::write(&path, &expected).expect("docs/cli.md can be written");
        }
        let found = fs::read_to_string(&path).expect("docs/cli.md is there");
        assert!(found == expected, "docs/cli.md is stale: {WRITE}=1 cargo test -p countersign reference");
    }

    /// A line that clap breaks cannot be pasted.
    #[test]
    fn no_example_is_longer_than_a_line() {
        let mut root = Arguments::command();
        root.build();
        let mut commands = vec![&root];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands());
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in after.lines().filter(|line| line.starts_with("  ")) {
                let name = command.get_name();
                assert!(line.chars().count() <= WIDTH, "{name}: break it with a backslash: {line}");
            }
        }
    }

    fn render() -> String {
        let mut root = with_groups(Arguments::command(), Some(WIDTH));
        root.build();
        let first = root.render_long_help().to_string();
        let mut text = format!("{HEAD}\n## countersign\n\n```text\n{}\n```\n", first.trim_end());
        for command in root.get_subcommands() {
            render_command(&mut text, command, "countersign");
        }
        text
    }

    fn render_command(text: &mut String, command: &Command, parent: &str) {
        let name = format!("{parent} {}", command.get_name());
        if command.get_name() == "help" {
            return;
        }
        // The global options and the help stand once, under the program itself.
        let command = command
            .clone()
            .mut_args(|arg| if arg.is_global_set() || arg.get_id() == "help" { arg.hide(true) } else { arg })
            .mut_subcommands(|inner| if inner.get_name() == "help" { inner.hide(true) } else { inner });
        text.push_str(&format!("\n## {name}\n\n{}", help(&command)));
        for inner in command.get_subcommands() {
            render_command(text, inner, &name);
        }
    }

    fn help(command: &Command) -> String {
        let help = command.clone().render_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        format!("```text\n{}\n```\n", lines.join("\n").trim_end())
    }
}
