//! The API reference for people, from the same descriptions as `/openapi.json`.

use std::sync::OnceLock;

use axum::extract::State;
use countersign_core::values::wire::routes::OPENAPI;
use maud::{Markup, PreEscaped, html};
use serde_json::Value;

use crate::api::openapi::{
    ABOUT, AUTHENTICATION, AuthHeader, Content, ContentSchema, DescribedAnswer, Endpoint, EndpointAccess,
    Parameter, RequestPart, Row, Section, Type, lasting_page,
};
use crate::api::{routing::RouteTable, state::App};
use crate::web::{frame::Page, links, visit::Visit};

/// Stands for the server's own address in what people copy.
const SERVER: &str = "https://sign.example.org";

/// The pages, written once, since they are long and the same for every visitor: the overview, and a page for each
/// section.
static TEXTS: OnceLock<Vec<String>> = OnceLock::new();

pub(super) fn routes() -> RouteTable {
    let overview = lasting_page("docs_page", "This reference, for people")
        .about("Every endpoint with its parameters, answers and examples.");
    let show_overview = async |State(app): State<App>, visit: Visit| show(&app, None).answer(&visit);
    let overview = RouteTable::default().get(links::DOCS, show_overview, overview);
    Section::ALL.into_iter().fold(overview, |routes, section| {
        let show = async move |State(app): State<App>, visit: Visit| show(&app, Some(section)).answer(&visit);
        let id = match section {
            Section::Changing => "docs_projects_page",
            Section::Signing => "docs_signing_page",
            Section::Reading => "docs_reading_page",
            Section::Watching => "docs_service_page",
            Section::Pages => "docs_pages_page",
        };
        let described = lasting_page(id, "A part of this reference").about("The endpoints of one group.");
        routes.get(&address(section), show, described)
    })
}

fn show(app: &App, section: Option<Section>) -> Page {
    let texts = TEXTS.get_or_init(|| {
        let rows = &app.reference.rows;
        let sections = Section::ALL.map(|section| describe_section(rows, section));
        [overview(rows)].into_iter().chain(sections).map(Markup::into_string).collect()
    });
    let (at, title) = match section {
        None => (0, "API".to_owned()),
        Some(section) => (section as usize + 1, format!("{} · API", section.title())),
    };
    Page::new(title, PreEscaped(texts.get(at).cloned().unwrap_or_default()))
}

fn address(section: Section) -> String {
    format!("{}/{}", links::DOCS, section.slug())
}

fn overview(rows: &[Row]) -> Markup {
    html! {
        h1 { "API" }
        (paragraphs(ABOUT))
        p {
            "The same for programs: " a href=(OPENAPI) { "openapi.json" } " (OpenAPI 3.1)."
        }
        nav.contents aria-label="Endpoints" {
            @for section in Section::ALL {
                h2 { a href=(address(section)) { (section.title()) } }
                p.meta { (section.about()) }
                ul { @for row in rows_of(rows, section) { li { (contents_entry(row, &address(section))) } } }
            }
        }
        (authentication())
    }
}

fn describe_section(rows: &[Row], section: Section) -> Markup {
    html! {
        nav.crumbs aria-label="Where this is" { ol { li { a href=(links::DOCS) { "API" } } } }
        h1 { (section.title()) }
        p.lede { (section.about()) }
        nav.tabs aria-label="Sections" {
            @for other in Section::ALL {
                a href=(address(other)) aria-current=[(other == section).then_some("page")] { (other.title()) }
            }
        }
        nav.contents aria-label="Endpoints" {
            ul { @for row in rows_of(rows, section) { li { (contents_entry(row, "")) } } }
        }
        div.endpoints { @for row in rows_of(rows, section) { (endpoint(row)) } }
    }
}

fn rows_of(rows: &[Row], section: Section) -> impl Iterator<Item = &Row> {
    rows.iter().filter(move |row| row.endpoint.section == section)
}

fn contents_entry(row: &Row, page: &str) -> Markup {
    html! {
        a href={ (page) "#" (row.endpoint.id) } { code { (row.method) " " (row.path) } }
        " " (row.endpoint.summary)
    }
}

fn authentication() -> Markup {
    let rows = html! {
        @for header in &AuthHeader::ALL {
            tr {
                th scope="row" { code { (header.name) } }
                td { (text(header.about)) }
                td { code { (header.example()) } }
            }
        }
    };
    html! {
        section.endpoints {
            h2 #authentication { "Authentication" }
            (paragraphs(AUTHENTICATION))
            (table("Authentication headers", &["header", "value", "example"], &rows))
            p { "The examples belong to a request without a body." }
        }
    }
}

fn endpoint(row: &Row) -> Markup {
    let Endpoint { id, summary, about, access, parameters, body, answers, section: _, counted_as: _ } =
        &row.endpoint;
    html! {
        article.endpoint aria-labelledby=(id) {
            h2 #(id) {
                a.anchor href={ "#" (id) } { code { span.method { (row.method) } " " (row.path) } }
            }
            p.summary { (summary) }
            (paragraphs(about))
            p.access { (describe_access(*access)) }
            @if !parameters.is_empty() { h3 { "Parameters" } (parameter_table(parameters)) }
            @if let Some(body) = body { h3 { "Body" } (describe_content(body)) }
            h3 { "Answers" }
            (answer_table(answers))
            @for answer in answers.iter().filter(|answer| answer.status < 300) {
                @for content in &answer.contents { h3 { (answer.status) } (describe_content(content)) }
            }
            h3 { "With curl" }
            div.command { pre tabindex="0" data-copies="the command" { code { (curl_command(row)) } } }
        }
    }
}

fn describe_access(access: EndpointAccess) -> Markup {
    let here = html! { a href={ (links::DOCS) "#authentication" } { "authentication headers" } };
    match access {
        EndpointAccess::Open => html! { "Public." },
        EndpointAccess::Optional => html! { "The " (here) " are optional." },
        EndpointAccess::Signed => html! { "Needs the " (here) "." },
    }
}

fn parameter_table(parameters: &[Parameter]) -> Markup {
    let rows = html! {
        @for parameter in parameters {
            tr {
                th scope="row" { code { (parameter.name) } }
                td { (parameter.part.name()) @if !parameter.is_required { ", optional" } }
                td { (text(parameter.about)) }
                td { code { (plain(&parameter.example)) } }
            }
        }
    };
    table("Parameters", &["name", "in", "what", "example"], &rows)
}

/// Scrolls by itself if it is too wide.
fn table(label: &str, columns: &[&str], rows: &Markup) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { (rows) }
            }
        }
    }
}

fn describe_content(content: &Content) -> Markup {
    html! {
        @if let ContentSchema::Type(of) = content.schema { (field_table(of)) }
        @for (name, value) in &content.examples {
            details {
                summary { "Example: " (name.replace('_', " ")) }
                div.command { pre tabindex="0" data-copies="the example" { code { (format!("{value:#}")) } } }
            }
        }
    }
}

fn field_table(of: Type) -> Markup {
    let rows = html! {
        @for field in of.fields() {
            tr {
                th scope="row" { code { (field.name) } }
                td { (field.kind) @if !field.is_required { ", optional" } }
                td { (text(&field.about)) }
            }
        }
    };
    table(&format!("Fields of {}", of.name()), &["field", "type", "what"], &rows)
}

fn answer_table(answers: &[DescribedAnswer]) -> Markup {
    let rows = html! {
        @for answer in answers {
            tr {
                th scope="row" { (answer.status) }
                td {
                    (text(&answer.about))
                    @if answer.status >= 400 {
                        @for (_, value) in answer.contents.iter().flat_map(|content| &content.examples) { br; code.example { (value) } }
                    }
                }
                td.name { @for content in &answer.contents { code { (content.media_type) } " " } }
                td {
                    @for (i, header) in answer.headers.iter().enumerate() {
                        @if i > 0 { ", " }
                        code title=(header.about) { (header.name) }
                    }
                }
            }
        }
    };
    table("Answers", &["status", "when", "type", "headers"], &rows)
}

/// The command to type. The client makes new authentication headers for each request.
fn curl_command(row: &Row) -> String {
    let path = row.endpoint.parameters.iter().find(|parameter| parameter.part == RequestPart::Path);
    let path = path.map_or_else(
        || row.path.clone(),
        |parameter| row.path.replace(&format!("{{{}}}", parameter.name), &plain(&parameter.example)),
    );
    let mut lines = vec![format!("curl '{SERVER}{path}'")];
    if row.endpoint.access == EndpointAccess::Signed {
        lines.extend(AuthHeader::ALL.iter().map(|header| format!("  -H '{}: …'", header.name)));
    }
    if let Some(body) = &row.endpoint.body {
        let quoted = |value: &Value| value.to_string().replace('\'', r"'\''");
        lines.extend(body.examples.first().map(|(_, value)| format!("  --data-raw '{}'", quoted(value))));
    }
    lines.join(" \\\n")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn paragraphs(about: &str) -> Markup {
    html! { @for paragraph in about.split("\n\n") { p { (text(paragraph)) } } }
}

/// Shows text, in which backticks mean code.
fn text(line: &str) -> Markup {
    html! {
        @for (i, part) in line.split('`').enumerate() {
            @if i % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
