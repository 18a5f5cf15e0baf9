package testreq

import (
	"os/exec"
	"strings"
	"testing"
)

// Loop makes a loop device on a file or device for the time of the test; args are more options of losetup.
func Loop(t testing.TB, path string, args ...string) string {
	t.Helper()
	Root(t)
	program := Program(t, "losetup")
	out, err := exec.Command(program, append(args, "--find", "--show", path)...).CombinedOutput()
	if err != nil {
		t.Fatalf("losetup: %v: %s", err, out)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command(program, "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("detach %s: %v: %s", device, err, out)
		}
	})
	return device
}
