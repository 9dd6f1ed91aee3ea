//! A bucket of an object store. Credentials come from the environment or the
//! instance. Only this module is async: a runtime with one thread makes one request
//! at a time, and checks meanwhile whether the program has to end.

use crate::limits::{Limits, TURN};
use crate::place::{Place, Result};
use object_store::ClientConfigKey::Timeout;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::{Error, ObjectStore, PutMode, PutPayload, RetryConfig};
use std::cell::Cell;
use std::time::{Duration, Instant};
use tacho_tape::write::clock::random;
use tokio::runtime::{Builder, Runtime};

/// Maximum number of attempts for a request, and the pause after the first one. Each later pause is
/// twice as long.
const ATTEMPTS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(250);
/// Each 64 KiB of a request adds one second to its time limit.
const BYTES_PER_SECOND: usize = 64 << 10;
/// Object that proves that the store puts a name only once. No table has this name.
const PROBE: &str = ".tacho-ship/probe";
/// Disables the timeout of `object_store`. Our own limit is longer for large
/// requests.
const NO_TIMEOUT: &str = "1 day";

/// Schemes of the addresses of stores.
const S3: &str = "s3";
const GOOGLE: &str = "gs";
const AZURE: &str = "az";

/// The objects below one prefix of a bucket.
pub struct Bucket {
    address: String,
    prefix: String,
    store: Box<dyn ObjectStore>,
    /// The runtime is leaked: dropping it at the end of the program would wait for a
    /// running lookup of a host name.
    runtime: &'static Runtime,
    limits: Limits,
    /// True if the store has proved that it does not overwrite objects.
    is_conditional_put_checked: Cell<bool>,
}

/// Reason why a request has no answer.
enum Refused {
    Store(Error),
    /// The request took too long.
    Late(String),
    /// The program has to end (`Limits::stop`).
    Stopped(String),
}

impl Refused {
    /// True if another attempt may succeed.
    fn is_retryable(&self) -> bool {
        use Error::{
            InvalidPath, NotFound, NotImplemented, NotSupported, PermissionDenied, Unauthenticated,
            UnknownConfigurationKey,
        };
        match self {
            Refused::Late(_) => true,
            Refused::Stopped(_) => false,
            Refused::Store(error) => !matches!(
                error,
                NotFound { .. }
                    | PermissionDenied { .. }
                    | Unauthenticated { .. }
                    | NotSupported { .. }
                    | NotImplemented { .. }
                    | InvalidPath { .. }
                    | UnknownConfigurationKey { .. }
            ),
        }
    }

    /// The reason and its causes on one line: stores answer with XML.
    fn text(&self) -> String {
        let text = match self {
            Refused::Store(error) => with_causes(error),
            Refused::Late(why) | Refused::Stopped(why) => format!("request was canceled: {why}"),
        };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The error's text, with the texts of those causes that it does not contain.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = cause.source();
    }
    text
}

impl Bucket {
    /// True if this is the address of a bucket.
    pub fn is_address(address: &str) -> bool {
        let scheme = address.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| [S3, GOOGLE, AZURE].contains(&scheme))
    }

    /// Opens the bucket at an address, without a request: with `--every` the program
    /// waits for a store that cannot be reached.
    ///
    /// # Errors
    /// The address is invalid, or an environment variable is.
    pub fn open(address: &str, limits: Limits) -> Result<Bucket> {
        let (scheme, rest) = address.split_once("://").unwrap_or((S3, address));
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains(':') || (bucket.contains('@') && scheme != AZURE) {
            return Err(
                "address must not contain credentials\nHINT:  Credentials are taken from the environment or from the instance."
                    .into(),
            );
        }
        // An error means that a test has installed the provider for another bucket already, which
        // is right, too.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failed = |e: String| format!("could not open object store \"{address}\": {e}");
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| failed(e.to_string()))?;
        Ok(Bucket {
            address: address.to_string(),
            prefix: prefix.trim_matches('/').to_string(),
            store: store(scheme, address).map_err(|e| failed(e.to_string()))?,
            runtime: Box::leak(Box::new(runtime)),
            limits,
            is_conditional_put_checked: Cell::new(false),
        })
    }

    /// Before the first object, checks that the store refuses a second put of the same
    /// name. The object `PROBE` stays, so that the next program needs only one put.
    fn check_conditional_put(&self) -> Result<()> {
        for _ in 0..2 {
            if self.is_conditional_put_checked.get()
                || !self.put_any(PROBE, b"put once\n".to_vec())?
            {
                self.is_conditional_put_checked.set(true);
                return Ok(());
            }
        }
        Err(format!(
            "object store \"{}\" overwrites existing objects\nDETAIL:  It put \"{PROBE}\" twice, although the second put had the condition If-None-Match: *.\nHINT:  Use a store with conditional writes: otherwise two programs that ship the same history could overwrite each other's objects.",
            self.address
        ))
    }

    fn path(&self, name: &str) -> Result<Path> {
        let path = Path::parse(format!("{}/{name}", self.prefix));
        path.map_err(|e| format!("invalid object name \"{name}\": {e}"))
    }

    /// Makes a request, and again after growing pauses until it is answered or
    /// `ATTEMPTS` have failed.
    fn request<T, R>(
        &self,
        bytes: usize,
        mut make: impl FnMut() -> R,
    ) -> std::result::Result<T, Refused>
    where
        R: Future<Output = object_store::Result<T>>,
    {
        let mut attempt = 1;
        loop {
            let refused = match self.runtime.block_on(self.watched(bytes, make())) {
                Err(refused) if refused.is_retryable() && attempt < ATTEMPTS => refused,
                done => return done,
            };
            if !self.pause(attempt) {
                return Err(refused);
            }
            attempt += 1;
        }
    }

    /// Aborts a request that takes too long, and all requests when the program has to
    /// end.
    async fn watched<T>(
        &self,
        bytes: usize,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> std::result::Result<T, Refused> {
        let more = Duration::from_secs((bytes / BYTES_PER_SECOND) as u64);
        let limits = Limits {
            timeout: self.limits.timeout.map(|timeout| timeout + more),
            ..self.limits.clone()
        };
        let begin = Instant::now();
        let mut request = std::pin::pin!(request);
        loop {
            match limits.expired(begin) {
                Some(why) if limits.must_stop() => return Err(Refused::Stopped(why)),
                Some(why) => return Err(Refused::Late(why)),
                None => (),
            }
            if let Ok(done) = tokio::time::timeout(TURN, &mut request).await {
                return done.map_err(Refused::Store);
            }
        }
    }

    /// Waits before the next attempt; false if the program has to end. The random
    /// share keeps programs that failed together from coming back together.
    fn pause(&self, attempt: u32) -> bool {
        let longest = PAUSE * 2_u32.pow(attempt - 1);
        let percent = (random() % 50 + 50) as u32;
        self.limits.wait(longest * percent / 100).is_ok()
    }

    /// Names of the objects in a directory, without the directory.
    async fn names(&self, directory: &Path) -> object_store::Result<Vec<String>> {
        let listed = self.store.list_with_delimiter(Some(directory)).await?;
        let names = listed.objects.iter().filter_map(|o| o.location.filename());
        Ok(names.map(str::to_string).collect())
    }

    /// Puts an object, unless there is one. A store may also refuse because another
    /// program puts the object at this moment. That put may still fail, so the
    /// refusal counts only if the object is listed.
    async fn put(
        &self,
        path: &Path,
        directory: &Path,
        payload: PutPayload,
    ) -> object_store::Result<bool> {
        let options = PutMode::Create.into();
        match self.store.put_opts(path, payload, options).await {
            Ok(_) => Ok(true),
            Err(refused @ Error::AlreadyExists { .. }) => {
                let names = self.names(directory).await?;
                let is_there = names.iter().any(|name| path.filename() == Some(name));
                if is_there { Ok(false) } else { Err(refused) }
            }
            Err(error) => Err(error),
        }
    }

    /// Puts an object without checking the store first; false if the object is there. If the answer
    /// of a request is lost, the next attempt finds the object.
    fn put_any(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
        let (path, directory) = (self.path(name)?, self.path(directory)?);
        let (size, payload) = (bytes.len(), PutPayload::from(bytes));
        let put = self.request(size, || self.put(&path, &directory, payload.clone()));
        put.map_err(|why| format!("could not put object \"{name}\": {}", why.text()))
    }
}

/// The client of a store; it gets credentials later.
fn store(scheme: &str, address: &str) -> object_store::Result<Box<dyn ObjectStore>> {
    let once = RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    };
    Ok(match scheme {
        GOOGLE => Box::new(
            GoogleCloudStorageBuilder::from_env()
                .with_url(address)
                .with_retry(once)
                .with_config(GoogleConfigKey::Client(Timeout), NO_TIMEOUT)
                .build()?,
        ),
        AZURE => Box::new(
            MicrosoftAzureBuilder::from_env()
                .with_url(address)
                .with_retry(once)
                .with_config(AzureConfigKey::Client(Timeout), NO_TIMEOUT)
                .build()?,
        ),
        // `with_allow_http` permits a connection without TLS only if the environment
        // names such an endpoint.
        _ => Box::new(
            AmazonS3Builder::from_env()
                .with_url(address)
                .with_retry(once)
                .with_config(AmazonS3ConfigKey::Client(Timeout), NO_TIMEOUT)
                .with_allow_http(true)
                .build()?,
        ),
    })
}

impl Place for Bucket {
    fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        self.check_conditional_put()?;
        self.put_any(name, bytes)
    }

    fn list(&self, directory: &str, each: &mut dyn FnMut(&str)) -> Result<()> {
        self.check_conditional_put()?;
        let path = self.path(directory)?;
        let listed = self.request(0, || self.names(&path));
        let names = listed
            .map_err(|why| format!("could not list objects \"{directory}\": {}", why.text()))?;
        names.iter().for_each(|name| each(name));
        Ok(())
    }
}
