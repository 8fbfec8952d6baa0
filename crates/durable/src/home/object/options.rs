//! Where a bucket is, and how to get in.

use std::fmt;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};

use super::super::{HomeError, HomeErrorKind, HomeResult, Name};

/// The longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Attempts after the first one, of requests that may be repeated.
const RETRIES: usize = 5;
const RETRY_PAUSE_FIRST: Duration = Duration::from_millis(50);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(2);
/// No attempt begins after this time.
const RETRY_TIME: Duration = Duration::from_secs(60);

/// A place in a bucket of an S3-compatible store. What is absent comes from the environment, by the names of AWS
/// (`AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, …), or from the
/// machine's role there.
#[derive(Clone)]
pub struct ObjectOptions {
    /// The bucket, which exists.
    pub bucket: String,
    /// The directory of the home in the bucket; `None` for the bucket itself.
    pub prefix: Option<Name>,
    /// The URL of the store. It may begin with `http://`. Absent here and in the environment: AWS.
    pub endpoint: Option<String>,
    /// The region. Absent here and in the environment: `us-east-1`.
    pub region: Option<String>,
    /// The access key and the secret key.
    pub keys: Option<(String, String)>,
    /// The longest wait for the first byte of an answer, and for each further one.
    pub answer_timeout: Duration,
}

/// Shows no secret.
impl fmt::Debug for ObjectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectOptions")
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .field("access_key", &self.keys.as_ref().map(|(access, _)| access))
            .field("answer_timeout", &self.answer_timeout)
            .finish_non_exhaustive()
    }
}

impl ObjectOptions {
    /// The home in a bucket, with everything else from the environment.
    pub fn new(bucket: impl Into<String>) -> Self {
        ObjectOptions {
            bucket: bucket.into(),
            prefix: None,
            endpoint: None,
            region: None,
            keys: None,
            answer_timeout: Duration::from_secs(30),
        }
    }

    /// The home that a URL names: `s3://BUCKET` or `s3://BUCKET/DIRECTORY`.
    pub fn of_url(url: &str) -> HomeResult<Self> {
        let wrong = || {
            let message = format!("{url:?} names no place in a bucket; write `s3://BUCKET` or `s3://BUCKET/DIRECTORY`");
            HomeError::new(HomeErrorKind::Invalid, message)
        };
        let place = url.strip_prefix("s3://").ok_or_else(wrong)?;
        let (bucket, directory) = place.split_once('/').unwrap_or((place, ""));
        if bucket.is_empty() {
            return Err(wrong());
        }
        let directory = directory.strip_suffix('/').unwrap_or(directory);
        let prefix = if directory.is_empty() { None } else { Some(Name::new(directory)?) };
        Ok(ObjectOptions { prefix, ..ObjectOptions::new(bucket) })
    }

    /// A client that retries, or one that sends each request once.
    pub(super) fn client(&self, retries: bool) -> HomeResult<AmazonS3> {
        let retry = RetryConfig {
            max_retries: if retries { RETRIES } else { 0 },
            retry_timeout: RETRY_TIME,
            backoff: BackoffConfig { init_backoff: RETRY_PAUSE_FIRST, max_backoff: RETRY_PAUSE_MAX, base: 2.0 },
        };
        self.builder().with_retry(retry).build().map_err(|error| {
            let message = format!(
                "the options of bucket {} are wrong: {error}; check the endpoint, the region and the keys",
                self.bucket
            );
            HomeError::new(HomeErrorKind::Invalid, message)
        })
    }

    /// The URL of the store, for messages.
    pub(super) fn endpoint_shown(&self) -> String {
        self.builder().get_config_value(&AmazonS3ConfigKey::Endpoint).unwrap_or_else(|| "AWS".to_owned())
    }

    fn builder(&self) -> AmazonS3Builder {
        // No limit on the time of a whole request: a large object over a slow line takes long.
        let client = ClientOptions::new()
            .with_timeout_disabled()
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_read_timeout(self.answer_timeout);
        let mut builder = AmazonS3Builder::new().with_client_options(client);
        for (key, value) in std::env::vars_os() {
            let (Some(key), Some(value)) = (key.to_str(), value.to_str()) else {
                continue;
            };
            // Other variables of that kind are for other programs.
            if key.starts_with("AWS_")
                && let Ok(key) = key.to_ascii_lowercase().parse()
            {
                builder = builder.with_config(key, value);
            }
        }
        builder = builder.with_bucket_name(&self.bucket);
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        if let Some(region) = &self.region {
            builder = builder.with_region(region);
        }
        if let Some((access, secret)) = &self.keys {
            builder = builder.with_access_key_id(access).with_secret_access_key(secret);
        }
        let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
        match endpoint {
            // Who writes `http://` does without encryption.
            Some(endpoint) if endpoint.starts_with("http://") => builder.with_allow_http(true),
            _ => builder,
        }
    }
}
