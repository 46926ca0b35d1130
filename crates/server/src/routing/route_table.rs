//! Routes, each with its part of the reference. A route cannot be added without it.

use axum::{
    Router,
    handler::Handler,
    routing::{MethodRouter, get, post},
};

use crate::{
    openapi::{Endpoint, Row, Verb},
    state::App,
};

#[derive(Debug, Default)]
pub struct RouteTable {
    pub router: Router<App>,
    pub rows: Vec<Row>,
}

impl RouteTable {
    pub fn get<H: Handler<T, App>, T: 'static>(self, path: &str, handler: H, endpoint: Endpoint) -> Self {
        self.route(path, get(handler)).with_row(Verb::Get, path.to_owned(), endpoint)
    }

    pub fn post<H: Handler<T, App>, T: 'static>(self, path: &str, handler: H, endpoint: Endpoint) -> Self {
        self.route(path, post(handler)).with_row(Verb::Post, path.to_owned(), endpoint)
    }

    /// Everything below a directory. The rest of the target is one path, which can contain slashes.
    pub fn get_below<H: Handler<T, App>, T: 'static>(
        self,
        dir: &str,
        handler: H,
        endpoint: Endpoint,
    ) -> Self {
        // A catch-all does not match the empty path, which has its own answer (D6).
        self.route(&format!("{dir}/"), get(handler.clone()))
            .route(&format!("{dir}/{{*path}}"), get(handler))
            .with_row(Verb::Get, format!("{dir}/{{path}}"), endpoint)
    }

    pub fn merge(mut self, other: Self) -> Self {
        self.rows.extend(other.rows);
        Self { router: self.router.merge(other.router), ..self }
    }

    fn route(self, path: &str, methods: MethodRouter<App>) -> Self {
        Self { router: self.router.route(path, methods), ..self }
    }

    fn with_row(mut self, method: Verb, path: String, endpoint: Endpoint) -> Self {
        self.rows.push(Row { method, path, endpoint });
        self
    }
}
