#!/usr/bin/env bash
# The two commands of docs/scale.md on a machine that never had the project: a Debian of its own with the package of stallctl and
# with curl, in a network namespace of its own, from where two shards are reached over a veth pair. As root; needs debootstrap
# (scripts/setup-truth) and Debian's archive. The packages are .build/deb's (make deb), or those of DEBS=FOLDER.
# SABOTAGE=1 gives the namespace another network: then it must say failed.
# The last line is the result: truth clickhouse install steps=N failed=N
set -uo pipefail
cd "$(dirname "$0")/../../.."
debs=${DEBS:-.build/deb}
work=${WORK:-$PWD/.build/truth-clickhouse-install}
root=$work/root base=$work/bookworm.tar space=stallwatch$$ steps=0 failed=0
# Addresses that no other network of this machine has.
net=${NETWORK:-10.199.71} other=${SABOTAGE:+10.199.72}
[ "$(id -u)" = 0 ] || { echo "truth-clickhouse install: run it as root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "truth-clickhouse install: debootstrap is missing: scripts/setup-truth" >&2; exit 1; }
ls "$debs"/stallctl_*.deb >/dev/null || { echo "truth-clickhouse install: no packages in $debs: make deb" >&2; exit 1; }
mkdir -p "$work"

in_root() { unshare --mount --propagation private sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive "$@"; }
apt() { in_root apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }
# A line of the user's, on that machine.
there() { ip netns exec "$space" unshare --mount --propagation private sh -c \
    'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" setpriv --reuid alice --regid alice --init-groups \
    env -i PATH=/usr/bin:/bin HOME=/home/alice LC_ALL=C.UTF-8 TERM=dumb sh -c "$1"; }

leave() {
    CLICKHOUSE_PORT=8123 scripts/clickhouse-cluster down "$work/cluster"
    ip route del local "$net.1" dev lo
    ip route del local "$net.2" dev lo
    ip netns del "$space"
    ip link del "$space" 2>/dev/null  # its other end went with the namespace
    rm -rf "$root"
} 2>/dev/null
trap leave EXIT

step() {
    steps=$((steps + 1))
    : >"$work/$1.log"
    (set -e; "$1") >>"$work/$1.log" 2>&1
    if [ $? = 0 ]; then echo "passed: $1"; else failed=$((failed + 1)); echo "FAILED: $1"; fi
    grep -vE '^(Selecting|Preparing|Unpacking|Setting up|Processing|\(Reading|debconf)' "$work/$1.log" | sed 's/^/    /'
}

make_machine() {
    if [ ! -f "$base" ]; then
        debootstrap --variant=minbase bookworm "$work/base" "${MIRROR:-http://deb.debian.org/debian}" >"$work/debootstrap.log"
        tar -C "$work/base" -cf "$base" . && rm -rf "$work/base"
    fi
    rm -rf "$root" && mkdir -p "$root" && tar -C "$root" -xf "$base"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    in_root useradd --create-home --user-group alice
    echo "$net.1 hub" >>"$root/etc/hosts"
    install -D -m 644 sample-data/demo.sqlite "$root/var/lib/demo/stalls.sqlite"
    install -D -m 644 sample-data/stores/agent-version-16.sqlite "$root/var/lib/notes/stalls.sqlite"
    apt update
}
make_network() {
    ip netns add "$space"
    ip link add "$space" type veth peer name eth0 netns "$space"
    ip addr add "$net.254/24" dev "$space"
    ip link set "$space" up
    # The shards' addresses are of this machine, but of no device: else each server would take the other's for its own.
    ip route add local "$net.1" dev lo
    ip route add local "$net.2" dev lo
    ip -n "$space" addr add "${other:-$net}.9/24" dev eth0
    ip -n "$space" link set eth0 up
    ip -n "$space" -brief addr show eth0
    CLICKHOUSE_PORT=8123 SHARDS="$net.1 $net.2" scripts/clickhouse-cluster up "$work/cluster"
    local shard
    for shard in 1 2; do
        curl -sS --fail -u "stall:$(cat "$work/cluster/password")" "http://$net.$shard:8123/" --data "drop database if exists stalls"
    done
    install -m 644 "$work/cluster/tls/ca.pem" "$root/etc/stalls-ca.pem"
}
install_stallctl() {
    cp "$debs"/stallctl_*.deb "$root/root/"
    apt install --no-install-recommends "/root/$(basename "$debs"/stallctl_*.deb)"
    in_root dpkg-query -f 'Recommends: ${Recommends}\n' -W stallctl | grep -w curl
    ! in_root sh -c 'command -v curl'
}
store="clickhouse://stall@hub:8123/stalls?cluster=stalls"
password() { cat "$work/cluster/password"; }
# The two lines as they are in the documentation, with the password in its place.
commands() { grep -A1 '^    export STALLCTL_STORE=' docs/scale.md | sed "s/PASSWORD=\.\.\./PASSWORD=$(password)/"; }
without_curl_it_is_said() {
    if there "$(commands)"; then return 1; fi
    { there "$(commands)" 2>&1 || true; } | grep -x "stallctl: $store: curl is not installed: stallctl speaks HTTP through it"
}
install_curl() { apt install --no-install-recommends curl; }
the_two_commands() {
    commands | sed -E 's/(PASSWORD=).*/\1.../; s/^ */$ /'
    there "$(commands)" | tee "$work/printed"
    grep -q 'imported 20 new reports from 2 files' "$work/printed"
    # The same numbers as in a file.
    there 'stallctl ingest --store /tmp/all.sqlite /var/lib/*/stalls.sqlite && stallctl top --store /tmp/all.sqlite' >"$work/file"
    diff <(grep -E '^#|^[0-9]+ |stalls in' "$work/file") <(grep -E '^#|^[0-9]+ |stalls in' "$work/printed")
}
both_shards_have_reports() {
    local shard count
    for shard in 1 2; do
        count=$(curl -s -u "stall:$(password)" "http://$net.$shard:8123/?database=stalls" --data "select count() from report_local final")
        echo "shard $shard: $count reports"
        [ "$count" -gt 0 ]
    done
}
over_tls() {
    there "STALLCTL_CLICKHOUSE_PASSWORD=$(password) stallctl top --limit 1 \
        --store 'clickhouse://stall@$net.1:8126/stalls?cluster=stalls&tls=1&ca-file=/etc/stalls-ca.pem'" | grep 'sleepInTimer()'
}

for name in make_machine make_network install_stallctl without_curl_it_is_said install_curl the_two_commands both_shards_have_reports \
    over_tls; do step $name; done
echo "truth clickhouse install steps=$steps failed=$failed"
[ "$failed" = 0 ]
