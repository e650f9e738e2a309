# On the build node (sh, as root): MySQL's packages from an apt source (the argument), unpacked and collected in /root/ndb/tree.
set -eu
work=/root/ndb
rm -rf $work/debs $work/root
mkdir -p $work/debs $work/root
printf '%s\n' "$1" >/etc/apt/sources.list.d/mysql-cluster.list
echo 'step packages'
apt-get update -q
cd $work/debs
apt-get download -q mysql-cluster-community-server-core mysql-cluster-community-client mysql-cluster-community-client-core \
  mysql-cluster-community-management-server mysql-cluster-community-data-node
for deb in ./*.deb; do dpkg-deb --extract "$deb" $work/root; done
sh /root/collect.sh packages $work/root $work/tree
