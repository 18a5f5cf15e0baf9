package kubelab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/testreq"
)

// holdVariable makes TestKilledTest the process that it kills: it starts a cluster and waits for its death.
const holdVariable = "BRAGG_KUBELAB_HOLD"

const holdWord = "cluster in "

// When the test's process is killed, the keeper removes everything.
func TestKilledTest(t *testing.T) {
	if os.Getenv(holdVariable) != "" {
		fmt.Println(holdWord + start(t, Options{}).Dir)
		time.Sleep(time.Hour) // it is killed
	}
	t.Parallel()
	require(t, Options{}) // here, because the other process skips for itself
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestKilledTest$", "-test.v")
	cmd.Env = append(os.Environ(), holdVariable+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir := ""
	for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
		_, dir, _ = strings.Cut(lines.Text(), holdWord)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if dir == "" {
		t.Fatal("no cluster was started")
	}
	waitGone(t, dir)
	if left := testreq.ProcessesNaming(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
}

func waitGone(t *testing.T, dir string) {
	t.Helper()
	for until := time.Now().Add(endTimeLimit); ; time.Sleep(10 * time.Millisecond) {
		left, err := remains(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%q is left", left)
		}
	}
}

// When the keeper is killed its processes end with it, nodes and pods included, and the next cluster removes the rest.
func TestKilledKeeper(t *testing.T) {
	t.Parallel()
	c := start(t, Options{Nodes: 1})
	c.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: p, namespace: default}
spec: {storageClassName: %s, accessModes: [ReadWriteOnce], volumeMode: Block, resources: {requests: {storage: 8Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  containers: [{name: shell, image: %q, volumeDevices: [{name: v, devicePath: /dev/data}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: p}}]
`, StorageClass, BusyboxImage))
	c.Kubectl(t, "wait", "pod/p", "--for=condition=Ready", "--timeout=150s")
	if err := c.keeper.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.keeper.process.Wait() // it was killed
	if left := testreq.ProcessesNaming(t, c.Dir); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	if left, err := remains(c.Dir); err != nil || !strings.Contains(fmt.Sprint(left), "/dev/loop") {
		t.Errorf("%q is left (%v), want loop devices too: this test is about them", left, err)
	}
	unlock, err := lock(machineLock)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sweep(), unlock()); err != nil {
		t.Fatal(err)
	}
	waitGone(t, c.Dir)
}
