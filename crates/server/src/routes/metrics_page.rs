//! The metrics as text, in version 0.0.4 of Prometheus' format.

use countersign_store::histogram::Histogram;
use std::{
    fmt::{Display, Write as _},
    time::Instant,
};

use crate::{
    events::Audience,
    limits::{Limit, places::SharedPlaces},
    metrics::{BOUNDS, RequestKinds, Requests},
    observe::{self, LogStats},
    state::App,
    upstream::turns::{FetchKind, FetchOutcome},
    webhooks::stats::DeliveryOutcome,
};
use countersign_store::BudgetScope;

pub(super) fn render(app: &App, kinds: &RequestKinds) -> String {
    let mut page = Page::default();
    page.family("countersign_build_info", "gauge", "The version of the running program; always 1.");
    page.sample("countersign_build_info", &[("version", &env!("CARGO_PKG_VERSION"))], 1);
    let is_ready = u8::from(app.readiness().is_ok());
    page.gauge("countersign_ready", "Whether the server can accept changes, as /readyz says.", is_ready);
    write_requests(&mut page, kinds, &app.requests);
    write_connections(&mut page, app);
    write_limits(&mut page, app);
    write_answers(&mut page, app);
    write_places(&mut page, app);
    write_store(&mut page, app);
    write_budget(&mut page, app);
    write_nonces(&mut page, app);
    write_fetches(&mut page, app);
    write_events(&mut page, &app.events);
    write_webhooks(&mut page, app);
    write_log(&mut page, observe::stats());
    page.0
}

fn write_requests(page: &mut Page, kinds: &RequestKinds, requests: &Requests) {
    let name = "countersign_http_requests_total";
    page.family(name, "counter", "Answered requests.");
    for (kind, name_of_kind) in kinds.all() {
        for (status, count) in requests.by_status(kind).filter(|(_, count)| *count > 0) {
            let status: &dyn Display = status.as_ref().map_or(&"other", |status| status);
            page.sample(name, &[("route", &name_of_kind), ("status", status)], count);
        }
    }
    let name = "countersign_http_request_duration_seconds";
    page.family(name, "histogram", "Time from the head of a request to its answer.");
    for (kind, name_of_kind) in kinds.all() {
        let (counts, above, nanos) = requests.latencies(kind);
        if above > 0 || counts.iter().any(|count| *count > 0) {
            let bounds = BOUNDS.map(|micros| micros as f64 / 1e6);
            let sum = nanos as f64 / 1e9;
            page.histogram(name, &[("route", &name_of_kind)], bounds.into_iter().zip(counts), above, sum);
        }
    }
}

fn write_connections(page: &mut Page, app: &App) {
    let counts = app.connections.counts();
    page.gauge("countersign_connections_open", "Open connections.", counts.open);
    page.counter("countersign_connections_accepted_total", "Accepted connections.", counts.accepted);
    let name = "countersign_connections_dropped_total";
    page.family(name, "counter", "Connections that the server ended, by reason.");
    for (reason, count) in
        [("too_slow", counts.too_slow), ("gave_way", counts.gave_way), ("no_room", counts.refused)]
    {
        page.sample(name, &[("reason", &reason)], count);
    }
}

fn write_limits(page: &mut Page, app: &App) {
    let name = "countersign_rate_limited_total";
    page.family(name, "counter", "Requests answered with 429, by the limit that they met.");
    for limit in Limit::ALL {
        let label = match limit {
            Limit::Address => "address",
            Limit::AddressAuthenticated => "address_authenticated",
            Limit::AddressFetches => "address_fetches",
            Limit::AddressFetching => "address_fetching",
            Limit::AddressListening => "address_listening",
            Limit::AddressSending => "address_sending",
            Limit::Key => "key",
            Limit::KeyFetches => "key_fetches",
            Limit::KeyFetching => "key_fetching",
        };
        let count = app.limiter.as_deref().map_or(0, |limiter| limiter.refusals(limit));
        page.sample(name, &[("limit", &label)], count);
    }
}

fn write_answers(page: &mut Page, app: &App) {
    page.gauge(
        "countersign_large_answer_bytes",
        "Bytes of large answers that are being sent.",
        app.sending.bytes(),
    );
}

fn write_places(page: &mut Page, app: &App) {
    let kinds = [
        ("fetch_turns", app.upstream.turns.turns()),
        ("release_downloads", app.upstream.releases.places()),
        ("event_listeners", app.events.places()),
        ("large_bodies", &app.large_bodies),
        ("pages", app.renderings.turns()),
    ];
    let mut write = |name: &str, kind: &str, help: &str, value: fn(&SharedPlaces) -> u64| {
        page.family(name, kind, help);
        for (of, places) in kinds {
            page.sample(name, &[("of", &of)], value(places));
        }
    };
    write("countersign_places", "gauge", "Places in total.", |places| places.total() as u64);
    write("countersign_places_held", "gauge", "Places in use.", |places| places.held() as u64);
    write("countersign_places_awaited", "gauge", "Requests that wait for a place.", |places| {
        places.waiting() as u64
    });
    write(
        "countersign_places_refused_total",
        "counter",
        "Requests that got no place.",
        SharedPlaces::refused,
    );
    write(
        "countersign_places_given_up_total",
        "counter",
        "Places that their holders lost to others.",
        SharedPlaces::gave_way,
    );
}

fn write_store(page: &mut Page, app: &App) {
    let (store, stats) = (&app.store, app.store.stats());
    page.counter("countersign_commits_total", "Commits that were made durable.", stats.commits());
    let name = "countersign_batch_commits";
    page.family(name, "histogram", "Commits that shared one round of fsync.");
    page.integers(name, &stats.batches);
    page.counter(
        "countersign_publish_failures_total",
        "Batches that could not be made durable.",
        stats.failures(),
    );
    page.gauge("countersign_writer_queue_length", "Changes that wait for the writer.", stats.waiting());
    page.gauge("countersign_packs", "Packs in the repository.", store.packs());
}

fn write_budget(page: &mut Page, app: &App) {
    let bytes = app.store.stats().content_bytes();
    page.counter("countersign_stored_bytes_total", "Bytes of new files and commits that were stored.", bytes);
    let budget = app.store.budget();
    let name = "countersign_over_budget_total";
    page.family(name, "counter", "Changes answered with 429, by the budget that they exceeded.");
    for scope in BudgetScope::ALL {
        let count = budget.map_or(0, |budget| budget.refusals(scope));
        page.sample(name, &[("budget", &scope.name())], count);
    }
    if let Some(budget) = budget {
        let left = budget.bytes_left(Instant::now());
        page.gauge("countersign_budget_left_bytes", "Bytes left in the budget of the whole server.", left);
    }
}

fn write_nonces(page: &mut Page, app: &App) {
    let stats = app.nonces.stats();
    page.counter("countersign_nonces_stored_total", "Nonces that were new.", stats.stored());
    page.counter("countersign_nonces_repeated_total", "Nonces that were used before.", stats.repeated());
    page.gauge("countersign_nonces_kept", "Nonces remembered now.", stats.kept());
    page.gauge("countersign_nonces_queue_length", "Requests that wait for their nonces.", stats.waiting());
}

fn write_fetches(page: &mut Page, app: &App) {
    let name = "countersign_fetches_total";
    page.family(name, "counter", "Fetches for requests, by outcome.");
    for kind in FetchKind::ALL {
        for outcome in FetchOutcome::ALL {
            let labels: [(&str, &dyn Display); 2] = [("kind", &kind.name()), ("outcome", &outcome.name())];
            page.sample(name, &labels, app.upstream.turns.count(kind, outcome));
        }
    }
    page.gauge(
        "countersign_fetching_requests",
        "Requests that fetch or wait for their turn.",
        app.upstream.turns.under_way(),
    );
    page.gauge(
        "countersign_release_downloads",
        "Releases that are being downloaded.",
        app.upstream.releases.under_way(),
    );
}

fn write_events(page: &mut Page, events: &Audience) {
    page.gauge("countersign_event_listeners", "Connections that listen to events.", events.listeners());
    page.counter("countersign_events_sent_total", "Events that were sent, to all listeners.", events.sent());
}

fn write_webhooks(page: &mut Page, app: &App) {
    let name = "countersign_webhook_deliveries_total";
    page.family(name, "counter", "Tries to deliver events to webhooks, by outcome.");
    for webhook in &app.webhooks {
        for outcome in DeliveryOutcome::ALL {
            let labels: [(&str, &dyn Display); 2] =
                [("webhook", &webhook.name), ("outcome", &outcome.name())];
            page.sample(name, &labels, webhook.count(outcome));
        }
    }
    let name = "countersign_webhook_failing";
    page.family(name, "gauge", "Whether the last try of a webhook failed.");
    for webhook in &app.webhooks {
        page.sample(name, &[("webhook", &webhook.name)], u8::from(webhook.is_failing()));
    }
    let name = "countersign_webhook_commits_behind";
    page.family(name, "gauge", "Commits that a webhook has yet to process.");
    for webhook in &app.webhooks {
        if let Some(behind) = webhook.behind(app.store.log().end()) {
            page.sample(name, &[("webhook", &webhook.name)], behind);
        }
    }
}

fn write_log(page: &mut Page, stats: &LogStats) {
    page.counter("countersign_log_lines_total", "Log lines that were written.", stats.written());
    let name = "countersign_log_lines_lost_total";
    page.family(name, "counter", "Log lines that were not written, by reason.");
    let reasons = [("rate", stats.left_out()), ("queue", stats.overflowed()), ("write", stats.unwritten())];
    for (reason, count) in reasons {
        page.sample(name, &[("reason", &reason)], count);
    }
    let is_failing = u8::from(stats.is_failing(Instant::now()));
    page.gauge(
        "countersign_log_failing",
        "Whether the server cannot write its log at the moment.",
        is_failing,
    );
}

#[derive(Default)]
struct Page(String);

type Labels<'a> = &'a [(&'a str, &'a dyn Display)];

// Writing to a string cannot fail. Labels and names are our own words, or plain, and need no escapes.
impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help);
        self.sample(name, &[], value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.0.push_str(name);
        for (i, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"{text}\"", if i == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn integers<const N: usize>(&mut self, name: &str, histogram: &Histogram<N>) {
        let (counts, above) = histogram.counts();
        self.histogram(name, &[], counts, above, histogram.sum());
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
