//! Signatures for other programs come with a signature, and go where it goes (D102, D103).

use countersign_core::documents::index::{Digests, NotInSha256Sums, PublishedFile};
use countersign_core::documents::signatures::OtherFormatsFile;
use countersign_core::rules::decide::{assets::Release, sign::SignRefusal};
use countersign_core::values::bounds::OTHER_FORMATS_BYTES;
use countersign_core::values::other_format::{FormatError, OtherFormat};
use countersign_testing::{
    INDEX, PENDING, World, alice, bob, carol, dave, format_text, mallory, path, published, release, signers,
};

use super::{collecting, team};

const FILE: &str = "https/github.com/443/acme/app/releases/tag/v1/svc.index.json.formats.json";

fn stored(world: &World) -> OtherFormatsFile {
    OtherFormatsFile::parse(&world.repo.bytes(FILE)).expect("a file")
}

#[test]
fn they_are_stored_in_the_commit_of_the_signature_and_completion_keeps_them() {
    let mut world = collecting();
    let alices = world.submission_with(&alice(), &[OtherFormat::Ssh]);
    assert!(!world.submit(&alices).unwrap().is_complete);
    assert!(world.last.files.contains_key(&path(FILE)));
    assert_eq!(world.last.files.len(), 2);
    let bobs = world.submission_with(&bob(), &OtherFormat::ALL);
    assert!(world.submit(&bobs).unwrap().is_complete);
    let file = stored(&world);
    assert_eq!(file.entries[&alice().public_key()], alices.other_formats);
    assert_eq!(file.entries[&bob().public_key()], bobs.other_formats);
    assert_eq!([OtherFormat::Minisign, OtherFormat::Ssh].map(|format| file.count(format)), [1, 2]);
}

#[test]
fn no_one_needs_them_and_they_count_for_nothing() {
    let mut world = collecting();
    world.sign_all(INDEX, &[&alice(), &bob()]);
    assert!(!world.repo.has(FILE));
    let mut world = collecting();
    let mut alone = world.submission_with(&alice(), &OtherFormat::ALL);
    alone.signatures.clear();
    assert_eq!(world.submit(&alone), Err(SignRefusal::MissingPrimary(path(INDEX))));
}

#[test]
fn a_wrong_one_refuses_the_whole_submission() {
    for format in OtherFormat::ALL {
        let mut world = collecting();
        let good = world.submission_with(&alice(), &OtherFormat::ALL);
        let bobs = world.submission_with(&bob(), &OtherFormat::ALL);
        // One of OpenPGP has two bytes of what it signs in it.
        let of_other_text =
            if format == OtherFormat::Openpgp { FormatError::Form } else { FormatError::Signature };
        let wrong = [
            (bobs.other_formats[&format].clone(), FormatError::Form),
            (String::new(), FormatError::Form),
            (format!("{}\n", good.other_formats[&format]), FormatError::Form),
            (format_text(format, &alice(), INDEX, "other\n"), of_other_text),
        ];
        for (text, error) in wrong {
            let mut posed = good.clone();
            posed.other_formats.insert(format, text);
            let refused = SignRefusal::BadFormat { format, path: path(INDEX), error };
            assert_eq!(world.submit(&posed), Err(refused));
        }
        for other in OtherFormat::ALL.into_iter().filter(|other| *other != format) {
            let mut swapped = good.clone();
            swapped.other_formats.insert(format, good.other_formats[&other].clone());
            assert!(matches!(world.submit(&swapped), Err(SignRefusal::BadFormat { .. })));
        }
        assert!(!world.repo.has(FILE));
        world.submit(&good).expect("right ones");
    }
}

#[test]
fn a_wrong_signature_or_signer_is_refused_whatever_the_formats() {
    let mut world = collecting();
    let mut posed = world.submission_with(&alice(), &OtherFormat::ALL);
    posed.signatures = world.submission(INDEX, &bob()).signatures;
    assert_eq!(world.submit(&posed), Err(SignRefusal::BadSignature(path(INDEX))));
    let strangers = world.submission_with(&mallory(), &OtherFormat::ALL);
    assert!(matches!(world.submit(&strangers), Err(SignRefusal::NotAllowed { .. })));
}

#[test]
fn who_has_signed_cannot_add_them_later() {
    let mut world = collecting();
    world.sign(INDEX, &alice()).unwrap();
    let later = world.submission_with(&alice(), &[OtherFormat::Ssh]);
    assert_eq!(world.submit(&later), Err(SignRefusal::AlreadySigned(alice().public_key())));
    world.sign(INDEX, &bob()).unwrap();
    assert_eq!(world.submit(&later), Err(SignRefusal::AlreadyComplete(path(INDEX))));
}

#[test]
fn a_corrected_index_loses_them() {
    let mut world = collecting();
    let alices = world.submission_with(&alice(), &OtherFormat::ALL);
    world.submit(&alices).unwrap();
    world.pass(60);
    world.add_release(&release("v1", "two"), &alice()).expect("a correction");
    assert!(!world.repo.has(FILE));
    // Those of the index before are wrong now.
    let mut posed = world.submission(INDEX, &alice());
    posed.other_formats = alices.other_formats;
    assert!(matches!(world.submit(&posed), Err(SignRefusal::BadFormat { .. })));
}

#[test]
fn new_signers_drop_those_of_a_release_that_still_collects() {
    let mut world = collecting();
    world.submit(&world.submission_with(&alice(), &OtherFormat::ALL)).unwrap();
    world.pass(60);
    let next = signers("2026-02-01T10:00:00Z").artifact(2, [&alice(), &bob(), &carol()]);
    world.rotate(&next, &[&alice(), &bob()]);
    assert!(!world.repo.has(FILE));
    world.submit(&world.submission_with(&alice(), &OtherFormat::ALL)).unwrap();
    assert_eq!(stored(&world).count(OtherFormat::Ssh), 1);
}

#[test]
fn new_signers_leave_those_of_a_complete_release_and_a_revoked_one_hands_them_out_no_more() {
    let mut world = collecting();
    for person in [alice(), bob()] {
        world.submit(&world.submission_with(&person, &OtherFormat::ALL)).unwrap();
    }
    let before = stored(&world);
    world.pass(60);
    let next = signers("2026-02-01T10:00:00Z").artifact(2, [&alice(), &bob(), &carol()]);
    world.rotate(&next, &[&alice(), &bob()]);
    assert_eq!(stored(&world), before);
    world.revoke_index(&alice());
    assert!(!world.repo.has(FILE));
}

#[test]
fn a_signers_file_is_signed_in_no_other_format() {
    let mut world = World::new();
    world.register(&team(), &alice()).expect("a registration");
    let mut submission = world.submission(PENDING, &alice());
    submission.other_formats =
        [(OtherFormat::Ssh, format_text(OtherFormat::Ssh, &alice(), PENDING, ""))].into();
    assert_eq!(world.submit(&submission), Err(SignRefusal::FormatsOfSigners(path(PENDING))));
}

#[test]
fn an_index_without_sha256_is_signed_in_no_other_format() {
    let mut world = World::with(&team(), &[&alice(), &bob(), &carol(), &dave()]);
    let file = published("app.tar.gz", "one");
    let digests = Digests { sha256: None, ..file.digests };
    let bare = PublishedFile { digests, ..file };
    let name = bare.file_name.clone();
    let bare = Release { published_files: vec![bare], ..release("v1", "one") };
    world.add_release(&bare, &alice()).expect("a release");
    let refused = SignRefusal::NoSums { path: path(INDEX), reason: NotInSha256Sums::Undigested(name) };
    assert_eq!(world.submit(&world.submission_with(&alice(), &[OtherFormat::Ssh])), Err(refused));
    world.sign(INDEX, &alice()).expect("our own format");
}

/// The bound of the file is reached by long paths with characters that JSON escapes.
#[test]
fn no_one_makes_the_file_larger_than_its_bound() {
    let collected = |padding: usize| {
        let mut world = collecting();
        let texts = [(OtherFormat::Ssh, "x".repeat(padding))].into();
        let file = OtherFormatsFile { entries: [(bob().public_key(), texts)].into() };
        world.repo.put(&path(FILE), &file.write());
        let alices = world.submission_with(&alice(), &OtherFormat::ALL);
        (world.submit(&alices).map(|signed| signed.is_complete), world)
    };
    let (done, world) = collected(0);
    done.expect("room");
    let room = OTHER_FORMATS_BYTES - world.repo.bytes(FILE).len();
    let (done, world) = collected(room);
    assert_eq!((done, world.repo.bytes(FILE).len()), (Ok(false), OTHER_FORMATS_BYTES));
    let (refused, mut world) = collected(room + 1);
    assert_eq!(refused, Err(SignRefusal::FormatsTooLarge(path(INDEX))));
    let message = SignRefusal::FormatsTooLarge(path(INDEX)).to_string();
    assert!(message.contains("sign without them"), "{message}");
    world.sign(INDEX, &alice()).expect("without them");
}
