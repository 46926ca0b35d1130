mod commits;
mod filter;
mod pack;
mod spot;
mod stored;
