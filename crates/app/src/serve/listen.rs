//! Connections: accepted up to a number, given up when they are slow, ended in order.

use anyhow::{Context, Result};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at once; more are told to come back.
const MAX_CONNECTIONS: usize = 1_024;
/// How long a client may take to send its request's head, and stay idle.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const MAX_HEAD: usize = 64 << 10;
/// How long a connection may last: a client that reads slowly is given up.
const CONNECTION_TIME: Duration = Duration::from_secs(600);
/// How long requests may go on once the server is to stop.
const GRACE: Duration = Duration::from_secs(10);
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n\
                      connection: close\r\n\r\n";

/// Listens on an address.
///
/// # Errors
/// When it is taken or not this machine's.
pub(super) async fn bind(addr: SocketAddr) -> Result<TcpListener> {
    let advice = || format!("cannot listen on {addr}: choose another --addr");
    TcpListener::bind(addr).await.with_context(advice)
}

/// Answers until the process is told to stop, and then what has begun.
pub(super) async fn serve(listener: TcpListener, router: Router) -> Result<()> {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(MAX_HEAD);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(told_to_stop());
    loop {
        let stream = tokio::select! {
            stopped = &mut stop => {
                stopped?;
                break;
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    // Out of file handles, most likely: others will be closed.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            // A new connection takes so few bytes at once, or it is gone.
            drop(stream.try_write(FULL));
            continue;
        };
        drop(stream.set_nodelay(true)); // without it answers are slower, and nothing else
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // A client that breaks off is no matter of the server's.
            drop(tokio::time::timeout(CONNECTION_TIME, connection).await);
            drop(place);
        });
    }
    drop(listener);
    drop(tokio::time::timeout(GRACE, graceful.shutdown()).await);
    Ok(())
}

/// Waits for SIGINT or SIGTERM.
async fn told_to_stop() -> Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => (),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    Ok(())
}
