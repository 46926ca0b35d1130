mod bounds;
mod keys;
mod paths;
mod shown;
mod stored_names;
pub(crate) mod strictness;
mod times;
mod urls;
