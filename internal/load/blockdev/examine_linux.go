package blockdev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// host is the system of the current machine.
func host() system {
	s := system{sys: "/sys", proc: "/proc", dev: "/dev", udev: "/run/udev"}
	s.numberOf = func(path string) (Number, bool) {
		var st unix.Stat_t
		err := unix.Stat(path, &st)
		return numberOf(st.Rdev), err == nil && kindOf(st.Mode) == Block
	}
	s.fileOf = func(path string) (FileID, bool) {
		var st unix.Stat_t
		err := unix.Stat(path, &st)
		return fileID(st), err == nil && kindOf(st.Mode) == Regular
	}
	s.loopFile = loopFile
	return s
}

func numberOf(rdev uint64) Number { return Number{unix.Major(rdev), unix.Minor(rdev)} }

func fileID(st unix.Stat_t) FileID { return FileID{Device: st.Dev, Inode: st.Ino} }

func kindOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return Regular
	case unix.S_IFBLK:
		return Block
	case unix.S_IFCHR:
		return Character
	}
	return Other
}

// loopFile queries a loop device for its file. The path in sysfs may be in another mount namespace or no longer exist.
func loopFile(name string) (FileID, bool) {
	f, err := os.OpenFile(filepath.Join("/dev", name), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return FileID{}, false
	}
	defer f.Close()
	info, err := unix.IoctlLoopGetStatus64(int(f.Fd()))
	if err != nil {
		return FileID{}, false
	}
	return FileID{Device: info.Device, Inode: info.Inode}, true
}

// Examine describes the file or device at a path. It opens block devices for reading only. It returns an error if the path
// does not exist; an unreadable device is a fault in the state, which Check refuses.
func Examine(path string) (State, error) { return host().examine(path) }

func (s system) examine(path string) (State, error) {
	node, err := filepath.EvalSymlinks(path)
	if err != nil {
		return State{}, fmt.Errorf("examine %q: %w", path, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(node, &st); err != nil {
		return State{}, &os.PathError{Op: "examine", Path: path, Err: err}
	}
	if kindOf(st.Mode) != Block {
		return s.plain(path, node, st), nil
	}
	f, err := openToLook(node)
	if err != nil {
		state := s.describe(numberOf(st.Rdev))
		state.Path, state.Node = path, node
		state.Faults = append(state.Faults, fmt.Sprintf("it cannot be opened for reading: %v", err))
		return state, nil
	}
	defer f.Close()
	state, err := s.opened(f, f, path, node)
	if err != nil {
		return State{}, err
	}
	state.Busy = busy(node)
	return state, nil
}

// openToLook opens for reading, bypassing the page cache if it can.
func openToLook(node string) (*os.File, error) {
	flags := unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Open(node, flags|unix.O_DIRECT, 0)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.Open(node, flags, 0)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), node), nil
}

// busy tries an exclusive open, which fails if a file system, swap, another driver or a careful program uses the device, in
// any mount namespace.
func busy(node string) bool {
	fd, err := unix.Open(node, unix.O_RDONLY|unix.O_EXCL|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd) // nothing was written
	}
	return errors.Is(err, unix.EBUSY)
}

// opened examines an open descriptor, and reads its content through another one that may be read. Path and node are only
// copied.
func (s system) opened(f, content *os.File, path, node string) (State, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return State{}, &os.PathError{Op: "examine", Path: path, Err: err}
	}
	if kindOf(st.Mode) != Block {
		return s.plain(path, node, st), nil
	}
	state := s.describe(numberOf(st.Rdev))
	state.Path, state.Node = path, node
	s.ask(f, &state)
	if len(state.Faults) == 0 && state.SizeBytes > 0 {
		reader := alignedReader{from: content, size: state.SizeBytes, align: max(blockAlign, state.Device.LogicalBlockBytes)}
		var faults []string
		state.Content, faults = readContent(reader, state.SizeBytes, state.Device.Partitions)
		state.Faults = append(state.Faults, faults...)
	}
	return state, nil
}

// ask reads from the descriptor facts that sysfs has too: the descriptor always refers to the same device.
func (s system) ask(f *os.File, state *State) {
	fd := int(f.Fd())
	size, err := ioctlUint64(fd, unix.BLKGETSIZE64)
	if err != nil {
		state.Faults = append(state.Faults, fmt.Sprintf("its size cannot be read: %v", err))
	}
	state.SizeBytes = int64(size)
	if sequence, err := ioctlUint64(fd, unix.BLKGETDISKSEQ); err == nil {
		state.Device.Sequence = sequence
	}
	if n, err := unix.IoctlGetInt(fd, unix.BLKROGET); err == nil && n != 0 {
		state.Device.ReadOnly = true
	}
	if n, err := unix.IoctlGetInt(fd, unix.BLKSSZGET); err == nil && n > 0 {
		state.Device.LogicalBlockBytes = int64(n)
	}
}

// plain describes anything other than a block device.
func (s system) plain(path, node string, st unix.Stat_t) State {
	state := State{Path: path, Node: node, Kind: kindOf(st.Mode)}
	switch state.Kind {
	case Character:
		state.Number = numberOf(st.Rdev)
	case Regular:
		state.File, state.SizeBytes = fileID(st), st.Size
		stack, err := s.stack()
		if err != nil {
			state.Faults = append(state.Faults, "its users are unknown: "+err.Error())
			return state
		}
		state.Uses = stack.fileUses(node, state.File, true)
	}
	return state
}
