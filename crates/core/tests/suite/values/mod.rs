mod bounds;
mod keys;
mod paths;
mod stored_names;
mod strictness;
mod times;
mod urls;
