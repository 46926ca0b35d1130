//! `countersign serve --check`: would the server start, do those that it needs answer, and what would it do? Changes
//! nothing (D58, D247).

use std::{collections::BTreeSet, error::Error, net::TcpListener, path::Path, sync::Arc};

use countersign_cluster::{database::Database, schema};
use countersign_core::values::verifier_key::VerifierKey;
use countersign_forge::{fetch::Fetcher, guard::SystemResolver};
use countersign_server::follow::mirror::{MirrorSettings, memory::MirrorMemory};
use countersign_server::nodes::asking::AskedWitness;
use countersign_server::operate::config::{ConfigSource, GivenSettings, NodeSettings, Settings};
use countersign_server::operate::{disk_space::DiskSpace, tls::Tls, tls::TlsFiles};
use countersign_store::store::{FoundData, inspect};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::{ServerClient, session};
use crate::{keys::SigningKey, words::error::CliError, words::output::Output};

const WARNING: &str = "warning";

pub(super) fn run(given: GivenSettings, output: Output) -> Result<(), CliError> {
    let mut report = Report::default();
    match &given.config {
        Some(path) => report.say("configuration", path.display().to_string()),
        None => report.say("configuration", "no file: flags, environment and defaults".to_owned()),
    }
    let file = GivenSettings::read(given.config.as_deref());
    let source = file.as_ref().ok().and_then(|file| file.source.clone());
    let settings = file.and_then(|file| Settings::resolve(given.or(file)));
    match settings {
        Ok(mut settings) => {
            match read_log_key(&mut settings, output) {
                Ok(()) => {
                    let signer = settings.log.as_ref().and_then(|log| log.signer.as_ref());
                    signer.iter().for_each(|signer| report.say("log", signer.key().to_string()));
                }
                Err(error) => {
                    let key = settings.log.as_ref().map(|log| &log.key_file);
                    let line = source.as_ref().zip(key).and_then(|(source, key)| source.line_of("log", key));
                    report.blame_file(&error, line);
                }
            }
            look_at(&settings, source.as_ref(), &mut report);
            session::runtime()?.block_on(ask_others(&settings, output, &mut report));
            for webhook in settings.webhooks.iter().filter(|_| settings.mirror.is_none()) {
                let host = webhook.url.host_str().unwrap_or_default();
                report.say("webhook", format!("{}, to {host}", webhook.name));
            }
        }
        Err(error) => report.blame(&error),
    }
    report.finish(output)
}

fn look_at(settings: &Settings, source: Option<&ConfigSource>, report: &mut Report) {
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let mode = if settings.dev { " (development mode)" } else { "" };
    report.say("listen", format!("{scheme}://{}{mode}", settings.listen));
    if let Some(address) = settings.metrics_listen {
        report.say("metrics", format!("http://{address}/metrics"));
    }
    if let Some(files) = settings.tls.clone() {
        look_at_certificate(files, source, report);
    }
    let is_running = look_at_data(settings, report);
    look_at_disk(&settings.data_dir, report);
    // The running server has its addresses.
    let addresses = std::iter::once(settings.listen).chain(settings.metrics_listen);
    for address in addresses.filter(|_| !is_running) {
        if let Err(error) = TcpListener::bind(address) {
            report.wrong.push(format!("cannot listen on {address}: {error}"));
        }
    }
}

// The servers that this one needs. All are asked at the same time, each within its own limit.

async fn ask_others(settings: &Settings, output: Output, report: &mut Report) {
    let mut parts: [Report; 4] = Default::default();
    let [database, witnesses, forges, origin] = &mut parts;
    let asked = tokio::join!(
        ask_database(settings, database),
        ask_witnesses(settings, witnesses),
        ask_forges(settings, forges),
        ask_origin(settings, output, origin),
    );
    for (mut part, asked) in parts.into_iter().zip(<[_; 4]>::from(asked)) {
        if let Err(error) = asked {
            part.blame(&*error);
        }
        report.facts.extend(part.facts);
        report.wrong.extend(part.wrong);
    }
}

async fn ask_database(settings: &Settings, report: &mut Report) -> Result<(), Box<dyn Error + Send + Sync>> {
    let Some(NodeSettings { database, .. }) = &settings.node else { return Ok(()) };
    let found = schema::inspect(&Database::new(database.clone())?).await?;
    let use_of = if found.was_empty { "which the server would fill" } else { "shared with other nodes" };
    report.say("database", format!("{database}, {use_of}"));
    found.warnings.into_iter().for_each(|warning| report.say(WARNING, warning));
    Ok(())
}

/// Asks the witnesses. One that does not answer is a warning, as long as the others are enough.
async fn ask_witnesses(settings: &Settings, report: &mut Report) -> Result<(), Box<dyn Error + Send + Sync>> {
    let Some(log) = &settings.log else { return Ok(()) };
    let Some(policy) = &log.witnesses else { return Ok(()) };
    let asked = AskedWitness::list(policy, &log.origin)?;
    let answers = join_all(asked.iter().map(AskedWitness::check_answers)).await;
    let mut answering: BTreeSet<VerifierKey> = policy.witness_keys().into_iter().collect();
    for witness in policy.witnesses() {
        let url = witness.url.as_deref().unwrap_or("which sends its cosignatures itself");
        report.say("witness", format!("{}, {url}", witness.name));
    }
    for (witness, answer) in asked.iter().zip(answers) {
        if let Err(reason) = answer {
            answering.retain(|key| key.name() != witness.key.name());
            report.say(WARNING, format!("the witness {}: {reason}", witness.name));
        }
    }
    let quorum = policy.quorum_text().unwrap_or_else(|| "none".to_owned());
    if !policy.is_met(&answering) {
        let text =
            format!("too few witnesses answer: the quorum is {quorum}, and the log would prove no new state");
        report.wrong.push(text);
    }
    report.say("quorum", quorum);
    Ok(())
}

/// Asks the server that a mirror or a witness follows. It starts without it, and follows it later.
async fn ask_origin(
    settings: &Settings,
    output: Output,
    report: &mut Report,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let Some(MirrorSettings { origin, .. }) = &settings.mirror else { return Ok(()) };
    let asked = async { ServerClient::new(origin.as_str(), output)?.check_reachable().await };
    if let Err(error) = asked.await {
        report.say(WARNING, error.describe());
    }
    Ok(())
}

/// Asks the forges that the operator configured. A mirror fetches nothing.
async fn ask_forges(settings: &Settings, report: &mut Report) -> Result<(), Box<dyn Error + Send + Sync>> {
    let forges: Vec<_> = settings.forges.list_configured().filter(|_| settings.mirror.is_none()).collect();
    let fetcher = Fetcher::new(settings.guard.clone(), settings.timeouts, Arc::new(SystemResolver))?;
    let answers = join_all(forges.iter().map(|(_, request)| fetcher.ask(request))).await;
    for ((host, request), answer) in forges.iter().zip(answers) {
        let token = if request.credential.is_some() { ", with a token" } else { "" };
        report.say("forge", format!("{host}{token}"));
        if let Err(error) = answer {
            report.blame(&error);
        }
    }
    Ok(())
}

fn look_at_certificate(files: TlsFiles, source: Option<&ConfigSource>, report: &mut Report) {
    let (cert, key) = (files.cert.display().to_string(), files.key.display().to_string());
    match Tls::read(files) {
        Ok(_) => report.say("certificate", format!("{cert}, key {key}")),
        Err(error) => {
            report.blame_file(&error, source.and_then(|source| source.line_of("tls", &error.path)));
        }
    }
}

/// Reports on the data directory, and returns whether a server runs there.
fn look_at_data(settings: &Settings, report: &mut Report) -> bool {
    let data_dir = settings.data_dir.as_path();
    let dir = data_dir.display();
    let found = inspect(data_dir);
    let (is_running, is_usable) = (matches!(found, Ok(FoundData::InUse)), found.is_ok());
    match found {
        Ok(FoundData::New) => report.say("data", format!("{dir}, which the server would make or fill")),
        Ok(FoundData::Present) => report.say("data", format!("{dir}, with a repository of a known format")),
        Ok(FoundData::InUse) => report.say("data", format!("{dir}, in use by a running server")),
        Err(error) => report.blame(&error),
    }
    match MirrorMemory::at(data_dir).origin() {
        Ok(followed) => report.say_role(settings, followed),
        // It was told above.
        Err(_) if !is_usable => {}
        Err(error) => report.blame(&error),
    }
    is_running
}

fn look_at_disk(data_dir: &Path, report: &mut Report) {
    let there = data_dir.ancestors().find(|dir| dir.exists());
    let Ok(space) = DiskSpace::of(there.unwrap_or(Path::new("."))) else { return };
    report.say("disk", format!("{} of {} MiB free", space.free >> 20, space.size >> 20));
    if space.is_low() {
        let text = "the disk is nearly full: make room, or the server will refuse changes";
        report.say(WARNING, text.to_owned());
    }
}

#[derive(Default)]
struct Report {
    facts: Vec<(&'static str, String)>,
    wrong: Vec<String>,
}

impl Report {
    fn say(&mut self, about: &'static str, text: String) {
        self.facts.push((about, text));
    }

    fn say_role(&mut self, settings: &Settings, followed: Option<String>) {
        let role = if settings.witness.is_some() { "witness" } else { "mirror" };
        match (&settings.mirror, followed) {
            (None, None) => {}
            (None, Some(followed)) => {
                self.say("role", format!("this mirror of {followed} would become a server of its own"));
            }
            (Some(MirrorSettings { origin, .. }), Some(followed)) if followed != origin.as_str() => {
                self.say("role", format!("a {role} of {origin}, which followed {followed} so far"));
            }
            (Some(MirrorSettings { origin, .. }), _) => self.say("role", format!("a {role} of {origin}")),
        }
        for signer in settings.witness.iter().flat_map(|witness| &witness.signers) {
            self.say("key", signer.key().to_string());
        }
    }

    fn blame(&mut self, error: &dyn Error) {
        self.blame_file(error, None);
    }

    /// `line`: where the configuration file names the file that is wrong.
    fn blame_file(&mut self, error: &dyn Error, line: Option<String>) {
        let mut text = error.to_string();
        for cause in std::iter::successors(error.source(), |&cause| cause.source()).map(ToString::to_string) {
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        text.extend(line.map(|line| format!(" ({line})")));
        self.wrong.push(text);
    }

    fn finish(self, output: Output) -> Result<(), CliError> {
        let facts: String = self.facts.iter().map(|(about, text)| format!("{about:<14}{text}\n")).collect();
        if self.wrong.is_empty() {
            let fact = |(about, text): &(_, String)| json!({ "about": about, "text": text });
            let facts_read: Vec<Value> = self.facts.iter().map(fact).collect();
            let has_warning = self.facts.iter().any(|(about, _)| *about == WARNING);
            let subject = if has_warning { "Everything else" } else { "Everything" };
            let text = format!("{facts}{subject} is in order. Nothing was changed.\n");
            return output.result(&text, &json!({ "ok": true, "facts": facts_read }));
        }
        output.line(&facts);
        let message = match &self.wrong[..] {
            [one] => one.clone(),
            several => format!("{} things are wrong:\n- {}", several.len(), several.join("\n- ")),
        };
        Err(CliError::usage(
            message,
            "start or correct what it names, and check again; docs/configuration.md lists all settings",
        )
        .with_detail("problems", json!(self.wrong)))
    }
}

/// Reads the key of the log. The server itself reads no keys, and speaks to no agent.
pub(super) fn read_log_key(settings: &mut Settings, output: Output) -> Result<(), CliError> {
    let Some(log) = &mut settings.log else { return Ok(()) };
    let key = SigningKey::load_for_service(&log.key_file, output)?;
    let named = log.verifier_key(key.public_key())?;
    log.signer = Some(Arc::new(key.into_checkpoint_signer(named)));
    Ok(())
}
