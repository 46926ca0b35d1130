//! The operator's requests to a running server, over a socket in the data directory (D59): one line of JSON asks, lines
//! of JSON answer.

use std::time::{Duration, Instant};
use std::{fs, io, os::unix::fs::PermissionsExt as _, path::Path, sync::atomic::Ordering};

use countersign_core::log::{checkpoint::Checkpoint, note::Note};
use countersign_core::rules::{decide::proposal, snapshot::Snapshot as _};
use countersign_core::{documents::layout, values::path::RepoPath, values::shown::shown_text};
use countersign_log::TransparencyLog;
use countersign_store::{Head, machine::data_dir::DataDir, machine::disk};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::{net::UnixListener, net::UnixStream, sync::watch, time::timeout};
use tokio::{task::JoinSet, task::spawn_blocking};

use crate::follow::{background::BoxedError, mirror::MirrorState};
use crate::http::blocks::{BlockError, BlockedThing, Blocks};
use crate::{api::state::App, nodes::log_summary::LogSummary, operate::disk_space::DiskSpace};

/// The operator needs one at a time.
const MAX_CONNECTIONS: usize = 8;
pub const MAX_REQUEST_BYTES: u64 = 4 * 1024;
/// One answer lists at most so many projects; a prefix selects.
pub const MAX_LISTED: usize = 10_000;
/// How long the request, the work and the answer can take together.
const MAX_TIME: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum AdminRequest {
    Projects { below: Option<String> },
    Drop { project: String },
    Block { what: String },
    Unblock { what: String },
    Blocks {},
    Stats {},
    ResumeMirror {},
    ResumeWitness {},
    AcceptLogLoss { origin: String, size: u64 },
    TakeLogCheckpoint { note: String },
    LogStatus {},
}

/// The last line of every answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminEnd {
    Done,
    Failed(String),
}

/// Makes the socket. The caller holds the lock of the data directory, so one that is there is stale.
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Answers until it is told to stop.
pub(crate) async fn serve(listener: UnixListener, app: App, mut stopped: watch::Receiver<bool>) {
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => accepted,
        };
        while open.try_join_next().is_some() {}
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if open.len() >= MAX_CONNECTIONS {
            continue;
        }
        let app = app.clone();
        open.spawn(async move {
            if let Ok(Err(error)) = timeout(MAX_TIME, converse(stream, &app)).await {
                tracing::debug!(%error, "a connection of the operator ended early");
            }
        });
    }
    // The lock is still ours, so the socket is as well.
    let _ = fs::remove_file(DataDir::admin_socket_at(app.store.data_dir.path()));
    // A change under way is finished by the writer, and nothing waits for its answer.
    open.shutdown().await;
}

async fn converse(mut stream: UnixStream, app: &App) -> io::Result<()> {
    // The mode of the socket keeps others out, but not before it is set.
    let (peer, own) = (stream.peer_cred()?.uid(), rustix::process::geteuid().as_raw());
    if peer != own && peer != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let (reader, mut writer) = stream.split();
    let mut line = String::new();
    BufReader::new(reader.take(MAX_REQUEST_BYTES)).read_line(&mut line).await?;
    let answered = match serde_json::from_str(&line) {
        Ok(request) => perform(app, request).await,
        Err(error) => Err(format!("this is not a request: {error}").into()),
    };
    let (items, end) = match answered {
        Ok(items) => (items, AdminEnd::Done),
        Err(reason) => (Vec::new(), AdminEnd::Failed(reason.to_string())),
    };
    let mut text: String = items.iter().map(|item| format!("{item}\n")).collect();
    text.push_str(&format!("{}\n", json!({ "end": end })));
    writer.write_all(text.as_bytes()).await?;
    writer.shutdown().await
}

async fn perform(app: &App, request: AdminRequest) -> Result<Vec<Value>, BoxedError> {
    match request {
        AdminRequest::Projects { below } => {
            let head = app.store.head();
            let below = below.as_deref().map(parse_path).transpose()?;
            Ok(spawn_blocking(move || list_projects(&head, below.as_ref())).await?)
        }
        AdminRequest::Drop { project } => {
            let project = parse_path(&project)?;
            app.role.check_accepts()?;
            let dropped = project.clone();
            let decide = move |head: &_, _| proposal::drop_pending(head, &dropped);
            app.store.transact(decide).await??;
            tracing::info!(%project, "the operator dropped the pending signers");
            Ok(Vec::new())
        }
        AdminRequest::Block { what } => change_blocks(app, &what, Blocks::block, "blocked").await,
        AdminRequest::Unblock { what } => change_blocks(app, &what, Blocks::unblock, "unblocked").await,
        AdminRequest::Blocks {} => Ok(list_blocks(&app.blocks)),
        AdminRequest::Stats {} => Ok(vec![describe(app)]),
        AdminRequest::ResumeMirror {} => resume_mirror(app).await,
        AdminRequest::ResumeWitness {} => resume_witness(app).await,
        AdminRequest::AcceptLogLoss { origin, size } => {
            decide_about_log(app, move |log, dir| accept_log_loss(log, dir, &origin, size)).await
        }
        AdminRequest::TakeLogCheckpoint { note } => {
            decide_about_log(app, move |log, _| take_log_checkpoint(log, &note)).await
        }
        AdminRequest::LogStatus {} => {
            let log =
                app.log.get().ok_or("this server keeps no log: `countersign admin log init` makes one")?;
            let summary = LogSummary::of(log, &app.cosigning, app.role.mirror(), app.now());
            Ok(vec![serde_json::to_value(&summary)?, json!(summary.text())])
        }
    }
}

async fn change_blocks(
    app: &App,
    what: &str,
    change: fn(&Blocks, BlockedThing) -> Result<(), BlockError>,
    did: &str,
) -> Result<Vec<Value>, BoxedError> {
    let thing = BlockedThing::parse(what)?;
    let (shown, held) = (thing.to_string(), app.clone());
    spawn_blocking(move || change(&held.blocks, thing)).await??;
    tracing::info!("the operator {did} {shown}");
    Ok(Vec::new())
}

async fn resume_mirror(app: &App) -> Result<Vec<Value>, BoxedError> {
    let held = app.clone();
    match spawn_blocking(move || held.role.mirror().map(MirrorState::resume)).await?.transpose()? {
        None => Err("this server is not a mirror".into()),
        Some(true) => Ok(Vec::new()),
        Some(false) => Err("this mirror has not stopped following".into()),
    }
}

async fn resume_witness(app: &App) -> Result<Vec<Value>, BoxedError> {
    let witness = app.witness.clone().ok_or("this server is not a witness")?;
    if !spawn_blocking(move || witness.resume()).await?? {
        return Err("this witness has not stopped for any log".into());
    }
    tracing::warn!("the operator lets the witness cosign a forked log again");
    Ok(Vec::new())
}

async fn decide_about_log(
    app: &App,
    decide: impl FnOnce(&TransparencyLog, &Path) -> Result<Vec<Value>, BoxedError> + Send + 'static,
) -> Result<Vec<Value>, BoxedError> {
    let log = app.log.get().cloned().filter(|_| app.role.mirror().is_none());
    let log = log.ok_or("this server keeps no log")?;
    let dir = app.store.data_dir.log();
    spawn_blocking(move || decide(&log, &dir)).await?
}

/// The checkpoints of what is lost stay beside the log, for those who ask what it was.
fn accept_log_loss(
    log: &TransparencyLog,
    dir: &Path,
    origin: &str,
    size: u64,
) -> Result<Vec<Value>, BoxedError> {
    let lost = log.accept_loss(origin, size)?;
    let files = lost.iter().map(|note| {
        let size = Checkpoint::parse_extended(note.text()).map_or(0, |checkpoint| checkpoint.size);
        let path = dir.join(format!("lost-{size}"));
        let kept = disk::replace(&path, &note.to_string());
        kept.map_err(|error| {
            format!("the log signs again, but {} cannot be written: {error}", path.display())
        })?;
        Ok(json!({ "size": size, "checkpoint": path.display().to_string() }))
    });
    files.collect()
}

fn take_log_checkpoint(log: &TransparencyLog, note: &str) -> Result<Vec<Value>, BoxedError> {
    let size = log.take_checkpoint(&Note::parse(note.as_bytes())?, "the operator")?;
    Ok(vec![json!({ "size": size })])
}

fn parse_path(text: &str) -> Result<RepoPath, String> {
    RepoPath::parse(text).map_err(|error| format!("`{}` is not a project: {error}", shown_text(text)))
}

pub fn list_blocks(blocks: &Blocks) -> Vec<Value> {
    blocks.list().iter().map(|thing| json!({ "kind": thing.kind(), "blocked": thing.as_str() })).collect()
}

/// Projects at or below a path, or else those whose last names are this, in the order of their identifiers. A last
/// item says how many more there are.
pub fn list_projects(head: &Head, name: Option<&RepoPath>) -> Vec<Value> {
    let index = &head.index;
    let is_below = |project: &RepoPath| {
        name.is_none_or(|dir| project.self_and_ancestors().any(|ancestor| ancestor == *dir))
    };
    let end = name.map(|name| format!("/{name}"));
    let is_named = |project: &RepoPath| end.as_ref().is_some_and(|end| project.as_str().ends_with(end));
    let is_dir = index.projects().any(|(_, project)| is_below(project));
    let is_wanted = |project: &RepoPath| if is_dir { is_below(project) } else { is_named(project) };
    let mut wanted = index.projects().map(|(_, project)| project).filter(|project| is_wanted(project));
    let describe = |project: &RepoPath| {
        let is_active = head.contains(&layout::active_signers(project));
        let is_pending = head.contains(&layout::pending_signers(project));
        let state = match (is_active, is_pending) {
            (true, true) => "new signers pending",
            (true, false) => "active",
            (false, _) => "registration pending",
        };
        json!({ "project": project.as_str(), "state": state, "collecting": index.collecting_indexes(project).len() })
    };
    let mut items: Vec<Value> = wanted.by_ref().take(MAX_LISTED).map(describe).collect();
    let more = wanted.count();
    if more > 0 {
        items.push(json!({ "more": more }));
    }
    items
}

fn describe(app: &App) -> Value {
    let (head, store) = (app.store.head(), app.store.stats());
    let space = DiskSpace::of(app.store.data_dir.path()).ok();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": app.started.elapsed().as_secs(),
        "ready": app.readiness().is_ok(),
        "commit": head.commit.to_string(),
        "projects": head.index.projects().count(),
        "collecting": head.index.collecting_count(),
        "commits_since_start": store.commits(),
        "changes_waiting": store.waiting.get(),
        "failures": store.failures.get(),
        "packs": app.store.packs(),
        "connections": app.connections.permits.held(),
        "listeners": app.events.listeners(),
        "blocks": app.blocks.list().len(),
        "disk_free_bytes": space.map(|space| space.free),
        "disk_size_bytes": space.map(|space| space.size),
        "mirror_of": app.role.mirror().map(|mirror| mirror.origin.as_str()),
        "mirror_lag_seconds": app.role.mirror().map(|mirror| mirror.lag(Instant::now()).as_secs()),
        "mirror_refused": app.role.mirror().and_then(|mirror| Some(mirror.refusal()?.reason.clone())),
        "witness": app.witness.as_ref().map(|witness| witness.keys().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
        "witness_stopped": app.witness.as_ref().and_then(|witness| Some(witness.stops().first()?.reason.clone())),
        "log_refused": app.log.get().and_then(|log| Some(log.refusal()?.to_string())),
        "witnesses_stopped": app.cosigning.iter().filter(|of| of.is_stopped.load(Ordering::Relaxed)).map(|of| of.name.as_str()).collect::<Vec<_>>(),
        "log_failing": crate::operate::observe::stats().is_failing(Instant::now()),
    })
}
