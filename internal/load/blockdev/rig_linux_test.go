package blockdev

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/testreq"
)

const mib = int64(1) << 20

// rig makes real devices in a folder of its own and takes all of them away again, in the opposite order, also where the
// test fails.
type rig struct {
	t   *testing.T
	dir string
}

func newRig(t *testing.T) rig {
	t.Helper()
	testreq.Root(t)
	testreq.Program(t, "losetup")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return rig{t, dir}
}

func (r rig) run(name string, args ...string) string {
	r.t.Helper()
	testreq.Program(r.t, name)
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// undo runs a command after the test and logs its failure.
func (r rig) undo(name string, args ...string) {
	r.t.Helper()
	r.t.Cleanup(func() {
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			r.t.Errorf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
		}
	})
}

// file makes a sparse file.
func (r rig) file(size int64) string {
	r.t.Helper()
	f, err := os.CreateTemp(r.dir, "file")
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		r.t.Fatal(err)
	}
	return f.Name()
}

// loopOn makes a loop device on a path.
func (r rig) loopOn(path string, args ...string) string {
	r.t.Helper()
	device := r.run("losetup", append(args, "--find", "--show", path)...)
	r.t.Cleanup(func() { r.detach(device, path) })
	return device
}

// detach detaches a loop device and waits until that is done: the kernel defers it while the device is open. A device that
// has been taken by another process since is skipped.
func (r rig) detach(device, path string) {
	below, err := os.ReadFile(backing(device))
	if name := strings.TrimSpace(string(below)); err != nil || name != path && !strings.HasPrefix(name, r.dir+"/") {
		return
	}
	if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
		r.t.Errorf("detach %s: %v: %s", device, err, out)
	}
	for range 100 {
		if _, err := os.Stat(backing(device)); err != nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.t.Errorf("%s is still bound five seconds after it was detached", device)
}

func backing(device string) string {
	return filepath.Join("/sys/class/block", filepath.Base(device), "loop", "backing_file")
}

func (r rig) loop(size int64, args ...string) string {
	r.t.Helper()
	return r.loopOn(r.file(size), args...)
}

func (r rig) ext4(device string) string {
	r.t.Helper()
	r.run("mkfs.ext4", "-q", "-F", device)
	return device
}

func (r rig) mount(device string) string {
	r.t.Helper()
	point, err := os.MkdirTemp(r.dir, "mount")
	if err != nil {
		r.t.Fatal(err)
	}
	r.run("mount", device, point)
	r.undo("umount", point)
	return point
}

// mountElsewhere mounts in a mount namespace of another process, which lives until the test ends.
func (r rig) mountElsewhere(device string) {
	r.t.Helper()
	point, err := os.MkdirTemp(r.dir, "mount")
	if err != nil {
		r.t.Fatal(err)
	}
	script := `mount "$0" "$1" && echo mounted && exec cat`
	command := exec.Command(testreq.Program(r.t, "unshare"), "--mount", "sh", "-c", script, device, point)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		in.Close() // ends the process, and with it the namespace and its mount
		command.Wait()
	})
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "mounted\n" {
		r.t.Fatalf("mount in another namespace: %q", line)
	}
}

func (r rig) swap(device string) {
	r.t.Helper()
	if !strings.HasPrefix(device, "/dev/loop") {
		r.t.Fatalf("swap on %s, which is not a loop device of the test", device)
	}
	r.run("mkswap", device)
	r.run("swapon", device)
	r.undo("swapoff", device)
}

// partition makes the kernel know a part of a loop device, with no table on it.
func (r rig) partition(device string, startBytes, sizeBytes int64) string {
	r.t.Helper()
	r.run("addpart", device, "1", fmt.Sprint(startBytes/sectorBytes), fmt.Sprint(sizeBytes/sectorBytes))
	r.undo("delpart", device, "1")
	return device + "p1"
}

// zram adds a device of its own; one that was there before is never touched.
func (r rig) zram(size int64) string {
	r.t.Helper()
	number, err := os.ReadFile("/sys/class/zram-control/hot_add")
	if err != nil {
		testreq.Skip(r.t, "no zram device can be added: "+err.Error())
	}
	name := "zram" + strings.TrimSpace(string(number))
	r.t.Cleanup(func() {
		r.put("/sys/class/block/"+name+"/reset", "1")
		r.put("/sys/class/zram-control/hot_remove", strings.TrimPrefix(name, "zram"))
	})
	if size > 0 {
		r.put("/sys/class/block/"+name+"/disksize", fmt.Sprint(size))
	}
	return "/dev/" + name
}

func (r rig) put(path, value string) {
	r.t.Helper()
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		r.t.Error(err)
	}
}

// fill writes a text to a device or file.
func (r rig) fill(path string, offset int64, content string) string {
	r.t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(content), offset); err != nil {
		r.t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		r.t.Fatal(err)
	}
	f.Close()
	return path
}

// claim writes a tag as Open and Claim do.
func (r rig) claim(device, controller string) string {
	r.t.Helper()
	f, state, err := Open(device, consentTo(r.look(device)), os.O_RDWR)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	if err := Claim(f, state.SizeBytes, state.NewTag(controller, "run-1")); err != nil {
		r.t.Fatal(err)
	}
	return device
}

func (r rig) look(path string) State {
	r.t.Helper()
	s, err := Examine(path)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}
