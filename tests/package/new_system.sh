# SPDX-License-Identifier: Apache-2.0
# For tests of packages on new Debian systems, which include it: installs a system in a folder and runs commands in it.
# Sets work, a temporary folder, and root, the folder of the system. Commands have the variables in environment.
work=$(mktemp -d)
environment=
trap 'rm -rf "$work"' EXIT

skip() { echo "not run: $1"; exit 77; }
fail() { echo "$(basename "$0"): $1" >&2; exit 1; }
step() { echo "== $1"; }

# one_file PATTERN: prints the only file of that pattern.
one_file() {
  set -- $1
  [ $# = 1 ] && [ -e "$1" ] && echo "$1"
}

# find_mirror: sets mirror to this machine's mirror of Debian. Skips the test where no system can be installed.
find_mirror() {
  [ "$(id -u)" = 0 ] || skip "a new system needs root"
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | head -n 1)
  [ -n "$mirror" ] || skip "there is no mirror of Debian"
}

# open_system SUITE NAME [FOLDER]: installs Debian in FOLDER/NAME, if it is not there yet, or in a temporary folder.
open_system() {
  find_mirror
  command -v debootstrap >/dev/null || skip "there is no debootstrap"
  root=${3:-$work}/$2
  [ -e "$root/etc/debian_version" ] || debootstrap --variant=minbase "$1" "$root" "$mirror" >"$work/log" 2>&1 ||
    { tail "$work/log"; rm -rf "$root"; skip "no $1 at $mirror"; }
  cp /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
  # Installing a package waits for the disk at each file otherwise, in case the machine loses power.
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/new-system"
}

# copy_system: goes on in a temporary copy of the system.
copy_system() {
  cp -a "$root" "$work/copy"
  root=$work/copy
}

# in_system COMMANDS: runs them in the system. A mount namespace removes its mounts at the end.
in_system() {
  unshare --mount --propagation private sh -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    exec chroot "$1" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive $3 sh -euc "$2"' \
    sh "$root" "$1" "$environment"
}

# install PACKAGE ...: installs packages in the system.
install() { # the mirror may be a snapshot of testing, whose date has passed
  in_system "apt-get -qq -o Acquire::Check-Valid-Until=false update
    apt-get -qq install -y --no-install-recommends $*" >"$work/log" 2>&1 ||
    { tail "$work/log"; fail "no packages $*"; }
}

# new_home SOURCE: makes /home/user, with a model that learns to classify points.
new_home() {
  rm -rf "$root/home/user"
  mkdir -p "$root/home/user"
  cp -r "$1/tests/package/journey" "$root/home/user/ring"
}

# train_model SETUP KILN: compiles the spec of README.md and that model with the command KILN, trains it, and uses it.
train_model() {
  in_system "$1
cd /home/user/ring
$2 --version
$2 compile mlp.cpp -o out
test -s out/libmlp.a
$2 compile ring.cpp -o made
$2 compile ring_train.cpp -o made
for program in train use; do \${CC:-cc} -std=c11 -Imade \$program.c made/libring*.a -lm -o \$program; done
./train ring.safetensors
./use ring.safetensors"
}
