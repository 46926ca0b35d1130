//! The forms in which a user can name a release, the same in every command, and the path on a server that each becomes
//! (D60).

use std::{collections::BTreeSet, fmt, io, io::IsTerminal as _};

use countersign_api::catalogue::{ListedRelease, ReleaseState};
use countersign_core::documents::{index::PublishedFile, index::ReleaseIndex, layout, layout::Signable};
use countersign_core::values::path::{RepoPath, is_name};
use countersign_core::values::shown::{marked_name, shown_text};
use countersign_core::values::{wire, wire::routes::BADGES, wire::routes::PAGES};
use countersign_core::{proof::state::StateSubject, rules::place::path_of_url, rules::quorum::Tally};
use countersign_forge::discovery::{DiscoveryError, PublishedSigners};
use countersign_forge::download_url::{locate_download, locate_release_page};
use countersign_forge::fetch::{Fetcher, Timeouts};
use countersign_forge::pages::ProjectPages;

use crate::client::session::{Reader, Session, no_server};
use crate::client::{ServerClient, state::Shown, state::StateQuestion, state::find_vetoed};
use crate::settings::{client_config::KnownServer, trust::TrustFile};
use crate::words::{error::CliError, output::quote};

/// A path at which something may be, and the server that would have it.
#[derive(Debug)]
pub(crate) struct ServerPath {
    pub(crate) client: ServerClient,
    pub(crate) path: RepoPath,
    /// What the server shows there, if it had to be looked at to find the path.
    pub(crate) shown: Option<Shown>,
}

/// Something that can be signed, the server that has it, and what the server shows of it.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) client: ServerClient,
    /// The path of an index, or of a pending signers file.
    pub(crate) path: RepoPath,
    pub(crate) shown: Shown,
}

impl Target {
    /// Asks a server what it shows at this path. That can be nothing.
    pub(crate) async fn at(client: ServerClient, path: RepoPath) -> Result<Self, CliError> {
        let shown = client.state_at(&path).await?;
        Ok(Self { client, path, shown })
    }
}

impl Session {
    /// The index, or the pending signers file, that a name stands for.
    pub(crate) async fn find_signable(&self, name: &ReleaseName, reader: Reader) -> Result<Target, CliError> {
        let (target, is_project) = self.find_named(name, reader).await?;
        if !is_project || target.shown.contains(&target.path) || find_vetoed(&target.shown)?.is_some() {
            return Ok(target);
        }
        let project = target.shown.project();
        Err(CliError::usage(
            format!("{project} is a project whose signers are in force, and no change of them is pending"),
            format!(
                "nothing is left to sign or to veto; a release has the name PROJECT TAG, and `countersign signers history {project}` \
                 shows the signers"
            ),
        ))
    }

    /// The release that a command is about. Anything else cannot be `done`, and `hint` says what can.
    pub(crate) async fn find_release(
        &self,
        names: &[String],
        done: &str,
        hint: &str,
    ) -> Result<Target, CliError> {
        let (target, is_project) = self.find_named(&ReleaseName::parse_one(names)?, Reader::Signer).await?;
        if is_project && !target.shown.contains(&target.path) {
            let project = target.shown.project();
            return Err(CliError::usage(
                format!("{project} is a project, and only a release can be {done}"),
                format!("name a release: `countersign releases {project}` lists them"),
            ));
        }
        if layout::signable(&target.path) == Some(Signable::Index) {
            return Ok(target);
        }
        Err(CliError::usage(format!("{} cannot be {done}", target.path), hint))
    }

    /// The file that a name stands for, and whether only the project was named, not what is pending there. If proposed
    /// signers are in force already, this is their pending path.
    pub(crate) async fn find_named(
        &self,
        name: &ReleaseName,
        reader: Reader,
    ) -> Result<(Target, bool), CliError> {
        let ServerPath { client, path, shown } = self.locate(name, reader).await?;
        if let Some(shown) = shown {
            return Ok((Target { client, path, shown }, false));
        }
        if layout::signable(&path).is_some() {
            return Ok((Target::at(client, path).await?, false));
        }
        if path.file_name().starts_with(wire::RESERVED_PREFIX) {
            let hint = format!("{FORMS}; a signers file in force is replaced with `countersign update`");
            return Err(CliError::usage(format!("{path} collects no signatures"), hint));
        }
        let Some(shown) = client.state(&path, &name.which).await? else {
            let address = client.address();
            return Err(match &name.which {
                StateQuestion::Tag(tag) => CliError::other(
                    format!("{address} has no release {} of {path}", shown_text(tag)),
                    format!("check the tag; `countersign releases {path}` lists what there is"),
                ),
                StateQuestion::Newest => no_complete_release(&client, &path),
                StateQuestion::Path => CliError::other(
                    format!("{address} has neither a project nor a release at {path}"),
                    SEARCH,
                ),
            });
        };
        if name.which == StateQuestion::Newest {
            self.check_newest(&path, &shown)?;
        }
        let (path, is_project) = match shown.subject() {
            StateSubject::Release(index) => (index.clone(), false),
            StateSubject::Project(project) => (layout::pending_signers(project), true),
        };
        Ok((Target { client, path, shown }, is_project))
    }

    /// The project, directory or file that a name stands for. A release that is named by its tag is looked for.
    pub(crate) async fn find_path(&self, name: &ReleaseName, reader: Reader) -> Result<ServerPath, CliError> {
        if name.which == StateQuestion::Path {
            return self.locate(name, reader).await;
        }
        let Target { client, path, shown } = self.find_signable(name, reader).await?;
        Ok(ServerPath { client, path, shown: Some(shown) })
    }

    /// The project, directory or file that a name stands for, without its tag.
    async fn locate(&self, name: &ReleaseName, reader: Reader) -> Result<ServerPath, CliError> {
        match &name.subject {
            NamedSubject::Path(path) => {
                let client = self.client_of_path(path, None, reader).await?;
                Ok(ServerPath { client, path: path.clone(), shown: None })
            }
            NamedSubject::Url(url) => self.find_url(url, reader).await,
            NamedSubject::Short(short) => self.find_short(short, reader).await,
        }
    }

    async fn find_url(&self, url: &str, reader: Reader) -> Result<ServerPath, CliError> {
        if let Some((server, path)) = split_page(url) {
            let client = match self.chosen_server(Some(&path)) {
                Some(chosen) => ServerClient::open(chosen, self.output)?,
                None => ServerClient::new(&server, self.output)?,
            };
            return Ok(ServerPath { client, path, shown: None });
        }
        if let Some(path) = locate_release_page(url) {
            let client = self.client_of_path(&path, Some(url), reader).await?;
            return Ok(ServerPath { client, path, shown: None });
        }
        let whole = path_of_url(url);
        let place = locate_download(url).ok();
        let anywhere = whole.as_ref().or(place.as_ref().map(|place| &place.candidates[0].index));
        let anywhere = anywhere.ok_or_else(|| {
            CliError::usage(format!("`{}` is not the address of a release", shown_text(url)), FORMS)
        })?;
        let client = self.client_of_path(anywhere, Some(url), reader).await?;
        // A file, where an index lists it; else the address of a directory or project.
        for candidate in place.iter().flat_map(|place| &place.candidates) {
            let shown = client.state_at(&candidate.index).await?;
            let index = shown.parsed(&candidate.index, ReleaseIndex::parse)?;
            let lists = |file: &PublishedFile| file.file_name == candidate.file_name;
            if index.is_some_and(|index| index.published_files.iter().any(lists)) {
                return Ok(ServerPath { client, path: candidate.index.clone(), shown: Some(shown) });
            }
        }
        let path = whole.ok_or_else(|| {
            CliError::other(
                format!("{} has no release that lists {}", client.address(), shown_text(url)),
                "check the URL; `countersign pending` lists what waits",
            )
        })?;
        Ok(ServerPath { client, path, shown: None })
    }

    /// The one project that this computer knows by these names; else the one that a server knows.
    async fn find_short(&self, short: &str, reader: Reader) -> Result<ServerPath, CliError> {
        if let Some(path) = choose_fitting(short, &self.known_projects())? {
            let client = self.client_of_path(&path, None, reader).await?;
            return Ok(ServerPath { client, path, shown: None });
        }
        let (mut found, mut silent, mut asked) = (Vec::new(), None, Vec::new());
        for (address, client) in self.each_client(reader)? {
            asked.push(shown_text(&address));
            let answered = async {
                let client = client?;
                let answer = client.projects(&[("name", short)]).await?;
                let at = |path| ServerPath { client: client.clone(), path, shown: None };
                Ok::<Vec<_>, CliError>(answer.projects.into_iter().map(at).collect())
            };
            match answered.await {
                Ok(there) => found.extend(there),
                Err(error) => {
                    self.output.note(&format!("{address} cannot say whether it has {}.", shown_text(short)));
                    silent = Some(error);
                }
            }
        }
        if found.len() > 1 {
            let paths: Vec<RepoPath> = found.into_iter().map(|target| target.path).collect();
            return Err(ambiguous(short, &paths));
        }
        let target = found.pop().ok_or_else(|| {
            silent.unwrap_or_else(|| {
                let (short, asked) = (shown_text(short), asked.join(" and "));
                CliError::other(format!("no project is known as `{short}` here or on {asked}"), SEARCH)
            })
        })?;
        if reader == Reader::Downloader {
            // A server must not choose whose files a user gets.
            let question = format!(
                "{} is {} on {}. Is this the project that you mean?",
                marked_name(short),
                marked_name(target.path.as_str()),
                target.client.address()
            );
            self.output.confirm(&question).map_err(|error| {
                error.with_hint(format!("name it in full, which asks nothing: {}", target.path))
            })?;
        }
        Ok(target)
    }

    /// The projects that were set or remembered, and those that were accepted.
    pub(crate) fn known_projects(&self) -> Vec<RepoPath> {
        let mut projects: BTreeSet<RepoPath> = self.config.projects().collect();
        if let Ok(store) = TrustFile::locate().and_then(|file| file.read()) {
            projects.extend(store.projects.into_keys());
        }
        projects.into_iter().collect()
    }

    /// `url`: what the user gave, if their project's own forge can be asked for its servers.
    pub(crate) async fn client_of_path(
        &self,
        path: &RepoPath,
        url: Option<&str>,
        reader: Reader,
    ) -> Result<ServerClient, CliError> {
        if reader == Reader::Signer || self.chosen_server(Some(path)).is_some() {
            return self.client_of(Some(path));
        }
        let url = match url {
            Some(url) => url.to_owned(),
            None => ProjectPages::of_host(path).ok_or_else(|| no_server(path))?.url,
        };
        self.discover(path, &url).await
    }

    /// Asks the project's own forge or file server which servers it names (D61).
    async fn discover(&self, path: &RepoPath, url: &str) -> Result<ServerClient, CliError> {
        let fetcher = Fetcher::for_user(Timeouts::default()).map_err(CliError::no_https)?;
        let found = fetcher.find_published_signers(url).await;
        let PublishedSigners { url: at, file } = match found {
            Ok(Some(found)) => found,
            Ok(None) => return Err(no_server(path)),
            Err(error) => return Err(undiscovered(path, error)),
        };
        if !file.servers().is_empty() {
            let at = shown_text(&at);
            self.output.note(&format!("The project's signers file, {at}, names its servers."));
        }
        let client = self.open_named(path, file.servers()).await?.ok_or_else(|| {
            no_server(path).because(format!("the project's signers file, {}, names none", shown_text(&at)))
        })?;
        self.discovered.replace(Some((client.address(), file.servers().to_vec())));
        Ok(client)
    }

    /// The first of these servers that answers, as a project's signers file names them. `None` if it names none.
    pub(crate) async fn open_named(
        &self,
        project: &RepoPath,
        servers: &[String],
    ) -> Result<Option<ServerClient>, CliError> {
        let mut failed = None;
        for server in servers {
            let server = KnownServer { address: server.clone(), named_by: Some(project.clone()) };
            let opened = async {
                let client = ServerClient::open(server, self.output)?;
                client.ping().await.map(|_| client)
            };
            match opened.await {
                Ok(client) => return Ok(Some(client)),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(None), Err)
    }
}

/// The project that a name stands for, where a short one means one of these. `None` if it is none of them.
pub(crate) fn find_project(name: &str, known: &[RepoPath]) -> Result<Option<RepoPath>, CliError> {
    let name = ReleaseName::parse_project(name)?;
    let NamedSubject::Short(short) = &name.subject else { return Ok(name.written_path()) };
    choose_fitting(short, known)
}

/// The one project that is called so. `None` if none is.
pub(crate) fn choose_fitting(short: &str, known: &[RepoPath]) -> Result<Option<RepoPath>, CliError> {
    let mut fitting: Vec<RepoPath> =
        known.iter().filter(|project| ends_with(project, short)).cloned().collect();
    if fitting.len() > 1 { Err(ambiguous(short, &fitting)) } else { Ok(fitting.pop()) }
}

/// Why the project's own place did not say which servers to ask.
fn undiscovered(path: &RepoPath, error: DiscoveryError) -> CliError {
    match &error {
        DiscoveryError::Url(_) => no_server(path).because(error),
        DiscoveryError::Fetch(fetch) if fetch.is_refused_as_given() => no_server(path).because(error),
        DiscoveryError::Fetch(fetch) => {
            // The reason is the library's text.
            let is_untrusted = fetch.to_string().contains("certificate");
            let hint = match is_untrusted {
                true => {
                    "if that site has its own certificate authority, name the authority's file: SSL_CERT_FILE=FILE"
                }
                false => "check the network, and try again; or name the server: --server URL",
            };
            CliError::unreachable(
                format!(
                    "no server is set for {path}, and its signers file, which names them, cannot be read"
                ),
                hint,
            )
            .because(error)
        }
    }
}

fn ambiguous(short: &str, projects: &[RepoPath]) -> CliError {
    let names: Vec<&str> = projects.iter().map(RepoPath::as_str).collect();
    CliError::usage(
        format!("`{}` can be more than one project", shown_text(short)),
        format!("name it in full: {}", names.join(" or ")),
    )
}

fn ends_with(project: &RepoPath, short: &str) -> bool {
    project.as_str().to_ascii_lowercase().ends_with(&format!("/{}", short.to_ascii_lowercase()))
}

// The newest release of a project (D77).

/// How many versions are named that are not offered.
const MOST_SKIPPED: usize = 3;

impl Session {
    /// Says which release the server chose as the newest of a project, and which higher versions it passed over. A path
    /// that is the directory of a release means this one, and nothing was chosen.
    pub(crate) fn check_newest(&self, path: &RepoPath, shown: &Shown) -> Result<(), CliError> {
        let skipped = shown.answer.skipped.iter().filter(|release| release.index_path.is_inside(path));
        let skipped: Vec<String> =
            skipped.take(MOST_SKIPPED).map(|release| say_skipped(path, release)).collect();
        match shown.subject() {
            StateSubject::Release(index) => {
                if *index != layout::index_in(path) {
                    let name = self.name_of(index, Some(path));
                    self.output
                        .note(&format!("The newest release, the highest complete version, is {name}."));
                    skipped.iter().for_each(|reason| self.output.warn(reason));
                }
                Ok(())
            }
            StateSubject::Project(_) if skipped.is_empty() => Err(no_complete_release(&shown.client, path)),
            StateSubject::Project(_) => Err(CliError::other(
                format!("{} has no release of {path} that can be recommended", shown.client.address()),
                format!("wait for a newer release, or ask the project; `countersign releases {path}` shows all of them"),
            )
            .because(skipped.join(" "))),
        }
    }
}

pub(crate) fn no_complete_release(client: &ServerClient, path: &RepoPath) -> CliError {
    CliError::other(
        format!("{} has no complete release of {path}", client.address()),
        format!("ask the project; `countersign releases {path}` shows how far its releases are"),
    )
}

fn say_skipped(project: &RepoPath, release: &ListedRelease) -> String {
    let version = shown_text(&layout::release_name(&release.index_path, project));
    match release.revocation_begun.filter(|_| release.state != ReleaseState::Revoked) {
        Some(Tally { collected, needed }) => {
            format!("{version} is skipped: {collected} of {needed} revokers want it revoked.")
        }
        None => format!("{version} is skipped: it is revoked."),
    }
}

impl Session {
    /// A release or proposal as it can be typed again: short for people, its whole path where a program reads.
    pub(crate) fn name_of(&self, path: &RepoPath, project: Option<&RepoPath>) -> String {
        if !io::stdout().is_terminal() {
            return quote(path.as_str());
        }
        let mut known = self.known_projects();
        known.extend(project.filter(|project| !known.contains(project)).cloned());
        short_form(path, &known)
    }
}

/// The shortest form of a path that can be typed again: `acme/app v1.0` for a project that only one here is called.
pub(crate) fn short_form(path: &RepoPath, known: &[RepoPath]) -> String {
    let dir = match layout::signable(path) {
        Some(Signable::Index) => path.parent().unwrap_or_else(|| path.clone()),
        Some(Signable::PendingSigners { project }) => project,
        None => path.clone(),
    };
    let project = known.iter().find(|project| dir == **project || dir.is_inside(project));
    let Some(project) = project else { return quote(dir.as_str()) };
    let names: Vec<&str> = project.names().collect();
    let short = match names.as_slice() {
        [.., owner, name] => format!("{owner}/{name}"),
        _ => return quote(dir.as_str()),
    };
    // An `@` in it would begin a tag.
    if known.iter().filter(|other| ends_with(other, &short)).count() != 1 || split_tag(&short).is_some() {
        return quote(dir.as_str());
    }
    match layout::name_in_project(&dir, project) {
        Some(tag) => format!("{} {}", quote(&short), quote(tag)),
        None => quote(&short),
    }
}

// The forms in which a user can name a release, the same in every command (D60).

pub(crate) const FORMS: &str = "name a release as PROJECT TAG (acme/app v1.0 or acme/app@v1.0), by the URL of its page \
                                or of one of its files, or by its path \
                                (https/github.com/443/acme/app/releases/tag/v1.0)";

/// The next step if a name fits its form, and nothing else.
pub(crate) const SEARCH: &str =
    "check the name: `countersign search WORD` finds projects, and --server URL asks another server";

/// One release or project, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReleaseName {
    pub(crate) subject: NamedSubject,
    /// Which release of the project, where that stands apart from it.
    pub(crate) which: StateQuestion,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamedSubject {
    Url(String),
    Path(RepoPath),
    /// The last segments of a project's identifier, such as `acme/app`.
    Short(String),
}

impl ReleaseName {
    /// Reads words one after the other: each begins a new name, except for a word behind a project, which is its tag.
    pub(crate) fn parse_all(words: &[String]) -> Result<Vec<Self>, CliError> {
        let mut names: Vec<Self> = Vec::new();
        for word in words {
            // Such a word cannot be a tag.
            let begins = word.contains("://") || parse_path(word).is_some();
            if let Some(last) = names.last_mut()
                && last.which == StateQuestion::Path
                && last.may_have_tag()
                && !begins
            {
                last.which = StateQuestion::Tag(word.clone());
                continue;
            }
            let tag = if begins { None } else { split_tag(word) };
            let (project, which) = match tag {
                None => (word.as_str(), StateQuestion::Path),
                Some((project, LATEST)) => (project, StateQuestion::Newest),
                Some((project, tag)) => (project, StateQuestion::Tag(tag.to_owned())),
            };
            names.push(Self { subject: parse_subject(project)?, which });
        }
        Ok(names)
    }

    /// A project, in one word.
    pub(crate) fn parse_project(word: &str) -> Result<Self, CliError> {
        let name = Self::parse_one(&[word.to_owned()])?;
        if name.which == StateQuestion::Path {
            return Ok(name);
        }
        Err(CliError::usage(
            format!("`{}` names a release, and this is about a whole project", shown_text(word)),
            "leave out the @ and what stands behind it",
        ))
    }

    /// Exactly one.
    pub(crate) fn parse_one(words: &[String]) -> Result<Self, CliError> {
        let mut names = Self::parse_all(words)?;
        match (names.pop(), names.is_empty()) {
            (Some(name), true) => Ok(name),
            _ => {
                Err(CliError::usage(format!("`{}` is not one release", shown_text(&words.join(" "))), FORMS))
            }
        }
    }

    fn may_have_tag(&self) -> bool {
        match &self.subject {
            NamedSubject::Short(_) => true,
            NamedSubject::Path(path) => layout::signable(path).is_none(),
            NamedSubject::Url(url) => !url.contains("/releases/") && split_page(url).is_none(),
        }
    }

    /// The path that the name has by itself, if it says the host: what settings are looked up by.
    pub(crate) fn written_path(&self) -> Option<RepoPath> {
        match &self.subject {
            NamedSubject::Path(path) => Some(path.clone()),
            NamedSubject::Url(url) => match split_page(url) {
                Some((_, path)) => Some(path),
                None => path_of_url(url.split(['?', '#']).next().unwrap_or(url)),
            },
            NamedSubject::Short(_) => None,
        }
    }
}

/// Shows the name as it was typed.
impl fmt::Display for ReleaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            NamedSubject::Url(text) | NamedSubject::Short(text) => f.write_str(text)?,
            NamedSubject::Path(path) => f.write_str(path.as_str())?,
        }
        match &self.which {
            StateQuestion::Path => Ok(()),
            StateQuestion::Tag(tag) => write!(f, " {tag}"),
            StateQuestion::Newest => write!(f, "@{LATEST}"),
        }
    }
}

/// The server and the path that a page of a signing server is about. `None` if the URL is no such page.
pub(crate) fn split_page(url: &str) -> Option<(String, RepoPath)> {
    let url = url.split(['?', '#']).next()?;
    let after_scheme = url.find("://")? + 3;
    [PAGES, BADGES].iter().find_map(|route| {
        let dir = format!("{route}/");
        let at = url[after_scheme..].find(&dir)? + after_scheme;
        let path = parse_path(url[at + dir.len()..].trim_end_matches('/'))?;
        // In the address of a page, names are percent-encoded as in any URL.
        let mut parts = path.as_str().splitn(3, '/');
        let (scheme, host, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let decoded = path_of_url(&format!("{scheme}://{host}:{rest}"))?;
        Some((url[..at].to_owned(), decoded))
    })
}

const LATEST: &str = "latest";

/// Cuts `acme/app@v1.1` in two, at the first `@` inside of a name behind the first one: more of them belong to the tag.
/// URLs and paths can have an `@` of their own.
fn split_tag(word: &str) -> Option<(&str, &str)> {
    let owner = word.find('/')?;
    let at =
        word.match_indices('@').map(|(at, _)| at).find(|at| *at > owner && !word[..*at].ends_with('/'))?;
    let (project, tag) = (&word[..at], &word[at + 1..]);
    (!tag.is_empty()).then_some((project, tag))
}

fn parse_path(word: &str) -> Option<RepoPath> {
    let has_scheme = ["http/", "https/"].iter().any(|scheme| word.starts_with(scheme));
    RepoPath::parse(word).ok().filter(|_| has_scheme)
}

fn parse_subject(word: &str) -> Result<NamedSubject, CliError> {
    if word.contains("://") {
        // Of a directory, as a browser shows it.
        return Ok(NamedSubject::Url(word.trim_end_matches('/').to_owned()));
    }
    if let Some(path) = parse_path(word) {
        return Ok(NamedSubject::Path(path));
    }
    if word.contains('/') && word.split('/').all(is_name) {
        return Ok(NamedSubject::Short(word.to_owned()));
    }
    Err(CliError::usage(
        format!("`{}` names no project: that has an owner or a directory, as in acme/app", shown_text(word)),
        FORMS,
    ))
}
