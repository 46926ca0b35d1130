//! Pages for people, made from the same snapshot as the answers for programs. They work without a script.

mod activity;
mod assets;
mod badge;
mod command;
mod frame;
mod links;
mod paging;
mod parts;
mod places;
mod project;
mod projects;
mod proposal;
mod release;
mod rendering;
mod reply;
mod timeline;
mod verify;
mod visit;

use axum::{Router, extract::State, response::Response, routing::get};

pub(crate) use self::reply::report_unknown;
pub use self::{frame::Page, rendering::Renderings};
use self::{reply::reply, visit::Visit};
use crate::app::App;

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(home))
        .route("/activity", get(all_activity))
        .route("/p/{*path}", get(place))
        .route("/badge/{*path}", get(badge::show))
        .route(assets::STYLE_PATH, get(assets::style))
        .merge(verify::routes())
        .route(assets::ICON_PATH, get(assets::icon))
        .route("/favicon.ico", get(assets::icon))
}

async fn home(State(app): State<App>, visit: Visit) -> Response {
    reply(app, visit, |_, head, visit| projects::show_all(head, visit)).await
}

async fn place(State(app): State<App>, visit: Visit) -> Response {
    reply(app, visit, |app, head, visit| places::show(app.store().log(), head, visit)).await
}

async fn all_activity(State(app): State<App>, visit: Visit) -> Response {
    reply(app, visit, |app, head, visit| activity::show(app.store().log(), head, None, visit)).await
}
