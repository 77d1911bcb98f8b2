#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_ci.sh FOLDER: which commands FOLDER/.ci/run gives, with a ./dev that prints its words. Each odd part of the slow
# tests makes the packages, without the compiler's fuzz targets, and tries them on one of three systems if the machine
# can; a run that is repeated does the same; a command that fails ends the run.
set -euo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "check_ci: $*" >&2 && exit 1; }
unset KILN_SEED KILN_SHARD

mkdir -p "$work/.ci" "$work/tests/package"
cp "$source/.ci/run" "$work/.ci/run"
cat >"$work/dev" <<'END'
#!/bin/sh
[ "$1" != seed ] || { echo 1234567; exit; }
echo "dev $*"
[ "$1" != "$BROKEN" ]
END
cat >"$work/tests/package/can_try.sh" <<'END'
#!/bin/sh
echo "can_try $*"
exit $CANNOT
END
chmod +x "$work/dev" "$work/tests/package/can_try.sh"

# ci SEED SHARD CANNOT BROKEN: prints the commands of a run, then its status. CANNOT is the status of can_try.sh, BROKEN
# a command that fails.
ci() {
  local status=0
  KILN_SEED=$1 KILN_SHARD=$2 CANNOT=$3 BROKEN=$4 "$work/.ci/run" || status=$?
  echo "status $status"
}
# equal WHAT EXPECTED GOT
equal() { [ "$2" = "$3" ] || fail "$1: $(diff <(echo "$2") <(echo "$3"))"; }
commands() { grep -v '^KILN_'; }

suites= fuzzed=0
for part in {1..6}; do
  first=$(printf '%s\n' "dev docs" "dev lint" "dev test --shard $part/6")
  for seed in {1..6}; do
    run=$(ci "$seed" "$part/6" 0 none)
    suite=$(sed -n 's/^can_try //p' <<<"$run")
    if [ -n "$suite" ]; then
      equal "seed $seed, part $part" "$first
can_try $suite
dev package
dev test --all --no-tests=error -V -R ^package\\.(static|bare_${suite}_.*)\$
status 0" "$(commands <<<"$run")"
      [[ $run != *KILN_LIBFUZZER_COMPILER=ON* ]] || fail "seed $seed, part $part: packages and fuzz targets"
    else
      equal "seed $seed, part $part" "$first
status 0" "$(commands <<<"$run")"
      [[ $run != *KILN_LIBFUZZER_COMPILER=ON* ]] || fuzzed=$((fuzzed + 1))
    fi
  done
  equal "part $part, again" "$run" "$(ci "$seed" "$part/6" 0 none)"
  suites+=" ${suite:-none}"
done
equal "systems of the six parts" " bookworm none trixie none testing none" "$suites"
[ "$fuzzed" -gt 3 ] && [ "$fuzzed" -lt 15 ] || fail "fuzz targets in $fuzzed of 18 runs; expected about half"

equal "a machine that cannot" "dev docs
dev lint
dev test --shard 1/6
can_try bookworm
status 0" "$(ci 1 1/6 77 none | commands)"
equal "a check that fails" "status 3" "$(ci 1 1/6 3 none | tail -n 1)"
equal "packages that fail" "dev package
status 1" "$(ci 1 1/6 0 package | tail -n 2)"
equal "tests that fail" "dev test --shard 2/6
status 1" "$(ci 1 2/6 0 test | tail -n 2)"
# Without variables the seed of ./dev decides: 1234567 % 6 + 1 is 2.
[[ $(cd "$work" && CANNOT=0 BROKEN=none .ci/run) == *"KILN_SEED=1234567 KILN_SHARD=2/6 "*"dev test --shard 2/6" ]] ||
  fail "the seed of ./dev decides nothing"
