# SPDX-License-Identifier: Apache-2.0
"""check_clusters_harness.py FOLDER: checks that check_clusters.py finds each of several errors in a copy of the job
files."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).with_name("check_clusters.py")

# File, old text, new text, expected message.
MUTATIONS = [
    ("slurm/write.sbatch", "--ntasks=4", "--ntasks=8",
     "ntasks: another number than nodes x ntasks-per-node; expected 2 x 2, got 8"),
    ("slurm/write.sbatch", "--nodes=2\n#SBATCH --ntasks=4", "--nodes=3\n#SBATCH --ntasks=6",
     "another number than RANKS in CMakeLists.txt"),
    ("slurm/write.sbatch", "--ntasks=4", "--task-count=4", 'sbatch has no option "--task-count"'),
    ("slurm/write.sbatch", "--ntasks=4", "--ntasks 4", 'expected "#SBATCH --option=value"'),
    ("slurm/write.sbatch", "--time=00:10:00", "--time=soon",
     '"--time": no limit; expected D-HH:MM:SS or minutes, got "soon"'),
    ("slurm/write.sbatch", "set -euo pipefail\n", "set -euo pipefail\n#SBATCH --requeue\n", "after the first command"),
    ("slurm/write.sbatch", "cluster_write", "cluster_read", "runs cluster_read, which CMakeLists.txt does not build"),
    ("slurm/write.sbatch", "srun ", "exec ", "expected srun"),
    ("slurm/write.sbatch", '"$WEIGHTS"', '"$WEIGHT"', "nothing sets $WEIGHT"),
    ("slurm/write.sbatch", '"$WEIGHTS" ', '"$WEIGHTS ', "bash: "),
    ("slurm/train.sbatch", "$SLURM_NTASKS", "4", "with as many ranks as there are tasks"),
    ("slurm/tune.sbatch", "--array=1-8", "--array=0-7", "parts are numbered from 1 on"),
    ("slurm/tune.sbatch", "#SBATCH --array=1-8\n", "", "parts are numbered from 1 on"),
    ("slurm/tune.sbatch", "--exclusive", "--exclusive=yes=no", '"--exclusive": takes no value'),
    ("slurm/tune.sbatch", "$SLURM_ARRAY_TASK_COUNT", "8", "expected the array's number and count"),
    ("slurm/tune.sh", "merge.sbatch", "join.sbatch", "submits join.sbatch, which is not there"),
    ("kubernetes/write.yaml", "replicas: 4", "replicas: 3", "mpirun starts 4 ranks, workers x slotsPerWorker are 3"),
    ("kubernetes/write.yaml", '-np, "4"', "-np, 4", "words of a command are strings"),
    ("kubernetes/write.yaml", "    Worker:", "    Workers:", "wrong mpiReplicaSpecs; expected Launcher and Worker"),
    ("kubernetes/write.yaml", "kubeflow.org/v2beta1", "kubeflow.org/v1", "got apiVersion kubeflow.org/v1"),
    ("kubernetes/write.yaml", "slotsPerWorker", "slotsPerWorkers", "has no field"),
    ("kubernetes/write.yaml", "      restartPolicy: Never\n", "", "wrong restartPolicy; expected Never or OnFailure"),
    ("kubernetes/write.yaml", "image: ", "imago: ", "container: missing image"),
    ("kubernetes/train.yaml", "slotsPerWorker: 2", "slotsPerWorker: 1", "workers x slotsPerWorker are 2"),
    ("kubernetes/train.yaml", "cluster_train", "cluster_trainer", "runs cluster_trainer"),
    ("kubernetes/train.yaml", "spec:", "spec", ": "),
    ("kubernetes/tune.yaml", "completionMode: Indexed", "completionMode: NonIndexed",
     "parts: no numbers; expected completionMode Indexed"),
    ("kubernetes/tune.yaml", "completions: 8", "completions: 4",
     "PARTS: another number than completions; expected 4, got 8"),
    ("kubernetes/tune.yaml", "JOB_COMPLETION_INDEX + 1", "JOB_COMPLETION_INDEX", "a Job's indices from 0"),
    ("kubernetes/tune.yaml", "{name: tuning, mountPath", "{name: tunings, mountPath", 'no volume "tunings"'),
    ("kubernetes/tune.yaml", 'limits: {cpu: "4"', 'limits: {cpu: "8"', "limits differ from requests"),
    ("kubernetes/tune.yaml", "batch/v1\n", "batch/v1beta1\n", "Job: wrong apiVersion; expected batch/v1"),
    ("kubernetes/merge.yaml", "restartPolicy: Never", "restartPolicy: Always",
     "the Job: wrong restartPolicy; expected"),
    ("kubernetes/merge.yaml", "kind: Job", "kind: Jobs", "expected Job or MPIJob, got Jobs"),
    ("CMakeLists.txt", "RANKS 4", "RANKS 8", "another number than RANKS in CMakeLists.txt"),
    ("Containerfile", "/build/cluster_write", "/build/cluster_writer", "runs cluster_writer"),
]


def check(folder):
    return subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True)


def main():
    source, failures = pathlib.Path(sys.argv[1]), 0
    if (result := check(source)).returncode:
        print(result.stdout + result.stderr)
        return result.returncode
    for number, (file, old, new, words) in enumerate(MUTATIONS):
        with tempfile.TemporaryDirectory() as temporary:
            copy = pathlib.Path(shutil.copytree(source, pathlib.Path(temporary) / "clusters"))
            text = (copy / file).read_text()
            mutated = text.replace(old, new) if file == "CMakeLists.txt" else text.replace(old, new, 1)
            (copy / file).write_text(mutated)
            result = check(copy)
            found = [line for line in result.stdout.splitlines() if words in line]
            if mutated == text or result.returncode != 1 or not found or result.stderr:
                failures += 1
                print(f"mutation {number}, {file}: {old!r} -> {new!r}: wanted {words!r}, got {result.returncode}:\n"
                      f"{result.stdout}{result.stderr}")
    print(f"{len(MUTATIONS)} mutations, {failures} not found")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
