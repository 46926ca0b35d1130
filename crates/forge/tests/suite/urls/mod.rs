mod downloads;
mod file_servers;
mod given;
mod origins;
