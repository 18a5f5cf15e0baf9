package rehearsal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/lab/kubelab"
)

// fetcher is a pod that has the volume with the runs of a Job.
const fetcher = `apiVersion: v1
kind: Pod
metadata: {name: fetch, namespace: %s}
spec:
  containers: [{name: fetch, image: %q, volumeMounts: [{name: runs, mountPath: /runs, readOnly: true}]}]
  volumes: [{name: runs, persistentVolumeClaim: {claimName: bragg-runs}}]
`

// A run as a Job in the cluster, with the manifests and images that bragg makes, whose bundle is fetched from its volume. Its service
// account reaches the API server from the pod.
func TestJob(t *testing.T) {
	if os.Getenv(soakVariable) == "" || testing.Short() {
		return
	}
	t.Parallel()
	r := newRig(t)
	u := newUser(t, r)
	archive := filepath.Join(t.TempDir(), "bragg.tar")
	const image = "example.com/bragg:rig"
	if code, out := u.command(t, "kube", "image", "--controller", "--name", image, "-o", archive); code != 0 {
		t.Fatalf("bragg kube image: %s", out)
	}
	r.LoadArchive(t, archive)
	code, manifests := u.command(t, "kube", "install", "--namespace", r.namespace, "--nodes", "--job", "four_corners", "--image", image,
		"--agent-image", r.config.Options["image"], "--pool", kubelab.StorageClass)
	if code != 0 {
		t.Fatal(manifests)
	}
	// As a user would add it.
	manifests = strings.Replace(manifests, "run, four_corners,", "run, four_corners, --rehearse, 5s, --rehearse-size, 16MiB, --max-full, '99', --set, vms_per_node=1,", 1)
	manifests = strings.Replace(manifests, "agents: direct\n", fmt.Sprintf("agents: direct\n      reserve: \"off\"\n      node_selector: %s=%s\n", pairLabel, loads), 1)
	manifests = strings.Replace(manifests, "  accessModes: [ReadWriteOnce]\n", "  accessModes: [ReadWriteOnce]\n  storageClassName: "+kubelab.StorageClass+"\n", 1)
	r.Apply(t, strings.Replace(manifests, "storage: 10Gi", "storage: 256Mi", 1))
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
	text := r.Kubectl(t, "exec", "-n", r.namespace, "fetch", "--", "/bin/busybox", "tar", "-C", "/runs", "-cf", "-", ".")
	unpack := exec.Command("tar", "-C", runs, "-xf", "-")
	unpack.Stdin = strings.NewReader(text)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("unpack the runs: %v: %s", err, out)
	}
	u.check(t, runs)
	if left := r.left(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
