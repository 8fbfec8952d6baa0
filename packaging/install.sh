#!/bin/sh
# Installs the server from an unpacked archive: the program, its manual page and completions, the service. Keeps an existing
# configuration. Run it as root. PREFIX (default /usr/local) and DESTDIR have their usual meaning.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}

install -D -m 755 "$here/bin/mangrove" "$root$prefix/bin/mangrove"
install -D -m 644 "$here/share/man/man1/mangrove.1" "$root$prefix/share/man/man1/mangrove.1"
install -D -m 644 "$here/share/completions/mangrove.bash" "$root$prefix/share/bash-completion/completions/mangrove"
install -D -m 644 "$here/share/completions/_mangrove" "$root$prefix/share/zsh/site-functions/_mangrove"
install -D -m 644 "$here/share/completions/mangrove.fish" "$root$prefix/share/fish/vendor_completions.d/mangrove.fish"
mkdir -p "$root/etc/systemd/system"
sed "s|/usr/local/bin/mangrove|$prefix/bin/mangrove|" "$here/mangrove.service" >"$root/etc/systemd/system/mangrove.service"
if [ ! -e "$root/etc/mangrove/mangrove.toml" ]; then
    install -D -m 644 "$here/mangrove.toml" "$root/etc/mangrove/mangrove.toml"
fi
install -D -m 644 "$here/sysusers.conf" "$root/usr/lib/sysusers.d/mangrove.conf"
if [ -z "$root" ]; then systemd-sysusers mangrove.conf; fi
install -D -m 644 "$here/logrotate.conf" "$root/etc/logrotate.d/mangrove"
echo "installed; to start: systemctl daemon-reload && systemctl enable --now mangrove"
