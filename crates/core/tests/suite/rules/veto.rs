//! Vetoes (D135, D136): who, of what, when, and what stays.

use countersign_core::documents::{layout, statement::StatementKind, statement::Veto};
use countersign_core::rules::decide::statement::{Stated, StatementRefusal, find_veto};
use countersign_core::rules::decide::update::UpdateRefusal;
use countersign_core::values::{bounds::VETO_RECORDS, digest::Sha512, key::SecretKey, path::RepoPath};
use countersign_testing::{
    ACTIVE, INDEX, PENDING, PROJECT, Signers, World, alice, bob, carol, dave, key, mallory, path, signers,
};

const DELAY: i128 = 48 * 3_600;
const REASON: &str = "no one of us has asked for this";
const VETOED: Result<Stated, StatementRefusal> = Ok(Stated { in_force: true });
const RECORDED: Result<Stated, StatementRefusal> = Ok(Stated { in_force: false });

/// Bob and Carol administrate. One of Dave and key 5, and one of key 6, are masters.
fn team_at(time: &str) -> Signers {
    signers(time)
        .artifact(1, [&alice()])
        .admin(2, [&bob(), &carol()])
        .master(1, [&dave(), &key(5)])
        .master(1, [&key(6)])
        .delay(48)
}

fn next() -> Signers {
    team_at("2026-02-01T09:00:00Z")
}

fn active() -> World {
    let people = [alice(), bob(), carol(), dave(), key(5), key(6)];
    World::with(&team_at("2026-01-31T10:00:00Z"), &people.iter().collect::<Vec<_>>())
}

fn proposed() -> World {
    let mut world = active();
    world.update(&next(), &bob()).expect("an update");
    world
}

fn waiting() -> World {
    let mut world = proposed();
    world.sign_all(PENDING, &[&bob(), &carol()]);
    world
}

fn veto_by(world: &mut World, by: &SecretKey) -> Result<Stated, StatementRefusal> {
    let path = layout::pending_veto_of(&path(PENDING));
    let document = match world.repo.has(path.as_str()) {
        true => Veto::parse(&world.repo.bytes(path.as_str())).expect("a veto"),
        false => world.veto_document(REASON),
    };
    world.veto(&world.veto_request(&document, by))
}

fn record(world: &World) -> Option<Veto> {
    find_veto(&world.repo, &path(PROJECT), &Sha512::of(next().text().as_bytes())).expect("readable")
}

#[test]
fn the_masters_veto_by_their_own_quorum_waiting_or_not() {
    for mut world in [proposed(), waiting()] {
        assert_eq!(veto_by(&mut world, &dave()), RECORDED);
        assert!(world.repo.has(PENDING) && record(&world).is_none());
        // A second one of the same group does not stand for the other group.
        assert_eq!(veto_by(&mut world, &key(5)), RECORDED);
        assert_eq!(veto_by(&mut world, &key(6)), VETOED);
        assert_eq!(record(&world).expect("a record").veto, REASON);
        let below = world.repo.names_below(&format!("{PROJECT}/svc.signers.pending"));
        assert!(below.is_empty(), "{below:?}");
        world.pass(DELAY);
        world.activate_due().expect_err("it is gone");
        assert_eq!(world.repo.text(ACTIVE), team_at("2026-01-31T10:00:00Z").text());
    }
}

#[test]
fn no_one_else_vetoes() {
    for person in [alice(), bob(), mallory()] {
        let mut world = waiting();
        let refused = StatementRefusal::MayNotVeto { key: person.public_key(), project: path(PROJECT) };
        assert_eq!(veto_by(&mut world, &person), Err(refused));
    }
    let mut world = waiting();
    let mut request = world.veto_request(&world.veto_document(REASON), &mallory());
    request.public_key = dave().public_key();
    assert_eq!(world.veto(&request), Err(StatementRefusal::BadSignature(StatementKind::Veto)));
    // The masters of the proposed file have no say.
    let mut world = active();
    let theirs = signers("2026-02-01T09:00:00Z").artifact(1, [&alice()]).master(1, [&key(9)]);
    world.update(&theirs, &bob()).expect("an update");
    let refused = veto_by(&mut world, &key(9));
    assert!(matches!(refused, Err(StatementRefusal::MayNotVeto { .. })), "{refused:?}");
    let alone = |time| signers(time).artifact(1, [&alice()]).delay(1);
    let mut world = World::with(&alone("2026-01-31T10:00:00Z"), &[&alice()]);
    world.update(&alone("2026-02-01T09:00:00Z"), &alice()).expect("an update");
    assert_eq!(veto_by(&mut world, &alice()), Err(StatementRefusal::NoMasters(path(PROJECT))));
}

#[test]
fn only_a_pending_update_is_vetoed() {
    let mut first = World::new();
    first.register(&next(), &alice()).expect("a registration");
    let document = Veto {
        veto: REASON.to_owned(),
        project_id: path(PROJECT),
        signers_file_digest: Sha512::of(&first.repo.bytes(PENDING)),
        previous: Sha512::of(b""),
        timestamp: first.now,
    };
    let request = first.veto_request(&document, &dave());
    assert_eq!(first.veto(&request), Err(StatementRefusal::FirstRegistration(path(PROJECT))));

    let mut world = active();
    assert_eq!(world.veto(&request), Err(StatementRefusal::NotFound(path(PENDING))));
    for file in [INDEX, ACTIVE, PROJECT] {
        let mut elsewhere = request.clone();
        elsewhere.file_path = path(file);
        assert_eq!(world.veto(&elsewhere), Err(StatementRefusal::NotVetoable(path(file))));
    }
}

#[test]
fn a_veto_names_the_project_and_both_files() {
    let mut world = waiting();
    let right = world.veto_document(REASON);
    let other = Sha512::of(b"another");
    for wrong in [
        Veto { project_id: path("https/github.com/443/acme/apps"), ..right.clone() },
        Veto { signers_file_digest: other, ..right.clone() },
        Veto { previous: other, ..right.clone() },
    ] {
        let request = world.veto_request(&wrong, &dave());
        assert_eq!(world.veto(&request), Err(StatementRefusal::OtherProposal(path(PENDING))));
    }
    for text in ["", "{}", "[]", "null"] {
        let mut request = world.veto_request(&right, &dave());
        request.text = text.to_owned();
        request.signature = dave().sign(&Sha512::of(text.as_bytes()));
        assert!(matches!(world.veto(&request), Err(StatementRefusal::InvalidDocument { .. })), "{text}");
    }
    assert!(!world.repo.has(layout::pending_veto_of(&path(PENDING)).as_str()));
}

#[test]
fn it_is_too_late_at_the_second_at_which_the_file_takes_force() {
    let mut world = waiting();
    world.pass(DELAY - 1);
    assert_eq!(veto_by(&mut world, &dave()), RECORDED);
    let mut late = world.clone();
    assert_eq!(veto_by(&mut world, &key(6)), VETOED);
    late.pass(1);
    let refused = veto_by(&mut late, &key(6));
    assert_eq!(refused, Err(StatementRefusal::TooLate { file: path(PENDING), since: late.now }));
    late.activate_due().expect("it is due");
    // The begun veto goes with what it was about.
    let left = late.repo.names().into_iter().filter(|name| name.contains("veto")).count();
    assert_eq!(left, 0);
}

#[test]
fn the_first_fixes_the_text_and_no_one_signs_twice() {
    let mut world = waiting();
    let document = world.veto_document(REASON);
    assert_eq!(world.veto(&world.veto_request(&document, &dave())), RECORDED);
    let again = world.veto_request(&document, &dave());
    assert_eq!(world.veto(&again), Err(StatementRefusal::AlreadySigned(dave().public_key())));
    let other = world.veto_request(&world.veto_document("something else"), &key(6));
    let refused = world.veto(&other).expect_err("another text");
    assert!(refused.to_string().contains(REASON), "{refused}");
    assert_eq!(world.veto(&world.veto_request(&document, &key(6))), VETOED);
}

#[test]
fn vetoed_bytes_are_refused_until_the_next_rotation() {
    let mut world = waiting();
    let (bobs, carols) = (world.submission(PENDING, &bob()), world.submission(PENDING, &carol()));
    for master in [dave(), key(6)] {
        veto_by(&mut world, &master).expect("a veto");
    }
    let refused = UpdateRefusal::Vetoed { project: path(PROJECT), reason: REASON.to_owned() };
    assert_eq!(world.update(&next(), &bob()), Err(refused));
    // Other bytes are another file, with other signatures.
    let later = team_at("2026-02-01T09:00:01Z");
    world.update(&later, &bob()).expect("another file");
    for submission in [&bobs, &carols] {
        world.submit(submission).expect_err("signatures on other bytes");
    }
    world.sign_all(PENDING, &[&dave(), &key(6)]);
    assert_eq!(world.repo.text(ACTIVE), later.text());
    assert!(record(&world).is_none());
}

#[test]
fn a_veto_of_before_a_rotation_says_nothing_after_it() {
    let mut world = proposed();
    let later = team_at("2026-02-01T09:00:02Z");
    let mut elsewhere = world.clone();
    elsewhere.drop_pending().expect("something pending");
    elsewhere.update(&later, &bob()).expect("an update");
    let old = elsewhere.veto_request(&elsewhere.veto_document(REASON), &dave());
    // The same bytes, proposed to other signers.
    world.sign_all(PENDING, &[&dave(), &key(6)]);
    world.update(&later, &bob()).expect("an update");
    assert_eq!(world.veto(&old), Err(StatementRefusal::OtherProposal(path(PENDING))));
}

#[test]
fn a_replaced_file_leaves_its_begun_veto_behind() {
    let mut world = waiting();
    let document = world.veto_document(REASON);
    veto_by(&mut world, &dave()).expect("a first signature");
    world.update(&team_at("2026-02-01T10:00:00Z"), &carol()).expect("another file");
    world.update(&next(), &bob()).expect("it comes back");
    // Anyone can hand in again what was signed.
    for master in [dave(), key(6)] {
        world.veto(&world.veto_request(&document, &master)).expect("a veto");
    }
    assert!(record(&world).is_some());
}

#[test]
fn the_oldest_vetoes_are_forgotten() {
    let mut world = active();
    let records = |world: &World| {
        let names = world.repo.names_below(&format!("{PROJECT}/svc.signers.vetoed"));
        names.iter().filter(|name| name.ends_with("/svc.veto.json")).count()
    };
    let file = |n: usize| team_at(&format!("2026-02-01T09:00:{n:02}Z"));
    for n in 0..VETO_RECORDS + 2 {
        world.pass(1);
        world.update(&file(n), &bob()).expect("an update");
        for master in [dave(), key(6)] {
            veto_by(&mut world, &master).expect("a veto");
        }
        assert_eq!(records(&world), (n + 1).min(VETO_RECORDS));
    }
    for n in 0..VETO_RECORDS + 2 {
        assert_eq!(world.clone().update(&file(n), &bob()).is_ok(), n < 2, "file {n}");
    }
    let all = world.repo.names_below(&format!("{PROJECT}/svc.signers.vetoed"));
    assert_eq!(all.len(), 2 * VETO_RECORDS);
}

#[test]
fn a_reason_has_bounds() {
    let mut world = waiting();
    for (length, is_fine) in [(0, false), (1, true), (1_000, true), (1_001, false)] {
        let request = world.veto_request(&world.veto_document(&"ä".repeat(length)), &dave());
        assert_eq!(world.clone().veto(&request).is_ok(), is_fine, "{length} characters");
    }
    let mut padded = String::from_utf8(world.veto_document(REASON).write()).unwrap();
    padded += &" ".repeat((16 << 10) - padded.len());
    let mut request = world.veto_request(&world.veto_document(REASON), &dave());
    for (text, is_fine) in [(padded.clone(), true), (padded + " ", false)] {
        request.signature = dave().sign(&Sha512::of(text.as_bytes()));
        request.text = text;
        assert_eq!(world.clone().veto(&request).is_ok(), is_fine);
    }
    world.pass(1);
}

#[test]
fn every_file_of_the_longest_project_can_be_asked_for() {
    let names = "/abcdefghijkl".repeat(57);
    let rest = 864 - "https/h.example/443".len() - names.len();
    let project = path(&format!("https/h.example/443{names}/{}", "x".repeat(rest - 1)));
    assert_eq!((project.as_str().len(), project.segments().count()), (864, 61));
    project.check_storable_dir().expect("a project");
    let (pending, record) =
        (layout::pending_signers(&project), layout::veto_record(&project, &Sha512::of(b"")));
    let veto = layout::veto_of(&pending);
    for file in [
        layout::agreement_of(&pending),
        layout::pending_veto_of(&pending),
        layout::pending_signatures_of(&veto),
        layout::signatures_of(&record),
        record,
    ] {
        assert_eq!(RepoPath::parse(file.as_str()).as_ref(), Ok(&file));
    }
}
