//! The page that Prometheus reads.

use std::{fmt::Display, fmt::Write as _, sync::Arc, sync::atomic::Ordering::Relaxed, time::Instant};

use axum::{http::HeaderValue, http::header::CONTENT_TYPE, response::IntoResponse};
use countersign_cluster::node::{NodeState, Reachability};
use countersign_log::{LogFigures, WitnessedFigures};
use countersign_store::BudgetScope;

use crate::events::webhooks::settings::{DeliveryOutcome, WebhookStats};
use crate::http::upstream::{FetchKind, FetchOutcome};
use crate::limits::{Limit, semaphore::FairSemaphore};
use crate::metrics::{BOUNDS, Latencies, RequestKinds, Requests, UpstreamFault};
use crate::operate::{disk_space::DiskSpace, observe, observe::LogStats};
use crate::{api::state::App, follow::mirror::MirrorState, nodes::asking::CosigningStats};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The metrics as text, in version 0.0.4 of Prometheus' format.
pub(crate) fn show(app: &App, kinds: &RequestKinds) -> impl IntoResponse + use<> {
    let mut page = Page::default();
    let version = [(env!("CARGO_PKG_VERSION"), 1)];
    page.values("build_info", "The version of the running program; always 1.", "version", version);
    let is_ready = u8::from(app.readiness().is_ok());
    page.value("ready", "Whether the server can accept changes, as /readyz says.", is_ready);
    write_requests(&mut page, kinds, &app.requests);
    write_clients(&mut page, app);
    write_permits(&mut page, app);
    write_store(&mut page, app);
    write_fetches(&mut page, app);
    if let Some(mirror) = app.role.mirror() {
        write_mirror(&mut page, mirror, app);
    }
    let (listeners, sent) = (app.events.listeners(), app.events.sent.get());
    page.value("event_listeners", "Connections that listen to events.", listeners);
    page.value("events_sent_total", "Events that were sent, to all listeners.", sent);
    let followers = &app.followers;
    let states = [("reading", followers.reading.held()), ("waiting", followers.waiting.held())];
    page.values("journal_followers", "Requests for the journal, by what they do.", "state", states);
    page.value("journal_commits_sent_total", "Commits that were sent to followers.", followers.sent.get());
    if let Some(log) = app.log.get() {
        write_checkpoints(&mut page, log.figures());
        write_cosigning(&mut page, &app.cosigning);
    }
    if let Some(witness) = &app.witness {
        write_witnessed(&mut page, &witness.figures(), witness.count_known());
    }
    write_webhooks(&mut page, &app.webhooks, app.store.recent_commits().end());
    write_log(&mut page, observe::stats());
    ([(CONTENT_TYPE, TEXT)], page.0)
}

fn write_requests(page: &mut Page, kinds: &RequestKinds, requests: &Requests) {
    let name = "http_requests_total";
    page.family(name, "counter", "Answered requests.");
    for (kind, name_of_kind) in kinds.all() {
        for (status, count) in requests.by_status(kind).filter(|(_, count)| *count > 0) {
            let status: &dyn Display = status.as_ref().map_or(&"other", |status| status);
            page.sample(name, &[("route", &name_of_kind), ("status", status)], count);
        }
    }
    let name = "http_request_duration_seconds";
    page.family(name, "histogram", "Time from the head of a request to its answer.");
    for (kind, name_of_kind) in kinds.all() {
        let Latencies { counts, nanos } = requests.latencies(kind);
        if counts.iter().any(|count| *count > 0) {
            let (above, sum) = (counts[BOUNDS.len()], nanos as f64 / 1e9);
            page.histogram(name, &[("route", &name_of_kind)], BOUNDS.into_iter().zip(counts), above, sum);
        }
    }
}

fn write_clients(page: &mut Page, app: &App) {
    let of = &app.connections;
    page.value("connections_open", "Open connections.", of.permits.held());
    page.value("connections_accepted_total", "Accepted connections.", of.accepted.get());
    let name = "connections_dropped_total";
    let reasons = [("too_slow", &of.too_slow), ("gave_way", &of.gave_way), ("no_room", &of.permits.refused)];
    let reasons = reasons.map(|(reason, count)| (reason, count.get()));
    page.values(name, "Connections that the server ended, by reason.", "reason", reasons);
    let name = "rate_limited_total";
    let refusals = |limit| app.limiter.as_deref().map_or(0, |limiter| limiter.refusals(limit));
    let limits = Limit::ALL.map(|limit| (limit.name(), refusals(limit)));
    page.values(name, "Requests answered with 429, by the limit that they met.", "limit", limits);
    page.value("large_answer_bytes", "Bytes of large answers that are being sent.", app.sending.bytes());
}

fn write_permits(page: &mut Page, app: &App) {
    let kinds = [
        ("fetch_turns", &app.upstream.turns.turns),
        ("release_downloads", &app.upstream.releases.permits),
        ("event_listeners", &app.events.permits),
        ("journal_followers", &app.followers.reading),
        ("waiting_followers", &app.followers.waiting),
        ("large_bodies", &app.large_bodies),
        ("pages", &app.renderings),
    ];
    let mut write = |name: &str, help: &str, value: fn(&FairSemaphore) -> u64| {
        page.values(name, help, "of", kinds.map(|(of, permits)| (of, value(permits))));
    };
    write("places", "Places in total.", |permits| permits.total() as u64);
    write("places_held", "Places in use.", |permits| permits.held() as u64);
    write("places_awaited", "Requests that wait for a place.", |permits| permits.waiting() as u64);
    write("places_refused_total", "Requests that got no place.", |permits| permits.refused.get());
    write("places_given_up_total", "Places that their holders lost to others.", FairSemaphore::gave_way);
}

fn write_store(page: &mut Page, app: &App) {
    let (store, stats) = (&app.store, app.store.stats());
    page.value("commits_total", "Commits that were made durable.", stats.commits());
    let name = "batch_commits";
    page.family(name, "histogram", "Commits that shared one round of fsync.");
    let batches = &stats.batches;
    page.histogram(name, &[], batches.counts(), batches.above(), batches.sum());
    page.value("publish_failures_total", "Batches that could not be made durable.", stats.failures.get());
    page.value("writer_queue_length", "Changes that wait for the writer.", stats.waiting.get());
    page.value("packs", "Packs in the repository.", store.packs());
    let bytes = stats.stored_bytes.get();
    page.value("stored_bytes_total", "Bytes of new files and commits that were stored.", bytes);
    if let Ok(space) = DiskSpace::of(store.data_dir.path()) {
        let help = "Bytes that the server can still use on the disk of its data directory.";
        page.value("disk_free_bytes", help, space.free);
        page.value("disk_size_bytes", "The size of that disk in bytes.", space.size);
    }
    let budget = store.budget();
    let refusals = |scope| budget.map_or(0, |budget| budget.refusals(scope));
    let scopes = BudgetScope::ALL.map(|scope| (scope.name(), refusals(scope)));
    let help = "Changes answered with 429, by the budget that they exceeded.";
    page.values("over_budget_total", help, "budget", scopes);
    if let Some(budget) = budget {
        let left = budget.bytes_left(Instant::now());
        page.value("budget_left_bytes", "Bytes left in the budget of the whole server.", left);
    }
    if let Some(node) = app.role.node() {
        write_node(page, &node.state);
    }
    let Some(stats) = app.role.nonces() else { return };
    page.value("nonces_stored_total", "Nonces that were new.", stats.stored.get());
    page.value("nonces_repeated_total", "Nonces that were used before.", stats.repeated.get());
    page.value("nonces_kept", "Nonces remembered now.", stats.kept.get());
    page.value("nonces_queue_length", "Requests that wait for their nonces.", stats.waiting.get());
}

fn write_node(page: &mut Page, node: &NodeState) {
    let (now, is_reachable) = (Instant::now(), matches!(node.reachability(), Reachability::Since(_)));
    page.value("database_up", "Whether the database answers.", u8::from(is_reachable));
    page.value("node_position", "The newest batch that this node has published.", node.applied().seq);
    page.value("node_newest", "The newest batch in the database.", node.newest());
    page.value("node_lag_batches", "Batches that this node has not published.", node.lag());
    let seconds = node.lag_time(now).as_secs_f64();
    page.value("node_lag_seconds", "How long there have been such batches.", seconds);
    let help = "Batches of this node that had to be decided again, because another node was first.";
    page.value("node_races_lost_total", help, node.races_lost.get());
    let help = "Batches that this node passed over, because they break the rules.";
    page.value("node_passed_over_total", help, node.passed_over.get());
    let seconds = node.clock().map_or(0.0, |clock| clock.lead_millis() as f64 / 1e3);
    page.value("node_clock_ahead_seconds", "How far this node's clock is ahead of the database's.", seconds);
    let help = "Batches that were sent again, because the answer of the database was lost.";
    page.value("node_repeated_appends_total", help, node.repeated_appends.get());
    let name = "database_seconds";
    page.family(name, "histogram", "Time that the database took to answer.");
    let counts = node.latency.counts().map(|(micros, count)| (micros as f64 / 1e6, count));
    page.histogram(name, &[], counts, node.latency.above(), node.latency.sum() as f64 / 1e6);
}

fn write_mirror(page: &mut Page, mirror: &MirrorState, app: &App) {
    let help = "Commits that were received from the origin, checked and stored since the start.";
    page.value("mirror_commits_total", help, mirror.followed.get());
    let help = "Bytes of the origin's journal that were received since the start.";
    page.value("mirror_received_bytes_total", help, mirror.received_bytes.get());
    let help = "Questions to the origin that failed since the start.";
    page.value("mirror_failures_total", help, mirror.failures.get());
    let help = "Seconds since the mirror last had everything that the origin had.";
    page.value("mirror_lag_seconds", help, mirror.lag(Instant::now()).as_secs_f64());
    let help = "Whether the mirror has stopped following, until its operator decides.";
    page.value("mirror_refused", help, u8::from(mirror.refusal().is_some()));
    let commits = app.store.recent_commits();
    let newest = commits.from(commits.end() - 1, 1).unwrap_or_default();
    if let Some(commit) = newest.first() {
        let help = "When the newest commit was made, in seconds since 1970.";
        page.value("mirror_newest_commit_seconds", help, commit.time.unix_seconds());
    }
}

fn write_fetches(page: &mut Page, app: &App) {
    let name = "fetches_total";
    page.family(name, "counter", "Fetches for requests, by outcome.");
    for kind in FetchKind::ALL {
        for outcome in FetchOutcome::ALL {
            let labels: [(&str, &dyn Display); 2] = [("kind", &kind.name()), ("outcome", &outcome.name())];
            page.sample(name, &labels, app.upstream.turns.count(kind, outcome));
        }
    }
    let faults = UpstreamFault::ALL.map(|fault| (fault.name(), app.requests.upstream_failures(fault)));
    let help = "Requests answered with 500 because of what an upstream did, by kind.";
    page.values("upstream_failures_total", help, "kind", faults);
    let (fetching, downloads) = (app.upstream.turns.under_way(), app.upstream.releases.permits.held());
    page.value("fetching_requests", "Requests that fetch or wait for their turn.", fetching);
    page.value("release_downloads", "Releases that are being downloaded.", downloads);
}

fn write_checkpoints(page: &mut Page, figures: LogFigures) {
    let LogFigures { size, signed_size, cosigned_size, since_checkpoint, is_in_trouble, lost_size } = figures;
    page.value("log_size", "Commits that are in the log.", size);
    page.value("log_signed_size", "Commits that the newest checkpoint covers.", signed_size);
    let help = "Commits that the newest checkpoint with enough cosignatures covers.";
    page.value("log_cosigned_size", help, cosigned_size);
    let help = "Commits that are in the log, and that no checkpoint covers yet.";
    page.value("log_lag_commits", help, size.saturating_sub(signed_size));
    let help = "Seconds since a checkpoint was last made, or the newest one was given to witnesses again.";
    page.value("log_checkpoint_age_seconds", help, since_checkpoint.as_secs_f64());
    let help = "Whether the log does not go on, or signs nothing; the server's log says why.";
    page.value("log_stopped", help, u8::from(is_in_trouble));
    let help =
        "Commits that were signed or that witnesses have seen, and that the log does not continue; else 0.";
    page.value("log_lost_size", help, lost_size);
}

fn write_cosigning(page: &mut Page, witnesses: &[Arc<CosigningStats>]) {
    let name = "log_witness_size";
    let help = "Commits in the newest checkpoint that a witness has cosigned since the start.";
    page.values(name, help, "witness", witnesses.iter().map(|of| (of.name.as_str(), of.size())));
    let help = "Seconds since a witness has cosigned; there only if it has.";
    let ages = witnesses.iter().filter_map(|of| Some((of.name.as_str(), of.since()?.as_secs_f64())));
    page.values("log_witness_age_seconds", help, "witness", ages);
    let name = "log_witness_failures_total";
    let help = "Questions to a witness that gave no cosignature.";
    page.values(name, help, "witness", witnesses.iter().map(|of| (of.name.as_str(), of.failures.get())));
    let help = "Whether a witness says that it cosigns nothing more of the log until its operator decides.";
    let stopped = witnesses.iter().map(|of| (of.name.as_str(), u8::from(of.is_stopped.load(Relaxed))));
    page.values("log_witness_stopped", help, "witness", stopped);
}

fn write_witnessed(page: &mut Page, logs: &[WitnessedFigures], listed: usize) {
    let help = "Logs that this witness knows from lists. It shows figures only of those that have forked.";
    page.value("witness_listed_logs", help, listed);
    let help = "Commits in the newest checkpoint of a log that this witness has recorded.";
    page.values("witness_size", help, "log", logs.iter().map(|log| (log.origin.as_str(), log.size)));
    let help = "When this witness has cosigned a log last, in seconds since 1970.";
    let times = logs.iter().filter_map(|log| Some((log.origin.as_str(), log.time?)));
    page.values("witness_cosigned_seconds", help, "log", times);
    let name = "witness_stopped";
    let help = "Whether this witness cosigns nothing more of a log, because it has forked.";
    page.values(name, help, "log", logs.iter().map(|log| (log.origin.as_str(), u8::from(log.is_stopped))));
}

fn write_webhooks(page: &mut Page, webhooks: &[Arc<WebhookStats>], end: i64) {
    let name = "webhook_deliveries_total";
    page.family(name, "counter", "Tries to deliver events to webhooks, by outcome.");
    for webhook in webhooks {
        for outcome in DeliveryOutcome::ALL {
            let labels: [(&str, &dyn Display); 2] =
                [("webhook", &webhook.name), ("outcome", &outcome.name())];
            page.sample(name, &labels, webhook.count(outcome));
        }
    }
    let failing = webhooks.iter().map(|webhook| (&webhook.name, u8::from(webhook.is_failing())));
    page.values("webhook_failing", "Whether the last try of a webhook failed.", "webhook", failing);
    let behind = webhooks.iter().filter_map(|webhook| Some((&webhook.name, webhook.behind(end)?)));
    page.values("webhook_commits_behind", "Commits that a webhook has yet to process.", "webhook", behind);
}

fn write_log(page: &mut Page, stats: &LogStats) {
    page.value("log_lines_total", "Log lines that were written.", stats.written.get());
    let reasons = [("rate", &stats.left_out), ("queue", &stats.overflowed), ("write", &stats.unwritten)];
    let reasons = reasons.map(|(reason, count)| (reason, count.get()));
    page.values("log_lines_lost_total", "Log lines that were not written, by reason.", "reason", reasons);
    let is_failing = u8::from(stats.is_failing(Instant::now()));
    page.value("log_failing", "Whether the server cannot write its log at the moment.", is_failing);
}

#[derive(Default)]
struct Page(String);

type Labels<'a> = &'a [(&'a str, &'a dyn Display)];

// All names begin with `countersign_`, which is left out above. Writing to a string cannot fail. Labels and names are
// our own words or plain text, so they need no escapes.
impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP countersign_{name} {help}\n# TYPE countersign_{name} {kind}");
    }

    /// A counter if its name ends in `_total`, or else a gauge.
    fn family_of_values(&mut self, name: &str, help: &str) {
        self.family(name, if name.ends_with("_total") { "counter" } else { "gauge" }, help);
    }

    fn value(&mut self, name: &str, help: &str, value: impl Display) {
        self.family_of_values(name, help);
        self.sample(name, &[], value);
    }

    /// A value for each text of one label.
    fn values<T: Display>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (T, impl Display)>,
    ) {
        self.family_of_values(name, help);
        for (text, value) in values {
            self.sample(name, &[(label, &text)], value);
        }
    }

    fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        let _ = write!(self.0, "countersign_{name}");
        for (i, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"{text}\"", if i == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// Buckets count all that is not above their bounds.
    fn histogram<B: Display>(
        &mut self,
        name: &str,
        labels: Labels<'_>,
        counts: impl Iterator<Item = (B, u64)>,
        above: u64,
        sum: impl Display,
    ) {
        let bucket = format!("{name}_bucket");
        let mut total = 0;
        for (bound, count) in counts {
            total += count;
            self.sample(&bucket, &[labels, &[("le", &bound)]].concat(), total);
        }
        total += above;
        self.sample(&bucket, &[labels, &[("le", &"+Inf")]].concat(), total);
        self.sample(&format!("{name}_sum"), labels, sum);
        self.sample(&format!("{name}_count"), labels, total);
    }
}
