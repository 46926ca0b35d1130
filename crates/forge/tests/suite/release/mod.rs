mod assets;
mod documents;
