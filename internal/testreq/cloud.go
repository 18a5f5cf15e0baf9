package testreq

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cloudVariable names a cloud image (qcow2) of a distribution with cloud-init, and enables the tests that boot it: they need
// minutes where processors are emulated. "make soak-distribution" sets it to the image that "make build/cloud.qcow2" makes.
const cloudVariable = "BRAGG_TEST_CLOUD_IMAGE"

// ovaVariable names an OVA in the same way; "make build/bragg.ova" makes it.
const ovaVariable = "BRAGG_TEST_OVA"

// CloudImage returns the path of that image, and skips where only the soak boots a distribution.
func CloudImage(t testing.TB) string {
	t.Helper()
	return named(t, cloudVariable, "build/cloud.qcow2")
}

// OVA returns the path of an OVA for vSphere, and skips where only the soak boots one.
func OVA(t testing.TB) string {
	t.Helper()
	return named(t, ovaVariable, "build/bragg.ova")
}

// named returns the path that a variable of the environment has; made is the goal of make for it.
func named(t testing.TB, variable, made string) string {
	t.Helper()
	path := Soak(t, variable, "a distribution boots, which takes minutes where processors are emulated")
	if !filepath.IsAbs(path) {
		path = filepath.Join(RepositoryRoot(t), path)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s: %v (make %s makes one)", variable, err, made)
	}
	return path
}

// Retouched makes a copy of a cloud image, in which files of its root file system (ext2 to ext4) have other contents, such
// as leftovers of a template's author. Parent directories are created, and scripts are executable. It returns the path of the
// copy, a qcow2.
func Retouched(t testing.TB, image string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	raw, out := filepath.Join(dir, "raw"), filepath.Join(dir, "retouched.qcow2")
	call := func(program string, args ...string) []byte {
		t.Helper()
		text, err := exec.Command(Program(t, program), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v: %s", program, args, err, text)
		}
		return text
	}
	call("qemu-img", "convert", "-O", "raw", image, raw)
	var commands strings.Builder
	for i, path := range slices.Sorted(maps.Keys(files)) {
		part := filepath.Join(dir, fmt.Sprint("file", i))
		mode := os.FileMode(0o644)
		if strings.HasPrefix(files[path], "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(part, []byte(files[path]), mode); err != nil {
			t.Fatal(err)
		}
		for at := 1; strings.Contains(path[at:], "/"); {
			at += strings.Index(path[at:], "/") + 1
			fmt.Fprintf(&commands, "mkdir %s\n", path[:at-1]) // says so where it is there
		}
		fmt.Fprintf(&commands, "rm %s\nwrite %s %s\n", path, part, path)
	}
	script := filepath.Join(dir, "commands")
	if err := os.WriteFile(script, []byte(commands.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	system := fmt.Sprintf("%s?offset=%d", raw, rootOffset(t, call("sfdisk", "--json", raw)))
	said := call("debugfs", "-w", "-f", script, system)
	for path, want := range files {
		if got := call("debugfs", "-R", "cat "+path, system); !strings.HasSuffix(string(got), want) {
			t.Fatalf("%s of the image has %q, want %q: debugfs said %s", path, got, want, said)
		}
	}
	call("qemu-img", "convert", "-O", "qcow2", raw, out)
	if err := os.Remove(raw); err != nil {
		t.Fatal(err)
	}
	return out
}

// rootOffset finds the largest partition, in bytes.
func rootOffset(t testing.TB, text []byte) int64 {
	t.Helper()
	var disk struct {
		Table struct {
			SectorSize int64
			Partitions []struct{ Start, Size int64 }
		} `json:"partitiontable"`
	}
	if err := json.Unmarshal(text, &disk); err != nil || len(disk.Table.Partitions) == 0 {
		t.Fatalf("the image has no partitions: %v in %s", err, text)
	}
	root := slices.MaxFunc(disk.Table.Partitions, func(a, b struct{ Start, Size int64 }) int { return cmp.Compare(a.Size, b.Size) })
	return root.Start * disk.Table.SectorSize
}
