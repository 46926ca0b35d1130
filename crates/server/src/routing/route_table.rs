//! Routes, each with its part of the reference. A route cannot be added without it.

use axum::{
    Router,
    handler::Handler,
    routing::{get, post},
};

use crate::{
    openapi::{Endpoint, Row, Verb},
    state::App,
};

#[derive(Debug, Default)]
pub struct RouteTable {
    router: Router<App>,
    rows: Vec<Row>,
}

impl RouteTable {
    pub fn get<H: Handler<T, App>, T: 'static>(self, path: &str, handler: H, endpoint: Endpoint) -> Self {
        let router = self.router.route(path, get(handler));
        Self { router, rows: self.rows }.with_row(Verb::Get, path.to_owned(), endpoint)
    }

    pub fn post<H: Handler<T, App>, T: 'static>(self, path: &str, handler: H, endpoint: Endpoint) -> Self {
        let router = self.router.route(path, post(handler));
        Self { router, rows: self.rows }.with_row(Verb::Post, path.to_owned(), endpoint)
    }

    /// Everything below a directory. The rest of the target is one path, which can contain slashes.
    pub fn get_below<H: Handler<T, App>, T: 'static>(
        self,
        dir: &str,
        handler: H,
        endpoint: Endpoint,
    ) -> Self {
        // A catch-all does not match the empty path, which has its own answer (D6).
        let router = self.router.route(&format!("{dir}/"), get(handler.clone()));
        let router = router.route(&format!("{dir}/{{*path}}"), get(handler));
        Self { router, rows: self.rows }.with_row(Verb::Get, format!("{dir}/{{path}}"), endpoint)
    }

    pub fn merge(mut self, other: Self) -> Self {
        self.rows.extend(other.rows);
        Self { router: self.router.merge(other.router), rows: self.rows }
    }

    pub fn into_router(self) -> Router<App> {
        self.router
    }

    pub fn into_rows(self) -> Vec<Row> {
        self.rows
    }

    fn with_row(mut self, method: Verb, path: String, endpoint: Endpoint) -> Self {
        self.rows.push(Row { method, path, endpoint });
        self
    }
}
