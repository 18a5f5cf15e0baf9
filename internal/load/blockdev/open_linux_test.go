package blockdev

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What happens between the check and the open must be noticed. All of it is real.
func TestOpenNoticesAChange(t *testing.T) {
	tests := []struct {
		title string
		want  string
		// make returns the path that is opened and what happens in between.
		make func(r rig) (path string, between func())
	}{
		{"node exchanged for another device", "changed", func(r rig) (string, func()) {
			node := filepath.Join(r.dir, "node")
			one, other := r.loop(64*mib), r.loop(64*mib)
			r.node(node, one)
			return node, func() {
				os.Remove(node)
				r.node(node, other)
			}
		}},
		{"link turned to another device", "changed", func(r rig) (string, func()) {
			link := filepath.Join(r.dir, "link")
			one, other := r.loop(64*mib), r.loop(64*mib)
			os.Symlink(one, link)
			return link, func() {
				os.Remove(link)
				os.Symlink(other, link)
			}
		}},
		{"other disk of the same number and size", "changed", func(r rig) (string, func()) {
			path, other := r.file(64*mib), r.file(64*mib)
			device := r.loopOn(path)
			return device, func() {
				r.detach(device, path)
				r.run("losetup", device, other)
			}
		}},
		{"size", "changed", func(r rig) (string, func()) {
			path := r.file(64 * mib)
			device := r.loopOn(path)
			return device, func() {
				os.Truncate(path, 65*mib)
				r.run("losetup", "--set-capacity", device)
			}
		}},
		{"device exchanged for a file", "changed", func(r rig) (string, func()) {
			node := filepath.Join(r.dir, "node")
			r.node(node, r.loop(64*mib))
			return node, func() { os.Rename(r.file(64*mib), node) }
		}},
		{"file exchanged for a device", "changed", func(r rig) (string, func()) {
			path, device := r.file(64*mib), r.loop(64*mib)
			return path, func() {
				os.Remove(path)
				r.node(path, device)
			}
		}},
		{"file exchanged for another", "changed", func(r rig) (string, func()) {
			path, other := r.file(64*mib), r.file(64*mib)
			return path, func() { os.Rename(other, path) }
		}},
		{"mounted", "busy", func(r rig) (string, func()) {
			device := r.ext4(r.loop(64 * mib))
			return device, func() { r.mount(device) }
		}},
		{"file system made", "signature", func(r rig) (string, func()) {
			device := r.loop(64 * mib)
			return device, func() { r.ext4(device) }
		}},
		{"loop device put on it", "held", func(r rig) (string, func()) {
			device := r.loop(64 * mib)
			return device, func() { r.loopOn(device) }
		}},
		{"file put below a loop device", "held", func(r rig) (string, func()) {
			path := r.file(64 * mib)
			return path, func() { r.loopOn(path) }
		}},
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			r := newRig(t)
			path, between := test.make(r)
			f, _, err := opener{host(), between}.open(path, consentTo(r.look(path)), os.O_RDWR)
			if f != nil {
				f.Close()
			}
			checkReasons(t, err, only(test.want))
		})
	}
}

// node makes a node with the number of a device.
func (r rig) node(path, device string) {
	r.t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(device, &st); err != nil {
		r.t.Fatal(err)
	}
	if err := unix.Mknod(path, unix.S_IFBLK|0o600, int(st.Rdev)); err != nil {
		r.t.Fatal(err)
	}
}

// A path that became a pipe must not make Open wait.
func TestOpenDoesNotWaitForAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	between := func() {
		os.Remove(path)
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Error(err)
		}
	}
	for _, flags := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR} {
		if f, _, err := (opener{host(), between}).open(path, Consent{}, flags); err == nil {
			f.Close()
			t.Errorf("flags %x: opened", flags)
		}
		os.Remove(path)
		os.WriteFile(path, nil, 0o600)
	}
}

// While a device is open for writing, no other process can open it exclusively; its own name in /proc gives further descriptors.
func TestOpenHoldsTheDevice(t *testing.T) {
	r := newRig(t)
	device := r.ext4(r.loop(64 * mib))
	consent := consentTo(r.look(device))
	for _, flags := range []int{os.O_WRONLY, os.O_RDWR, os.O_RDWR | unix.O_DIRECT | unix.O_DSYNC} {
		f, state, err := Open(device, consent, flags)
		if err != nil {
			t.Fatal(err)
		}
		if state.SizeBytes != 64*mib || !state.Content.HeadZero && len(state.Content.Signatures) == 0 {
			t.Errorf("state %+v", state)
		}
		if out, err := exec.Command("mount", device, t.TempDir()).CombinedOutput(); err == nil {
			exec.Command("umount", device).Run()
			t.Errorf("mounted while it was open: %s", out)
		}
		_, _, err = Open(device, consent, os.O_RDWR)
		checkReasons(t, err, only("busy"))
		again, err := os.OpenFile(self(f), os.O_RDWR|unix.O_DIRECT, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.WriteAt(alignedBuffer(4096), 32*mib); err != nil {
			t.Error(err)
		}
		again.Close()
		f.Close()
	}
}

// Reading asks for nothing and holds nothing.
func TestOpenToRead(t *testing.T) {
	r := newRig(t)
	device := r.ext4(r.loop(64 * mib))
	r.mount(device)
	f, state, err := Open(device, Consent{}, os.O_RDONLY|unix.O_DIRECT)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if len(state.Uses) != 1 || state.Uses[0].Kind != Mounted {
		t.Errorf("uses %+v", state.Uses)
	}
	_, _, err = Open(r.dir, Consent{}, os.O_RDONLY)
	checkReasons(t, err, only("not-a-disk"))
}

func TestOpenRefusesToCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, flags := range []int{os.O_RDWR | os.O_CREATE, os.O_RDWR | os.O_TRUNC, os.O_WRONLY | os.O_APPEND} {
		if _, _, err := Open(path, Consent{}, flags); err == nil || !strings.Contains(err.Error(), "not created") {
			t.Errorf("flags %x: %v", flags, err)
		}
	}
	if _, _, err := Open(path, Consent{}, os.O_RDWR); !os.IsNotExist(unwrapped(err)) {
		t.Errorf("missing file: %v", err)
	}
}

func unwrapped(err error) error {
	for {
		next, ok := err.(interface{ Unwrap() error })
		if !ok || next.Unwrap() == nil {
			return err
		}
		err = next.Unwrap()
	}
}
