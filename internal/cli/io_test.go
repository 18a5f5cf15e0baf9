package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// A block device is written to only once it is proved and everything on it was named; a mounted one never.
func TestIOAsksForConsent(t *testing.T) {
	testreq.Root(t)
	testreq.Program(t, "mkfs.ext4")
	dir := t.TempDir()
	image := filepath.Join(dir, "image")
	if err := os.WriteFile(image, make([]byte, 16<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs: %v %s", err, out)
	}
	device := testreq.Loop(t, image)
	before, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	job := []string{"io", "--name=w", "--filename=" + device, "--rw=write", "--bs=64k", "--direct=1", "--output-format=json"}
	proof := []string{"--allow-device=" + device, "--device-size=16m", "--device-link=" + image}
	for _, c := range []struct {
		args []string
		want string
	}{
		{job, "nothing proves that this is the intended device"},
		{slices.Concat(job, proof), "ext4"},
		{slices.Concat(job, proof, []string{"--device-size=17m", "--device-overwrite=ext4"}), "its size is"},
	} {
		code, stdout, stderr := inProcess(t, c.args...)
		if code != 77 || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("%q: exit code %d, want 77 and %q\n%s", c.args, code, c.want, stderr)
		}
	}
	if after, err := os.ReadFile(image); err != nil || !bytes.Equal(before, after) {
		t.Fatalf("a refused write changed the device: %v", err)
	}
	args := slices.Concat([]string{"io"}, proof, []string{"--device-overwrite=ext4,data"}, job[1:])
	code, stdout, stderr := inProcess(t, args...)
	if code != 0 || !strings.Contains(stdout, `"io_bytes": 16777216`) {
		t.Errorf("with consent: exit code %d\n%s%s", code, stdout, stderr)
	}
	if after, err := os.ReadFile(image); err != nil || bytes.Equal(before, after) {
		t.Errorf("nothing was written: %v", err)
	}
}
