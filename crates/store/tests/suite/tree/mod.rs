mod dir;
mod edit;
