//! `countersign ping`

use countersign_api::answers::{PingAuth, PingResponse};
use countersign_core::values::shown::shown_text;
use serde_json::json;

use crate::{args::PingArgs, client::ServerCall, client::session::Session, words::error::CliError};

pub(crate) async fn run(session: &Session, args: &PingArgs) -> Result<(), CliError> {
    let client = session.client()?;
    if args.ready {
        client.check_ready().await?;
    }
    let answer = if session.has_key() {
        client.ask(&session.key(None, &[])?, ServerCall::Ping, PingResponse::parse).await?
    } else {
        client.ping().await?
    };
    let server = client.address();
    let (text, value) = match answer.auth {
        PingAuth::Unauthenticated => (
            format!(
                "{server} is there. (With --key it is also asked whether your key's signature is right.)"
            ),
            json!({"status": "unauthenticated"}),
        ),
        PingAuth::Success { public_key } => (
            format!("{server} is there, and accepts the signature of {public_key}."),
            json!({"status": "success", "public_key": public_key.to_string()}),
        ),
        PingAuth::Failed { reason, public_key: _ } => {
            return Err(CliError::other(
                format!("{server} is there, but refuses your key's signature: {}", shown_text(&reason)),
                "check this computer's clock, and run it again",
            ));
        }
    };
    session.output.result(&text, &json!({"server": server, "message": "pong", "auth": value}))
}
