package rehearsal

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// disk opens a disk of a VM and passes it to use: in the container where one runs, else in the file of its volume. A file system that
// is not there yet is made as the driver would do it. A file of the disk that is not there is nil, unless write is set.
func (r *rig) disk(t *testing.T, vm target.VM, d target.Disk, write bool, use func(f *os.File) error) {
	t.Helper()
	path := d.Path
	if path == "" {
		path = d.Device
	}
	var err error
	if root := r.container(t, vm.ID); root != "" {
		err = open(filepath.Join(root, path), write, d.SizeBytes, use)
	} else {
		image := r.image(t, vm.ID+"-"+filepath.Base(d.Device))
		if d.Path == "" {
			err = open(image, write, d.SizeBytes, use)
		} else {
			err = mounted(t.TempDir(), image, write, func(at string) error { return open(filepath.Join(at, filepath.Base(d.Path)), write, d.SizeBytes, use) })
		}
	}
	if err != nil {
		t.Fatalf("vm %q, disk %s: %v", vm.Name, d.Device, err)
	}
}

// image is the file of a claim's volume.
func (r *rig) image(t *testing.T, claim string) string {
	t.Helper()
	p, err := api.Get[corev1.PersistentVolumeClaim](t.Context(), r.admin, api.Claims, claim)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(r.Dir, "storage", "volumes", p.Spec.VolumeName+".img")
}

// container is the root of the container of a VM, "" where none runs.
func (r *rig) container(t *testing.T, id string) string {
	t.Helper()
	p, err := api.Get[corev1.Pod](t.Context(), r.admin, api.Pods, id)
	if api.NotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Status.ContainerStatuses {
		_, id, _ := strings.Cut(s.ContainerID, "://")
		if s.Name != object.AgentContainer || s.State.Running == nil || id == "" {
			continue
		}
		groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			if text, err := os.ReadFile(g); err == nil && strings.Contains(string(text), id) {
				return filepath.Join(filepath.Dir(g), "root")
			}
		}
	}
	return ""
}

// mounted mounts the file system in a file. One that is missing is made for writing, and is not used for reading.
func mounted(dir, image string, write bool, use func(at string) error) (err error) {
	run := func(name string, args ...string) error {
		if text, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			return errors.Join(err, errors.New(string(text)))
		}
		return nil
	}
	if run("blkid", "--probe", image) != nil {
		if !write {
			return use(filepath.Join(dir, "none"))
		}
		if err := run("mkfs.ext4", "-q", image); err != nil {
			return err
		}
	}
	loop, err := exec.Command("losetup", "--find", "--show", image).Output() // mount would take one that is read-only for both
	if err != nil {
		return err
	}
	device := strings.TrimSpace(string(loop))
	defer func() { err = errors.Join(err, run("losetup", "--detach", device)) }()
	how := "ro"
	if write {
		how = "rw"
	}
	if err := run("mount", "-o", how, device, dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unmount(dir)) }()
	return use(dir)
}

// unmount unmounts a file system. For a moment, programs that this one starts elsewhere have its open files; it is gone with the last.
func unmount(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) }

func open(path string, write bool, size int64, use func(f *os.File) error) error {
	if !write {
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			return use(nil)
		}
		if err != nil {
			return err
		}
		defer f.Close()
		return use(f)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() < size {
		err = f.Truncate(size)
		if err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(use(f), f.Sync(), f.Close())
}

func (r *rig) write(t *testing.T, vm target.VM, d target.Disk, offset int64, data []byte) {
	t.Helper()
	r.disk(t, vm, d, true, func(f *os.File) error {
		_, err := f.WriteAt(data, offset)
		return err
	})
}

// read reads a disk; where its file was never made, it is empty.
func (r *rig) read(t *testing.T, vm target.VM, d target.Disk, offset int64, length int) []byte {
	t.Helper()
	data := make([]byte, length)
	r.disk(t, vm, d, false, func(f *os.File) error {
		if f == nil {
			return nil
		}
		_, err := f.ReadAt(data, offset)
		return err
	})
	return data
}
