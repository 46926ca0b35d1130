//! A commit is legal where the rules give exactly what it changed, and nowhere else.

use countersign_core::documents::said::{RebuildsFile, StoredRebuild};
use countersign_core::documents::{index::PublishedFile, signatures::Collected, signatures::SignatureSet};
use countersign_core::rules::decide::withdraw::{repeat_withdrawal, withdraw};
use countersign_core::values::{digest::Sha512, key::PublicKey, wire};
use countersign_store::audit::replay::{MAX_FETCH, ReplayFault, Violation};
use countersign_testing::*;

use crate::support::replaying::{Recorded, Recorder, everything, replay, team};

const REVOKED: &str = "https/github.com/443/acme/app/releases/tag/v1/svc.index.json.revocation.json";

#[track_caller]
fn assert_legal(steps: &[Recorded]) {
    let mut replay = replay();
    for step in steps {
        step.check(&mut replay).unwrap_or_else(|violations| panic!("{}: {violations:#?}", step.message));
    }
}

#[test]
fn what_the_decisions_did_is_legal() {
    let recorder = everything();
    assert!(recorder.world.repo.has(REVOKED));
    assert_legal(&recorder.steps);
}

/// Servers before D223 and D224 let a registrar withdraw what was signed, and kept no objections to what was gone.
#[test]
fn what_servers_did_before_is_legal() {
    let machine = key(7);
    let earlier = path(&format!("{INDEX}{}", wire::EARLIER_OBJECTIONS_SUFFIX));
    let mut recorder = Recorder::new();
    let file = signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]).registrars([&machine]);
    recorder.register(&file, &alice());
    recorder.sign(PENDING, &[&alice(), &bob()]);
    recorder.act(|world| world.add_release(&release("v1", "zero"), &machine)).expect("a release");
    recorder.act(|world| world.object(Some("not my build"), &bob())).expect("an objection");
    recorder.act(|world| {
        world.add_release(&release("v1", "one"), &alice()).expect("a correction");
        world.repo.remove(&earlier);
    });
    recorder.act(|world| world.object(Some("nor this"), &bob())).expect("an objection");
    recorder.act(|world| {
        world.add_release(&release("v1", "two"), &bob()).expect("a correction");
        world.repo.remove(&earlier);
    });
    assert_legal(&recorder.steps);

    let mut recorder = Recorder::new();
    recorder.register(&file, &alice());
    recorder.sign(PENDING, &[&alice(), &bob()]);
    recorder.act(|world| world.add_release(&release("v1", "zero"), &machine)).expect("a release");
    recorder.act(|world| world.object(Some("not my build"), &bob())).expect("an objection");
    recorder.sign(INDEX, &[&alice()]);
    recorder.act(|world| {
        let withdrawal = world.withdrawal(INDEX, "the machine's", &machine);
        assert!(withdraw(&world.repo, &withdrawal).is_err(), "not any more");
        let (change, ()) = repeat_withdrawal(&world.repo, &withdrawal).expect("what was allowed");
        world.repo.apply(&change);
        world.repo.remove(&earlier);
        world.last = change;
    });
    recorder.act(|world| world.add_release(&release("v1", "other content"), &machine)).expect("a release");
    assert_legal(&recorder.steps);
}

/// The property that no list of special cases can give: whatever file is another one than the rules give, in whatever
/// commit, is found and named.
#[test]
fn no_file_can_be_changed_added_or_removed_beside_what_the_rules_give() {
    for step in everything().steps {
        let names: Vec<String> = step.after.names().into_iter().map(str::to_owned).collect();
        for name in &names {
            let bytes = step.after.bytes(name);
            let mut longer = bytes.to_vec();
            longer.push(b' ');
            let mut flipped = bytes.to_vec();
            let middle = flipped.len() / 2;
            flipped[middle] ^= 1;
            for content in [Some(longer), Some(flipped), None] {
                if step.is_first && content.is_none() {
                    continue; // Nothing is left to be named.
                }
                if content.is_none() && is_kept_since(name) && !step.before.has(name) {
                    continue; // As servers did before.
                }
                let mut tampered = step.clone();
                match &content {
                    Some(bytes) => tampered.after.put(&path(name), bytes),
                    None => tampered.after.remove(&path(name)),
                }
                if !(is_beyond_proof(&step.message, name) && tampered.check(&mut replay()).is_ok()) {
                    assert_names(&tampered, name);
                }
            }
        }
        for added in
            ["extra", &format!("{PROJECT}/inner/svc.signers/svc.signers.json"), &format!("{INDEX}.extra")]
        {
            let mut tampered = step.clone();
            tampered.after.put(&path(added), b"{}");
            assert_names(&tampered, added);
        }
    }
}

/// Servers before D224 did not write this file. `what_servers_did_before_is_legal` is about them.
fn is_kept_since(name: &str) -> bool {
    name.ends_with(wire::EARLIER_OBJECTIONS_SUFFIX)
}

/// What was fetched is not stored as it was: the content of a release before anyone signed it, and the address from
/// which a signers file came in the end.
fn is_beyond_proof(message: &str, name: &str) -> bool {
    let begins = |titles: &[&str]| titles.iter().any(|title| message.starts_with(title));
    (begins(&["Add", "Correct"]) && name == INDEX)
        || (begins(&["Register", "Propose", "Replace"]) && name == PENDING_METADATA)
}

#[track_caller]
fn assert_names(step: &Recorded, name: &str) {
    let violations = step.violations();
    let names = violations.iter().flat_map(|violation| &violation.files).any(|file| file.as_str() == name);
    // Of a commit that wrote one file only, nothing is left.
    let is_gone = violations[0].fault == ReplayFault::Nothing;
    assert!(names || is_gone, "{}: {name} is not named: {violations:#?}", step.message);
}

#[test]
fn no_file_can_be_left_as_it_was() {
    for step in everything().steps {
        let names: Vec<String> = step.after.names().into_iter().map(str::to_owned).collect();
        for name in &names {
            let before = step.before.has(name).then(|| step.before.bytes(name));
            if before.as_ref() == Some(&step.after.bytes(name)) {
                continue;
            }
            let mut tampered = step.clone();
            match before {
                Some(bytes) => tampered.after.put(&path(name), &bytes),
                None => tampered.after.remove(&path(name)),
            }
            if is_kept_since(name) {
                tampered.check(&mut replay()).expect("a commit as it was made before");
                continue;
            }
            tampered.violations();
        }
        for name in step.before.names().into_iter().filter(|name| !step.after.has(name)) {
            let mut tampered = step.clone();
            tampered.after.put(&path(name), &step.before.bytes(name));
            assert_names(&tampered, name);
        }
    }
}

#[test]
fn a_message_is_the_one_of_its_change() {
    for step in everything().steps {
        for message in [
            String::new(),
            "Tidy up\n".to_owned(),
            format!("{}\n", step.message),
            format!("{}Signed-off-by: no one\n", step.message),
            step.message.trim_end().to_owned(),
            step.message.replacen(' ', "  ", 1),
        ] {
            Recorded { message, ..step.clone() }.violations();
        }
    }
}

/// What a server could write that wants a release to look reproduced, or a builder to look wrong.
#[test]
fn what_no_builder_stated_is_found() {
    let rebuilds = path(&format!("{INDEX}{}", wire::REBUILDS_SUFFIX));
    let steps = everything().steps;
    let stated: Vec<&Recorded> = steps.iter().filter(|step| step.message.contains(" rebuild of ")).collect();
    assert_eq!(stated.len(), 5);
    for step in stated {
        let (same, other) = ("Record a rebuild of", "Record a different rebuild of");
        let message = match step.message.strip_prefix(same) {
            Some(rest) => format!("{other}{rest}"),
            None => step.message.replacen(other, same, 1),
        };
        Recorded { message, ..step.clone() }.violations();

        let file = RebuildsFile::parse(&step.after.bytes(rebuilds.as_str())).expect("what builders state");
        let is_by = |builder: &PublicKey| step.message.contains(&format!("By: {builder}"));
        let builder = *file.entries.keys().find(|key| is_by(key)).expect("a builder");
        let stated = file.entries[&builder].clone();
        let mut forged = stated.clone();
        forged.document.source_commit = "f".repeat(40);
        forged.text = String::from_utf8(forged.document.write()).expect("text");
        forged.signature = mallory().sign(&Sha512::of(forged.text.as_bytes()));
        let with = |key: PublicKey, said: &StoredRebuild| {
            let mut wrong = file.clone();
            wrong.entries.insert(key, said.clone());
            wrong
        };
        let mut without_it = file.clone();
        without_it.entries.remove(&builder);
        let mut alone = file.clone();
        alone.entries.retain(|key, _| *key == builder);
        let stranger = mallory().public_key();
        let wrong =
            [with(builder, &forged), with(stranger, &forged), with(stranger, &stated), without_it, alone];
        for wrong in wrong.iter().filter(|wrong| **wrong != file) {
            let mut tampered = step.clone();
            tampered.after.put(&rebuilds, &wrong.write());
            assert_names(&tampered, rebuilds.as_str());
        }
    }
}

#[test]
fn every_state_needs_the_one_before_it() {
    let steps = everything().steps;
    for pair in steps.windows(2) {
        // Two commits as one, under either message; unless the second one removes all that the first one did.
        let forgets = ["Drop", "Register", "Correct", "Withdraw"]
            .iter()
            .any(|title| pair[1].message.starts_with(title));
        let messages = [&pair[0].message, &pair[1].message];
        for message in messages.into_iter().take(if forgets { 1 } else { 2 }) {
            let (before, message) = (pair[0].before.clone(), message.clone());
            Recorded { before, message, ..pair[1].clone() }.violations();
        }
        // A commit that is made again, and one that is taken back: that, a proposal can be.
        Recorded { before: pair[0].after.clone(), ..pair[0].clone() }.violations();
        if !pair[0].message.starts_with("Replace") {
            let (before, after) = (pair[0].after.clone(), pair[0].before.clone());
            Recorded { before, after, ..pair[0].clone() }.violations();
        }
    }
}

#[test]
fn the_first_commit_creates_the_repository_and_no_other_one_does() {
    let steps = everything().steps;
    for (position, step) in steps.iter().enumerate() {
        let wrong = Recorded { is_first: position > 0, ..step.clone() };
        assert!(wrong.violations().iter().any(|violation| violation.fault == ReplayFault::WrongBeginning));
    }
}

#[test]
fn what_is_stored_was_done_when_the_commit_was_made() {
    let mut without_time = 0;
    for step in everything().steps {
        let near = Recorded { time: shifted_seconds(step.time, 300), ..step.clone() };
        near.check(&mut replay()).expect("a queue may take its time");
        // Beyond what a request can wait (D192).
        for seconds in [-7_200, 7_200] {
            let far = Recorded { time: shifted_seconds(step.time, seconds), ..step.clone() };
            match far.check(&mut replay()) {
                Ok(()) => without_time += 1,
                Err(violations) => {
                    let is_time = |v: &Violation| {
                        matches!(
                            v.fault,
                            ReplayFault::Time { .. } | ReplayFault::Refused(_) | ReplayFault::Request(_)
                        )
                    };
                    assert!(violations.iter().any(is_time), "{violations:#?}");
                }
            }
        }
    }
    // The operator's word, and a proposal that comes back, leave no time behind.
    assert_eq!(without_time, 2 * 2);
}

#[test]
fn a_registration_lasts_a_day_at_least_whatever_the_operator_chose() {
    let again = |hours: i128| {
        let mut recorder = Recorder::new();
        recorder.register(&team("2026-01-31T10:00:00Z"), &alice());
        recorder.world.pass(15 * 24 * 60 * 60);
        recorder.register(&team("2026-01-31T10:00:00Z"), &bob());
        let mut step = recorder.steps.pop().expect("a step");
        // The first one was fetched later than it says.
        let metadata = step.before.text(PENDING_METADATA);
        let fetched = shifted_seconds(recorder.world.now, -hours * 3_600).to_whole_seconds();
        let old = metadata.split("\"retrieved_at\": \"").nth(1).and_then(|rest| rest.split('"').next());
        let metadata = metadata.replace(old.expect("a time"), &fetched.to_string());
        step.before.put(&path(PENDING_METADATA), metadata.as_bytes());
        step.check(&mut replay())
    };
    again(25).expect("an operator may choose a day");
    let violations = again(23).expect_err("no one may choose less");
    assert!(matches!(&violations[0].fault, ReplayFault::Refused(reason) if reason.contains("in progress")));
}

/// A server ends its fetches by then, so what took longer was made by none.
#[test]
fn a_signers_file_may_take_as_long_to_fetch_as_a_server_can_be_set_to() {
    let fetched_within = |seconds: u64| {
        let mut recorder = Recorder::new();
        let mut proposal = recorder.proposal(&team("2026-01-31T10:00:00Z"), &alice());
        recorder.world.pass(seconds.into());
        proposal.origin.retrieved_at = recorder.world.now.to_whole_seconds();
        recorder.act(|world| world.register_proposal(&proposal)).expect("a registration");
        recorder.steps.pop().expect("a step").check(&mut replay())
    };
    let (fetch, turn, age) = (MAX_FETCH.as_secs(), 10 * 60, 6 * 60);
    fetched_within(fetch).expect("the longest fetch");
    fetched_within(fetch + 40).expect("after a slow body, and a wait for a turn");
    fetched_within(fetch + turn + age - 1).expect("of a request that was old already");
    let violations = fetched_within(fetch + turn + age).expect_err("no fetch lasts that long");
    assert!(
        matches!(&violations[0].fault, ReplayFault::Request(reason) if reason.contains("too old")),
        "{violations:?}"
    );
}

#[test]
fn a_stored_request_counts_once() {
    let mut recorder = Recorder::new();
    let proposal = recorder.proposal(&team("2026-01-31T10:00:00Z"), &alice());
    for _ in 0..2 {
        recorder.act(|world| world.register_proposal(&proposal)).expect("a registration");
        recorder.act(World::drop_pending).expect("dropped");
    }
    let mut replay = replay();
    for step in &recorder.steps[..3] {
        step.check(&mut replay).expect("legal");
    }
    let violations = recorder.steps[3].check(&mut replay).expect_err("a nonce that was used");
    assert_eq!(violations[0].fault, ReplayFault::UsedNonce);
}

#[test]
fn an_index_of_a_release_has_what_the_server_knows_from_its_download() {
    let make: [fn(&mut PublishedFile); 3] =
        [|file| file.size = None, |file| file.digests.sha256 = None, |file| file.digests.sha512 = None];
    for forget in make {
        let mut recorder = Recorder::new();
        recorder.register(&signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]), &alice());
        recorder.sign(PENDING, &[&alice()]);
        let mut release = release("v1", "one");
        recorder.act(|world| world.add_release(&release, &alice())).expect("a release");
        assert_legal(&recorder.steps);
        release.published_files.iter_mut().for_each(forget);
        recorder.act(|world| world.add_release(&release, &alice())).expect("a correction");
        let violations = recorder.steps.last().expect("a step").violations();
        assert!(matches!(&violations[0].fault, ReplayFault::Unreadable(reason) if reason.contains("lacks")));
    }
}

#[test]
fn a_server_writes_whole_seconds() {
    let mut recorder = Recorder::new();
    recorder.register(&team("2026-01-31T10:00:00Z"), &alice());
    let mut step = recorder.steps[1].clone();
    let metadata = String::from_utf8(step.after.bytes(PENDING_METADATA).to_vec()).expect("text");
    let begin = metadata.find("\"retrieved_at\"").expect("a time");
    let end = begin + metadata[begin..].find("Z\"").expect("its end");
    let fraction = format!("{}.25{}", &metadata[..end], &metadata[end..]);
    step.after.put(&path(PENDING_METADATA), fraction.as_bytes());
    assert!(matches!(step.violations()[0].fault, ReplayFault::Fraction(_)), "{:#?}", step.violations());
}

#[test]
fn who_signed_before_may_carry_out_what_a_rotation_made_sufficient() {
    let mut recorder = Recorder::new();
    recorder.register(&team("2026-01-31T10:00:00Z"), &alice());
    recorder.sign(PENDING, &[&alice(), &bob(), &carol(), &dave(), &key(5), &key(6), &key(8), &key(9)]);
    recorder.act(|world| world.add_release(&release("v1", "one"), &alice())).expect("a release");
    recorder.sign(INDEX, &[&alice(), &bob()]);
    let document = recorder.world.revocation_document("a bad build");
    let request = recorder.world.revoke_request(&document, &carol());
    recorder.act(|world| world.revoke(&request)).expect("recorded");
    let next = signers("2026-02-01T10:00:00Z").artifact(2, [&alice(), &bob()]).master(1, [&dave()]);
    recorder.propose(&next.revocation(1, [&carol()]), &dave());
    recorder.sign(PENDING, &[&dave()]);
    recorder.world.pass(24 * 60 * 60);
    recorder.act(|world| world.revoke(&request)).expect("revoked");
    assert!(recorder.world.repo.has(REVOKED));
    assert_legal(&recorder.steps);
}

#[test]
fn signatures_of_people_who_may_not_sign_are_refused_in_words() {
    let steps = everything().steps;
    let at = steps.iter().position(|step| step.message.starts_with("Sign https") && step.before.has(INDEX));
    let mut step = steps[at.expect("a signature on the index")].clone();
    let set_path = format!("{INDEX}.signatures.json.pending");
    let mut set = SignatureSet::parse(&step.before.bytes(&set_path)).expect("a set");
    let digest = Sha512::of(&step.before.bytes(INDEX));
    let stranger = mallory();
    set.add(stranger.public_key(), Collected { signature: stranger.sign(&digest), collected_at: step.time });
    step.after.put(&path(&set_path), &set.write());
    step.message = format!("Sign {INDEX}\n\nBy: {}\n", stranger.public_key());
    let violations = step.violations();
    assert_eq!(violations[0].files[0], path(INDEX));
    assert_mentions(&violations[0].fault.to_string(), &["the rules refuse", "may not sign"]);
}
