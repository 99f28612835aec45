# Installs the Debian packages given as arguments and starts none of their servers.
# Runs as root. Whatever it changes for the time of the install, it puts back on the way out.
set -eu

# Standard output belongs to the command that needs the packages.
exec 1>&2

# Two runs on one machine would save each other's temporary policy as the original.
exec 9>/run/sendoff-install.lock
flock 9

policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.d/sendoff.conf

restore() {
    rm -f "$cluster"
    rmdir --ignore-fail-on-non-empty "$(dirname "$cluster")" 2>/dev/null || true
    if [ -e "$policy.sendoff-saved" ]; then
        mv -f "$policy.sendoff-saved" "$policy"
    else
        rm -f "$policy"
    fi
}
trap restore EXIT
trap 'exit 130' INT TERM HUP

# invoke-rc.d asks this script before it starts a service; 101 means "forbidden". The tests start private instances on
# free ports, and a server left running on its standard port would hide a test that forgot to use them.
if [ -e "$policy" ] && [ ! -e "$policy.sendoff-saved" ]; then
    mv "$policy" "$policy.sendoff-saved"
fi
printf '#!/bin/sh\nexit 101\n' >"$policy"
chmod 755 "$policy"

# The package would otherwise create a cluster that nobody uses.
mkdir -p "$(dirname "$cluster")"
echo 'create_main_cluster = false' >"$cluster"

export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
