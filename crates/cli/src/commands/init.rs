//! `countersign init`: names a project's signers, and says which commands come next (D243).

use std::{env, ffi::OsStr, fs, io, io::IsTerminal as _, path::Path};

use countersign_core::documents::signers::{Group, Signer, SourceKind};
use countersign_core::rules::place::path_of_url;
use countersign_core::values::{
    key::KeyFormat, path::RepoPath, path::is_this_machine, shown::shown_text, wire,
};
use countersign_explain::{progress::Names, words::rule_text};
use countersign_forge::pages::{ProjectPages, ReleaseAddress};
use serde_json::json;

use crate::args::{InitArgs, KeygenArgs};
use crate::client::session::{OWN_SERVER, Session};
use crate::client::{ServerClient, targets::short_form};
use crate::commands::keygen::{MadeKey, check_absent};
use crate::commands::{signers::make_plain, status::project::list_json};
use crate::settings::config_dir::write_new;
use crate::words::output::{ask_text, quote};
use crate::words::{error::CliError, error::shown_path, table::People};
use crate::{keys, keys::PublicHalf, keys::read_public_half};

pub(crate) async fn run(session: &Session, args: &InitArgs) -> Result<(), CliError> {
    // Before any question: an answer should not be in vain.
    let target = Path::new(wire::SIGNERS_FILE);
    check_absent(target).map_err(|error| {
        error.with_hint("nothing is overwritten: move it away, or run this in another directory; `countersign signers edit svc.signers.json` changes it")
    })?;
    let Answers { project, client, own, name, others, threshold } = Answers::gather(session, args).await?;
    let Project { path, pages } = &project;
    let comment = name.clone().unwrap_or_default();
    let keygen = KeygenArgs { out: None, comment, no_password: args.no_password };
    let made = own.is_none().then(|| MadeKey::make(&session.global, &keygen)).transpose()?;
    let own = own.or(made.as_ref().map(|made| PublicHalf { key: made.pair.public, format: None }));
    let you = name.map(|name| as_signer(own, &name)).transpose()?;
    let own = own.map(|own| own.key);
    let signers = you.into_iter().chain(others).collect();
    let file = make_plain(Group { threshold, signers }, listed_servers(&client))?;
    // A key is written only for a file that is valid.
    if let Some(made) = &made {
        made.write()?;
    }
    write_new(target, &file.write(), 0o666)?;
    session.remember(path, &client);

    let steps = next_steps(session, &project, &client);
    let names = Names::of([&file]);
    let people = People { names: &names, you: own };
    let listed = names.in_order(file.keys());
    let made = made.map(|made| made.private);
    let key = made.as_ref().map(|path| format!("Made your key, {}. Back it up.\n", shown_path(path)));
    let signers: Vec<String> =
        listed.iter().map(|signer| format!("  {}\n", people.name(signer.key))).collect();
    let text = format!(
        "{}Wrote {}: releases of {} need {}\n{}{}",
        key.unwrap_or_default(),
        shown_path(target),
        shown_text(&pages.url),
        rule_text(threshold, listed.len()),
        signers.concat(),
        describe_steps(&steps, pages)
    );
    let value = json!({
        "project_id": path.as_str(),
        "file": wire::SIGNERS_FILE,
        "server": client.address(),
        "public_key": own,
        "new_key_file": made.map(|path| path.display().to_string()),
        "signers": list_json(&listed),
        "threshold": threshold,
        "next": steps,
    });
    session.output.result(&text, &value)
}

/// What flags, settings and the user say.
struct Answers {
    project: Project,
    client: ServerClient,
    /// The user's key, if there is one.
    own: Option<PublicHalf>,
    /// The user's name; `None` if the user is among the others already.
    name: Option<String>,
    others: Vec<Signer>,
    threshold: usize,
}

impl Answers {
    async fn gather(session: &Session, args: &InitArgs) -> Result<Self, CliError> {
        let is_terminal = io::stdin().is_terminal();
        let mut questions = Questions { session, args, is_terminal, open: Vec::new() };
        let project = questions.find_project()?;
        let path = project.as_ref().map(|project| &project.path);
        let server = questions.choose_server(path).await?;
        let own = find_own_key(session, path)?;
        let others = questions.gather_signers(own)?;
        let is_listed = own.is_some_and(|own| others.iter().any(|signer| signer.key == own.key));
        let name = if is_listed { None } else { questions.choose_name(own, &others)? };
        let threshold = questions.choose_threshold(others.len() + usize::from(!is_listed))?;
        match (project, server, threshold) {
            (Some(project), Some(client), Some(threshold)) if is_listed || name.is_some() => {
                Ok(Self { project, client, own, name, others, threshold })
            }
            _ => Err(questions.unanswered()),
        }
    }
}

/// Asks on a terminal. Without one, it gathers what no flag says, so that one error names it all.
struct Questions<'a> {
    session: &'a Session,
    args: &'a InitArgs,
    is_terminal: bool,
    open: Vec<(String, &'static str)>,
}

impl Questions<'_> {
    /// `flag`: what answers the question beforehand. Returns `None` if no one can be asked.
    fn ask<T>(
        &mut self,
        question: &str,
        fallback: Option<&str>,
        flag: &'static str,
        parse: impl Fn(&str) -> Result<T, CliError>,
    ) -> Result<Option<T>, CliError> {
        if self.is_terminal {
            return ask_text(self.session.output, question, fallback, parse).map(Some);
        }
        self.open.push((question.to_owned(), flag));
        Ok(None)
    }

    fn unanswered(self) -> CliError {
        let (questions, flags): (Vec<_>, Vec<_>) = self.open.into_iter().unzip();
        let message =
            format!("{} No one can be asked: standard input is not a terminal", questions.join(" "));
        CliError::usage(message, format!("pass {}", flags.join(", ")))
    }

    fn find_project(&mut self) -> Result<Option<Project>, CliError> {
        match &self.args.url {
            Some(url) => parse_project(url).map(Some),
            None => {
                let question = "Where is the project, as in https://github.com/acme/app?";
                self.ask(question, None, "PROJECT_URL", parse_project)
            }
        }
    }

    /// A server that does not answer can be down for the moment, and nothing here needs it. So the user hears of it,
    /// and decides.
    async fn choose_server(&mut self, project: Option<&RepoPath>) -> Result<Option<ServerClient>, CliError> {
        let session = self.session;
        let own = project.and_then(RepoPath::host).is_some_and(is_this_machine).then_some(OWN_SERVER);
        let chosen = session.chosen_server(project).map(|server| server.address);
        let Some(address) = chosen.as_deref().or(own) else { return self.ask_server().await };
        let client = ServerClient::new(address, session.output)?;
        if let Err(error) = client.ping().await {
            if chosen.is_none() && self.is_terminal {
                return self.ask_server().await;
            }
            let address = client.address();
            session.output.warn(&format!(
                "warning: no signing server answers at {address}: {}. Check the address before you register the project.",
                error.describe()
            ));
        }
        Ok(Some(client))
    }

    async fn ask_server(&mut self) -> Result<Option<ServerClient>, CliError> {
        let output = self.session.output;
        let question = "Which signing server, as in https://sign.example.org?";
        let open = |address: &str| ServerClient::new(address, output);
        let mut silent = None;
        loop {
            let Some(client) = self.ask(question, None, "--server URL", open)? else { return Ok(None) };
            let Err(error) = client.ping().await else { return Ok(Some(client)) };
            let address = client.address();
            if silent.as_ref() == Some(&address) {
                return Ok(Some(client));
            }
            let error = error.with_hint("correct the address, or give the same one again to keep it");
            output.show(&output.describe_error(&error));
            silent = Some(address);
        }
    }

    /// The others. Only a person who gave none is asked.
    fn gather_signers(&self, own: Option<PublicHalf>) -> Result<Vec<Signer>, CliError> {
        let mut signers: Vec<Signer> = Vec::new();
        let parse = |text: &str, before: &[Signer]| {
            let signer = keys::parse_signer(text)?;
            check_together(before, &signer)?;
            // A name that is given beforehand cannot be asked for again.
            match &self.args.name {
                Some(name) if own.is_none_or(|own| own.key != signer.key) => {
                    check_together(std::slice::from_ref(&signer), &as_signer(own, name)?)?;
                }
                Some(_) | None => {}
            }
            Ok(signer)
        };
        for text in &self.args.signers {
            let signer = parse(text, &signers)?;
            signers.push(signer);
        }
        if !signers.is_empty() || !self.is_terminal {
            return Ok(signers);
        }
        let question = "Another signer, as in bob=bob.pub? (Nothing if that is all.)";
        loop {
            let parse = |answer: &str| match answer {
                "" => Ok(None),
                answer => parse(answer, &signers).map(Some),
            };
            match ask_text(self.session.output, question, None, parse)? {
                Some(signer) => signers.push(signer),
                None => return Ok(signers),
            }
        }
    }

    fn choose_name(
        &mut self,
        own: Option<PublicHalf>,
        others: &[Signer],
    ) -> Result<Option<String>, CliError> {
        const FLAG: &str = "--name NAME";
        let parse = |name: &str| match name {
            "" => Err(CliError::usage("your name is empty", format!("pass {FLAG}"))),
            name => check_together(others, &as_signer(own, name)?).map(|()| name.to_owned()),
        };
        let user = env::var("USER").ok().filter(|user| !user.is_empty());
        match &self.args.name {
            Some(name) => parse(name).map(Some),
            None => self.ask("What is your name in the signers file?", user.as_deref(), FLAG, parse),
        }
    }

    /// More than half is offered: then no two releases can be signed by different people.
    fn choose_threshold(&mut self, signers: usize) -> Result<Option<usize>, CliError> {
        let parse = |answer: &str| check_threshold(answer, signers);
        match (self.args.threshold, signers) {
            (Some(threshold), _) => parse(&threshold.to_string()).map(Some),
            (None, 1) => Ok(Some(1)),
            (None, signers) => {
                let question = format!("How many of the {signers} signers must sign a release?");
                self.ask(&question, Some(&(signers / 2 + 1).to_string()), "--threshold N", parse)
            }
        }
    }
}

struct Project {
    path: RepoPath,
    pages: ProjectPages,
}

fn parse_project(url: &str) -> Result<Project, CliError> {
    let malformed = || {
        CliError::usage(
            format!("`{}` is not the address of a project", shown_text(url)),
            "write it as your browser shows it: https://github.com/acme/app, or https://dl.example.org/acme/app",
        )
    };
    // As `git clone` takes it.
    let path = path_of_url(url.strip_suffix(".git").unwrap_or(url)).ok_or_else(malformed)?;
    let pages = ProjectPages::of_host(&path).ok_or_else(malformed)?;
    let is_whole = match pages.kind {
        SourceKind::Github | SourceKind::Forgejo => path.names().count() == 2,
        SourceKind::Gitlab => path.names().count() >= 2,
        SourceKind::FileServer => path.names().count() >= 1,
    };
    if !is_whole || path.check_storable_dir().is_err() {
        return Err(malformed());
    }
    Ok(Project { path, pages })
}

/// A client takes a server that a signers file names over https only (D227).
fn listed_servers(client: &ServerClient) -> Vec<String> {
    Some(client.address()).filter(|server| server.starts_with("https://")).into_iter().collect()
}

/// The user's key, if there is one.
fn find_own_key(session: &Session, project: Option<&RepoPath>) -> Result<Option<PublicHalf>, CliError> {
    if let Some(path) = session.key_path(project) {
        return read_public_half(&path).map(Some);
    }
    match keys::list_default(session.output).is_empty() {
        true => Ok(None),
        false => session.public_half_of(None, &[]).map(Some),
    }
}

/// Refuses a signer whose key or name cannot stand in one file with those before.
fn check_together(before: &[Signer], signer: &Signer) -> Result<(), CliError> {
    let signers = before.iter().chain([signer]).cloned().collect();
    make_plain(Group { threshold: 1, signers }, Vec::new())
        .map(drop)
        .map_err(|error| error.with_hint("every signer is listed once, with a name of their own"))
}

/// The user under this name. If the key is not made yet, another new one stands for it.
fn as_signer(own: Option<PublicHalf>, name: &str) -> Result<Signer, CliError> {
    let key = own.map_or_else(|| keys::generate("", None).map(|made| made.public), |own| Ok(own.key))?;
    let format = own.and_then(|own| own.format).unwrap_or(KeyFormat::Ed25519);
    Ok(Signer { key, name: Some(name.to_owned()), format })
}

fn check_threshold(text: &str, signers: usize) -> Result<usize, CliError> {
    let threshold = text.parse().ok().filter(|threshold| (1..=signers).contains(threshold));
    threshold.ok_or_else(|| {
        let allowed =
            if signers == 1 { "1, for 1 signer".to_owned() } else { format!("between 1 and {signers}") };
        let message = format!("--threshold is `{}`, and it must be {allowed}", shown_text(text));
        CliError::usage(message, "--signer NAME=KEY adds a signer")
    })
}

/// The commands that come next, with this project's names in them: they publish the file, register it, sign it, and
/// release something.
fn next_steps(session: &Session, project: &Project, client: &ServerClient) -> [String; 4] {
    let Project { path: project, pages } = project;
    let file = wire::SIGNERS_FILE;
    let url = quote(&pages.signers_file(&find_branch().unwrap_or_else(|| "main".to_owned())));
    let name = short_form(project, std::slice::from_ref(project));
    // What the environment says, it says to the next commands as well.
    let given = env::var_os("COUNTERSIGN_KEY");
    let key = session.global.key.as_deref().filter(|key| given.as_deref() != Some(key.as_os_str()));
    let key = key.map(|key| format!(" --key {}", quote(&key.display().to_string()))).unwrap_or_default();
    // Registering makes it the project's server, for the commands behind it.
    let is_other = session.config.server_for(Some(project)).is_some_and(|set| !set.is_at(&client.address()));
    let given = env::var_os("COUNTERSIGN_SERVER");
    let named = session.named_server().filter(|_| is_other);
    let server = named.filter(|named| given.as_deref() != Some(OsStr::new(named)));
    let server = server.map(|server| format!(" --server {}", quote(server))).unwrap_or_default();
    let publish = match pages.kind {
        SourceKind::FileServer => format!("publish {file} as {url}"),
        SourceKind::Github | SourceKind::Gitlab | SourceKind::Forgejo => {
            format!("git add {file} && git commit -m 'Name the signers of our releases' && git push")
        }
    };
    let release = match pages.release("v1.0") {
        ReleaseAddress::Page(_) => format!("countersign release {name} v1.0{key}"),
        ReleaseAddress::Checksums(url) => format!("countersign release --checksums {}{key}", quote(&url)),
    };
    let register = format!("countersign register {url}{server}{key}");
    [publish, register, format!("countersign sign {name}{key}"), release]
}

fn describe_steps([publish, register, sign, release]: &[String; 4], pages: &ProjectPages) -> String {
    let forge = match pages.kind {
        SourceKind::FileServer => {
            "\nOn a forge of your own, register the page that shows the file on its branch."
        }
        SourceKind::Github | SourceKind::Gitlab | SourceKind::Forgejo => "",
    };
    format!(
        "Next:\n  1. {publish}\n  2. {register}\n  3. {sign}\n     Every signer does this once.\n\
             Then, for each release: {release}{forge}"
    )
}

/// The branch of the working copy here, as Git notes it.
fn find_branch() -> Option<String> {
    let head = fs::read_to_string(Path::new(".git/HEAD")).ok()?;
    head.trim_end().strip_prefix("ref: refs/heads/").map(str::to_owned)
}
