//! The keys that sign requests to S3: those of the environment, or the short-lived ones that Amazon EKS (pod identity) and ECS give
//! a container at an address that the environment names. They expire, so each file is sent with new ones.

use crate::os::input_file;
use anyhow::{Context, anyhow, bail};
use serde::Deserialize;
use std::path::Path;
use ureq::Agent;

const ANSWER_BYTES_MAX: u64 = 64 << 10;
const TOKEN_BYTES_MAX: u64 = 64 << 10;
/// Where ECS answers paths of AWS_CONTAINER_CREDENTIALS_RELATIVE_URI.
const ECS: &str = "http://169.254.170.2";

/// Secrets: no message has one.
pub struct Credentials {
    pub id: String,
    pub secret: String,
    pub token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    access_key_id: String,
    secret_access_key: String,
    token: Option<String>,
}

/// A variable of the environment that is set and not empty.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Credentials {
    pub fn get(agent: &Agent) -> anyhow::Result<Credentials> {
        if let (Some(id), Some(secret)) = (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")) {
            return Ok(Credentials { id, secret, token: variable("AWS_SESSION_TOKEN") });
        }
        let relative =
            || variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").map(|path| format!("{ECS}{path}"));
        let url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI").or_else(relative).context(
            "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the pod an identity",
        )?;
        let failed = |error: ureq::Error| anyhow!("cannot get credentials: {error}");
        let mut asked = agent.get(&url);
        if let Some(token) = token()? {
            asked = asked.header("authorization", token);
        }
        let mut answer = asked.call().map_err(failed)?;
        if !answer.status().is_success() {
            bail!("cannot get credentials: the answer is {}", answer.status());
        }
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec().map_err(failed)?;
        let answer: Answer = serde_json::from_slice(&text)
            .map_err(|_| anyhow!("cannot get credentials: the answer has none"))?;
        Ok(Credentials { id: answer.access_key_id, secret: answer.secret_access_key, token: answer.token })
    }
}

/// What shows that we are the container.
fn token() -> anyhow::Result<Option<String>> {
    let Some(path) = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") else {
        return Ok(variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"));
    };
    let bytes = input_file::read(Path::new(&path), TOKEN_BYTES_MAX)
        .map_err(|error| anyhow!("cannot read AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: {error}"))?;
    Ok(Some(String::from_utf8_lossy(&bytes).trim().to_string()))
}
