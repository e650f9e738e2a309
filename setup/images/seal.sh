# On a build node (sh, as root): prints its packages, the dates of its package sources, and the versions of what its role is about;
# then removes what belongs to this node alone, and the lists of packages unless `keep-lists` is said.
set -eu
dpkg-query --show --showformat '${Package}\t${Version}\t${Architecture}\n'
echo ---
grep -h '^Date:' /var/lib/apt/lists/*Release 2>/dev/null | cut -d' ' -f2- | sort -u | paste -sd';' || true
echo ---
for file in /etc/ntier/packages.d/*; do
  case $file in */monitor | */common) ;; *) xargs -r dpkg-query --show --showformat '${Package} ${Version}\n' <"$file" ;; esac
done
apt-get clean
[ "${1:-}" = keep-lists ] || rm -rf /var/lib/apt/lists/*
rm -rf /root/.ansible /tmp/* /var/tmp/*
rm -f /etc/ssh/ssh_host_* /root/.ssh/authorized_keys /var/lib/dbus/machine-id
: >/etc/machine-id
journalctl --quiet --rotate --vacuum-size=1 2>/dev/null || true
find /var/log -type f -exec truncate --size 0 {} +
sync
