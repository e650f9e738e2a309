# Inside the new root file system (sh, as root): what a node must not do or have.
set -eu
rm -f /etc/ssh/ssh_host_* /etc/hostname
passwd --quiet --lock root
update-ca-certificates >/dev/null
systemctl enable ntier-network.service ssh.service
# Nothing may start by itself during a trial; sysstat is started by the experiment.
systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
  logrotate.timer man-db.timer systemd-tmpfiles-clean.timer sysstat.service sysstat-collect.timer \
  sysstat-summary.timer sysstat-rotate.timer console-getty.service systemd-modules-load.service \
  systemd-logind.service systemd-networkd.service systemd-networkd.socket systemd-resolved.service \
  systemd-timesyncd.service tmp.mount dev-mqueue.mount # mounts that a container may not make
: >/etc/machine-id # each clone gets its own
touch /etc/.updated /var/.updated # nothing to update at the first start
