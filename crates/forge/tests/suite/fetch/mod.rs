mod guarded;
mod redirects;
mod send;
mod user;
