#!/usr/bin/env bash
# usage: tools/test-demo-root.sh [bookworm | trixie]
#
# Runs "make demo" as a new user would: in a bare Debian root (default: trixie, Debian
# 13) with nothing but git, make and certificates, on a fresh clone of HEAD. The demo
# must install the rest by itself. Then a browser of this system opens the address that
# the demo printed, and the page must show the storm. Prints the seconds of each part;
# the last line is "N passed, N failed". As root; not part of make test, as it
# downloads a Debian system and all crates.
set -euo pipefail

cd "$(dirname "$0")/.."
suite=${1:-trixie}
case $suite in bookworm | trixie) ;; *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;; esac
[ "$(id -u)" = 0 ] || { echo "error: making a Debian root needs root" >&2; exit 1; }
tools/prereq.sh page >&2
command -v debootstrap >/dev/null || tools/prereq.sh matrix >&2
scratch=$(mktemp -d /var/tmp/tacho-demo-root.XXXXXX)
root=$scratch/root
trap 'rm -rf --one-file-system "$scratch"' EXIT
passed=0
ok() { passed=$((passed + 1)); echo "ok - $1"; }
no() { printf 'not ok - %s\n%s\n%s passed, 1 failed\n' "$1" "$2" "$passed"; exit 1; }

debootstrap --variant=minbase --include=git,make,ca-certificates "$suite" "$root" \
	"$(tools/debian-mirror.sh)" sid >"$scratch/log" 2>&1 || no "a bare Debian $suite" "$(tail -n 5 "$scratch/log")"
# security updates belong to every Debian: Debian 12 has its newer Rust there
security=$(tools/debian-mirror.sh security)
[ -z "$security" ] || echo "deb $security $suite-security main" >>"$root/etc/apt/sources.list"
# debootstrap leaves lists without them; a system without lists fetches all
rm -rf "$root"/var/lib/apt/lists/*
apt-config dump | grep -E '^Acquire::(http|https)::Proxy ' >"$root/etc/apt/apt.conf.d/80proxy" || true
# a mirror that is renewed seldom serves lists that have expired
echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/80mirror"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
# how this system reaches the registries of crates and npm packages
for each in .npmrc .cargo/config.toml; do
	[ ! -e "$HOME/$each" ] || install -D "$HOME/$each" "$root/root/$each"
done
git clone -q --no-local . "$root/root/tacho"
ok "a bare Debian $suite with a clone"

# in_root COMMAND: processes that it leaves behind end with the shell of serve()
in_root() {
	chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		LC_ALL=C.UTF-8 TERM=dumb NO_COLOR=1 "${keep[@]}" bash -c "cd /root/tacho && $1"
}
keep=()
for each in NODE_EXTRA_CA_CERTS SSL_CERT_FILE http_proxy https_proxy no_proxy; do
	[ -z "${!each:-}" ] || keep+=("$each=${!each}")
done

mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
trap 'in_root "make demo-stop" >/dev/null 2>&1 || true; umount -R "$root/dev" "$root/proc" || true
	rm -rf --one-file-system "$scratch"' EXIT
started=$SECONDS
in_root "make demo" >"$scratch/demo" 2>&1 </dev/null || no "make demo" "$(tail -n 40 "$scratch/demo")"
echo "make demo took $((SECONDS - started)) s, load average $(cut -d' ' -f1-3 /proc/loadavg)"
ok "make demo"
address=$(grep -oE 'http://127\.0\.0\.1:[0-9]+/\?[^ ]+' "$scratch/demo" | tail -n 1)
[ -n "$address" ] || no "the demo prints an address" "$(tail -n 20 "$scratch/demo")"
page=$(timeout 120 "${CHROMIUM:-chromium}" --headless --no-sandbox --disable-gpu --user-data-dir="$scratch/browser" \
	--virtual-time-budget=20000 --dump-dom "$address" 2>"$scratch/browser.log") || no "a browser opens it" "$(tail -n 5 "$scratch/browser.log")"
grep -q 'flash sale\|update item' <<<"$page" || no "the page shows the query of the storm" "$(head -c 2000 <<<"$page")"
ok "the page shows the query of the storm"
in_root "make demo-stop" >"$scratch/stop" 2>&1 || no "make demo-stop" "$(tail -n 20 "$scratch/stop")"
# a process that ends meanwhile is no failure of find
left=$(find /proc/[0-9]*/root -maxdepth 0 -lname "$root" 2>/dev/null || true)
if [ -n "$left" ] || [ -e "$root/root/tacho/.demo" ]; then no "make demo-stop leaves nothing" "$left"; fi
ok "make demo-stop leaves nothing"
echo "$passed passed, 0 failed"
