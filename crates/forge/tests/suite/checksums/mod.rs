mod files;
mod sources;
