#!/usr/bin/env bash
# usage: pg-root.sh MAJOR, inside a fresh Debian root (tools/pg-major.sh)
#
# Installs PostgreSQL MAJOR, its headers, a C compiler and the packages that the TAP
# tests need, and nothing else. That is 0.4 GB instead of 1.3 GB with LLVM, which the
# headers depend on and an extension without bitcode does not use.
set -euo pipefail

major=$1
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

# throw-away system: no syncs, no manuals, no services, no cluster
echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/unsafe
printf 'path-exclude=/usr/share/%s/*\n' doc man locale info >/etc/dpkg/dpkg.cfg.d/lean
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod +x /usr/sbin/policy-rc.d
mkdir -p /etc/postgresql-common/createcluster.d
echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/none.conf

# signatures are checked, dates are not: a mirror may be a frozen snapshot
apt=(apt-get -qq -y -o Acquire::Retries=3 -o Acquire::Languages=none
	-o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root
	--no-install-recommends)
"${apt[@]}" update

from=()
if [ -e /etc/apt/sources.list.d/experimental.list ]; then
	from=(-t experimental)
fi

# a package that stands in for LLVM
names=$(apt-cache depends "postgresql-server-dev-$major" |
	sed -nE 's/^ *\|?Depends: ((clang|llvm)-[-0-9a-z]+)$/\1/p' | sort -u | paste -sd,)
if [ -n "$names" ]; then
	mkdir -p /tmp/no-llvm/DEBIAN
	cat >/tmp/no-llvm/DEBIAN/control <<-END
		Package: no-llvm
		Version: 1
		Architecture: all
		Maintainer: nobody <nobody@localhost>
		Provides: $names
		Description: stands in for compilers that are not used here
	END
	dpkg-deb -b /tmp/no-llvm /tmp/no-llvm.deb
	dpkg -i /tmp/no-llvm.deb
fi

"${apt[@]}" install gcc libc6-dev make perl libipc-run-perl procps
"${apt[@]}" "${from[@]}" install "postgresql-$major" "postgresql-server-dev-$major"
apt-get clean
rm -rf /tmp/* /var/lib/apt/lists/*
"/usr/lib/postgresql/$major/bin/postgres" --version
