#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_packages.sh FOLDER: the lists of packages of FOLDER/dev. Each command has the packages of those that it extends,
# none twice; the demo has none of a part; --without leaves out exactly the packages of the named parts.
set -euo pipefail
export LC_ALL=C
dev="$1/dev"
unset KILN_TEST_CROSS
fail() { echo "$*" >&2 && exit 1; }
packages() { "$dev" needs "$@" | sort; }
# equal WHAT EXPECTED GOT
equal() { [ "$2" = "$3" ] || fail "$1: another list; $(diff <(echo "$2") <(echo "$3") || true)"; }
# within WHAT FEWER MORE: each line of FEWER is one of MORE.
within() {
  local missing
  missing=$(comm -23 <(echo "$2") <(echo "$3"))
  [ -z "$missing" ] || fail "$1: missing; expected also" $missing
}
# apart WHAT ONE OTHER
apart() {
  local shared
  shared=$(comm -12 <(echo "$2") <(echo "$3"))
  [ -z "$shared" ] || fail "$1: too many packages; expected none of" $shared
}

for command in demo build test bench docs package lint; do
  list=$(packages $command)
  equal "$command" "$(uniq <<<"$list")" "$list"
  wrong=$(grep -vxE '[a-z0-9][a-z0-9.+-]+' <<<"$list" || true)
  [ -z "$wrong" ] || fail "$command: not a package: \"$wrong\""
done
demo=$(packages demo) build=$(packages build) test=$(packages test)
within build "$demo" "$build"
within test "$build" "$test"
within bench "$build" "$(packages bench)"
within lint "$build" "$(packages lint)"
within package "$build" "$(packages package)"

parts=$("$dev" help | sed -n 's/.*Parts: \(.*\)\.$/\1/p' | tr -d ,)
[[ $("$dev" help) == *"(./dev seed prints it)." ]] || fail "help: expected all lines of the header"
[ "$(wc -w <<<"$parts")" -eq 6 ] || fail "help: wrong parts; expected six, got \"$parts\""
for part in $parts; do
  list=$(packages "$part")
  apart "demo, which needs no $part" "$list" "$demo"
  within "build, which takes $part" "$list" "$build"
  equal "test --without $part" "$(comm -23 <(echo "$test") <(echo "$list"))" "$(packages test --without "$part")"
done
equal "test --without wine,mpi" "$(comm -23 <(echo "$test") <({ packages mpi; packages wine; } | sort))" \
  "$(packages --without wine,mpi test)"
equal "test --without each part" "$(comm -12 <(echo "$test") <(packages --without "${parts// /,}" test))" \
  "$(packages --without "${parts// /,}" test)"
equal "KILN_TEST_CROSS=aarch64" "$(packages test --without wine)" "$(KILN_TEST_CROSS=aarch64 packages test)"
equal "KILN_TEST_CROSS=windows" "$test" "$(KILN_TEST_CROSS=windows packages test)"

# refused WORDS COMMAND ...: the command fails with status 2 and these words.
refused() {
  local words=$1 status=0 text
  shift
  text=$("$dev" "$@" 2>&1 >/dev/null) || status=$?
  [ "$status" -eq 2 ] && [[ $text == *"$words"* ]] ||
    fail "$*: expected status 2 and \"$words\", got $status and \"$text\""
}
refused '--without: unknown part; expected some of cross,mpi,node,opencl,qemu,wine, got "vine"' test --without vine
refused 'needs: unknown name; expected demo,' needs vine
