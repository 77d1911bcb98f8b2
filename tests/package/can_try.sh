#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks whether this machine can make packages and install a new system of Debian's SUITE to try them on, which takes
# Debian 12, root and a mirror that answers: can_try.sh SUITE
# Prints the reason and ends with status 77 if not. debootstrap is not looked for, since ./dev package installs it.
set -eu
suite=$1
. "$(dirname "$0")/new_system.sh"
release=$(. /etc/os-release && echo "${PRETTY_NAME:-}, ${VERSION_ID:-}")
[ "${release##*, }" = 12 ] || skip "packages are made on Debian 12, and this is ${release%, *}"
find_mirror
/usr/lib/apt/apt-helper -q download-file "$mirror/dists/$suite/InRelease" "$work/InRelease" >"$work/log" 2>&1 ||
  { tail -n 3 "$work/log"; skip "no $suite at $mirror"; }
