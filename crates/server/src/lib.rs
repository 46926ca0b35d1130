//! Countersign's server: HTTP, its limits, pages, events and webhooks, on top of the store.

pub mod api {
    //! The routes of the API, each with its description and its handler, and the state that handlers share.

    pub mod auth;
    mod caps;
    pub mod openapi;

    pub mod routes {
        //! One file per subject: each route with its description and its handler. A handler parses, calls, answers; it
        //! decides nothing.

        pub mod assets;
        pub mod catalogue;
        pub mod files;
        pub(crate) mod history;
        pub mod log;
        pub(crate) mod metrics;
        pub mod propose;
        pub mod service;
        pub mod signatures;
        pub mod state;
        pub mod statements;
        pub mod streams;
    }

    pub mod routing;
    pub mod state;
}

pub mod events;

pub mod follow {
    //! Following other servers, and the one loop for work that goes on beside requests.

    pub mod background;
    pub mod mirror;
    pub mod network;
    pub(crate) mod outgoing;
    pub mod witness;
}

pub mod http {
    //! What every request has: what it says beside its body, its errors, what is fetched for it, and how large answers
    //! are sent. `api::auth` bounds its body.

    pub mod blocks;
    pub(crate) mod body;
    pub mod error;
    pub mod request;
    pub mod sending;
    pub mod upstream;
}

pub mod limits;
pub mod metrics;

pub mod nodes {
    //! This server among others: its role, its node in a cluster, and the witnesses that it asks.

    pub mod asking;
    pub mod log_summary;
    pub mod node;
}

pub mod operate {
    //! What the operator sets and sees: the configuration, log lines, TLS and the disk.

    pub mod config;
    pub mod disk_space;
    pub mod observe;
    pub mod tls;
}

pub mod serve {
    //! Start and end of the server: the one place that knows all its parts, and the way of a request to its handler.

    pub mod admin;
    pub mod answer;
    pub mod due;
    pub mod listen;
    pub mod start;
    pub mod table;
}

pub mod web;
