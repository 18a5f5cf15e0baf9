package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/target"
)

func TestDiskNames(t *testing.T) {
	for i, want := range map[int]string{0: "sdb", 1: "sdc", 24: "sdz", 25: "sdaa", 26: "sdab", 50: "sdaz", 51: "sdba", 127: "sddy"} {
		if got := target.DiskName(i + 1); got != want {
			t.Errorf("disk %d is %q, want %q", i, got, want)
		}
	}
}

// Whatever a VM is called, its folder has a short, plain name of its own.
func TestFolderNames(t *testing.T) {
	seen := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringN(0, 2000, -1), rapid.SampledFrom([]string{"..", "/", "\x00", "a/../.."})).Draw(t, "name")
		mark := rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "mark")
		id := vmID(mark, name)
		if !idPattern.MatchString(id) || filepath.Base(id) != id {
			t.Fatalf("%q became %q", name, id)
		}
		if other, ok := seen[id]; ok && other != mark+name {
			t.Fatalf("%q and %q share %q", name, other, id)
		}
		seen[id] = mark + name
	})
}

// hierarchy makes what looks like a cgroup file system of version 2.
func hierarchy(t *testing.T, controllers string) string {
	t.Helper()
	mount := t.TempDir()
	for _, dir := range []string{mount, filepath.Join(mount, "bragg")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": ""} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return mount
}

func TestLimits(t *testing.T) {
	mount := hierarchy(t, "cpuset cpu io memory pids\n")
	g := openCgroupsAt(mount)
	if !strings.Contains(g.describe(), "CPU time and memory by cgroup") {
		t.Errorf("it says %q", g.describe())
	}
	for _, dir := range []string{mount, filepath.Join(mount, "bragg")} {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil || !strings.HasPrefix(string(text), "+") {
			t.Errorf("controllers of %s are not passed on: %q, %v", dir, text, err)
		}
	}
	f, err := g.make("vm-1", 3, 2<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string]string{"cpu.max": "300000 100000", "memory.max": "2147483648"} {
		if got, err := os.ReadFile(filepath.Join(f.Name(), name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	small, err := g.make("vm-2", 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	if got, err := os.ReadFile(filepath.Join(small.Name(), "memory.max")); err != nil || string(got) != "134217728" {
		t.Errorf("a VM of 1 MiB may use %q, %v: its agent could not start", got, err)
	}
	if _, err := os.Stat(filepath.Join(small.Name(), "cpu.max")); err == nil {
		t.Error("a VM without a number of CPUs has a limit")
	}
}

func TestLimitsThatCannotBeSet(t *testing.T) {
	for controllers, want := range map[string]string{
		"memory": "memory by cgroup; the cpu controller", "cpu": "CPU time by cgroup; the memory controller",
		"hugetlb": "threads only",
	} {
		g := openCgroupsAt(hierarchy(t, controllers))
		if !strings.HasPrefix(g.describe(), want) {
			t.Errorf("with %q it says %q", controllers, g.describe())
		}
		f, err := g.make("vm-1", 1, 1<<30)
		if err != nil {
			t.Errorf("with %q: %v", controllers, err)
			continue
		}
		_ = f.Close()
	}
	none := openCgroupsAt("/no/such/mount")
	if _, err := none.make("vm-1", 1, 1<<30); err == nil || !strings.HasPrefix(none.describe(), "threads only") {
		t.Errorf("without cgroups: %v, %q", err, none.describe())
	}
	none.remove("vm-1")
	none.kill("")
}

func TestOldGroupsAreForgotten(t *testing.T) {
	mount := hierarchy(t, "")
	old, young := filepath.Join(mount, "bragg", "old"), filepath.Join(mount, "bragg", "young")
	for _, dir := range []string{old, young} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	openCgroupsAt(mount)
	if _, err := os.Stat(old); err == nil {
		t.Error("an old group is still there")
	}
	if _, err := os.Stat(young); err != nil {
		t.Error("a young group is gone")
	}
}

func TestFindCgroupMount(t *testing.T) {
	for text, want := range map[string]string{
		"30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n":                           "/sys/fs/cgroup",
		"1 2 0:3 / /a rw - cgroup cgroup rw,cpu\n31 23 0:27 / /sys/fs/cgroup/unified rw - cgroup2 c rw\n": "/sys/fs/cgroup/unified",
		"1 2 0:3 / /cgroup2 rw - tmpfs cgroup2 rw\n":                                                      "",
		"": "", "garbage\n - cgroup2 \n": "",
	} {
		path := filepath.Join(t.TempDir(), "mountinfo")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := cgroupMount(path); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := cgroupMount("/no/such/file"); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestWriteOnce(t *testing.T) {
	dir := t.TempDir()
	for name, write := range map[string]func(text string) error{
		"unnamed":   func(text string) error { return writeOnce(dir, "a", []byte(text)) },
		"exclusive": func(text string) error { return writeExclusive(filepath.Join(dir, "b"), []byte(text)) },
	} {
		if err := write("first"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := write("second"); !os.IsExist(err) {
			t.Errorf("%s: writing again: %v", name, err)
		}
	}
	for _, name := range []string{"a", "b"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != "first" {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%d files, %v, want 2", len(entries), err)
	}
}

func TestTreeSecondsOfAProcessThatIsGone(t *testing.T) {
	if got := treeSeconds(1<<30, 0); got != 0 {
		t.Errorf("got %v", got)
	}
	if got := treeSeconds(os.Getpid(), 0); got <= 0 {
		t.Errorf("this process used %v s", got)
	}
}
