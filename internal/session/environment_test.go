package session

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/testreq"
)

func TestParseMount(t *testing.T) {
	m, ok := parseMount(`36 35 98:0 /mnt1 /mnt\040two rw,noatime master:1 - ext3 /dev/ro\134ot rw,errors=continue`)
	want := Mount{Point: "/mnt two", Type: "ext3", Source: `/dev/ro\ot`, Options: "rw,noatime"}
	if !ok || m != want {
		t.Errorf("got %+v, %v", m, ok)
	}
	for _, bad := range []string{"", "36 35 98:0 /", "a b c d e f - ext4", "- -"} {
		if m, ok := parseMount(bad); ok {
			t.Errorf("%q parsed as %+v", bad, m)
		}
	}
}

func TestMountOfFindsTheInnermostMount(t *testing.T) {
	testreq.Root(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	point := filepath.Join(dir, "a b")
	if err := os.Mkdir(point, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("bragg-test", point, "tmpfs", 0, "size=1m"); err != nil {
		testreq.Skip(t, "mount a tmpfs: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	m, err := MountOf(filepath.Join(point, "not", "there", "yet"))
	if err != nil || m.Point != point || m.Type != "tmpfs" || m.Source != "bragg-test" {
		t.Errorf("got %+v, %v", m, err)
	}
	free, total, err := Space(filepath.Join(point, "not"))
	if err != nil || total != 1<<20 || free > total || free == 0 {
		t.Errorf("free %d of %d, %v", free, total, err)
	}
	beside, err := MountOf(point + "x")
	if err != nil || beside.Point == point {
		t.Errorf("a name that only begins alike: %+v, %v", beside, err)
	}
}

func TestEnvironmentNamesTheMachine(t *testing.T) {
	env := Environment(t.TempDir())
	for _, name := range []string{"cpus", "memory", "file system"} {
		if env[name] == "" {
			t.Errorf("no %q in %v", name, env)
		}
	}
	if Kernel() == "" {
		t.Error("no kernel release")
	}
}
