//! Addresses of servers, as people write them into settings and options: http or https, a host, and no user information.

use thiserror::Error;
use url::Url;

use crate::url::has_user_info;

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
