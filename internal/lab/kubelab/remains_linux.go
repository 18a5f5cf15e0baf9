package kubelab

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// aliveName is a file in a cluster's folder that is locked while the cluster is in use.
const aliveName = "alive"

// sweep removes what is left of clusters whose keepers were killed. The machine's lock is held.
func sweep() error {
	if err := os.MkdirAll(Folder(), 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(Folder())
	if err != nil {
		return err
	}
	for _, e := range entries {
		dir := filepath.Join(Folder(), e.Name())
		used, err := inUse(dir)
		if err != nil {
			return err
		}
		if used {
			continue
		}
		if err := removeRemains(dir); err != nil {
			return err
		}
	}
	return nil
}

// inUse reports whether the keeper of a cluster runs, or the process that makes the cluster.
func inUse(dir string) (bool, error) {
	f, err := os.OpenFile(filepath.Join(dir, aliveName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// groupName is the name of a cluster's control group in each hierarchy.
func groupName(id string) string { return "kubelab-" + id }

// interfaceName is that of the machine's interface in a cluster's network.
func interfaceName(id string) string { return "kube-" + id }

// removeInterface removes the machine's interface in a cluster's network. The kernel does so by itself, but may take minutes: sockets that
// still try to say to a node without power that they close keep the network up.
func removeInterface(id string) error {
	link, err := netlink.LinkByName(interfaceName(id))
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(link)
	}
	return err
}

// removeRemains removes a cluster whose processes are gone: loop devices, control groups, its interface, the folder. The kernel may still be busy with
// the last mounts and tasks, so it tries for a while.
func removeRemains(dir string) error {
	const pause = 20 * time.Millisecond
	var err error
	for until := time.Now().Add(removeTimeLimit); ; time.Sleep(pause) {
		err = errors.Join(detachLoops(dir), removeGroups(filepath.Base(dir)), removeInterface(filepath.Base(dir)))
		if err == nil {
			break
		}
		if time.Now().After(until) {
			return fmt.Errorf("remove cluster %s: %w", dir, err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove cluster %s: %w", dir, err)
	}
	return nil
}

const removeTimeLimit = 30 * time.Second

// remains lists what is left of a cluster on this machine.
func remains(dir string) (left []string, err error) {
	if _, err := os.Stat(dir); err == nil {
		left = append(left, dir)
	}
	roots, err := hierarchies()
	if err != nil {
		return nil, err
	}
	for _, root := range roots {
		group := filepath.Join(root, groupName(filepath.Base(dir)))
		if _, err := os.Stat(group); err == nil {
			left = append(left, group)
		}
	}
	backing, err := loops()
	for name := range backing {
		if ours(name, backing, dir) {
			left = append(left, "/dev/"+name)
		}
	}
	name := interfaceName(filepath.Base(dir))
	if _, err := net.InterfaceByName(name); err == nil {
		left = append(left, name)
	}
	return left, err
}

// loops returns the files of all loop devices, by the device's name.
func loops() (backing map[string]string, err error) {
	paths, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	backing = map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it was detached meanwhile
		}
		name := filepath.Base(filepath.Dir(filepath.Dir(path)))
		if below, ok := loopBelow("/dev/" + name); ok {
			backing[name] = below
			continue
		}
		backing[name] = strings.TrimSuffix(strings.TrimSpace(string(text)), " (deleted)")
	}
	return backing, err
}

// loopBelow returns the loop device that another one is over. The kernel shows the path of a device's file only where that is mounted.
func loopBelow(path string) (below string, ok bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer f.Close()
	info, err := unix.IoctlLoopGetStatus64(int(f.Fd()))
	if err != nil {
		return "", false
	}
	const majorLoop = 7 // devices.txt of the kernel
	if unix.Major(info.Rdevice) != majorLoop {
		return "", false
	}
	return fmt.Sprintf("/dev/loop%d", unix.Minor(info.Rdevice)), true
}

// detachLoops detaches the loop devices over files of a folder, and those over such devices: a kubelet makes one for each volume in
// block mode.
func detachLoops(dir string) error {
	backing, err := loops()
	if err != nil {
		return err
	}
	var faults []error
	for name := range backing {
		if ours(name, backing, dir) {
			faults = append(faults, detachLoop("/dev/"+name))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if backing, err = loops(); err != nil {
		return err
	}
	for name := range backing { // the last user of a busy one detaches it
		if ours(name, backing, dir) {
			return fmt.Errorf("/dev/%s is still attached", name)
		}
	}
	return nil
}

// ours reports whether a loop device ends in a file of the folder.
func ours(name string, backing map[string]string, dir string) bool {
	for range backing {
		below, ok := backing[name]
		switch {
		case !ok:
			return false
		case strings.HasPrefix(below, dir+"/"):
			return true
		}
		name = filepath.Base(below)
	}
	return false
}

// detachLoop detaches a device. A test that looked into a volume and was killed may have left it mounted.
func detachLoop(path string) error {
	if err := unmountAll(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0)
	if errors.Is(err, unix.ENXIO) {
		return nil
	}
	return err
}

// unmountAll removes the mounts of a device from this mount namespace.
func unmountAll(device string) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != device {
			continue
		}
		if err := unix.Unmount(fields[1], unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", fields[1], err)
		}
	}
	return nil
}

// hierarchies lists the mount points of control groups: those of version 1, or the one of version 2.
func hierarchies() ([]string, error) {
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return []string{root}, nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() { // the others are links
			all = append(all, filepath.Join(root, e.Name()))
		}
	}
	return all, nil
}

// removeGroups removes a cluster's control groups, the innermost first.
func removeGroups(id string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	var faults []error
	for _, root := range roots {
		var dirs []string
		err := filepath.WalkDir(filepath.Join(root, groupName(id)), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				dirs = append(dirs, path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
		faults = append(faults, err)
		for _, dir := range slices.Backward(dirs) {
			if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
				faults = append(faults, fmt.Errorf("remove %s: %w", dir, err))
			}
		}
	}
	return errors.Join(faults...)
}

// makeGroup makes a control group in each hierarchy. A new group of cpuset has no processors: it takes those of its parent.
func makeGroup(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		dir := root
		for part := range strings.SplitSeq(name, "/") {
			parent := dir
			dir = filepath.Join(dir, part)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("make a control group: %w", err)
			}
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				text, err := os.ReadFile(filepath.Join(parent, file))
				if err != nil {
					continue // it is not the hierarchy of cpuset
				}
				if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
					return fmt.Errorf("make a control group: %w", err)
				}
			}
		}
	}
	return nil
}
