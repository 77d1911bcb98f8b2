#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the Slurm files of examples/clusters without Slurm: `srun` is replaced by mpirun, and each task of an array gets
# its number. run_clusters.sh MPIRUN FOLDER EXAMPLES BUILD KILN SPEC
set -eu
mpirun=$1 folder=$2 examples=$3 build=$4 kiln=$5 spec=$6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(dirname "$(readlink -f "$0")")
mkdir "$work/bin"
ln -s "$kiln" "$work/bin/kiln"
cat >"$work/bin/srun" <<END
#!/bin/sh
while [ "\${1#--}" != "\$1" ]; do shift; done
exec "$here/run.sh" "$mpirun" "\$SLURM_NTASKS" "\$@"
END
cat >"$work/bin/mpirun" <<END
#!/bin/sh
[ "\$1" != --version ] || exec "$mpirun" --version
[ "\$1" = -np ] || exit 2
shift
exec "$here/run.sh" "$mpirun" "\$@"
END
cat >"$work/bin/sbatch" <<'END'
#!/bin/sh
# Runs the job script; the tasks of an array run one after the other.
for script do :; done
script=$(readlink -f "$script")
array=$(sed -n 's/^#SBATCH --array=1-//p' "$script")
[ -z "${KILN_TEST_ARRAY:-}" ] || [ -z "$array" ] || array=$KILN_TEST_ARRAY
for task in $(seq "${array:-1}"); do
  (cd "$KILN_TEST_WORK" && SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=${array:-} bash "$script" >&2)
done
echo 17
END
chmod +x "$work"/bin/srun "$work"/bin/mpirun "$work"/bin/sbatch
export PATH="$work/bin:$PATH" BUILD="$build" SLURM_NTASKS=4
"$mpirun" --version >/dev/null 2>&1 || { echo "skipped: no mpirun"; exit 77; }

WEIGHTS="$examples/char_gpt/char_gpt.safetensors" bash "$folder/slurm/write.sbatch" | tee "$work/text"
grep -q "^And it came to pass, that the " "$work/text"

# Two texts at a time on two pipeline stages: the first text must be the one that ranks write.
"$here/run.sh" "$mpirun" 2 "$build/cluster_pipeline" "$examples/char_gpt/char_gpt.safetensors" 100 \
  "And it came to pass, that " "In the beginning " | tee "$work/texts"
[ "$(sed -n 1p "$work/texts" | cut -c 1-100)" = "$(cut -c 1-100 "$work/text" | head -n 1)" ]
grep -q "^In the beginning [a-z]" "$work/texts"

# Trains once without interruption, and once with a job that ends after eight steps and is started again: the second job
# resumes from the file of the first and must end with the same bytes.
export TEXT="$examples/char_gpt/heldout.txt"
STEPS=20 FILE="$work/whole.training" bash "$folder/slurm/train.sbatch" | tee "$work/steps"
awk '/^step 1:/ { first = $3 } /^step 20:/ { last = $3 } END { exit !(first > 5 && last < first - 1) }' "$work/steps"
STEPS=8 FILE="$work/ended.training" bash "$folder/slurm/train.sbatch"
STEPS=20 FILE="$work/ended.training" bash "$folder/slurm/train.sbatch" | tee "$work/rest"
grep -q "^step 20:" "$work/rest" && ! grep -q "^step 1:" "$work/rest"
cmp "$work/whole.training" "$work/ended.training"

# Tunes in parts and merges these; with fewer tasks than the file requests, since each task compiles a spec.
cp "$spec" "$work/pair.cpp"
export KILN_TEST_ARRAY=2 KILN_TEST_WORK="$work" SPEC="$work/pair.cpp" NAME=pair BUDGET=1s
cp -r "$folder/slurm" "$work/slurm"
"$work/slurm/tune.sh"
for file in pair.1of2.tuning pair.2of2.tuning pair.tuning; do
  wc -l "$work/$file"
done
[ "$(cat "$work"/pair.?of2.tuning | sort -u | wc -l)" -eq "$(sort -u "$work/pair.tuning" | wc -l)" ]
