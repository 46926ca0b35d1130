//! Names for kinds of requests. The route table defines this fixed set, so strangers cannot add to it.

pub(super) const MAX_KINDS: usize = 32;
/// The name of all pages, with what they consist of.
pub const PAGE: &str = "page";

/// The kind of a request, by its path alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestKind(pub(super) usize);

#[derive(Debug)]
pub struct RequestKinds {
    names: Vec<&'static str>,
    exact: Vec<(String, RequestKind)>,
    below: Vec<(String, RequestKind)>,
    ending: Vec<(String, RequestKind)>,
    unlimited: Vec<RequestKind>,
}

impl RequestKind {
    /// No route answers it, or it is not a valid request.
    pub const OTHER: Self = Self(0);
}

impl Default for RequestKinds {
    fn default() -> Self {
        let (names, unlimited) = (vec!["other"], Vec::new());
        Self { names, exact: Vec::new(), below: Vec::new(), ending: Vec::new(), unlimited }
    }
}

impl RequestKinds {
    /// Counts requests for a path under a name. A path that ends with a slash stands for everything below it,
    /// except `/` itself. No rate limit holds up a kind that is not limited, such as health checks.
    pub fn add(&mut self, path: &str, name: &'static str, is_limited: bool) {
        let kind = self.add_name(name, is_limited);
        let paths = if path.len() > 1 && path.ends_with('/') { &mut self.below } else { &mut self.exact };
        paths.push((path.to_owned(), kind));
    }

    /// Counts requests whose path ends like this, and is no other's, under a name.
    pub fn add_ending(&mut self, ending: &str, name: &'static str, is_limited: bool) {
        let kind = self.add_name(name, is_limited);
        self.ending.push((ending.to_owned(), kind));
    }

    fn add_name(&mut self, name: &'static str, is_limited: bool) -> RequestKind {
        let known = self.names.iter().position(|known| *known == name);
        let kind = RequestKind(known.unwrap_or(self.names.len()));
        if known.is_none() {
            assert!(self.names.len() < MAX_KINDS, "there are counters for {MAX_KINDS} kinds of requests");
            self.names.push(name);
        }
        if !is_limited {
            self.unlimited.push(kind);
        }
        kind
    }

    pub fn is_limited(&self, kind: RequestKind) -> bool {
        !self.unlimited.contains(&kind)
    }

    pub fn is_page(&self, kind: RequestKind) -> bool {
        self.names.get(kind.0).is_some_and(|name| *name == PAGE)
    }

    pub fn kind_of(&self, path: &str) -> RequestKind {
        // Most requests are reads below a directory.
        let below = self.below.iter().find(|(dir, _)| path.starts_with(dir.as_str()));
        let found = below.or_else(|| self.exact.iter().find(|(known, _)| known == path));
        let found = found.or_else(|| self.ending.iter().find(|(ending, _)| path.ends_with(ending)));
        found.map_or(RequestKind::OTHER, |(_, kind)| *kind)
    }

    pub fn all(&self) -> impl Iterator<Item = (RequestKind, &'static str)> {
        self.names.iter().enumerate().map(|(index, name)| (RequestKind(index), *name))
    }
}
