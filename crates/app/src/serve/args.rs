//! The command line of the server, and what it may not be asked.

use crate::failure::Failure;
use crate::search::EngineArgs;
use anyhow::Result;
use clap::Args;
use std::net::SocketAddr;

/// Where a token can be given without standing in the list of processes.
const TOKEN_VARIABLE: &str = "TBPS_TOKEN";
/// Shorter tokens could be guessed.
const MIN_TOKEN: usize = 16;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) addr: SocketAddr,
    /// Lets other machines in, if the address does; needs a token.
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// What a client must know, at least 16 letters and digits; default: TBPS_TOKEN.
    #[arg(long)]
    pub(crate) token: Option<String>,
}

impl ServeArgs {
    /// The token that clients need, if they need one.
    ///
    /// # Errors
    /// A usage failure for an address that others can reach without `--allow-remote` and a token,
    /// and for a weak token.
    pub(crate) fn token(&self) -> Result<Option<String>> {
        let token = self.token.clone().or_else(|| std::env::var(TOKEN_VARIABLE).ok());
        require_safe(self.addr, self.allow_remote, token.as_deref())?;
        Ok(token)
    }
}

fn require_safe(addr: SocketAddr, allow_remote: bool, token: Option<&str>) -> Result<()> {
    let remote = !addr.ip().is_loopback();
    if remote && !allow_remote {
        return Err(Failure::usage(format!(
            "{addr} can be reached from other machines: add --allow-remote and --token, or listen \
             on 127.0.0.1"
        )));
    }
    if remote && token.is_none() {
        return Err(Failure::usage(format!(
            "--allow-remote needs a token: add --token, or set {TOKEN_VARIABLE}"
        )));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match token {
        Some(token) if token.len() < MIN_TOKEN || !token.chars().all(plain) => {
            Err(Failure::usage(format!("a token has at least {MIN_TOKEN} letters, digits, - or _")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_need_both_consent_and_a_token() {
        let check = |addr: &str, allow, token, expected: Option<&str>| {
            let found = require_safe(addr.parse().unwrap(), allow, token);
            match expected {
                None => assert!(found.is_ok(), "{addr} {allow} {token:?}"),
                Some(told) => {
                    let error = found.unwrap_err();
                    assert_eq!(Failure::exit_status(&error), 2);
                    assert!(error.to_string().contains(told), "{error}");
                }
            }
        };
        let token = Some("0123456789abcdef");
        check("127.0.0.1:80", false, None, None);
        check("[::1]:80", false, None, None);
        check("127.0.0.1:80", false, token, None);
        check("0.0.0.0:80", false, token, Some("--allow-remote"));
        check("[::]:80", true, None, Some("needs a token"));
        check("192.168.1.2:80", true, token, None);
        check("192.168.1.2:80", true, Some("short"), Some("at least 16"));
        check("127.0.0.1:80", false, Some("0123456789abcdef;"), Some("letters, digits"));
    }
}
