//! URLs that a user gives us (D6, "In URLs"): inspected as text, before the `url` crate resolves dot segments, turns
//! backslashes into slashes and drops line breaks.

use std::{borrow::Cow, fmt, net::IpAddr};

use countersign_core::documents::index::AssetNameError;
use countersign_core::values::path::{
    Authority, PathError, RepoPath, Scheme, UrlParts, is_host, is_name, is_this_machine,
};
pub(crate) use countersign_core::values::shown::shown_text;
use countersign_core::values::{bounds::URL_BYTES, shown::is_unseen, wire};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use thiserror::Error;
use url::Url;

/// All but the unreserved characters: some servers read a `+` in a path as a space.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An absolute http(s) URL that means the same to us, to the `url` crate and to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceUrl {
    text: String,
    url: Url,
    scheme: Scheme,
    host: Host,
    port: u16,
    segments: Vec<String>,
    /// Whether the last segment is a file name. A URL with a slash at the end has none.
    has_file_name: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EncodedSlash {
    Refused,
    Separates,
}

/// Why a URL is refused as given: the request is at fault (400), nothing was fetched.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UrlRefusal {
    #[error("no URL was given: name at least one")]
    NoUrl,
    #[error("the URL `{url}` is refused: {problem}")]
    Url { url: String, problem: UrlProblem },
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UrlProblem {
    #[error("it is longer than {URL_BYTES} bytes")]
    TooLong,
    #[error(
        "it has whitespace, a control character or an invisible one: remove it, or percent-encode a space as `%20`"
    )]
    ForbiddenCharacter,
    #[error("it has a backslash: use `/` between segments")]
    Backslash,
    #[error("it is not an absolute URL that begins with `https://` or `http://`")]
    Scheme,
    #[error("it has user information before an `@`: leave it out")]
    UserInfo,
    #[error(transparent)]
    Host(#[from] HostProblem),
    #[error("a `%` is not followed by two hexadecimal digits: write a literal one as `%25`")]
    PercentEncoding,
    #[error("a segment is not UTF-8 after percent-decoding")]
    NotUtf8,
    #[error("path traversal detected: a `.` or `..` segment is not allowed, in any encoding")]
    DotSegment,
    #[error("a segment decodes to text with a slash, a backslash or a control character")]
    ForbiddenInSegment,
    #[error("its path has an empty segment: write single slashes")]
    EmptySegment,
    #[error("it cannot be read")]
    Unreadable,
    #[error("it has a query: leave out the `?` and what follows")]
    Query,
    #[error("it has a fragment: leave out the `#` and what follows")]
    Fragment,
    #[error("it names a directory: give the URL of the file itself")]
    NoFileName,
    #[error("{}", shown_text(&.0.to_string()))]
    Path(#[from] PathError),
    #[error(
        "it has the form of a forge's page, and {host} is not configured as a forge: the operator can add it as a \
         `[[forge]]` entry of the configuration"
    )]
    ForgeForm { host: Host },
    #[error(
        "{server} is not a known code-forge host: the operator can add it as a `[[forge]]` entry of the \
         configuration, or register the release's checksums files with csum_files"
    )]
    NotAForge { server: String },
    #[error("{host} is a forge that is read over https on its usual port: write `https://{host}/…`")]
    ForgeHttpsOnly { host: Host },
    #[error(
        "the token for {host} is not sent over plain http: use https, or have the operator set `api` of its \
         `[[forge]]` entry"
    )]
    TokenOverHttp { host: Host },
    #[error("it is not the page of a file on a branch: write `{form}`")]
    SignersForm { form: &'static str },
    #[error(
        "`{named}` is not a branch: a signers file must come from a branch of the repository itself, because forges \
         serve commits of strangers under its name too"
    )]
    NotABranch { named: String },
    #[error(
        "on a forge a signers file is `{}` at the root of the repository, or a file directly inside `{}`, `{}` or `{}` \
         at its root", wire::SIGNERS_FILE, wire::PUBLISHED_SIGNERS_DIRS[0], wire::PUBLISHED_SIGNERS_DIRS[1],
        wire::PUBLISHED_SIGNERS_DIRS[2]
    )]
    SignersPath,
    #[error("it is not the page of a release: write `{form}`")]
    ReleaseForm { form: &'static str },
    #[error(
        "{server} is not an allowed file server: the operator can allow it with `--file-server {server}`"
    )]
    FileServerNotAllowed { server: String },
    #[error(
        "a signers file at the root registers the whole host: name it `{}` or put it into a directory `{}`, or into \
         a directory of the project", wire::SIGNERS_FILE, wire::PUBLISHED_SIGNERS_DIRS[0]
    )]
    RootFileName,
    #[error(
        "it is not in the same directory of the same server as `{first}`: register each directory by itself"
    )]
    OtherDirectory { first: String },
    #[error("it is given twice: name each file once")]
    GivenTwice,
    #[error(
        "it leads to the latest release, and no signature says which one that is: name the tag, as in `{form}`"
    )]
    LatestRelease { form: &'static str },
    #[error("it is the page of a release, not one of its files: give the URL of a file, as in `{form}`")]
    ReleasePage { form: &'static str },
    #[error(transparent)]
    FileName(#[from] AssetNameError),
    #[error("the metadata of the signers file claims the kind `{claimed}` for it, but {host} is `{known}`")]
    OtherKind { host: Host, known: &'static str, claimed: &'static str },
    #[error(
        "it has the form of a forge's page, and the metadata of the signers file claims that {host} is a file server: \
         on a forge, a path does not say who wrote the file"
    )]
    ClaimedFileServer { host: Host },
}

impl SourceUrl {
    pub fn parse(text: &str) -> Result<Self, UrlRefusal> {
        parse_text(text, EncodedSlash::Refused)
    }

    /// The URL of a release, in whose tag `%2F` is a slash: a segment may hold several names.
    pub(crate) fn parse_release(text: &str) -> Result<Self, UrlRefusal> {
        parse_text(text, EncodedSlash::Separates)
    }

    /// The text as given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The URL that is requested for it.
    pub fn request_url(&self) -> &Url {
        &self.url
    }

    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port as given, or the scheme's default.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The decoded segments before the last slash.
    pub fn dir_segments(&self) -> &[String] {
        &self.segments[..self.segments.len() - usize::from(self.has_file_name)]
    }

    /// The decoded segment after the last slash, unless the URL ends in one.
    pub fn file_name(&self) -> Option<&str> {
        self.segments.last().filter(|_| self.has_file_name).map(String::as_str)
    }

    pub fn segments(&self) -> Vec<&str> {
        self.segments.iter().map(String::as_str).collect()
    }

    pub fn has_query(&self) -> bool {
        self.url.query().is_some()
    }

    pub fn has_fragment(&self) -> bool {
        self.url.fragment().is_some()
    }

    /// The mirror-relative path of a directory on this URL's server.
    pub fn path_on_server(&self, dir: &[String]) -> Result<RepoPath, PathError> {
        RepoPath::parse(&format!("{}/{}/{}/{}", self.scheme.as_str(), self.host, self.port, dir.join("/")))
    }

    pub(crate) fn refuse(&self, problem: UrlProblem) -> UrlRefusal {
        UrlRefusal::Url { url: bare_url(&self.text), problem }
    }

    /// The file name, of a URL that is nothing but the place of a file.
    pub(crate) fn plain_file_name(&self) -> Result<&str, UrlProblem> {
        if self.has_query() {
            return Err(UrlProblem::Query);
        }
        if self.has_fragment() {
            return Err(UrlProblem::Fragment);
        }
        self.file_name().ok_or(UrlProblem::NoFileName)
    }

    /// The server, `HOST`, or `HOST:PORT` if the port is not the scheme's own.
    pub(crate) fn server(&self) -> String {
        format!("{}{}", self.host, self.scheme.written_port(self.port))
    }
}

impl fmt::Display for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&bare_url(&self.text))
    }
}

/// A directory under which we may store files because of a URL.
pub(crate) fn check_storable(dir: RepoPath) -> Result<RepoPath, PathError> {
    dir.check_storable_dir().map(|()| dir)
}

pub(crate) fn has_user_info(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Encodes text as one segment of a path, or as a value in a query.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Segments of a path, with slashes between them.
pub(crate) fn encode_path<'a>(segments: impl IntoIterator<Item = &'a str>) -> String {
    segments.into_iter().map(encode).collect::<Vec<_>>().join("/")
}

fn parse_text(text: &str, encoded_slash: EncodedSlash) -> Result<SourceUrl, UrlRefusal> {
    read_text(text, encoded_slash).map_err(|problem| UrlRefusal::Url { url: bare_url(text), problem })
}

fn read_text(text: &str, encoded_slash: EncodedSlash) -> Result<SourceUrl, UrlProblem> {
    if text.len() > URL_BYTES {
        return Err(UrlProblem::TooLong);
    }
    if text.chars().any(|c| c.is_whitespace() || is_unseen(c)) {
        return Err(UrlProblem::ForbiddenCharacter);
    }
    if text.contains('\\') {
        return Err(UrlProblem::Backslash);
    }
    let UrlParts { scheme, authority, path, after_path: _ } =
        UrlParts::split(text).ok_or(UrlProblem::Scheme)?;
    if authority.contains('@') {
        return Err(UrlProblem::UserInfo);
    }
    let (host, port) = Host::parse_with_port(authority)?;
    let port = port.unwrap_or(scheme.default_port());
    let mut segments: Vec<&str> = path.split('/').skip(1).collect();
    let has_file_name = segments.last().is_some_and(|last| !last.is_empty());
    if !has_file_name {
        segments.pop();
    }
    let decode = |segment| decode_segment(segment, encoded_slash);
    let segments = segments.into_iter().map(decode).collect::<Result<_, _>>()?;
    let url = Url::parse(text).map_err(|_| UrlProblem::Unreadable)?;
    let source = SourceUrl { text: text.to_owned(), url, scheme, host, port, segments, has_file_name };
    if agrees_with_request(&source) { Ok(source) } else { Err(UrlProblem::Unreadable) }
}

fn decode_segment(segment: &str, encoded_slash: EncodedSlash) -> Result<String, UrlProblem> {
    let is_encoded = |rest: &str| {
        let hex = rest.as_bytes().get(..2);
        hex.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    };
    if !segment.split('%').skip(1).all(is_encoded) {
        return Err(UrlProblem::PercentEncoding);
    }
    let decoded = percent_decode_str(segment).decode_utf8().map_err(|_| UrlProblem::NotUtf8)?;
    if decoded.split('/').any(|name| !name.is_empty() && !is_name(name)) {
        return Err(UrlProblem::DotSegment);
    }
    let is_separator = |c| c == '\\' || (c == '/' && encoded_slash == EncodedSlash::Refused);
    if decoded.chars().any(|c| c.is_control() || is_separator(c)) {
        return Err(UrlProblem::ForbiddenInSegment);
    }
    if decoded.split('/').any(str::is_empty) {
        return Err(UrlProblem::EmptySegment);
    }
    Ok(decoded.into_owned())
}

/// What is fetched is what the `url` crate read, so both readings must be the same.
fn agrees_with_request(source: &SourceUrl) -> bool {
    let SourceUrl { url, has_file_name, .. } = source;
    let theirs = url.path_segments().into_iter().flatten();
    let theirs = theirs.map(|encoded| percent_decode_str(encoded).decode_utf8().ok());
    let ours = source.segments().into_iter().chain((!has_file_name).then_some(""));
    url.scheme() == source.scheme.as_str()
        && url.host_str() == Some(source.host.as_str())
        && url.port_or_known_default() == Some(source.port)
        && theirs.eq(ours.map(|name| Some(Cow::Borrowed(name))))
}

// Hosts in the one spelling that we accept, so that a host can be compared, stored and checked as text (D6).

const MAX_HOST_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// A lower-case ASCII name without a trailing dot, or an IP address in its canonical form (IPv6 in brackets).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host(String);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostProblem {
    #[error("it has no host")]
    Empty,
    #[error("the host ends in a dot: leave the dot out")]
    TrailingDot,
    #[error("the host is not in its canonical form: write `{canonical}`")]
    NotCanonical { canonical: String },
    #[error(
        "`{host}` is not a host name (letters, digits, `-`, `_` and dots; Unicode names in punycode), an IPv4 \
         address (`192.0.2.1`) or an IPv6 address in brackets without a zone (`[2001:db8::1]`)"
    )]
    Malformed { host: String },
    #[error(
        "the port `{port}` is not a plain number from 1 to 65535: correct it, or leave it out with its colon"
    )]
    Port { port: String },
}

impl Host {
    pub fn parse(text: &str) -> Result<Self, HostProblem> {
        if text.is_empty() {
            return Err(HostProblem::Empty);
        }
        let malformed = || HostProblem::Malformed { host: shown_text(text) };
        // Also reads the spellings of IP addresses that resolvers and browsers accept (`0x7f.1`, `2130706433`).
        let canonical = url::Host::parse(text).map_err(|_| malformed())?.to_string();
        if text.ends_with('.') {
            return Err(HostProblem::TrailingDot);
        }
        let host = text.to_ascii_lowercase();
        if host != canonical {
            return Err(HostProblem::NotCanonical { canonical: shown_text(&canonical) });
        }
        if !host.starts_with('[') && !is_dns_name(&host) {
            return Err(malformed());
        }
        Ok(Self(host))
    }

    /// Parses `HOST` or `HOST:PORT`, as in a URL.
    pub fn parse_with_port(text: &str) -> Result<(Self, Option<u16>), HostProblem> {
        let authority = Authority::split(text);
        let host = Self::parse(authority.host)?;
        let port = authority.port().map_err(|port| HostProblem::Port { port: shown_text(port) })?;
        Ok((host, port))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address, where the host is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.0.trim_matches(['[', ']']).parse().ok()
    }

    /// A loopback address or `localhost`, judged by the text alone.
    pub fn is_loopback(&self) -> bool {
        is_this_machine(&self.0)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The `url` crate lets more characters pass than any DNS name has, and hosts become directory names.
fn is_dns_name(host: &str) -> bool {
    let is_label = |label: &str| label.len() <= MAX_LABEL_BYTES && !label.starts_with('-');
    is_host(host) && host.len() <= MAX_HOST_BYTES && host.split('.').all(is_label)
}

// Addresses of servers, as people write them into settings and options: http or https, a host, and no user information.

/// What is wrong with a URL. It never quotes the text, which could hold a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HttpUrlProblem {
    #[error("is not a URL")]
    NotAUrl,
    #[error("does not begin with `https://` or `http://` and a host")]
    NotHttp,
    #[error("has user information before an `@`: leave it out")]
    UserInfo,
    #[error("has a fragment: leave out the `#` and what follows")]
    Fragment,
}

/// Parses a URL, which can have a query.
pub fn parse_http_url(text: &str) -> Result<Url, HttpUrlProblem> {
    let url = Url::parse(text).map_err(|_| HttpUrlProblem::NotAUrl)?;
    if !matches!(url.scheme(), "https" | "http") || !url.has_host() {
        return Err(HttpUrlProblem::NotHttp);
    }
    if has_user_info(&url) {
        return Err(HttpUrlProblem::UserInfo);
    }
    if url.fragment().is_some() {
        return Err(HttpUrlProblem::Fragment);
    }
    Ok(url)
}

/// Parses a URL without a query. `None` for any other text.
pub fn parse_bare_url(text: &str) -> Option<Url> {
    parse_http_url(text).ok().filter(|url| url.query().is_none())
}

// Shows text from outside in our messages: nothing raw that could rewrite a line, and no secret.

/// A URL without user information, query and fragment: that is where passwords and signed tokens stand.
pub(crate) fn bare_url(text: &str) -> String {
    let (bare, rest) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
    let hidden = match rest.chars().next() {
        Some('?') => "?…",
        Some(_) => "#…",
        None => "",
    };
    let (scheme, after) = bare.split_at(bare.find("://").map_or(0, |at| at + 3));
    // Without a scheme it is no form that we know, so a password may stand anywhere before an `@`.
    let end = after.find(['/', '\\']).filter(|_| !scheme.is_empty()).unwrap_or(after.len());
    let shown = match after[..end].rfind('@') {
        Some(at) => format!("{scheme}…{}{hidden}", &after[at..]),
        None => format!("{bare}{hidden}"),
    };
    shown_text(&shown)
}
