mod copied;
mod feed;
mod following;
mod recent_commits;
mod sharing;
mod times;
mod transactions;
