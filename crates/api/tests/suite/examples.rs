//! The examples of the API reference, made by the decisions themselves: one project, its first signers, a release, and
//! what strangers are told. `COUNTERSIGN_WRITE_EXAMPLES=1 cargo test -p countersign-api --test suite examples` writes
//! them anew.

use std::{env, fs, path::PathBuf};

use countersign_api::answers::{
    AssetsResponse, ChainResponse, ChangedResponse, ErrorResponse, FilesToSignResponse, PendingResponse,
    PingAuth, PingResponse, ProposedResponse, RebuildResponse, ReplacedIndex, RevokedResponse,
    SignedResponse, StatusResponse, VetoedResponse,
};
use countersign_api::catalogue::{
    KeyListing, KeyPendingResponse, KeyResponse, KeySignedResponse, ListedRelease, ProjectsResponse,
    ReleaseState, ReleasesResponse, SignedRelease, WaitingFile, WaitingKind,
};
use countersign_api::error_code::{ErrorCode, ErrorCode as C};
use countersign_api::requests::{AssetsBody, ProposeBody, SignedStatement};
use countersign_api::state::{DroppedReleases, LogAnswer, StateResponse};
use countersign_core::documents::index::{AssetName, ReleaseIndex};
use countersign_core::documents::{signers::Role, statement::StatementKind};
use countersign_core::proof::state::{State, StateSubject};
use countersign_core::rules::auth::{AuthHeaders, AuthRefusal, check_headers};
use countersign_core::rules::{decide::assets, decide::proposal::Proposed, quorum::Tally, stored};
use countersign_core::values::{key::SecretKey, path::RepoPath};
use countersign_testing::{
    ACTIVE, INDEX, NONCE, PENDING, PROJECT, World, alice, bob, carol, dave, mallory, origin, path, published,
    release, signed_request, signed_statement, signers,
};
use serde::Serialize;
use serde_json::{Map, Value};

/// By name; the reference says which one stands where.
#[derive(Default)]
struct Examples(Map<String, Value>);

impl Examples {
    fn add(&mut self, name: &str, value: impl Serialize) {
        let value = serde_json::to_value(value).expect("an example is JSON");
        assert!(self.0.insert(name.to_owned(), value).is_none(), "two examples named {name}");
    }

    /// A refusal, as every error is answered.
    fn add_refusal(&mut self, name: &str, code: ErrorCode, refusal: impl ToString) {
        let status = name.rsplit('.').next().and_then(|status| status.parse().ok());
        assert_eq!(status, Some(code.status()), "{name} is {code:?}");
        self.add(name, ErrorResponse { error: refusal.to_string(), code });
    }
}

fn proposed(proposed: &Proposed, message: &'static str) -> ProposedResponse {
    ProposedResponse::new(
        proposed.project.clone(),
        proposed.required_signers.iter().copied().collect(),
        message,
    )
}

fn status(world: &World, caller: &SecretKey) -> StatusResponse {
    let state = stored::file_status(&world.repo, &path(INDEX), &caller.public_key()).expect("a status");
    StatusResponse::new(path(INDEX), state)
}

fn tell() -> Examples {
    let mut examples = Examples::default();
    let mut world = World::new();
    tell_headers(&mut examples, &world);
    tell_registration(&mut examples, &mut world);
    tell_release(&mut examples, &mut world);
    tell_catalogue(&mut examples, &world);
    tell_strangers(&mut examples, &world);
    tell_update(&mut examples, world.clone());
    tell_revocation(&mut examples, world);
    tell_veto(&mut examples);
    tell_rebuild(&mut examples);
    examples
}

fn tell_headers(examples: &mut Examples, world: &World) {
    let request = signed_request(&bob(), world.now, "");
    let signature = request.signature.to_base64();
    examples.add("header.timestamp", &request.timestamp);
    examples.add("header.nonce", NONCE);
    examples.add("header.signature", signature.trim_end_matches('='));
    examples.add("header.public_key", request.public_key.to_string());
    let headers = AuthHeaders {
        timestamp: &request.timestamp,
        nonce: NONCE,
        signature: signature.trim_end_matches('='),
        public_key: &request.public_key.to_string(),
    };
    let verified = check_headers(&headers, world.now).expect("the headers are right").verify(b"");
    verified.expect("the signature is right");
    examples.add("ping", PingResponse::new(PingAuth::Unauthenticated));
    let success = PingAuth::Success { public_key: request.public_key };
    examples.add("ping.success", PingResponse::new(success));
    let failed = PingAuth::Failed { public_key: None, reason: AuthRefusal::NonceFormat.to_string() };
    examples.add("ping.failed", PingResponse::new(failed));
    examples.add_refusal("error.401", C::RequestTooOld, AuthRefusal::TooOld);
}

fn tell_registration(examples: &mut Examples, world: &mut World) {
    let file = signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]);
    let propose = ProposeBody { signers_file_url: origin(world.now).url, public_key: alice().public_key() };
    examples.add("propose.request", propose);
    let registered = world.register(&file, &alice()).expect("a registration");
    let message = "Project registered successfully. Collect signatures to activate.";
    examples.add("register", proposed(&registered, message));
    examples.add_refusal(
        "register.409",
        C::RegistrationPending,
        world.register(&file, &bob()).expect_err("it is in progress"),
    );
    world.pass(60);
    examples.add("sign.request", world.submission(PENDING, &alice()));
    let signed = world.sign(PENDING, &alice()).expect("a signature");
    let signed = SignedResponse { is_complete: signed.is_complete, waits_until: signed.waits_until };
    examples.add("sign", signed);
    world.sign(PENDING, &bob()).expect("the last signature");
    let active: Value = serde_json::from_slice(&world.repo.bytes(ACTIVE)).expect("the signers file");
    examples.add("get_signers", active);
}

fn tell_release(examples: &mut Examples, world: &mut World) {
    world.pass(60);
    examples
        .add("assets.request", AssetsBody::Release("https://github.com/acme/app/releases/tag/v1".to_owned()));
    let checksums = "https://dl.example.org/acme/app/1.0/SHA256SUMS".to_owned();
    examples.add("assets.request.checksums", AssetsBody::Checksums(vec![checksums]));
    let index_file_path = world.add_release(&release("v1", "one"), &alice()).expect("a release");
    let message = "Release registered successfully".to_owned();
    let replaced = Some(ReplacedIndex { signatures: vec![bob().public_key()] });
    let (again, index) = (message.clone(), index_file_path.clone());
    examples.add("assets", AssetsResponse { success: true, message, index_file_path, replaced: None });
    let corrected = AssetsResponse { success: true, message: again, index_file_path: index, replaced };
    examples.add("assets.replaced", corrected);
    examples.add_refusal(
        "sign.400",
        C::NothingToSign,
        world.sign(&format!("{PROJECT}/x"), &bob()).expect_err("not there"),
    );
    examples.add_refusal("sign.403", C::MayNotSign, world.sign(INDEX, &mallory()).expect_err("no signer"));
    examples.add_refusal("chain.400", C::NotSigned, world.repo.chain_of(INDEX).expect_err("not complete"));
    let early = world.revoke_request(&world.revocation_document("a bad build"), &bob());
    examples.add_refusal("revoke.409", C::NotComplete, world.revoke(&early).expect_err("not complete"));
    world.sign(INDEX, &alice()).expect("a signature");
    examples.add_refusal(
        "sign.409",
        C::AlreadySigned,
        world.sign(INDEX, &alice()).expect_err("signed before"),
    );
    tell_corrections(examples, world.clone());
    let waiting = [path(INDEX)];
    examples.add("pending", PendingResponse::within(usize::MAX, &world.repo, waiting.iter()));
    let files =
        stored::files_to_sign(&world.repo, &path(INDEX)).expect("a sound repository").expect("a file");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("a document is text");
    let files = files.iter().map(|(path, bytes)| (path.clone(), text(bytes))).collect();
    examples.add("files_to_sign", FilesToSignResponse { files });
    world.pass(60);
    examples.add("sign.request.index", world.submission(INDEX, &bob()));
    let signed = world.sign(INDEX, &bob()).expect("the last signature");
    examples.add("sign.complete", SignedResponse { is_complete: signed.is_complete, waits_until: None });
    examples.add("status", status(world, &alice()));
    let history = world.repo.chain_of(INDEX).expect("a chain");
    examples.add("chain", ChainResponse { history });
    let subject = StateSubject::find(&world.repo, &path(INDEX)).expect("a release");
    let answer = StateResponse {
        commit: "7c1a3f0e5b9d2846a0c4e8f1325769bd04a8ce13".to_owned(),
        committed_at: world.now.to_whole_seconds(),
        state: State::gather(&world.repo, subject).expect("a readable release"),
        staple: None,
        log: LogAnswer::default(),
        history_after: None,
        drops: DroppedReleases::default(),
        skipped: Vec::new(),
    };
    examples.add("state", serde_json::from_slice::<Value>(&answer.write()).expect("an answer is JSON"));
}

/// The release is objected to, then withdrawn.
fn tell_corrections(examples: &mut Examples, mut world: World) {
    world.pass(30);
    let objection = world.objection(Some("linux-arm64 does not match my build"), &bob());
    examples.add_refusal(
        "object.403",
        C::NotASigner,
        world.object(Some("no"), &mallory()).expect_err("no signer"),
    );
    let unsigned = SignedStatement { public_key: alice().public_key(), ..objection.clone() };
    examples.add_refusal(
        "object.400",
        C::InvalidSignature,
        world.object_as(&unsigned).expect_err("not her signature"),
    );
    assert!(world.object_as(&objection).expect("an objection").in_force);
    examples.add("object.request", &objection);
    examples.add("object", ChangedResponse::new("Objection recorded"));
    examples.add_refusal("object.409", C::NotLater, world.object_as(&objection).expect_err("said before"));
    let waiting = [path(INDEX)];
    examples.add("pending.objection", PendingResponse::within(usize::MAX, &world.repo, waiting.iter()));
    world.pass(30);
    let back = world.objection(None, &bob());
    examples.add("object.request.back", &back);
    assert!(!world.object_as(&back).expect("taken back").in_force);
    examples.add("object.back", ChangedResponse::new("Objection taken back"));
    let withdrawal = world.withdrawal(INDEX, "the tag is on the wrong commit", &alice());
    examples.add("withdraw.request", &withdrawal.body);
    examples.add_refusal(
        "withdraw.403",
        C::MayNotWithdraw,
        world.withdraw(&mallory()).expect_err("no signer"),
    );
    let signers = world.withdraw_as(&world.withdrawal(ACTIVE, "no", &alice()));
    examples.add_refusal("withdraw.400", C::NotWithdrawable, signers.expect_err("no release"));
    world.withdraw_as(&withdrawal).expect("a withdrawal");
    examples.add("withdraw", ChangedResponse::new("Release withdrawn. Its path is free again."));
    examples.add_refusal(
        "withdraw.409",
        C::AlreadyWithdrawn,
        world.withdraw_as(&withdrawal).expect_err("withdrawn already"),
    );
}

/// What the catalogue says of the release while bob's revocation waits for a second signature.
fn tell_catalogue(examples: &mut Examples, world: &World) {
    let count = |collected| Tally { collected, needed: 2 };
    let (tag, reason) = (Some("v1".to_owned()), Some("app.tar.gz does not start".to_owned()));
    let registered_at = ReleaseIndex::parse(&world.repo.bytes(INDEX)).expect("an index").mirrored_on;
    let release = ListedRelease {
        index_path: path(INDEX),
        project_id: path(PROJECT),
        tag: tag.clone(),
        state: ReleaseState::Complete,
        file_name: Some("app.tar.gz".to_owned()),
        registered_at,
        completed_at: Some(world.now),
        revoked_at: None,
        revocation_reason: reason.clone(),
        revocation_begun: Some(count(1)),
        signatures: count(2),
        objections: 0,
        rebuilds: None,
    };
    examples.add("releases", ReleasesResponse { releases: vec![release], more: false });
    examples.add("projects", ProjectsResponse { projects: vec![path(PROJECT)], more: false });
    let begun = WaitingFile {
        kind: WaitingKind::Revocation,
        file_path: path(INDEX),
        project_id: path(PROJECT),
        tag: tag.clone(),
        collected: 1,
        needed: 2,
        roles: vec![Role::Revocation],
        since: world.now,
        by: Some(bob().public_key()),
        reason,
        objections: Vec::new(),
        rebuilds: None,
        waits_until: None,
        completes: true,
    };
    let (public_key, pending) = (alice().public_key(), vec![begun.clone()]);
    let revocations = pending.clone();
    let nothing = PendingResponse::within(usize::MAX, &world.repo, [].iter());
    examples.add("pending.revocation", PendingResponse { revocations, ..nothing });
    examples.add("key.pending", KeyPendingResponse { public_key, pending, more: false });
    let name = Some("bob".to_owned());
    let signed = SignedRelease {
        index_path: path(INDEX),
        project_id: path(PROJECT),
        tag,
        state: ReleaseState::Complete,
        signed_at: world.now,
        decisive: true,
        rebuilds: None,
    };
    let (public_key, all) = (bob().public_key(), vec![signed.clone()]);
    examples.add("key.signed", KeySignedResponse { public_key, signed: all, more: false });
    let (project_id, roles) = (path(PROJECT), vec![Role::Artifact]);
    let key = KeyResponse {
        public_key,
        listed: vec![KeyListing { project_id, roles, name, registrar: false }],
        listed_more: false,
        formerly: Vec::new(),
        last_signed_at: Some(world.now),
        signed_count: 1,
        signed: vec![signed],
        begun: vec![begun],
    };
    examples.add("key", key);
}

fn tell_strangers(examples: &mut Examples, world: &World) {
    let missing = path(&format!("{PROJECT}/releases/tag/v9/svc.index.json"));
    let caller = mallory().public_key();
    let not_found = stored::file_status(&world.repo, &missing, &caller).expect_err("not there");
    examples.add_refusal("status.404", C::FileNotFound, not_found);
    let refused = stored::file_status(&world.repo, &path(INDEX), &caller).expect_err("no signer");
    examples.add_refusal("status.403", C::NotASigner, refused);
    let dir = path(&format!("{PROJECT}/releases/tag/v1"));
    examples.add_refusal(
        "assets.403",
        C::NotASigner,
        assets::check_assets(&world.repo, &dir, &caller).expect_err("no signer"),
    );
    let complete = assets::check_assets(&world.repo, &dir, &alice().public_key());
    examples.add_refusal("assets.409", C::ReleaseRegistered, complete.expect_err("it is complete"));
    examples.add_refusal("assets.400", C::InvalidBody, AssetsBody::parse(b"{}").expect_err("neither field"));
    examples.add_refusal(
        "propose.400",
        C::InvalidBody,
        ProposeBody::parse(b"{}").expect_err("a field is missing"),
    );
    let traversal = RepoPath::parse("https/github.com/443/../x").expect_err("a traversal");
    examples.add_refusal("path.400", C::InvalidPath, format!("Invalid path: {traversal}"));
}

fn tell_update(examples: &mut Examples, mut world: World) {
    world.pass(60);
    let next = signers("2026-02-01T11:00:00Z").artifact(2, [&alice(), &bob(), &carol()]);
    let refused = world.update(&next, &mallory()).expect_err("not listed");
    examples.add_refusal("update.400", C::KeyNotListed, refused);
    let updated = world.update(&next, &bob()).expect("an update");
    let message = "Signers update proposed successfully. Collect signatures to activate.";
    examples.add("update", proposed(&updated, message));
    let with_admin = |time| signers(time).artifact(1, [&alice()]).admin(1, [&bob()]);
    let mut strict = World::with(&with_admin("2026-01-31T10:00:00Z"), &[&alice(), &bob()]);
    strict.update(&with_admin("2026-01-31T11:00:00Z"), &bob()).expect("an update");
    let second = strict.update(&with_admin("2026-01-31T12:00:00Z"), &alice());
    examples.add_refusal("update.409", C::OtherUpdatePending, second.expect_err("another one is pending"));
}

fn tell_revocation(examples: &mut Examples, mut world: World) {
    world.pass(60);
    let document = world.revocation_document("app.tar.gz does not start");
    let request = world.revoke_request(&document, &bob());
    examples.add("revoke.request", &request.statement);
    let outcome = world.revoke(&request).expect("a revocation");
    let message = "File revoked successfully".to_owned();
    examples.add("revoke", RevokedResponse { success: true, message, revoked: outcome.in_force });
    let mut several = countersign_testing::signing::two_of_three();
    let first = several.revoke_request(&several.revocation_document("a bad build"), &carol());
    let outcome = several.revoke(&first).expect("a first signature");
    let message = "Revocation recorded. More signatures are required.".to_owned();
    examples.add("revoke.recorded", RevokedResponse { success: true, message, revoked: outcome.in_force });
    examples.add_refusal("revoke.400", C::AlreadyRevoked, world.revoke(&request).expect_err("it is revoked"));
    examples.add("status.revoked", status(&world, &alice()));
}

fn tell_veto(examples: &mut Examples) {
    let team = |time| {
        signers(time).artifact(1, [&alice()]).admin(1, [&bob()]).master(2, [&carol(), &dave()]).delay(48)
    };
    let mut world = World::with(&team("2026-01-31T10:00:00Z"), &[&alice(), &bob(), &carol(), &dave()]);
    world.update(&team("2026-02-01T10:00:00Z"), &bob()).expect("an update");
    let signed = world.sign(PENDING, &bob()).expect("a signature");
    let waits_until = signed.waits_until;
    examples.add("sign.waits", SignedResponse { is_complete: signed.is_complete, waits_until });
    let until = waits_until.expect("it waits");
    examples.add("status.waits", StatusResponse::waiting(path(PENDING), until));
    let document = world.veto_document("none of us asked for this");
    let request = world.veto_request(&document, &carol());
    examples.add("veto.request", &request);
    let not_a_veto = SignedStatement { text: "{}".to_owned(), ..request.clone() };
    examples.add_refusal("veto.400", C::InvalidDocument, world.veto(&not_a_veto).expect_err("not a veto"));
    let strangers = world.veto_request(&document, &bob());
    examples.add_refusal("veto.403", C::MayNotVeto, world.veto(&strangers).expect_err("an admin"));
    let answer =
        |vetoed, message: &str| VetoedResponse { success: true, message: message.to_owned(), vetoed };
    let vetoed = world.veto(&request).expect("a first signature").in_force;
    examples.add("veto.recorded", answer(vetoed, "Veto recorded. More signatures are required."));
    examples.add_refusal("veto.409", C::AlreadySigned, world.veto(&request).expect_err("signed before"));
    let second = world.veto_request(&document, &dave());
    let vetoed = world.veto(&second).expect("a veto").in_force;
    examples.add("veto", answer(vetoed, "The pending signers are vetoed and gone."));
    examples.add_refusal("veto.404", C::FileNotFound, world.veto(&second).expect_err("it is gone"));
}

/// Two builders, of whom the second got something else.
fn tell_rebuild(examples: &mut Examples) {
    let team = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).builders(2, [&carol(), &dave()]);
    let mut world = World::with(&team, &[&alice(), &carol(), &dave()]);
    world.add_release(&release("v1", "one"), &alice()).expect("a release");
    world.pass(60);
    let same = world.rebuild();
    let mut different = same.clone();
    different.files[0].digests = published("app.tar.gz", "other").digests;
    let mut unknown = same.clone();
    unknown.files[0].file_name = AssetName::parse("app.zip").expect("a name");
    let refused = world.state(&unknown, &carol()).expect_err("no such file");
    examples.add_refusal("rebuild.400", C::NotComparable, refused);
    let refused = world.state(&same, &alice()).expect_err("no builder");
    examples.add_refusal("rebuild.403", C::NotABuilder, refused);
    let request = signed_statement(StatementKind::Rebuild, &path(INDEX), &same.write(), &carol());
    examples.add("rebuild.request", &request);
    examples.add("rebuild", RebuildResponse::new(world.state_as(&request).expect("a rebuild").in_force));
    world.sign(INDEX, &alice()).expect("the last signature");
    examples.add(
        "rebuild.differs",
        RebuildResponse::new(world.state(&different, &dave()).expect("a rebuild").in_force),
    );
    let refused = world.state_as(&request).expect_err("stated before");
    examples.add_refusal("rebuild.409", C::AlreadyStated, refused);
}

#[test]
fn the_examples_of_the_reference_are_what_the_decisions_give() {
    let made = serde_json::to_string_pretty(&Value::Object(tell().0)).expect("JSON") + "\n";
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../server/src/api/openapi/examples.json");
    if env::var_os("COUNTERSIGN_WRITE_EXAMPLES").is_some() {
        fs::write(&file, &made).expect("the file is ours");
    }
    let stored = fs::read_to_string(&file).expect("the examples are in the repository");
    assert!(stored == made, "the examples are old: write them anew as this file says");
}
