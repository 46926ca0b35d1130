//! `countersign rebuild`: compares what was built from the source with a release, and states it (D260). Made for machines
//! that build, of another organisation than the one that publishes.

use std::time::Duration;

use countersign_core::documents::index::{Digests, ReleaseIndex};
use countersign_core::documents::statement::{Rebuild, RebuiltFile, Statement, StatementKind};
use countersign_core::proof::to_sign::Subject;
use countersign_core::proof::to_state::{StatementRequest, ToState};
use countersign_core::rules::reproduction::compare as compare_stated;
use countersign_core::values::shown::{marked_name, plural};
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp};
use countersign_explain::{describe::Description, describe::describe, progress::Names};
use serde_json::{Value, json};

use crate::args::RebuildArgs;
use crate::client::{now, session::Session, state::Shown, submission::Submitted, targets::Target};
use crate::commands::statements::{StatementCommand, SubmittedStatement};
use crate::evidence::carried::mark_done;
use crate::evidence::comparison::{Comparison, ForOpenpgp, MatchOutcome, compare};
use crate::evidence::release::{ShownRelease, find_rebuilds, require_release};
use crate::evidence::review::describe_comparison;
use crate::words::{error::CliError, output::Several, table::People, table::when_text};

/// The time between two words of one builder.
const STEP: Duration = Duration::from_millis(1);

const REBUILD: StatementCommand = StatementCommand {
    kind: StatementKind::Rebuild,
    name: "rebuild",
    names: "NAME --files DIR --source COMMIT",
    question: "State this? Everyone can read it.",
    check,
    check_key: check_builder,
    describe: |session, _, to_state, _| {
        let name = session.name_of(to_state.path(), Some(to_state.subject.project()));
        let mut lines = describe_statement(&name, to_state);
        lines.extend(describe_files(to_state));
        lines
    },
    subject: |session, path| Ok(session.name_of(path, None)),
    say_submitted,
};

pub(crate) async fn run(session: &Session, args: &RebuildArgs) -> Result<(), CliError> {
    if let Some(file) = &args.carried.submit {
        let (several, done) = REBUILD.submit(session, file).await?;
        return report_submitted(session, several, &done);
    }
    if let Some(signed) = REBUILD.sign_carried(session, &args.carried) {
        return signed;
    }
    let (Some(dir), Some(source)) = (&args.files, &args.source) else {
        return Err(CliError::usage(
            "nothing says what was built, and from what",
            "pass --files DIR with the files, and --source COMMIT: `git rev-parse HEAD` prints it",
        ));
    };
    let hint = "name a release; a signers file is not built";
    let found = session.find_release(&args.names, "rebuilt", hint).await?;
    let Target { client, path, shown: state } = found;
    let ShownRelease { index, text, digest } = require_release(&state, &path)?;
    let name = session.name_of(&path, Some(&index.project_id));
    let built = choose_built(&state, &path, &name, &index, compare(&index, dir, ForOpenpgp::No)?)?;
    let rebuilds = find_rebuilds(&state, &path)?;
    let write = |earlier: Option<Timestamp>| -> Result<String, CliError> {
        let timestamp = now()?.to_whole_milliseconds();
        let document = Rebuild {
            rebuild_of: path.clone(),
            subject_digest: digest,
            source_commit: source.clone(),
            files: list_built(&built),
            timestamp: earlier.map_or(timestamp, |earlier| timestamp.max(earlier.later(STEP))),
        };
        Ok(String::from_utf8_lossy(&document.write()).into_owned())
    };
    let history = state.history().clone();
    let request = |document| {
        StatementRequest::of_release(StatementKind::Rebuild, path.clone(), text.clone(), history, document)
    };
    if let Some(file) = &args.carried.export {
        // The key is elsewhere, so any builder's earlier word may be the one that this replaces.
        let newest = rebuilds.entries.values().map(|said| said.document.timestamp).max();
        let request = request(write(newest)?);
        check(&request)?;
        return REBUILD.export(session, request, &name, file);
    }
    let listed = state.listed_keys()?;
    let you = session.public_key_of(Some(&path), &listed)?;
    let earlier = rebuilds.entries.get(&you);
    let is_stated = |said: &Rebuild| said.source_commit == *source && said.files == list_built(&built);
    if let Some(said) = earlier.filter(|said| is_stated(&said.document)) {
        let at = when_text(said.collected_at);
        return finish(session, &path, &built, &format!("You stated this of {name} on {at}"));
    }
    let to_state = check(&request(write(earlier.map(|said| said.document.timestamp))?))?;
    check_builder(&to_state, &you)?;
    let mut lines = describe_statement(&name, &to_state);
    lines.extend(describe_comparison(&built, session.output));
    let names = Names::of([to_state.signers()]);
    let who = People { names: &names, you: None }.name(you);
    let found = if built.is_match() { "the same files" } else { "OTHER files than those of the release" };
    session
        .confirm(&lines.join("\n"), &format!("State as {who} that you got {found}? Everyone can read it."))?;
    let key = session.key(Some(&path), &listed)?;
    let statement = to_state.sign(you, |digest| key.sign(digest))?;
    client.submit_statement(&key, &statement).await?;
    finish(session, &path, &built, &say_done(&name, &client.address(), built.is_match()))
}

/// Keeps what was built of the files that builders make.
fn choose_built(
    state: &Shown,
    path: &RepoPath,
    name: &str,
    index: &ReleaseIndex,
    mut compared: Comparison,
) -> Result<Comparison, CliError> {
    let described = describe(&state.files, path).map_err(|error| state.unusable(error))?;
    let Some(Description::Release(release)) = described else {
        return Err(CliError::unverified("the release cannot be read", "the server lies or is broken"));
    };
    let Some(reproduction) = release.reproduction else {
        return Err(CliError::other(
            format!("the signers file of {} names no builders", marked_name(index.project_id.as_str())),
            "its maintainers add them: `countersign signers edit PROJECT --add builder:NAME=KEY --threshold builder:N`",
        ));
    };
    compared.files.retain(|file| {
        file.outcome != MatchOutcome::Missing && reproduction.files.contains_key(&file.listed.file_name)
    });
    if compared.files.is_empty() {
        let wanted = reproduction.files.keys().take(5).map(|file| marked_name(file.as_str()));
        let wanted: Vec<String> = wanted.collect();
        return Err(CliError::usage(
            format!("--files has no file of {name} that builders make"),
            match wanted.is_empty() {
                true => {
                    "the release has no such file: the signers file says which, under `rebuilds`".to_owned()
                }
                false => {
                    format!("it needs files with the names of the release, such as {}", wanted.join(", "))
                }
            },
        ));
    }
    Ok(compared)
}

/// What was built, with the digests that the index has too.
fn list_built(built: &Comparison) -> Vec<RebuiltFile> {
    let files = built.files.iter().filter_map(|file| {
        let (own, listed) = (file.own?.digests, file.listed.digests);
        let digests = Digests {
            sha256: own.sha256.filter(|_| listed.sha256.is_some()),
            sha512: own.sha512.filter(|_| listed.sha512.is_some()),
        };
        Some(RebuiltFile { file_name: file.listed.file_name.clone(), digests })
    });
    files.collect()
}

fn check(request: &StatementRequest) -> Result<ToState, CliError> {
    request.check().map_err(|error| {
        CliError::unverified(
            format!("the rebuild of {} is not signed", request.path()),
            "it is no rebuild, or what is shown is not what its path says: the server lies, or the file was changed on \
             the way",
        )
        .because(error)
    })
}

fn check_builder(to_state: &ToState, you: &PublicKey) -> Result<(), CliError> {
    if to_state.accepted_signers().contains(you) {
        return Ok(());
    }
    Err(CliError::other(
        format!("{you} is not a builder of {}", marked_name(to_state.subject.project().as_str())),
        "check --key; `countersign status PROJECT` shows the builders",
    ))
}

fn describe_statement(name: &str, to_state: &ToState) -> Vec<String> {
    let mut lines = vec![
        format!("Rebuild of {name}"),
        format!("  project    {}", marked_name(to_state.subject.project().as_str())),
        format!("  digest     {}", to_state.subject.digest().to_prefixed()),
    ];
    if let Statement::Rebuild(document) = &to_state.document {
        lines.push(format!("  source     commit {}", document.source_commit));
    }
    lines
}

/// What a carried statement says of each file. The files themselves are on another computer.
fn describe_files(to_state: &ToState) -> Vec<String> {
    let (Statement::Rebuild(document), Subject::Release { index, .. }) =
        (&to_state.document, &to_state.subject.subject)
    else {
        return Vec::new();
    };
    let line = |(name, is_same): (&countersign_core::documents::index::AssetName, Option<bool>)| {
        let outcome = match is_same {
            Some(true) => "the same",
            Some(false) => "DIFFERS",
            None => "is not in the release",
        };
        format!("    {} {outcome}", marked_name(name.as_str()))
    };
    std::iter::once("  built".to_owned())
        .chain(compare_stated(index, document).into_iter().map(line))
        .collect()
}

fn say_done(name: &str, server: &str, is_same: bool) -> String {
    match is_same {
        true => format!("Stated on {server}: {name} is what its source gives"),
        false => format!(
            "Stated on {server}: the source gives something else than {name}. Everyone sees that first"
        ),
    }
}

fn say_submitted(name: &str, server: &str, Submitted { answer, was_done }: Submitted<bool>) -> String {
    match was_done {
        true => format!("The server {server} has this statement about {name}"),
        false => say_done(name, server, answer),
    }
}

/// Exit code 3 tells a machine that the files differ, though all went well.
fn finish(session: &Session, path: &RepoPath, built: &Comparison, text: &str) -> Result<(), CliError> {
    let mut value = built.json();
    value["file_path"] = json!(path.as_str());
    if built.is_match() {
        return session.output.result(text, &value);
    }
    session.output.line(text);
    let names: Vec<String> =
        built.mismatches().map(|file| marked_name(file.listed.file_name.as_str())).collect();
    let count = names.len();
    Err(CliError::unverified(
        format!("{count} file{} differ{}: {}", plural(count), third_person(count), names.join(", ")),
        "compare the builds, for example with diffoscope; the release is not what you got from the source",
    )
    .with_detail("comparison", value))
}

fn third_person(count: usize) -> &'static str {
    if count == 1 { "s" } else { "" }
}

fn report_submitted(
    session: &Session,
    mut several: Several,
    done: &[SubmittedStatement],
) -> Result<(), CliError> {
    let mut rebuilds: Vec<Value> = Vec::new();
    for SubmittedStatement { statement, submitted, .. } in done {
        let value = json!({
            "file_path": statement.file_path.as_str(),
            "public_key": statement.public_key.to_string(),
            "is_match": submitted.answer,
        });
        rebuilds.push(mark_done(value, submitted.was_done));
        if !submitted.answer {
            let name = session.name_of(&statement.file_path, None);
            let differs = CliError::unverified(
                "the source gave something else than the release",
                format!("`countersign status {name}` shows which files differ"),
            );
            several.keep::<()>(statement.file_path.as_str(), Err(differs));
        }
    }
    several.finish("", json!({"rebuilds": rebuilds}))
}
