//! The first screen of `countersign --help`: the commands by what people want to do (D246).

use clap::{Arg, Command, CommandFactory as _};

use crate::args::Arguments;

/// A part of the first screen.
struct CommandGroup {
    title: &'static str,
    /// The commands, the most usual first.
    commands: &'static [&'static str],
    /// Whether a line says what each of them does. Beginners never need the others.
    described: bool,
}

/// Every command is in one group. A new command needs no more than its name here.
const GROUPS: [CommandGroup; 6] = [
    CommandGroup {
        title: "Use",
        commands: &["download", "verify", "status", "releases", "search"],
        described: true,
    },
    CommandGroup {
        title: "Sign",
        commands: &["pending", "sign", "release", "object", "rebuild", "withdraw"],
        described: true,
    },
    CommandGroup {
        title: "Manage signers",
        commands: &["init", "keygen", "signers", "register", "update"],
        described: true,
    },
    CommandGroup {
        title: "Emergencies",
        commands: &["revoke", "veto", "incident", "drill"],
        described: true,
    },
    CommandGroup {
        title: "Run a server",
        commands: &["serve", "mirror", "witness", "admin", "fsck"],
        described: false,
    },
    CommandGroup {
        title: "More",
        commands: &[
            "demo", "config", "trust", "bundle", "staple", "export", "watch", "monitor", "ping",
            "completions", "man", "serve-files",
        ],
        described: false,
    },
];

/// The width of a small terminal.
const WIDTH: usize = 80;

const BEGIN: &str = "\
Begin with `countersign demo`. `countersign COMMAND --help` explains a command,
and `countersign --help` lists the options of all commands and the exit codes.";

const LONG_END: &str = "\
Exit codes: 0 success, 1 other error, 2 usage, 3 verification failed, 4 revoked, 5 not reachable; of \
`status --wait` and `revoke`: 6 the time is over; of `status --wait` and `sign`: 7 replaced; of `status --wait`: 8 \
withdrawn, dropped or refused; of \
`monitor --once`: 9 something changed; of commands over several things: 10 some were not done.";

const ELSEWHERE: &str =
    "`countersign --help` lists the options of all commands: --server, --key, --yes, --json and more.";

/// The command line as people see it. Options of all commands are listed once, by `countersign --help`.
pub(crate) fn command() -> Command {
    let mut root = with_groups(Arguments::command(), None);
    root.build();
    root.mut_subcommands(hide_global)
}

/// The root with its first screen. Both helps of it list the commands, and only the long one the options.
/// `width` of lines, or that of the terminal.
pub(crate) fn with_groups(root: Command, width: Option<usize>) -> Command {
    let fit = |command: Command| match width {
        Some(width) => command.term_width(width),
        None => command,
    };
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{}{{after-help}}",
        list_groups(&root).trim_end()
    );
    let options: Vec<Arg> = root.get_arguments().cloned().collect();
    let listed = Command::new("options").disable_help_flag(true).args(options).help_template("{options}");
    let end = format!("Options of all commands:\n{}\n{LONG_END}", fit(listed).render_help());
    fit(root).help_template(template).after_help(BEGIN).after_long_help(end)
}

fn list_groups(root: &Command) -> String {
    let about = |name: &str| {
        let found = root.get_subcommands().find(|inner| inner.get_name() == name);
        found.and_then(Command::get_about).map(ToString::to_string).unwrap_or_default()
    };
    let mut text = String::new();
    for CommandGroup { title, commands, described } in &GROUPS {
        text.push_str(&format!("{title}:\n"));
        if *described {
            text.extend(commands.iter().map(|name| format!("  {name:<9} {}\n", about(name))));
        } else {
            let mut line = " ".to_owned();
            for name in *commands {
                if line.len() + name.len() >= WIDTH {
                    text.push_str(&format!("{line}\n "));
                    line.clear();
                }
                line.push_str(&format!(" {name}"));
            }
            text.push_str(&format!("{line}\n"));
        }
    }
    text
}

/// Leaves the options of all commands out of a command's help, and says where they are.
fn hide_global(command: Command) -> Command {
    let after = match command.get_after_help() {
        Some(after) => format!("{after}\n\n{ELSEWHERE}"),
        None => ELSEWHERE.to_owned(),
    };
    let command =
        command.after_help(after).mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg });
    command.mut_subcommands(hide_global)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_its_line_fits_a_terminal() {
        let root = Arguments::command();
        let real: BTreeSet<&str> = root.get_subcommands().map(Command::get_name).collect();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|group| group.commands).copied().collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), real);
        assert_eq!(listed.len(), real.len(), "a command is in two groups");
        let text = command().render_help().to_string();
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        assert!(text.lines().count() <= 40, "{text}");
    }

    #[test]
    fn the_options_of_all_commands_are_listed_once() {
        let mut root = command();
        let (short, long) = (root.render_help().to_string(), root.render_long_help().to_string());
        assert!(
            !short.contains("--server") && long.contains("--server <URL>") && long.contains("Exit codes")
        );
        let sign = root.find_subcommand_mut("sign").expect("it is a command").render_help().to_string();
        assert!(
            !sign.contains("--server <URL>") && sign.contains("--files") && sign.contains(ELSEWHERE),
            "{sign}"
        );
    }
}
