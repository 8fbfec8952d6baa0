//! Tells the service manager the state of the server, by systemd's notification protocol: a datagram to the socket that
//! `NOTIFY_SOCKET` names. Without the variable, nothing is sent.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable that names the socket of the service manager.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// The server takes requests.
pub const READY: &str = "READY=1\nSTATUS=Serving";

/// The server is stopping in order.
pub const STOPPING: &str = "STOPPING=1\nSTATUS=Finishing queries and taking a checkpoint";

/// Sends a state to the service manager. A failure is logged and does not stop the server.
pub fn tell(state: &str) {
    let Some(path) = std::env::var_os(SOCKET_VARIABLE) else { return };
    if let Err(error) = send(&path.to_string_lossy(), state) {
        tracing::warn!("the service manager could not be told {state:?}: {error}");
    }
}

fn send(path: &str, state: &str) -> io::Result<()> {
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(path)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_sockets_are_told() {
        let path = std::env::temp_dir().join(format!("mangrove-notify-{}", std::process::id()));
        let name = format!("mangrove-notify-{}", std::process::id());
        let file = UnixDatagram::bind(&path).unwrap();
        let abstract_ = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        for (socket, address) in [(file, path.to_str().unwrap().to_owned()), (abstract_, format!("@{name}"))] {
            send(&address, READY).unwrap();
            let mut heard = [0; 64];
            let length = socket.recv(&mut heard).unwrap();
            assert_eq!(&heard[..length], READY.as_bytes());
        }
        std::fs::remove_file(path).unwrap();
    }
}
