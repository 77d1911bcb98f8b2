#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# bare_demo.sh FOLDER SUITE [SYSTEMS]: runs ./dev demo on a new Debian system, with a copy of FOLDER, and prints how many
# packages it installed and how long it took. The system is a copy of SYSTEMS/SUITE-bare, which is installed if it is
# not there, or a temporary one.
set -eu
source=$1 suite=$2 folder=${3:-}
. "$source/tests/package/new_system.sh"

step "a new $suite"
open_system "$suite" "$suite-bare" "$folder"
[ -z "$folder" ] || copy_system
# LLVM 22 is a security update of Debian 12.
updates=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m 1 security) ||
  skip "there is no mirror of Debian's security updates"
echo "deb $updates $suite-security main" >"$root/etc/apt/sources.list.d/security.list"
mkdir -p "$root/home/user/kiln"
(cd "$source" && git ls-files -z | tar --null --files-from=- -cf -) | tar -C "$root/home/user/kiln" --no-same-owner -xf -
count_packages() { in_system 'dpkg-query -W -f "\${db:Status-Status}\n" | grep -cx installed'; }
before=$(count_packages)

step "./dev demo"
begin=$(date +%s)
in_system 'cd /home/user/kiln && ./dev demo' >"$work/demo" 2>&1 || { tail -n 50 "$work/demo"; fail "./dev demo failed"; }
seconds=$(($(date +%s) - begin))
tail -n 8 "$work/demo"
echo "./dev demo: $(($(count_packages) - before)) packages, $seconds s, $(nproc) cores"
grep -q '^held-out text: .* bits per character; PyTorch ' "$work/demo" || fail "./dev demo compared nothing with PyTorch"
