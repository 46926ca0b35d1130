//! `countersign admin`: asks the running server, or works on the data directory of a stopped one.

mod cluster;
mod log;
mod socket;

use std::path::{Display, Path};

use countersign_core::{rules::decide::proposal, values::shown::plural};
use countersign_log::forget_stops;
use countersign_server::follow::mirror::memory::MirrorMemory;
use countersign_server::http::blocks::{BlockError, BlockedThing, Blocks};
use countersign_server::serve::admin::{AdminRequest, list_blocks, list_projects};
use countersign_store::{machine::clock::Clock, machine::data_dir::DataDir, nonces, nonces::NonceReset};
use serde_json::{Value, json};

use crate::args::{
    AdminCommand, BlockArgs, DropArgs, FileArgs, GlobalArgs, MirrorCommand, ProjectsArgs, WitnessCommand,
};
use crate::commands::admin::socket::{find_data_dir, is_mirror, lock_stopped, open_stopped};
use crate::words::{error::CliError, output, output::Confirmation, output::Output};
use crate::{client::session, keys};

pub(crate) fn run(command: AdminCommand, global: &GlobalArgs, output: Output) -> Result<(), CliError> {
    match command {
        AdminCommand::Projects(args) => show_projects(args, output),
        AdminCommand::Drop(args) => drop_pending(args, output),
        AdminCommand::Block(args) => change_blocks(args, output, Wish::Block),
        AdminCommand::Unblock(args) => change_blocks(args, output, Wish::Unblock),
        AdminCommand::Blocks(args) => show_blocks(args, output),
        AdminCommand::Stats(args) => show_stats(args, output),
        AdminCommand::Cluster { command } => cluster::run(command, output),
        AdminCommand::Log { command } => log::run(command, output, global.confirmation()),
        AdminCommand::ResetNonces(args) => reset_nonces(args, output, global.confirmation()),
        AdminCommand::Mirror { command: MirrorCommand::Resume(args) } => resume_mirror(args, output),
        AdminCommand::Witness { command: WitnessCommand::Resume(args) } => resume_witness(args, output),
        AdminCommand::Witness { command: WitnessCommand::Init(args) } => {
            crate::commands::witness::init(global, &args, output)
        }
    }
}

fn show_projects(args: ProjectsArgs, output: Output) -> Result<(), CliError> {
    let (file, path) = find_data_dir(args.files)?;
    let below = args.below.as_ref().map(ToString::to_string);
    let items = match socket::ask(&path, &AdminRequest::Projects { below })? {
        Some(items) => items,
        None => {
            let (_data_dir, opened) = open_stopped(&file, &path)?;
            list_projects(&opened.store.head(), args.below.as_ref())
        }
    };
    let text: String = items.iter().map(describe_project).collect();
    let text = match &args.below {
        None if items.is_empty() => "There are no projects.\n".to_owned(),
        Some(name) if items.is_empty() => format!("No project has the name {name} or is below it.\n"),
        None | Some(_) => text,
    };
    output.answer(&text, &json!({ "projects": items }))
}

fn describe_project(item: &Value) -> String {
    if let Some(more) = item["more"].as_u64() {
        return format!("… and {more} more: name a directory, as in https/github.com/443/acme\n");
    }
    let (project, state) = (item["project"].as_str().unwrap_or(""), item["state"].as_str().unwrap_or(""));
    match item["collecting"].as_u64() {
        None | Some(0) => format!("{project}  {state}\n"),
        Some(count) => {
            let s = plural(usize::try_from(count).unwrap_or(usize::MAX));
            format!("{project}  {state}, {count} release{s} collecting signatures\n")
        }
    }
}

fn drop_pending(args: DropArgs, output: Output) -> Result<(), CliError> {
    let (file, path) = find_data_dir(args.files)?;
    let request = AdminRequest::Drop { project: args.project.to_string() };
    if socket::ask(&path, &request)?.is_none() {
        let (data_dir, opened) = open_stopped(&file, &path)?;
        if is_mirror(&data_dir)? {
            let message = format!("{} is a mirror's, which accepts no changes", path.display());
            return Err(CliError::other(message, "change it on the server that it follows"));
        }
        let project = args.project.clone();
        let decide = move |head: &_, _| proposal::drop_pending(head, &project);
        session::runtime()?.block_on(opened.store.transact(decide))??;
    }
    let text = format!("Dropped the pending signers of {}\n", args.project);
    output.result(&text, &json!({ "dropped": args.project.as_str() }))
}

#[derive(Clone, Copy)]
enum Wish {
    Block,
    Unblock,
}

fn change_blocks(args: BlockArgs, output: Output, wish: Wish) -> Result<(), CliError> {
    let thing = read_thing(&args.what, wish)?;
    let (_, path) = find_data_dir(args.files)?;
    let what = thing.as_str().to_owned();
    let request = match wish {
        Wish::Block => AdminRequest::Block { what },
        Wish::Unblock => AdminRequest::Unblock { what },
    };
    if socket::ask(&path, &request)?.is_none() {
        let blocks = open_blocks(&lock_stopped(&path)?)?;
        let changed = match wish {
            Wish::Block => blocks.block(thing.clone()),
            Wish::Unblock => blocks.unblock(thing.clone()),
        };
        changed.map_err(|error| CliError::other(error.to_string(), socket::HINT))?;
    }
    let (text, name) = match wish {
        Wish::Block => (format!("The server refuses changes of {thing} from now on.\n"), "blocked"),
        Wish::Unblock => (format!("The server accepts changes of {thing} again.\n"), "unblocked"),
    };
    output.result(&text, &json!({ name: thing.as_str() }))
}

/// What looks like a key or a file is never taken for a host, else a block would seem to be in force (D186).
fn read_thing(text: &str, wish: Wish) -> Result<BlockedThing, CliError> {
    const HINT: &str = "give a key (svc-pub:…, an ssh-ed25519 line or a .pub file), a host (github.com) or a project \
                        (https/github.com/443/acme/app)";
    let is_file = text.ends_with(".pub") || Path::new(text).is_file();
    let parsed = BlockedThing::parse(text).map_err(|error| CliError::usage(error.to_string(), HINT));
    match (keys::parse_key(text), parsed, wish) {
        (Ok(key), _, _) => Ok(BlockedThing::Key(key.to_string())),
        // Earlier versions took anything for a host.
        (Err(_), Ok(thing), Wish::Unblock) => Ok(thing),
        (Err(error), _, _) if is_file => Err(error.with_hint(HINT)),
        (Err(_), Ok(BlockedThing::Host(host)), Wish::Block)
            if !host.contains(['.', ':']) && host != "localhost" =>
        {
            Err(CliError::usage(BlockError::NotAThing(host).to_string(), HINT))
        }
        (Err(_), parsed, _) => parsed,
    }
}

fn show_blocks(files: FileArgs, output: Output) -> Result<(), CliError> {
    let (_, path) = find_data_dir(files)?;
    let items = match socket::ask(&path, &AdminRequest::Blocks {})? {
        Some(items) => items,
        None => list_blocks(&open_blocks(&lock_stopped(&path)?)?),
    };
    let line = |item: &Value| {
        format!("{:<8}{}\n", item["kind"].as_str().unwrap_or(""), item["blocked"].as_str().unwrap_or(""))
    };
    let text: String = items.iter().map(line).collect();
    let text = if items.is_empty() { "Nothing is blocked.\n".to_owned() } else { text };
    output.answer(&text, &json!({ "blocks": items }))
}

fn show_stats(files: FileArgs, output: Output) -> Result<(), CliError> {
    let (_, path) = find_data_dir(files)?;
    let items = socket::ask(&path, &AdminRequest::Stats {})?.ok_or_else(|| {
        let message = format!("no server runs with the data directory {}", path.display());
        CliError::unreachable(message, "start it, or name its directory with --data-dir")
    })?;
    let stats = items.into_iter().next().unwrap_or_default();
    let lines = stats.as_object().into_iter().flatten();
    let text: String =
        lines.filter(|(_, value)| !value.is_null()).map(|(name, value)| spell_stat(name, value)).collect();
    output.answer(&text, &stats)
}

fn resume_mirror(files: FileArgs, output: Output) -> Result<(), CliError> {
    let said = "The mirror follows its origin again {when}. Its log says what it finds.\n";
    resume(files, output, &AdminRequest::ResumeMirror {}, said, |data_dir, shown| {
        let memory = MirrorMemory::at(data_dir.path());
        let unusable =
            |error| CliError::other("the mirror cannot be resumed", "check the disk").because(error);
        if memory.origin().map_err(unusable)?.is_none() {
            let message = format!("{shown} is not the data directory of a mirror");
            return Err(CliError::other(message, "name it with --data-dir"));
        }
        let had_stopped = memory.forget_refusal().map_err(unusable)?;
        Ok((had_stopped, format!("the mirror in {shown} has not stopped following")))
    })
}

fn resume_witness(files: FileArgs, output: Output) -> Result<(), CliError> {
    let said = "The witness cosigns again {when}. It stops again if it sees the same.\n";
    resume(files, output, &AdminRequest::ResumeWitness {}, said, |data_dir, shown| {
        let had_stopped = forget_stops(&data_dir.witness()).map_err(|error| {
            CliError::other("the witness cannot be resumed", "check the disk").because(error)
        })?;
        Ok((had_stopped, format!("the witness in {shown} has not stopped for any log")))
    })
}

/// Resumes what stopped until its operator decides: a running server, or one that is stopped. `resume_stopped` gives
/// whether there was something to decide, and what to say if not.
fn resume(
    files: FileArgs,
    output: Output,
    request: &AdminRequest,
    said: &str,
    resume_stopped: impl FnOnce(&DataDir, Display<'_>) -> Result<(bool, String), CliError>,
) -> Result<(), CliError> {
    let (_, path) = find_data_dir(files)?;
    let is_running = socket::ask(&path, request)?.is_some();
    if !is_running && let (false, message) = resume_stopped(&lock_stopped(&path)?, path.display())? {
        return Err(CliError::other(message, "there is nothing to decide"));
    }
    let text = said.replace("{when}", if is_running { "now" } else { "when you start it" });
    output.result(&text, &json!({ "resumed": true, "running": is_running }))
}

fn spell_stat(name: &str, value: &Value) -> String {
    let (name, value) = match (name.strip_suffix("_bytes"), value.as_u64(), value.as_str()) {
        (Some(name), Some(bytes), _) => (name, spell_bytes(bytes)),
        (_, _, Some(text)) => (name, text.to_owned()),
        (_, _, None) => (name, value.to_string()),
    };
    format!("{:<22}{value}\n", name.replace('_', " "))
}

fn spell_bytes(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..0x10_0000 => (1_u64 << 10, "KiB"),
        0x10_0000..0x4000_0000 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    format!("{:.1} {name}", bytes as f64 / unit as f64)
}

fn open_blocks(data_dir: &DataDir) -> Result<Blocks, CliError> {
    Blocks::open(data_dir.blocks())
        .map_err(|error| CliError::other(error.to_string(), "correct or remove the file"))
}

fn reset_nonces(files: FileArgs, output: Output, confirmation: Confirmation) -> Result<(), CliError> {
    let (_, path) = find_data_dir(files)?;
    socket::refuse_other_user(&path)?;
    let data_dir = DataDir::lock(&path)?;
    let clock = Clock::system();
    output.show(&format!(
        "This machine's clock says {}. If that is wrong, set it first.\n\
         Requests that were signed before this time will be refused. Requests that were signed for a later time, while \
         the clock was ahead, could be sent again when that time comes.",
        clock.now().to_whole_seconds()
    ));
    output::confirm(confirmation, "Reset the used nonces?")?;
    // After the answer, and to the fraction: what was signed until then is refused.
    let reset = nonces::reset(&data_dir.nonces(), clock.now()).map_err(|error| {
        let message = format!("the used nonces in {} could not be reset", data_dir.nonces().display());
        CliError::other(message, "if the file is missing or damaged, remove it and start the server")
            .because(error)
    })?;
    let NonceReset { floor, floor_before, forgotten_until } = reset;
    let mut text = format!("Requests that were signed before {floor} are refused from now on.\n");
    if let Some(until) = forgotten_until {
        text.push_str(&format!(
            "The clock had been ahead: requests that were used then, with times up to {until}, could be used again.\n"
        ));
    }
    let value = json!({
        "floor": floor.to_string(),
        "floor_before": floor_before.map(|floor| floor.to_string()),
        "forgotten_until": forgotten_until.map(|until| until.to_string()),
    });
    output.result(&text, &value)
}
