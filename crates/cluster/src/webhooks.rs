//! Keeps how far webhooks came. One node at a time delivers the events of a webhook (D73).

use std::time::Duration;

use countersign_store::ObjectId;
use tokio_postgres::types::Type;

use crate::database::{Database, DatabaseSession, parse_id, within};
use crate::error::DatabaseError;

const LIMIT: Duration = Duration::from_secs(5);
/// A node that holds a claim and does nothing for so long loses it. It may deliver once more what another node
/// delivers.
pub const CLAIM_LIMIT: Duration = Duration::from_secs(120);

/// The progress of one webhook, over a connection of its own.
#[derive(Debug)]
pub struct WebhookProgress {
    database: Database,
    name: String,
    session: Option<DatabaseSession>,
}

/// The right to deliver. When this is dropped, or its connection is lost, another node can have it.
#[derive(Debug)]
pub struct WebhookClaim<'a> {
    /// Events up to this commit have arrived; `None` if there were none yet.
    pub commit: Option<ObjectId>,
    session: DatabaseSession,
    progress: &'a mut WebhookProgress,
}

impl WebhookProgress {
    pub fn new(database: Database, name: &str) -> Self {
        Self { database, name: name.to_owned(), session: None }
    }

    /// Claims the webhook; `None` while another node has it. A claim is a transaction: deliver a little, and note it.
    pub async fn claim(&mut self) -> Result<Option<WebhookClaim<'_>>, DatabaseError> {
        let session = match self.session.take().filter(|session| !session.is_closed()) {
            Some(session) => session,
            None => self.database.connect("webhook", CLAIM_LIMIT).await?,
        };
        match within(LIMIT, claim(&session, &self.name)).await? {
            Some(commit) => Ok(Some(WebhookClaim { commit, session, progress: self })),
            None => {
                self.session = Some(session);
                Ok(None)
            }
        }
    }
}

impl WebhookClaim<'_> {
    /// Events up to `commit` have arrived. Ends the claim. After an error they may be delivered once more.
    pub async fn finish(self, commit: ObjectId) -> Result<(), DatabaseError> {
        let Self { session, progress, .. } = self;
        let update = "update svc_webhook set commit = $2 where name = $1";
        let work = async {
            let name = &progress.name;
            session
                .client
                .query_typed(update, &[(name, Type::TEXT), (&commit.as_slice(), Type::BYTEA)])
                .await?;
            session.client.batch_execute("commit").await?;
            Ok(())
        };
        within(LIMIT, session.certain(work)).await?;
        progress.session = Some(session);
        Ok(())
    }

    /// Ends the claim without progress.
    pub async fn release(self) -> Result<(), DatabaseError> {
        within(LIMIT, async { Ok(self.session.client.batch_execute("rollback").await?) }).await?;
        self.progress.session = Some(self.session);
        Ok(())
    }
}

/// Claims the webhook in this session; `None` if another node has it.
async fn claim(session: &DatabaseSession, name: &String) -> Result<Option<Option<ObjectId>>, DatabaseError> {
    let row = "select commit from svc_webhook where name = $1";
    let lock = format!("{row} for update skip locked");
    if session.query(row, &[(name, Type::TEXT)]).await?.is_empty() {
        let insert = "insert into svc_webhook (name) values ($1) on conflict do nothing";
        session.query(insert, &[(name, Type::TEXT)]).await?;
    }
    session.client.batch_execute("begin").await?;
    let rows = session.query(&lock, &[(name, Type::TEXT)]).await?;
    let Some(row) = rows.first() else {
        session.client.batch_execute("rollback").await?;
        return Ok(None);
    };
    row.try_get::<_, Option<&[u8]>>(0)?.map(parse_id).transpose().map(Some)
}
