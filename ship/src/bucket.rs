//! A bucket of an object store. Credentials are those of the environment or of
//! the instance. Async stays in here: a runtime of one thread makes one request at
//! a time, and looks meanwhile whether the program is told to end.

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
use tacho_tape::write::recording::random;
use tokio::runtime::{Builder, Runtime};

/// How often a request is made, and how long the first pause lasts; the next ones
/// twice as long.
const ATTEMPTS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(250);
/// Bytes for which a request has a second more.
const A_SECOND: usize = 64 << 10;
/// What is put to see whether it is put once: no table has this name.
const PROBE: &str = ".tacho-ship/probe";
/// Our own limit counts, which a request of many bytes may be longer than.
const NO_TIMEOUT: &str = "1 day";

/// What addresses of stores begin with.
const S3: &str = "s3";
const GOOGLE: &str = "gs";
const AZURE: &str = "az";

/// Where objects of one prefix are in a bucket.
pub struct Bucket {
    address: String,
    prefix: String,
    store: Box<dyn ObjectStore>,
    /// For good: the end of the program waits for no name that is looked up.
    runtime: &'static Runtime,
    limits: Limits,
    /// It has shown that it puts an object only where there is none.
    is_proved: Cell<bool>,
}

/// Why a request has no answer.
enum Refused {
    Store(Error),
    /// It took too long.
    Late(String),
    /// The program is told to end.
    Told(String),
}

impl Refused {
    /// May the next attempt do better?
    fn may_pass(&self) -> bool {
        use Error::{
            InvalidPath, NotFound, NotImplemented, NotSupported, PermissionDenied, Unauthenticated,
            UnknownConfigurationKey,
        };
        match self {
            Refused::Late(_) => true,
            Refused::Told(_) => false,
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

    /// In one line, with its causes: stores answer with XML.
    fn text(&self) -> String {
        let text = match self {
            Refused::Store(error) => with_causes(error),
            Refused::Late(why) | Refused::Told(why) => format!("request was ended: {why}"),
        };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// An error with those of its causes that it does not tell itself.
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
    /// Is this the address of a bucket?
    pub fn is_address(address: &str) -> bool {
        let scheme = address.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| [S3, GOOGLE, AZURE].contains(&scheme))
    }

    /// The bucket at an address. It is not reached yet: who stays waits for it.
    ///
    /// # Errors
    /// The address makes no sense, or the environment does not.
    pub fn open(address: &str, limits: Limits) -> Result<Bucket> {
        let (scheme, rest) = address.split_once("://").unwrap_or((S3, address));
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains(':') || (bucket.contains('@') && scheme != AZURE) {
            return Err(
                "credentials are not part of an address\nHINT:  They come from the environment, or from the instance."
                    .into(),
            );
        }
        // It is there already when a test has opened another bucket.
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
            is_proved: Cell::new(false),
        })
    }

    /// Sees to it before anything else that the store puts an object once: of two
    /// puts of one name the second must be refused. The object stays, so that whoever
    /// comes later needs one put.
    fn prove(&self) -> Result<()> {
        for _ in 0..2 {
            if self.is_proved.get() || !self.put_any(PROBE, b"put once\n".to_vec())? {
                self.is_proved.set(true);
                return Ok(());
            }
        }
        Err(format!(
            "object store \"{}\" puts an object where there is one\nDETAIL:  It was told to put \"{PROBE}\" only if there is none (If-None-Match: *), and has put it twice.\nHINT:  Of two programs that ship one history one could write over what the other one has put. Name a store with conditional writes.",
            self.address
        ))
    }

    fn path(&self, name: &str) -> Result<Path> {
        let path = Path::parse(format!("{}/{name}", self.prefix));
        path.map_err(|e| format!("name \"{name}\" is no name of an object: {e}"))
    }

    /// Makes a request until it is answered, some times with longer and longer
    /// pauses.
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
                Err(refused) if refused.may_pass() && attempt < ATTEMPTS => refused,
                done => return done,
            };
            if !self.pause(attempt) {
                return Err(refused);
            }
            attempt += 1;
        }
    }

    /// A request that is ended when it takes too long or the program is to end.
    async fn watched<T>(
        &self,
        bytes: usize,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> std::result::Result<T, Refused> {
        let more = Duration::from_secs((bytes / A_SECOND) as u64);
        let limits = Limits {
            most: self.limits.most.map(|most| most + more),
            ..self.limits.clone()
        };
        let begin = Instant::now();
        let mut request = std::pin::pin!(request);
        loop {
            match limits.over(begin) {
                Some(why) if limits.is_told() => return Err(Refused::Told(why)),
                Some(why) => return Err(Refused::Late(why)),
                None => (),
            }
            if let Ok(done) = tokio::time::timeout(TURN, &mut request).await {
                return done.map_err(Refused::Store);
            }
        }
    }

    /// Waits before the next attempt; false when the program is told to end.
    /// Programs that fail together do not come back together.
    fn pause(&self, attempt: u32) -> bool {
        let longest = PAUSE * 2_u32.pow(attempt - 1);
        let percent = (random() % 50 + 50) as u32;
        self.limits.wait(longest * percent / 100).is_ok()
    }

    /// The last parts of the names of the objects in a directory.
    async fn names(&self, directory: &Path) -> object_store::Result<Vec<String>> {
        let listed = self.store.list_with_delimiter(Some(directory)).await?;
        let names = listed.objects.iter().filter_map(|o| o.location.filename());
        Ok(names.map(str::to_string).collect())
    }

    /// Puts an object; says whether it did. A store may also refuse because another
    /// one puts it at this moment, who may fail yet.
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

    /// Puts an object, whatever the store may do. A request whose answer is lost is
    /// made again, and finds the object then.
    fn put_any(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
        let (path, directory) = (self.path(name)?, self.path(directory)?);
        let (size, payload) = (bytes.len(), PutPayload::from(bytes));
        let put = self.request(size, || self.put(&path, &directory, payload.clone()));
        put.map_err(|why| format!("could not put object \"{name}\": {}", why.text()))
    }
}

/// The client of a store, without credentials yet.
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
        // Without TLS only where the environment names such an endpoint.
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
        self.prove()?;
        self.put_any(name, bytes)
    }

    fn list(&self, directory: &str, each: &mut dyn FnMut(&str)) -> Result<()> {
        self.prove()?;
        let path = self.path(directory)?;
        let listed = self.request(0, || self.names(&path));
        let names = listed
            .map_err(|why| format!("could not list objects \"{directory}\": {}", why.text()))?;
        names.iter().for_each(|name| each(name));
        Ok(())
    }
}
