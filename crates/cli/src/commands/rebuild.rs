//! `countersign rebuild`: compares what was built from the source with a release, and states it (D260). Made for
//! machines that build, of another organisation than the one that publishes.

use countersign_core::documents::index::{AssetName, Digests, PublishedFile};
use countersign_core::documents::signers::SignersFile;
use countersign_core::documents::statement::{Rebuild, RebuiltFile, Statement, StatementKind};
use countersign_core::proof::to_sign::Subject;
use countersign_core::proof::to_state::{StatementRequest, ToState};
use countersign_core::rules::{reproduction::compare as compare_stated, stored, stored::ReleaseState};
use countersign_core::values::shown::{marked_name, plural, shown_bytes};
use countersign_core::values::{bounds::REBUILD_BYTES, key::PublicKey, path::RepoPath, time::Timestamp};
use countersign_explain::{
    describe::Description, describe::describe, progress::Names, reproduction::list_files,
};
use serde_json::{Value, json};

use crate::args::RebuildArgs;
use crate::client::{session::Session, state::Shown, submission::Submitted, targets::Target};
use crate::commands::statements::{self, StatementCommand, SubmittedStatement, time_after};
use crate::evidence::comparison::{Comparison, ForOpenpgp, MatchOutcome, compare};
use crate::evidence::release::{ShownRelease, require_release};
use crate::evidence::review::describe_comparison;
use crate::words::error::{CliError, ErrorKind, shown_path};
use crate::words::{output::Several, output::quote, table::People, table::when_text};

const REBUILD: StatementCommand = StatementCommand {
    kind: StatementKind::Rebuild,
    name: "rebuild",
    names: "NAME --files DIR --source COMMIT",
    question: "State this? Everyone can read it.",
    check,
    not_yours: not_a_builder,
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
        let (several, done) = REBUILD.submit(session, file).await.map_err(not_stated)?;
        return report_submitted(session, several, &done);
    }
    if let Some(signed) = REBUILD.sign_carried(session, &args.carried) {
        return signed.map_err(not_stated);
    }
    state_built(session, args).await.map_err(not_stated)?
}

/// Exit code 3 says that a difference is stated. Nothing else ends with it.
fn not_stated(error: CliError) -> CliError {
    match error.kind() == ErrorKind::Verification {
        true => error.with_kind(ErrorKind::Other),
        false => error,
    }
}

/// States what was built, or writes it for a computer without a network. The inner result reports what is stated: that
/// the files differ is its error.
async fn state_built(session: &Session, args: &RebuildArgs) -> Result<Result<(), CliError>, CliError> {
    let Some(dir) = &args.files else {
        return Err(CliError::usage("nothing says what was built", "pass --files DIR with the files"));
    };
    let Some(source) = &args.source else {
        let hint = "pass --source COMMIT: `git rev-parse HEAD` prints it";
        return Err(CliError::usage("nothing says what it was built from", hint));
    };
    let hint = "name a release; a signers file is not built";
    let target = session.find_release(&args.names, "rebuilt", hint).await?;
    let Target { client, path, shown: state } = &target;
    let ShownRelease { index, text, digest } = require_release(state, path)?;
    let name = session.name_of(path, Some(&index.project_id));
    let compared = compare(&index, dir, ForOpenpgp::No)?;
    let mut built = Built::choose(state, path, &name, &index.project_id, compared)?;
    let rebuilds = state.read(|files| stored::rebuilds(files, path))?;
    let request = |built: &Built, earlier: Option<Timestamp>| -> Result<StatementRequest, CliError> {
        let document = Rebuild {
            rebuild_of: path.clone(),
            subject_digest: digest,
            source_commit: source.clone(),
            files: built.list_stated(),
            timestamp: time_after(earlier)?,
        };
        let statement = document.write();
        if statement.len() > REBUILD_BYTES {
            return Err(CliError::usage(
                format!(
                    "what you got of {} files has more than {}",
                    document.files.len(),
                    shown_bytes(REBUILD_BYTES)
                ),
                "state fewer files: about 340 fit; others cannot be reproduced until the project makes fewer",
            ));
        }
        let statement = String::from_utf8_lossy(&statement).into_owned();
        let (kind, history) = (StatementKind::Rebuild, state.history().clone());
        Ok(StatementRequest::of_release(kind, path.clone(), text.clone(), history, statement))
    };
    if let Some(file) = &args.carried.export {
        // The key is elsewhere, so any builder's earlier word may be the one that this replaces.
        let newest = rebuilds.entries.values().map(|said| said.document.timestamp).max();
        return REBUILD.export(session, request(&built, newest)?, &name, file).map(Ok);
    }
    let you = session.public_key_of(Some(path), &state.listed_keys()?)?;
    let earlier = rebuilds.entries.get(&you);
    built.keep(earlier.map(|said| &said.document).filter(|said| said.source_commit == *source));
    let to_state = check(&request(&built, earlier.map(|said| said.document.timestamp))?)?;
    REBUILD.check_key(&to_state, &you)?;
    let is_stated = |said: &Rebuild| said.source_commit == *source && said.files == built.list_stated();
    if let Some(said) = earlier.filter(|said| is_stated(&said.document)) {
        let text = format!("You stated this of {name} on {}", when_text(said.collected_at));
        return Ok(built.report(session, path, &text));
    }
    built.replaced = earlier.and_then(|said| built.say_replaced(&said.document, source));
    if let Some(replaced) = built.replaced.as_ref().filter(|_| built.state == ReleaseState::Complete) {
        return Err(CliError::other(
            format!("{name} is complete, so {replaced} stays, and you can only add files of the same commit"),
            "if you get something else now, tell the people who signed the release",
        ));
    }
    let mut lines = describe_statement(&name, &to_state);
    lines.extend(describe_comparison(&built.compared, session.output));
    let names = Names::of([to_state.signers()]);
    let who = People { names: &names, you: None }.name(you);
    let (key, statement) = statements::sign(session, &target, &to_state, you, &lines, &built.question(&who))?;
    client.submit_statement(&key, &statement).await?;
    Ok(built.report(session, path, &format!("Stated on {}: {}", client.address(), built.say(&name))))
}

/// What was built of a release.
struct Built {
    state: ReleaseState,
    /// Every file that builders make. What was not built is missing.
    compared: Comparison,
    /// What this builder stated before of other files, and states again.
    kept: Vec<RebuiltFile>,
    /// What this builder stated before and takes back with it, in words.
    replaced: Option<String>,
}

impl Built {
    /// Keeps the files that builders make, and compares them by their digests.
    fn choose(
        state: &Shown,
        path: &RepoPath,
        name: &str,
        project: &RepoPath,
        mut compared: Comparison,
    ) -> Result<Self, CliError> {
        let described = state.read(|files| describe(files, path))?;
        let Some(Description::Release(release)) = described else {
            return Err(CliError::other("the release cannot be read", "the server lies or is broken"));
        };
        let Some(reproduction) = release.reproduction else {
            let current = state.signers()?;
            return Err(names_no_builders(name, project, current.as_ref()));
        };
        compared.files.retain(|file| reproduction.files.contains_key(&file.listed.file_name));
        for file in compared.files.iter_mut().filter(|file| file.outcome != MatchOutcome::Missing) {
            let own = file.own.ok_or_else(|| {
                let path = shown_path(&compared.dir.join(file.listed.file_name.as_str()));
                CliError::usage(format!("{path} is not a plain file"), "put there the file that you built")
            })?;
            file.outcome = judge(&file.listed, &own.digests);
        }
        let built = Self { state: release.state, compared, kept: Vec::new(), replaced: None };
        if built.list_stated().is_empty() {
            let hint = match list_files(reproduction.files.keys()).as_str() {
                "" => {
                    "the release has no such file: the signers file says which, under `rebuilds`".to_owned()
                }
                wanted => format!("it needs files with the names of the release: {wanted}"),
            };
            return Err(CliError::usage(format!("--files has no file of {name} that builders make"), hint));
        }
        Ok(built)
    }

    /// Keeps what the builder stated before of the same source, and did not build this time: several machines can build
    /// for one key.
    fn keep(&mut self, earlier: Option<&Rebuild>) {
        for file in self.compared.files.iter_mut().filter(|file| file.outcome == MatchOutcome::Missing) {
            let mut stated = earlier.into_iter().flat_map(|earlier| &earlier.files);
            let Some(said) = stated.find(|said| said.file_name == file.listed.file_name) else { continue };
            file.outcome = judge(&file.listed, &said.digests);
            self.kept.push(said.clone());
        }
    }

    /// What was built, each file with one digest that the index has too, and what is kept.
    fn list_stated(&self) -> Vec<RebuiltFile> {
        let files = self.compared.files.iter().filter_map(|file| {
            let own = file.own?.digests;
            let digests = match file.listed.digests.sha256 {
                Some(_) => Digests { sha512: None, ..own },
                None => Digests { sha256: None, ..own },
            };
            Some(RebuiltFile { file_name: file.listed.file_name.clone(), digests })
        });
        let mut files: Vec<RebuiltFile> = files.chain(self.kept.iter().cloned()).collect();
        files.sort_by(|one, other| one.file_name.cmp(&other.file_name));
        files
    }

    /// Says what of an earlier statement is not in the new one; `None` if all of it is.
    fn say_replaced(&self, earlier: &Rebuild, source: &str) -> Option<String> {
        let (stated, commit) = (self.list_stated(), &earlier.source_commit);
        let gone = earlier.files.iter().filter(|file| commit != source || !stated.contains(file));
        let gone = list_files(gone.map(|file| &file.file_name));
        (!gone.is_empty()).then(|| format!("what you stated of {gone} from commit {commit}"))
    }

    fn list(&self, outcome: MatchOutcome) -> impl Iterator<Item = &AssetName> {
        let files = self.compared.files.iter().filter(move |file| file.outcome == outcome);
        files.map(|file| &file.listed.file_name)
    }

    fn differs(&self) -> bool {
        self.compared.count(MatchOutcome::Differ) > 0
    }

    /// Says how many of the files were built, as in `1 of 5 files`; `None` if all were.
    fn part(&self) -> Option<String> {
        let (stated, all) = (self.list_stated().len(), self.compared.files.len());
        (stated < all).then(|| format!("{stated} of {all} files"))
    }

    fn question(&self, who: &str) -> String {
        let found = match (self.differs(), self.part()) {
            (true, _) => "OTHER files than those of the release".to_owned(),
            (false, None) => "the same files".to_owned(),
            (false, Some(part)) => format!("{part}, the same"),
        };
        let kept = match list_files(self.kept.iter().map(|file| &file.file_name)).as_str() {
            "" => String::new(),
            kept => format!("You stated before what you got of {kept}, and that stays. "),
        };
        let replaced =
            self.replaced.iter().map(|replaced| format!("This replaces {replaced}. ")).collect::<String>();
        format!("{kept}{replaced}State as {who} that you got {found}? Everyone can read it.")
    }

    /// Says what was stated.
    fn say(&self, name: &str) -> String {
        let rest = match list_files(self.list(MatchOutcome::Missing)).as_str() {
            "" => String::new(),
            missing => format!(". Not built: {missing}"),
        };
        let said = match (self.differs(), self.part()) {
            (true, _) => say_different(name),
            (false, None) => format!("{name} is what its source gives"),
            (false, Some(part)) => format!("you got {part} of {name}, the same"),
        };
        let replaced = self.replaced.iter().map(|replaced| format!(". It replaces {replaced}"));
        said + &rest + &replaced.collect::<String>()
    }

    /// Exit code 3 tells a machine that the files differ, though all went well.
    fn report(&self, session: &Session, path: &RepoPath, text: &str) -> Result<(), CliError> {
        let mut value = self.compared.json();
        value["is_match"] = json!(!self.differs());
        value["not_built"] = self.list(MatchOutcome::Missing).map(AssetName::as_str).collect();
        value["file_path"] = json!(path);
        if !self.differs() {
            return session.output.result(text, &value);
        }
        let (count, files) =
            (self.compared.count(MatchOutcome::Differ), list_files(self.list(MatchOutcome::Differ)));
        let verb = if count == 1 { "differs" } else { "differ" };
        Err(CliError::unverified(
            format!("{text}. {count} file{} {verb}: {files}", plural(count)),
            "compare the builds, for example with diffoscope; the release is not what you got from the source",
        )
        .with_detail("comparison", value))
    }
}

/// Everyone who reads the statement compares it like this: by the digests that both have.
fn judge(listed: &PublishedFile, got: &Digests) -> MatchOutcome {
    match listed.digests.agrees_with(got) {
        Some(true) => MatchOutcome::Match,
        Some(false) | None => MatchOutcome::Differ,
    }
}

/// The signers file of the release counts, and not one that names builders since.
fn names_no_builders(name: &str, project: &RepoPath, current: Option<&SignersFile>) -> CliError {
    if current.is_some_and(|current| current.rebuilds().is_some()) {
        return CliError::other(
            format!(
                "{name} was completed before its project named builders, so no one states what it is built from"
            ),
            "builders state what they got of releases that are completed since",
        );
    }
    CliError::other(
        format!("the signers file of {} names no builders", marked_name(project.as_str())),
        format!(
            "its maintainers add them: `countersign signers edit {} --add builder:NAME=KEY --threshold builder:N`",
            quote(project.as_str())
        ),
    )
}

fn check(request: &StatementRequest) -> Result<ToState, CliError> {
    request.check().map_err(|error| {
        CliError::other(
            format!("the rebuild of {} is not signed", request.path()),
            "it is no rebuild, or what is shown is not what its path says: the server lies, or the file was changed on \
             the way",
        )
        .because(error)
    })
}

fn not_a_builder(to_state: &ToState, you: &PublicKey) -> CliError {
    let project = to_state.subject.project();
    CliError::other(
        format!("{you} is not a builder of {}", marked_name(project.as_str())),
        format!("check --key; `countersign status {}` shows the builders", quote(project.as_str())),
    )
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
    let line = |name: &AssetName, outcome| format!("    {} {outcome}", marked_name(name.as_str()));
    let stated = compare_stated(index, document).into_iter().map(|(name, is_same)| match is_same {
        Some(true) => line(name, "the same"),
        Some(false) => line(name, "DIFFERS"),
        None => line(name, "is not in the release"),
    });
    let policy = to_state.signers().rebuilds();
    let is_covered = |name: &&AssetName| policy.is_some_and(|policy| policy.covers(name.as_str()));
    let is_stated = |name: &AssetName| document.files.iter().any(|file| file.file_name == *name);
    let covered = index.published_files.iter().map(|file| &file.file_name).filter(is_covered);
    let missing = covered.filter(|name| !is_stated(name)).map(|name| line(name, "is not built"));
    std::iter::once("  built".to_owned()).chain(stated).chain(missing).collect()
}

fn say_different(name: &str) -> String {
    format!("the source gives something else than {name}. Everyone sees that first")
}

fn say_submitted(name: &str, server: &str, Submitted { answer, was_done }: Submitted<bool>) -> String {
    match (was_done, answer) {
        (true, _) => format!("The server {server} has this statement about {name}"),
        // It may be about some files alone.
        (false, true) => format!("Stated on {server}: what was built of {name} is the same"),
        (false, false) => format!("Stated on {server}: {}", say_different(name)),
    }
}

fn report_submitted(
    session: &Session,
    mut several: Several,
    done: &[SubmittedStatement],
) -> Result<(), CliError> {
    several.change_errors(not_stated);
    let rebuilds: Vec<Value> = done.iter().map(|done| done.json("is_match")).collect();
    for SubmittedStatement { statement, submitted, .. } in done {
        if !submitted.answer {
            let name = session.name_of(&statement.file_path, None);
            let differs = CliError::unverified(
                "the source gave something else than the release",
                format!("`countersign status {name}` shows which files differ"),
            );
            several.keep_later::<()>(statement.file_path.as_str(), Err(differs));
        }
    }
    several.finish("", json!({"rebuilds": rebuilds}))
}
