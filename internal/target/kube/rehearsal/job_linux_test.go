package rehearsal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/kubelab"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
)

// fetcher is a pod that has the volume with the runs of a Job.
const fetcher = `apiVersion: v1
kind: Pod
metadata: {name: fetch, namespace: %s}
spec:
  containers: [{name: fetch, image: %q, volumeMounts: [{name: runs, mountPath: /runs, readOnly: true}]}]
  volumes: [{name: runs, persistentVolumeClaim: {claimName: bragg-runs}}]
`

// jobManifests builds the image of bragg, and prints what a run of a scenario in the cluster needs.
func (u *user) jobManifests(t *testing.T, scenario string, arguments ...string) string {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "bragg.tar")
	const image = "example.com/bragg:rig"
	if code, out := u.command(t, "kube", "image", "--controller", "--name", image, "-o", archive); code != 0 {
		t.Fatalf("bragg kube image: %s", out)
	}
	u.LoadArchive(t, archive)
	file := filepath.Join(t.TempDir(), "job.yml")
	text := fmt.Sprintf("provider: kubernetes\npool: %s\noptions:\n  image: %s\n  image_pull_policy: Never\n  agents: direct\n  reserve: \"off\"\n  node_selector: %s=%s\n",
		kubelab.StorageClass, u.config.Options["image"], pairLabel, loads)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"kube", "install", "--namespace", u.namespace, "--nodes", "--job", scenario, "--image", image, "--target", file,
		"--runs-pool", kubelab.StorageClass, "--runs-size", "256Mi", "--",
	}
	code, manifests := u.command(t, append(args, arguments...)...)
	if code != 0 {
		t.Fatal(manifests)
	}
	return manifests
}

// begin starts a run as a Job, and returns its manifests when its VMs are there.
func (u *user) begin(t *testing.T) (manifests string) {
	t.Helper()
	manifests = u.jobManifests(t, "four_corners", "--rehearse", "60s", "--rehearse-size", "16MiB", "--max-full", "99", "--set", "vms_per_node=1")
	u.Apply(t, manifests)
	for len(u.left(t)) < 6 { // records, claims and pods
		time.Sleep(100 * time.Millisecond)
	}
	return manifests
}

// A Job that is deleted cleans up, and seals its bundle, before its pod is gone.
func TestInterruptedJob(t *testing.T) {
	programtest.SoakOnly(t, "runs on a real cluster for minutes")
	t.Parallel()
	u := newUser(t, newRig(t))
	u.begin(t)
	pod := strings.TrimSpace(u.Kubectl(t, "get", "-n", u.namespace, "pod", "-l", "job-name=bragg-run", "-o", "name"))
	u.Kubectl(t, "delete", "-n", u.namespace, "job/bragg-run")
	u.Kubectl(t, "wait", "-n", u.namespace, pod, "--for=delete", "--timeout=300s")
	if left := u.left(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// cleanings is how often a test cleans up before it gives up.
const cleanings = 30

// A run whose Job was killed is cleaned up by a Job in its place, with its volume.
func TestKilledJob(t *testing.T) {
	programtest.SoakOnly(t, "runs on a real cluster for minutes")
	t.Parallel()
	u := newUser(t, newRig(t))
	manifests := u.begin(t)
	u.Kubectl(t, "delete", "-n", u.namespace, "pod", "-l", "job-name=bragg-run", "--force", "--grace-period=0")
	u.Kubectl(t, "delete", "-n", u.namespace, "job/bragg-run", "--cascade=foreground")
	from := strings.Index(manifests, `command: [`)
	to := from + strings.Index(manifests[from:], "\n")
	cleaning := manifests[:from] + "command: [bragg, clean, --runs, /runs]" + manifests[to:]
	for range cleanings { // the dying container may still have the run
		u.Apply(t, cleaning)
		u.Kubectl(t, "wait", "-n", u.namespace, "pod", "-l", "job-name=bragg-run", "--for=jsonpath={.status.containerStatuses[0].state.terminated}", "--timeout=300s")
		t.Log(u.Kubectl(t, "logs", "-n", u.namespace, "job/bragg-run"))
		if len(u.left(t)) == 0 {
			break
		}
		u.Kubectl(t, "delete", "-n", u.namespace, "job/bragg-run", "--cascade=foreground")
	}
	if left := u.left(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A run as a Job in the cluster, with the manifests and images that bragg makes, whose bundle is fetched from its volume. Its service
// account reaches the API server from the pod.
func TestJob(t *testing.T) {
	programtest.SoakOnly(t, "runs on a real cluster for minutes")
	t.Parallel()
	r := newRig(t)
	u := newUser(t, r)
	manifests := u.jobManifests(t, "four_corners", "--rehearse", "5s", "--rehearse-size", "16MiB", "--max-full", "99", "--set", "vms_per_node=1")
	r.Apply(t, manifests)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(r.Kubectl(t, "logs", "-n", r.namespace, "job/bragg-run"))
		}
	})
	r.Kubectl(t, "wait", "-n", r.namespace, "job/bragg-run", "--for=condition=complete", "--timeout=300s")
	u.wantNoSecret(t, "the log of the Job", []byte(r.Kubectl(t, "logs", "-n", r.namespace, "job/bragg-run")))
	r.Apply(t, fmt.Sprintf(fetcher, r.namespace, kubelab.BusyboxImage))
	r.Kubectl(t, "wait", "-n", r.namespace, "pod/fetch", "--for=condition=Ready", "--timeout=150s")
	runs := t.TempDir()
	packed := r.Kubectl(t, "exec", "-n", r.namespace, "fetch", "--", "/bin/busybox", "tar", "-C", "/runs", "-cf", "-", ".")
	unpack := exec.Command("tar", "-C", runs, "-xf", "-")
	unpack.Stdin = strings.NewReader(packed)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("unpack the runs: %v: %s", err, out)
	}
	u.check(t, runs)
	if left := r.left(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
