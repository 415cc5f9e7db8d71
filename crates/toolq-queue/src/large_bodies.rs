//! Bodies that are too large for a message. They are in the object store of the queue, and messages name them there.

use std::path::Path;

use async_nats::HeaderMap;
use async_nats::jetstream::object_store::{Config, GetErrorKind, InfoErrorKind, ObjectStore};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::sleep;

use crate::publishing::{PublishRefusal, RETRY_INTERVAL};
use crate::turn_queue::{TurnQueue, is_not_found};
use toolq_engine::random_task_id;

/// Largest body of a message. A server takes 1 MiB unless it is configured otherwise, headers included.
pub(super) const MAX_BODY_BYTES: usize = 512 << 10;
/// The header of a message whose body is the name of an object.
const IS_OBJECT: &str = "Toolq-Object";
/// How often an object is read again that is incomplete. Another worker may have stored the same one at the same time.
const MAX_READS: usize = 5;

impl TurnQueue {
    /// Returns what to publish for `body`: itself, or the name of an object that has it. Tries again, whenever the server says
    /// nothing, until `gives_up`.
    pub(super) async fn pack(
        &self,
        kind: &str,
        body: Bytes,
        gives_up: impl FnMut() -> bool,
    ) -> Result<(HeaderMap, Bytes), PublishRefusal> {
        let mut headers = HeaderMap::new();
        if body.len() <= MAX_BODY_BYTES {
            return Ok((headers, body));
        }
        // The name is random, so no other process stores an object under it.
        let name = format!("{kind}/{}", random_task_id());
        self.store_object(&name, || async { Ok(&body[..]) }, gives_up)
            .await?;
        headers.insert(IS_OBJECT, "1");
        Ok((headers, name.into()))
    }

    /// Returns the body of a message.
    pub(super) async fn unpack(
        &self,
        headers: Option<&HeaderMap>,
        payload: Bytes,
    ) -> Result<Bytes, String> {
        let is_object = headers.is_some_and(|headers| headers.get(IS_OBJECT).is_some());
        if !is_object {
            return Ok(payload);
        }
        let name = str::from_utf8(&payload).map_err(|error| error.to_string())?;
        let body = self.read_object(name).await?;
        body.map(Bytes::from)
            .ok_or_else(|| format!("the object {name} is gone"))
    }

    /// Stores a file under its name, which is its digest. A file that is there already isn't stored again.
    pub(super) async fn store_file(
        &self,
        path: &Path,
        gives_up: impl FnMut() -> bool,
    ) -> Result<(), PublishRefusal> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let open = || async {
            let opened = tokio::fs::File::open(path).await;
            opened.map_err(|error| {
                PublishRefusal::Unreadable(path.display().to_string(), error.to_string())
            })
        };
        self.store_object(&file_object(&name), open, gives_up).await
    }

    /// Reads a stored file. Returns `None` if it was removed.
    pub(super) async fn read_file(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        self.read_object(&file_object(name)).await
    }

    async fn store_object<R, F>(
        &self,
        name: &str,
        open: impl Fn() -> F,
        mut gives_up: impl FnMut() -> bool,
    ) -> Result<(), PublishRefusal>
    where
        R: AsyncRead + Unpin,
        F: Future<Output = Result<R, PublishRefusal>>,
    {
        loop {
            let mut reader = open().await?;
            let why = match self.try_to_store(name, &mut reader).await {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            if gives_up() {
                return Err(PublishRefusal::Unconfirmed(why));
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    async fn try_to_store(
        &self,
        name: &str,
        reader: &mut (impl AsyncRead + Unpin),
    ) -> Result<(), String> {
        let objects = self.objects().await?;
        match objects.info(name).await {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == InfoErrorKind::NotFound => {}
            Err(error) => return Err(error.to_string()),
        }
        let stored = objects.put(name, reader).await;
        stored.map(drop).map_err(|error| error.to_string())
    }

    async fn read_object(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let mut reads = 0;
        loop {
            reads += 1;
            match self.try_to_read(name).await {
                Ok(Some(body)) => return Ok(Some(body)),
                _ if reads < MAX_READS => sleep(RETRY_INTERVAL).await,
                read => return read.map_err(|why| format!("the object {name}: {why}")),
            }
        }
    }

    async fn try_to_read(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let objects = self.objects().await?;
        let mut object = match objects.get(name).await {
            Ok(object) => object,
            Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let mut body = Vec::new();
        // The digest is compared at the end.
        let read = object.read_to_end(&mut body).await;
        read.map_err(|error| error.to_string())?;
        Ok(Some(body))
    }

    /// Opens the object store, or creates it: most queues never need one.
    async fn objects(&self) -> Result<ObjectStore, String> {
        let bucket = self.name.bucket();
        if let Ok(objects) = self.jetstream.get_object_store(&bucket).await {
            return Ok(objects);
        }
        let config = Config {
            bucket: bucket.clone(),
            description: Some("what is too large for the messages of a queue of toolq".to_owned()),
            num_replicas: self.stream.cached_info().config.num_replicas,
            ..Config::default()
        };
        match self.jetstream.create_object_store(config).await {
            Ok(objects) => Ok(objects),
            // Another process may have created it at the same time.
            Err(error) => {
                let objects = self.jetstream.get_object_store(&bucket).await;
                objects.map_err(|_| error.to_string())
            }
        }
    }

    /// Returns how many bytes the object store holds, if there is one.
    ///
    /// # Errors
    /// The server doesn't say.
    pub(super) async fn object_bytes(&self) -> Result<u64, String> {
        let stream = format!("OBJ_{}", self.name.bucket());
        match self.jetstream.get_stream(stream).await {
            Ok(stream) => Ok(stream.cached_info().state.bytes),
            Err(error) if is_not_found(&error.kind()) => Ok(0),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Removes the object store, if there is one.
    pub(super) async fn remove_objects(&self) {
        // The deletion usually fails, since most queues have no object store.
        let _ = self.jetstream.delete_object_store(self.name.bucket()).await;
    }
}

fn file_object(name: &str) -> String {
    format!("file/{name}")
}
