//! The worlds that are visited.

use countersign_testing::{Signers, signers};

use crate::action::{Action, Document, Got, Offered, Says, Seen, Word};
use crate::world::{Care, MALLORY, Menu, ProjectPlan, World, secret};

fn first() -> Signers {
    signers("2026-01-01T00:00:00Z")
}

fn second() -> Signers {
    signers("2026-01-02T00:00:00Z")
}

fn third() -> Signers {
    signers("2026-01-03T00:00:00Z")
}

fn rescue() -> Signers {
    signers("2026-01-31T00:00:00Z")
}

const APP: &str = "acme/app";
/// Two clocks with an hour between them.
const HOUR: [&str; 2] = ["2026-02-01T12:00:00Z", "2026-02-01T13:00:00Z"];

/// A world with everything of everything, checked everywhere.
pub fn tiny() -> World {
    let [alice, bob] = [0, 1].map(secret);
    let plan = ProjectPlan::new(
        APP,
        &[
            ("alice", first().artifact(1, [&alice])),
            ("alice and bob", second().artifact(2, [&alice, &bob])),
            ("bob", third().artifact(1, [&bob])),
        ],
        &rescue().artifact(1, [&alice, &bob]),
    );
    let menu = Menu {
        registering: vec![0, MALLORY],
        proposing: vec![0, 1, MALLORY],
        signing: vec![0, 1, MALLORY],
        releasing: vec![0, 1, MALLORY],
        revoking: vec![0, 1, MALLORY],
        documents: vec![
            Document::First,
            Document::Second,
            Document::Initiated,
            Document::Unnamed,
            Document::OfOther,
        ],
        wrong: true,
        drops: true,
        ..Menu::default()
    };
    World::new(
        "tiny",
        "1 of 1, then 2 of 2, then 1 of 1",
        vec![plan.releasing(&["v1"], &["one", "two"])],
        &menu,
    )
    .with_care(Care::ALL)
}

/// A world in which two of three sign, then two groups must; two releases of two contents. Alice and Bob can stand for
/// each other.
pub fn quorum() -> World {
    let [alice, bob, carol] = [0, 1, 2].map(secret);
    let plan = ProjectPlan::new(
        APP,
        &[
            ("two of three", first().artifact(2, [&alice, &bob, &carol]).admin(1, [&carol])),
            ("two groups", second().artifact(1, [&alice, &bob]).artifact(1, [&carol]).admin(1, [&carol])),
        ],
        &rescue().artifact(1, [&carol]),
    );
    let menu = Menu {
        registering: vec![2],
        proposing: vec![2, MALLORY],
        signing: vec![0, 1, 2],
        releasing: vec![2],
        revoking: vec![2, MALLORY],
        documents: vec![Document::First, Document::Unnamed],
        withdrawing: vec![2, MALLORY],
        wrong: false,
        drops: false,
        ..Menu::default()
    };
    let plan = plan.releasing(&["v1", "v2"], &["one", "two"]);
    World::new("quorum", "2 of 3, then 1 of 2 and 1 of 1", vec![plan], &menu).with_equals(&[&[0, 1]])
}

/// Admins with a threshold, masters, keys that come and go, proposals that replace each other and come back.
pub fn rotation() -> World {
    let [alice, bob, carol, dave, erin] = [0, 1, 2, 3, 4].map(secret);
    let plan = ProjectPlan::new(
        APP,
        &[
            ("founders", first().artifact(1, [&alice, &carol]).admin(2, [&alice, &bob]).master(1, [&dave])),
            ("without dave", second().artifact(2, [&alice, &carol]).admin(1, [&alice, &bob])),
            ("with erin", second().artifact(1, [&bob]).admin(2, [&bob, &erin]).master(1, [&dave])),
            ("carol", third().artifact(1, [&carol]).admin(1, [&bob, &carol])),
        ],
        &rescue().artifact(1, [&alice]),
    );
    let menu = Menu {
        registering: vec![0],
        proposing: vec![1, 2, MALLORY],
        signing: vec![0, 1, 2, 3, 4, MALLORY],
        releasing: vec![0, 1, 2],
        revoking: vec![1],
        documents: vec![Document::First],
        wrong: false,
        drops: true,
        ..Menu::default()
    };
    let about = "admins 2 of 2 or master 1 of 1, then 1 of 2 or 2 of 2";
    World::new("rotation", about, vec![plan.releasing(&["v1"], &["one"])], &menu)
}

/// A world in which two of three revoke, then two others, then one; revocations that were begun, under signers that
/// change.
pub fn revocation() -> World {
    let [alice, bob, carol, dave, erin] = [0, 1, 2, 3, 4].map(secret);
    let plan = ProjectPlan::new(
        APP,
        &[
            ("two of three", first().artifact(1, [&alice]).revocation(2, [&alice, &bob, &carol])),
            ("others", second().artifact(1, [&alice]).revocation(2, [&dave, &erin])),
            ("bob", third().artifact(1, [&alice]).revocation(1, [&bob])),
        ],
        &rescue().artifact(1, [&alice]),
    );
    let menu = Menu {
        registering: vec![0],
        proposing: vec![0],
        signing: vec![0, 1, 2, 3, 4],
        releasing: vec![0],
        revoking: vec![0, 1, 2, 3, 4, MALLORY],
        documents: vec![Document::First, Document::Second, Document::Initiated, Document::Unnamed],
        wrong: true,
        drops: false,
        ..Menu::default()
    };
    World::new(
        "revocation",
        "2 of 3, then 2 of 2, then 1 of 1",
        vec![plan.releasing(&["v1"], &["one"])],
        &menu,
    )
}

/// A world of two projects with the same people.
pub fn neighbours() -> World {
    let [alice, bob] = [0, 1].map(secret);
    let plan = |name: &str| {
        let files = [
            ("alice", first().artifact(1, [&alice])),
            ("alice and bob", second().artifact(2, [&alice, &bob])),
        ];
        ProjectPlan::new(name, &files, &rescue().artifact(1, [&alice])).releasing(&["v1"], &["one"])
    };
    let menu = Menu {
        registering: vec![0],
        proposing: vec![0],
        signing: vec![0, 1],
        releasing: vec![0],
        revoking: vec![0],
        documents: vec![Document::First],
        wrong: false,
        drops: true,
        ..Menu::default()
    };
    let about = "1 of 1, then 2 of 2, each";
    World::new("neighbours", about, vec![plan(APP), plan("acme/app2")], &menu)
}

/// Registrations lapse, signers files lie in the future, and half a month passes.
pub fn time() -> World {
    let [alice, bob] = [0, 1].map(secret);
    let plan = ProjectPlan::new(
        APP,
        &[
            ("alice and bob", first().artifact(1, [&alice, &bob])),
            ("alice", second().artifact(1, [&alice])),
            ("alice, later", signers("2026-02-10T00:00:00Z").artifact(1, [&alice, &bob])),
        ],
        &signers("2026-01-31T00:00:00Z").artifact(1, [&alice]),
    );
    let menu = Menu {
        registering: vec![0, 1],
        proposing: vec![0],
        signing: vec![0, 1],
        releasing: vec![0],
        revoking: vec![0],
        documents: vec![Document::First],
        wrong: false,
        drops: true,
        ..Menu::default()
    };
    World::new("time", "2 of 2 to register, 1 of 2 to sign", vec![plan.releasing(&["v1"], &["one"])], &menu)
        .with_care(Care { staple: 512, rescue: false, ..Care::SOME })
        .with_time(&["2026-02-01T12:00:00Z", "2026-02-16T12:00:00Z"])
}

/// A world of three equal signers, of whom two are needed for everything, and a fourth who joins.
pub fn equals() -> World {
    let [alice, bob, carol, dave] = [0, 1, 2, 3].map(secret);
    let plan = ProjectPlan::new(
        APP,
        &[
            ("three", first().artifact(2, [&alice, &bob, &carol])),
            ("four", second().artifact(2, [&alice, &bob, &carol]).artifact(1, [&dave])),
        ],
        &rescue().artifact(1, [&alice]),
    );
    let menu = Menu {
        registering: vec![0, 1, 2],
        proposing: vec![0, 1, 2],
        signing: vec![0, 1, 2, 3],
        releasing: vec![0, 1, 2],
        revoking: vec![0, 1, 2],
        documents: vec![Document::First],
        wrong: false,
        drops: false,
        ..Menu::default()
    };
    World::new("equals", "2 of 3, then 2 of 3 and 1 of 1", vec![plan.releasing(&["v1"], &["one"])], &menu)
        .with_equals(&[&[0, 1, 2]])
}

/// A world like `quorum` and `revocation` together.
pub fn large() -> World {
    founders("large", &["v1", "v2"])
}

/// A world like `large` with one more release: what a long run goes through.
pub fn vast() -> World {
    founders("vast", &["v1", "v2", "v3"])
}

fn founders(name: &'static str, releases: &[&'static str]) -> World {
    let [alice, bob, carol, dave, erin] = [0, 1, 2, 3, 4].map(secret);
    let plan = ProjectPlan::new(
        APP,
        &[
            (
                "founders",
                first()
                    .artifact(2, [&alice, &bob, &carol])
                    .admin(1, [&carol])
                    .revocation(2, [&alice, &bob, &carol]),
            ),
            ("with dave", second().artifact(2, [&alice, &bob, &dave]).admin(2, [&carol, &dave])),
            ("with erin", third().artifact(1, [&alice, &erin]).admin(1, [&carol, &erin])),
        ],
        &rescue().artifact(1, [&carol]),
    );
    let menu = Menu {
        registering: vec![2],
        proposing: vec![2],
        signing: vec![0, 1, 2, 3, 4],
        releasing: vec![2],
        revoking: vec![0, 1, 2, 3],
        documents: vec![Document::First, Document::Second],
        withdrawing: vec![2],
        wrong: false,
        drops: true,
        ..Menu::default()
    };
    let about = "2 of 3 in every role, two rotations";
    World::new(name, about, vec![plan.releasing(releases, &["one", "two"])], &menu).with_care(Care {
        replay: 512,
        staple: 512,
        index: 64,
        ..Care::SOME
    })
}

/// Releases are withdrawn and objected to, also by people whom a rotation removed. Carol registers releases, and
/// nothing else.
pub fn corrections() -> World {
    let [alice, bob, carol] = [0, 1, 2].map(secret);
    let plan = ProjectPlan::new(
        APP,
        &[
            (
                "two and a registrar",
                first().artifact(2, [&alice, &bob]).admin(1, [&alice]).registrars([&carol]),
            ),
            ("alice", second().artifact(1, [&alice])),
        ],
        &rescue().artifact(1, [&alice]),
    );
    let menu = Menu {
        proposing: vec![0],
        signing: vec![0, 1],
        in_formats: vec![1],
        releasing: vec![0, 1, 2, MALLORY],
        revoking: vec![0],
        documents: vec![Document::First],
        withdrawing: vec![0, 1, 2, MALLORY],
        objecting: vec![0, 1, 2],
        words: vec![Word::First, Word::TakenBack, Word::Again, Word::OfOther, Word::Ahead],
        wrong: true,
        ..Menu::default()
    };
    let about = "2 of 2 with a registrar, then 1 of 1";
    let plan = plan.releasing(&["v1"], &["one", "two"]);
    let world = World::new("corrections", about, vec![plan], &menu);
    let mut world = world.with_care(Care { every_byte: true, ..Care::SOME }).registered(&[0, 1]);
    // What no one may do, Bob alone tries: it takes long and leads nowhere.
    world.actions.retain(|action| match *action {
        Action::SignProposal { by, offered, .. } | Action::SignIndex { by, offered, .. } => {
            by == 1 || offered == Offered::Right
        }
        Action::Object { by, word, offered, .. } => {
            let is_right = offered == Offered::Right && !matches!(word, Word::OfOther | Word::Ahead);
            by == 1 || is_right
        }
        Action::Withdraw { by, seen, .. } => by == 0 || seen == Seen::This,
        Action::Revoke { offered, .. } => offered == Offered::Right,
        _ => true,
    });
    world
}

/// Builders state what they got, of releases that are corrected, withdrawn, completed and revoked, and rotations change
/// who builds. Dave is in two groups. Bob registers releases, and nothing else.
pub fn builders() -> World {
    let [alice, bob, carol, dave, erin] = [0, 1, 2, 3, 4].map(secret);
    let team = |file: Signers| file.artifact(1, [&alice]);
    let plan = ProjectPlan::new(
        APP,
        &[
            (
                "carol and dave",
                team(first())
                    .registrars([&bob])
                    .builders(1, [&carol, &dave])
                    .builders(1, [&dave])
                    .rebuilt(&["*.tar.gz"]),
            ),
            ("carol and erin", team(second()).builders(2, [&carol, &erin]).reproduced_first()),
            ("no builders", team(third())),
            // No rule accepts these: a builder has no other role.
            ("carol builds and signs", third().artifact(1, [&alice, &carol]).builders(1, [&carol])),
            ("bob builds and registers", team(third()).registrars([&bob]).builders(1, [&bob])),
        ],
        &team(rescue()),
    );
    let menu = Menu {
        proposing: vec![0, 2],
        signing: vec![0, 2, 4],
        releasing: vec![0, 1, 2],
        revoking: vec![0, 2],
        documents: vec![Document::First],
        withdrawing: vec![0, 1, 2],
        objecting: vec![2],
        words: vec![Word::First],
        rebuilding: vec![0, 1, 2, 3, 4, MALLORY],
        got: vec![
            Got::Same,
            Got::Part,
            Got::Different,
            Got::Again,
            Got::OfOther,
            Got::OfElsewhere,
            Got::Unlisted,
            Got::Ahead,
            Got::AsObjection,
        ],
        wrong: true,
        ..Menu::default()
    };
    let about = "1 of 1, built by 1 of 2 and 1 of 1, then by 2 of 2, then by no one";
    let plan = plan.releasing(&["v1"], &["one", "two"]).publishing(&["app.tar.gz", "notes.txt"]);
    let world = World::new("builders", about, vec![plan], &menu);
    let mut world = world.with_care(Care { every_byte: true, ..Care::SOME }).registered(&[0, 2, 3]);
    // What no one may do, Carol alone tries: it takes long and leads nowhere.
    world.actions.retain(|action| match *action {
        Action::Rebuild { by: 2, .. } => true,
        Action::Rebuild { by: 3 | 4, got, offered, .. } => {
            offered == Offered::Right && matches!(got, Got::Same | Got::Different)
        }
        Action::Rebuild { got, offered, .. } => offered == Offered::Right && got == Got::Same,
        Action::SignProposal { offered, .. }
        | Action::SignIndex { offered, .. }
        | Action::Object { offered, .. }
        | Action::Revoke { offered, .. } => offered == Offered::Right,
        Action::Withdraw { seen, .. } => seen == Seen::This,
        Action::Update { file, by, .. } => by == 0 || file < 3,
        _ => true,
    });
    world
}

/// A rotation by an admin waits for an hour, in which the master can veto it or put it into effect. Proposals replace
/// each other and come back. One of them takes away the delay and the master.
pub fn waiting() -> World {
    let [alice, bob, dave] = [0, 1, 3].map(secret);
    let team = |file: Signers| file.artifact(1, [&alice]).admin(1, [&bob]);
    let plan = ProjectPlan::new(
        APP,
        &[
            ("team", team(first()).master(1, [&dave]).delay(1)),
            ("without delay", team(second())),
            ("longer delay", team(second()).master(1, [&dave]).delay(2)),
            ("without master", team(third()).delay(1)),
        ],
        &team(rescue()),
    );
    let menu = Menu {
        proposing: vec![1, MALLORY],
        signing: vec![1, 3, MALLORY],
        vetoing: vec![1, 3],
        vetoes: vec![Says::First, Says::OfOther, Says::OfBefore],
        waits: true,
        wrong: true,
        drops: true,
        ..Menu::default()
    };
    World::new("waiting", "an admin and an hour, or 1 of 1 masters", vec![plan], &menu)
        .with_care(Care { every_byte: true, ..Care::SOME })
        .with_time(&HOUR)
        .registered(&[0, 1, 3])
}

/// A world in which two masters veto together, or put a rotation into effect together. Dave and Erin can stand for each
/// other.
pub fn masters() -> World {
    let [alice, bob, dave, erin] = [0, 1, 3, 4].map(secret);
    let team = |file: Signers| file.artifact(1, [&alice]).admin(1, [&bob]);
    let plan = ProjectPlan::new(
        APP,
        &[
            ("team", team(first()).master(2, [&dave, &erin]).delay(1)),
            ("one master is enough", team(second()).master(1, [&dave, &erin]).delay(1)),
        ],
        &team(rescue()),
    );
    let menu = Menu {
        proposing: vec![1],
        signing: vec![1, 3, 4],
        vetoing: vec![1, 3, 4],
        vetoes: vec![Says::First, Says::Second],
        waits: true,
        ..Menu::default()
    };
    World::new("masters", "an admin and an hour, or 2 of 2 masters", vec![plan], &menu)
        .with_care(Care { every_byte: true, ..Care::SOME })
        .with_time(&HOUR)
        .with_equals(&[&[3, 4]])
        .registered(&[0, 1, 3, 4])
}

/// A rotation waits that no one can veto, and a release collects meanwhile.
pub fn patience() -> World {
    let [alice, bob] = [0, 1].map(secret);
    let plan = ProjectPlan::new(
        APP,
        &[
            ("two", first().artifact(2, [&alice, &bob]).admin(1, [&alice]).delay(1)),
            ("alice", second().artifact(1, [&alice]).delay(1)),
            ("alice, later", third().artifact(1, [&alice])),
        ],
        &rescue().artifact(1, [&alice]),
    );
    let menu = Menu {
        proposing: vec![0],
        signing: vec![0, 1],
        releasing: vec![0],
        revoking: vec![0],
        documents: vec![Document::First],
        vetoing: vec![0],
        vetoes: vec![Says::First],
        waits: true,
        ..Menu::default()
    };
    let about = "1 of 1 and an hour, then two; no masters";
    World::new("patience", about, vec![plan.releasing(&["v1"], &["one"])], &menu)
        .with_time(&HOUR)
        .registered(&[0, 1])
}

/// Each of them, the small ones first.
pub fn all() -> Vec<World> {
    vec![
        tiny(),
        equals(),
        corrections(),
        builders(),
        masters(),
        waiting(),
        patience(),
        revocation(),
        neighbours(),
        quorum(),
        rotation(),
        time(),
        large(),
        vast(),
    ]
}
