//! `countersign admin`: asks the running server, or works on the data directory of a stopped one.

mod cluster;
mod socket;

use std::{fs, path::Display, path::Path, path::absolute};

use countersign_core::values::{bounds::NOTE_BYTES, path::RepoPath, shown::plural, shown::shown_text};
use countersign_core::values::{verifier_key::KeyKind, verifier_key::VerifierKey};
use countersign_core::{log::note::Note, rules::decide::proposal};
use countersign_log::forget_stops;
use countersign_server::follow::mirror::memory::MirrorMemory;
use countersign_server::http::blocks::{BlockError, BlockedThing, Blocks};
use countersign_server::operate::config::GivenSettings;
use countersign_server::serve::admin::{AdminRequest, list_blocks, list_projects};
use countersign_store::machine::{clock::Clock, data_dir::DataDir, disk};
use countersign_store::{nonces, nonces::NonceReset};
use serde_json::{Value, json};

use crate::args::{
    AcceptLossArgs, AdminCommand, BlockArgs, ClusterCommand, DropArgs, FileArgs, GlobalArgs, LogCommand,
    LogInitArgs, MirrorCommand, ProjectsArgs, TakeCheckpointArgs, WitnessCommand,
};
use crate::commands::admin::socket::{
    find_data_dir, is_mirror, lock_stopped, open_stopped, read_settings, refuse_other_user,
};
use crate::words::{error::CliError, error::shown_path, output::Output};
use crate::{client::session, client::targets::find_project, keys, settings::config_dir::write_new};

pub(crate) fn run(command: AdminCommand, global: &GlobalArgs, output: Output) -> Result<(), CliError> {
    match command {
        AdminCommand::Projects(args) => show_projects(args, output),
        AdminCommand::Drop(args) => drop_pending(args, output),
        AdminCommand::Block(args) => change_blocks(args, output, Wish::Block),
        AdminCommand::Unblock(args) => change_blocks(args, output, Wish::Unblock),
        AdminCommand::Blocks(args) => show_blocks(args, output),
        AdminCommand::Stats(args) => show_stats(args, output),
        AdminCommand::Cluster { command: ClusterCommand::Init(args) } => cluster::init(args, output),
        AdminCommand::Cluster { command: ClusterCommand::Status(args) } => {
            cluster::show_status(&args, output)
        }
        AdminCommand::Log { command: LogCommand::Init(args) } => init_log(args, output),
        AdminCommand::Log { command: LogCommand::Status(files) } => show_log(files, output),
        AdminCommand::Log { command: LogCommand::AcceptLoss(args) } => accept_loss(args, output),
        AdminCommand::Log { command: LogCommand::TakeCheckpoint(args) } => take_checkpoint(args, output),
        AdminCommand::ResetNonces(args) => reset_nonces(args, output),
        AdminCommand::Mirror { command: MirrorCommand::Resume(args) } => resume_mirror(args, output),
        AdminCommand::Witness { command: WitnessCommand::Resume(args) } => resume_witness(args, output),
        AdminCommand::Witness { command: WitnessCommand::Init(args) } => {
            crate::commands::serve::init_witness(global, &args, output)
        }
    }
}

fn show_projects(args: ProjectsArgs, output: Output) -> Result<(), CliError> {
    let (file, path) = find_data_dir(args.files)?;
    let items = ask_projects(&file, &path, args.below.as_ref())?;
    let text: String = items.iter().map(describe_project).collect();
    let text = match &args.below {
        None if items.is_empty() => "There are no projects.\n".to_owned(),
        Some(name) if items.is_empty() => format!("No project has the name {name} or is below it.\n"),
        None | Some(_) => text,
    };
    output.answer(&text, &json!({ "projects": items }))
}

fn ask_projects(
    file: &GivenSettings,
    data_dir: &Path,
    below: Option<&RepoPath>,
) -> Result<Vec<Value>, CliError> {
    let request = AdminRequest::Projects { below: below.map(ToString::to_string) };
    if let Some(items) = socket::ask(data_dir, &request, socket::HINT)? {
        return Ok(items);
    }
    let (_data_dir, opened) = open_stopped(file, data_dir)?;
    Ok(list_projects(&opened.store.head(), below))
}

/// The project that a name stands for (D60): a short one is that of a project in the data directory.
fn find_named(name: &str, file: &GivenSettings, data_dir: &Path) -> Result<RepoPath, CliError> {
    if let Some(project) = find_project(name, &[])? {
        return Ok(project);
    }
    let below = RepoPath::parse(name).ok();
    let items = ask_projects(file, data_dir, below.as_ref())?;
    let known = items.iter().filter_map(|item| RepoPath::parse(item["project"].as_str()?).ok());
    find_project(name, &known.collect::<Vec<_>>())?.ok_or_else(|| {
        CliError::other(format!("the server has no project {}", shown_text(name)), socket::HINT)
    })
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
    let project = find_named(&args.project, &file, &path)?;
    let request = AdminRequest::Drop { project: project.to_string() };
    if socket::ask(&path, &request, socket::HINT)?.is_none() {
        let (data_dir, opened) = open_stopped(&file, &path)?;
        if is_mirror(&data_dir)? {
            let message = format!("{} is a mirror's, which accepts no changes", path.display());
            return Err(CliError::other(message, "change it on the server that it follows"));
        }
        let dropped = project.clone();
        let decide = move |head: &_, _| proposal::drop_pending(head, &dropped);
        session::runtime()?.block_on(opened.store.transact(decide))??;
    }
    let text = format!("Dropped the pending signers of {project}\n");
    output.result(&text, &json!({ "dropped": project.as_str() }))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Block,
    Unblock,
}

fn change_blocks(args: BlockArgs, output: Output, wish: Wish) -> Result<(), CliError> {
    let (file, path) = find_data_dir(args.files)?;
    let thing = read_thing(&args.what, wish).or_else(|error| {
        let project = find_named(&args.what, &file, &path);
        project.and_then(|project| read_thing(project.as_str(), wish)).or(Err(error))
    })?;
    let what = thing.as_str().to_owned();
    let (request, text, name) = match wish {
        Wish::Block => (
            AdminRequest::Block { what },
            format!("The server refuses changes of {thing} from now on.\n"),
            "blocked",
        ),
        Wish::Unblock => (
            AdminRequest::Unblock { what },
            format!("The server accepts changes of {thing} again.\n"),
            "unblocked",
        ),
    };
    let value = json!({ name: thing.as_str() });
    if socket::ask(&path, &request, socket::BLOCKS_HINT)?.is_none() {
        // Held until the list is written.
        let data_dir = lock_stopped(&path)?;
        let blocks = open_blocks(&data_dir)?;
        let changed = if wish == Wish::Block { blocks.block(thing) } else { blocks.unblock(thing) };
        changed.map_err(|error| CliError::other(error.to_string(), socket::BLOCKS_HINT))?;
    }
    output.result(&text, &value)
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
    let items = match socket::ask(&path, &AdminRequest::Blocks {}, socket::BLOCKS_HINT)? {
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
    let items = socket::ask(&path, &AdminRequest::Stats {}, socket::HINT)?.ok_or_else(|| {
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
    let hint = "there is nothing to decide; `countersign admin stats` says how the server is doing";
    let is_running = socket::ask(&path, request, hint)?.is_some();
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

fn reset_nonces(files: FileArgs, output: Output) -> Result<(), CliError> {
    let (_, path) = find_data_dir(files)?;
    refuse_other_user(&path)?;
    let data_dir = DataDir::lock(&path)?;
    let clock = Clock::system();
    output.show(&format!(
        "This machine's clock says {}. If that is wrong, set it first.\n\
         Requests that were signed before this time will be refused. Requests that were signed for a later time, while \
         the clock was ahead, could be sent again when that time comes.",
        clock.now().to_whole_seconds()
    ));
    output.confirm("Reset the used nonces?")?;
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

// `countersign admin log`: its key, and what only the operator can decide.

/// The file of the log's key in the data directory, beside the checkpoints.
const LOG_KEY_FILE: &str = "log/key";

fn init_log(args: LogInitArgs, output: Output) -> Result<(), CliError> {
    let file = read_settings(&args.files)?;
    let data_dir = args.files.data_dir.unwrap_or_else(|| file.data_dir());
    refuse_other_user(&data_dir)?;
    let path = data_dir.join(LOG_KEY_FILE);
    let path = absolute(&path).map_err(|error| CliError::file("written", &path, error))?;
    let new = keys::generate(&args.origin, None)?;
    let key = VerifierKey::new(&args.origin, KeyKind::Log, new.public).map_err(|error| {
        CliError::usage(error.to_string(), "something like sign.example.org/log is usual")
    })?;
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(|error| CliError::file("written", dir, error))?;
    }
    write_new(&path, new.private.as_bytes(), 0o600)?;
    let shown = path.to_string_lossy();
    let table = format!(
        "[log]\norigin = {}\nkey_file = {}\n",
        toml_edit::Value::from(args.origin.as_str()).to_string().trim(),
        toml_edit::Value::from(shown.as_ref()).to_string().trim()
    );
    let text = format!(
        "Made the key {shown}. Keep a copy of it: a log cannot change its key.\n\n\
         Put this into the configuration file, and start the server again:\n\n{table}\n\
         Witnesses and signers files name the log by its verifier key:\n\n{}\n",
        output.strong(&key.to_string()),
    );
    output.result(
        &text,
        &json!({ "key_file": shown, "origin": args.origin, "log": key.to_string(), "table": table }),
    )
}

fn show_log(files: FileArgs, output: Output) -> Result<(), CliError> {
    let (_, path) = find_data_dir(files)?;
    let mut items = ask_log(&path, &AdminRequest::LogStatus {})?;
    let text = items.pop().unwrap_or_default();
    output.answer(text.as_str().unwrap_or_default(), &items.pop().unwrap_or_default())
}

fn accept_loss(args: AcceptLossArgs, output: Output) -> Result<(), CliError> {
    let (_, path) = find_data_dir(args.files)?;
    let AcceptLossArgs { origin, size, .. } = args;
    output.show(&format!(
        "Witnesses have seen {size} commits of the log {origin}. It will sign others in their place, and so contradict \
         itself.\nWitnesses that have seen the lost commits never cosign it again. Clients that have seen them refuse it as \
         forked.\nThis cannot be undone. A log with a new origin contradicts nothing: see --help."
    ));
    output.confirm("Give up these commits?")?;
    let lost = ask_log(&path, &AdminRequest::AcceptLogLoss { origin: origin.clone(), size })?;
    let files = lost.iter().filter_map(|lost| lost["checkpoint"].as_str());
    let files: String =
        files.map(|file| format!("The checkpoint of the lost commits stays in {file}\n")).collect();
    let text = format!(
        "The log {origin} signs again, without the {size} commits that witnesses have seen.\n{files}"
    );
    output.result(&text, &json!({ "origin": origin, "size": size, "lost": lost }))
}

fn take_checkpoint(args: TakeCheckpointArgs, output: Output) -> Result<(), CliError> {
    let bytes = disk::read(&args.file, NOTE_BYTES as u64);
    let bytes = bytes.map_err(|error| CliError::file("read", &args.file, error))?;
    let shown = shown_path(&args.file);
    let not_one = |reason: String| {
        let message = format!("{shown} is not a checkpoint: {reason}");
        CliError::usage(message, "it is a file such as `curl https://sign.example.org/log/checkpoint` gives")
    };
    let note = Note::parse(&bytes.ok_or_else(|| not_one("there is no such file".to_owned()))?);
    let note = note.map_err(|error| not_one(error.to_string()))?;
    // The signature of the log is enough, and fits into a request.
    let origin = note.text().lines().next().unwrap_or_default();
    let mut own = Note::new(note.text().to_owned());
    note.signatures().iter().filter(|line| line.name() == origin).for_each(|line| own.add(line.clone()));
    let (_, path) = find_data_dir(args.files)?;
    let taken = ask_log(&path, &AdminRequest::TakeLogCheckpoint { note: own.to_string() })?;
    let size = taken.first().and_then(|taken| taken["size"].as_u64()).unwrap_or_default();
    let text = format!(
        "The log signs only what continues this checkpoint of {size} commits. `countersign admin stats` says whether it \
         does.\n"
    );
    output.result(&text, &json!({ "size": size }))
}

fn ask_log(data_dir: &Path, request: &AdminRequest) -> Result<Vec<Value>, CliError> {
    let hint = "the server's log, /readyz and `countersign admin stats` say what the log waits for";
    let answered = socket::ask(data_dir, request, hint).map_err(|error| error.with_hint(hint))?;
    answered.ok_or_else(|| {
        let message = format!("no server runs with the data directory {}", data_dir.display());
        CliError::unreachable(message, "start it first: only a running log knows what it has")
    })
}
