//! From the URL of a page to the requests for what it shows (D26).

use countersign_core::values::path::RepoPath;
use percent_encoding::utf8_percent_encode;
use reqwest::header::HeaderValue;
use url::Url;

use super::{
    credential::Credential,
    forge::{Forge, KNOWN},
    kind::ForgeKind,
    signers_form::{BranchFile, ServedBy, read_page},
    source::{ReleaseSource, Retrieval, SignersSource},
};
use crate::{
    checksums::ENCODED,
    url::{Scheme, SourceUrl, UrlProblem, UrlRefusal},
};

/// Makes GitHub send the file itself instead of a description of it.
const GITHUB_RAW_MEDIA: HeaderValue = HeaderValue::from_static("application/vnd.github.raw+json");

pub(super) fn no_forge_problem(url: &SourceUrl) -> UrlProblem {
    if KNOWN.iter().any(|(known, _)| *known == url.host().as_str()) {
        UrlProblem::ForgeHttpsOnly { host: url.host().clone() }
    } else {
        UrlProblem::NotAForge { server: url.server() }
    }
}

impl Forge {
    /// `segments`: of the page, or of a raw file below the place of raw files.
    pub(super) fn locate_signers(
        &self,
        url: &SourceUrl,
        segments: &[&str],
        served_by: ServedBy,
    ) -> Result<SignersSource, UrlRefusal> {
        if url.has_fragment() {
            return Err(url.refuse(UrlProblem::Fragment));
        }
        let page = read_page(self.kind, segments, served_by).map_err(|problem| url.refuse(problem))?;
        if url.file_name().is_none() {
            return Err(url.refuse(UrlProblem::NoFileName));
        }
        let project = self.project(url, &page.project)?;
        let credential = self.credential(url, &page.project)?;
        let needs_slashed_branch = page.places.iter().all(|place| place.branch.len() > 1);
        let mut retrievals: Vec<Retrieval> = Vec::new();
        for place in &page.places {
            let names = &page.project;
            let retrieval = match (&credential, needs_slashed_branch) {
                (Some(_), _) => self.retrieve_by_api(url, names, place, credential.clone()),
                (None, false) => self.retrieve_raw(url, names, place),
                (None, true) => self.retrieve_slashed(url, names, place),
            };
            let retrieval = retrieval.ok_or_else(|| url.refuse(UrlProblem::Unreadable))?;
            if !retrievals.contains(&retrieval) {
                retrievals.push(retrieval);
            }
        }
        let (kind, url) = (self.kind.origin(), url.as_str().to_owned());
        Ok(SignersSource { kind, project, url, retrievals, needs_slashed_branch })
    }

    fn retrieve_raw(&self, url: &SourceUrl, project: &[String], place: &BranchFile) -> Option<Retrieval> {
        let plain = Retrieval::plain(self.raw_file_url(url, project, place)?);
        Some(Retrieval { refuses_html: true, ..plain })
    }

    fn retrieve_by_api(
        &self,
        url: &SourceUrl,
        project: &[String],
        place: &BranchFile,
        credential: Option<Credential>,
    ) -> Option<Retrieval> {
        let accept = (self.kind == ForgeKind::Github).then_some(GITHUB_RAW_MEDIA);
        let plain = Retrieval::plain(self.api_file_url(url, project, place)?);
        Some(Retrieval { accept, credential, refuses_html: true, ..plain })
    }

    /// In a raw URL the forge decides where the branch ends: of `main/docs/svc.signers.json` it would send the file in
    /// `docs` on `main`, which is no place for signers. So the forge is asked for the branch first; where it does not
    /// tell, for the file through the API, which takes branch and path apart.
    fn retrieve_slashed(&self, url: &SourceUrl, project: &[String], place: &BranchFile) -> Option<Retrieval> {
        let branch = Some(self.api_branch_url(url, project, place)?);
        let otherwise = self.retrieve_by_api(url, project, place, None)?;
        let raw = self.retrieve_raw(url, project, place)?;
        Some(Retrieval { branch, otherwise: Some(Box::new(otherwise)), ..raw })
    }

    pub(super) fn locate_release(&self, url: &SourceUrl) -> Result<ReleaseSource, UrlRefusal> {
        if url.has_fragment() {
            return Err(url.refuse(UrlProblem::Fragment));
        }
        let segments: Vec<&str> = url.segments().collect();
        let (names, tag) = read_release_page(self.kind, &segments).map_err(|problem| url.refuse(problem))?;
        if url.file_name().is_none() {
            return Err(url.refuse(release_form(self.kind)));
        }
        let tag = tag.join("/");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let project = self.project(url, &names)?;
        let dir = RepoPath::parse(&format!("{project}/releases/tag/{tag}"))
            .map_err(|error| url.refuse_path(&error))?;
        let api_project = Url::parse(&self.api_project(url, &names));
        let api_urls = self.api_release_urls(url, &names, &tag);
        Ok(ReleaseSource {
            kind: self.kind.origin(),
            project,
            dir: url.check_storable(dir)?,
            url: url.as_str().split('?').next().unwrap_or_default().to_owned(),
            forge_kind: self.kind,
            api_project: api_project.map_err(|_| url.refuse(UrlProblem::Unreadable))?,
            api_urls: api_urls.ok_or_else(|| url.refuse(UrlProblem::Unreadable))?,
            credential: self.credential(url, &names)?,
            tag,
        })
    }

    /// The repository's page on the forge, whatever host served the raw file.
    fn project(&self, url: &SourceUrl, names: &[String]) -> Result<RepoPath, UrlRefusal> {
        let (scheme, host) = (self.page_scheme(url), &self.host);
        let port = self.port.unwrap_or(scheme.default_port());
        let path = format!("{}/{host}/{port}/{}", scheme.as_str(), names.join("/"));
        let path = RepoPath::parse(&path).map_err(|error| url.refuse_path(&error))?;
        url.check_storable(path)
    }

    /// The token, for the places of this project alone.
    fn credential(&self, url: &SourceUrl, project: &[String]) -> Result<Option<Credential>, UrlRefusal> {
        let Some(token) = &self.token else {
            return Ok(None);
        };
        // The caller chooses the scheme of the URL, but must not make us send the token in the clear.
        if self.api.is_none() && self.page_scheme(url) == Scheme::Http && !self.host.is_loopback() {
            return Err(url.refuse(UrlProblem::TokenOverHttp { host: self.host.clone() }));
        }
        let parse = |text: String| Url::parse(&text).map_err(|_| url.refuse(UrlProblem::Unreadable));
        let api = parse(self.api_base(url))?;
        let places = vec![
            parse(format!("{}/", self.api_project(url, project)))?,
            parse(format!("{}/{}/", self.page_base(url), join(project)))?,
        ];
        Ok(Some(Credential::new(self.kind, token, &api, places)))
    }

    /// Without a slash at its end.
    fn api_base(&self, url: &SourceUrl) -> String {
        match &self.api {
            Some(api) => api.as_str().trim_end_matches('/').to_owned(),
            None => format!("{}/{}", self.page_base(url), self.kind.api_path()),
        }
    }

    /// The project in the API, without a slash at its end.
    fn api_project(&self, url: &SourceUrl, project: &[String]) -> String {
        let api = self.api_base(url);
        match self.kind {
            ForgeKind::Github | ForgeKind::Forgejo => format!("{api}/repos/{}", join(project)),
            ForgeKind::Gitlab => format!("{api}/projects/{}", encode(&project.join("/"))),
        }
    }

    fn page_base(&self, url: &SourceUrl) -> String {
        let scheme = self.page_scheme(url);
        let port = self.port.filter(|port| *port != scheme.default_port());
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}", scheme.as_str(), self.host)
    }

    /// The scheme of the forge's own pages. A URL on the host of raw files does not tell: one repository must not
    /// become two projects by it.
    fn page_scheme(&self, url: &SourceUrl) -> Scheme {
        let own_port = self.port.unwrap_or(url.scheme().default_port());
        if *url.host() == self.host && url.port() == own_port {
            return url.scheme();
        }
        match self.api.as_ref().and_then(|api| Scheme::parse(api.scheme())) {
            Some(scheme) => scheme,
            None if self.host.is_loopback() => Scheme::Http,
            None => Scheme::Https,
        }
    }

    fn raw_file_url(&self, url: &SourceUrl, project: &[String], place: &BranchFile) -> Option<Url> {
        let raw = self.raw.as_ref().map(|raw| raw.as_str().trim_end_matches('/').to_owned());
        let has_raw_host = raw.is_some();
        let base = raw.unwrap_or_else(|| self.page_base(url));
        let (project, branch, path) = (join(project), join(&place.branch), join(&place.path));
        let text = match self.kind {
            ForgeKind::Github if has_raw_host => format!("{base}/{project}/refs/heads/{branch}/{path}"),
            ForgeKind::Github => format!("{base}/{project}/raw/refs/heads/{branch}/{path}"),
            ForgeKind::Gitlab => format!("{base}/{project}/-/raw/{branch}/{path}?ref_type=heads"),
            ForgeKind::Forgejo => format!("{base}/{project}/raw/branch/{branch}/{path}"),
        };
        Url::parse(&text).ok()
    }

    fn api_file_url(&self, url: &SourceUrl, project: &[String], place: &BranchFile) -> Option<Url> {
        let api = self.api_project(url, project);
        let query = format!("ref=refs%2Fheads%2F{}", encode(&place.branch.join("/")));
        let path = join(&place.path);
        let text = match self.kind {
            ForgeKind::Github => format!("{api}/contents/{path}?{query}"),
            ForgeKind::Gitlab => {
                format!("{api}/repository/files/{}/raw?{query}", encode(&place.path.join("/")))
            }
            ForgeKind::Forgejo => format!("{api}/raw/{path}?{query}"),
        };
        Url::parse(&text).ok()
    }

    fn api_branch_url(&self, url: &SourceUrl, project: &[String], place: &BranchFile) -> Option<Url> {
        let (api, branch) = (self.api_project(url, project), encode(&place.branch.join("/")));
        let text = match self.kind {
            ForgeKind::Github | ForgeKind::Forgejo => format!("{api}/branches/{branch}"),
            ForgeKind::Gitlab => format!("{api}/repository/branches/{branch}"),
        };
        Url::parse(&text).ok()
    }

    fn api_release_urls(&self, url: &SourceUrl, project: &[String], tag: &str) -> Option<Vec<Url>> {
        let api = self.api_project(url, project);
        let mut urls = match self.kind {
            ForgeKind::Github | ForgeKind::Forgejo => {
                let releases = format!("{api}/releases/tags");
                // Proxies in front of a forge may refuse an encoded slash.
                let slashes = tag.split('/').map(encode).collect::<Vec<_>>().join("/");
                vec![format!("{releases}/{}", encode(tag)), format!("{releases}/{slashes}")]
            }
            ForgeKind::Gitlab => vec![format!("{api}/releases/{}", encode(tag))],
        };
        urls.dedup();
        urls.iter().map(|text| Url::parse(text).ok()).collect()
    }
}

type Names<'a, 'u> = (&'a [&'u str], &'a [&'u str]);

/// The names of the repository, and those of the tag.
fn read_release_page<'a, 'u>(kind: ForgeKind, segments: &'a [&'u str]) -> Result<Names<'a, 'u>, UrlProblem> {
    let (project, tag) = match (kind, segments) {
        (ForgeKind::Github | ForgeKind::Forgejo, [_, _, "releases", "tag", tag @ ..]) => {
            (&segments[..2], tag)
        }
        (ForgeKind::Gitlab, _) => {
            let dash = segments.iter().position(|segment| *segment == "-").filter(|dash| *dash >= 2);
            match dash.map(|dash| (&segments[..dash], &segments[dash + 1..])) {
                Some((project, ["releases", tag @ ..])) => (project, tag),
                _ => return Err(release_form(kind)),
            }
        }
        _ => return Err(release_form(kind)),
    };
    if tag.is_empty() {
        return Err(release_form(kind));
    }
    // Only the tag may hold encoded slashes.
    if project.iter().any(|name| name.contains('/')) {
        return Err(UrlProblem::ForbiddenInSegment);
    }
    Ok((project, tag))
}

fn release_form(kind: ForgeKind) -> UrlProblem {
    UrlProblem::ReleaseForm {
        form: match kind {
            ForgeKind::Github | ForgeKind::Forgejo => "…/OWNER/REPOSITORY/releases/tag/TAG",
            ForgeKind::Gitlab => "…/GROUP/PROJECT/-/releases/TAG",
        },
    }
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Segments of a path, with slashes between them.
fn join(segments: &[String]) -> String {
    segments.iter().map(|segment| encode(segment)).collect::<Vec<_>>().join("/")
}
