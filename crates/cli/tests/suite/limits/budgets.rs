//! How much may be stored in a day, as the operator sets it in `[limits]`.

use crate::support::{
    Person, Reply, SignersFile, World, days_ago, fsck::fsck, metrics::Page, world::checksums,
};

struct Budgeted {
    world: World,
    alice: Person,
}

/// Releases that were accepted, and the first that was not.
struct AddedReleases {
    count: u64,
    /// What all of them took.
    bytes: u64,
    /// What the next one would take.
    next: u64,
    refused: Reply,
}

/// A directory has a mode, a name of four letters and an id for each release, and every change makes it anew.
const ENTRY_BYTES: u64 = "40000 v100\0".len() as u64 + 20;

impl Budgeted {
    /// A server with these lines in `[limits]`, and more flags.
    fn start(lines: &str, flags: &[&str]) -> Self {
        let world = World::start_with(|launch, _| {
            let launch = launch.configured(&format!("[limits]\n{lines}\n")).with_metrics();
            launch.args(["--file-server", "*", "--allow-fetch", "127.0.0.1:*"]).args(flags.iter().copied())
        });
        Self { world, alice: Person::named("alice") }
    }

    fn metric(&self, name: &str) -> u64 {
        Page::read(self.world.server.metrics_address()).value(name) as u64
    }

    fn stored(&self) -> u64 {
        self.metric("countersign_stored_bytes_total")
    }

    fn activate(&self, project: &str) {
        self.world.activate(project, &SignersFile::of(1, &[&self.alice]), &[&self.alice]);
    }

    fn add_release(&self, dir: &str) -> Reply {
        let url = self.world.publish_checksums(dir, &checksums(dir));
        self.world.register_assets(&self.alice, &[&url])
    }

    /// Adds releases of equal length until one does not fit.
    fn add_releases(&self, project: &str) -> AddedReleases {
        let (mut bytes, mut last) = (0, 0);
        for n in 100..1_000 {
            let before = self.stored();
            let refused = self.add_release(&format!("{project}/v{n}"));
            if refused.status != 200 {
                assert_eq!(self.stored(), before, "nothing was stored");
                return AddedReleases { count: n - 100, bytes, next: last + ENTRY_BYTES, refused };
            }
            let this = self.stored() - before;
            assert!(n <= 101 || this == last + ENTRY_BYTES, "{this} bytes, and {last} before");
            (bytes, last) = (bytes + this, this);
        }
        panic!("every release was accepted");
    }

    /// The repository is sound, for `git` and by the rules.
    fn check(&self) {
        let report = self.world.git().run(&["fsck", "--strict", "--full"]);
        assert!(!report.contains("error"), "{report}");
        fsck(&self.world.server.repository(), &[]).is_clean();
    }
}

/// Checks the form of a refusal.
#[track_caller]
fn assert_over(reply: &Reply, words: &str) {
    reply.refused(429, words);
    reply.refused(429, "ask the operator to raise limits.");
    let seconds: u64 = reply.header("retry-after").expect("a Retry-After header").parse().unwrap();
    assert!((1..=86_400).contains(&seconds), "{seconds}");
}

#[test]
fn a_project_that_has_stored_too_much_waits_and_everybody_else_goes_on() {
    // So little that what is taken out of either does not come back while the test runs.
    let (most, total) = (30_000, 8 << 20);
    let limits = format!("project_bytes_per_day = {most}\ntotal_bytes_per_day = {total}");
    let server = Budgeted::start(&limits, &[]);
    let (world, alice) = (&server.world, &server.alice);
    let before = server.stored();
    let first = SignersFile::dated(days_ago(2)).artifact(1, &[alice]);
    world.activate("acme/app", &first, &[alice]);
    let signed = world.add_signed_release("acme/app/v1", &[alice]);
    let begun = server.stored() - before;
    let AddedReleases { bytes, next, refused, .. } = server.add_releases("acme/app");
    assert_over(&refused, &format!("the project {}", world.id("acme/app")));
    refused.refused(429, "limits.project_bytes_per_day");
    // The last that was accepted fits, and one more does not. While the test runs, some bytes come back.
    let used = begun + bytes;
    assert!(used <= most + 64 && used + next > most, "{begun} and {bytes} of {most}");
    assert_over(&world.sign(alice, &world.index_path("acme/app/v100")), "try again in");

    // A key that fills the budget does not keep the others from taking it out, and from revoking what it signed.
    world.revoke(alice, &signed).ok();
    world.rotate("acme/app", &SignersFile::dated(days_ago(1)).artifact(1, &[alice]), &[alice]);

    server.activate("acme/other");
    server.add_release("acme/other/v1").ok();
    assert!(world.exists(&world.index_path("acme/app/v100")), "reads go on");
    assert_eq!(server.metric("countersign_over_budget_total{budget=\"project\"}"), 2);
    assert_eq!(server.metric("countersign_over_budget_total{budget=\"total\"}"), 0);
    let left = server.metric("countersign_budget_left_bytes");
    assert!(total - left <= server.stored() && left < total, "{left}");
    server.check();
}

#[test]
fn a_server_that_has_stored_too_much_says_so_and_a_restart_begins_anew() {
    let server = Budgeted::start("host_bytes_per_day = 9000\nproject_reserved_bytes_per_day = 1", &[]);
    server.activate("acme/app");
    let refused = server.add_releases("acme/app").refused;
    assert_over(&refused, "limits.host_bytes_per_day");

    let mut server = Budgeted::start("total_bytes_per_day = 9000\nproject_reserved_bytes_per_day = 1", &[]);
    server.activate("acme/app");
    let AddedReleases { count, next, refused, .. } = server.add_releases("acme/app");
    assert_over(&refused, "this server has stored what it may in a day (9000 bytes)");
    assert!(count > 0 && server.metric("countersign_budget_left_bytes") < next);
    server.world.server.restart();
    server.add_release("acme/app/v999").ok();
    server.check();
}

#[test]
fn development_mode_has_no_budgets() {
    let server = Budgeted::start("project_bytes_per_day = 1\ntotal_bytes_per_day = 1", &["--dev"]);
    server.activate("acme/app");
    server.add_release("acme/app/v1").ok();
    assert!(server.stored() > 0);
}
